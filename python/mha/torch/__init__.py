# SPDX-License-Identifier: MIT
"""libmha for PyTorch.

    attention                       every option of the operator, with gradients
    scaled_dot_product_attention    torch's function, drop-in; weights on request
    explain                         whether libmha or torch computes such a call, and why
    sdpa                            context manager: existing code runs on libmha
    MultiheadAttention              torch's module, drop-in, same state dict
    replace, restore                swap all such modules of a model, and back
    onnx_translations               the operator as ONNX's Attention, for torch.onnx.export()
    set_arithmetic                  how bfloat16 is computed: natively (the default) or in float32
    FallbackWarning                 says when torch computes instead, and why

The operator is torch.ops.mha.attention. Threads are torch's: torch.set_num_threads().
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(f"mha.torch needs PyTorch ({error}): pip install torch") from error

from ._attention import Result, attention
from ._module import MultiheadAttention, replace, restore
from ._onnx import onnx_translations
from ._operator import set_arithmetic
from ._route import sdpa
from ._sdpa import FallbackWarning, explain, scaled_dot_product_attention

__all__ = [
    "FallbackWarning",
    "MultiheadAttention",
    "Result",
    "attention",
    "explain",
    "onnx_translations",
    "replace",
    "restore",
    "scaled_dot_product_attention",
    "sdpa",
    "set_arithmetic",
]

# Pickles and messages use the module that users import, not the file of the definition.
for _name in __all__:
    globals()[_name].__module__ = __name__
