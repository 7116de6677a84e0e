#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What programs that were compiled against libmha rely on: the exported functions, the places of all fields of all
structs, and the numbers of all constants, read from the public headers by the compiler.

    abi.py [--headers FOLDER]            compares them with packaging/abi/libmha.txt; exits with 1 if a program
                                         that was compiled before would no longer run
    abi.py --write [--headers FOLDER]    writes that file again

Additions are no break, nor are fields at the end of a struct that begins with its size. Breaks are allowed if the
version of the interface changed: the major version, before 1.0 the minor one. Machines have LP64."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DUMP = ROOT / "packaging" / "abi" / "libmha.txt"
COMPILER = os.environ.get("CC", "cc")


def preprocessed(headers, *options):
    return subprocess.run([COMPILER, "-E", "-P", *options, "-x", "c", "-I", headers, "-"], check=True, text=True,
                          input="#include <mha/mha_model.h>\n", capture_output=True).stdout


def declarators(declaration):
    """The names that "type a, *b, c[4]" or "type (*f)(type)" declares."""
    pointer = re.match(r".*?\(\s*\*\s*(\w+)\s*\)\s*\(", declaration, re.S)
    if pointer:
        return [pointer.group(1)]
    return [re.search(r"(\w+)\s*(\[[^]]*\]\s*)*$", part.strip()).group(1) for part in declaration.split(",")]


def structs(text):
    for body, name in re.findall(r"typedef struct mha_\w+\s*\{([^{}]*)\}\s*(mha_\w+);", text):
        yield name, [field for part in body.split(";") if part.strip() for field in declarators(part)]


def constants(text, headers):
    for body in re.findall(r"enum(?:\s+mha_\w+)?\s*\{([^{}]*)\}", text):
        yield from re.findall(r"\b(MHA_\w+)\b(?=\s*(?:=|,|$))", re.sub(r"=[^,]*", "=0", body))
    for name, value in re.findall(r"^#define (MHA_\w+) +(.+)$", preprocessed(headers, "-dM"), re.M):
        if re.fullmatch(r"[-(]*(0x)?[0-9a-fA-F]+[uUlL)]*", value) and not name.startswith("MHA_VERSION"):
            yield name


def measured(headers, lines):
    """What a program says that prints these expressions."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = f"{folder}/abi.c", f"{folder}/abi"
        prints = "".join(f'    printf("%s %lld\\n", "{label}", (long long)({what}));\n' for label, what in lines)
        pathlib.Path(source).write_text("#include <mha/mha_model.h>\n#include <stdio.h>\n#include <stddef.h>\n"
                                        f"int main(void)\n{{\n{prints}    return 0;\n}}\n")
        subprocess.run([COMPILER, "-w", "-I", headers, "-o", program, source], check=True)
        return subprocess.run([program], check=True, text=True, capture_output=True).stdout.splitlines()


def interface_version(headers):
    text = (pathlib.Path(headers) / "mha" / "mha.h").read_text()
    major, minor = (int(re.search(rf"#define MHA_VERSION_{part} +(\d+)", text).group(1))
                    for part in ("MAJOR", "MINOR"))
    return f"0.{minor}" if major == 0 else str(major)


def describe(headers):
    """A dictionary from what it is about to what is true of it."""
    text = preprocessed(headers)
    found = {"version": interface_version(headers)}
    for declaration in re.findall(r'__attribute__\(\(visibility\("default"\)\)\)\s*([^;{]*\)[^;{]*);', text):
        words = re.sub(r"\s*([(),*])\s*", r"\1", " ".join(declaration.split()))
        name, parameters = re.search(r"(mha_[a-z0-9_]+)[(](.*)[)]", words).groups()
        types = [re.sub(r"(?<=[ *])\w+(?=(\[\w*\])?$)", "", one).strip() for one in parameters.split(",")]
        found[f"function {name}"] = f"{words.split(name + '(')[0]}({', '.join(types)})"
    lines = []
    for name, fields in structs(text):
        lines.append((f"struct {name}", f"sizeof({name})"))
        for field in fields:
            lines.append((f"offset {name}.{field}", f"offsetof({name}, {field})"))
            lines.append((f"bytes {name}.{field}", f"sizeof((({name} *)0)->{field})"))
    for name in dict.fromkeys(constants(text, headers)):
        lines.append((f"constant {name}", name))
    lines.append(("bytes of a pointer", "sizeof(void *)"))
    for line in measured(headers, lines):
        label, value = line.rsplit(" ", 1)
        found[label] = value
    return found


def breaks(old, new):
    """What a program relies on that is no longer so."""
    for label, value in old.items():
        now = new.get(label)
        if label == "version" or now == value:
            continue
        name = label.split(" ", 1)[1]
        grows = label.startswith("struct ") and now is not None and int(now) > int(value)
        if grows and old.get(f"offset {name}.size") == "0":
            continue
        yield f"{label}: {'it is gone' if now is None else f'{now}, not {value}'}"


def main():
    parser = argparse.ArgumentParser(description="the interface of libmha for compiled programs")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--headers", default=str(ROOT / "include"))
    given = parser.parse_args()
    new = describe(given.headers)
    if new["bytes of a pointer"] != "8":
        sys.exit("abi.py: only for machines whose pointers have 8 bytes")
    if given.write:
        DUMP.write_text("".join(f"{label} = {value}\n" for label, value in sorted(new.items())))
        return
    old = dict(line.rstrip("\n").split(" = ", 1) for line in DUMP.open())
    found = list(breaks(old, new))
    added = [label for label in new if label not in old]
    print(f"{len(old)} facts of version {old['version']}, {len(found)} broken, {len(added)} added")
    if new["version"] == old["version"]:
        print("".join(f"broken: {line}\n" for line in found), end="")
        if found:
            sys.exit("Restore them, or raise the version (before 1.0 the minor, then the major one) and run "
                     "scripts/abi.py --write")


main()
