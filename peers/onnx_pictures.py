# SPDX-License-Identifier: MIT
"""ONNX Runtime with vision transformers: a graph of its fused operators.

These are the operators that its own optimiser makes of an exported ViT: Attention with its
projections, sums with their norms, gelu with its bias. The exported graph is measured too.
"""

from __future__ import annotations

import io

import numpy as np
import onnx
from onnx import NodeProto
from onnx.numpy_helper import from_array

from . import pictures
from .cases import Case
from .contender import Contender, Runner, Unable
from .inputs import Inputs
from .onnx_tools import Session, model, node

LIBRARY = "onnxruntime"
MICROSOFT = "com.microsoft"

Graph = tuple[list[NodeProto], dict[str, np.ndarray]]


def _beginning(w: pictures.Weights, batch: int) -> Graph:
    """The rows of the patches, with their places, and the norm of the first layer."""
    at = "embeddings.patch_embeddings.projection"
    tensors = {
        "patches": w.given[f"{at}.weight"],
        "patches_bias": w.given[f"{at}.bias"],
        "rows": np.array([batch, w.width, -1], dtype=np.int64),
        "places": w.given["embeddings.position_embeddings"],
        "scale": w.given["encoder.layer.0.layernorm_before.weight"],
        "shift": w.given["encoder.layer.0.layernorm_before.bias"],
    }
    nodes = [
        node("Conv", ["pixels", "patches", "patches_bias"], ["map"],
             kernel_shape=[w.patch, w.patch], strides=[w.stride, w.stride]),
        node("Reshape", ["map", "rows"], ["columns"]),
        node("Transpose", ["columns"], ["patch_rows"], perm=[0, 2, 1]),
    ]  # fmt: skip
    rows = "patch_rows"
    if not w.pooled:
        mark = w.given["embeddings.cls_token"].reshape(1, 1, w.width)
        tensors["mark"] = np.repeat(mark, batch, axis=0)
        nodes.append(node("Concat", ["mark", rows], ["all_rows"], axis=1))
        rows = "all_rows"
    nodes += [
        node("Add", [rows, "places"], ["x0"]),
        node("LayerNormalization", ["x0", "scale", "shift"], ["n0"], epsilon=w.epsilon),
    ]
    return nodes, tensors


def _layer(w: pictures.Weights, n: int) -> Graph:
    """From the sum x{n} and its norm n{n} to those of the next layer, or of the end."""
    at = f"encoder.layer.{n}"
    inner = [f"{at}.attention.attention.{one}" for one in ("query", "key", "value")]
    following = f"encoder.layer.{n + 1}.layernorm_before" if n + 1 < w.layers else "layernorm"
    tensors = {
        "in": np.concatenate([w.given[f"{name}.weight"] for name in inner]).T,
        "in_bias": np.concatenate([w.given[f"{name}.bias"] for name in inner]),
    }
    parts = {
        "o": (f"{at}.attention.output.dense", f"{at}.layernorm_after"),
        "up": (f"{at}.intermediate.dense", ""),
        "down": (f"{at}.output.dense", following),
    }
    for short, (name, norm) in parts.items():
        tensors[short] = w.given[f"{name}.weight"].T
        tensors[f"{short}_bias"] = w.given[f"{name}.bias"]
        if norm:
            tensors[f"{short}_scale"] = w.given[f"{norm}.weight"]
            tensors[f"{short}_shift"] = w.given[f"{norm}.bias"]
    tensors = {f"{name}{n}": np.ascontiguousarray(x) for name, x in tensors.items()}

    def norm(product: str, skip: str, part: str, result: str, total: str) -> NodeProto:
        names = [product, skip, f"{part}_scale{n}", f"{part}_shift{n}", f"{part}_bias{n}"]
        return node("SkipLayerNormalization", names, [result, "", "", total], domain=MICROSOFT,
                    epsilon=w.epsilon)  # fmt: skip

    activation = (
        [node("Add", [f"raised{n}", f"up_bias{n}"], [f"biased{n}"]),
         node("Relu", [f"biased{n}"], [f"inner{n}"])]
        if w.relu
        else [node("BiasGelu", [f"raised{n}", f"up_bias{n}"], [f"inner{n}"], domain=MICROSOFT)]
    )  # fmt: skip
    nodes = [
        node("Attention", [f"n{n}", f"in{n}", f"in_bias{n}"], [f"heads{n}"], domain=MICROSOFT,
             num_heads=w.heads),
        node("MatMul", [f"heads{n}", f"o{n}"], [f"projected{n}"]),
        norm(f"projected{n}", f"x{n}", "o", f"norm{n}", f"middle{n}"),
        node("MatMul", [f"norm{n}", f"up{n}"], [f"raised{n}"]),
        *activation,
        node("MatMul", [f"inner{n}", f"down{n}"], [f"lowered{n}"]),
        norm(f"lowered{n}", f"middle{n}", "down", f"n{n + 1}", f"x{n + 1}"),
    ]  # fmt: skip
    return nodes, tensors


def _ending(w: pictures.Weights) -> Graph:
    tensors = {
        "classifier": np.ascontiguousarray(w.given["classifier.weight"].T),
        "classifier_bias": w.given["classifier.bias"],
        "which": np.array([1], dtype=np.int64) if w.pooled else np.array(0, dtype=np.int64),
    }
    last = [f"n{w.layers}", "which"]
    nodes = [
        node("ReduceMean", last, ["row"], keepdims=0)
        if w.pooled
        else node("Gather", last, ["row"], axis=1),
        node("Gemm", ["row", "classifier", "classifier_bias"], ["logits"]),
    ]
    return nodes, tensors


def _run(case: Case, inputs: Inputs, threads: int) -> Runner:
    pictures.refuse(case)
    w = pictures.weights(case.model)
    graphs = [_beginning(w, case.B), *(_layer(w, n) for n in range(w.layers)), _ending(w)]
    nodes = [one for part, _ in graphs for one in part]
    tensors = {name: x for _, part in graphs for name, x in part.items()}
    feeds = {"pixels": inputs.pixels}
    inside = {name: x for name, x in tensors.items() if x.dtype == np.int64}
    outside = {name: x for name, x in tensors.items() if x.dtype != np.int64}
    whole = model(nodes, feeds, ["logits"], outside)
    whole.graph.initializer.extend(from_array(x, name) for name, x in inside.items())
    session = Session(whole, feeds, threads, outside)
    return Runner(session.run, lambda _: session.read())


def _exported(case: Case, inputs: Inputs, threads: int) -> Runner:
    """The plain module of torch_pictures.py as PyTorch exports it; the session optimises it."""
    pictures.refuse(case)
    import torch

    from .torch_pictures import vision

    file, feeds = io.BytesIO(), {"pixels": inputs.pixels}
    with torch.inference_mode():
        torch.onnx.export(
            vision(case.model), (torch.from_numpy(inputs.pixels),), file, input_names=[*feeds],
            output_names=["logits"], opset_version=18, dynamo=False
        )  # fmt: skip
    session = Session(onnx.load_from_string(file.getvalue()), feeds, threads)
    return Runner(session.run, lambda _: session.read())


CONTENDERS = (
    Contender(LIBRARY, "ViT of fused operators", _run),
    Contender(LIBRARY, "exported ViT", _exported),
)
