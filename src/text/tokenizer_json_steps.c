/* SPDX-License-Identifier: MIT */
/*
 * The steps of a tokenizer.json before and after the model: normalizer, pre_tokenizer,
 * post_processor and decoder. A part that is not known is refused with its name.
 */
#include "text/base64.h"
#include "text/tokenizer_parts.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool is_absent(const json_value *value)
{
    return json_tree_type_of(value) == JSON_TREE_NULL;
}

static bool is(const char *type, const char *name)
{
    return strcmp(type, name) == 0;
}

/* Reads the parts of a "Sequence". */
static bool read_list(tokenizer_reader *r, const json_value *list, int depth,
                      bool (*read)(tokenizer_reader *, const json_value *, int))
{
    if (depth > 8 || json_tree_type_of(list) != JSON_TREE_ARRAY)
        return reader_refuse(r, "a Sequence without a list, or in more than 8 others");
    for (size_t n = 0; n < json_tree_count(list); n++)
        if (!read(r, json_tree_element(list, n), depth + 1))
            return false;
    return true;
}

/* {"String": "..."} or {"Regex": "..."}; old files have the string alone. */
static bool read_pattern(tokenizer_reader *r, const json_value *value, pattern **made)
{
    const char *text;
    bool literal = true;
    if (!json_tree_get_string(value, &text, NULL) &&
        !json_tree_get_string(json_tree_member(value, "String"), &text, NULL)) {
        literal = false;
        if (!json_tree_get_string(json_tree_member(value, "Regex"), &text, NULL))
            return reader_refuse(r, "a pattern that is neither a String nor a Regex");
    }
    if (text[0] == '\0')
        return reader_refuse(r, "an empty pattern");
    return make_pattern(r, made, text, literal);
}

/* A string of one character. */
static bool read_character(tokenizer_reader *r, const json_value *value, const char *name,
                           const char *otherwise, uint32_t *c)
{
    const char *const text = member_string(value, name, otherwise);
    const size_t length = strlen(text);
    if (length == 0 || utf8_decode(text, length, c) != length)
        return reader_refuse(r, "\"%s\" is \"%.40s\", not one character", name, text);
    return true;
}

static bool copy_content(tokenizer_reader *r, const char *text, char **copy)
{
    *copy = text_copy(text);
    return *copy || reader_no_memory(r);
}

/* ------------------------------------------------------------ normalizer ----- */

static bool read_bert_normalizer(tokenizer_reader *r, const json_value *value)
{
    const bool lower = member_flag(value, "lowercase", true);
    return add_bert_normalizer(r, member_flag(value, "clean_text", true),
                               member_flag(value, "handle_chinese_chars", true),
                               member_flag(value, "strip_accents", lower), lower);
}

static bool read_replace(tokenizer_reader *r, const json_value *value)
{
    normalizer_step step = {.kind = NORMALIZE_REPLACE};
    if (!read_pattern(r, json_tree_member(value, "pattern"), &step.pattern))
        return false;
    if (!copy_content(r, member_string(value, "content", ""), &step.content)) {
        normalizer_step_free(&step);
        return false;
    }
    return add_normalizer(r, step);
}

static bool read_prepend(tokenizer_reader *r, const json_value *value)
{
    normalizer_step step = {.kind = NORMALIZE_PREPEND};
    return copy_content(r, member_string(value, "prepend", ""), &step.content) &&
           add_normalizer(r, step);
}

static bool read_precompiled(tokenizer_reader *r, const json_value *value)
{
    normalizer_step step = {.kind = NORMALIZE_PRECOMPILED};
    const char *const text = member_string(value, "precompiled_charsmap", "");
    size_t length = 0;
    unsigned char *bytes;
    mha_status status = base64_decode(text, strlen(text), &bytes, &length);
    if (status == MHA_OK)
        status = precompiled_create(&step.rules, bytes, length);
    free(bytes);
    if (status == MHA_ERR_MEMORY)
        return reader_no_memory(r);
    if (status != MHA_OK)
        return reader_refuse(r, "precompiled_charsmap is not base64 of a table of rules");
    return add_normalizer(r, step);
}

static bool read_one_normalizer(tokenizer_reader *r, const json_value *value, int depth)
{
    static const struct {
        const char *name;
        normalizer_kind kind;
    } plain[] = {{"NFC", NORMALIZE_NFC},
                 {"NFD", NORMALIZE_NFD},
                 {"NFKC", NORMALIZE_NFKC},
                 {"NFKD", NORMALIZE_NFKD},
                 {"Lowercase", NORMALIZE_LOWERCASE},
                 {"StripAccents", NORMALIZE_STRIP_ACCENTS},
                 {"Nmt", NORMALIZE_NMT},
                 {"ByteLevel", NORMALIZE_BYTE_LEVEL}};
    const char *const type = member_string(value, "type", "");
    for (size_t n = 0; n < sizeof plain / sizeof plain[0]; n++)
        if (is(type, plain[n].name)) {
            r->t->byte_level |= plain[n].kind == NORMALIZE_BYTE_LEVEL;
            return add_normalizer(r, (normalizer_step){.kind = plain[n].kind});
        }
    if (is(type, "Sequence"))
        return read_list(r, json_tree_member(value, "normalizers"), depth, read_one_normalizer);
    if (is(type, "BertNormalizer"))
        return read_bert_normalizer(r, value);
    if (is(type, "Strip"))
        return add_normalizer(r,
                              (normalizer_step){.kind = NORMALIZE_STRIP,
                                                .left = member_flag(value, "strip_left", true),
                                                .right = member_flag(value, "strip_right", true)});
    if (is(type, "Replace"))
        return read_replace(r, value);
    if (is(type, "Prepend"))
        return read_prepend(r, value);
    if (is(type, "Precompiled"))
        return read_precompiled(r, value);
    return reader_refuse(r, "the normalizer \"%.40s\" is not supported", type);
}

bool read_normalizer(tokenizer_reader *r, const json_value *value)
{
    return is_absent(value) || read_one_normalizer(r, value, 0);
}

/* --------------------------------------------------------- pre_tokenizer ----- */

static bool read_behavior(tokenizer_reader *r, const json_value *value, split_behavior *behavior)
{
    static const char *const names[] = {[SPLIT_REMOVED] = "Removed",
                                        [SPLIT_ISOLATED] = "Isolated",
                                        [SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
                                        [SPLIT_CONTIGUOUS] = "Contiguous"};
    const char *const name = member_string(value, "behavior", "Isolated");
    for (int n = 0; n <= SPLIT_CONTIGUOUS; n++)
        if (is(name, names[n])) {
            *behavior = (split_behavior)n;
            return true;
        }
    return reader_refuse(r, "the behavior \"%.40s\" is not supported", name);
}

static bool read_split(tokenizer_reader *r, const json_value *value)
{
    pre_tokenizer_step step = {.kind = PRE_PATTERN, .invert = member_flag(value, "invert", false)};
    return read_behavior(r, value, &step.behavior) &&
           read_pattern(r, json_tree_member(value, "pattern"), &step.pattern) &&
           add_pre_tokenizer(r, step);
}

/* Words, and the rest between them, without spaces: Rust's \w, not Oniguruma's. */
static bool read_whitespace(tokenizer_reader *r)
{
    pre_tokenizer_step step = {.kind = PRE_PATTERN, .behavior = SPLIT_REMOVED, .invert = true};
    return make_pattern(r, &step.pattern,
                        "(?:(?![\\xb2\\xb3\\xb9\\xbc-\\xbe])[\\w\\x{200c}\\x{200d}])+|"
                        "(?:[\\xb2\\xb3\\xb9\\xbc-\\xbe]|[^\\w\\x{200c}\\x{200d}\\s])+",
                        false) &&
           add_pre_tokenizer(r, step);
}

static bool read_metaspace(tokenizer_reader *r, const json_value *value)
{
    pre_tokenizer_step step = {.kind = PRE_METASPACE, .divides = member_flag(value, "split", true)};
    const char *const older = member_flag(value, "add_prefix_space", true) ? "always" : "never";
    const char *const scheme = member_string(value, "prepend_scheme", older);
    step.scheme = is(scheme, "always")  ? PREPEND_ALWAYS
                  : is(scheme, "first") ? PREPEND_FIRST
                                        : PREPEND_NEVER;
    return read_character(r, value, "replacement", "\xe2\x96\x81", &step.character) &&
           add_pre_tokenizer(r, step);
}

static bool read_delimiter(tokenizer_reader *r, const json_value *value)
{
    pre_tokenizer_step step = {.kind = PRE_CHARACTER, .behavior = SPLIT_REMOVED};
    return read_character(r, value, "delimiter", " ", &step.character) &&
           add_pre_tokenizer(r, step);
}

static bool read_one_pre_tokenizer(tokenizer_reader *r, const json_value *value, int depth)
{
    const char *const type = member_string(value, "type", "");
    pre_tokenizer_step step = {0};
    if (is(type, "Sequence"))
        return read_list(r, json_tree_member(value, "pretokenizers"), depth,
                         read_one_pre_tokenizer);
    if (is(type, "ByteLevel"))
        return add_byte_level(r, member_flag(value, "add_prefix_space", true),
                              member_flag(value, "use_regex", true) ? gpt2_pattern : NULL);
    if (is(type, "BertPreTokenizer"))
        return add_bert_pre_tokenizer(r);
    if (is(type, "Whitespace"))
        return read_whitespace(r);
    if (is(type, "Split"))
        return read_split(r, value);
    if (is(type, "Metaspace"))
        return read_metaspace(r, value);
    if (is(type, "CharDelimiterSplit"))
        return read_delimiter(r, value);
    if (is(type, "WhitespaceSplit")) {
        step = (pre_tokenizer_step){.kind = PRE_SPACE, .behavior = SPLIT_REMOVED};
        return add_pre_tokenizer(r, step);
    }
    if (is(type, "Punctuation")) {
        step.kind = PRE_PUNCTUATION;
        return read_behavior(r, value, &step.behavior) && add_pre_tokenizer(r, step);
    }
    if (is(type, "Digits")) {
        step.kind = PRE_NUMERIC;
        step.behavior =
            member_flag(value, "individual_digits", false) ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
        return add_pre_tokenizer(r, step);
    }
    return reader_refuse(r, "the pre-tokenizer \"%.40s\" is not supported", type);
}

bool read_pre_tokenizer(tokenizer_reader *r, const json_value *value)
{
    return is_absent(value) || read_one_pre_tokenizer(r, value, 0);
}

/* -------------------------------------------------------- post_processor ----- */

/* The marks of one "SpecialToken": the ids that special_tokens has for its name. */
static bool read_template_marks(tokenizer_reader *r, template_list *list, const json_value *table,
                                const char *name, int32_t segment)
{
    const json_value *const ids = json_tree_member(json_tree_member(table, name), "ids");
    if (json_tree_type_of(ids) != JSON_TREE_ARRAY)
        return reader_refuse(r,
                             "the template names the token \"%.40s\", which special_tokens "
                             "does not have",
                             name);
    for (size_t n = 0; n < json_tree_count(ids); n++) {
        int64_t id;
        if (!json_tree_get_integer(json_tree_element(ids, n), &id) || id < 0 ||
            id >= VOCABULARY_MAX)
            return reader_refuse(r, "special_tokens: an id of \"%.40s\" is out of range", name);
        if (!add_template_mark(r, list, (int32_t)id, segment))
            return false;
    }
    return true;
}

static bool read_template_list(tokenizer_reader *r, const json_value *value,
                               const json_value *table, template_list *list)
{
    int texts[2] = {0, 0};
    list->count = 0;
    for (size_t n = 0; n < json_tree_count(value); n++) {
        const json_value *const part = json_tree_element(value, n);
        const json_value *const mark = json_tree_member(part, "SpecialToken");
        const json_value *const text = json_tree_member(part, "Sequence");
        const int64_t segment = member_integer(mark ? mark : text, "type_id", 0);
        const char *const id = member_string(mark ? mark : text, "id", "");
        if (mark) {
            if (!read_template_marks(r, list, table, id, segment == 1))
                return false;
        } else if ((is(id, "A") || is(id, "B")) && !texts[is(id, "B")]++) {
            add_template_text(list, is(id, "B"));
        } else {
            return reader_refuse(r, "a template with an element that is neither a SpecialToken "
                                    "nor the Sequence A or B, once each");
        }
    }
    return true;
}

static bool read_template(tokenizer_reader *r, const json_value *value)
{
    const json_value *const table = json_tree_member(value, "special_tokens");
    return read_template_list(r, json_tree_member(value, "single"), table, &r->t->single) &&
           read_template_list(r, json_tree_member(value, "pair"), table, &r->t->pair);
}

/* ["[SEP]", 102] */
static bool read_named_mark(tokenizer_reader *r, const json_value *value, const char *name,
                            int32_t *id)
{
    int64_t number;
    if (!json_tree_get_integer(json_tree_element(json_tree_member(value, name), 1), &number) ||
        number < 0 || number >= VOCABULARY_MAX)
        return reader_refuse(r, "post_processor.%s is not [token, id]", name);
    *id = (int32_t)number;
    return true;
}

/* BERT: [CLS] A [SEP] B [SEP]; RoBERTa: <s> A </s> </s> B </s>. */
static bool read_two_marks(tokenizer_reader *r, const json_value *value, bool roberta)
{
    mha_tokenizer *const t = r->t;
    int32_t first = -1, last = -1;
    if (!read_named_mark(r, value, "cls", &first) || !read_named_mark(r, value, "sep", &last))
        return false;
    return add_two_marks(r, &t->single, &t->pair, first, last, roberta);
}

bool add_two_marks(tokenizer_reader *r, template_list *single, template_list *pair, int32_t first,
                   int32_t last, bool roberta)
{
    single->count = pair->count = 0;
    if (!add_template_mark(r, single, first, 0) || !add_template_mark(r, pair, first, 0))
        return false;
    add_template_text(single, 0);
    add_template_text(pair, 0);
    if (!add_template_mark(r, single, last, 0) || !add_template_mark(r, pair, last, 0) ||
        (roberta && !add_template_mark(r, pair, last, 0)))
        return false;
    add_template_text(pair, 1);
    return add_template_mark(r, pair, last, !roberta);
}

static bool read_one_post_processor(tokenizer_reader *r, const json_value *value, int depth)
{
    mha_tokenizer *const t = r->t;
    const char *const type = member_string(value, "type", "");
    const bool roberta = is(type, "RobertaProcessing");
    if (is(type, "Sequence"))
        return read_list(r, json_tree_member(value, "processors"), depth, read_one_post_processor);
    if ((is(type, "ByteLevel") || roberta) && member_flag(value, "trim_offsets", true)) {
        t->trims_offsets = true;
        t->trims_prefix = member_flag(value, "add_prefix_space", true);
    }
    if (is(type, "ByteLevel"))
        return true;
    if (t->single.count || t->pair.count)
        return reader_refuse(r, "more than one post-processor that adds marks");
    if (roberta || is(type, "BertProcessing"))
        return read_two_marks(r, value, roberta);
    if (is(type, "TemplateProcessing"))
        return read_template(r, value);
    return reader_refuse(r, "the post-processor \"%.40s\" is not supported", type);
}

bool read_post_processor(tokenizer_reader *r, const json_value *value)
{
    return is_absent(value) || read_one_post_processor(r, value, 0);
}

/* --------------------------------------------------------------- decoder ----- */

static bool read_strip_decoder(tokenizer_reader *r, const json_value *value)
{
    decoder_step step = {.kind = DECODE_STRIP};
    const int64_t start = member_integer(value, "start", 0),
                  stop = member_integer(value, "stop", 0);
    step.start = start > 0 ? (size_t)start : 0;
    step.stop = stop > 0 ? (size_t)stop : 0;
    return read_character(r, value, "content", " ", &step.character) && add_decoder(r, step);
}

static bool read_metaspace_decoder(tokenizer_reader *r, const json_value *value)
{
    decoder_step step = {.kind = DECODE_METASPACE};
    const char *const older = member_flag(value, "add_prefix_space", true) ? "always" : "never";
    step.drop_first = !is(member_string(value, "prepend_scheme", older), "never");
    return read_character(r, value, "replacement", "\xe2\x96\x81", &step.character) &&
           add_decoder(r, step);
}

static bool read_text_decoder(tokenizer_reader *r, decoder_kind kind, const char *content,
                              bool cleanup)
{
    decoder_step step = {.kind = kind, .cleanup = cleanup};
    return copy_content(r, content, &step.content) && add_decoder(r, step);
}

static bool read_replace_decoder(tokenizer_reader *r, const json_value *value)
{
    decoder_step step = {.kind = DECODE_REPLACE};
    if (!read_pattern(r, json_tree_member(value, "pattern"), &step.pattern))
        return false;
    if (!copy_content(r, member_string(value, "content", ""), &step.content)) {
        decoder_step_free(&step);
        return false;
    }
    return add_decoder(r, step);
}

static bool read_one_decoder(tokenizer_reader *r, const json_value *value, int depth)
{
    const char *const type = member_string(value, "type", "");
    if (is(type, "Sequence"))
        return read_list(r, json_tree_member(value, "decoders"), depth, read_one_decoder);
    if (is(type, "ByteLevel"))
        return add_decoder(r, (decoder_step){.kind = DECODE_BYTE_LEVEL});
    if (is(type, "ByteFallback"))
        return add_decoder(r, (decoder_step){.kind = DECODE_BYTE_FALLBACK});
    if (is(type, "Fuse"))
        return add_decoder(r, (decoder_step){.kind = DECODE_FUSE});
    if (is(type, "WordPiece"))
        return read_text_decoder(r, DECODE_WORDPIECE, member_string(value, "prefix", "##"),
                                 member_flag(value, "cleanup", true));
    if (is(type, "BPEDecoder"))
        return read_text_decoder(r, DECODE_BPE, member_string(value, "suffix", "</w>"), false);
    if (is(type, "Metaspace"))
        return read_metaspace_decoder(r, value);
    if (is(type, "Strip"))
        return read_strip_decoder(r, value);
    if (is(type, "Replace"))
        return read_replace_decoder(r, value);
    return reader_refuse(r, "the decoder \"%.40s\" is not supported", type);
}

bool read_decoder(tokenizer_reader *r, const json_value *value)
{
    if (is_absent(value))
        return add_decoder(r, (decoder_step){.kind = DECODE_SPACES});
    return read_one_decoder(r, value, 0);
}
