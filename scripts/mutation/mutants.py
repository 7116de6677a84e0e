# SPDX-License-Identifier: MIT
"""Small changes of C code that a test should notice.

The code is formatted by clang-format, so binary operators have spaces around them and a statement is
a line or a few; a regular expression finds both. Comments, strings and the preprocessor's lines are
left alone.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
    "+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "&=": "|=",
}  # fmt: skip
BINARY = re.compile(r"(?<= )(" + "|".join(map(re.escape, sorted(OPERATORS, key=len, reverse=True))) + r")(?= )")
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
NEGATION = re.compile(r"!(?=[\w(])")
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()(.*)(\) \{)$")
STATEMENT = re.compile(r"^(\s+)(?:(?!return|goto|case|else)[\w>.\[\]()*-]+\(.*\);|break;|continue;)$")
HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int  # from 1
    column: int
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.old.strip()} -> {self.new.strip()}"

    def applied(self, text: str) -> str:
        lines = text.split("\n")
        line = lines[self.line - 1]
        begin = self.column
        assert line[begin : begin + len(self.old)] == self.old
        lines[self.line - 1] = line[:begin] + self.new + line[begin + len(self.old) :]
        return "\n".join(lines)


def visible(text: str) -> list[str]:
    """The lines, with spaces instead of comments, strings and what the preprocessor reads."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", "\0", match.group())

    lines = HIDDEN.sub(blank, text).split("\n")
    continued = False
    for n, line in enumerate(lines):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        if directive:
            lines[n] = ""
    return lines


def next_number(digits: str) -> str:
    return "1" if digits == "0" else "0" if digits == "1" else str(int(digits) + 1)


def of_line(file: str, number: int, line: str, original: str) -> list[Mutant]:
    """All mutants of a line of code; `original` has its comments and strings too."""

    def at(column: int, length: int, new: str) -> Mutant:
        return Mutant(file, number, column, original[column : column + length], new)

    found = [at(m.start(), len(m.group()), OPERATORS[m.group()]) for m in BINARY.finditer(line)]
    found += [at(m.start(), len(m.group()), next_number(m.group())) for m in NUMBER.finditer(line)]
    found += [at(m.start(), 1, "") for m in NEGATION.finditer(line)]
    condition = CONDITION.match(line)
    if condition:
        begin, end = condition.span(2)
        found.append(at(begin, end - begin, f"!({original[begin:end]})"))
    statement = STATEMENT.match(line)
    if statement:
        begin = len(statement.group(1))
        found.append(at(begin, len(line) - begin, ";"))
    return found


def of_file(root: Path, file: str) -> list[list[Mutant]]:
    """The mutants of a file, by line; lines without any are left out."""
    text = (root / file).read_text(encoding="utf-8")
    originals = text.split("\n")
    lines = [of_line(file, n + 1, line, originals[n]) for n, line in enumerate(visible(text))
             if line[:1] == " "]  # fmt: skip
    return [mutants for mutants in lines if mutants]


def choose(root: Path, files: list[str], count: int, seed: int) -> list[Mutant]:
    """A random choice: every line of code is as likely as any other."""
    draw = random.Random(seed)
    lines = [mutants for file in files for mutants in of_file(root, file)]
    draw.shuffle(lines)
    return [draw.choice(mutants) for mutants in lines[:count]]
