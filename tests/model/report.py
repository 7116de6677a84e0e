# SPDX-License-Identifier: MIT
"""Counts the checks of a script in this folder, in the form that scripts/test.sh reads."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable


class Report:
    def __init__(self, name: str) -> None:
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0

    def check(self, name: str, ok: bool, why: str = "") -> None:
        if ok:
            self.passed += 1
            print(f"ok   {name}  {why}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL {name}: {why}", flush=True)

    def skip(self, name: str, why: str) -> None:
        self.skipped += 1
        print(f"skip {name}: {why}", flush=True)

    def run(self, name: str, body: Callable[[], None]) -> None:
        """A check that ends with an exception has failed."""
        try:
            body()
        except Exception as error:
            self.check(name, False, f"{type(error).__name__}: {error}")
            traceback.print_exc(limit=4)

    def finish(self) -> None:
        print(f"{self.name}: {self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(self.failed > 0)
