# SPDX-License-Identifier: MIT
"""The conformance cases of the installed onnx package, run by its own runner at its own tolerance.

Each case of Attention exists twice: the operator, and "_expanded", the same in ordinary operators.
The first are run here one by one. The second contain nothing for libmha, which the backend reports;
onnx.reference runs them instead, as a second source of the expected result.
"""

from __future__ import annotations

import warnings

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", minversion="1.23")  # older ones have older rules

from onnx.backend.test import BackendTest  # noqa: E402
from onnx.backend.test.case.test_case import TestCase  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402
from onnx.backend.test.runner import Runner  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import mha.onnx  # noqa: E402


def load_cases() -> dict[str, TestCase]:
    """All node cases of the installed onnx, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx overflows on purpose while it makes its cases
        return {case.name: case for case in load_model_tests(kind="node")}


CASES = load_cases()
ATTENTION = [
    name
    for name, case in CASES.items()
    if any(n.op_type == "Attention" and not n.domain for n in case.model.graph.node)
]


def official_tests() -> type:
    """onnx's own test class, without the thousands of cases of other operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner = BackendTest(mha.onnx, __name__)
    tests = runner.test_cases["OnnxBackendNodeModelTest"]
    wanted = {f"{name}_cpu" for name in ATTENTION}
    for name in [name for name in vars(tests) if name.startswith("test_") and name not in wanted]:
        delattr(tests, name)
    return tests


OnnxBackendNodeModelTest = official_tests()


def test_no_case_is_missing() -> None:
    """Cases with "attention" in their name that are not run here belong to other operators."""
    tests = [name for name in vars(OnnxBackendNodeModelTest) if name.startswith("test_")]
    assert sorted(tests) == sorted(f"{name}_cpu" for name in ATTENTION)
    assert not any(
        hasattr(getattr(OnnxBackendNodeModelTest, t), "__unittest_skip__") for t in tests
    )
    assert len(tests) >= 93  # onnx 1.23 has 93
    others = {
        node.op_type
        for name, case in CASES.items()
        if name.startswith("test_attention") and "_expanded" not in name and name not in ATTENTION
        for node in case.model.graph.node
    }
    assert not others
    assert {CASES[name].model.opset_import[0].version for name in ATTENTION} >= {23, 24, 25}


def test_every_case_has_its_expanded_twin() -> None:
    twins = [name for name in CASES if name.startswith("test_attention") and "_expanded" in name]
    assert sorted(twins) == sorted(f"{name}_expanded" for name in ATTENTION)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # onnx.reference subtracts -inf from -inf
@pytest.mark.parametrize("name", ATTENTION)
def test_equals_expanded(name: str) -> None:
    """The operator by libmha, the expanded twin by onnx.reference, on the same inputs."""
    case, twin = CASES[name], CASES[f"{name}_expanded"]
    assert not mha.onnx.is_compatible(twin.model)
    with pytest.raises(mha.onnx.Unsupported, match=r"no Attention operator among .*MatMul"):
        mha.onnx.prepare(twin.model)
    for inputs, _ in case.data_sets:
        names = [x.name for x in twin.model.graph.input]
        expected = ReferenceEvaluator(twin.model).run(None, dict(zip(names, inputs)))
        outputs = mha.onnx.run_model(case.model, inputs)
        Runner.assert_similar_outputs(expected, outputs, case.rtol, case.atol)


def test_the_comparison_can_fail() -> None:
    case = CASES["test_attention_4d"]
    inputs, (expected,) = case.data_sets[0]
    wrong = mha.onnx.run_model(case.model, [inputs[0], inputs[1], inputs[2][:, :, ::-1]])
    with pytest.raises(AssertionError):
        Runner.assert_similar_outputs([expected], wrong, case.rtol, case.atol)
