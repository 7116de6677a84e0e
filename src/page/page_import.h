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

enum { VIEW_LAYERS_MAX = 512, VIEW_CELLS_MAX = 100000000 };

typedef struct view_import view_import;

/* `tokens` may be NULL. NULL with a message. */
view_import *view_import_open(const char *weights, const char *tokens,
                              char message[VIEW_MESSAGE_MAX]);
void view_import_close(view_import *import);

/* 0 layers: none of this kind. */
int view_import_layers(const view_import *import, attention_kind kind);
int view_import_heads(const view_import *import, attention_kind kind);

/* The sentence of the page, an object. False: no memory, or the file cannot be read any more. */
bool view_import_put(json *j, view_import *import);

#endif
