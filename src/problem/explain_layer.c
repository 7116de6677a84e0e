/* SPDX-License-Identifier: MIT */
/*
 * What a layer word costs, in words: the shape of its weights and heads, the products it needs, and
 * its memory. `mha explain` prints it; the operator's own plans are explained by the library.
 */
#include "problem/explain_layer.h"

#include "format/convert.h"
#include "problem/problem_word.h"

static bool has_weights(const layer_word *w)
{
    return w->kind != WORD_CACHE;
}

static bool has_heads(const layer_word *w)
{
    return w->kind != WORD_LINEAR && w->kind != WORD_OPENBLAS;
}

static const char *plural(ptrdiff_t count)
{
    return count == 1 ? "" : "s";
}

/* A number with the unit that suits its size, as mha_plan_explain() writes it. */
static void put_amount(word_printer *p, double x, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    int n = 0;
    for (; n < 5 && x >= 1000.0; n++)
        x /= 1000.0;
    printer_put(p, "%.4g %s%s", x, prefixes[n], unit);
}

static void put_widths(word_printer *p, const layer_word *w)
{
    printer_put(p, "widths     ");
    if (w->preset != NULL)
        printer_put(p, "%s: ", w->preset->title);
    if (has_weights(w))
        printer_put(p, "model %td, ", w->e);
    printer_put(p, "%td query head%s of %td on %td key/value head%s", w->h, plural(w->h), w->d,
                w->g, plural(w->g));
    if (w->v != w->d)
        printer_put(p, ", values of %td", w->v);
    printer_put(p, "\n");
}

static void put_product(word_printer *p, const char *name, const layer_word *w, ptrdiff_t inputs,
                        ptrdiff_t outputs)
{
    const ptrdiff_t rows = layer_word_rows(w);
    printer_put(p, "%-10s %td row%s, %td input%s, %td output%s\n", name, rows, plural(rows), inputs,
                plural(inputs), outputs, plural(outputs));
}

static void put_products(word_printer *p, const layer_word *w)
{
    printer_put(p, "weights    %.0f number%s, stored as %s: ", layer_word_weights(w),
                layer_word_weights(w) > 1.0 ? "s" : "", dtype_name(w->stored));
    put_amount(p, layer_word_weight_bytes(w), "B\n");
    if (w->native)
        printer_put(p, "arithmetic %s\n",
                    mha_arithmetic_explain(MHA_NATIVE, w->stored, has_heads(w) ? w->e : w->k));
    if (w->native && w->grad)
        printer_put(p, "gradients  %s\n",
                    w->stored == MHA_BF16
                        ? "native products with the weights; those of the heads are exact, in f32"
                        : "exact, in f32: only bf16 has native products of gradients");
    if (has_heads(w)) {
        put_product(p, "q, k and v", w, w->e, w->h * w->d + w->g * (w->d + w->v));
        put_product(p, "output", w, w->h * w->v, w->e);
    } else {
        put_product(p, "product", w, w->k, w->n);
    }
}

static void put_cache(word_printer *p, const layer_word *w)
{
    printer_put(p, ", on keys and values stored as %s\n", dtype_name(w->cache));
    printer_put(p, "cache      %td token%s of %td sequence%s, stored as %s: ", w->s, plural(w->s),
                w->b, plural(w->b), dtype_name(w->cache));
    put_amount(p, layer_word_cache_bytes(w), "B\n");
}

/* The heads of a layer are a problem of the operator's, side by side in memory. Keys and values in
 * a cache have types and a layout that no problem word can name. */
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
    heads.layout = w->kind == WORD_LAYER ? WORD_BLHD : heads.layout;
    word_print(&heads, text, sizeof text);
    printer_put(p, "heads      as %s", text);
    if (w->kind == WORD_LAYER)
        printer_put(p, "\n");
    else
        put_cache(p, w);
}

static const char *read_things(const layer_word *w)
{
    if (w->kind == WORD_CACHE)
        return "cache";
    return w->kind == WORD_DECODE ? "weights and cache" : "weights";
}

static void put_work(word_printer *p, const layer_word *w)
{
    const double flops = layer_word_flops(w);
    const double passes = w->grad ? 3.0 : 1.0;
    const double products = passes * 2.0 * (double)layer_word_rows(w) * layer_word_weights(w);
    const double bytes = layer_word_weight_bytes(w) + layer_word_cache_bytes(w);
    printer_put(p, "work       ");
    put_amount(p, flops, "FLOP");
    if (has_weights(w) && has_heads(w))
        printer_put(p, ": %.0f %% in products, %.0f %% in heads", 100.0 * products / flops,
                    100.0 * (flops - products) / flops);
    printer_put(p, "\nreads      ");
    put_amount(p, bytes, "B");
    printer_put(p, " of %s: %.3g FLOP a byte\n", read_things(w), flops / bytes);
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
