/* SPDX-License-Identifier: MIT */
/*
 * Any model of libmha_model as a subject: what kinds of heads it has, and a text as its tokens.
 *
 *      encoder            the text is the source
 *      decoder            the text is the target; each token is expected after the one before
 *      encoder-decoder    the text is the source; the target is given, or what the model writes
 *
 * The words of tokens are made printable: a token may be half of a character, or a line break.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "heads/subject_model_parts.h"
#include "model/inspect.h"

enum { WRITTEN_MAX = 256 }; /* tokens that an encoder-decoder writes */

static bool out_of_memory(char *message)
{
    snprintf(message, SUBJECT_MESSAGE_MAX, "out of memory");
    return false;
}

/* ----------------------------------------------------------------- words ----- */

/* Copies a text without control characters: they become their pictures of Unicode, or spaces. */
static void copy_printable(char *to, size_t room, const char *from, bool pictures)
{
    size_t used = 0;
    while (*from != '\0') {
        uint32_t c;
        const size_t length = text_decode(from, &c);
        char picture[4] = {' ', '\0', '\0', '\0'};
        const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        if (control && pictures && c < 0x20)
            memcpy(picture, (char[]){(char)0xe2, (char)0x90, (char)(0x80 + c), '\0'}, 4);
        const char *const shown = control ? picture : from;
        const size_t size = control ? strlen(picture) : length;
        if (used + size + 1 > room)
            break;
        memcpy(to + used, shown, size);
        used += size;
        from += length;
    }
    to[used] = '\0';
}

static bool has_replacement(const char *text)
{
    return strstr(text, "\xef\xbf\xbd") != NULL;
}

/* The word of a token. The decoded text of a token is what a reader expects; where it is empty or
 * no whole character, the entry of the vocabulary is shown. */
static void show_word(const mha_tokenizer *tokenizer, int32_t id, char room[SUBJECT_WORD_MAX])
{
    const char *const piece = mha_tokenizer_piece(tokenizer, id);
    const bool special = mha_tokenizer_flags(tokenizer, id) & MHA_TOKEN_SPECIAL;
    char *text = NULL;
    size_t length;
    snprintf(room, SUBJECT_WORD_MAX, "%d", (int)id);
    if (piece)
        copy_printable(room, SUBJECT_WORD_MAX, piece, true);
    if (special || !piece || strncmp(piece, "##", 2) == 0 ||
        mha_tokenizer_decode(tokenizer, &id, 1, 0, &text, &length) != MHA_OK)
        return;
    const char *const shown = text[0] == ' ' && length > 1 ? text + 1 : text;
    if (length > 0 && strlen(text) == length && !has_replacement(shown))
        copy_printable(room, SUBJECT_WORD_MAX, shown, true);
    mha_text_free(text);
}

/* ----------------------------------------------------------------- sides ----- */

bool model_side_make(model_side *m, int count, char *message)
{
    const size_t size = (size_t)count + 1;
    m->side = (subject_side){.words = calloc(size, sizeof *m->side.words),
                             .numbers = calloc(size, sizeof *m->side.numbers),
                             .marks = calloc(size, sizeof *m->side.marks),
                             .continues = calloc(size, sizeof *m->side.continues)};
    m->ids = calloc(size, sizeof *m->ids);
    m->room = calloc(size, sizeof *m->room);
    return (m->side.words && m->side.numbers && m->side.marks && m->side.continues && m->ids &&
            m->room) ||
           out_of_memory(message);
}

static void side_free(model_side *m)
{
    free((void *)m->side.words);
    free(m->side.numbers);
    free(m->side.marks);
    free(m->side.continues);
    free(m->ids);
    free(m->room);
}

static void add_token(model_side *m, const mha_tokenizer *tokenizer, int32_t id, bool continues)
{
    const int n = m->side.count++;
    const bool mark = mha_tokenizer_flags(tokenizer, id) & MHA_TOKEN_SPECIAL;
    m->ids[n] = id;
    m->side.numbers[n] = id;
    m->side.marks[n] = mark;
    m->side.continues[n] = n > 0 && !mark && !m->side.marks[n - 1] && continues;
    show_word(tokenizer, id, m->room[n]);
    m->side.words[n] = m->room[n];
}

/* Whether an entry of a vocabulary continues a word, where the text around it is not known. */
static bool piece_continues(const mha_tokenizer *tokenizer, int32_t id)
{
    static const char *const begins[] = {"\xe2\x96\x81", "\xc4\xa0"}; /* SentencePiece, bytes */
    const char *const piece = mha_tokenizer_piece(tokenizer, id);
    if (strcmp(mha_tokenizer_kind(tokenizer), "WordPiece") == 0)
        return piece && strncmp(piece, "##", 2) == 0;
    for (int n = 0; piece && n < 2; n++)
        if (strncmp(piece, begins[n], strlen(begins[n])) == 0)
            return false;
    return true;
}

/* The tokens of a text, after `first` tokens that are added by the caller. */
static bool read_side(model_side *m, const mha_tokenizer *tokenizer, const char *text,
                      unsigned flags, int first, char *message)
{
    mha_tokens tokens;
    const mha_status status = mha_tokenizer_encode(tokenizer, text, strlen(text), flags, &tokens);
    if (status != MHA_OK) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "the text cannot be split into tokens: %s",
                 mha_status_string(status));
        return false;
    }
    const bool fine = model_side_make(m, (int)tokens.count + first, message);
    for (ptrdiff_t n = 0; fine && n < tokens.count; n++)
        add_token(m, tokenizer, tokens.tokens[n].id,
                  (tokens.tokens[n].flags & MHA_TOKEN_CONTINUES) != 0);
    mha_tokens_free(&tokens);
    return fine;
}

static bool has_words(const subject_side *side, char *message)
{
    for (int n = 0; n < side->count; n++)
        if (!side->marks[n])
            return true;
    snprintf(message, SUBJECT_MESSAGE_MAX, "there are no words");
    return false;
}

/* Whether there are positions for all tokens. */
static bool fits(const subject *s, const subject_side *side, char *message)
{
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(model_of(s), &info);
    if (info.positions > 0 && side->count > info.positions) {
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "the text has %d tokens, but the model reads up to %d; shorten it", side->count,
                 (int)info.positions);
        return false;
    }
    return true;
}

/* ------------------------------------------------------ encoder-decoders ----- */

/* A given target, after the token that the decoder begins with. */
static bool read_given(const subject *s, model_text *m, const char *target, int32_t start,
                       char *message)
{
    const mha_tokenizer *const tokenizer = mha_model_target_tokenizer(model_of(s));
    model_side *const to = &m->sides[TRANSFORMER_TARGET];
    model_side read = {.ids = NULL};
    bool fine = read_side(&read, tokenizer, target, MHA_TEXT_MARKS, 0, message) &&
                model_side_make(to, read.side.count + 1, message);
    if (fine)
        add_token(to, tokenizer, start, false);
    /* The end mark is expected, but not read. */
    for (int n = 0; fine && n < read.side.count; n++)
        if (n == read.side.count - 1 && read.side.marks[n])
            m->end = read.ids[n];
        else
            add_token(to, tokenizer, read.ids[n], read.side.continues[n]);
    side_free(&read);
    return fine;
}

/* The target that the model writes itself, greedily, with the requested changes. */
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
                out_of_memory(message);
    mha_generate_config config = {.size = sizeof config,
                                  .most = WRITTEN_MAX,
                                  .heads = &changes.settings,
                                  .message = message,
                                  .message_size = SUBJECT_MESSAGE_MAX};
    if (fine)
        fine = mha_model_generate(model_of(s), 1, starts, from->ids, &config, &written, pool) ==
               MHA_OK;
    fine = fine && model_side_make(to, (int)written.count + 1, message);
    if (fine)
        add_token(to, tokenizer, start, false);
    for (ptrdiff_t n = 0; fine && n < written.count; n++)
        add_token(to, tokenizer, written.ids[n], piece_continues(tokenizer, written.ids[n]));
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
    return request->target ? read_given(s, m, request->target, start, message)
                           : write_target(s, m, request, start, pool, message);
}

/* ------------------------------------------------------------------ text ----- */

/* The end mark after the last token, or "…" if that is not known. */
static bool list_expected(const subject *s, model_text *m, char *message)
{
    const subject_side *const target = &m->sides[TRANSFORMER_TARGET].side;
    snprintf(m->end_word, sizeof m->end_word, "\xe2\x80\xa6");
    if (m->end >= 0)
        show_word(mha_model_target_tokenizer(model_of(s)), m->end, m->end_word);
    m->expected = calloc((size_t)target->count + 1, sizeof *m->expected);
    if (!m->expected)
        return out_of_memory(message);
    for (int n = 0; n < target->count; n++)
        m->expected[n] = n + 1 < target->count ? target->words[n + 1] : m->end_word;
    return true;
}

static char *printable_copy(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *const copy = malloc(size);
    if (copy)
        copy_printable(copy, size, text, false);
    return copy;
}

/* The text of the target of an encoder-decoder. */
static bool decode_target(const subject *s, model_text *m, char *message)
{
    const model_side *const target = &m->sides[TRANSFORMER_TARGET];
    char *text = NULL;
    size_t length;
    if (mha_tokenizer_decode(mha_model_target_tokenizer(model_of(s)), target->ids,
                             target->side.count, MHA_TEXT_SKIP_MARKS, &text, &length) == MHA_OK)
        m->translation = printable_copy(text);
    mha_text_free(text);
    return m->translation || out_of_memory(message);
}

static bool read_sides(const subject *s, const pair_request *request, mha_pool *pool, model_text *m,
                       char *message)
{
    const mha_tokenizer *const tokenizer = mha_model_tokenizer(model_of(s));
    const bool encodes = s->shape.layers[ATTENTION_ENCODER] > 0, decodes = subject_predicts(s);
    model_side *const own = &m->sides[encodes ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET];
    if (s->reads_pictures && !request->target)
        return subject_picture_read(s, request->text, m, message);
    if (request->target && !(encodes && decodes)) {
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "--to: this model reads one text and has no second one; leave --to out");
        return false;
    }
    if (!read_side(own, tokenizer, request->text, MHA_TEXT_MARKS, 0, message) ||
        !has_words(&own->side, message) || !fits(s, &own->side, message))
        return false;
    if (encodes && decodes)
        return find_target(s, m, request, pool, message) &&
               fits(s, &m->sides[TRANSFORMER_TARGET].side, message) &&
               decode_target(s, m, message) && list_expected(s, m, message);
    return !decodes || list_expected(s, m, message);
}

static bool read_text(const subject *s, const pair_request *request, mha_pool *pool,
                      subject_text *text, char message[SUBJECT_MESSAGE_MAX])
{
    model_text *const m = text->memory = calloc(1, sizeof *m);
    if (!m)
        return out_of_memory(message);
    m->end = -1;
    if (!read_sides(s, request, pool, m, message))
        return false;
    m->text = printable_copy(request->text);
    m->given = request->target ? printable_copy(request->target) : NULL;
    if (!m->text || (request->target && !m->given))
        return out_of_memory(message);
    text->text = m->text;
    text->given = m->given;
    text->translation = m->translation;
    text->source = m->sides[TRANSFORMER_SOURCE].side;
    text->target = m->sides[TRANSFORMER_TARGET].side;
    text->expected = m->expected;
    return true;
}

static void free_text(subject_text *text)
{
    model_text *const m = text->memory;
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        side_free(&m->sides[side]);
    free((void *)m->expected);
    free(m->text);
    free(m->given);
    free(m->translation);
    free(m->pixels);
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
        show_word(tokenizer, number, room);
    else
        snprintf(room, SUBJECT_WORD_MAX, "%d", number);
    return room;
}

/* --------------------------------------------------------------- subject ----- */

bool subject_of_model(subject *s, const mha_model *model, char message[SUBJECT_MESSAGE_MAX])
{
    static const subject_methods methods = {read_text, free_text, warn, subject_model_run, word_of};
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
