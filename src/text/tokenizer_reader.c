/* SPDX-License-Identifier: MIT */
/*
 * What the readers of a tokenizer's files share: faults with the path of the file, steps and
 * tokens that are added one by one, members of JSON objects.
 */
#include "text/tokenizer_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char gpt2_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                            "\\s+(?!\\S)|\\s+";

bool reader_refuse(tokenizer_reader *r, const char *format, ...)
{
    if (r->status != MHA_OK)
        return false;
    r->status = MHA_ERR_FORMAT;
    if (r->message && r->message_size) {
        va_list arguments;
        const int used = snprintf(r->message, r->message_size, "%s: ", r->path);
        va_start(arguments, format);
        if (used >= 0 && (size_t)used < r->message_size)
            vsnprintf(r->message + used, r->message_size - (size_t)used, format, arguments);
        va_end(arguments);
    }
    return false;
}

bool reader_no_memory(tokenizer_reader *r)
{
    if (r->status == MHA_OK) {
        reader_refuse(r, "out of memory");
        r->status = MHA_ERR_MEMORY;
    }
    return false;
}

bool reader_failed(tokenizer_reader *r, mha_status status)
{
    if (r->status == MHA_OK)
        r->status = status;
    return r->status == MHA_OK;
}

char *reader_beside(tokenizer_reader *r, const char *path, const char *name)
{
    const char *const slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - path) : 0;
    const size_t size = strlen(name) + 1;
    char *const other = malloc(folder + size);
    if (!other) {
        reader_no_memory(r);
        return NULL;
    }
    memcpy(other, path, folder);
    memcpy(other + folder, name, size);
    return other;
}

json_tree *read_beside(tokenizer_reader *r, const char *path, const char *name)
{
    json_tree *tree = NULL;
    char *const other = reader_beside(r, path, name);
    if (other && access(other, F_OK) == 0)
        reader_failed(r, json_tree_read_file(&tree, other, r->message, r->message_size));
    free(other);
    return tree;
}

/* --------------------------------------------------------------- members ----- */

const char *member_string(const json_value *value, const char *name, const char *otherwise)
{
    const char *text;
    return json_tree_get_string(json_tree_member(value, name), &text, NULL) ? text : otherwise;
}

bool member_flag(const json_value *value, const char *name, bool otherwise)
{
    bool flag;
    return json_tree_get_bool(json_tree_member(value, name), &flag) ? flag : otherwise;
}

int64_t member_integer(const json_value *value, const char *name, int64_t otherwise)
{
    int64_t number;
    return json_tree_get_integer(json_tree_member(value, name), &number) ? number : otherwise;
}

/* ----------------------------------------------------------------- steps ----- */

/* On a fault a step is freed. */
bool add_normalizer(tokenizer_reader *r, normalizer_step step)
{
    mha_tokenizer *const t = r->t;
    if (t->normalizer_count < TOKENIZER_STEPS_MAX) {
        t->normalizers[t->normalizer_count++] = step;
        return true;
    }
    normalizer_step_free(&step);
    return reader_refuse(r, "more than %d normalizers", TOKENIZER_STEPS_MAX);
}

bool add_pre_tokenizer(tokenizer_reader *r, pre_tokenizer_step step)
{
    mha_tokenizer *const t = r->t;
    if (t->pre_count < TOKENIZER_STEPS_MAX) {
        t->pre[t->pre_count++] = step;
        return true;
    }
    pre_tokenizer_step_free(&step);
    return reader_refuse(r, "more than %d pre-tokenizers", TOKENIZER_STEPS_MAX);
}

bool add_decoder(tokenizer_reader *r, decoder_step step)
{
    mha_tokenizer *const t = r->t;
    if (t->decoder_count < TOKENIZER_STEPS_MAX) {
        t->decoders[t->decoder_count++] = step;
        return true;
    }
    decoder_step_free(&step);
    return reader_refuse(r, "more than %d decoders", TOKENIZER_STEPS_MAX);
}

bool make_pattern(tokenizer_reader *r, pattern **made, const char *text, bool literal)
{
    char why[300];
    const mha_status status = pattern_create(made, text, literal, why, sizeof why);
    if (status == MHA_OK)
        return true;
    if (status == MHA_ERR_MEMORY)
        return reader_no_memory(r);
    return reader_refuse(r, "%s", why);
}

bool add_bert_normalizer(tokenizer_reader *r, bool clean, bool chinese, bool strip, bool lower)
{
    return (!clean || add_normalizer(r, (normalizer_step){.kind = NORMALIZE_CLEAN})) &&
           (!chinese || add_normalizer(r, (normalizer_step){.kind = NORMALIZE_CHINESE})) &&
           (!strip || (add_normalizer(r, (normalizer_step){.kind = NORMALIZE_NFD}) &&
                       add_normalizer(r, (normalizer_step){.kind = NORMALIZE_DROP_NONSPACING}))) &&
           (!lower || add_normalizer(r, (normalizer_step){.kind = NORMALIZE_LOWERCASE}));
}

bool add_bert_pre_tokenizer(tokenizer_reader *r)
{
    return add_pre_tokenizer(r,
                             (pre_tokenizer_step){.kind = PRE_SPACE, .behavior = SPLIT_REMOVED}) &&
           add_pre_tokenizer(
               r, (pre_tokenizer_step){.kind = PRE_PUNCTUATION, .behavior = SPLIT_ISOLATED});
}

bool add_byte_level(tokenizer_reader *r, bool prefix_space, const char *regex)
{
    pre_tokenizer_step step = {.kind = PRE_BYTE_LEVEL, .prefix_space = prefix_space};
    r->t->byte_level = true;
    return (!regex || make_pattern(r, &step.pattern, regex, false)) && add_pre_tokenizer(r, step);
}

/* -------------------------------------------------------------- template ----- */

bool add_template_mark(tokenizer_reader *r, template_list *list, int32_t id, int32_t segment)
{
    if (!vocab_piece(tokenizer_vocabulary(r->t), id, NULL))
        return reader_refuse(r, "the template has the mark %d, which the vocabulary does not have",
                             (int)id);
    /* Two elements are left for the texts. */
    if (list->count >= TEMPLATE_MAX - 2)
        return reader_refuse(r, "a template of more than %d elements", TEMPLATE_MAX);
    list->parts[list->count++] = (template_part){id, segment};
    return true;
}

void add_template_text(template_list *list, int text)
{
    if (list->count < TEMPLATE_MAX)
        list->parts[list->count++] = (template_part){text ? TEMPLATE_SECOND : TEMPLATE_FIRST, text};
}

/* ---------------------------------------------------------- added tokens ----- */

bool add_token(tokenizer_reader *r, added_token token)
{
    mha_tokenizer *const t = r->t;
    if (token.length == 0)
        return true;
    if (token.length > ADDED_TOKEN_BYTES_MAX)
        return reader_refuse(r, "the added token \"%.40s...\" is longer than %d bytes",
                             token.content, ADDED_TOKEN_BYTES_MAX);
    if (!t->sentencepiece) {
        const int32_t known = vocab_find(t->v, token.content, token.length);
        const bool far = token.id < 0 || token.id >= vocab_limit((size_t)vocab_size(t->v));
        if (known >= 0)
            token.id = known;
        else if (far || vocab_piece(t->v, token.id, NULL))
            return reader_refuse(r, "the added token \"%.40s\" has the id %d, which is %s",
                                 token.content, (int)token.id, far ? "out of range" : "in use");
        else if (!vocab_add(t->v, token.id, token.content, token.length, 0, PIECE_ADDED))
            return reader_no_memory(r);
        const unsigned flags = vocab_flags(t->v, token.id);
        vocab_set_flags(t->v, token.id, flags | (token.special ? PIECE_SPECIAL : 0));
    }
    added_tokens *const list = token.normalized ? &t->normalized : &t->raw;
    return added_tokens_add(list, &token) || reader_no_memory(r);
}

/* The content of a token, normalised as the text will be. */
static bool normalize_content(tokenizer_reader *r, added_token *token)
{
    text_work work;
    bool ok = text_work_create(&work);
    if (ok) {
        aligned_begin(&work.text, token->content, token->length);
        split_list_add(&work.splits, (split){.end = work.text.length, .id = -1});
        ok = !work.splits.failed && !work.text.failed;
    }
    const mha_status status = ok ? tokenizer_normalize(r->t, &work) : MHA_ERR_MEMORY;
    if (status == MHA_OK) {
        char *const content = malloc(work.text.length + 1);
        ok = content != NULL;
        if (ok) {
            if (work.text.length)
                memcpy(content, work.text.text, work.text.length);
            content[work.text.length] = '\0';
            free(token->content);
            token->content = content;
            token->length = work.text.length;
        }
    }
    text_work_free(&work);
    if (status != MHA_OK && status != MHA_ERR_MEMORY)
        return reader_refuse(r, "the added token \"%.40s\" cannot be normalised", token->content);
    return (ok && status == MHA_OK) || reader_no_memory(r);
}

bool finish_added_tokens(tokenizer_reader *r)
{
    mha_tokenizer *const t = r->t;
    added_tokens *const list = &t->normalized;
    size_t kept = 0;
    for (size_t n = 0; n < list->count; n++)
        if (t->normalizer_count && !normalize_content(r, &list->tokens[n]))
            return false;
    for (size_t n = 0; n < list->count; n++) {
        if (list->tokens[n].length)
            list->tokens[kept++] = list->tokens[n];
        else
            free(list->tokens[n].content);
    }
    list->count = kept;
    added_tokens_sort(&t->raw);
    added_tokens_sort(&t->normalized);
    /* As Rust's \w: with the joiners, and without the fractions of Oniguruma's. */
    return t->word ||
           make_pattern(r, &t->word, "(?![\\xb2\\xb3\\xb9\\xbc-\\xbe])[\\w\\x{200c}\\x{200d}]",
                        false);
}

/* ---------------------------------------------------------------- models ----- */

bool finish_wordpiece(tokenizer_reader *r, const char *prefix)
{
    r->t->wordpiece.unknown = r->t->unknown;
    return wordpiece_create(&r->t->wordpiece, r->t->v, prefix) || reader_no_memory(r);
}

bool make_bpe(tokenizer_reader *r, const bpe_config *config)
{
    r->t->kind = MODEL_BPE;
    r->t->unknown = config->unknown;
    r->t->bpe = bpe_create(r->t->v, config);
    return r->t->bpe || reader_no_memory(r);
}

/* The merged piece: the second one loses the prefix that marks the inside of a word. */
bool add_merge(tokenizer_reader *r, const char *left, const char *right, size_t number,
               const char *prefix)
{
    const vocabulary *const v = r->t->v;
    const size_t skipped = prefix ? strlen(prefix) : 0, length = strlen(right);
    const int32_t first = vocab_find(v, left, strlen(left)), second = vocab_find(v, right, length);
    if (first < 0 || second < 0)
        return reader_refuse(r, "merge %zu: \"%.40s\" is not in the vocabulary", number,
                             first < 0 ? left : right);
    text_buffer merged = {0};
    text_buffer_add_string(&merged, left);
    text_buffer_add_string(&merged, right + (skipped < length ? skipped : length));
    const int32_t id = merged.failed ? -1 : vocab_find(v, merged.bytes, merged.length);
    bool ok = !merged.failed;
    if (!ok)
        reader_no_memory(r);
    else if (id < 0)
        ok =
            reader_refuse(r, "merge %zu: \"%.40s\" is not in the vocabulary", number, merged.bytes);
    else
        ok = bpe_add_merge(r->t->bpe, first, second, id) || reader_no_memory(r);
    text_buffer_free(&merged);
    return ok;
}

bool add_merge_line(tokenizer_reader *r, const char *line, size_t length, size_t number,
                    const char *prefix)
{
    const char *const space = memchr(line, ' ', length);
    const size_t first = space ? (size_t)(space - line) : 0;
    if (first == 0 || first + 1 == length || memchr(space + 1, ' ', length - first - 1))
        return reader_refuse(r, "merge %zu is not two pieces with a space between them", number);
    char *const both = malloc(length + 1);
    if (!both)
        return reader_no_memory(r);
    memcpy(both, line, length);
    both[length] = both[first] = '\0';
    const bool ok = add_merge(r, both, both + first + 1, number, prefix);
    free(both);
    return ok;
}
