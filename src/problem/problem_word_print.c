/* SPDX-License-Identifier: MIT */
/* Writing problem words in their canonical spelling. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "problem/problem_word.h"

/* The shortest decimal that reads back as the same float. */
static void put_real(word_printer *p, const char *name, float x)
{
    char digits[32], best[32] = "";
    for (int precision = 9; precision >= 1; precision--) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)x);
        if (strtof(digits, NULL) == x && (*best == '\0' || strlen(digits) < strlen(best)))
            memcpy(best, digits, sizeof best);
    }
    printer_put(p, ":%s=%s", name, best);
}

static void put_extents(word_printer *p, const problem_word *w)
{
    printer_put(p, "b%tdh%td", w->b, w->h);
    if (w->g != w->h)
        printer_put(p, "g%td", w->g);
    printer_put(p, "l%td", w->l);
    if (w->s != w->l)
        printer_put(p, "s%td", w->s);
    printer_put(p, "d%td", w->d);
    if (w->v != w->d)
        printer_put(p, "v%td", w->v);
}

static void put_one_type(word_printer *p, char letter, mha_dtype type)
{
    if (type != MHA_F32)
        printer_put(p, ":%c=%s", letter, dtype_name(type));
}

static void put_types(word_printer *p, const problem_word *w)
{
    if (w->q_type == w->k_type && w->q_type == w->v_type && w->q_type == w->o_type) {
        if (w->q_type != MHA_F32)
            printer_put(p, ":%s", dtype_name(w->q_type));
        return;
    }
    put_one_type(p, 'q', w->q_type);
    put_one_type(p, 'k', w->k_type);
    put_one_type(p, 'v', w->v_type);
    put_one_type(p, 'o', w->o_type);
}

static void put_position(word_printer *p, const problem_word *w)
{
    if (w->causal)
        printer_put(p, ":causal");
    if (w->position == MHA_POSITION_TOP_LEFT)
        printer_put(p, ":tl");
    if (w->position == MHA_POSITION_BOTTOM_RIGHT)
        printer_put(p, ":br");
    if (w->position == MHA_POSITION_OFFSET)
        printer_put(p, ":offset=%td", w->offset);
    if (w->window) {
        printer_put(p, ":window=%td", w->window_left);
        if (w->window_right != 0)
            printer_put(p, ",%td", w->window_right);
    }
}

static void put_masks(word_printer *p, const problem_word *w)
{
    if (w->bool_percent >= 0)
        printer_put(p, ":mask=bool%d", w->bool_percent);
    if (w->add_mask)
        printer_put(p, ":mask=add");
    if (w->bias)
        printer_put(p, ":bias");
    if (w->alibi)
        printer_put(p, ":alibi");
    if (w->sink)
        printer_put(p, ":sink");
    if (w->softcap != 0.0f)
        put_real(p, "softcap", w->softcap);
    if (w->scale != 0.0f)
        put_real(p, "scale", w->scale);
    if (w->dropout != 0.0f)
        put_real(p, "dropout", w->dropout);
}

static void put_lengths(word_printer *p, const problem_word *w)
{
    if (w->pad > 0)
        printer_put(p, ":pad%s", w->pad_keys_only ? "k" : "");
    if (w->pad > 2)
        printer_put(p, "%d", w->pad);
    if (w->documents > 0)
        printer_put(p, ":docs=%d", w->documents);
    if (w->packed)
        printer_put(p, ":packed");
}

static void put_outputs(word_printer *p, const problem_word *w)
{
    static const char *const modes[] = {"", "=raw", "=softcap", "=bias"};
    static const char *const more[] = {"", "=columns", "=top", "=all"};
    if (w->lse)
        printer_put(p, ":lse");
    if (w->weights)
        printer_put(p, ":weights%s", modes[w->weights_mode]);
    if (w->average)
        printer_put(p, ":avg");
    if (w->statistics)
        printer_put(p, ":stats%s", more[w->statistics / STATISTICS_COLUMNS]);
    if (w->gradients)
        printer_put(p, ":grad");
    if (w->layout == WORD_BLHD)
        printer_put(p, ":layout=blhd");
    if (w->threads > 0)
        printer_put(p, ":t=%d", w->threads);
}

size_t word_print(const problem_word *word, char *text, size_t size)
{
    word_printer p = {text, size, 0};
    put_extents(&p, word);
    put_types(&p, word);
    if (word->native)
        printer_put(&p, ":native");
    put_position(&p, word);
    put_masks(&p, word);
    put_lengths(&p, word);
    put_outputs(&p, word);
    return p.used;
}
