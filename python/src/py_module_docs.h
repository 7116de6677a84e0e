/* SPDX-License-Identifier: MIT */
/* The docstrings of the functions of the module. inspect reads the signature in the first line. */
#ifndef MHAP_MODULE_DOCS_H
#define MHAP_MODULE_DOCS_H

/* The options of attention() and of all functions built on it. */
#define HOW_TO_COMPUTE                                                                    \
    "scale=None, causal=False, position=None, window=None, mask=None, ignore_mask=None, " \
    "bias=None, alibi_slopes=None, sinks=None, softcap=0.0, query_lengths=None, "         \
    "key_lengths=None, query_starts=None, key_starts=None, query_documents=None, "        \
    "key_documents=None"

#define ATTENTION_DOC                                                                              \
    "attention($module, query, key, value, *, layout=\"bhld\", out=None, " HOW_TO_COMPUTE          \
    ", dropout=0.0, dropout_seed=0, gates=None, head_modes=None, head_means=None, "                \
    "return_lse=False, return_weights=False, average_weights=False, weights_heads=None, "          \
    "weights_rows=None, weights_out=None, lse_out=None, statistics=False, threads=None)\n"         \
    "--\n\n"                                                                                       \
    "softmax(scale * query . key^T + bias, masked) . value, for every batch and head.\n"           \
    "\n"                                                                                           \
    "query is (B, H, L, D), key (B, G, S, D), value (B, G, S, Dv); H is a multiple of G. With\n"   \
    "layout=\"blhd\" they are (B, L, H, D) and so on. The batch axis may be missing, and the "     \
    "head\n"                                                                                       \
    "axis too. Arrays of NumPy, PyTorch, JAX, or anything with the buffer protocol or\n"           \
    "__dlpack__; f32, f16, bf16 or f64; strided or read-only. Only the last axis must have\n"      \
    "stride 1. Nothing is copied.\n"                                                               \
    "\n"                                                                                           \
    "Returns the output, with library and element type of the query, or `out`. If the\n"           \
    "log-sum-exp, weights or statistics are requested: a Result (output, lse, weights,\n"          \
    "statistics).\n"                                                                               \
    "\n"                                                                                           \
    "scale: None is 1/sqrt(D). softcap: scores become cap * tanh(score / cap).\n"                  \
    "causal: query i attends to keys up to i + offset. window=(left, right): this many keys "      \
    "before\n"                                                                                     \
    "  and after i + offset, None for an unlimited side.\n"                                        \
    "position: the offset. \"top-left\" is 0, \"bottom-right\" is S - L, or a number, or one "     \
    "for\n"                                                                                        \
    "  each batch. Required if L != S and causal, window or ALiBi need it.\n"                      \
    "mask: bool, True attends; or floats that are added. ignore_mask: bool, True masks. bias:\n"   \
    "  floats that are added. All three broadcast to (B, H, L, S), and apply together.\n"          \
    "alibi_slopes, sinks: [H]. gates: a factor on each head, [H] or [B, H].\n"                     \
    "query_lengths, key_lengths: [B]. Rows past a length are 0, keys past one are masked.\n"       \
    "query_starts, key_starts: [B+1], packed sequences: query is (H, rows, D).\n"                  \
    "query_documents, key_documents: [B, L] and [B, S]; queries attend to keys of their number.\n" \
    "dropout, dropout_seed: of the weights, by counter; the backward pass drops the same.\n"       \
    "head_modes: \"normal\", \"uniform\" or \"mean\" for each head; head_means: [H, Dv].\n"        \
    "return_lse: (B, H, L). return_weights: True, or \"raw\", \"softcap\", \"bias\" for earlier\n" \
    "  scores: (B, H, L, S), only weights_heads and weights_rows of them if given, or their\n"     \
    "  mean over heads with average_weights. lse_out, weights_out: arrays to write them to.\n"     \
    "statistics: True, or some of \"rows\", \"heads\", \"columns\"; {\"top\": 5} lists weights.\n" \
    "threads: None is the number of set_threads(). The bits are the same for any number.\n"        \
    "\n"                                                                                           \
    ">>> import mha, numpy as np\n"                                                                \
    ">>> x = np.ones((1, 2, 3, 4), np.float32)      # batch, heads, tokens, width\n"               \
    ">>> result = mha.attention(x, x, x, causal=True, return_weights=True)\n"                      \
    ">>> result.output.shape, result.weights.shape\n"                                              \
    "((1, 2, 3, 4), (1, 2, 3, 3))\n"                                                               \
    ">>> result.weights[0, 0, 1].tolist()           # token 1 attends to two tokens\n"             \
    "[0.5, 0.5, 0.0]\n"

#define BACKWARD_DOC                                                                              \
    "attention_backward($module, d_output, query, key, value, output, lse, *, want=(\"query\", "  \
    "\"key\", \"value\"), d_lse=None, layout=\"bhld\", " HOW_TO_COMPUTE                           \
    ", dropout=0.0, dropout_seed=0, gates=None, threads=None)\n"                                  \
    "--\n\n"                                                                                      \
    "The backward pass of attention(), with the output and log-sum-exp it returned.\n"            \
    "\n"                                                                                          \
    "All options must be those of the forward call. Returns Gradients (query, key, value,\n"      \
    "bias, mask, alibi_slopes, sinks, gates), f32, each with the shape of its input, and\n"       \
    "None for those that `want` does not name. d_lse is the gradient of the log-sum-exp, if it\n" \
    "was used. For f32, f16 and bf16. Memory grows with L + S.\n"                                 \
    "\n"                                                                                          \
    ">>> import mha, numpy as np\n"                                                               \
    ">>> x = np.ones((2, 3, 4), np.float32)\n"                                                    \
    ">>> y = mha.attention(x, x, x, return_lse=True)\n"                                           \
    ">>> d = mha.attention_backward(np.ones_like(x), x, x, x, y.output, y.lse)\n"                 \
    ">>> d.value.shape, d.bias is None, float(d.value[0, 0, 0])\n"                                \
    "((2, 3, 4), True, 1.0)\n"

#define WEIGHTS_DOC                                                                                \
    "attention_weights($module, query, key, *, lse=None, heads=None, rows=None, layout=\"bhld\", " \
    "out=None, " HOW_TO_COMPUTE                                                                    \
    ", head_modes=None, return_weights=True, average_weights=False, threads=None)\n"               \
    "--\n\n"                                                                                       \
    "The weights that attention() would return, without an output; only the chosen heads and\n"    \
    "rows are computed.\n"                                                                         \
    "\n"                                                                                           \
    "With `lse`, the log-sum-exp of an earlier call, scores are computed once, not twice.\n"       \
    "\n"                                                                                           \
    ">>> import mha, numpy as np\n"                                                                \
    ">>> x = np.ones((1, 2, 3, 4), np.float32)\n"                                                  \
    ">>> mha.attention_weights(x, x, heads=[1], rows=[0, 2]).shape\n"                              \
    "(1, 1, 2, 3)\n"

#define STATISTICS_DOC                                                                          \
    "head_statistics($module, query, key, value=None, *, statistics=True, "                     \
    "layout=\"bhld\", " HOW_TO_COMPUTE                                                          \
    ", dropout=0.0, dropout_seed=0, gates=None, head_modes=None, threads=None)\n"               \
    "--\n\n"                                                                                    \
    "What heads attend to, as Statistics, without a matrix of weights and without an output.\n" \
    "\n"                                                                                        \
    "value, dropout and gates have no effect; they are accepted so that the arguments of\n"     \
    "attention() can be used.\n"                                                                \
    "\n"                                                                                        \
    ">>> import mha, numpy as np\n"                                                             \
    ">>> x = np.ones((1, 2, 3, 4), np.float32)\n"                                               \
    ">>> mha.head_statistics(x, x).heads.largest.round(3).tolist()\n"                           \
    "[[0.333, 0.333]]\n"

#define MERGE_DOC                                                                                 \
    "merge($module, output, lse, output2, lse2, *, layout=\"bhld\", out=None, lse_out=None)\n"    \
    "--\n\n"                                                                                      \
    "Combine two results of the same queries over different keys: a Result with the output and\n" \
    "lse of one call over all keys, up to rounding.\n"                                            \
    "\n"                                                                                          \
    "out and lse_out may be output and lse themselves: then the merge is in place.\n"             \
    "\n"                                                                                          \
    ">>> import mha, numpy as np\n"                                                               \
    ">>> q, k = np.ones((2, 3, 4), np.float32), np.ones((2, 6, 4), np.float32)\n"                 \
    ">>> one = mha.attention(q, k[:, :2], k[:, :2], return_lse=True)\n"                           \
    ">>> two = mha.attention(q, k[:, 2:], k[:, 2:], return_lse=True)\n"                           \
    ">>> whole = mha.attention(q, k, k, return_lse=True)\n"                                       \
    ">>> merged = mha.merge(one.output, one.lse, two.output, two.lse)\n"                          \
    ">>> bool(np.allclose(merged.lse, whole.lse))\n"                                              \
    "True\n"

#define NORM_DOC                                                                              \
    "norm($module, x, weight=None, bias=None, *, kind=\"layer\", eps=1e-05, residual=None, "  \
    "sum_out=None, out=None, threads=None)\n"                                                 \
    "--\n\n"                                                                                  \
    "norm(x + residual) * weight + bias, row by row: x is f32 (..., width), weight and bias " \
    "(width,).\n"                                                                             \
    "\n"                                                                                      \
    "kind: \"layer\" or \"rms\". sum_out: an array that gets x + residual. out may be x.\n"   \
    "\n"                                                                                      \
    ">>> import mha, numpy\n"                                                                 \
    ">>> mha.norm(numpy.array([[1, 3]], \"float32\"), eps=1e-12).tolist()\n"                  \
    "[[-1.0, 1.0]]\n"

#define SET_THREADS_DOC                      \
    "set_threads($module, count, /)\n--\n\n" \
    "Set the default number of threads of calls; None: one per CPU of this process."

#define GET_THREADS_DOC "get_threads($module)\n--\n\nThe default number of threads of calls."

#define ISA_DOC                                                                                   \
    "isa($module)\n--\n\n"                                                                        \
    "The instruction set in use: \"c\", \"avx2\", \"avx512\" or \"neon\", or one of these with\n" \
    "native arithmetic such as \"avx512bf16\". The environment variable MHA_ISA forces one."

#endif
