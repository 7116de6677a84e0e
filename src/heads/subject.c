/* SPDX-License-Identifier: MIT */
/* The functions of subject.h that are the same for all models. */
#include "heads/subject.h"

bool subject_predicts(const subject *s)
{
    return s->shape.layers[ATTENTION_DECODER] > 0;
}

bool subject_count_words(subject *s)
{
    return s->translator == NULL || head_words_count(&s->words, s->translator);
}

void subject_close(subject *s)
{
    head_words_free(&s->words);
}

bool subject_read(const subject *s, const pair_request *request, mha_pool *pool, subject_text *text,
                  char message[SUBJECT_MESSAGE_MAX])
{
    *text = (subject_text){.text = NULL};
    return s->methods->read(s, request, pool, text, message);
}

void subject_text_free(const subject *s, subject_text *text)
{
    if (text->memory != NULL)
        s->methods->text_free(text);
    text->memory = NULL;
}

void subject_warn(const subject *s, const subject_text *text)
{
    s->methods->warn(text);
}

capture *subject_run(const subject *s, const subject_text *text, const capture_options *options,
                     mha_pool *pool)
{
    return s->methods->run(s, text, options, pool);
}

const char *subject_word(const subject *s, int number, char room[SUBJECT_WORD_MAX])
{
    return s->methods->word(s, number, room);
}

bool subject_weights(const subject *s, computation_weights *weights)
{
    return s->methods->weights(s, weights);
}

char *subject_write(const subject *s, const subject_text *text, const capture_options *options,
                    mha_pool *pool)
{
    return s->methods->write(s, text, options, pool);
}

mha_status subject_lens(const subject *s, int rows, const float *stream, float *logits,
                        mha_pool *pool)
{
    return s->methods->lens(s, rows, stream, logits, pool);
}

/* --------------------------------------------------------------- losses ----- */

static double log_likelihood(const capture *c)
{
    double sum = 0.0;
    for (int i = 0; i < c->scored; i++)
        sum += c->log_likelihood[i];
    return sum;
}

/* 1 - the cosine of two vectors of length 1, but for rounding; of equal ones it is 0. */
static double turn(const capture *a, const capture *b)
{
    double product = 0.0;
    for (int n = 0; n < a->vector_width; n++)
        product += (double)a->vector[n] * (double)b->vector[n];
    return product < 1.0 ? 1.0 - product : 0.0;
}

double subject_loss(const subject *s, const capture *plain, const capture *changed)
{
    return subject_predicts(s) ? log_likelihood(plain) - log_likelihood(changed)
                               : turn(plain, changed);
}

/* ---------------------------------------------------------------- texts ----- */

capture *subject_texts_run(const subject *s, const subject_texts *texts, int n,
                           const capture_options *options, mha_pool *pool)
{
    return texts->pairs != NULL ? head_capture(s->translator, &texts->pairs[n], options, pool)
                                : subject_run(s, &texts->texts[n], options, pool);
}

const corpus_pair *subject_texts_gold(const subject_texts *texts, int n)
{
    if (texts->pairs != NULL)
        return texts->pairs[n].known ? &texts->pairs[n].gold : NULL;
    return texts->texts[n].gold;
}
