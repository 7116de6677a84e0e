# SPDX-License-Identifier: MIT
"""ONNX Runtime with whole models: MiniLM as a graph of its fused operators.

These are the operators that ONNX Runtime's own optimiser makes of an exported BERT. For i8 its own
tool quantises them: weights per channel, activations as they come.
"""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto
from onnx.numpy_helper import from_array
from onnxruntime.quantization import QuantType, quantize_dynamic

from . import model_files
from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import Inputs
from .onnx_tools import Arrays, Session, model, node

LIBRARY = "onnxruntime"
BATCH = 16
MICROSOFT = "com.microsoft"


@functools.cache
def _weights() -> tuple[dict, dict[str, np.ndarray]]:
    from safetensors.numpy import load_file

    folder = model_files.path("minilm")
    return json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")


def _layer(n: int, heads: int, epsilon: float, given: Arrays) -> tuple[list[NodeProto], dict]:
    """Nodes from x{n} to x{n+1}, and their weights; matrices are [inputs, outputs]."""
    at = f"encoder.layer.{n}."
    self_names = [f"{at}attention.self.{name}" for name in ("query", "key", "value")]
    tensors = {
        "in": np.concatenate([given[f"{name}.weight"] for name in self_names]).T,
        "in_bias": np.concatenate([given[f"{name}.bias"] for name in self_names]),
    }
    parts = {"o": "attention.output", "up": "intermediate", "down": "output"}
    for short, name in parts.items():
        tensors[short] = given[f"{at}{name}.dense.weight"].T
        tensors[f"{short}_bias"] = given[f"{at}{name}.dense.bias"]
    for short, name in (("o", "attention.output"), ("down", "output")):
        tensors[f"{short}_scale"] = given[f"{at}{name}.LayerNorm.weight"]
        tensors[f"{short}_shift"] = given[f"{at}{name}.LayerNorm.bias"]
    tensors = {f"{name}{n}": np.ascontiguousarray(w) for name, w in tensors.items()}

    def norm(product: str, skip: str, part: str, result: str) -> NodeProto:
        names = [product, skip, f"{part}_scale{n}", f"{part}_shift{n}", f"{part}_bias{n}"]
        return node(
            "SkipLayerNormalization", names, [result], domain=MICROSOFT, epsilon=epsilon
        )

    attention = [f"x{n}", f"in{n}", f"in_bias{n}", "mask"]
    nodes = [
        node("Attention", attention, [f"heads{n}"], domain=MICROSOFT, num_heads=heads),
        node("MatMul", [f"heads{n}", f"o{n}"], [f"projected{n}"]),
        norm(f"projected{n}", f"x{n}", "o", f"middle{n}"),
        node("MatMul", [f"middle{n}", f"up{n}"], [f"raised{n}"]),
        node("BiasGelu", [f"raised{n}", f"up_bias{n}"], [f"inner{n}"], domain=MICROSOFT),
        node("MatMul", [f"inner{n}", f"down{n}"], [f"lowered{n}"]),
        norm(f"lowered{n}", f"middle{n}", "down", f"x{n + 1}"),
    ]
    return nodes, tensors


def graph() -> tuple[list[NodeProto], dict[str, np.ndarray], str]:
    config, given = _weights()
    tensors = {
        f"{name}_embedding": given[f"embeddings.{name}_embeddings.weight"]
        for name in ("word", "position", "token_type")
    }
    tensors["scale"] = given["embeddings.LayerNorm.weight"]
    tensors["shift"] = given["embeddings.LayerNorm.bias"]
    names = ["ids", "segments", "word_embedding", "position_embedding", "token_type_embedding"]
    epsilon = config["layer_norm_eps"]
    nodes = [
        node(
            "EmbedLayerNormalization",
            [*names, "scale", "shift"],
            ["x0", "unused"],
            domain=MICROSOFT,
            epsilon=epsilon,
        )
    ]
    layers = config["num_hidden_layers"]
    for n in range(layers):
        more, weights = _layer(n, config["num_attention_heads"], epsilon, given)
        nodes += more
        tensors |= weights
    return nodes, tensors, f"x{layers}"


def _quantised(nodes: list[NodeProto], feeds: Arrays, last: str, tensors: Arrays) -> ModelProto:
    """The same graph with products of bytes, its weights inside."""
    whole = model(nodes, feeds, [last], output_type=np.float32)
    whole.graph.initializer.extend(from_array(x, name) for name, x in tensors.items())
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "f32.onnx", Path(folder) / "i8.onnx"
        onnx.save(whole, before)
        quantize_dynamic(
            before,
            after,
            per_channel=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Attention"],
            extra_options={"DefaultTensorType": TensorProto.FLOAT},
        )
        return onnx.load(after)


def _session(ids: list[list[int]], dtype: str, threads: int) -> tuple[Session, str]:
    """A session for one batch; without padding there is no mask."""
    nodes, tensors, last = graph()
    longest = max(map(len, ids))
    tokens = np.array([one + [0] * (longest - len(one)) for one in ids], dtype=np.int32)
    feeds = {"ids": tokens, "segments": np.zeros_like(tokens)}
    if min(map(len, ids)) < longest:
        feeds["mask"] = (np.arange(longest) < [[len(one)] for one in ids]).astype(np.int32)
    else:
        for one in nodes:
            if one.op_type == "Attention":
                one.input.pop()
    if dtype == "i8":
        return Session(_quantised(nodes, feeds, last, tensors), feeds, threads), last
    whole = model(nodes, feeds, [last], tensors, output_type=np.float32)
    return Session(whole, feeds, threads, tensors), last


def _run(case: Case, inputs: Inputs, threads: int) -> Runner:
    if not case.is_model or case.want != "output":
        raise Unable("is for whole models, the output alone")
    if case.model != "minilm":
        raise Unable("is for encoders")
    if case.dtype == "bf16":
        raise Unable("has no bf16")
    order = sorted(range(case.B), key=lambda b: len(inputs.ids[b]))
    groups = [order[n : n + BATCH] for n in range(0, case.B, BATCH)]
    sessions = [_session([inputs.ids[b] for b in group], case.dtype, threads) for group in groups]

    def run() -> None:
        for session, _ in sessions:
            session.run()

    def read(_: None) -> Results:
        rows = {}
        for group, (session, last) in zip(groups, sessions):
            for b, one in zip(group, session.read()[last]):
                rows[b] = one[: len(inputs.ids[b])]
        return {"hidden": np.concatenate([rows[b] for b in range(case.B)])}

    return Runner(run, read)


CONTENDERS = (Contender(LIBRARY, "fused operators", _run),)
