/* SPDX-License-Identifier: MIT */
/*
 * Attention weights of any model, from a safetensors file with one tensor per layer:
 *
 *      layer.0, layer.1, ...                   a model with self-attention only
 *      encoder.0, decoder.0, cross.0, ...      a model with several kinds of attention
 *
 *      layer.0.q, layer.0.k, layer.0.v         queries, keys and values, with which the page shows
 * how a weight is computed: [heads, rows, width], and for k and v [heads, columns, width]; q . k /
 * sqrt(width) are the scores. All layers of a kind, or none layer.0.norms [heads, columns]: |W_O v|
 * of each value. The same
 *
 * A tensor of weights is [heads, rows, columns] or [1, heads, rows, columns] of f32, f16, bf16 or
 * f64, after the softmax. If no head of a kind has weight above the diagonal, the kind is causal;
 * layer.N is then shown as a decoder, otherwise as an encoder. The file is not trusted: names,
 * shapes and every weight are checked before a page is made.
 */
#ifndef PAGE_IMPORT_H
#define PAGE_IMPORT_H

#include "format/json_writer.h"
#include "format/text_file.h"
#include "heads/capture.h"

enum { PAGE_LAYERS_MAX = 512, PAGE_CELLS_MAX = 100000000 }; /* cells of weights, and of vectors */

typedef struct page_import page_import;

/* Opens and checks a file of weights and one of words (page_words.h; NULL: none). Paths and
 * `message` must outlive the result, which writes later errors there, too. NULL, with a message: a
 * file cannot be read, or is wrong. */
page_import *page_import_open(const char *weights, const char *tokens,
                              char message[TEXT_FILE_MESSAGE_MAX]);
void page_import_close(page_import *import);

/* Layers of a kind, 0 if there are none, and heads per layer. */
int page_import_layers(const page_import *import, attention_kind kind);
int page_import_heads(const page_import *import, attention_kind kind);

/* Writes the sentence of the page, an object. False: out of memory, or the file can no longer be
 * read. */
bool page_import_put(json *j, page_import *import);

#endif
