# SPDX-License-Identifier: MIT
"""The examples that need NumPy only run, and what they assert holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")

FOLDER = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str, folder: Path) -> str:
    """What an example prints, run as a user would, but not from this tree."""
    command = [sys.executable, str(FOLDER / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_numpy_attention(tmp_path: Path) -> None:
    text = run("numpy_attention.py", folder=tmp_path)
    assert "scale 100.0: weights [0. 0. 1. 0.], answer 30.00" in text


def test_tour(tmp_path: Path) -> None:
    text = run("tour.py", "heads.svg", folder=tmp_path)
    assert "the same bits as one call" in text
    assert (tmp_path / "heads.svg").read_text().count("yesterday") >= 2
