# SPDX-License-Identifier: MIT
"""Small ONNX models, and sessions with everything bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, NodeProto, TensorProto, helper

Arrays = Mapping[str, np.ndarray]


def node(kind: str, inputs: list[str], outputs: list[str], **attributes: object) -> NodeProto:
    """A node; inputs left empty at the end are left out."""
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    return helper.make_node(kind, inputs, outputs, **attributes)


def _value(name: str, x: np.ndarray):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)


def _outside(name: str, x: np.ndarray) -> TensorProto:
    """A weight that is passed to the session separately, since a model file is limited to 2 GB."""
    tensor = TensorProto(name=name, dims=x.shape)
    tensor.data_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="given")
    return tensor


def model(
    nodes: list[NodeProto],
    feeds: Arrays,
    outputs: Iterable[str],
    weights: Arrays | None = None,
    opset: int = 21,
    output_type: type | None = None,
) -> ModelProto:
    """A model of these nodes. The type of all outputs is that of the first input, unless given."""
    kind = helper.np_dtype_to_tensor_dtype(
        np.dtype(output_type or next(iter(feeds.values())).dtype)
    )
    graph = helper.make_graph(
        nodes,
        "case",
        [_value(name, x) for name, x in feeds.items()],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [_outside(name, x) for name, x in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


class Session:
    """A model that is run with bound inputs, and with outputs in the memory of the first run.

    `shared` names outputs that are written into the buffer of an input.
    """

    def __init__(
        self,
        proto: ModelProto,
        feeds: Arrays,
        threads: int,
        weights: Arrays | None = None,
        shared: Mapping[str, str] | None = None,
    ):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._weights = {
            name: ort.OrtValue.ortvalue_from_numpy(x) for name, x in (weights or {}).items()
        }
        options.add_external_initializers(list(self._weights), list(self._weights.values()))
        self._session = ort.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._names = [output.name for output in self._session.get_outputs()]
        self._feeds = {name: ort.OrtValue.ortvalue_from_numpy(x) for name, x in feeds.items()}
        self._binding = self._session.io_binding()
        for name, value in self._feeds.items():
            self._binding.bind_ortvalue_input(name, value)
        for name in self._names:
            if name in (shared or {}):
                self._binding.bind_ortvalue_output(name, self._feeds[shared[name]])
            else:
                self._binding.bind_output(name, "cpu")
        self._fresh = True

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)
        if self._fresh:
            self._fresh = False
            for name, value in zip(self._names, self._binding.get_outputs()):
                self._binding.bind_ortvalue_output(name, value)

    def read(self) -> dict[str, np.ndarray]:
        """All outputs of the last run."""
        return dict(zip(self._names, (value.numpy() for value in self._binding.get_outputs())))
