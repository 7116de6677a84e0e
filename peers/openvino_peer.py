# SPDX-License-Identifier: MIT
"""OpenVINO with whole models, converted from PyTorch, in f32."""

from __future__ import annotations

import functools

import numpy as np
import openvino
import torch

from .cases import Case
from .contender import Contender, Results, Runner
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


def _session(feeds: dict[str, np.ndarray], threads: int) -> openvino.InferRequest:
    """Compiled for the shape of these inputs."""
    model = _converted().clone()
    shapes = {one.get_any_name(): feeds[one.get_any_name()].shape for one in model.inputs}
    model.reshape({name: list(shape) for name, shape in shapes.items()})
    config = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = openvino.compile_model(model, "CPU", config).create_infer_request()
    for name in shapes:
        request.set_tensor(name, openvino.Tensor(feeds[name]))
    return request


def _run(case: Case, inputs: Inputs, threads: int) -> Runner:
    refuse(case)
    groups = batches(inputs.ids, BATCH)
    requests = []
    for group in groups:
        tokens, mask = padded([inputs.ids[b] for b in group])
        feeds = {"input_ids": tokens, "attention_mask": mask}
        feeds["token_type_ids"] = np.zeros_like(tokens)
        requests.append(_session(feeds, threads))

    def run() -> None:
        for request in requests:
            request.infer()

    def read(_: None) -> Results:
        outputs = [np.array(request.get_output_tensor(0).data) for request in requests]
        return {"hidden": joined(inputs.ids, groups, outputs)}

    return Runner(run, read)


CONTENDERS = (Contender(LIBRARY, "compiled model", _run),)
