# SPDX-License-Identifier: MIT
"""python -m peers.onnx_web FOLDER: what js/bench/peers.mjs runs with ONNX Runtime in WebAssembly.

attention.onnx is the operator for one shape; minilm is a folder as transformers.js wants it, whose
graph has the operators that ONNX Runtime's own optimiser makes of an exported BERT.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import model_files, onnx_model
from .onnx_tools import node

IR_VERSION = 10


def _save(nodes, inputs, output: str, weights: dict[str, np.ndarray], file: Path) -> None:
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(x, name) for name, x in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(onnx_model.MICROSOFT, 1)]
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION), file)


def write_attention(file: Path, heads: int, tokens: int, width: int) -> None:
    """The fused operator, tokens first: [1, tokens, heads * width]."""
    shape = [1, tokens, heads * width]
    inputs = [(name, TensorProto.FLOAT, shape) for name in ("q", "k", "v")]
    fused = node(
        "MultiHeadAttention",
        ["q", "k", "v"],
        ["output"],
        domain=onnx_model.MICROSOFT,
        num_heads=heads,
    )
    _save([fused], inputs, "output", {}, file)


def write_minilm(folder: Path) -> None:
    nodes, weights, last = onnx_model.graph()
    names = {"ids": "input_ids", "segments": "token_type_ids", "mask": "attention_mask"}
    casts = [
        node("Cast", [given], [name], to=TensorProto.INT32) for name, given in names.items()
    ]
    closing = node("Identity", [last], ["last_hidden_state"])
    inputs = [(name, TensorProto.INT64, ["batch", "tokens"]) for name in names.values()]
    file = folder / "onnx" / "model.onnx"
    _save([*casts, *nodes, closing], inputs, "last_hidden_state", weights, file)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(model_files.path("minilm") / name, folder / name)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    write_attention(target / "attention.onnx", heads=12, tokens=512, width=64)
    write_minilm(target / "minilm")
