#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare_safetensors.py MHA COUNT [SEED]: does mha accept and refuse the same safetensors files as
the package safetensors does?

COUNT files are valid ones with a few random changes. They may differ where libmha is stricter on
purpose (src/format/safetensors.h): a key twice, \\u0000 in a text, more than 64 levels of JSON, a
tensor or a dtype spelt in another form than an object or a text.
"""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from safetensors import deserialize

DTYPES = ["F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"]
BYTES = [8, 4, 2, 2, 8, 4, 2, 1, 1, 1]
LIKELY = '0123456789[]{}",:-.eE\\u abdfhnstUF_'


def valid(rng):
    """Header and data of a valid file."""
    header, at = {}, 0
    if rng.random() < 0.3:
        header["__metadata__"] = {f"k{n}": "v" for n in range(rng.randrange(3))}
    for n in range(rng.randrange(4)):
        which = rng.randrange(len(DTYPES))
        shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
        end = at + BYTES[which]
        for extent in shape:
            end = at + (end - at) * extent
        header[f"t{n}"] = {"dtype": DTYPES[which], "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=rng.choice([(",", ":"), (", ", ": ")]))
    return text + " " * rng.randrange(9), bytes(at)


def changed(rng):
    text, data = valid(rng)
    chars = list(text)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        at = rng.randrange(len(chars)) if chars else 0
        action = rng.randrange(4)
        if action == 0 and chars:
            del chars[at]
        elif action == 1:
            chars.insert(at, rng.choice(LIKELY))
        elif action == 2 and chars:
            chars[at] = rng.choice(LIKELY)
        elif chars:
            end = min(len(chars), at + rng.randrange(30))
            chars[at:at] = chars[at:end]
    header = "".join(chars).encode()
    length = len(header) + rng.choice([0] * 30 + [-1, 1, 8, -8, 100])
    if rng.random() < 0.05:
        data = data[:-1] if rng.random() < 0.5 else data + b"x"
    return struct.pack("<Q", length % 2**64) + header + data


def reference(data):
    try:
        deserialize(data)
        return True
    except Exception:  # its errors have many types
        return False


def on_purpose(data, message):
    """Is libmha's refusal one of those that are documented?"""
    if "DuplicateKey" in message or "\\u0000" in message or "more than 64 levels" in message:
        return True
    return bool(re.search(r": not an object$|dtype is not a string$", message))


def refusals(mha, paths):
    """Path -> message of those that mha refuses."""
    result = subprocess.run([mha, "tensors", *paths], capture_output=True, check=False)
    found = {}
    for line in result.stderr.decode(errors="replace").splitlines():
        path, _, message = line.removeprefix("mha: ").partition(": ")
        if not message.startswith("warning: "):
            found[path] = message
    return found


def main():
    mha, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    accepted = differences = 0
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, count, 500):
            files = {}
            for n in range(start, min(start + 500, count)):
                path = os.path.join(folder, f"{n % 500}")
                files[path] = changed(rng)
                with open(path, "wb") as file:
                    file.write(files[path])
            refused = refusals(mha, list(files))
            for path, data in files.items():
                theirs, message = reference(data), refused.get(path)
                accepted += theirs
                if theirs == (message is None) or (theirs and on_purpose(data, message)):
                    continue
                differences += 1
                print(f"safetensors {'accepts' if theirs else 'refuses'}, mha says {message}: {data}")
    print(f"{count} files, {accepted} accepted by safetensors, {differences} differences")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
