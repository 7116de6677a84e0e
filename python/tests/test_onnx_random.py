# SPDX-License-Identifier: MIT
"""Random cases of mha.onnx.attention against onnx.reference and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", minversion="1.23")  # older ones have older rules

from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import INPUTS, OUTPUTS, assert_close, attention_model, model_of  # noqa: E402

import mha.onnx  # noqa: E402

TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def test_assert_close_is_strict() -> None:
    zero, one = np.zeros(1), np.ones(1)
    for wrong in (one * 1.1, one * np.nan, one * np.inf):
        with pytest.raises(AssertionError):
            assert_close(wrong, one, 1e-5)
    with pytest.raises(AssertionError):
        assert_close(zero, one * -np.inf, 1e-5)
    with pytest.raises(AssertionError):
        assert_close(one * np.nan, one * np.nan, 1e-5)


class Case:
    """A random Attention: inputs and attributes."""

    def __init__(self, seed: int, dtype: str = "float32", opset: int = 25) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype, self.opset = dtype, opset
        pick = self.rng.integers
        self.B, self.G, self.D, self.Dv = pick(1, 4), pick(1, 4), pick(1, 20), pick(1, 20)
        self.H = self.G * pick(1, 4)
        self.L, self.S = pick(1, 12), pick(1, 40)
        self.rank = int(pick(3, 5))
        self.attributes: dict[str, Any] = {"is_causal": int(pick(0, 2))}
        self.feeds = {
            "Q": self.heads(self.H, self.L, self.D),
            "K": self.heads(self.G, self.S, self.D),
            "V": self.heads(self.G, self.S, self.Dv),
        }
        self.add_attributes()
        self.add_cache()
        self.add_mask()

    def chance(self, p: float = 0.5) -> bool:
        return bool(self.rng.random() < p)

    def numbers(self, *shape: int) -> Any:
        bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
        dtype = bfloat16 if self.dtype == "bfloat16" else self.dtype
        return self.rng.standard_normal(shape).astype(dtype)

    def heads(self, heads: int, rows: int, width: int) -> Any:
        if self.rank == 4:
            return self.numbers(self.B, heads, rows, width)
        return self.numbers(self.B, rows, heads * width)

    def add_attributes(self) -> None:
        if self.rank == 3:
            self.attributes.update(q_num_heads=int(self.H), kv_num_heads=int(self.G))
        if self.chance():
            # squares: onnx.reference takes the root in float32
            self.attributes["scale"] = float(self.rng.integers(1, 5) ** 2 / 16)
        if self.chance(0.3):
            self.attributes["softcap"] = float(self.rng.uniform(0.5, 5.0))
        if self.opset >= 25 and self.chance(0.4):
            self.attributes["left_window_size"] = int(self.rng.integers(-1, 8))
            self.attributes["right_window_size"] = int(self.rng.integers(-1, 8))

    def add_cache(self) -> None:
        self.columns = self.S
        if self.chance(0.3):
            past = self.rng.integers(0, 20)
            self.columns += past
            self.feeds["past_key"] = self.numbers(self.B, self.G, past, self.D)
            self.feeds["past_value"] = self.numbers(self.B, self.G, past, self.Dv)
        elif self.opset >= 24 and self.chance(0.4):
            self.feeds["nonpad_kv_seqlen"] = self.rng.integers(0, self.S + 1, self.B)

    def add_mask(self) -> None:
        if self.chance(0.4):
            return
        columns = self.columns
        if self.opset >= 24 and self.chance(0.3) and "nonpad_kv_seqlen" not in self.feeds:
            columns = self.rng.integers(1, columns + 1)
        full = (self.B, self.H, self.L, columns)
        shape = [n if self.chance(0.7) else 1 for n in full[:-1]] + [columns]
        shape = shape[self.rng.integers(0, 4) :]
        mask = self.numbers(*shape)
        self.feeds["attn_mask"] = mask > -0.5 if self.chance() else mask

    def expected(self, mode: int) -> list[Any]:
        """What onnx.reference gives in float64."""
        feeds = {
            name: x if x.dtype.kind in "ib" else x.astype(np.float64)
            for name, x in self.feeds.items()
        }
        if "attn_mask" in feeds:
            # onnx.reference gets causal wrong for masks with one row for all
            shape = (self.B, self.H, self.L, feeds["attn_mask"].shape[-1])
            feeds["attn_mask"] = np.broadcast_to(feeds["attn_mask"], shape)
        attributes = {**self.attributes, "qk_matmul_output_mode": mode}
        outputs = ReferenceEvaluator(attention_model(feeds, OUTPUTS, self.opset, **attributes)).run(
            None, feeds
        )
        if mode == 0 and attributes.pop("softcap", 0):
            # onnx.reference returns scores after the soft cap; ONNX defines the product of Q and K
            plain = attention_model(feeds, OUTPUTS, self.opset, **attributes)
            outputs[3] = ReferenceEvaluator(plain).run(None, feeds)[3]
        return outputs


def check_random(seed: int, dtype: str) -> None:
    opset, mode = 23 + seed % 3, seed % 4
    case = Case(seed, dtype, opset)
    attributes = {**case.attributes, "qk_matmul_output_mode": mode}
    model = attention_model(case.feeds, OUTPUTS, opset, **attributes)
    outputs = mha.onnx.run_model(model, list(case.feeds.values()))
    for name, got, want in zip(OUTPUTS, outputs, case.expected(mode)):
        assert got.dtype == case.feeds["Q"].dtype, name
        assert_close(got, want, TOLERANCES[dtype])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_random_against_reference(dtype: str) -> None:
    for seed in range(120):
        check_random(seed, dtype)


# ------------------------------------------------------------------ ONNX Runtime ----


def onnxruntime(
    operator: str,
    feeds: dict[str, Any],
    inputs: list[str],
    outputs: int,
    opset: int = 24,
    **attributes: Any,
) -> list[Any]:
    """One node, run by ONNX Runtime on the CPU; com.microsoft unless it is Attention."""
    runtime = pytest.importorskip("onnxruntime")
    runtime.set_default_logger_severity(4)
    names = [name if name in feeds else "" for name in inputs]
    domain = "" if operator == "Attention" else "com.microsoft"
    results = [f"output_{i}" for i in range(outputs)]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    ranks = {name: 4 if i else feeds["Q"].ndim for i, name in enumerate(results)}
    model = model_of([node], feeds, ranks, opset)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def onnxruntime_takes(case: Case) -> bool:
    """It needs masks with all rows and columns, and a single query attends to all keys, causal or
    not."""
    mask = case.feeds.get("attn_mask")
    if mask is not None and (mask.ndim < 2 or mask.shape[-2:] != (case.L, case.columns)):
        return False
    return case.L > 1 or not case.attributes["is_causal"]


def test_random_against_onnxruntime_attention() -> None:
    cases = [Case(seed, opset=23 + seed % 2) for seed in range(1000, 1200)]
    cases = [case for case in cases if onnxruntime_takes(case)]
    assert len(cases) > 90
    for number, case in enumerate(cases):
        mode = (0, 1, 3)[number % 3]  # in mode 2 ONNX Runtime has -3e38 for -inf
        attributes = {**case.attributes, "qk_matmul_output_mode": mode}
        names = list(INPUTS[: 6 if case.opset == 23 else 7])
        count = 4 if "past_key" in case.feeds else 1
        wanted = onnxruntime("Attention", case.feeds, names, count, case.opset, **attributes)
        inputs = (case.feeds.get(name) for name in INPUTS)
        got = mha.onnx.attention(*inputs, **attributes, qk_matmul_output=True)
        for one, other in zip(got, wanted):
            assert_close(one, other, TOLERANCES["float32"])


@pytest.mark.parametrize("seed", range(20))
def test_onnxruntime_multi_head_attention(seed: int) -> None:
    rng = np.random.default_rng(seed)
    B, H, L, S, D = rng.integers(1, 4), int(rng.integers(1, 5)), *rng.integers(2, 30, 3)
    numbers = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    feeds = {"Q": numbers(B, L, H * D), "K": numbers(B, S, H * D), "V": numbers(B, S, H * D)}
    options: dict[str, Any] = {}
    names = ["Q", "K", "V", "", "lengths", "bias", "past_key", "past_value"]
    if seed % 4 == 1:
        feeds["bias"] = options["attn_mask"] = numbers(1, H, L, S)
    elif seed % 4 == 2:
        feeds["lengths"] = rng.integers(1, S + 1, B).astype(np.int32)
        options["nonpad_kv_seqlen"] = feeds["lengths"]
    elif seed % 4 == 3:
        for name in ("past_key", "past_value"):
            feeds[name] = options[name] = numbers(B, H, S, D)
        feeds["K"], feeds["V"] = numbers(B, L, H * D), numbers(B, L, H * D)
    causal = int(seed % 8 == 3)
    wanted = onnxruntime(
        "MultiHeadAttention", feeds, names, 3 if "past_key" in feeds else 1,
        num_heads=H, scale=0.3, unidirectional=causal,
    )  # fmt: skip
    got = mha.onnx.attention(
        feeds["Q"], feeds["K"], feeds["V"], **options,
        q_num_heads=H, kv_num_heads=H, scale=0.3, is_causal=causal,
    )  # fmt: skip
    for one, other in zip(got, wanted):
        assert_close(one, other, TOLERANCES["float32"])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("seed", range(12))
def test_onnxruntime_group_query_attention(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    B, G, D = int(rng.integers(1, 4)), int(rng.integers(1, 4)), 8 * int(rng.integers(1, 5))
    H, P = G * int(rng.integers(1, 4)), int(rng.integers(1, 30))
    L = 1 if seed % 3 == 1 else int(rng.integers(2, 20))
    numbers = lambda *shape: rng.standard_normal(shape).astype(dtype)  # noqa: E731
    feeds = {"Q": numbers(B, L, H * D), "K": numbers(B, L, G * D), "V": numbers(B, L, G * D)}
    past = {}
    if seed % 3 == 1:  # one more token after those of the past
        past = {name: numbers(B, G, P, D) for name in ("past_key", "past_value")}
    total = L + (P if past else 0)
    lengths = np.full(B, total - 1, np.int32)
    window = int(rng.integers(1, 10)) if seed % 2 else 0
    softcap = 1.5 if seed % 4 == 2 else 0.0
    wanted = onnxruntime(
        "GroupQueryAttention",
        {**feeds, **past, "lengths": lengths, "total": np.array(total, np.int32)},
        ["Q", "K", "V", "past_key", "past_value", "lengths", "total"],
        3, num_heads=H, kv_num_heads=G, local_window_size=window or -1, softcap=softcap,
    )  # fmt: skip
    got = mha.onnx.attention(
        **feeds, **past, q_num_heads=H, kv_num_heads=G, is_causal=1, softcap=softcap,
        left_window_size=window - 1,
    )  # fmt: skip
    for one, other in zip(got, wanted):
        assert_close(one, other, TOLERANCES[dtype])
