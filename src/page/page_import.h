/* SPDX-License-Identifier: MIT */
/*
 * Attention weights of any model, from a safetensors file with one tensor a layer:
 *
 *      layer.0, layer.1, ...      self-attention of a model that has no other
 *      encoder.0, decoder.0, cross.0, ...      of a model that has several kinds
 *
 * A tensor is [heads, rows, columns] or [1, heads, rows, columns] of f32, f16, bf16 or f64, after
 * the softmax. What looks only back in every head is causal; layers of that kind count as those of
 * a decoder. Nothing is believed: names, shapes and every weight are checked before a page is made.
 */
#ifndef PAGE_IMPORT_H
#define PAGE_IMPORT_H

#include "format/json_writer.h"
#include "format/text_file.h"
#include "heads/capture.h"

enum { PAGE_LAYERS_MAX = 512, PAGE_CELLS_MAX = 100000000 };

typedef struct page_import page_import;

/* `tokens` may be NULL. NULL with a message. */
page_import *page_import_open(const char *weights, const char *tokens,
                              char message[TEXT_FILE_MESSAGE_MAX]);
void page_import_close(page_import *import);

/* 0 layers: none of this kind. */
int page_import_layers(const page_import *import, attention_kind kind);
int page_import_heads(const page_import *import, attention_kind kind);

/* The sentence of the page, an object. False: no memory, or the file cannot be read any more. */
bool page_import_put(json *j, page_import *import);

#endif
