# SPDX-License-Identifier: MIT
"""The backend: Attention nodes by the library, all others by onnx.reference."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun, RuntimeContextError

from mha.onnx._operator import AttentionOutputs, attention

Observer = Callable[[onnx.NodeProto, np.ndarray], None]

_PARAMETERS = inspect.signature(attention).parameters.values()
_INPUTS = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in _PARAMETERS)
_ATTRIBUTES = {p.name for p in _PARAMETERS if p.kind is p.KEYWORD_ONLY}
_ATTRIBUTES -= {"qk_matmul_output", "threads"}  # ours, not ONNX's


class Unsupported(ValueError):
    """A model or device that this backend does not run; the message names the operator."""


class _AttentionNode(OpRun):
    """An Attention node that replaces the one of onnx.reference."""

    op_domain = ""
    observe: Observer | None = None
    threads: int | None = None

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[np.ndarray | None, ...]:
        names = [*self.onnx_node.output, "", "", ""]
        # Attributes of the newest opset are passed with their defaults for every opset of a model.
        given = {n: x for n, x in attributes.items() if n in _ATTRIBUTES and x is not None}
        given.update(threads=self.threads, qk_matmul_output=bool(names[3]))
        outputs = attention(*inputs, **given)
        if self.observe is not None:
            self.observe(self.onnx_node, self._softmax(inputs, given, outputs))
        return tuple(value if name else None for name, value in zip(names, outputs))

    def _softmax(
        self, inputs: Sequence[Any], given: dict[str, Any], outputs: AttentionOutputs
    ) -> np.ndarray:
        if outputs.qk_matmul_output is not None and given.get("qk_matmul_output_mode") == 3:
            return outputs.qk_matmul_output
        return attention(
            *inputs, **{**given, "qk_matmul_output": True, "qk_matmul_output_mode": 3}
        ).qk_matmul_output

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        # onnx.reference stores outputs without a name under "", which is also the name of omitted
        # inputs: anything but None there would become an optional input of a later node.
        return res


def _evaluator(node_class: type[OpRun]) -> type[ReferenceEvaluator]:
    class Evaluator(ReferenceEvaluator):
        """onnx.reference's evaluator does not pass new_ops to model-local functions, so each
        evaluator that it makes, also of this class, gets them here."""

        def __init__(self, proto: Any, *args: Any, new_ops: Any = None, **kwargs: Any) -> None:
            super().__init__(proto, *args, new_ops=[node_class], **kwargs)

    return Evaluator


def _load(
    proto: onnx.ModelProto | onnx.NodeProto,
    device: str,
    observe: Observer | None,
    threads: int | None,
) -> ReferenceEvaluator:
    if not supports_device(device):
        raise Unsupported(f"device {device!r}: libmha runs on the CPU")
    operators = {(n.domain, n.op_type) for n in _nodes(proto)}
    if ("", "Attention") not in operators:
        names = ", ".join(sorted(f"{domain}.{name}".lstrip(".") for domain, name in operators))
        raise Unsupported(f"no Attention operator among {names or 'no operators at all'}")
    _refuse_newer(proto)
    members = {"observe": observe and staticmethod(observe), "threads": threads}
    node_class = type("Attention", (_AttentionNode,), members)
    try:
        return _evaluator(node_class)(proto)
    except (NotImplementedError, RuntimeContextError) as error:
        reason = str(error).partition("\n")[0]
        raise Unsupported(f"onnx.reference lacks an operator of this model: {reason}") from error


def _refuse_newer(proto: onnx.ModelProto | onnx.NodeProto) -> None:
    """Refuse attributes and inputs that future opsets may add to Attention."""
    for node in _nodes(proto):
        if (node.domain, node.op_type) != ("", "Attention"):
            continue
        unknown = sorted({a.name for a in node.attribute} - _ATTRIBUTES)
        if unknown:
            raise Unsupported(f"Attention has attributes unknown here: {', '.join(unknown)}")
        if len(node.input) > _INPUTS:
            raise Unsupported(f"Attention has {len(node.input)} inputs; {_INPUTS} are known here")


def _nodes(proto: Any) -> Iterator[onnx.NodeProto]:
    """All nodes, including those of subgraphs and functions."""
    if isinstance(proto, onnx.ModelProto):
        for part in (proto.graph, *proto.functions):
            yield from _nodes(part)
    elif isinstance(proto, onnx.NodeProto):
        yield proto
        for attribute in proto.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph)
    else:
        for node in proto.node:
            yield from _nodes(node)


class MhaBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, evaluator: ReferenceEvaluator, names: Sequence[str]) -> None:
        self._evaluator = evaluator
        self._names = names
        self._wanted = [name for name in evaluator.output_names if name]
        self._outputs = namedtupledict("Outputs", self._wanted)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Inputs are a list in the order of the graph's inputs without initializers, a dict by
        name, or a single array. The result is a tuple that can also be indexed by name."""
        if kwargs:
            raise TypeError(f"run() has no option {', '.join(sorted(kwargs))}")
        return self._outputs(*self._evaluator.run(self._wanted, self._feeds(inputs)))

    def _feeds(self, inputs: Any) -> dict[str, Any]:
        if not isinstance(inputs, Mapping):
            inputs = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            if len(inputs) != len(self._names):
                raise ValueError(
                    f"{len(inputs)} inputs are given; the model takes {', '.join(self._names)}"
                )
            inputs = dict(zip(self._names, inputs))
        missing = [name for name in self._names if name not in inputs]
        if missing:
            raise ValueError(f"inputs without a value: {', '.join(missing)}")
        return dict(inputs)


class MhaBackend(Backend):
    """Implements onnx.backend.base.Backend; its methods are also functions of this module."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model has an Attention operator and nothing that onnx.reference lacks;
        prepare() says why not."""
        try:
            cls.prepare(model, device, **kwargs)
        except Unsupported:
            return False
        return True

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto | str | os.PathLike[str],
        device: str = "CPU",
        *,
        observe: Observer | None = None,
        threads: int | None = None,
    ) -> MhaBackendRep:
        """Check and load a model.

        observe(node, weights) is called for every Attention node that runs, with its weights
        (batch, heads, rows, columns), even if the model itself does not request them.
        """
        if isinstance(model, (str, os.PathLike)):
            model = onnx.load(model)
        onnx.checker.check_model(model)
        evaluator = _load(model, device, observe, threads)
        constants = {x.name for x in model.graph.initializer}
        return MhaBackendRep(evaluator, [n for n in evaluator.input_names if n not in constants])

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one Attention node; inputs are those that have a name. The node is checked against
        opset_version, by default the newest one of the onnx package."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        evaluator = _load(node, device, None, None)
        return MhaBackendRep(evaluator, [name for name in node.input if name]).run(inputs)


prepare = MhaBackend.prepare
run_model = MhaBackend.run_model
run_node = MhaBackend.run_node
is_compatible = MhaBackend.is_compatible
supports_device = MhaBackend.supports_device
