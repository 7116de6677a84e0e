# SPDX-License-Identifier: MIT
"""check_vision.py BUILD: classifiers that mha train --images writes, opened by transformers as
ViTForImageClassification: the logits of mha see are theirs, and so are the names of the classes. What
transformers cannot be is refused by it, not opened as something else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from report import Report

sys.path.insert(0, str(Path(__file__).parent.parent / "program"))
import picture_sets

LIMIT = 1e-4
SMALL = "--width 32 --heads 4 --ff 48 --layers 2 --batch 20 --steps 20 --lr 0.005 --flip 0 --patch 4".split()

report = Report("check_vision")


def see(mha: str, folder: str, picture: str) -> list[dict[str, Any]]:
    command = [mha, "see", picture, "--model", folder, "--top", "1000", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)[0]["classes"]


def train(mha: str, folder: str, *options: str) -> None:
    command = [mha, "train", "--images", "idx", "-o", folder, "--quiet", *SMALL, *options]
    subprocess.run(command, check=True, capture_output=True)


def pixels(folder: str, picture: bytes, side: int) -> torch.Tensor:
    """As preprocessor_config.json says; the picture has the size of the model."""
    said = json.loads(Path(folder, "preprocessor_config.json").read_text())
    assert said["size"] == {"height": side, "width": side}
    grey = torch.tensor(list(picture), dtype=torch.float32).reshape(1, 1, side, side)
    return (grey * said["rescale_factor"] - said["image_mean"][0]) / said["image_std"][0]


def compare(mha: str, name: str, *options: str) -> None:
    train(mha, name, "--pooling", "class", "--classes", "left,right", *options)
    model = transformers.ViTForImageClassification.from_pretrained(
        name, dtype=torch.float32, attn_implementation="eager"
    )
    for label in range(2):
        picture = picture_sets.picture(picture_sets.random.Random(9 + label), label)
        picture_sets.png(Path("seen.png"), picture, picture_sets.SIDE, picture_sets.SIDE, 1)
        with torch.no_grad():
            theirs = model(pixels(name, picture, picture_sets.SIDE)).logits[0]
        ours = {c["number"]: c for c in see(mha, name, "seen.png")}
        far = max(abs(ours[n]["logit"] - float(theirs[n])) for n in range(2))
        report.check(f"{name}: logits of a picture of class {label}", far <= LIMIT, f"{far:.2g}")
        names = all(model.config.id2label[n] == ours[n]["class"] for n in range(2))
        report.check(f"{name}: names of the classes", names)


def refused(mha: str) -> None:
    train(mha, "mean", "--pooling", "mean")
    try:
        transformers.AutoModelForImageClassification.from_pretrained("mean")
        report.check("the mean of patches is refused", False, "it was opened")
    except (ValueError, KeyError) as error:
        report.check("the mean of patches is refused", "mha_vit" in str(error), str(error)[:80])


def main() -> None:
    mha = str(Path(sys.argv[1], "mha").resolve())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        picture_sets.main()
        report.run("f32", lambda: compare(mha, "f32", "--type", "f32"))
        report.run("f16", lambda: compare(mha, "f16", "--type", "f16"))
        report.run("sines", lambda: compare(mha, "sines", "--type", "f32", "--places", "sines"))
        report.run("mean", lambda: refused(mha))
        os.chdir("/")
    report.finish()


if __name__ == "__main__":
    main()
