# SPDX-License-Identifier: MIT
"""Arrays as inputs and results: no copies, no leaks, and threads that do not block each other."""

from __future__ import annotations

import array
import ctypes
import gc
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import mha

SHAPE = (2, 3, 5, 8)


@pytest.fixture
def x(random: Any) -> Any:
    return random.standard_normal(SHAPE, dtype=np.float32)


class Old:
    """An array that supports only DLPack before version 1."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, stream: None = None) -> Any:
        return self.array.__dlpack__()


class Versioned(Old):
    """The same with version 1."""

    def __dlpack__(self, *, max_version: Any = None, **others: Any) -> Any:  # type: ignore[override]
        assert max_version >= (1, 0)
        return self.array.__dlpack__(max_version=max_version)


# -------------------------------------------------------------------- in


@pytest.mark.parametrize("wrap", [Old, Versioned, memoryview, lambda x: x], ids=str)
def test_ways_in(x: Any, wrap: Any) -> None:
    wanted = mha.attention(x, x, x)
    got = mha.attention(*(wrap(x) for _ in range(3)))
    assert type(got) is (np.ndarray if isinstance(wrap(x), np.ndarray) else mha.Array)
    assert np.array_equal(np.asarray(got), wanted)


def test_kinds_of_buffers() -> None:
    numbers = [0.5, -1.0, 2.0, 0.25, 3.0, -0.5]
    wanted = mha.attention(*[np.float32(numbers).reshape(3, 2)] * 3)
    flat = array.array("f", numbers)
    cast = memoryview(flat).cast("B").cast("f", [3, 2])
    table = ((ctypes.c_float * 2) * 3)(*(tuple(numbers[n : n + 2]) for n in (0, 2, 4)))
    for buffer in (cast, table):
        assert np.array_equal(np.asarray(mha.attention(buffer, buffer, buffer)), wanted)


def test_jax(x: Any) -> None:
    jax = pytest.importorskip("jax")
    wanted = mha.attention(x, x, x)
    given = jax.numpy.asarray(x)
    got = mha.attention(given, given, given)
    assert np.array_equal(np.asarray(got), wanted)
    half = given.astype(jax.numpy.bfloat16)
    back = mha.attention(half, half, half)
    assert back.dtype == "bf16"
    assert jax.numpy.from_dlpack(back).dtype == jax.numpy.bfloat16
    np.testing.assert_allclose(back.tolist(), wanted, rtol=2e-2, atol=2e-2)


def test_read_only_inputs(x: Any) -> None:
    wanted = mha.attention(x, x, x)
    frozen = x.copy()
    frozen.flags.writeable = False
    assert np.array_equal(mha.attention(frozen, frozen, frozen), wanted)
    buffer = memoryview(x.tobytes()).cast("f", SHAPE)
    assert buffer.readonly
    assert np.array_equal(np.asarray(mha.attention(buffer, buffer, buffer)), wanted)


def test_strides_of_all_kinds(random: Any) -> None:
    big = random.standard_normal((4, 9, 20, 32), dtype=np.float32)
    views = {
        "every_other": big[::2, ::3, 1::4, :8],
        "backwards": big[::-1, ::-1, ::-1, :8],
        "swapped": big.transpose(2, 0, 1, 3)[:3],
        "broadcast": np.broadcast_to(big[0, 0], (2, 3, 20, 32)),
        "one": big[:, :, :, 5:6],
    }
    for name, view in views.items():
        assert not view.flags.c_contiguous
        wanted = mha.attention(*[np.ascontiguousarray(view)] * 3)
        assert np.array_equal(mha.attention(view, view, view), wanted), name


def test_strided_masks(random: Any, x: Any) -> None:
    mask = (random.random((5, 3, 2, 9)) > 0.3)[:, :, ::-1, 4:].transpose(2, 1, 0, 3)
    bias = random.standard_normal((5, 3, 2, 8), dtype=np.float32)[:, ::-1, ::-1, 3:]
    bias = bias.transpose(2, 1, 0, 3)
    assert not mask.flags.c_contiguous and not bias.flags.c_contiguous
    got = mha.attention(x, x, x, mask=mask, bias=bias)
    wanted = mha.attention(x, x, x, mask=np.copy(mask, "C"), bias=np.copy(bias, "C"))
    assert np.array_equal(got, wanted)
    with pytest.raises(mha.Error, match="mask: its last axis has stride 2"):
        mha.attention(x, x, x, mask=(random.random((5, 10)) > 0.3)[:, ::2])


# ------------------------------------------------------------------- out


def test_out_is_written_in_place(x: Any) -> None:
    wanted = mha.attention(x, x, x)
    out = np.empty_like(x)
    where = out.ctypes.data
    assert mha.attention(x, x, x, out=out) is out
    assert out.ctypes.data == where and np.array_equal(out, wanted)
    lse, weights = np.empty((2, 3, 5), np.float32), np.empty((2, 3, 5, 5), np.float32)
    got = mha.attention(x, x, x, out=out, lse_out=lse, weights_out=weights)
    assert got.output is out and got.lse is lse and got.weights is weights
    assert np.array_equal(weights, mha.attention_weights(x, x))


def test_out_may_be_strided(x: Any) -> None:
    big = np.full((3, 4, 10, 16), np.float32(7))
    out = big[2:0:-1, 1:, ::2, 4:12]
    lse, weights = np.zeros((5, 3, 2), np.float32).T, np.zeros((2, 3, 5, 9), np.float32)[..., 1:6]
    mha.attention(x, x, x, out=out, lse_out=lse, weights_out=weights)
    wanted = mha.attention(x, x, x, return_lse=True, return_weights=True)
    assert np.array_equal(out, wanted.output)
    assert np.array_equal(lse, wanted.lse)
    assert np.array_equal(weights, wanted.weights)
    assert np.count_nonzero(big != 7) == np.count_nonzero(out != 7)


def test_out_through_dlpack(x: Any) -> None:
    out = np.zeros_like(x)
    given = Versioned(out)
    assert mha.attention(x, x, x, out=given) is given
    assert np.array_equal(out, mha.attention(x, x, x))
    with pytest.raises(mha.Error, match="out is read-only"):
        mha.attention(x, x, x, out=Old(out))


def test_half_results(x: Any) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    half = x.astype(ml_dtypes.bfloat16)
    out = np.zeros_like(half)
    assert mha.attention(half, half, half, out=out) is out
    assert mha.attention(half, half, half).dtype == ml_dtypes.bfloat16
    assert np.array_equal(mha.attention(half, half, half), out)
    assert out.any()
    mixed = mha.attention(x, x, x, out=out)
    assert mixed is out


def test_own_arrays(x: Any) -> None:
    got = mha.attention(*[memoryview(x)] * 3)
    wanted = mha.attention(x, x, x)
    assert got.shape == SHAPE and got.dtype == "f32"
    assert repr(got) == "mha.Array(shape=(2, 3, 5, 8), dtype=f32)"
    assert got.tolist() == wanted.tolist()
    assert got.__dlpack_device__() == (1, 0)
    one, two, three = np.asarray(got), np.from_dlpack(got), np.from_dlpack(Old(got))
    where = one.ctypes.data
    assert two.ctypes.data == three.ctypes.data == where and where % 64 == 0
    view = memoryview(got)
    assert (view.format, view.ndim, view.readonly) == ("f", 4, False)
    again = mha.attention(got, got, got)
    assert isinstance(again, mha.Array)
    del got, view
    gc.collect()
    assert np.array_equal(one, wanted) and np.array_equal(two, wanted)
    with pytest.raises(TypeError):
        mha.Array()
    with pytest.raises(BufferError, match="not copied"):
        again.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="not contiguous"):
        hashlib.sha256(mha.head_statistics(again, again).rows.entropy)


def test_requests_for_buffers(x: Any) -> None:
    """The guarantees of a buffer, by the flags of the request (object.h of CPython)."""
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.c_char_p, ctypes.c_int]
    view = ctypes.create_string_buffer(256)
    simple, writable, strides, c_order, f_order, any_order = 0, 1, 0x18, 0x38, 0x58, 0x98

    def gets(array: Any, flags: int) -> bool:
        try:
            get(array, view, flags)
        except BufferError:
            return False
        ctypes.pythonapi.PyBuffer_Release(view)
        return True

    own = memoryview(x)
    whole = mha.attention(own, own, own)
    strided = mha.head_statistics(own, own).rows.entropy
    for flags in (simple, writable, strides, c_order, any_order):
        assert gets(whole, flags), flags
        assert gets(strided, flags) == (flags == strides), flags
    assert not gets(whole, f_order) and not gets(strided, f_order)


@pytest.mark.parametrize("kind", ["e", "f", "d"])
def test_own_arrays_of_other_types(x: Any, kind: str) -> None:
    given = memoryview(x.astype(kind))
    got = mha.attention(given, given, given)
    assert got.dtype == {"e": "f16", "f": "f32", "d": "f64"}[kind]
    assert memoryview(got).format == kind


def test_a_capsule_that_nobody_takes(x: Any) -> None:
    got = mha.attention(*[memoryview(x)] * 3)
    before = sys.getrefcount(got)
    for version in (None, (0, 8), (1, 0)):
        capsule = got.__dlpack__(max_version=version)
        assert sys.getrefcount(got) == before + 1
        del capsule
        assert sys.getrefcount(got) == before


# ----------------------------------------------------------------- torch


def test_torch(x: Any) -> None:
    torch = pytest.importorskip("torch")
    wanted = mha.attention(x, x, x, return_lse=True, return_weights=True)
    t = torch.from_numpy(x)
    got = mha.attention(t, t, t, return_lse=True, return_weights=True)
    for one, two in zip(got[:3], wanted[:3]):
        assert type(one) is torch.Tensor and np.array_equal(one.numpy(), two)
    out = torch.empty_like(t)
    where = out.data_ptr()
    assert mha.attention(t, t, t, out=out) is out and out.data_ptr() == where
    assert np.array_equal(out.numpy(), wanted.output)
    half = t.bfloat16()
    assert mha.attention(half, half, half).dtype == torch.bfloat16
    rows = t.transpose(1, 2)
    again = mha.attention(rows, rows, rows, layout="blhd")
    assert np.array_equal(again.transpose(1, 2).numpy(), wanted.output)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    causal = mha.attention(t, t, t, causal=True)
    assert torch.equal(mha.attention(t, t, t, mask=mask), causal)
    none = torch.empty(2, 3, 0, 8)
    assert mha.attention(none, none, none).shape == (2, 3, 0, 8)
    assert not mha.attention(t, none, none).any()


def test_torch_and_gradients(x: Any) -> None:
    torch = pytest.importorskip("torch")
    t = torch.from_numpy(x)
    learns = torch.nn.Parameter(t.clone())
    with pytest.raises(mha.Error, match=r"key requires a gradient.*mha\.torch"):
        mha.attention(t, learns, t)
    with torch.no_grad():
        got = mha.attention(t, learns, t)
    assert torch.equal(got, mha.attention(t, learns.detach(), t))
    with pytest.raises(mha.Error, match="out requires a gradient"):
        mha.attention(t, t, t, out=learns)


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_torch_tensors_that_are_more_than_memory(x: Any) -> None:
    torch = pytest.importorskip("torch")
    t = torch.from_numpy(x)
    negated = torch.complex(t, t).conj().imag
    assert negated.is_neg()
    with pytest.raises(mha.Error, match=r"value is a negated view.*value\.resolve_neg\(\)"):
        mha.attention(t, t, negated)
    with pytest.raises(mha.Error, match="query cannot be used here: .*meta"):
        mha.attention(t.to("meta"), t, t)
    with pytest.raises(mha.Error, match="query cannot be used here"):
        mha.attention(t[0, 0].to_sparse(), t[0, 0], t[0, 0])

    class Sub(torch.Tensor):
        pass

    sub = t.as_subclass(Sub)
    assert torch.equal(mha.attention(sub, sub, sub), mha.attention(t, t, t))
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        fake = torch.zeros(SHAPE)
    with pytest.raises((mha.Error, RuntimeError)):
        mha.attention(fake, fake, fake)


def test_kinds_may_be_mixed(x: Any) -> None:
    torch = pytest.importorskip("torch")
    t = torch.from_numpy(x)
    assert isinstance(mha.attention(x, t, memoryview(x)), np.ndarray)
    assert isinstance(mha.attention(t, x, x, key_lengths=np.array([5, 5])), torch.Tensor)
    out = torch.empty(SHAPE)
    assert mha.attention(x, x, x, out=out) is out


# --------------------------------------------------- threads and processes


def test_the_gil_is_released(random: Any) -> None:
    q = random.standard_normal((1, 8, 2048, 64), dtype=np.float32)
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.002):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        begin = time.perf_counter()
        mha.attention(q, q, q, threads=1)
        end = time.perf_counter()
    finally:
        done.set()
        thread.join()
    inside = sum(begin < moment < end for moment in ticks)
    assert inside >= min(5, (end - begin) / 0.02), f"{inside} ticks in {end - begin:.3f} s"


def test_calls_on_many_threads(random: Any) -> None:
    q = random.standard_normal((2, 4, 64, 32), dtype=np.float32)
    wanted = mha.attention(q, q, q, causal=True)
    wrong: list[int] = []

    def work() -> None:
        for n in range(50):
            if not np.array_equal(mha.attention(q, q, q, causal=True), wanted):
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_number_of_threads() -> None:
    before = mha.get_threads()
    try:
        for count in (1, 2, 3):
            mha.set_threads(count)
            assert mha.get_threads() == count
        mha.set_threads(None)
        assert mha.get_threads() == len(os.sched_getaffinity(0))
    finally:
        mha.set_threads(before)
    for count in (0, -1, 1025):
        with pytest.raises(mha.Error, match=f"threads is {count}; use 1 to 1024"):
            mha.set_threads(count)
    with pytest.raises(TypeError, match="threads is a str"):
        mha.set_threads("two")


def wait_for(child: int, seconds: float) -> int:
    """The exit status of a child process, which is killed after a timeout."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_child_has_threads_of_its_own(random: Any) -> None:
    q = random.standard_normal((1, 8, 1024, 64), dtype=np.float32)
    wanted = mha.attention(q, q, q, threads=2)
    child = os.fork()
    if child == 0:
        same = all(np.array_equal(mha.attention(q, q, q, threads=2), wanted) for _ in range(3))
        os._exit(0 if same and len(os.listdir("/proc/self/task")) == 2 else 1)
    assert wait_for(child, 600) == 0
    assert np.array_equal(mha.attention(q, q, q, threads=2), wanted)


def test_imports_nothing_else() -> None:
    code = (
        "import sys, mha; "
        "assert not {'numpy', 'torch', 'onnx', 'transformers'} & set(sys.modules), sys.modules; "
        "x = memoryview(bytes(64)).cast('f', [2, 2, 4]); "
        "assert mha.attention(x, x, x).tolist() == [[[0.0] * 4] * 2] * 2"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ----------------------------------------------------------------- leaks


def resident() -> int:
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def every_way(x: Any, others: list[Any]) -> None:
    """A round of calls that succeed, and of calls that fail."""
    y = mha.attention(x, x, x, return_lse=True, return_weights=True, statistics=True)
    mha.attention_backward(x, x, x, x, *y[:2], bias=others[0], want=("query", "bias"))
    mha.merge(*y[:2], *y[:2])
    mha.attention_weights(x, x, heads=[0], lse=y.lse)
    for other in others[1:]:
        mha.attention(other, other, other, return_lse=True)
    bad: list[dict[str, Any]] = [
        {"mask": [1]},
        {"mask": x[..., :3]},
        {"out": x},
        {"layout": "x"},
        {"statistics": ["rows", "row"]},
        {"key_lengths": [1, 99]},
        {"query_starts": [0, 1]},
        {"sinks": [1.0, "x", 2.0]},
        {"threads": 0},
        {"nonsense": 1},
    ]
    for options in bad:
        with pytest.raises((mha.Error, TypeError)):
            mha.attention(x, x, x, **options)


def test_nothing_leaks(x: Any) -> None:
    others = [np.zeros((5, 1), np.float32), Old(x), Versioned(x), memoryview(x)]
    try:
        import torch

        others.append(torch.from_numpy(x))
    except ImportError:
        pass
    for _ in range(300):
        every_way(x, others)
    gc.collect()
    counts = [sys.getrefcount(thing) for thing in (x, *others)]
    before, blocks = resident(), sys.getallocatedblocks()
    for _ in range(700):
        every_way(x, others)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in (x, *others)] == counts
    assert sys.getallocatedblocks() - blocks < 700
    assert resident() - before < 2 << 20


def test_large_results_are_freed(random: Any) -> None:
    q = random.standard_normal((1, 8, 512, 64), dtype=np.float32)
    view = memoryview(q)
    mha.attention(view, view, view, return_weights=True)
    before = resident()
    for _ in range(20):
        mha.attention(view, view, view, return_weights=True)  # 8 MB of weights each
    assert resident() - before < 32 << 20
