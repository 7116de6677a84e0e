/* SPDX-License-Identifier: MIT */
/*
 * Any model of libmha_model as a subject: what kinds of heads it has, and a text as its tokens.
 *
 *      encoder            the text is the source
 *      decoder            the text is the target; each token is expected after the one before
 *      encoder-decoder    the text is the source; the target is given, or what the model writes
 *
 * subject_model_side.c lists tokens, subject_model_run.c runs the model, subject_model_write.c lets
 * it write under any changes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/beam.h"
#include "heads/subject_model_parts.h"
#include "model/inspect.h"

enum { WRITTEN_MAX = 256 }; /* tokens that an encoder-decoder writes */

/* ----------------------------------------------------------------- sides ----- */

/* The tokens of a text. With a `start`, not -1, the side is a target: it begins with this token,
 * and a mark at its end, which is expected but not read, goes to *end. */
static bool read_side(model_side *m, const mha_tokenizer *tokenizer, const char *text,
                      int32_t start, int32_t *end, char *message)
{
    mha_tokens tokens;
    const mha_status status =
        mha_tokenizer_encode(tokenizer, text, strlen(text), MHA_TEXT_MARKS, &tokens);
    if (status != MHA_OK) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "the text cannot be split into tokens: %s",
                 mha_status_string(status));
        return false;
    }
    ptrdiff_t count = tokens.count;
    const int first = start >= 0;
    const bool fine = model_side_make(m, (int)count + first, message) &&
                      model_side_places(m, (int)count + first, message);
    if (fine && start >= 0)
        model_side_add(m, tokenizer, start, false);
    if (start >= 0 && count > 0 && tokens.tokens[count - 1].flags & MHA_TOKEN_SPECIAL)
        *end = tokens.tokens[--count].id;
    for (ptrdiff_t n = 0; fine && n < count; n++) {
        const mha_token *const token = &tokens.tokens[n];
        m->side.begins[m->side.count] = (int)token->begin;
        m->side.ends[m->side.count] = (int)token->end;
        model_side_add(m, tokenizer, token->id, n > 0 && token->flags & MHA_TOKEN_CONTINUES);
    }
    mha_tokens_free(&tokens);
    return fine && model_side_join(m, tokenizer, message);
}

static bool has_words(const subject_side *side, char *message)
{
    for (int n = 0; n < side->count; n++)
        if (!side->marks[n])
            return true;
    snprintf(message, SUBJECT_MESSAGE_MAX, "there are no words");
    return false;
}

/* The most tokens of a side; 0: any number. */
static ptrdiff_t longest(const subject *s)
{
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(model_of(s), &info);
    return info.positions;
}

/* Whether there are positions for all tokens of a side. */
static bool fits(const subject *s, model_text *m, const subject_side *side, char *message)
{
    const ptrdiff_t most = longest(s);
    m->too_long = most > 0 && side->count > most;
    if (m->too_long) {
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "the text has %d tokens, but the model reads up to %d; shorten it", side->count,
                 (int)most);
        return false;
    }
    return true;
}

/* ------------------------------------------------------ encoder-decoders ----- */

/* The tokens that a model has written, after the one that its decoder begins with. */
static bool take_written(model_side *to, const mha_tokenizer *tokenizer, int32_t start,
                         const mha_generation *written, char *message)
{
    bool *const continues = calloc((size_t)written->count + 1, sizeof *continues);
    const bool fine = continues ? model_side_make(to, (int)written->count + 1, message)
                                : model_out_of_memory(message);
    if (fine) {
        model_continues(tokenizer, written->ids, written->count, continues);
        model_side_add(to, tokenizer, start, false);
    }
    for (ptrdiff_t n = 0; fine && n < written->count; n++)
        model_side_add(to, tokenizer, written->ids[n], n > 0 && continues[n]);
    free(continues);
    return fine && model_side_join(to, tokenizer, message);
}

/* Tokens that a target may have after the one that it begins with. */
ptrdiff_t model_written_most(const subject *s)
{
    const ptrdiff_t most = longest(s) - 1;
    return most > 0 && most < WRITTEN_MAX ? most : WRITTEN_MAX;
}

/* The target that the model writes itself, as in "mha translate", with the requested changes. */
static bool write_target(const subject *s, model_text *m, const pair_request *request,
                         int32_t start, mha_pool *pool, char *message)
{
    static const float *const no_means[ATTENTION_KINDS];
    const mha_tokenizer *const tokenizer = mha_model_target_tokenizer(model_of(s));
    const model_side *const from = &m->sides[TRANSFORMER_SOURCE];
    model_side *const to = &m->sides[TRANSFORMER_TARGET];
    const int64_t starts[2] = {0, from->side.count};
    mha_generation written = {.count = 0};
    model_changes changes;
    bool fine = model_changes_make(&changes, s->shape, request->changes, no_means) ||
                model_out_of_memory(message);
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(model_of(s), &info);
    mha_generate_config config = {.size = sizeof config,
                                  .most = model_written_most(s),
                                  .beams = BEAM_USUAL,
                                  .length_penalty = info.length_penalty,
                                  .heads = &changes.settings,
                                  .message = message,
                                  .message_size = SUBJECT_MESSAGE_MAX};
    if (fine)
        fine = mha_model_generate(model_of(s), 1, starts, from->ids, &config, &written, pool) ==
               MHA_OK;
    fine = fine && take_written(to, tokenizer, start, &written, message);
    m->confidence = written.confidence;
    if (written.ended)
        m->end = mha_tokenizer_mark(tokenizer, MHA_MARK_END);
    mha_generation_free(&written);
    model_changes_free(&changes);
    return fine;
}

static bool find_target(const subject *s, model_text *m, const pair_request *request,
                        mha_pool *pool, char *message)
{
    const int32_t start = model_decoder_start(model_of(s));
    if (start < 0) {
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "the files of the model do not say with which token its decoder begins "
                 "(decoder_start_token_id in config.json)");
        return false;
    }
    return request->target
               ? read_side(&m->sides[TRANSFORMER_TARGET], mha_model_target_tokenizer(model_of(s)),
                           request->target, start, &m->end, message)
               : write_target(s, m, request, start, pool, message);
}

/* ------------------------------------------------------------------ text ----- */

/* The end mark after the last token, or "…" if that is not known. */
static bool list_expected(const subject *s, model_text *m, char *message)
{
    const subject_side *const target = &m->sides[TRANSFORMER_TARGET].side;
    snprintf(m->end_word, sizeof m->end_word, "\xe2\x80\xa6");
    if (m->end >= 0)
        model_show_word(mha_model_target_tokenizer(model_of(s)), m->end, m->end_word);
    m->expected = calloc((size_t)target->count + 1, sizeof *m->expected);
    if (!m->expected)
        return model_out_of_memory(message);
    for (int n = 0; n < target->count; n++)
        m->expected[n] = n + 1 < target->count ? target->words[n + 1] : m->end_word;
    return true;
}

static char *printable_copy(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *const copy = malloc(size);
    if (copy)
        model_copy_printable(copy, size, text, false);
    return copy;
}

char *model_target_text(const mha_model *model, const int32_t *ids, int count)
{
    char *text = NULL, *copy = NULL;
    size_t length;
    if (mha_tokenizer_decode(mha_model_target_tokenizer(model), ids, count, MHA_TEXT_SKIP_MARKS,
                             &text, &length) == MHA_OK)
        copy = printable_copy(text);
    mha_text_free(text);
    return copy;
}

/* The text of the target of an encoder-decoder. */
static bool decode_target(const subject *s, model_text *m, char *message)
{
    const model_side *const target = &m->sides[TRANSFORMER_TARGET];
    m->translation = model_target_text(model_of(s), target->ids, target->side.count);
    return m->translation || model_out_of_memory(message);
}

static bool read_sides(const subject *s, const pair_request *request, mha_pool *pool, model_text *m,
                       char *message)
{
    const mha_tokenizer *const tokenizer = mha_model_tokenizer(model_of(s));
    const bool encodes = s->shape.layers[ATTENTION_ENCODER] > 0, decodes = subject_predicts(s);
    model_side *const own = &m->sides[encodes ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET];
    if (s->reads_pictures && !request->target)
        return subject_picture_read(s, request, m, message);
    if (request->target && !(encodes && decodes)) {
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "--to: this model reads one text and has no second one; leave --to out");
        return false;
    }
    if (!read_side(own, tokenizer, request->text, -1, NULL, message) ||
        !has_words(&own->side, message) || !fits(s, m, &own->side, message))
        return false;
    if (encodes && decodes)
        return find_target(s, m, request, pool, message) &&
               fits(s, m, &m->sides[TRANSFORMER_TARGET].side, message) &&
               decode_target(s, m, message) && list_expected(s, m, message);
    return !decodes || list_expected(s, m, message);
}

static bool read_text(const subject *s, const pair_request *request, mha_pool *pool,
                      subject_text *text, char message[SUBJECT_MESSAGE_MAX])
{
    model_text *const m = text->memory = calloc(1, sizeof *m);
    if (!m)
        return model_out_of_memory(message);
    m->end = -1;
    const bool fine = read_sides(s, request, pool, m, message);
    text->too_long = m->too_long;
    if (!fine)
        return false;
    m->text = printable_copy(request->text);
    m->given = request->target ? printable_copy(request->target) : NULL;
    if (!m->text || (request->target && !m->given))
        return model_out_of_memory(message);
    text->text = m->text;
    text->given = m->given;
    text->translation = m->translation;
    text->confidence = m->confidence;
    text->source = m->sides[TRANSFORMER_SOURCE].side;
    text->target = m->sides[TRANSFORMER_TARGET].side;
    text->expected = m->expected;
    text->picture = m->picture;
    return true;
}

static void free_text(subject_text *text)
{
    model_text *const m = text->memory;
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        model_side_free(&m->sides[side]);
    free((void *)m->expected);
    free(m->text);
    free(m->given);
    free(m->translation);
    free(m->pixels);
    free(m->bytes);
    free(m->object);
    free(m);
}

/* Tokens that stand for text that the vocabulary does not have. */
static void warn(const subject_text *text)
{
    const model_text *const m = text->memory;
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        for (int n = 0; n < m->sides[side].side.count; n++)
            if (strcmp(m->sides[side].side.words[n], "[UNK]") == 0 ||
                strcmp(m->sides[side].side.words[n], "<unk>") == 0) {
                fprintf(stderr, "mha: a part of the text is not in the vocabulary of the model\n");
                return;
            }
}

static const char *word_of(const subject *s, int number, char room[SUBJECT_WORD_MAX])
{
    const mha_tokenizer *const tokenizer = mha_model_target_tokenizer(model_of(s));
    if (number < mha_tokenizer_size(tokenizer))
        model_show_word(tokenizer, number, room);
    else
        snprintf(room, SUBJECT_WORD_MAX, "%d", number);
    return room;
}

static mha_status lens(const subject *s, int rows, const float *stream, float *logits,
                       mha_pool *pool)
{
    return model_lens(model_of(s), rows, stream, logits, pool);
}

/* --------------------------------------------------------------- subject ----- */

/* Whether all layers have the heads that the model had before any were removed. */
static bool has_all_heads(const mha_model *model, const mha_model_info *info)
{
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++)
        for (ptrdiff_t n = 0; n < info->layers[kind]; n++)
            if (mha_model_heads(model, (mha_attention_kind)kind, n) != info->heads)
                return false;
    return true;
}

bool subject_of_model(subject *s, const mha_model *model, char message[SUBJECT_MESSAGE_MAX])
{
    static const subject_methods methods = {
        read_text,           free_text, warn,
        subject_model_run,   word_of,   computation_weights_of_model,
        subject_model_write, lens};
    const mha_tokenizer *const tokenizer = mha_model_tokenizer(model);
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(model, &info);
    *s = (subject){.methods = &methods,
                   .shape = {.heads = (int)info.heads, .width = (int)info.head_width},
                   .width = (int)info.width,
                   .family = info.family,
                   .side_names = {"the text", "the text"},
                   .first_text = "The cat that I saw yesterday ran away.",
                   .words = {.question = {-1, -1}},
                   .model = model};
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        s->shape.layers[kind] = (int)info.layers[kind];
    s->run_cost = (double)(info.parameters - (int64_t)info.vocabulary * info.width);
    s->reads_pictures = info.kind == MHA_MODEL_IMAGE_ENCODER;
    s->class_count = s->reads_pictures ? (int)info.labels : 0;
    if (!has_all_heads(model, &info)) {
        snprintf(
            message, SUBJECT_MESSAGE_MAX,
            "the layers of this model have different numbers of heads, and heads can only be "
            "looked at if all have the same number; \"mha prune --zeros\" writes pruned models "
            "in that form");
        return false;
    }
    if (s->reads_pictures)
        return true;
    if (!tokenizer)
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "the model has no tokenizer; put its tokenizer.json beside it (of llama2.c: "
                 "tokenizer.bin)");
    else if (subject_predicts(s) && !info.has_logits)
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "the model has a decoder without an output matrix: it predicts no tokens");
    else {
        s->words.question[TRANSFORMER_SOURCE] = mha_tokenizer_find(tokenizer, "?");
        s->words.question[TRANSFORMER_TARGET] = mha_tokenizer_find(tokenizer, "?");
        if (s->shape.layers[ATTENTION_CROSS] > 0) {
            s->side_names[TRANSFORMER_SOURCE] = "the source";
            s->side_names[TRANSFORMER_TARGET] = "the target";
        }
        return true;
    }
    return false;
}
