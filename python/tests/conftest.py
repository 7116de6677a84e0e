# SPDX-License-Identifier: MIT
"""What all test files share: numbers to test with, and a last line for scripts/test.sh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def _first_line(report: Any) -> str:
    """The reason why a test was skipped or has failed, in one line."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return next((line for line in text.splitlines() if line.strip()), "no reason given")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print a line per test that failed or was skipped, then their numbers."""
    stats = terminalreporter.stats
    failed = stats.get("failed", []) + stats.get("error", [])
    skipped = stats.get("skipped", [])
    for word, reports in (("FAIL", failed), ("skip", skipped)):
        for report in reports:
            name = report.nodeid.rpartition("::")[2]
            terminalreporter.write_line(f"{word} {name}: {_first_line(report)}")
    files = {Path(argument.partition("::")[0]).stem for argument in config.args}
    name = files.pop() if len(files) == 1 else "python"
    passed = len(stats.get("passed", []))
    terminalreporter.write_line(
        f"{name}: {passed} passed, {len(failed)} failed, {len(skipped)} skipped"
    )


@pytest.fixture
def random() -> Any:
    """A generator of random numbers, the same in every run."""
    numpy = pytest.importorskip("numpy")
    return numpy.random.default_rng(20170612)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """One thread for torch: models as small as those of tests are slower with more."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
