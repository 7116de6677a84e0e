# SPDX-License-Identifier: MIT
"""Objects that give wrong information, change, or free their memory: errors, never crashes."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from numpy.lib.stride_tricks import as_strided

import mha

SHAPE = (1, 2, 4, 8)


@pytest.fixture
def x(random: Any) -> Any:
    return random.standard_normal(SHAPE, dtype=np.float32)


class Tensor(ctypes.Structure):
    """A tensor of DLPack, version 0, followed by its owner's fields."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("axes", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("start", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("drop", ctypes.c_void_p),
    ]


FLOAT, INT = 2, 0


class Capsule:
    """An array whose __dlpack__ returns whatever the test sets."""

    def __init__(
        self, array: Any, shape: Any, strides: Any = None, code: int = FLOAT, **fields: int
    ) -> None:
        self.array = array
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.tensor = Tensor(
            data=array.ctypes.data,
            device=1,
            axes=len(shape),
            code=code,
            bits=8 * array.itemsize,
            lanes=1,
            shape=self.shape,
            strides=self.strides,
        )
        for name, value in fields.items():
            setattr(self.tensor, name, value)

    def __dlpack__(self, **others: Any) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def fails(match: str, *args: Any, kind: type = mha.Error, **options: Any) -> None:
    with pytest.raises(kind, match=match):
        mha.attention(*args, **options)


# ---------------------------------------------------------------- capsules


def test_capsule_that_tells_the_truth(x: Any) -> None:
    padded = np.concatenate([np.zeros(4, "f4"), x.ravel()])
    got = mha.attention(Capsule(padded, SHAPE, start=16), x, x)
    assert np.array_equal(np.asarray(got), mha.attention(x, x, x))


@pytest.mark.parametrize("axes", [-1, -(2**31)])
def test_capsule_with_fewer_axes_than_none(x: Any, axes: int) -> None:
    fails("tells no shape", Capsule(x, SHAPE, axes=axes), x, x)
    offsets = Capsule(np.zeros(1, "i8"), (1,), code=INT, axes=axes)
    fails("tells no shape", x, x, x, causal=True, position=offsets)


def test_capsule_without_a_shape(x: Any) -> None:
    capsule = Capsule(x, SHAPE)
    capsule.tensor.shape = None
    fails("tells no shape", capsule, x, x)


def test_capsule_with_a_negative_extent(x: Any) -> None:
    fails(r"\(1, 2, -4, 8\), which has a negative extent", Capsule(x, (1, 2, -4, 8)), x, x)
    fails("a negative extent", x, x, x, key_lengths=Capsule(np.ones(1, "i8"), (-1,), code=INT))


@pytest.mark.parametrize("bits", [9, 12, 15, 31])
def test_capsule_of_odd_bits(x: Any, bits: int) -> None:
    fails("a type unknown here", Capsule(x, SHAPE, bits=bits), x, x)
    lengths = Capsule(np.ones(1, "i1"), (1,), code=INT, bits=4)
    fails("elements of a type unknown here", x, x, x, kind=TypeError, key_lengths=lengths)


# ------------------------------------------------------- larger than memory


@pytest.mark.parametrize("extent", [2**60, 2**61, 2**62])
def test_bytes_that_pretend_to_be_many(x: Any, extent: int) -> None:
    many = as_strided(np.zeros(1, "i1"), (extent,), (0,))
    fails("larger than any memory", x, x, x, return_weights=True, weights_heads=many)
    fails("larger than any memory", x, x, x, query_documents=many)
    fails("larger than any memory", x[0], x[0], x[0], query_starts=many)


def test_extents_whose_product_is_0(x: Any) -> None:
    pretender = Capsule(x, (2**32, 2**32, 4, 8), (0, 0, 8, 1))
    fails("larger than any memory", pretender, pretender, pretender)


# ---------------------------------------------------------------- subclasses


class Long(list):
    """A list that claims to be long, with an item at every index."""

    def __len__(self) -> int:
        return 2**61

    def __getitem__(self, index: Any) -> int:
        return 1


def test_lists_are_what_they_hold(x: Any) -> None:
    got = mha.attention(x, x, x, return_weights=True, weights_heads=Long([0]))
    assert got.weights.shape == (1, 1, 4, 4)
    assert np.array_equal(got.weights[:, 0], mha.attention_weights(x, x)[:, 0])


class Shrinking:
    """An index that empties the list that contains it."""

    def __init__(self, numbers: list) -> None:
        self.numbers = numbers

    def __index__(self) -> int:
        self.numbers.clear()
        return 0


def test_list_that_shrinks_while_it_is_read(x: Any) -> None:
    heads: list = []
    heads.extend([Shrinking(heads), 1])
    fails("out of range", x, x, x, kind=IndexError, return_weights=True, weights_heads=heads)


class Bits(np.ndarray):
    """bfloat16 numbers whose view as integers has fewer bytes."""

    def view(self, *args: Any) -> Any:
        return np.zeros(self.shape, "i1")


class Fickle(np.ndarray):
    """bfloat16 numbers that claim to be bytes when an array like them is made."""

    asked = 0

    @property
    def dtype(self) -> Any:
        Fickle.asked += 1
        return np.ndarray.dtype.__get__(self) if Fickle.asked == 1 else np.dtype("i1")

    def view(self, *args: Any) -> Any:
        return np.zeros(self.shape, "u2")


def test_subclasses_of_bfloat16_arrays() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    plain = np.zeros((1, 2, 400, 80), bfloat16)
    fails("has another type", plain.view(Bits), plain, plain)
    fails("i8; bf16 was requested", plain.view(Fickle), plain, plain, query_lengths=[3])


@pytest.mark.parametrize("dtype", ["V0", []], ids=str)
def test_elements_without_a_size(x: Any, dtype: Any) -> None:
    fails("elements without a size", np.zeros(SHAPE, dtype), x, x)


def test_empty_structures_of_ctypes(x: Any) -> None:
    class Nothing(ctypes.Structure):
        pass

    fails("elements without a size", (Nothing * 3)(), x, x)


# -------------------------------------------------------------- dictionaries


class Leaving:
    """A value that is removed from its dictionary when it is read, without another reference."""

    def __init__(self, home: dict, array: Any = None) -> None:
        self.home = home
        self.array = array

    def __index__(self) -> int:
        self.home.clear()
        raise TypeError("gone")

    def __dlpack__(self, **others: Any) -> Any:
        self.home.clear()
        return self.array.__dlpack__()


def test_statistics_that_leave(x: Any) -> None:
    request: dict = {}
    request["top"] = Leaving(request)
    fails("top is a Leaving", x, x, x, kind=TypeError, statistics=request)


def test_weights_that_leave() -> None:
    weights: dict = {name: np.eye(8, dtype="f4") for name in "qkv"}
    weights["q"] = Leaving(weights, np.eye(8, dtype="f4"))
    with pytest.raises(TypeError, match="weights has no 'k'"):
        mha.Layer(8, 2, weights=weights)


# ------------------------------------------------------------------- numbers


def test_numbers_beyond_int64(x: Any) -> None:
    large = np.array([2**64 - 1], "u8")
    fails("above 2\\*\\*63", x, x, x, kind=TypeError, causal=True, position=large)
    documents = np.full((1, 4), 2**64 - 1, "u8")
    fails("above 2\\*\\*63", x, x, x, kind=TypeError, query_documents=documents)


class Talkative:
    def __dlpack__(self, **others: Any) -> Any:
        raise RuntimeError("a" + "é" * 1000)


def test_sentences_cut_in_the_middle_of_a_letter(x: Any) -> None:
    fails("layout is", x, x, x, layout="a" + "é" * 30)
    fails("query cannot be used here", Talkative(), x, x)


# --------------------------------------------------------------------- merge


def parts(random: Any) -> Any:
    rows = random.standard_normal((4, 2, 4, 8), dtype=np.float32)
    return rows, np.zeros((2, 4), "f4"), np.ones((2, 4), "f4")


def test_merge_into_what_it_reads(random: Any) -> None:
    rows, lse, lse2 = parts(random)
    before = rows.copy()
    flat = rows.reshape(8, 4, 8)
    for out in (flat[1:3], flat[4:6], flat[5:7]):
        with pytest.raises(mha.Error, match="overlap"):
            mha.merge(flat[:2], lse, flat[4:6], lse2, out=out)
        assert np.array_equal(rows, before)
        rows[:] = before
    with pytest.raises(mha.Error, match="overlap"):
        mha.merge(rows[0], lse, rows[1], lse2, lse_out=lse2)
    assert np.array_equal(lse2, np.ones((2, 4), "f4"))
    with pytest.raises(mha.Error, match="overlap"):
        mha.merge(rows[0], lse, rows[1], lse2, lse_out=rows[0, :, :, 0])
    assert np.array_equal(rows, before)


def test_merge_in_place_through_another_view(random: Any) -> None:
    rows, lse, lse2 = parts(random)
    wanted = mha.merge(rows[0], lse, rows[1], lse2)
    got = mha.merge(rows[0], lse, rows[1], lse2, out=rows[0][:], lse_out=lse[:])
    assert np.array_equal(got.output, wanted.output) and np.array_equal(got.lse, wanted.lse)


# --------------------------------------------------------------------- layer


@pytest.mark.parametrize("heads", [2**54, -(2**54)])
def test_widths_whose_product_is_0(heads: int) -> None:
    none = np.zeros((0, 1024), "f4")
    weights = {"q": none, "k": none, "v": none, "o": none.T}
    with pytest.raises(mha.Error, match=f"heads is {heads}, which no memory has room for"):
        mha.Layer(1024, heads, head_width=1024, weights=weights)


class Meddling:
    """A gradient that updates the weights of a layer when it is read."""

    def __init__(self, layer: Any, array: Any) -> None:
        self.layer, self.array = layer, array

    def __dlpack__(self, **others: Any) -> Any:
        self.layer.update({name: np.eye(8, dtype="f4") for name in "qkvo"})
        return self.array.__dlpack__()


def test_update_while_the_tape_reads_its_gradient() -> None:
    layer = mha.Layer.random(8, 2)
    tape = layer.tape(np.ones((3, 8), "f4"))
    with pytest.raises(mha.Error, match="updated since this tape"):
        tape.backward(Meddling(layer, np.ones((3, 8), "f4")))


class Waiting:
    """A weight that, when it is read, waits until a long call of its layer is running."""

    def __init__(self, layer: Any, call: threading.Thread, weights: dict) -> None:
        self.layer, self.call, self.weights = layer, call, weights

    def is_computing(self) -> bool:
        try:
            self.layer.update(self.weights)
        except RuntimeError:
            return True
        return False

    def __dlpack__(self, **others: Any) -> Any:
        self.call.start()
        while self.call.is_alive() and not self.is_computing():
            time.sleep(0.001)
        return self.weights["q"].__dlpack__()


def test_call_that_begins_while_weights_are_read() -> None:
    layer = mha.Layer.random(256, 4, threads=1)
    weights = {name: np.eye(256, dtype="f4") for name in "qkvo"}
    rows = np.ones((6000, 256), "f4")
    call = threading.Thread(target=layer, args=(rows,))
    with pytest.raises(RuntimeError, match="computing in another thread"):
        layer.update({**weights, "q": Waiting(layer, call, weights)})
    call.join()
    layer.update(weights)
