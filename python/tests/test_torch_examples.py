# SPDX-License-Identifier: MIT
"""The documentation of mha.torch is correct: docstrings, examples, the page."""

import doctest
import re
import runpy
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import mha.torch  # noqa: E402

PYTHON = Path(__file__).parents[1]
PAGE = PYTHON.parent / "docs" / "python-torch.md"


def test_docstrings() -> None:
    with warnings.catch_warnings():
        result = doctest.testmod(mha.torch)
    assert result.failed == 0 and result.attempted >= 15


@pytest.mark.parametrize("name", mha.torch.__all__)
def test_every_name_is_documented(name: str) -> None:
    assert getattr(mha.torch, name).__doc__
    assert name in PAGE.read_text(encoding="utf-8") or name == "Result"


def test_page() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= 6
    with warnings.catch_warnings():
        names: dict = {}
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)


@pytest.mark.parametrize(
    "name, words", [("torch_drop_in", "the same output"), ("torch_gates", "head 7")]
)
def test_examples(name: str, words: str, capsys: pytest.CaptureFixture) -> None:
    runpy.run_path(str(PYTHON / "examples" / f"{name}.py"), run_name="__main__")
    assert words in capsys.readouterr().out


def test_course(capsys: pytest.CaptureFixture) -> None:
    """What the chapter of the course says that its program prints is what it prints."""
    chapter = (PYTHON.parent / "docs" / "course" / "11_pytorch.md").read_text(encoding="utf-8")
    name = "python/examples/torch_multi_head.py"
    wanted = re.search(rf"^```\n\$ python {name}\n(.*?)^```$", chapter, re.M | re.S)
    assert wanted is not None
    runpy.run_path(str(PYTHON.parent / name), run_name="__main__")
    assert capsys.readouterr().out == wanted[1]
