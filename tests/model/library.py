# SPDX-License-Identifier: MIT
"""libmha_model for the checks in this folder: its header read by cffi, its functions on NumPy."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cffi
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
ENCODER, DECODER, CROSS = 0, 1, 2


def declarations() -> str:
    """The public headers without what cffi does not read: includes, inline functions."""
    text = subprocess.run(
        ["gcc", "-E", "-P", "-DMHA_API=", "-I", str(ROOT / "include"), "-"],
        input="#include <mha/mha_model.h>\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    text = text[text.index("int mha_version(void)") :]
    text = re.sub(r"__attribute__\(\(.*?\)\)\)?", "", text)
    return re.sub(r"static inline [^{;]*\{.*?\n\}", "", text, flags=re.DOTALL)


class Library:
    """The functions, with errors as exceptions."""

    def __init__(self, build: Path) -> None:
        self.ffi = cffi.FFI()
        self.ffi.cdef(declarations())
        self.ffi.dlopen(str(build / "libmha.so"), self.ffi.RTLD_GLOBAL | self.ffi.RTLD_NOW)
        self.c = self.ffi.dlopen(str(build / "libmha_model.so"))
        self.core = self.ffi.dlopen(str(build / "libmha.so"))

    def check(self, status: int, message: Any = None) -> None:
        if status != 0:
            name = self.ffi.string(self.core.mha_status_string(status)).decode()
            why = self.ffi.string(message).decode(errors="replace") if message else ""
            raise RuntimeError(f"{name}: {why}")

    def struct(self, name: str, **fields: Any) -> Any:
        value = self.ffi.new(f"{name} *")
        value.size = self.ffi.sizeof(name)
        for field, content in fields.items():
            setattr(value, field, content)
        return value


def pack(sequences: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids one after the other, and where each sequence starts."""
    starts = np.cumsum([0, *map(len, sequences)]).astype(np.int64)
    ids = np.array([token for one in sequences for token in one], dtype=np.int32)
    return starts, ids


class Call:
    """A call that can be repeated: run() computes it, and the arrays in `result` are overwritten.

    `keep` is what the call points to.
    """

    def __init__(self, model: Model, call: Any, result: dict[str, Any], keep: list[Any]) -> None:
        self.model, self.call, self.result, self.keep = model, call, result, keep
        self.work = np.zeros(0, dtype=np.uint8)

    def reserve(self) -> None:
        """Memory that later runs use instead of allocating their own."""
        size = self.model.library.c.mha_model_work_size(
            self.model.handle, self.call, self.model.threads
        )
        self.work = np.zeros(size, dtype=np.uint8)

    def run(self) -> dict[str, Any]:
        model, ffi = self.model, self.model.ffi
        work = ffi.cast("void *", self.work.ctypes.data) if len(self.work) else ffi.NULL
        model.library.check(
            model.library.c.mha_model_run(
                model.handle, self.call, work, len(self.work), model.pool
            ),
            model.message,
        )
        return self.result


class Model:
    """An open model."""

    def __init__(self, library: Library, path: Path, threads: int = 2, **config: Any) -> None:
        self.threads = threads
        self.library, ffi = library, library.ffi
        self.ffi = ffi
        self.message = ffi.new("char[]", 512)
        handle = ffi.new("mha_model **")
        tokenizer = config.pop("tokenizer", None)
        settings = library.struct(
            "mha_model_config", message=self.message, message_size=512, **config
        )
        kept = ffi.new("char[]", str(tokenizer).encode()) if tokenizer else ffi.NULL
        settings.tokenizer = kept
        library.check(library.c.mha_model_open(handle, str(path).encode(), settings), self.message)
        self.handle = ffi.gc(handle[0], library.c.mha_model_free)
        self.info = library.struct("mha_model_info")
        library.check(library.c.mha_model_get_info(self.handle, self.info))
        pool = ffi.new("mha_pool **")
        library.check(library.core.mha_pool_create(pool, threads))
        self.pool = ffi.gc(pool[0], library.core.mha_pool_free)

    def new_state(self, sequences: int = 1, capacity: int = 0, kind: int = 0) -> Any:
        state = self.ffi.new("mha_state **")
        config = self.library.struct(
            "mha_state_config",
            sequences=sequences,
            capacity=capacity,
            source_capacity=capacity,
            type=kind,
            message=self.message,
            message_size=512,
        )
        self.library.check(
            self.library.c.mha_state_create(state, self.handle, config), self.message
        )
        return self.ffi.gc(state[0], self.library.c.mha_state_free)

    def run(self, *given: Any, **named: Any) -> dict[str, Any]:
        """The outputs of one call; see prepare()."""
        return self.prepare(*given, **named).run()

    def prepare(
        self,
        ids: list[list[int]] | None = None,
        source: list[list[int]] | None = None,
        pixels: np.ndarray | None = None,
        segments: np.ndarray | None = None,
        state: Any = None,
        want: tuple[str, ...] = ("hidden",),
        attentions: tuple[int, ...] = (),
        logit_rows: list[int] | None = None,
        statistics: tuple[int, ...] = (),
    ) -> Call:
        """A call for the outputs named in `want`, of all rows or of some of the logits; weights of
        all heads of some kinds of attention, or statistics of all rows and heads of them."""
        ffi, info = self.ffi, self.info
        keep: list[Any] = []
        call = self.library.struct("mha_model_call", message=self.message, message_size=512)

        def pointer(kind: str, array: np.ndarray) -> Any:
            keep.append(array)
            return ffi.cast(kind, array.ctypes.data)

        rows = 0
        if ids is not None:
            starts, flat = pack(ids)
            call.B, rows = len(ids), int(starts[-1])
            call.starts = pointer("int64_t *", starts)
            call.ids = pointer("int32_t *", flat)
        if source is not None:
            source_starts, source_flat = pack(source)
            call.B = len(source)
            call.source_starts = pointer("int64_t *", source_starts)
            call.source_ids = pointer("int32_t *", source_flat)
        if pixels is not None:
            pixels = np.ascontiguousarray(pixels, dtype=np.float32)
            call.B = len(pixels)
            call.pixels = pointer("float *", pixels)
            patches = (int(info.image_size) // int(info.patch)) ** 2
            rows = call.B * (patches + self.extra_tokens)
        if segments is not None:
            call.segments = pointer("int32_t *", segments.astype(np.int32))
        if state is not None:
            call.state = state
        shapes = {
            "hidden": (rows, info.width),
            "logits": (rows if logit_rows is None else len(logit_rows), info.vocabulary),
            "source_hidden": (len(pack(source)[1]) if source else 0, info.width),
            "pooled": (call.B, info.width),
            "labels": (call.B, info.labels),
        }
        result: dict[str, Any] = {}
        for name in want:
            result[name] = np.zeros(shapes[name], dtype=np.float32)
            setattr(call, name, pointer("float *", result[name]))
        if "logits" in want:
            call.logit_row_count = shapes["logits"][0]
            if logit_rows is not None:
                call.logit_rows = pointer("int64_t *", np.array(logit_rows, dtype=np.int64))
        captures = self.captures(call, attentions, ids, source, rows, result, pointer)
        if statistics:
            captures = self.statistics(statistics, ids, result, keep)
        if captures is not None:
            keep.append(captures)
            call.captures = captures
            call.capture_count = len(captures)
        return Call(self, call, result, keep)

    def statistics(
        self, kinds: tuple[int, ...], ids: Any, result: dict[str, Any], keep: list[Any]
    ) -> Any:
        """Captures of the statistics of all rows and heads; result["entropy"] has the heads'."""
        ffi, info = self.ffi, self.info
        layers = [(kind, n) for kind in kinds for n in range(int(info.layers[kind]))]
        captures = ffi.new("mha_capture[]", len(layers))
        count = len(ids) * int(info.heads)
        doubles = ffi.sizeof("mha_head_statistics") // 8
        heads = np.zeros((len(layers), len(ids), int(info.heads), doubles))
        for number, (kind, layer) in enumerate(layers):
            rows = ffi.new("mha_row_statistics[]", count * max(map(len, ids)))
            kept = self.library.struct("mha_statistics", rows=rows)
            kept.heads = ffi.cast("mha_head_statistics *", heads[number].ctypes.data)
            captures[number].kind, captures[number].layer = kind, layer
            captures[number].statistics = kept
            keep += [rows, kept]
        keep.append(heads)
        result["entropy"] = heads[..., 0]
        return captures

    extra_tokens = 1

    def captures(self, call, kinds, ids, source, rows, result, pointer) -> Any:  # type: ignore
        if not kinds:
            return None
        batch = int(call.B)
        longest = max(map(len, ids)) if ids else rows // batch
        other = max(map(len, source)) if source else longest
        items = []
        for kind in kinds:
            L = other if kind == ENCODER and source else longest
            S = {ENCODER: L, DECODER: longest, CROSS: other}[kind]
            layers = int(self.info.layers[kind])
            weights = np.zeros((layers, batch, self.info.heads, L, S), dtype=np.float32)
            result[f"weights{kind}"] = weights
            items += [(kind, n, weights[n]) for n in range(layers)]
        captures = self.ffi.new("mha_capture[]", len(items))
        for capture, (kind, layer, weights) in zip(captures, items, strict=True):
            capture.kind, capture.layer = kind, layer
            capture.weights.data = pointer("void *", weights)
            capture.weights.sb, capture.weights.sh, capture.weights.sl = (
                stride // 4 for stride in weights.strides[:3]
            )
        return captures

    def encode(self, texts: list[str]) -> np.ndarray:
        ffi = self.ffi
        kept = [ffi.new("char[]", text.encode()) for text in texts]
        vectors = np.zeros((len(texts), self.info.width), dtype=np.float32)
        config = self.library.struct("mha_encode_config", message=self.message, message_size=512)
        self.library.check(
            self.library.c.mha_model_encode(
                self.handle,
                ffi.new("char *[]", kept),
                len(texts),
                config,
                ffi.cast("float *", vectors.ctypes.data),
                self.pool,
            ),
            self.message,
        )
        return vectors

    def generations(self, prompts: list[list[int]], most: int, **fields: Any) -> list[Any]:
        """For each prompt its results, `best` of them: ids, text, score, ended."""
        ffi = self.ffi
        starts, ids = pack(prompts)
        config = self.library.struct(
            "mha_generate_config", most=most, message=self.message, message_size=512, **fields
        )
        best = max(1, fields.get("best", 1))
        results = ffi.new("mha_generation[]", len(prompts) * best)
        self._generate(starts, ids, config, results)
        made = []
        for one in results:
            text = ffi.string(one.text).decode(errors="replace") if one.text else ""
            kept = [one.ids[n] for n in range(one.count)]
            made.append((kept, text, one.score, bool(one.ended)))
            self.library.c.mha_generation_free(ffi.addressof(one))
        return [made[n : n + best] for n in range(0, len(made), best)]

    def _generate(self, starts: np.ndarray, ids: np.ndarray, config: Any, results: Any) -> None:
        cast = self.ffi.cast
        self.library.check(
            self.library.c.mha_model_generate(
                self.handle,
                len(starts) - 1,
                cast("int64_t *", starts.ctypes.data),
                cast("int32_t *", ids.ctypes.data),
                config,
                results,
                self.pool,
            ),
            self.message,
        )

    def prepare_generation(
        self, prompts: list[list[int]], most: int, **fields: Any
    ) -> Callable[[], list[list[int]]]:
        """A function that returns the ids of the best result of each prompt."""
        starts, ids = pack(prompts)
        config = self.library.struct(
            "mha_generate_config", most=most, message=self.message, message_size=512, **fields
        )
        results = self.ffi.new("mha_generation[]", len(prompts))

        def generate() -> list[list[int]]:
            self._generate(starts, ids, config, results)
            made = [self.ffi.unpack(one.ids, one.count) for one in results]
            for n in range(len(prompts)):
                self.library.c.mha_generation_free(results + n)
            return made

        return generate

    def generate(self, prompts: list[list[int]], most: int, **fields: Any) -> list[Any]:
        """(ids, text) for each prompt."""
        return [some[0][:2] for some in self.generations(prompts, most, **fields)]

    def tokens(self, text: str, flags: int = 1) -> list[int]:
        ffi = self.ffi
        data = text.encode()
        tokens = ffi.new("mha_tokens *")
        self.library.check(
            self.library.c.mha_tokenizer_encode(
                self.library.c.mha_model_tokenizer(self.handle), data, len(data), flags, tokens
            )
        )
        ids = [tokens.tokens[n].id for n in range(tokens.count)]
        self.library.c.mha_tokens_free(tokens)
        return ids
