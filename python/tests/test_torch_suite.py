# SPDX-License-Identifier: MIT
"""PyTorch's own tests of attention through libmha: every test on the CPU that passes with torch
alone passes with mha.torch.sdpa(), or is in DIFFERENT with its reason.

The files are not part of PyTorch's wheel: MHA_PYTORCH_TESTS is the folder `test` of its sources,
best of the version that is installed. They need the package expecttest.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FOLDER = os.environ.get("MHA_PYTORCH_TESTS")
FILE = "test_transformers.py"

# Runs each test within the mode.
PLUGIN = """
import pytest
import mha.torch

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    with mha.torch.sdpa():
        yield
"""

# Parts of the names of tests that pass with torch alone only, and why.
DIFFERENT = {
    "fastpath": "torch does not take its fused path while a mode is active",
    "dropout_p_0_2": "the library chooses which weights are dropped",
    "dropout_p_0_5": "the library chooses which weights are dropped",
    "causal_attn_mask": "a mask may stand beside is_causal, where torch raises an error",
    "transformerencoderlayer_subclass": "a scripted model, which no mode reaches, drops others",
}


def passed(folder: Path, *more: str) -> set[str]:
    """The names of the tests that pass."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *more]
    ran = subprocess.run(
        [*command, FILE], cwd=FOLDER, env=environment, capture_output=True, text=True, check=False
    )
    lines = (line.split() for line in ran.stdout.splitlines())
    found = {words[1].rpartition("::")[2] for words in lines if words[:1] == ["PASSED"]}
    assert found, ran.stdout[-2000:] + ran.stderr[-2000:]
    return found


@pytest.mark.skipif(FOLDER is None, reason="MHA_PYTORCH_TESTS is not set")
def test_what_passes_with_torch_passes_with_us(tmp_path: Path) -> None:
    (tmp_path / "mha_route.py").write_text(PLUGIN, encoding="utf-8")
    lost = passed(tmp_path) - passed(tmp_path, "-p", "mha_route")
    unknown = {name for name in lost if not any(part in name for part in DIFFERENT)}
    assert not unknown
