/* SPDX-License-Identifier: MIT */
/* Studies all heads (heads/head_study.h), measures their importance and their distance from one
 * head, and finds their roles. */
#include "program/heads_table.h"

#include <math.h>
#include <stdlib.h>

#include "base/terminal.h"
#include "heads/head_eval.h"
#include "heads/head_likeness.h"

/* One number per head: importance, the same normalised per layer, distance. */
typedef struct head_numbers {
    double *raw, *normal, *apart;
} head_numbers;

/* Importance by derivatives, of sentence pairs of a translator, and the distance from head `like`
 * unless it is -1. */
static mha_status measure(const heads_setup *s, int like, const head_numbers *numbers)
{
    mha_status status = s->pairs != NULL ? MHA_ERR_MEMORY : MHA_OK;
    head_eval *const eval = s->pairs != NULL ? head_eval_create(s->session.model, s->pairs,
                                                                (int)s->sentences, s->session.pool)
                                             : NULL;
    if (eval != NULL)
        status = head_eval_importance(eval, NULL, numbers->raw, numbers->normal);
    head_eval_free(eval);
    for (int n = 0; s->pairs == NULL && n < head_count(s->session.subject.shape); n++)
        numbers->raw[n] = numbers->normal[n] = NAN;
    for (int n = 0; n < head_count(s->session.subject.shape); n++)
        numbers->apart[n] = NAN;
    if (status == MHA_OK && like >= 0)
        status = head_likeness_measure(&s->session.subject, &s->texts, like, s->session.pool,
                                       numbers->apart);
    return status;
}

static void fill_rows(const heads_table *table, const head_numbers *numbers)
{
    const head_study *const study = table->study;
    for (int n = 0; n < study->heads; n++)
        table->rows[n] = (heads_row){.study = study,
                                     .number = n,
                                     .name = head_at(study->shape, n),
                                     .role = head_role_find(study, n),
                                     .raw_importance = numbers->raw[n],
                                     .importance = numbers->normal[n],
                                     .apart = numbers->apart[n]};
}

mha_status heads_table_make(heads_table *table, const heads_setup *s, int like)
{
    const size_t heads = (size_t)head_count(s->session.subject.shape);
    double *const space = calloc(3 * heads, sizeof *space);
    mha_status status = MHA_ERR_MEMORY;
    table->rows = calloc(heads, sizeof *table->rows);
    table->study = head_study_create(&s->session.subject, &s->texts, s->session.pool, heads_watch);
    progress_end();
    if (space != NULL && table->rows != NULL && table->study != NULL) {
        const head_numbers numbers = {space, space + heads, space + 2 * heads};
        status = measure(s, like, &numbers);
        if (status == MHA_OK)
            fill_rows(table, &numbers);
    }
    free(space);
    return status;
}

void heads_table_free(heads_table *table)
{
    head_study_free(table->study);
    free(table->rows);
}
