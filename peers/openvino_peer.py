# SPDX-License-Identifier: MIT
"""OpenVINO: attention in f32, f16 and bf16, and whole models, converted from PyTorch, in f32, bf16 and
i8, for which NNCF quantises weights and activations after it has seen some sentences."""

from __future__ import annotations

import contextlib
import functools
import sys

import numpy as np
import openvino
import torch
from openvino import opset13 as opset

from . import pictures, torch_pictures
from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import NUMPY_TYPES, TOKENS, Inputs
from .torch_model import BATCH, batches, joined, minilm, padded, refuse

LIBRARY = "openvino"


def version() -> str:
    return f"OpenVINO {openvino.__version__.split('-')[0]}"


_CALIBRATION = (100, 128)  # sentences and their tokens, from which ranges of activations are taken


@functools.cache
def _quantised() -> openvino.Model:
    import nncf

    model, rng = _converted(), np.random.default_rng(1)
    texts = [rng.integers(*TOKENS, size=_CALIBRATION[1]).tolist() for _ in range(_CALIBRATION[0])]
    data = nncf.Dataset([_feeds(model, [ids]) for ids in texts])
    with contextlib.redirect_stdout(sys.stderr):  # where it shows its progress
        return nncf.quantize(
            model.clone(), data, model_type=nncf.ModelType.TRANSFORMER, subset_size=_CALIBRATION[0]
        )


def _model(case: Case) -> openvino.Model:
    return _quantised() if case.dtype == "i8" else _converted()


@functools.cache
def _converted() -> openvino.Model:
    """With a batch and a length that may be anything."""
    example = {
        name: torch.ones((2, 8), dtype=torch.int64) for name in ("input_ids", "attention_mask")
    }
    with torch.inference_mode():
        return openvino.convert_model(minilm(), example_input=example)


def _compiled(model: openvino.Model, case: Case, threads: int) -> openvino.CompiledModel:
    config = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "bf16" if case.dtype == "bf16" else "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    return openvino.compile_model(model, "CPU", config)


def _feeds(model: openvino.Model, ids: list[list[int]]) -> dict[str, np.ndarray]:
    tokens, mask = padded(ids)
    feeds = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
    return {one.get_any_name(): feeds[one.get_any_name()] for one in model.inputs}


def _request(compiled: openvino.CompiledModel, feeds: dict[str, np.ndarray]) -> object:
    request = compiled.create_infer_request()
    for name, x in feeds.items():
        request.set_tensor(name, openvino.Tensor(x))
    return request


def _runner(inputs: Inputs, groups: list[list[int]], requests: list) -> Runner:
    def run() -> None:
        for request in requests:
            request.infer()

    def read(_: None) -> Results:
        outputs = [np.array(request.get_output_tensor(0).data) for request in requests]
        return {"hidden": joined(inputs.ids, groups, outputs)}

    return Runner(run, read)


def _run(case: Case, inputs: Inputs, threads: int) -> Runner:
    """Batches of similar lengths; the model is compiled for the shape of each."""
    refuse(case, "f32", "bf16", "i8")
    groups = batches(inputs.ids, BATCH)
    requests = []
    for group in groups:
        model = _model(case).clone()
        feeds = _feeds(model, [inputs.ids[b] for b in group])
        model.reshape({name: list(x.shape) for name, x in feeds.items()})
        requests.append(_request(_compiled(model, case, threads), feeds))
    return _runner(inputs, groups, requests)


def _one_by_one(case: Case, inputs: Inputs, threads: int) -> Runner:
    """Without padding; the model is compiled once, for any length."""
    refuse(case, "f32", "bf16", "i8")
    if case.B == 1:
        raise Unable("is for several sentences")
    model = _model(case)
    compiled = _compiled(model, case, threads)
    groups = batches(inputs.ids, 1)
    requests = [_request(compiled, _feeds(model, [inputs.ids[b] for b in g])) for g in groups]
    return _runner(inputs, groups, requests)


def _pictures(case: Case, inputs: Inputs, threads: int) -> Runner:
    """The plain module of torch_pictures.py, converted and compiled for the shape of the pictures."""
    pictures.refuse(case)
    with torch.inference_mode():
        model = openvino.convert_model(
            torch_pictures.vision(case.model), example_input=torch.from_numpy(inputs.pixels)
        )
    model.reshape(list(inputs.pixels.shape))
    feeds = {model.inputs[0].get_any_name(): inputs.pixels}
    request = _request(_compiled(model, case, threads), feeds)
    return Runner(
        request.infer, lambda _: {"logits": np.array(request.get_output_tensor(0).data)}
    )


# -------------------------------------------------------------- attention -----


def _attention_graph(case: Case, written_out: bool) -> openvino.Model:
    """SDPA as one node, or written out: products, softmax."""
    kind = getattr(openvino.Type, case.dtype)
    sizes = [
        [case.B, case.H, case.L, case.D],
        [case.B, case.G, case.S, case.D],
        [case.B, case.G, case.S, case.D],
    ]
    q, k, v = (opset.parameter(size, kind) for size in sizes)
    if not written_out:
        output = opset.scaled_dot_product_attention(q, k, v, causal=case.causal)
    else:
        scale = opset.convert(opset.constant(np.float32(case.D**-0.5)), kind)
        scores = opset.multiply(opset.matmul(q, k, False, True), scale)
        output = opset.matmul(opset.softmax(scores, -1), v, False, False)
    return openvino.Model([output], [q, k, v])


def _filled(x: np.ndarray, dtype: str) -> openvino.Tensor:
    """NumPy has no bf16: such tensors show their bits as f16."""
    if dtype != "bf16":
        return openvino.Tensor(np.ascontiguousarray(x))
    tensor = openvino.Tensor(openvino.Type.bf16, openvino.Shape(x.shape))
    tensor.data[...] = x.view(tensor.data.dtype)
    return tensor


def _attention(case: Case, inputs: Inputs, threads: int, written_out: bool) -> Runner:
    if case.kind != "attention" or case.want != "output":
        raise Unable("is for attention, forward")
    if case.mask or case.pad or case.window >= 0 or case.G != case.H:
        raise Unable("is for attention without masks and groups")
    if written_out and case.causal:
        raise Unable("has no causal mask when written out")
    config = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": case.dtype,
        "PERFORMANCE_HINT": "LATENCY",
    }
    model = openvino.compile_model(_attention_graph(case, written_out), "CPU", config)
    request = model.create_infer_request()
    for n, x in enumerate((inputs.query, inputs.key, inputs.value)):
        request.set_input_tensor(n, _filled(x, case.dtype))

    def read(_: None) -> Results:
        data = np.array(request.get_output_tensor(0).data)
        if case.dtype == "bf16":
            data = data.view(NUMPY_TYPES["bf16"])
        return {"output": data.astype(np.float32)}

    return Runner(request.infer, read)


def _sdpa(case: Case, inputs: Inputs, threads: int) -> Runner:
    return _attention(case, inputs, threads, written_out=False)


def _written_out(case: Case, inputs: Inputs, threads: int) -> Runner:
    return _attention(case, inputs, threads, written_out=True)


CONTENDERS = (
    Contender(LIBRARY, "SDPA", _sdpa),
    Contender(LIBRARY, "attention written out", _written_out),
    Contender(LIBRARY, "compiled model", _run),
    Contender(LIBRARY, "compiled model, one by one", _one_by_one),
    Contender(LIBRARY, "compiled ViT", _pictures),
)
