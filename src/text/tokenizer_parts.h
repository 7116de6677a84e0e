/* SPDX-License-Identifier: MIT */
/*
 * What a tokenizer has inside, and how its files fill it in. A text goes through
 *
 *      added tokens -> normalizers -> added tokens -> pre-tokenizers -> model -> template
 *
 * as in the library "tokenizers", or, for SentencePiece, through added tokens and that engine.
 */
#ifndef TEXT_TOKENIZER_PARTS_H
#define TEXT_TOKENIZER_PARTS_H

#include "format/json_tree.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/chat.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/sentencepiece.h"
#include "text/unigram.h"
#include "text/wordpiece.h"

#include <mha/mha_model.h>

enum { TOKENIZER_STEPS_MAX = 32, TEMPLATE_MAX = 64, MARKS = MHA_MARK_TURN_END + 1 };

typedef enum model_kind { MODEL_WORDPIECE, MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDLEVEL } model_kind;

/* An element of a template: a mark, or one of the texts. */
enum { TEMPLATE_FIRST = -1, TEMPLATE_SECOND = -2 };
typedef struct template_part {
    int32_t id; /* of a mark, or TEMPLATE_FIRST or TEMPLATE_SECOND */
    int32_t segment;
} template_part;

typedef struct template_list {
    template_part parts[TEMPLATE_MAX];
    size_t count; /* 0: the texts without marks */
} template_list;

struct mha_tokenizer {
    vocabulary *v;                /* empty with a SentencePiece engine */
    sentencepiece *sentencepiece; /* NULL: the model below */
    bool byte_level;

    added_tokens raw, normalized; /* searched before and after normalisation */
    pattern *word;                /* one character of a word */
    normalizer_step normalizers[TOKENIZER_STEPS_MAX];
    size_t normalizer_count;
    pre_tokenizer_step pre[TOKENIZER_STEPS_MAX];
    size_t pre_count;

    model_kind kind;
    int32_t unknown; /* -1: none */
    wordpiece wordpiece;
    bpe *bpe;
    unigram *unigram;

    template_list single, pair;
    bool trims_offsets, trims_prefix; /* spaces at the ends of a piece are not in its offsets */
    decoder_step decoders[TOKENIZER_STEPS_MAX];
    size_t decoder_count;

    int32_t marks[MARKS];
    chat_style chat;
};

/* The vocabulary, whichever engine has it. */
const vocabulary *tokenizer_vocabulary(const mha_tokenizer *t);

/* ----------------------------------------------------------------- files ----- */

/* A tokenizer that is being read, and where messages go. */
typedef struct tokenizer_reader {
    mha_tokenizer *t;
    const char *path;
    mha_status status; /* of the first fault */
    char *message;
    size_t message_size;
    bool target; /* of a translator's file: the words that it writes */
} tokenizer_reader;

/* Records a fault, "PATH: ..."; returns false. */
bool reader_refuse(tokenizer_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool reader_no_memory(tokenizer_reader *r);
/* For messages that another reader has written. */
bool reader_failed(tokenizer_reader *r, mha_status status);

/* "FOLDER/name" for the folder of a file; NULL with a fault if out of memory. The caller frees it.
 */
char *reader_beside(tokenizer_reader *r, const char *path, const char *name);

/* One file or part each. They return false with a fault recorded. */
bool read_tokenizer_json(tokenizer_reader *r, const char *path);
bool read_tokenizer_json_text(tokenizer_reader *r, const char *text, size_t length);
bool read_vocab_txt(tokenizer_reader *r, const char *path);
bool read_vocab_json(tokenizer_reader *r, const char *path, const char *merges);
bool read_tiktoken(tokenizer_reader *r, const char *path);
bool read_gguf(tokenizer_reader *r, const char *path);
bool read_sentencepiece(tokenizer_reader *r, const char *path);
bool read_llama2c(tokenizer_reader *r, const char *path);
bool read_translator_words(tokenizer_reader *r, const char *path);

/* tokenizer_config.json and special_tokens_map.json beside a file: the names of marks, and the
 * template of chats. Missing files are no fault. */
bool read_settings(tokenizer_reader *r, const char *path);

/* Parts of tokenizer.json. */
bool read_model(tokenizer_reader *r, const json_value *model);
bool read_added_tokens(tokenizer_reader *r, const json_value *list);
bool read_normalizer(tokenizer_reader *r, const json_value *value);
bool read_pre_tokenizer(tokenizer_reader *r, const json_value *value);
bool read_post_processor(tokenizer_reader *r, const json_value *value);
bool read_decoder(tokenizer_reader *r, const json_value *value);

/* The marks of BERT or RoBERTa around texts: add_two_marks(). */
/* Steps that files without a tokenizer.json stand for. */
bool add_normalizer(tokenizer_reader *r, normalizer_step step);
bool add_pre_tokenizer(tokenizer_reader *r, pre_tokenizer_step step);
bool add_decoder(tokenizer_reader *r, decoder_step step);
bool add_bert_normalizer(tokenizer_reader *r, bool clean, bool chinese, bool strip, bool lower);
bool add_bert_pre_tokenizer(tokenizer_reader *r);
bool add_byte_level(tokenizer_reader *r, bool prefix_space, const char *regex);
bool add_two_marks(tokenizer_reader *r, template_list *single, template_list *pair, int32_t first,
                   int32_t last, bool roberta);
bool add_template_mark(tokenizer_reader *r, template_list *list, int32_t id, int32_t segment);
void add_template_text(template_list *list, int text);
bool make_pattern(tokenizer_reader *r, pattern **made, const char *text, bool literal);
/* Adds a token that is searched in texts; it gets the id, or the one that the model has for it. */
bool add_token(tokenizer_reader *r, added_token token);
/* After all tokens: sorts them, and normalises those that are searched in normalised text. */
bool finish_added_tokens(tokenizer_reader *r);
bool make_bpe(tokenizer_reader *r, const bpe_config *config);
/* The prefix of pieces inside of words; the rest is set. */
bool finish_wordpiece(tokenizer_reader *r, const char *prefix);
/* "left right" on one line. */
bool add_merge_line(tokenizer_reader *r, const char *line, size_t length, size_t number,
                    const char *prefix);
bool add_merge(tokenizer_reader *r, const char *left, const char *right, size_t number,
               const char *prefix);

bool add_known_marks(tokenizer_reader *r, const char *const *names, size_t count);
bool finish_bert(tokenizer_reader *r, bool lower, bool strip, bool chinese,
                 const json_value *config);
bool finish_byte_level(tokenizer_reader *r);
bool finish_sentencepiece(tokenizer_reader *r);

/* The ids of marks by their usual names, as far as they are not known yet; the style of chats. */
bool find_marks(tokenizer_reader *r);
bool find_chat(tokenizer_reader *r, const char *template_text, size_t length);

/* An empty one; NULL: out of memory. */
mha_tokenizer *tokenizer_create(void);

/* mha_tokenizer_open() for the text of a tokenizer.json, which messages call `name`. */
mha_status tokenizer_open_json(mha_tokenizer **tokenizer, const char *json, size_t length,
                               const char *name, char *message, size_t message_size);

/* A JSON file beside another one. NULL if there is none; a damaged one is a fault. */
json_tree *read_beside(tokenizer_reader *r, const char *path, const char *name);

/* The pattern of GPT-2. */
extern const char gpt2_pattern[];

/* Members of JSON objects, or what is given if there is none of that type. */
const char *member_string(const json_value *value, const char *name, const char *otherwise);
bool member_flag(const json_value *value, const char *name, bool otherwise);
int64_t member_integer(const json_value *value, const char *name, int64_t otherwise);

/* ---------------------------------------------------------------- encode ----- */

/* Appends the tokens of one text. `dropout` may be NULL. */
mha_status tokenizer_encode_text(const mha_tokenizer *t, const char *text, size_t length,
                                 unsigned flags, const bpe_dropout *dropout, token_list *list);

/* Runs all steps before the model: the splits of `work` are added tokens, and words that the model
 * divides into tokens. `plain`: marks are ordinary text. `work` may be used again. */
mha_status tokenizer_divide(const mha_tokenizer *t, const char *text, size_t length, bool plain,
                            text_work *work);

/* Normalises a text alone, such as the content of an added token. */
mha_status tokenizer_normalize(const mha_tokenizer *t, text_work *work);

#endif
