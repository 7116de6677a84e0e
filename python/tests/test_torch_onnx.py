# SPDX-License-Identifier: MIT
"""Export of the operator by torch.onnx.export(), and the result in ONNX's terms."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
numpy = pytest.importorskip("numpy")

import mha.onnx  # noqa: E402
import mha.torch  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


class Model(torch.nn.Module):
    def __init__(self, **options: object) -> None:
        super().__init__()
        self.options = options

    def forward(self, query, key, **tensors):
        return mha.torch.attention(query, key, key, **self.options, **tensors)


def exported(model: Model, inputs: tuple, named: dict) -> object:
    return torch.onnx.export(
        model,
        inputs,
        kwargs=named,
        dynamo=True,
        opset_version=23,
        custom_translation_table=mha.torch.onnx_translations(),
        verbose=False,
    ).model_proto


def test_export_keeps_masks_gates_and_results() -> None:
    draw = torch.Generator().manual_seed(0)
    inputs = tuple(torch.randn(2, 4, 5, 8, generator=draw) for _ in range(2))
    mask = torch.rand(2, 1, 5, 5, generator=draw) > 0.3
    named = {
        "mask": mask | torch.eye(5, dtype=torch.bool),
        "bias": torch.randn(4, 5, 5, generator=draw),
        "gates": torch.randn(4, generator=draw),
        "key_lengths": torch.tensor([5, 3]),
    }
    settings = {"causal": True, "position": "top-left", "scale": 0.3, "softcap": 3.0}
    model = Model(**settings, return_lse=True, return_weights=True)
    right = model(*inputs, **named)
    # The rows that see a key: ONNX does not define the others.
    seen = torch.isfinite(right.lse)
    proto = exported(model, inputs, named)
    assert {node.domain for node in proto.graph.node} == {""}
    arrays = [t.numpy() for t in (*inputs, *named.values())]
    found = mha.onnx.prepare(proto).run(arrays)
    for got, expected in zip(found, right, strict=True):
        got = torch.from_numpy(numpy.array(got))
        torch.testing.assert_close(got[seen], expected[seen])


def test_export_is_one_node() -> None:
    x = torch.randn(1, 2, 3, 8)
    proto = exported(Model(causal=True), (x, x), {})
    assert [node.op_type for node in proto.graph.node] == ["Attention"]


@pytest.mark.parametrize(
    "options, missing",
    [
        ({"window": (2, 0), "position": 0}, "window"),
        ({"causal": True, "position": "bottom-right"}, "causal attention from another position"),
        ({"head_modes": ["normal", "uniform"]}, "head_modes"),
        ({"sinks": torch.ones(2)}, "sinks"),
    ],
)
def test_what_onnx_lacks_is_refused(options: dict, missing: str) -> None:
    """The translation is called with what the exporter would give it."""
    caught = []

    class Catch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.mha.attention.default:
                caught.append(args)
            return func(*args, **(kwargs or {}))

    q, k = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 4, 8)
    with Catch(), torch.no_grad():
        mha.torch.attention(q, k, k, **options)
    ((translate,),) = (mha.torch.onnx_translations().values(),)
    with pytest.raises(NotImplementedError, match=f"ONNX's Attention has no {missing}"):
        translate(*caught[0])
