/* SPDX-License-Identifier: MIT */
/* Translates sentences with known translations, some at a time, and scores the results. */
#include "program/translation_score.h"

#include "base/terminal.h"
#include "program/args.h"
#include "program/model_session.h"
#include "translator/bleu.h"
#include "translator/chrf.h"

enum { TOGETHER = 64 };

typedef struct score_job {
    const mha_model *model;
    const reference_set *set;
    mha_pool *pool;
    bleu *bleu;
    chrf *chrf;
} score_job;

static mha_status add_sentence(const score_job *job, size_t n, const char *said)
{
    const size_t first = job->set->starts[n];
    const int count = (int)(job->set->starts[n + 1] - first);
    const char *const *const references = job->set->references + first;
    const mha_status status = bleu_add(job->bleu, said, references, count);
    return status ? status : chrf_add(job->chrf, said, references, count);
}

static int fail(mha_status status, const char *message)
{
    return args_failed("no translations: %s", message[0] ? message : mha_status_string(status));
}

/* Sentences [first, first + count). */
static int score_some(const score_job *job, size_t first, ptrdiff_t count)
{
    char message[MODEL_MESSAGE_MAX] = "";
    mha_generation results[TOGETHER] = {{.count = 0}};
    const mha_generate_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    id_batch ids;
    int code = id_batch_make(&ids, mha_model_tokenizer(job->model), job->set->sources + first,
                             count, MHA_TEXT_MARKS);
    if (code != EXIT_GO_ON)
        return code;
    mha_status status =
        mha_model_generate(job->model, count, ids.starts, ids.ids, &config, results, job->pool);
    for (ptrdiff_t n = 0; n < count && status == MHA_OK; n++)
        status = add_sentence(job, first + (size_t)n, results[n].text);
    for (ptrdiff_t n = 0; n < count; n++)
        mha_generation_free(&results[n]);
    id_batch_free(&ids);
    return status == MHA_OK ? EXIT_GO_ON : fail(status, message);
}

static int score_all(const score_job *job, int64_t count, const char *what)
{
    int code = EXIT_GO_ON;
    for (int64_t n = 0; n < count && code == EXIT_GO_ON; n += TOGETHER) {
        if (what != NULL)
            progress("%s: %lld of %lld sentences", what, (long long)n, (long long)count);
        code = score_some(job, (size_t)n, (ptrdiff_t)(count - n < TOGETHER ? count - n : TOGETHER));
    }
    progress_end();
    return code;
}

int translation_score_measure(const mha_model *model, const reference_set *set, int64_t most,
                              const char *what, mha_pool *pool, translation_score *score)
{
    score_job job = {model, set, pool, bleu_new(METRIC_WORDS_13A), chrf_new()};
    const int64_t all = (int64_t)set->sentences, count = most < all ? most : all;
    int code = job.bleu != NULL && job.chrf != NULL ? EXIT_GO_ON : fail(MHA_ERR_MEMORY, "");
    if (code == EXIT_GO_ON)
        code = score_all(&job, count, what);
    if (code == EXIT_GO_ON)
        *score = (translation_score){bleu_read(job.bleu).score, chrf_read(job.chrf), count};
    bleu_free(job.bleu);
    chrf_free(job.chrf);
    return code;
}
