# SPDX-License-Identifier: MIT
"""without_head.py FOLDER LAYER HEAD HEADS TO: a copy of a ViT whose output matrix has zeros where it
reads one head: the model without this head, for programs that cannot disable heads."""

import json
import shutil
import struct
import sys

folder, layer, head, heads, to = sys.argv[1:]
shutil.copytree(folder, to)
path = f"{to}/model.safetensors"
data = bytearray(open(path, "rb").read())
(length,) = struct.unpack("<Q", data[:8])
tensors = json.loads(data[8 : 8 + length])
name = f"encoder.layer.{int(layer) - 1}.attention.output.dense.weight"
(found,) = [key for key in tensors if key.endswith(name)]
rows, columns = tensors[found]["shape"]
begin, end = tensors[found]["data_offsets"]
size = (end - begin) // (rows * columns)
width = columns // int(heads) * size
for row in range(rows):
    at = 8 + length + begin + row * columns * size + (int(head) - 1) * width
    data[at : at + width] = bytes(width)
open(path, "wb").write(data)
