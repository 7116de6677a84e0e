# SPDX-License-Identifier: MIT
"""The backend of mha.onnx: graphs with other operators in them, opsets, devices."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", minversion="1.23")  # older ones have older rules

from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import OUTPUTS, assert_close, attention_model, model_of  # noqa: E402

import mha.onnx  # noqa: E402
from mha.onnx import _backend  # noqa: E402


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The outputs of every call of mha.onnx.attention, by the backend too."""
    seen: list[Any] = []
    original = mha.onnx.attention

    def counted(*args: Any, **kwargs: Any) -> Any:
        seen.append(original(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr("mha.onnx._backend.attention", counted)
    return seen


def project(random: Any, name: str) -> tuple[Any, onnx.TensorProto]:
    """A matrix of weights, also as an initializer."""
    weight = random.standard_normal((8, 8)).astype(np.float32)
    return weight, onnx.numpy_helper.from_array(weight, name)


def layer_model() -> tuple[onnx.ModelProto, Any]:
    """x -> MatMul (three times) -> Attention -> MatMul -> y, causal, 2 heads."""
    random = np.random.default_rng(3)
    x = random.standard_normal((2, 5, 8)).astype(np.float32)
    weights = [project(random, f"W{name}")[1] for name in "QKVO"]
    nodes = [helper.make_node("MatMul", ["x", f"W{n}"], [n]) for n in "QKV"]
    nodes.append(
        helper.make_node(
            "Attention", ["Q", "K", "V"], ["heads"], name="self", is_causal=1,
            q_num_heads=2, kv_num_heads=2,
        )
    )  # fmt: skip
    nodes.append(helper.make_node("MatMul", ["heads", "WO"], ["y"]))
    return model_of(nodes, {"x": x}, {"y": 3}, initializer=weights), x


def test_other_operators_go_to_onnx_reference(calls: list[Any]) -> None:
    model, x = layer_model()
    assert mha.onnx.is_compatible(model)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    (got,) = mha.onnx.run_model(model, [x])
    assert len(calls) == 1
    assert_close(got, wanted, 1e-5)


def test_inputs_by_position_by_name_or_alone() -> None:
    model, x = layer_model()
    rep = mha.onnx.prepare(model)
    wanted = rep.run([x]).y
    for inputs in ((x,), {"x": x}, x):
        assert np.array_equal(rep.run(inputs)["y"], wanted)
    with pytest.raises(ValueError, match="2 inputs are given; the model takes x"):
        rep.run([x, x])
    with pytest.raises(ValueError, match="inputs without a value: x"):
        rep.run({"y": x})
    with pytest.raises(TypeError, match="no option fast"):
        rep.run([x], fast=True)


def test_a_model_from_a_file(tmp_path: Any) -> None:
    model, x = layer_model()
    onnx.save(model, tmp_path / "layer.onnx")
    wanted = mha.onnx.run_model(model, [x])[0]
    assert np.array_equal(mha.onnx.prepare(tmp_path / "layer.onnx").run([x])[0], wanted)
    assert np.array_equal(mha.onnx.prepare(str(tmp_path / "layer.onnx")).run([x])[0], wanted)


def test_threads_change_no_bit() -> None:
    model, x = layer_model()
    one, two = (mha.onnx.prepare(model, threads=n).run([x])[0] for n in (1, 2))
    assert np.array_equal(one, two)


def test_observe_shows_the_weights_of_every_node() -> None:
    model, x = layer_model()
    seen = {}
    plain = mha.onnx.prepare(model).run([x])[0]
    watched = mha.onnx.prepare(model, observe=lambda node, w: seen.update({node.name: w}))
    assert np.array_equal(watched.run([x])[0], plain)
    assert list(seen) == ["self"] and seen["self"].shape == (2, 2, 5, 5)
    np.testing.assert_allclose(seen["self"].sum(-1), 1, rtol=1e-5)
    assert not np.triu(seen["self"], 1).any()  # causal


@pytest.mark.parametrize("mode", range(4))
def test_observe_and_an_output_of_any_mode(mode: int, random: Any) -> None:
    feeds = {name: random.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "QKV"}
    model = attention_model(feeds, OUTPUTS, qk_matmul_output_mode=mode)
    seen: list[Any] = []
    rep = mha.onnx.prepare(model, observe=lambda node, weights: seen.append(weights))
    scores = rep.run(list(feeds.values()))["qk_matmul_output"]
    np.testing.assert_allclose(seen[0].sum(-1), 1, rtol=1e-5)
    assert np.array_equal(scores, seen[0]) == (mode == 3)


def test_attention_in_a_function(calls: list[Any], random: Any) -> None:
    feeds = {name: random.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "QKV"}
    inner = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    cause = inner.attribute.add(name="is_causal", type=onnx.AttributeProto.INT)
    cause.ref_attr_name = "mine"
    function = helper.make_function(
        "local", "Mine", ["q", "k", "v"], ["y"], [inner], [helper.make_opsetid("", 25)], ["mine"]
    )
    outer = helper.make_node("Mine", ["Q", "K", "V"], ["Y"], domain="local", mine=1)
    model = model_of([outer], feeds, {"Y": 4}, functions=[function])
    got = mha.onnx.run_model(model, list(feeds.values()))[0]
    assert len(calls) == 1
    assert_close(got, ReferenceEvaluator(model).run(None, feeds)[0], 1e-5)
    assert np.allclose(got[:, :, 0], feeds["V"][:, :, 0])  # causal came through


def test_attention_in_a_subgraph(calls: list[Any], random: Any) -> None:
    feeds = {name: random.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "QKV"}
    branch = lambda name, node: helper.make_graph(  # noqa: E731
        [node], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 4)]
    )
    choice = helper.make_node(
        "If",
        ["yes"],
        ["Y"],
        then_branch=branch("a", helper.make_node("Attention", ["Q", "K", "V"], ["a"])),
        else_branch=branch("b", helper.make_node("Identity", ["V"], ["b"])),
    )
    for yes in (True, False):
        all_feeds = {**feeds, "yes": np.array(yes)}
        model = model_of([choice], all_feeds, {"Y": 4})
        got = mha.onnx.run_model(model, all_feeds)[0]
        assert_close(got, ReferenceEvaluator(model).run(None, all_feeds)[0], 1e-5)
    assert len(calls) == 1


def test_an_output_left_out_is_not_the_input_of_a_later_node(random: Any) -> None:
    feeds = {name: random.standard_normal((1, 2, 3, 3)).astype(np.float32) for name in "QKV"}
    nodes = [
        helper.make_node("Attention", ["Q", "K", "V"], ["first", "", "", "scores"]),
        helper.make_node("Attention", ["first", "K", "V", "", "", ""], ["second"]),
    ]
    model = model_of(nodes, feeds, {"second": 4, "scores": 4})
    second, _ = mha.onnx.run_model(model, list(feeds.values()))
    first = mha.onnx.attention(*feeds.values()).Y
    assert np.array_equal(second, mha.onnx.attention(first, feeds["K"], feeds["V"]).Y)


def test_initializers_need_no_value(random: Any) -> None:
    feeds = {name: random.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "QKV"}
    node = helper.make_node("Attention", ["Q", "K", "V"], ["Y"])
    constants = [onnx.numpy_helper.from_array(feeds[name], name) for name in "KV"]
    model = model_of([node], feeds, {"Y": 4}, initializer=constants)
    wanted = mha.onnx.attention(*feeds.values()).Y
    assert np.array_equal(mha.onnx.run_model(model, [feeds["Q"]])[0], wanted)
    other = {"Q": feeds["Q"], "K": feeds["K"], "V": 2 * feeds["V"]}  # a default is only a default
    assert np.array_equal(mha.onnx.run_model(model, other)[0], 2 * wanted)


def test_run_node(random: Any) -> None:
    Q, K, V = (random.standard_normal((1, 2, 3, 4)).astype(np.float32) for _ in range(3))
    past = random.standard_normal((1, 2, 2, 4)).astype(np.float32)
    names = ["Q", "K", "V", "", "past_key", "past_value"]
    node = helper.make_node("Attention", names, ["Y", "", "present_value"])
    outputs = mha.onnx.run_node(node, [Q, K, V, past, past])
    wanted = mha.onnx.attention(Q, K, V, None, past, past)
    assert len(outputs) == 2
    assert np.array_equal(outputs[0], wanted.Y)
    assert np.array_equal(outputs["present_value"], wanted.present_value)
    window = helper.make_node("Attention", ["Q", "K", "V"], ["Y"], left_window_size=1)
    assert len(mha.onnx.run_node(window, [Q, K, V], opset_version=25)) == 1
    with pytest.raises(onnx.checker.ValidationError, match="left_window_size"):
        mha.onnx.run_node(window, [Q, K, V], opset_version=24)
    with pytest.raises(mha.onnx.Unsupported, match="no Attention operator among Relu"):
        mha.onnx.run_node(helper.make_node("Relu", ["x"], ["y"]), [Q])


def test_devices() -> None:
    model, _ = layer_model()
    assert mha.onnx.supports_device("CPU") and not mha.onnx.supports_device("CUDA")
    assert not mha.onnx.is_compatible(model, "CUDA:1")
    with pytest.raises(mha.onnx.Unsupported, match="device 'CUDA'"):
        mha.onnx.prepare(model, "CUDA")


def test_an_operator_nobody_knows_is_named(random: Any) -> None:
    feeds = {name: random.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "QKV"}
    nodes = [
        helper.make_node("Attention", ["Q", "K", "V"], ["y"]),
        helper.make_node("MultiHeadAttention", ["y", "K", "V"], ["Y"], domain="com.microsoft"),
    ]
    model = model_of(nodes, feeds, {"Y": 4})
    assert not mha.onnx.is_compatible(model)
    with pytest.raises(mha.onnx.Unsupported, match="'MultiHeadAttention' from domain"):
        mha.onnx.prepare(model)


@pytest.mark.parametrize(
    ("opset", "attributes", "inputs", "message"),
    [
        (22, {}, (), "No Op registered for Attention"),
        (23, {"left_window_size": 1}, (), "Unrecognized attribute: left_window_size"),
        (24, {"right_window_size": 1}, (), "Unrecognized attribute: right_window_size"),
        (25, {"window": 1}, (), "Unrecognized attribute: window"),
        (23, {}, ("nonpad_kv_seqlen",), "has input size 7 not in range"),
    ],
)
def test_what_an_opset_does_not_have(
    opset: int, attributes: dict[str, Any], inputs: tuple[str, ...], message: str, random: Any
) -> None:
    feeds = {name: random.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "QKV"}
    feeds.update({name: np.array([2]) for name in inputs})
    with pytest.raises(onnx.checker.ValidationError, match=message):
        mha.onnx.prepare(attention_model(feeds, opset=opset, **attributes))


def test_the_newest_opset_of_the_installed_onnx(random: Any) -> None:
    feeds = {name: random.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "QKV"}
    model = attention_model(feeds, opset=onnx.defs.onnx_opset_version(), is_causal=1)
    wanted = mha.onnx.attention(**feeds, is_causal=1).Y
    assert np.array_equal(mha.onnx.run_model(model, feeds)[0], wanted)


def test_opsets_to_come(random: Any) -> None:
    """New attributes are refused if a node uses them, and accepted with their defaults."""
    node = helper.make_node("Attention", ["Q", "K", "V"], ["Y"], shine=1)
    with pytest.raises(mha.onnx.Unsupported, match="attributes unknown here: shine"):
        _backend._load(node, "CPU", None, None)
    node = helper.make_node("Attention", list("QKVabcdefg"), ["Y"])
    with pytest.raises(mha.onnx.Unsupported, match="10 inputs; 7 are known here"):
        _backend._load(node, "CPU", None, None)
    node = helper.make_node("Attention", ["Q", "K", "V"], ["Y"])
    loaded = _backend._load(node, "CPU", None, None).rt_nodes_[0]
    x = random.standard_normal((1, 2, 3, 4)).astype(np.float32)
    assert np.array_equal(loaded._run(x, x, x, shine=0)[0], mha.onnx.attention(x, x, x).Y)


def test_wrong_input_is_named_through_a_model(random: Any) -> None:
    model, x = layer_model()
    heads = [a for a in model.graph.node[3].attribute if a.name == "q_num_heads"]
    heads[0].i = 3
    with pytest.raises(ValueError, match="q_num_heads must be a number that divides 8; it is 3"):
        mha.onnx.run_model(model, [x])
