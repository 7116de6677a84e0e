/* SPDX-License-Identifier: MIT */
#include "explain_layer.h"

#include "convert.h"
#include "word.h"

static bool has_weights(const layer_word *w)
{
    return w->kind != WORD_CACHE;
}

static bool has_heads(const layer_word *w)
{
    return w->kind != WORD_LINEAR && w->kind != WORD_OPENBLAS;
}

static void put_widths(word_printer *p, const layer_word *w)
{
    printer_put(p, "widths     ");
    if (w->preset != NULL)
        printer_put(p, "%s: ", w->preset->title);
    if (has_weights(w))
        printer_put(p, "model %td, ", w->e);
    printer_put(p, "%td query heads of %td on %td key/value heads", w->h, w->d, w->g);
    if (w->v != w->d)
        printer_put(p, ", values of %td", w->v);
    printer_put(p, "\n");
}

static void put_product(word_printer *p, const char *name, const layer_word *w, ptrdiff_t inputs,
                        ptrdiff_t outputs)
{
    const ptrdiff_t rows = layer_word_rows(w);
    printer_put(p, "%-10s %td row%s, %td inputs, %td outputs\n", name, rows, rows == 1 ? "" : "s",
                inputs, outputs);
}

static void put_products(word_printer *p, const layer_word *w)
{
    printer_put(p, "weights    %.0f numbers, stored as %s: %.2f MB\n", layer_word_weights(w),
                dtype_name(w->stored), layer_word_weight_bytes(w) * 1e-6);
    if (has_heads(w)) {
        put_product(p, "q, k and v", w, w->e, w->h * w->d + w->g * (w->d + w->v));
        put_product(p, "output", w, w->h * w->v, w->e);
    } else {
        put_product(p, "product", w, w->k, w->n);
    }
}

/* The heads of a layer are a problem of the operator's, side by side in memory. */
static void put_heads(word_printer *p, const layer_word *w)
{
    char text[WORD_TEXT_MAX];
    problem_word heads = word_default();
    heads.b = w->b;
    heads.h = w->h;
    heads.g = w->g;
    heads.l = w->l;
    heads.s = w->kind == WORD_LAYER ? w->l : w->s;
    heads.d = w->d;
    heads.v = w->v;
    heads.causal = w->causal || (w->kind != WORD_LAYER && w->l > 1);
    heads.position =
        heads.causal && heads.s != heads.l ? MHA_POSITION_BOTTOM_RIGHT : heads.position;
    heads.layout = WORD_BLHD;
    word_print(&heads, text, sizeof text);
    printer_put(p, "heads      as %s\n", text);
    if (w->kind != WORD_LAYER)
        printer_put(p, "cache      %td tokens of %td sequence%s as %s: %.2f MB\n", w->s, w->b,
                    w->b == 1 ? "" : "s", dtype_name(w->cache), layer_word_cache_bytes(w) * 1e-6);
}

static void put_work(word_printer *p, const layer_word *w)
{
    const double flops = layer_word_flops(w);
    const double products = 2.0 * (double)layer_word_rows(w) * layer_word_weights(w);
    const double bytes = layer_word_weight_bytes(w) + layer_word_cache_bytes(w);
    printer_put(p, "flops      %.6g", flops);
    if (has_weights(w) && has_heads(w))
        printer_put(p, ": %.0f %% in products, %.0f %% in heads", 100.0 * products / flops,
                    100.0 * (flops - products) / flops);
    printer_put(p, "\nreads      %.6g bytes of weights and cache: %.3g flops a byte\n", bytes,
                flops / bytes);
}

size_t explain_layer(const layer_word *w, char *text, size_t size)
{
    word_printer p = {text, size, 0};
    if (has_heads(w))
        put_widths(&p, w);
    if (has_weights(w))
        put_products(&p, w);
    if (has_heads(w))
        put_heads(&p, w);
    put_work(&p, w);
    return p.used;
}
