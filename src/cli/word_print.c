/* SPDX-License-Identifier: MIT */
/* Writing problem words in their canonical spelling. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "word.h"

typedef struct printer {
    char *text;
    size_t size, used;
} printer;

__attribute__((format(printf, 2, 3))) static void put(printer *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const size_t room = p->used < p->size ? p->size - p->used : 0;
    const int n = vsnprintf(room > 0 ? p->text + p->used : NULL, room, format, list);
    va_end(list);
    p->used += n > 0 ? (size_t)n : 0;
}

/* The shortest decimal that reads back as the same float. */
static void put_real(printer *p, const char *name, float x)
{
    char digits[32], best[32] = "";
    for (int precision = 9; precision >= 1; precision--) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)x);
        if (strtof(digits, NULL) == x && (*best == '\0' || strlen(digits) < strlen(best)))
            memcpy(best, digits, sizeof best);
    }
    put(p, ":%s=%s", name, best);
}

static void put_extents(printer *p, const problem_word *w)
{
    put(p, "b%tdh%td", w->b, w->h);
    if (w->g != w->h)
        put(p, "g%td", w->g);
    put(p, "l%td", w->l);
    if (w->s != w->l)
        put(p, "s%td", w->s);
    put(p, "d%td", w->d);
    if (w->v != w->d)
        put(p, "v%td", w->v);
}

static void put_one_type(printer *p, char letter, mha_dtype type)
{
    if (type != MHA_F32)
        put(p, ":%c=%s", letter, dtype_name(type));
}

static void put_types(printer *p, const problem_word *w)
{
    if (w->q_type == w->k_type && w->q_type == w->v_type && w->q_type == w->o_type) {
        if (w->q_type != MHA_F32)
            put(p, ":%s", dtype_name(w->q_type));
        return;
    }
    put_one_type(p, 'q', w->q_type);
    put_one_type(p, 'k', w->k_type);
    put_one_type(p, 'v', w->v_type);
    put_one_type(p, 'o', w->o_type);
}

static void put_position(printer *p, const problem_word *w)
{
    if (w->causal)
        put(p, ":causal");
    if (w->position == MHA_POSITION_TOP_LEFT)
        put(p, ":tl");
    if (w->position == MHA_POSITION_BOTTOM_RIGHT)
        put(p, ":br");
    if (w->position == MHA_POSITION_OFFSET)
        put(p, ":offset=%td", w->offset);
    if (w->window) {
        put(p, ":window=%td", w->window_left);
        if (w->window_right != 0)
            put(p, ",%td", w->window_right);
    }
}

static void put_masks(printer *p, const problem_word *w)
{
    if (w->bool_percent >= 0)
        put(p, ":mask=bool%d", w->bool_percent);
    if (w->add_mask)
        put(p, ":mask=add");
    if (w->bias)
        put(p, ":bias");
    if (w->alibi)
        put(p, ":alibi");
    if (w->sink)
        put(p, ":sink");
    if (w->softcap != 0.0f)
        put_real(p, "softcap", w->softcap);
    if (w->scale != 0.0f)
        put_real(p, "scale", w->scale);
}

static void put_lengths(printer *p, const problem_word *w)
{
    if (w->pad > 0)
        put(p, ":pad%s", w->pad_keys_only ? "k" : "");
    if (w->pad > 2)
        put(p, "%d", w->pad);
    if (w->documents > 0)
        put(p, ":docs=%d", w->documents);
    if (w->packed)
        put(p, ":packed");
}

static void put_outputs(printer *p, const problem_word *w)
{
    static const char *const modes[] = {"", "=raw", "=softcap", "=bias"};
    if (w->lse)
        put(p, ":lse");
    if (w->weights)
        put(p, ":weights%s", modes[w->weights_mode]);
    if (w->average)
        put(p, ":avg");
    if (w->layout == WORD_BLHD)
        put(p, ":layout=blhd");
    if (w->threads > 0)
        put(p, ":t=%d", w->threads);
}

size_t word_print(const problem_word *word, char *text, size_t size)
{
    printer p = {text, size, 0};
    put_extents(&p, word);
    put_types(&p, word);
    put_position(&p, word);
    put_masks(&p, word);
    put_lengths(&p, word);
    put_outputs(&p, word);
    return p.used;
}
