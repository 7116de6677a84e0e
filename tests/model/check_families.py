# SPDX-License-Identifier: MIT
"""check_families.py BUILD [FAMILY...]: small random models of transformers, saved and opened by
libmha_model: hidden states, logits and attention weights agree, and a text that is split into calls
gives the same bits as a whole one."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from families import FAMILIES, VOCABULARY, models
from library import CROSS, DECODER, ENCODER, Library, Model
from report import Report

ENCODERS = {"bert", "roberta", "xlm-roberta", "electra", "albert", "distilbert"}
PAIRS = {"t5", "bart", "mbart", "marian"}
IMAGES = {"vit", "deit"}
LIMIT = 1e-4

report = Report("check_families")


def far(ours: np.ndarray, theirs: Any) -> float:
    """The largest difference, as a share of the largest number."""
    theirs = theirs.detach().numpy()
    if ours.shape != theirs.shape:
        raise ValueError(f"shape {ours.shape} instead of {theirs.shape}")
    return float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))


def near(name: str, ours: np.ndarray, theirs: Any) -> None:
    distance = far(ours, theirs)
    report.check(name, distance <= LIMIT, f"{distance:.2g}")


def texts(seed: int, count: int, longest: int) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, longest, count)
    return [generator.integers(3, VOCABULARY, int(length)).tolist() for length in lengths]


def weights_near(name: str, ours: np.ndarray, theirs: Any) -> None:
    """Weights of sequence 0 of a batch, all layers and heads."""
    worst = max(
        far(ours[layer, 0, :, : one.shape[2], : one.shape[3]], one[0])
        for layer, one in enumerate(theirs)
    )
    report.check(name, worst <= LIMIT, f"{worst:.2g}")


def check_encoder(name: str, model: Model, theirs: Any, seed: int) -> None:
    batch = texts(seed, 3, 40)
    base = theirs.base_model
    kind = (ENCODER,)
    wanted = ("hidden", "logits") if model.info.has_logits else ("hidden",)
    ours = model.run(batch, want=wanted, attentions=kind)
    first = 0
    for number, ids in enumerate(batch):
        answer = base(torch.tensor([ids]), output_attentions=True)
        last = first + len(ids)
        near(f"{name} hidden {number}", ours["hidden"][first:last], answer.last_hidden_state[0])
        if model.info.has_logits:
            logits = theirs(torch.tensor([ids])).logits[0]
            near(f"{name} logits {number}", ours["logits"][first:last], logits)
        if number == 0:
            weights_near(f"{name} weights", ours["weights0"], answer.attentions)
        first = last


def check_decoder(name: str, model: Model, theirs: Any, seed: int) -> None:
    batch = texts(seed, 3, 40)
    ours = model.run(batch, want=("hidden", "logits"), attentions=(DECODER,))
    first = 0
    for number, ids in enumerate(batch):
        answer = theirs(torch.tensor([ids]), output_attentions=True)
        last = first + len(ids)
        near(f"{name} logits {number}", ours["logits"][first:last], answer.logits[0])
        if number == 0:
            weights_near(f"{name} weights", ours["weights1"], answer.attentions)
        first = last
    parts = split(model, batch)
    report.check(f"{name} the same bits in parts", bool(np.array_equal(parts, ours["logits"])))


def split(model: Model, batch: list[list[int]], source: Any = None) -> np.ndarray:
    """Logits of texts that are fed to a state in parts of 1, 2, 3, ... tokens."""
    state = model.new_state(len(batch), 90)
    rows: list[list[np.ndarray]] = [[] for _ in batch]
    at, size = [0] * len(batch), 1
    while True:
        parts = [ids[place : place + size] for ids, place in zip(batch, at, strict=True)]
        live = [n for n, part in enumerate(parts) if part]
        if not live:
            return np.concatenate([np.concatenate(one) for one in rows])
        if len(live) < len(batch):  # the rest one by one: sequences of a call are 0 .. B-1
            for n in live:
                rest = batch[n][at[n] :]
                rows[n].append(one_by_one(model, state, n, rest))
                at[n] = len(batch[n])
            continue
        given = source if size == 1 else None
        logits = model.run(parts, source=given, state=state, want=("logits",))["logits"]
        first = 0
        for n, part in enumerate(parts):
            rows[n].append(logits[first : first + len(part)])
            first += len(part)
            at[n] += len(part)
        size += 1


def one_by_one(model: Model, state: Any, sequence: int, ids: list[int]) -> np.ndarray:
    ffi = model.ffi
    logits = np.zeros((len(ids), model.info.vocabulary), dtype=np.float32)
    for n, token in enumerate(ids):
        starts = np.array([0, 1], dtype=np.int64)
        one = np.array([token], dtype=np.int32)
        which = np.array([sequence], dtype=np.int64)
        call = model.library.struct("mha_model_call", B=1, state=state)
        call.starts = ffi.cast("int64_t *", starts.ctypes.data)
        call.ids = ffi.cast("int32_t *", one.ctypes.data)
        call.sequences = ffi.cast("int64_t *", which.ctypes.data)
        call.logits = ffi.cast("float *", logits[n].ctypes.data)
        call.logit_row_count = 1
        model.library.check(
            model.library.c.mha_model_run(model.handle, call, ffi.NULL, 0, model.pool)
        )
    return logits


def check_pair(name: str, model: Model, theirs: Any, seed: int) -> None:
    source, target = texts(seed, 2, 30), texts(seed + 1, 2, 20)
    ours = model.run(
        target, source, want=("logits", "source_hidden"), attentions=(ENCODER, DECODER, CROSS)
    )
    first = begin = 0
    for number, (reads, says) in enumerate(zip(source, target, strict=True)):
        answer = theirs(
            input_ids=torch.tensor([reads]),
            decoder_input_ids=torch.tensor([says]),
            output_attentions=True,
        )
        last, end = first + len(says), begin + len(reads)
        near(f"{name} logits {number}", ours["logits"][first:last], answer.logits[0])
        near(
            f"{name} encoder {number}",
            ours["source_hidden"][begin:end],
            answer.encoder_last_hidden_state[0],
        )
        if number == 0:
            weights_near(f"{name} encoder", ours["weights0"], answer.encoder_attentions)
            weights_near(f"{name} decoder", ours["weights1"], answer.decoder_attentions)
            weights_near(f"{name} cross", ours["weights2"], answer.cross_attentions)
        first, begin = last, end
    parts = split(model, target, source)
    report.check(f"{name} the same bits in parts", bool(np.array_equal(parts, ours["logits"])))


def word_tokenizer(folder: str) -> Any:
    """A tokenizer whose words are the numbers up to the size of the vocabulary, in a file."""
    words = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}
    words |= {str(n): n for n in range(3, VOCABULARY)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A [SEP]", special_tokens=[("[SEP]", 2)]
    )
    made.save(f"{folder}/words.json")
    return made


def check_vectors(name: str, library: Library, folder: str, theirs: Any, seed: int) -> None:
    """Vectors of an encoder-decoder: the mean of the encoder's hidden states."""
    tokenizer = word_tokenizer(folder)
    model = Model(library, Path(folder), tokenizer=f"{folder}/words.json")
    lines = [" ".join(map(str, ids)) for ids in texts(seed + 2, 3, 30)]
    ours = model.encode(lines)
    for number, line in enumerate(lines):
        ids = tokenizer.encode(line).ids
        hidden = theirs.get_encoder()(torch.tensor([ids])).last_hidden_state[0]
        near(f"{name} vector {number}", ours[number], hidden.mean(0))
        alone = model.run(source=[ids], want=("source_hidden",))["source_hidden"]
        near(f"{name} encoder alone {number}", alone, hidden)


def check_image(name: str, model: Model, theirs: Any, seed: int) -> None:
    info = model.info
    model.extra_tokens = 2 if name.startswith("deit") else 1
    shape = (2, int(info.channels), int(info.image_size), int(info.image_size))
    pixels = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    ours = model.run(pixels=pixels, want=("hidden", "labels"), attentions=(ENCODER,))
    answer = theirs(torch.tensor(pixels), output_attentions=True)
    hidden = theirs.base_model(torch.tensor(pixels)).last_hidden_state
    near(f"{name} hidden", ours["hidden"].reshape(hidden.shape), hidden)
    near(f"{name} labels", ours["labels"], answer.logits)
    weights_near(f"{name} weights", ours["weights0"], answer.attentions)


def check_model(library: Library, name: str, number: int, theirs: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        model = Model(library, Path(folder))
        label = f"{name}-{number}"
        with torch.no_grad():
            if name in ENCODERS:
                check_encoder(label, model, theirs, number)
            elif name in PAIRS:
                check_pair(label, model, theirs, number)
                check_vectors(label, library, folder, theirs, number)
            elif name in IMAGES:
                check_image(label, model, theirs, number)
            else:
                check_decoder(label, model, theirs, number)


def main() -> None:
    library = Library(Path(sys.argv[1]))
    for name, number, theirs in models(sys.argv[2:] or list(FAMILIES)):
        report.run(
            f"{name}-{number}",
            lambda name=name, number=number, theirs=theirs: check_model(
                library, name, number, theirs
            ),
        )
    report.finish()


if __name__ == "__main__":
    main()
