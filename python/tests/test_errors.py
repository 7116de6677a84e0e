# SPDX-License-Identifier: MIT
"""Messages for wrong arguments: they name the argument in Python, what is wrong, and what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import mha

B, H, G, L, S, D = 2, 4, 2, 5, 7, 8

q = np.ones((B, H, L, D), np.float32)
k = np.ones((B, G, S, D), np.float32)
v = np.ones((B, G, S, D), np.float32)
square = np.ones((B, H, L, D), np.float32)

# Names of C that must not be in an exception.
LEAKED = re.compile(r"MHA_|options\.|shape\.|call\.|gradients\.|\bNULL\b|\b[qk]_[a-z]+|_type\b")


def fails(
    kind: type[Exception], code: str | None, pattern: str, *arrays: Any, **options: Any
) -> None:
    """Check that a call of attention() fails with this exception."""
    with pytest.raises(kind, match=pattern) as caught:
        mha.attention(*(arrays or (q, k, v)), **options)
    text = str(caught.value)
    assert not LEAKED.search(text), text
    assert "\n" not in text and not text.endswith(".")
    if kind is mha.Error:
        assert caught.value.code == f"MHA_ERR_{code}"
        assert caught.value.status < 0


def test_kind_of_the_exception() -> None:
    assert issubclass(mha.Error, ValueError)
    with pytest.raises(ValueError) as caught:
        mha.attention(q, k, v, scale=float("nan"))
    assert (caught.value.status, caught.value.code) == (-9, "MHA_ERR_SCALE")
    assert mha.Error("x").status == 0 and mha.Error("x").code is None


NO_ARRAYS: dict[str, Any] = {
    "a list": ([[1.0]], "query is a list; it must be an array of NumPy, PyTorch or JAX"),
    "a number": (3.0, "query is a float; it must be an array"),
    "an integer": (3, "query is an int; it must be an array"),
    "nothing": (None, r"attention\(\) needs the argument 'query'"),
    "text": ("x", "query is a str; it must be an array"),
}


@pytest.mark.parametrize("name", NO_ARRAYS)
def test_no_array(name: str) -> None:
    value, pattern = NO_ARRAYS[name]
    fails(TypeError, None, pattern, value, k, v)


class BadCapsule:
    def __dlpack__(self, **options: Any) -> Any:
        return "no capsule"


class Raising:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __dlpack__(self, **options: Any) -> Any:
        raise self.error


def test_bad_producers() -> None:
    late = Raising(RuntimeError("not today\nand more"))
    fails(TypeError, None, "query is a str; __dlpack__ must give a capsule", BadCapsule(), k, v)
    fails(mha.Error, "FLAG", "^query cannot be used here: not today$", late, k, v)
    for error in (KeyboardInterrupt(), MemoryError("no more")):
        with pytest.raises(type(error)):
            mha.attention(Raising(error), k, v)
    used = q.__dlpack__()
    np.from_dlpack(
        type(
            "Once", (), {"__dlpack__": lambda s, **o: used, "__dlpack_device__": lambda s: (1, 0)}
        )()
    )
    once = type("Used", (), {"__dlpack__": lambda s, **o: used})()
    fails(TypeError, None, "query is a PyCapsule; __dlpack__ must give a capsule", once, k, v)


def test_element_types() -> None:
    fails(
        mha.Error, "DTYPE", r'type i64; use f32, .* query.astype\("float32"\)$', q.astype(int), k, v
    )
    fails(mha.Error, "DTYPE", "key has elements of type bool", q, k > 0, v)
    fails(
        mha.Error,
        "DTYPE",
        "^query has elements of a type unknown here; use f32",
        q.astype(complex),
        k,
        v,
    )
    fails(mha.Error, "DTYPE", "a type unknown here", q.astype(">f4"), k, v)
    for kinds, pattern in (
        (("f8", "f4", "f4"), r'query is f64 and key is f32; .* use query.astype\("float32"\)'),
        (("f4", "f8", "f4"), r"query is f32 and key is f64; .* key.float\(\) of PyTorch"),
        (("f4", "f4", "f8"), r"query is f32 and value is f64; .* use value.astype"),
    ):
        fails(mha.Error, "DTYPE", pattern, *(x.astype(kind) for x, kind in zip((q, k, v), kinds)))
    fails(mha.Error, "DTYPE", "mask has elements of type i64; use bool", mask=np.ones((L, S), int))
    fails(mha.Error, "DTYPE", "mask has elements of type u8", mask=np.ones((L, S), np.uint8))
    fails(
        mha.Error,
        "DTYPE",
        r'mask is f64 and query is not; use mask.astype\("float32"\)',
        mask=np.ones((L, S)),
    )
    fails(mha.Error, "DTYPE", "bias is f64 and query is not", bias=np.ones((L, S)))
    fails(mha.Error, "DTYPE", "bias has elements of type bool", bias=np.ones((L, S), bool))
    fails(
        mha.Error,
        "DTYPE",
        "ignore_mask has elements of type f32; use bool, where True hides",
        ignore_mask=np.ones((L, S), np.float32),
    )
    fails(mha.Error, "DTYPE", "out has elements of type i32", out=np.empty(q.shape, np.int32))
    fails(
        mha.Error,
        "DTYPE",
        "lse_out has elements of type f64; it must be f32",
        lse_out=np.empty((B, H, L)),
    )


def test_shapes() -> None:
    fails(
        mha.Error,
        "SHAPE",
        r"query has shape \(8,\); it must be \(batch, heads, rows, width\), "
        r"\(heads, rows, width\) or \(rows, width\)",
        q[0, 0, 0],
        k,
        v,
    )
    fails(mha.Error, "SHAPE", r"key has shape \(1, 2, 2, 7, 8\)", q, k[None], v)
    fails(
        mha.Error,
        "SHAPE",
        "query has 9 axes; arrays here have at most 8",
        q.reshape((1,) * 5 + q.shape),
        k,
        v,
    )
    fails(
        mha.Error,
        "SHAPE",
        r"query has shape \(4, 5, 8\) and key has shape \(2, 2, 7, 8\): "
        "they must have the same axes",
        q[0],
        k,
        v,
    )
    fails(mha.Error, "SHAPE", "the widths of their heads differ", q, k[..., :4], v)
    fails(mha.Error, "SHAPE", "their batches differ", q, k[:1], v[:1])
    fails(
        mha.Error,
        "SHAPE",
        "key has .* and value has .* everything but the last axis",
        q,
        k,
        v[:, :, :3],
    )
    fails(mha.Error, "SHAPE", "values have no width", q, k, v[..., :0])
    fails(mha.Error, "SHAPE", "one of them has no heads", q, k[:, :0], v[:, :0])
    fails(mha.Error, "SHAPE", r'layout is "blhd"', q, k, v[..., :3, :], layout="blhd")
    fails(
        mha.Error,
        "SHAPE",
        r'key has shape \(2, 3, 7, 8\): the heads of query must be a multiple .* "bhld"',
        q,
        np.ones((B, 3, S, D), "f4"),
        np.ones((B, 3, S, D), "f4"),
    )
    wide = np.ones((1, 1, 1, 1025), np.float32)
    fails(mha.Error, "SHAPE", "a head is at most 1024 wide", wide, wide, wide)
    fails(
        mha.Error,
        "SHAPE",
        r"out has shape \(2, 4, 5, 7\); it must be \(2, 4, 5, 8\)",
        out=np.empty((B, H, L, 7), np.float32),
    )
    fails(
        mha.Error,
        "SHAPE",
        r"weights_out has shape \(2, 4, 5, 6\); it must be \(2, 4, 5, 7\)",
        weights_out=np.empty((B, H, L, 6), np.float32),
    )
    fails(
        mha.Error,
        "SHAPE",
        r"mask has shape \(2, 7\), which does not broadcast to "
        r"\(B, H, L, S\) = \(2, 4, 5, 7\).*mask\[:, None, None, :\]",
        mask=np.ones((B, S), bool),
    )
    fails(mha.Error, "SHAPE", "does not broadcast", bias=np.ones((1, 1, 1, L, S), np.float32))
    fails(mha.Error, "SHAPE", r"sinks has shape \(3,\); it must be \(4,\)", sinks=[1.0] * 3)
    fails(mha.Error, "SHAPE", r"gates has shape \(1, 4\); it must be \(2, 4\)", gates=[[1.0] * 4])
    fails(
        mha.Error,
        "SHAPE",
        r"key_lengths has shape \(3,\); it must be \(2,\)",
        key_lengths=[1, 2, 3],
    )
    fails(
        mha.Error,
        "SHAPE",
        r"head_means has shape \(4,\); it must be \(4, 8\)",
        head_means=[1.0] * H,
    )
    fails(
        mha.Error,
        "SHAPE",
        r"query_documents has shape \(2, 7\); it must be \(2, 5\)",
        query_documents=np.zeros((B, S), int),
        key_documents=np.zeros((B, S), int),
    )


def test_memory() -> None:
    fails(
        mha.Error,
        "STRIDE",
        r"query: its last axis has stride 2, and must have stride 1 .*"
        r"numpy.ascontiguousarray",
        np.ones((B, H, L, 16), "f4")[..., ::2],
        k,
        v,
    )
    fails(mha.Error, "STRIDE", "key: its last axis has stride -1", q, k[..., ::-1], v)
    odd = np.zeros((L, D), np.dtype([("a", "f4"), ("b", "i2")]))["a"]
    fails(
        mha.Error,
        "ALIGN",
        "query: axis 0 has a stride of 48 bytes|axis 1 has a stride of 6",
        odd,
        k[0, 0],
        v[0, 0],
    )
    bytes_ = np.zeros(L * D * 4 + 1, np.uint8)[1:]
    fails(
        mha.Error,
        "ALIGN",
        "query is not aligned to its 4-byte elements",
        np.frombuffer(bytes_, np.float32).reshape(L, D),
        k[0, 0],
        v[0, 0],
    )
    fails(mha.Error, "OVERLAP", "out overlaps query; nothing here works in place", out=q)
    fails(
        mha.Error,
        "STRIDE",
        "out has elements that share an address",
        out=np.lib.stride_tricks.as_strided(np.zeros(q.shape, "f4"), q.shape, (0, 160, 32, 4)),
    )
    frozen = np.empty(q.shape, np.float32)
    frozen.flags.writeable = False
    fails(mha.Error, "FLAG", "out is read-only, or a copy", out=frozen)
    fails(
        mha.Error,
        "FLAG",
        "weights_out is read-only",
        weights_out=np.broadcast_to(np.float32(0), (B, H, L, S)),
    )


def test_views_larger_than_any_memory() -> None:
    one = np.ones((1, 1, 1, D), np.float32)
    many = np.broadcast_to(one, (2**20, 2**10, 2**16, D))
    rows = np.ones((2**20, 1, 1, 1), bool)
    fails(mha.Error, "OVERFLOW", "is larger than any memory", many, many, many, mask=rows)
    with pytest.raises(mha.Error, match="is larger than any memory"):
        mha.head_statistics(many, many)


def test_numbers() -> None:
    fails(TypeError, None, "scale is a str; it must be a number", scale="1")
    fails(mha.Error, "SCALE", r"scale is 0; use None for 1/sqrt\(D\)", scale=0)
    fails(mha.Error, "SCALE", "scale is inf; use a finite number", scale=float("inf"))
    fails(mha.Error, "SOFTCAP", "softcap is -1; use a positive number", softcap=-1.0)
    fails(mha.Error, "DROPOUT", "dropout is 1; use a probability below 1", dropout=1.0)
    fails(
        TypeError,
        None,
        r"dropout_seed is an int; it must be an integer from 0 to 2\*\*64 - 1",
        dropout=0.1,
        dropout_seed=-1,
    )
    fails(TypeError, None, "dropout_seed is a float", dropout=0.1, dropout_seed=1.5)
    fails(mha.Error, "THREAD", "threads is 0; use 1 to 1024, or None", threads=0)
    fails(TypeError, None, "threads is a float; it must be an integer", threads=1.0)
    fails(
        TypeError,
        None,
        "an element of sinks is a str; it must be a number",
        sinks=[1.0, "2", 3.0, 4.0],
    )
    fails(
        TypeError, None, "gates: its lists are of different lengths", gates=[[1.0] * 4, [1.0] * 3]
    )


def test_arithmetic() -> None:
    fails(
        ValueError,
        None,
        'arithmetic is "fast"; use one of "exact", "native"',
        arithmetic="fast",
    )


def test_positions_and_windows() -> None:
    fails(
        mha.Error,
        "POSITION",
        r"batch 0 has 5 queries and 7 keys: say where query 0 stands with "
        r'position \("top-left", "bottom-right", a number',
        causal=True,
    )
    fails(
        mha.Error,
        "FLAG",
        'position is "left"; use one of "top-left", "bottom-right"',
        position="left",
    )
    fails(
        TypeError, None, "position is a float; .* an integer, or one for each batch", position=1.5
    )
    fails(mha.Error, "SHAPE", r"position has shape \(3,\); it must be \(2,\)", position=[1, 2, 3])
    fails(TypeError, None, "window is an int; it must be a pair", window=3)
    fails(TypeError, None, "window is a tuple; it must be a pair", window=(1, 2, 3))
    fails(TypeError, None, "an edge of window is a float", window=(1.0, 2))
    fails(
        mha.Error,
        "WINDOW",
        r"the window is \(-2, 1\); an edge is a count of keys, or -1",
        window=(-2, 1),
        position=0,
    )
    fails(mha.Error, "FLAG", 'layout is "bhdl"; use one of "bhld", "blhd"', layout="bhdl")
    fails(TypeError, None, "layout is an int; it must be a str", layout=1)


def test_lengths_and_starts() -> None:
    fails(
        mha.Error, "LENGTH", r"key_lengths\[1\] is 8; it must lie in \[0, 7\]", key_lengths=[7, 8]
    )
    fails(mha.Error, "LENGTH", r"query_lengths\[0\] is -1", query_lengths=[-1, 2])
    fails(
        TypeError,
        None,
        "an element of key_lengths is a float; it must be an integer",
        key_lengths=[1.0, 2.0],
    )
    fails(
        TypeError,
        None,
        "key_lengths has elements of type f32; it must be integers",
        key_lengths=np.ones(2, np.float32),
    )
    fails(TypeError, None, "key_lengths is an int; it must be a list or an array", key_lengths=3)
    flat = (q[0], k[0], v[0])
    fails(
        mha.Error,
        "LENGTH",
        "query_starts ends with 6; query has 5 rows",
        *flat,
        query_starts=[0, 6],
        key_starts=[0, 7],
    )
    fails(
        mha.Error,
        "LENGTH",
        "key_starts ends with 8; key has 7 rows",
        *flat,
        query_starts=[0, 5],
        key_starts=[0, 8],
    )
    fails(
        mha.Error,
        "LENGTH",
        r"query_starts\[2\] is 1 after 3; starts ascend",
        *flat,
        query_starts=[0, 3, 1],
        key_starts=[0, 3, 7],
    )
    fails(
        mha.Error,
        "LENGTH",
        r"query_starts\[0\] is -1; a start is a row of the view",
        *flat,
        query_starts=[-1, 3],
        key_starts=[0, 7],
    )
    fails(
        mha.Error,
        "SHAPE",
        "key_starts has 3 numbers and query_starts 2",
        *flat,
        query_starts=[0, 5],
        key_starts=[0, 3, 7],
    )
    fails(
        mha.Error,
        "SHAPE",
        "packed sequences have no batch axis",
        query_starts=[0, 5],
        key_starts=[0, 7],
    )
    fails(
        mha.Error, "SHAPE", "key has 1 batches; the starts tell of 2", *flat, query_starts=[0, 2, 5]
    )
    fails(mha.Error, "LENGTH", "query_starts is empty", *flat, query_starts=[], key_starts=[])
    fails(
        mha.Error,
        "NULL",
        "key_documents is None although the other is given",
        query_documents=np.zeros((B, L), int),
    )


def test_heads() -> None:
    fails(
        TypeError,
        None,
        'head_modes is a list; it must have one of "normal", "uniform", "mean"',
        head_modes=["normal"],
    )
    fails(
        mha.Error,
        "FLAG",
        'an element of head_modes is "closed"; use one of',
        head_modes=["closed"] * H,
    )
    fails(mha.Error, "FLAG", r"head_modes\[0\] is 9", head_modes=[9] * H)
    fails(mha.Error, "NULL", 'head_means is None, but head 0 has "mean"', head_modes=["mean"] * H)
    fails(
        mha.Error,
        "INDEX",
        r"weights_heads\[1\] is 4; it must lie in \[0, 4\)",
        return_weights=True,
        weights_heads=[0, 4],
    )
    fails(mha.Error, "INDEX", r"weights_rows\[0\] is -1", return_weights=True, weights_rows=[-1])
    fails(
        mha.Error,
        "INDEX",
        "the number of weights_heads is 0; a mean needs a head",
        return_weights=True,
        weights_heads=[],
        average_weights=True,
    )
    fails(
        mha.Error,
        "FLAG",
        'return_weights is "logits"; use one of "softmax", "raw"',
        return_weights="logits",
    )
    fails(
        mha.Error,
        "FLAG",
        "weights_heads chooses weights, but none are requested: add return_weights=True",
        weights_heads=[0],
    )
    fails(mha.Error, "FLAG", "weights_rows chooses weights", weights_rows=[0])
    fails(
        mha.Error,
        "FLAG",
        "average_weights averages weights, but none are requested: add return_weights=True",
        average_weights=True,
    )


CHOICES: dict[str, Any] = {
    "an array": np.array([True, False, True, False]),
    "a list": [True, False],
    "a tuple": (np.int64(1), True),
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("name", ["weights_heads", "weights_rows"])
def test_truth_values_choose_nothing(name: str, choice: Any) -> None:
    pattern = f"^{name} has elements of type bool; it must be integers, which np.flatnonzero"
    fails(TypeError, None, pattern, return_weights=True, **{name: choice})
    with pytest.raises(TypeError, match=pattern.replace("weights_", "")):
        mha.attention_weights(q, k, **{name.removeprefix("weights_"): choice})


def test_truth_values_choose_no_sequences() -> None:
    cache = mha.KVCache(sequences=2, capacity=4, kv_heads=G, head_width=D)
    with pytest.raises(TypeError, match="^sequences has elements of type bool"):
        cache.append(k[:, :, :4], v[:, :, :4], sequences=np.array([True, False]))
    assert cache.lengths == [0, 0]


# The arguments heads, rows and out of attention_weights() have longer names in other functions.
SHORT_NAMES: dict[str, Any] = {
    "no list": ({"heads": 0}, TypeError, "^heads is an int; it must be a list or an array"),
    "text": ({"rows": ["x"]}, TypeError, "^an element of rows is a str; it must be an integer"),
    "no such head": ({"heads": [4]}, mha.Error, r"^heads\[0\] is 4; it must lie in"),
    "no such row": ({"rows": [-1]}, mha.Error, r"^rows\[0\] is -1"),
    "no head": ({"heads": [], "average_weights": True}, mha.Error, "^the number of heads is 0"),
    "a shape": ({"out": np.empty((2, 2), np.float32)}, mha.Error, r"^out has shape \(2, 2\)"),
    "read-only": ({"out": np.broadcast_to(np.float32(0), (B, H, L, S))}, mha.Error, "^out is read"),
}


@pytest.mark.parametrize("name", SHORT_NAMES)
def test_names_of_attention_weights(name: str) -> None:
    options, kind, pattern = SHORT_NAMES[name]
    with pytest.raises(kind, match=pattern) as caught:
        mha.attention_weights(q, k, **options)
    assert not re.search("weights_(heads|rows|out)", str(caught.value))
    assert kind is TypeError or caught.value.code.startswith("MHA_ERR_")


def test_arguments() -> None:
    fails(
        TypeError, None, r"attention\(\) got an unexpected keyword argument 'casual'", casual=True
    )
    fails(
        TypeError,
        None,
        r"attention\(\) takes 3 arguments by position but 4 were given; name",
        q,
        k,
        v,
        None,
    )
    fails(TypeError, None, "'is_causal'; here it is causal$", is_causal=True)
    fails(TypeError, None, "'attn_mask'; here it is mask where True attends", attn_mask=None)
    fails(TypeError, None, "causal is a str; it must be True or False", causal="top-left")
    with pytest.raises(TypeError, match="unexpected keyword argument 'dropout_p'$"):
        mha.attention_weights(q, k, dropout_p=0.1)
    with pytest.raises(TypeError, match=r"attention\(\) got two values for argument 'key'"):
        mha.attention(q, k, v, key=k)
    with pytest.raises(TypeError, match=r"attention\(\) needs the argument 'value'"):
        mha.attention(q, k)
    with pytest.raises(TypeError, match="unexpected keyword argument 'dropout'"):
        mha.attention_weights(q, k, dropout=0.1)
    with pytest.raises(TypeError, match="return_weights is True, or a mode"):
        mha.attention_weights(q, k, return_weights=False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'causal'"):
        mha.merge(q, q, q, q, causal=True)
    with pytest.raises(mha.Error, match="output is f32 and output2 f16; they must be alike"):
        mha.merge(q, q[..., 0], q.astype("f2"), q[..., 0])


def test_outputs_are_untouched_by_errors() -> None:
    out = np.full(q.shape, np.float32(7))
    with pytest.raises(mha.Error):
        mha.attention(q, k, v, out=out, key_lengths=[7, 8])
    assert np.all(out == 7)
