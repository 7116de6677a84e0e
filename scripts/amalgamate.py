# SPDX-License-Identifier: MIT
"""libmha as one source file: amalgamate.py FOLDER [COMPILER]

Writes FOLDER/mha.h, a copy of the public header, and FOLDER/mha.c, which is compiled by one line:

    cc -O2 -c mha.c

Headers of the core come first, then its files one after another, each as it is but for names that two
files define: they get the name of the file as a suffix. The kernels follow, once per instruction set,
after the preprocessor, since their names are put together by macros; pragmas give every one of them its
instruction set, so the compiler needs no flags."""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

AVX2 = "avx2,fma,f16c"
AVX512 = f"avx512f,avx512bw,avx512dq,avx512vl,{AVX2}"
# The condition, and for each file of kernels/ its instruction set ("": that of the machine).
KERNELS = [
    ("1", [("kernels_c", ""), ("native_c", "")]),
    (
        "defined(MHA_HAVE_AVX2)",
        [
            ("kernels_avx2", AVX2),
            ("native_avx2", AVX2),
            ("native_avx2vnni", f"{AVX2},avxvnni"),
            ("kernels_avx512", AVX512),
            ("native_avx512", AVX512),
            ("native_avx512vnni", f"{AVX512},avx512vnni"),
            ("native_avx512bf16", f"{AVX512},avx512vnni,avx512bf16"),
            ("pairs_avx512bf16", f"{AVX512},avx512vnni,avx512bf16"),
        ],
    ),
    (
        "defined(MHA_HAVE_NEON)",
        [
            ("kernels_neon", ""),
            ("native_neon", ""),
            ("native_neondot", "arch=armv8.2-a+dotprod"),
            ("native_neonbf16", "arch=armv8.2-a+dotprod+bf16"),
            ("pairs_neonbf16", "arch=armv8.2-a+dotprod+bf16"),
        ],
    ),
]

BEGIN = """/* SPDX-License-Identifier: MIT */
/*
 * libmha {version} as one file, made by "make amalgamation" from the sources. Compile it with
 *
 *      cc -O2 -c mha.c
 *
 * and link with -lm -pthread. gcc 11 or clang 14 and later; instruction sets are chosen at run time:
 * AVX2 and AVX-512 on x86-64, NEON on AArch64 (with gcc), plain C everywhere.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wunused-function" /* no table of kernels needs all of them */
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#else
#error "mha.c is written for gcc and clang"
#endif
#if defined(__x86_64__)
#define MHA_HAVE_AVX2
#define MHA_HAVE_AVX512
#include <immintrin.h>
#elif defined(__aarch64__) && !defined(__clang__)
#define MHA_HAVE_NEON
#include <arm_neon.h>
#endif
#include "mha.h"
"""

TOKEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\.?\d[\w.]*|->|\.\.\.|\s+|.',
    re.S,
)
NAME = re.compile(r"[A-Za-z_]\w*$")
KEYWORDS = set(
    "if else for while do switch case default return break continue goto sizeof static const inline "
    "struct union enum typedef extern void char short int long float double signed unsigned volatile "
    "restrict register auto _Alignas _Alignof _Bool _Static_assert __attribute__ __asm__ __extension__ "
    "_Pragma".split()
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*$", re.M)
INCLUDE = re.compile(r'^#include (["<])([^">]+)[">].*$', re.M)


def is_space(token: str) -> bool:
    return token.isspace() or token.startswith(("/*", "//"))


def file_scope_names(text: str) -> set[str]:
    """Functions, variables, types, tags and constants of enumerations that a file defines."""
    tokens = [t for t in TOKEN.findall(DIRECTIVE.sub("", text)) if not is_space(t)]
    names: set[str] = set()
    braces = parens = 0
    statement: list[str] = []  # tokens at file scope since the last one ended
    in_enum = False
    for n, token in enumerate(tokens):
        following = tokens[n + 1] if n + 1 < len(tokens) else ""
        if token in "([":
            parens += 1
        elif token in ")]":
            parens -= 1
        elif token == "{":
            braces += 1
            in_enum = braces == 1 and "enum" in statement and "(" not in statement
        elif token == "}":
            braces -= 1
            if braces == 0 and "(" in statement and "=" not in statement: # of a function
                statement = []
                continue
        elif NAME.match(token) and token not in KEYWORDS and not token.startswith("__"):
            before = tokens[n - 1]
            if in_enum and braces == 1 and before in "{,":
                names.add(token)
            elif braces == 0 and before in ("struct", "union", "enum") and following == "{":
                names.add(token)
            elif braces == 0 and parens == 0 and following in ("(", "[", "=", ";", ",", ")"):
                names.add(token)
            elif statement[:1] == ["typedef"] and following == "__attribute__" and braces == 0:
                names.add(token)
        if braces == 0:
            statement = [] if token == ";" and parens == 0 else [*statement, token]
    return names


def rename(text: str, names: set[str], suffix: str) -> str:
    """The text with a suffix on these names, but not where they are fields of structures."""
    tokens = TOKEN.findall(text)
    dense = [n for n, t in enumerate(tokens) if not is_space(t)]
    after = {a: b for a, b in zip(dense, dense[1:])}
    before = {b: a for a, b in zip(dense, dense[1:])}
    in_struct: list[bool] = []
    for n in dense:
        token = tokens[n]
        previous = tokens[before[n]] if n in before else ""
        if token == "{":
            one = before.get(n)
            two = before.get(one) if one is not None else None
            in_struct.append(
                previous in ("struct", "union")
                or (two is not None and tokens[two] in ("struct", "union"))
            )
        elif token == "}" and in_struct:
            in_struct.pop()
        elif token in names and previous not in (".", "->"):
            following = tokens[after[n]] if n in after else ""
            if not (in_struct and in_struct[-1] and following in (";", ",", "[", ":")):
                tokens[n] = token + suffix
    return "".join(tokens)


def macros(text: str) -> list[str]:
    return sorted(set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M)) - {"_GNU_SOURCE"})


class Amalgamation:
    def __init__(self, compiler: str) -> None:
        self.compiler = compiler
        self.headers: dict[str, str] = {}  # in the order in which they are needed

    def add_headers(self, text: str) -> None:
        for _, name in INCLUDE.findall(text):
            if name.startswith(("core/", "base/")) and name not in self.headers:
                content = (SOURCE / name).read_text()
                self.add_headers(content)
                self.headers.setdefault(name, content)

    @staticmethod
    def without_own_includes(text: str) -> str:
        return INCLUDE.sub(
            lambda m: "" if m[2].startswith(("core/", "base/", "mha/")) else m[0], text
        )

    def preprocessed(self, name: str) -> str:
        """A file of kernels/ after the preprocessor; headers of the core and of the system stay out."""
        with tempfile.TemporaryDirectory() as folder:
            for header in ("float", "immintrin", "arm_neon", "math", "stdbool", "stddef", "stdint", "string"):
                (Path(folder) / f"{header}.h").touch()
            guards = [
                f"-D{guard}"
                for text in self.headers.values()
                for guard in re.findall(r"^#ifndef (\w+_H)$", text, re.M)
            ]
            command = [self.compiler, "-E", "-P", "-undef", "-nostdinc", f"-I{folder}", f"-I{SOURCE}"]
            path = SOURCE / "core/kernels" / f"{name}.c"
            done = subprocess.run([*command, *guards, str(path)], capture_output=True, text=True, check=True)
            return done.stdout

    def kernels(self, name: str, target: str) -> str:
        text = self.preprocessed(name)
        own = {n for n in file_scope_names(text) if not n.startswith(("mhak_", "MHAK_"))}
        text = rename(text, own, "_" + name)
        if not target:
            return f"/* {name}.c */\n{text}"
        wide = ",prefer-vector-width=512" if "avx512" in target else ""
        return f"""/* {name}.c */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("{target}"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("{target}{wide}")
#endif
{text}
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
"""

    def write(self, folder: Path) -> None:
        public = (ROOT / "include/mha/mha.h").read_text()
        version = ".".join(re.findall(r"^#define MHA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", public, re.M))
        core = [p for p in sorted((SOURCE / "core").glob("*.c")) if not p.stem.endswith(("_windows", "_apple"))]
        files = [SOURCE / "base/replace_file.c", *core]
        texts = {path.stem: path.read_text() for path in files}
        for text in texts.values():
            self.add_headers(text)
        counts = Counter(n for text in texts.values() for n in file_scope_names(text))
        twice = {n for n, count in counts.items() if count > 1 and not n.startswith(("mha_", "mhai_", "mhak_"))}
        parts = [BEGIN.replace("{version}", version)]
        for name, text in self.headers.items():
            parts.append(f"/* {name} */\n{self.without_own_includes(text)}")
        for stem, text in texts.items():
            own = twice & file_scope_names(text)
            undefined = "".join(f"#undef {name}\n" for name in macros(text))
            body = rename(self.without_own_includes(text), own, "_" + stem)
            parts.append(f"/* {stem}.c */\n{body}\n{undefined}")
        for condition, tables in KERNELS:
            content = "\n".join(self.kernels(*table) for table in tables)
            parts.append(f"#if {condition}\n{content}\n#endif\n")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mha.h").write_text(public)
        (folder / "mha.c").write_text("\n".join(parts))


def main() -> None:
    folder = Path(sys.argv[1])
    Amalgamation(sys.argv[2] if len(sys.argv) > 2 else "cc").write(folder)
    print(f"{folder}/mha.c: {len((folder / 'mha.c').read_text().splitlines())} lines")


main()
