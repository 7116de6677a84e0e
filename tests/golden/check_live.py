#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the golden files again with the torch that is installed, and compare with those kept here.

Inputs must be the same to the bit, answers up to rounding. The last line counts the files.
"""

import os
import sys
import tempfile

import numpy as np

import make_backward_goldens
import make_layer_backward_goldens
import make_layer_goldens

MAKERS = (make_layer_goldens, make_backward_goldens, make_layer_backward_goldens)
TYPES = {name: dtype for dtype, name in make_layer_goldens.TYPES.items()}


def read(path):
    """The text of a golden file, and its arrays by name."""
    with open(path, "rb") as file:
        data = file.read()
    text, _, numbers = data.partition(b"\nend\n")
    lines, arrays, at = text.decode().split("\n"), {}, 0
    for line in lines:
        if line.startswith("tensor "):
            _, name, kind, *extents = line.split()
            shape = tuple(int(n) for n in extents)
            dtype = TYPES[kind].newbyteorder("<")
            count = int(np.prod(shape))
            arrays[name] = np.frombuffer(numbers, dtype, count, at).reshape(shape)
            at += count * dtype.itemsize
    return lines, arrays


def is_answer(name):
    """Gradients are answers, but those that are given."""
    return name in ("output", "weights") or (name.startswith("d_") and
                                             name not in ("d_output", "d_lse"))


def difference(kept, made):
    """What is wrong, in words; None where nothing is."""
    (text, arrays), (new_text, new_arrays) = read(kept), read(made)
    if text != new_text:
        return "other fields or tensors"
    for name, array in arrays.items():
        new = new_arrays[name]
        if not is_answer(name):
            if array.tobytes() != new.tobytes():
                return f"{name} is another input"
        elif not np.allclose(array, new, rtol=1e-6, atol=1e-7, equal_nan=True):
            return f"{name} is up to {np.nanmax(np.abs(array - new)):g} away"
    return None


def check(maker):
    """Make the files of one script again; how many passed and how many failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        sys.argv[1:] = [made]
        maker.main()
        kept = {name for name in os.listdir(maker.FOLDER) if name.endswith(".golden")}
        names = sorted(kept | set(os.listdir(made)))
        for name in names:
            old, new = os.path.join(maker.FOLDER, name), os.path.join(made, name)
            there = os.path.exists(old) and os.path.exists(new)
            wrong = difference(old, new) if there else "kept or made, not both"
            failed += wrong is not None
            print(f"FAIL {name}: {wrong}" if wrong else f"ok   {name}")
    return len(names) - failed, failed


def main():
    counts = [check(maker) for maker in MAKERS]
    passed, failed = (sum(numbers) for numbers in zip(*counts))
    print(f"check_live: {passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
