# SPDX-License-Identifier: MIT
"""The installed package: the wheel, the extension module, stubs, and the examples of its pages."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import mha
import mha._core

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", ROOT / "docs" / "python.md"]
COMPILED = Path(mha._core.__file__)

# Names of the limited API that begin with an underscore, also those of functions with Py_ssize_t.
STABLE_PRIVATE = {
    "_PyObject_New",
    "_Py_Dealloc",
    "_Py_FalseStruct",
    "_Py_NoneStruct",
    "_Py_TrueStruct",
}


@pytest.fixture
def wheel() -> Path:
    """The wheel that the package was installed from."""
    name = os.environ.get("MHA_WHEEL")
    if not name:
        pytest.skip("MHA_WHEEL does not name a wheel; scripts/test.sh makes one")
    return Path(name).resolve()


def run(*command: object, **settings: Any) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name}")
    return path


# -------------------------------------------------------------------- wheel -----


def test_the_package_under_test_is_the_installed_one(wheel: Path) -> None:
    assert ROOT / "python" not in Path(mha.__file__).resolve().parents
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("mha/_core.abi3.so") == COMPILED.read_bytes()


def test_the_wheel_is_for_every_later_python(wheel: Path) -> None:
    assert re.fullmatch(r"mha-[\d.]+-cp311-abi3-linux_\w+\.whl", wheel.name)


def test_the_wheel_has_what_it_must_and_no_more(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    assert {"mha/__init__.py", "mha/py.typed", "mha/_core.pyi", "mha/_core.abi3.so"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    ours = re.compile(r"mha/[\w/]+\.(py|pyi)|mha/(py\.typed|_core\.abi3\.so)|mha-[^/]+/.*")
    assert [name for name in names if not ours.fullmatch(name)] == []
    assert not any("__pycache__" in name or "/test" in name for name in names)


def test_versions_agree() -> None:
    try:
        installed = metadata.version("mha")
    except metadata.PackageNotFoundError:
        pytest.skip("mha is not installed, only on the path")
    assert installed == mha.__version__


def test_a_clean_venv_needs_nothing_else(wheel: Path, tmp_path: Path) -> None:
    """Only the wheel, without NumPy: the result for arrays of the standard library is an
    mha.Array."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    options = ("--quiet", "--no-index", "--no-deps", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel)
    script = """
import sys
from array import array
import mha

x = memoryview(array("f", range(24))).cast("B").cast("f", (2, 3, 4))
y = mha.attention(x, x, x, causal=True)
assert type(y) is mha.Array and y.shape == (2, 3, 4), y
assert memoryview(y).tolist()[0][0] == [0, 1, 2, 3]
layer = mha.Layer.random(4, 2)
assert memoryview(layer(x)).shape == (2, 3, 4)
assert "svg" in mha.Heatmap(mha.attention_weights(x, x))._repr_html_()
assert not {"numpy", "torch", "onnx", "transformers"} & set(sys.modules)
"""
    run(python, "-P", "-c", script, env={"PATH": os.environ["PATH"]})


def test_an_sdist_builds(wheel: Path, tmp_path: Path) -> None:
    """An sdist of this folder contains everything that CMake needs to configure it."""
    pytest.importorskip("scikit_build_core")
    tool("cmake")
    script = "import scikit_build_core.build as b, sys; print(b.build_sdist(sys.argv[1]))"
    name = run(sys.executable, "-c", script, tmp_path, cwd=ROOT / "python").split()[-1]
    shutil.unpack_archive(tmp_path / name, tmp_path)
    folder = tmp_path / name.removesuffix(".tar.gz")
    assert not any((folder / "libmha").rglob("*.o"))
    choice = f"-DPython_EXECUTABLE={sys.executable}"
    run("cmake", "-S", folder, "-B", tmp_path / "build", choice)


# ----------------------------------------------------------------- compiled -----


def test_it_exports_its_entry_alone() -> None:
    lines = run(tool("nm"), "-D", "--defined-only", COMPILED).splitlines()
    assert [line.split()[-1] for line in lines] == ["PyInit__core"]


def test_it_needs_only_the_system() -> None:
    text = run(tool("readelf"), "-d", COMPILED)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", text))
    assert needed and needed <= {
        "libc.so.6",
        "libm.so.6",
        "libpthread.so.0",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
        "libpcre2-8.so.0",  # the tokenizers of models
        "libutf8proc.so.2",
        "libutf8proc.so.3",
    }


def test_it_keeps_to_the_limited_api() -> None:
    lines = run(tool("nm"), "-D", "--undefined-only", COMPILED).splitlines()
    names = {line.split()[-1].partition("@")[0] for line in lines}
    assert any(name.startswith("PyType_FromModuleAndSpec") for name in names)
    private = {name for name in names if name.startswith("_Py") and not name.endswith("_SizeT")}
    assert private <= STABLE_PRIVATE


# ------------------------------------------------------------- names, types -----


def public_names(path: Path) -> set[str]:
    """Functions, classes and variables at the top of a file of stubs."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_stubs_know_every_name() -> None:
    there = {name for name in dir(mha._core) if not name.startswith("__")}
    stubs = public_names(COMPILED.parent / "_core.pyi")
    assert there - stubs == set()
    of_models = set() if hasattr(mha._core, "Model") else {"Model", "State", "Tokenizer"}
    assert {name for name in stubs - there if not name.startswith("_")} == of_models


def test_it_runs_without_models(tmp_path: Path) -> None:
    """A build without libmha_model can be imported, and says what it needs to open a model."""
    script = """
import sys, mha._core
for name in ("Model", "State", "Tokenizer"):
    vars(mha._core).pop(name, None)
for name in [name for name in sys.modules if name.startswith("mha") and name != "mha._core"]:
    del sys.modules[name]
import mha
for thing in (mha.Model, mha.Tokenizer):
    try:
        thing.open("path")
    except ImportError as error:
        print("PCRE2" in str(error))
"""
    environment = {**os.environ, "PYTHONPATH": str(COMPILED.parents[1])}
    assert run(sys.executable, "-c", script, env=environment).split() == ["True", "True"]


@pytest.mark.parametrize(
    "name", ["Layer", "KVCache", "Tape", "Linear", "FeedForward", "Model", "State", "Tokenizer"]
)
def test_stubs_know_every_method(name: str) -> None:
    if not hasattr(mha._core, name):
        pytest.skip("built without libmha_model")
    tree = ast.parse((COMPILED.parent / "_core.pyi").read_text(encoding="utf-8"))
    stub = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    known = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    there = {n for n in vars(getattr(mha._core, name)) if not n.startswith("__")}
    assert there == {n for n in known if not n.startswith("__")}


def test_parts_are_imported_when_they_are_used() -> None:
    """And say what is missing."""
    script = """
import sys
import mha
assert not {"numpy", "torch", "transformers", "onnx"} & set(sys.modules)
assert {"hf", "onnx", "torch"} <= set(dir(mha))
sys.modules.update(dict.fromkeys(("numpy", "torch", "transformers", "onnx")))  # none is there
for name, wanted in (("torch", "PyTorch"), ("onnx", "NumPy and onnx"), ("hf", "transformers")):
    try:
        getattr(mha, name)
    except ImportError as error:
        print(wanted in str(error) and "pip install" in str(error))
try:
    mha.tensor
except AttributeError as error:
    print("no attribute 'tensor'" in str(error))
"""
    environment = {**os.environ, "PYTHONPATH": str(COMPILED.parents[1])}
    assert run(sys.executable, "-c", script, env=environment).split() == ["True"] * 4


def test_a_part_is_there_without_its_import() -> None:
    pytest.importorskip("torch")
    script = "import mha; print(mha.torch.attention.__module__, mha.torch is mha.torch)"
    environment = {**os.environ, "PYTHONPATH": str(COMPILED.parents[1])}
    assert run(sys.executable, "-c", script, env=environment).split() == ["mha.torch", "True"]


def test_the_package_as_a_program(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from mha import __main__ as program

    assert program.main([]) == 0
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert said["mha"] == mha.__version__ and said["self-check"].startswith("ok (8 cases")
    assert said["instruction"] == f"set  {mha.isa()}" and int(said["threads"]) > 0
    right = mha.attention
    monkeypatch.setattr(mha, "attention", lambda *x, **o: right(*x, **{**o, "scale": 0.31}))
    assert program.main([]) == 1
    assert "self-check       FAILED" in capsys.readouterr().out


@pytest.mark.parametrize("name", mha.__all__)
def test_everything_public_is_explained(name: str) -> None:
    thing = getattr(mha, name)
    assert (thing.__doc__ or "").strip()
    if isinstance(thing, type):
        for part in vars(thing):
            if not part.startswith("_") and part not in getattr(thing, "_fields", ()):
                member = getattr(thing, part)
                slot = part in getattr(thing, "__slots__", ()) or not callable(member)
                assert slot or (member.__doc__ or "").strip(), f"{name}.{part}"


# ----------------------------------------------------------------- examples -----


@pytest.mark.parametrize("name", ["mha", "mha._core", "mha._types", "mha.heatmap", "mha.layer"])
def test_examples_of_docstrings(name: str) -> None:
    pytest.importorskip("numpy")
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_there_are_examples_to_run() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [importlib.import_module(name) for name in ("mha", "mha._core", "mha.layer")]
    found = {test.name for module in modules for test in finder.find(module) if test.examples}
    assert {"mha._core.attention", "mha.layer.Layer", "mha.KVCache"} <= found


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_what_pages_show_runs(page: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Run the blocks of a page in order; those for a library that is not installed are skipped."""
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    done = 0
    for block in blocks(page):
        if "Model.open(" in block or "model.tokenizer" in block:
            continue  # test_model.py has models for these
        try:
            exec(compile(block, str(page), "exec"), names)
            done += 1
        except ModuleNotFoundError as error:
            assert error.name in ("torch", "transformers", "onnx")
    assert done >= 1
