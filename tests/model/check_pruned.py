# SPDX-License-Identifier: MIT
"""check_pruned.py BUILD [FAMILY...]: models of every family that lost some heads, saved and opened
again. The folder gives the same bits as the model in memory; with zeros for removed heads,
transformers gives the same results; and the folders that transformers 4 can prune ("pruned_heads")
are loaded by it, from BUILD/transformers-4 (scripts/python-venv.sh installs it there)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from families import FAMILIES, VOCABULARY, models
from library import CROSS, DECODER, ENCODER, Library, Model
from report import Report

PRUNED_BY_TRANSFORMERS = (
    "bert roberta xlm-roberta electra albert distilbert gpt2 vit deit".split()
)
GROUPED = "llama mistral qwen2 qwen3 gemma gemma2 gemma3_text".split()
LIMIT = 1e-4

report = Report("check_pruned")


class Saver:
    """mha_model_prune() and mha_model_save()."""

    def __init__(self, library: Library) -> None:
        self.library, self.ffi = library, library.ffi
        self.message = self.ffi.new("char[]", 512)

    def heads(self, model: Model) -> dict[int, list[int]]:
        """How many heads each layer has, by kind."""
        return {
            kind: [
                self.library.c.mha_model_heads(model.handle, kind, n)
                for n in range(int(model.info.layers[kind]))
            ]
            for kind in (ENCODER, DECODER, CROSS)
        }

    def prune(self, model: Model, keep: dict[int, list[list[int]]]) -> Model:
        ffi = self.ffi
        lists = ffi.new("uint8_t *[3]")
        kept = {}
        for kind, layers in keep.items():
            kept[kind] = np.array([x for layer in layers for x in layer], dtype=np.uint8)
            if len(kept[kind]):
                lists[kind] = ffi.cast("uint8_t *", kept[kind].ctypes.data)
        handle = ffi.new("mha_model **")
        self.library.check(
            self.library.c.mha_model_prune(handle, model.handle, lists, self.message, 512),
            self.message,
        )
        pruned = object.__new__(Model)
        pruned.__dict__.update(model.__dict__)
        pruned.handle = ffi.gc(handle[0], self.library.c.mha_model_free)
        return pruned

    def save(self, model: Model, path: Path, zeros: bool = False) -> None:
        config = self.library.struct(
            "mha_save_config", zeros=int(zeros), message=self.message, message_size=512
        )
        self.library.check(
            self.library.c.mha_model_save(model.handle, str(path).encode(), config), self.message
        )


def choose(generator: Any, heads: dict[int, list[int]]) -> dict[int, list[list[int]]]:
    """Heads at random, so that layers differ; one stays in each."""
    keep = {}
    for kind, layers in heads.items():
        keep[kind] = [generator.integers(0, 2, count).tolist() for count in layers]
        for layer in keep[kind]:
            layer[int(generator.integers(0, len(layer)))] = 1
    return keep


def inputs(model: Model, name: str, seed: int) -> dict[str, Any]:
    """A call of the model: its kind decides what it reads."""
    generator = np.random.default_rng(seed)
    info = model.info
    if name in ("vit", "deit"):
        shape = (2, int(info.channels), int(info.image_size), int(info.image_size))
        return {"pixels": generator.standard_normal(shape, dtype=np.float32)}
    ids = generator.integers(3, VOCABULARY, (2, 11)).tolist()
    if info.layers[CROSS]:
        return {"ids": ids, "source": generator.integers(3, VOCABULARY, (2, 17)).tolist()}
    return {"ids": ids}


def outputs(model: Model, name: str, given: dict[str, Any]) -> np.ndarray:
    model.extra_tokens = 2 if name == "deit" else 1
    return model.run(**given, want=("hidden",))["hidden"]


def theirs(folder: Path, given: dict[str, Any]) -> np.ndarray:
    """Hidden states of transformers, as those of libmha_model."""
    model, info = transformers.AutoModel.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager"
    )
    made = ("pooler", "embed_positions")  # not in the files; the sines of Marian's positions
    wrong = {key for key in info["missing_keys"] if not any(part in key for part in made)}
    if wrong or info["mismatched_keys"]:
        raise ValueError(f"missing: {sorted(wrong)}, other shapes: {info['mismatched_keys']}")
    model.eval()
    with torch.no_grad():
        if "pixels" in given:
            hidden = model(torch.tensor(given["pixels"])).last_hidden_state
        elif "source" in given:
            answer = model(
                input_ids=torch.tensor(given["source"]),
                decoder_input_ids=torch.tensor(given["ids"]),
            )
            hidden = answer.last_hidden_state
        else:
            hidden = model(torch.tensor(given["ids"])).last_hidden_state
    return hidden.reshape(-1, hidden.shape[-1]).numpy()


def far(ours: np.ndarray, other: np.ndarray) -> float:
    if ours.shape != other.shape:
        raise ValueError(f"shape {other.shape} instead of {ours.shape}")
    return float(np.abs(ours - other).max() / max(1.0, np.abs(ours).max()))


def near(name: str, ours: np.ndarray, other: np.ndarray, limit: float) -> None:
    distance = far(ours, other)
    report.check(name, distance <= limit, f"{distance:.2g}")


def check_folders(saver: Saver, name: str, number: int, model: Any, home: Path) -> None:
    """Everything but transformers 4."""
    label = f"{name}-{number}"
    whole, small, smaller, zeros = (home / part for part in ("whole", "small", "smaller", "zeros"))
    model.save_pretrained(whole)
    generator = np.random.default_rng(number)
    plain = Model(saver.library, whole)
    given = inputs(plain, name, number)
    pruned = saver.prune(plain, choose(generator, saver.heads(plain)))
    expected = outputs(pruned, name, given)
    changed = far(expected, outputs(plain, name, given))
    report.check(f"{label} pruning matters", changed > 1e-3, f"{changed:.2g}")

    saver.save(pruned, small)
    opened = Model(saver.library, small)
    report.check(f"{label} heads", saver.heads(opened) == saver.heads(pruned))
    same = np.array_equal(outputs(opened, name, given), expected)
    report.check(f"{label} the same bits", bool(same))

    keep = choose(generator, saver.heads(opened))
    again, both = saver.prune(opened, keep), saver.prune(pruned, keep)
    saver.save(again, smaller)
    last = outputs(Model(saver.library, smaller), name, given)
    report.check(
        f"{label} pruned again", bool(np.array_equal(last, outputs(both, name, given)))
    )

    saver.save(pruned, zeros, zeros=True)
    full = Model(saver.library, zeros)
    report.check(f"{label} zeros: all heads", saver.heads(full) == saver.heads(plain))
    near(f"{label} zeros", expected, outputs(full, name, given), 1e-5)
    near(f"{label} zeros in transformers", expected, theirs(zeros, given), LIMIT)


def check_even(saver: Saver, name: str, number: int, model: Any, home: Path) -> None:
    """The same number of heads in all layers: transformers reads this with smaller matrices."""
    label = f"{name}-{number}"
    whole, even = home / "whole-even", home / "even"
    model.save_pretrained(whole)
    plain = Model(saver.library, whole)
    group = int(plain.info.heads) // int(plain.info.key_heads)
    keep = {
        kind: [[int(h % group == n % group) for h in range(heads)] for n, heads in enumerate(all)]
        for kind, all in saver.heads(plain).items()
    }
    pruned = saver.prune(plain, keep)
    given = inputs(plain, name, number)
    saver.save(pruned, even)
    opened = Model(saver.library, even)
    expected = outputs(pruned, name, given)
    report.check(f"{label} even", bool(np.array_equal(outputs(opened, name, given), expected)))
    report.check(f"{label} even: heads", opened.info.heads == plain.info.key_heads)
    near(f"{label} even in transformers", expected, theirs(even, given), LIMIT)


# ------------------------------------------------------------- transformers 4 -----


def other(build: Path, *arguments: str) -> None:
    """Runs this program with transformers 4."""
    environment = os.environ | {"PYTHONPATH": str(build / "transformers-4")}
    subprocess.run([sys.executable, "-B", __file__, *arguments], check=True, env=environment)


def make_folders(home: Path, names: list[str]) -> None:
    """With transformers 4: models as it saves them."""
    for name, number, model in models(names):
        model.save_pretrained(home / f"{name}-{number}" / "whole")


def run_folders(home: Path) -> None:
    """With transformers 4: results of the saved models, and of models that it has pruned itself."""
    for case in sorted(home.iterdir()):
        given = json.loads((case / "given.json").read_text())
        if "pixels" in given:
            given["pixels"] = np.array(given["pixels"], dtype=np.float32)
        removed = json.loads((case / "small" / "config.json").read_text())["pruned_heads"]
        np.save(case / "loaded.npy", theirs(case / "small", given))
        if "albert" in case.name:  # its layers share their weights, and so would lose all heads
            continue
        model = transformers.AutoModel.from_pretrained(case / "whole").eval()
        model.prune_heads({int(layer): heads for layer, heads in removed.items()})
        model.save_pretrained(case / "theirs")
        np.save(case / "pruned.npy", theirs(case / "theirs", given))


def check_transformers_4(saver: Saver, build: Path, names: list[str]) -> None:
    if not (build / "transformers-4" / "transformers").is_dir():
        report.skip("transformers 4", f"{build}/transformers-4 is not there")
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        other(build, "--make", folder, *names)
        expected = {}
        for case in sorted(home.iterdir()):
            name = case.name.rsplit("-", 1)[0]
            plain = Model(saver.library, case / "whole")
            keep = choose(np.random.default_rng(len(case.name)), saver.heads(plain))
            if case.name == "albert-1":  # one list for the weights that all layers share
                keep[ENCODER] = [keep[ENCODER][0]] * len(keep[ENCODER])
            pruned = saver.prune(plain, keep)
            saver.save(pruned, case / "small")
            given = inputs(plain, name, 5)
            expected[case] = outputs(pruned, name, given)
            text = {key: np.asarray(value).tolist() for key, value in given.items()}
            (case / "given.json").write_text(json.dumps(text))
        other(build, "--run", folder)
        for case, ours in expected.items():
            near(f"{case.name} in transformers 4", ours, np.load(case / "loaded.npy"), LIMIT)
            if (case / "pruned.npy").exists():
                near(f"{case.name} pruned by it", ours, np.load(case / "pruned.npy"), LIMIT)


def main() -> None:
    if sys.argv[1] == "--make":
        make_folders(Path(sys.argv[2]), sys.argv[3:])
        return
    if sys.argv[1] == "--run":
        run_folders(Path(sys.argv[2]))
        return
    build = Path(sys.argv[1]).resolve()
    chosen = sys.argv[2:] or list(FAMILIES)
    saver = Saver(Library(build))
    for name, number, model in models(chosen):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            parts = [check_folders] + [check_even] * (name in GROUPED)
            for part in parts:
                report.run(
                    f"{name}-{number}",
                    lambda part=part, name=name, number=number, model=model, home=home: part(
                        saver, name, number, model, home
                    ),
                )
    names = [name for name in chosen if name in PRUNED_BY_TRANSFORMERS]
    if names:
        report.run("transformers 4", lambda: check_transformers_4(saver, build, names))
    report.finish()


if __name__ == "__main__":
    main()
