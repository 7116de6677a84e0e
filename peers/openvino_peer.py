# SPDX-License-Identifier: MIT
"""OpenVINO with whole models, converted from PyTorch, in f32."""

from __future__ import annotations

import functools

import numpy as np
import openvino
import torch

from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import Inputs
from .torch_model import BATCH, batches, joined, minilm, padded, refuse

LIBRARY = "openvino"


def version() -> str:
    return f"OpenVINO {openvino.__version__.split('-')[0]}"


@functools.cache
def _converted() -> openvino.Model:
    """With a batch and a length that may be anything."""
    example = {
        name: torch.ones((2, 8), dtype=torch.int64) for name in ("input_ids", "attention_mask")
    }
    with torch.inference_mode():
        return openvino.convert_model(minilm(), example_input=example)


def _compiled(model: openvino.Model, threads: int) -> openvino.CompiledModel:
    config = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
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
    refuse(case)
    groups = batches(inputs.ids, BATCH)
    requests = []
    for group in groups:
        model = _converted().clone()
        feeds = _feeds(model, [inputs.ids[b] for b in group])
        model.reshape({name: list(x.shape) for name, x in feeds.items()})
        requests.append(_request(_compiled(model, threads), feeds))
    return _runner(inputs, groups, requests)


def _one_by_one(case: Case, inputs: Inputs, threads: int) -> Runner:
    """Without padding; the model is compiled once, for any length."""
    refuse(case)
    if case.B == 1:
        raise Unable("is for several sentences")
    model = _converted()
    compiled = _compiled(model, threads)
    groups = batches(inputs.ids, 1)
    requests = [_request(compiled, _feeds(model, [inputs.ids[b] for b in g])) for g in groups]
    return _runner(inputs, groups, requests)


CONTENDERS = (
    Contender(LIBRARY, "compiled model", _run),
    Contender(LIBRARY, "compiled model, one by one", _one_by_one),
)
