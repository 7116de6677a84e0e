/* SPDX-License-Identifier: MIT */
/*
 * From the configuration of a model to its description. Every family has a table of fields (which
 * keys of config.json or of GGUF metadata give which number of the description, with the family's
 * default) and a function for what is not a plain number. Configurations are not trusted: every
 * number is checked, and messages name the file, the key and the value.
 */
#ifndef MODEL_DESCRIBE_H
#define MODEL_DESCRIBE_H

#include "format/gguf.h"
#include "format/json_tree.h"
#include "format/llama2c.h"
#include "model/description.h"

/* Where keys are looked up: an object of JSON, or the metadata of a GGUF file. */
typedef struct config_reader {
    const json_value *object; /* or NULL */
    const gguf_file *gguf;    /* or NULL */
    const char *prefix;       /* GGUF: keys are "prefix.key" */
    const char *path;         /* for messages */
    char *message;            /* or NULL */
    size_t message_size;
} config_reader;

typedef enum config_type {
    CONFIG_ABSENT,
    CONFIG_NULL,
    CONFIG_NUMBER, /* also an array of equal numbers */
    CONFIG_BOOL,
    CONFIG_TEXT,
    CONFIG_OTHER
} config_type;

typedef struct config_value {
    config_type type;
    double number;
    bool truth;
    char text[48]; /* longer ones are cut */
} config_value;

/* The value of a key. A dot in a key of JSON leads into an object: "rope_parameters.rope_theta". */
config_value config_get(const config_reader *r, const char *key);

/* The first of several keys, separated by blanks, that is there. `key` receives its name. */
enum { CONFIG_KEY_MAX = 64 };
config_value config_get_any(const config_reader *r, const char *keys, char key[CONFIG_KEY_MAX]);

/* Writes "PATH: " and the text into the message; returns `status`. */
mha_status config_fail(const config_reader *r, mha_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
mha_status config_fail_memory(const config_reader *r);

/* Kinds of fields: the type in the description, and the range. */
typedef enum field_kind {
    FIELD_LAYERS,     /* int, 1 .. MODEL_LAYERS_MAX */
    FIELD_WIDTH,      /* int, 1 .. MODEL_WIDTH_MAX */
    FIELD_WIDTH_ZERO, /* the same, or 0 */
    FIELD_HEADS,      /* int, 1 .. MODEL_WIDTH_MAX */
    FIELD_HEADS_ZERO,
    FIELD_ROWS,      /* int, 1 .. MODEL_ROWS_MAX: words, positions */
    FIELD_ROWS_ZERO, /* the same, or 0 */
    FIELD_TOKEN,     /* int32_t, -1 .. MODEL_ROWS_MAX; null: -1 */
    FIELD_END,       /* the same; describe_tokens() reads a list of them */
    FIELD_BOOL,
    FIELD_EPS,    /* float, 0 < eps < 1 */
    FIELD_NUMBER, /* float, 0 .. 1e9 */
    FIELD_ACTIVATION
} field_kind;

enum { MODEL_WIDTH_MAX = 1 << 20, MODEL_ROWS_MAX = 1 << 28 };

typedef struct config_field {
    const char *keys; /* alternatives, separated by blanks; NULL ends a table */
    field_kind kind;
    size_t at;        /* offset in the description */
    double otherwise; /* if no key is there */
} config_field;

/* A null counts as 0 (a token: -1) in the kinds *_ZERO, TOKEN, END and NUMBER, and as no key in the
 * others. */
mha_status config_read_fields(const config_reader *r, const config_field *fields,
                              model_description *d);

/* One key: *value is unchanged if it is not there. */
mha_status config_read_bool(const config_reader *r, const char *keys, bool *value);
mha_status config_read_number(const config_reader *r, const char *keys, double least, double most,
                              double *value);

/* False if there is no activation of this name, as Hugging Face spells them. */
bool config_activation(const char *name, mha_activation *activation);

/* --------------------------------------------------------------- shared ----- */

/* Rotary positions: base, scaling. `most` is the longest text of the model. */
mha_status describe_rope(const config_reader *r, model_description *d, double base);
mha_status describe_rope_gguf(const config_reader *r, model_description *d, double base);

/* The windows of layers by "layer_types", if it is there. */
mha_status describe_windows(const config_reader *r, attention_description *a, int layers);

/* Begin, end and pad marks, and what generation needs; used for config.json and again for
 * generation_config.json, which overrides it. */
mha_status describe_tokens(const config_reader *r, model_usage *usage);

/* Marks that the vocabulary does not have become -1; a decoder that would begin with one is
 * refused.
 */
mha_status describe_marks(const config_reader *r, model_description *d);

/* Heads that were removed before the files were written: describe_pruned.c has the keys. */
#define PRUNED_KEY "pruned_heads"
#define PRUNED_OWN_KEY "mha_pruned_heads"
mha_status describe_pruned(const config_reader *r, model_description *d);

/* The name of an attention in PRUNED_OWN_KEY. */
const char *attention_key(mha_attention_kind kind);

/* What follows from the fields (head width, key heads ...), and checks that concern several. */
mha_status describe_settle(const config_reader *r, model_description *d);

/* ------------------------------------------------------------- families ----- */

/* Functions of the families: what their tables of fields cannot say. */
mha_status describe_bert(const config_reader *r, model_description *d);
mha_status describe_roberta(const config_reader *r, model_description *d);
mha_status describe_distilbert(const config_reader *r, model_description *d);
mha_status describe_albert(const config_reader *r, model_description *d);
mha_status describe_electra(const config_reader *r, model_description *d);
mha_status describe_vit(const config_reader *r, model_description *d);
mha_status describe_mha_vit(const config_reader *r, model_description *d);
mha_status describe_gpt2(const config_reader *r, model_description *d);
mha_status describe_llama(const config_reader *r, model_description *d);
mha_status describe_qwen2(const config_reader *r, model_description *d);
mha_status describe_qwen3(const config_reader *r, model_description *d);
mha_status describe_gemma(const config_reader *r, model_description *d);
mha_status describe_gemma2(const config_reader *r, model_description *d);
mha_status describe_gemma3(const config_reader *r, model_description *d);
mha_status describe_t5(const config_reader *r, model_description *d);
mha_status describe_bart(const config_reader *r, model_description *d);
mha_status describe_mbart(const config_reader *r, model_description *d);
mha_status describe_marian(const config_reader *r, model_description *d);
mha_status describe_transformer(const config_reader *r, model_description *d);
mha_status describe_translator(const config_reader *r, model_description *d);

extern const config_field bert_fields[], roberta_fields[], distilbert_fields[], albert_fields[],
    electra_fields[], vit_fields[], mha_vit_fields[], gpt2_fields[], llama_fields[],
    mistral_fields[], qwen2_fields[], qwen3_fields[], gemma_fields[], gemma2_fields[],
    gemma3_fields[], t5_fields[], bart_fields[], marian_fields[], transformer_fields[],
    translator_fields[];

/* ------------------------------------------------------------ whole files ----- */

struct model_family;

/* Fills in the description of an empty `d`, also on error, when description_free() frees what there
 * is. `family` receives the family. */
mha_status describe_config(model_description *d, const struct model_family **family,
                           const config_reader *r);
mha_status describe_gguf(model_description *d, const struct model_family **family,
                         const config_reader *r);
mha_status describe_llama2c(model_description *d, const struct model_family **family,
                            const llama2c_file *file, const config_reader *r);
/* The "config" in the metadata of a file of "mha train". */
mha_status describe_translator_config(model_description *d, const struct model_family **family,
                                      const config_reader *r);

/* An empty description of a family. */
void description_begin(model_description *d, const struct model_family *family);
void description_free(model_description *d);

#endif
