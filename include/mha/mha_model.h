/* SPDX-License-Identifier: MIT */
/*
 * libmha_model: whole transformer models on top of libmha.
 *
 *      mha_model_open() reads a model as it was published: a folder in Hugging Face's form, a GGUF
 *      file, a file of llama2.c, or a translator of "mha train". One forward pass runs them all:
 *      BERT and its relatives, GPT-2, Llama and its relatives, T5, BART and Marian, ViT.
 *
 * The header has six sections:
 *
 *      1. tokenizer  text to token ids and back
 *      2. model      open a model, what it is
 *      3. state      keys and values of running sequences
 *      4. run        tokens to hidden states and logits; capture and change heads
 *      5. sentences  one vector per text
 *      6. generate   continue, translate and score texts
 *
 * The promises of mha.h hold for whole models: a sequence gives the same bits whatever the number
 * of threads, the other sequences of the call, and the way it is split into calls (with an f32
 * state). Errors are codes, with a sentence in the caller's `message`; the library never prints,
 * aborts or exits. Files are not trusted.
 */
#ifndef MHA_MHA_MODEL_H
#define MHA_MHA_MODEL_H

#include <mha/mha.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ========================================================= 1. tokenizer ===== */

/* A tokenizer never changes after it was opened: any number of threads may use it at the same
 * time. */
typedef struct mha_tokenizer mha_tokenizer;

/*
 * Opens the tokenizer at `path`: a folder in Hugging Face's form, or one of
 *
 *      tokenizer.json                       WordPiece, BPE and Unigram of the library "tokenizers"
 *      vocab.txt                            WordPiece, as BERT's
 *      vocab.json or encoder.json           byte-level BPE, with merges.txt or vocab.bpe beside it
 *      *.tiktoken                           byte-level BPE by ranks
 *      *.model, *.spm                       SentencePiece, BPE or unigram
 *      tokenizer.bin                        llama2.c
 *      *.gguf                               the tokenizer inside of a GGUF file
 *      *.safetensors                        the words that a translator of "mha train" reads
 *
 * The files tokenizer_config.json and special_tokens_map.json beside it name the marks and the form
 * of chats. Of a tokenizer.json, "truncation" and "padding" are ignored; a part of it that is not
 * known is an error that names it. On error *tokenizer is NULL. `message` may be NULL, here and
 * below.
 */
MHA_API mha_status mha_tokenizer_open(mha_tokenizer **tokenizer, const char *path, char *message,
                                      size_t message_size);

/* NULL is allowed. */
MHA_API void mha_tokenizer_free(mha_tokenizer *tokenizer);

/* The number of ids: they are 0 .. size-1. 0 for NULL. */
MHA_API ptrdiff_t mha_tokenizer_size(const mha_tokenizer *tokenizer);

/* "WordPiece", "byte-level BPE", "BPE", "unigram", "word list", "SentencePiece BPE" or
 * "SentencePiece unigram". NULL for NULL. */
MHA_API const char *mha_tokenizer_kind(const mha_tokenizer *tokenizer);

/* Bits of mha_token.flags and of mha_tokenizer_flags(). */
enum {
    MHA_TOKEN_SPECIAL = 1u << 0,  /* a mark such as [CLS] or </s>, not text */
    MHA_TOKEN_UNKNOWN = 1u << 1,  /* stands for text that the vocabulary does not have */
    MHA_TOKEN_CONTINUES = 1u << 2 /* continues the word that the token before it began */
};

/*
 * One token, and the bytes [begin, end) of the text that it was made from; a mark that was added
 * has begin == end. A token that is a part of a character has the bytes of the character; with
 * SentencePiece only the last one has. With pairs, tokens of the second text have segment 1 and
 * offsets into that text; marks have the segment that the tokenizer gives them. A model without
 * segments (RoBERTa) ignores them.
 */
typedef struct mha_token {
    int32_t id;
    uint32_t flags;
    int32_t segment;
    size_t begin, end;
} mha_token;

typedef struct mha_tokens {
    mha_token *tokens;
    ptrdiff_t count;
} mha_tokens;

/* Flags of mha_tokenizer_encode() and mha_tokenizer_decode(). */
enum {
    MHA_TEXT_MARKS = 1u << 0,     /* encode: add the marks that the model expects around a text */
    MHA_TEXT_PLAIN = 1u << 1,     /* encode: marks written in the text are ordinary text */
    MHA_TEXT_SKIP_MARKS = 1u << 2 /* decode: leave marks out */
};

/*
 * The tokens of a text of `length` bytes. Invalid UTF-8 is replaced by U+FFFD before anything else,
 * one for each longest beginning of a character, as Unicode recommends; offsets are those of the
 * bytes as given. On error *tokens is empty; otherwise mha_tokens_free() frees it. MHA_ERR_LENGTH:
 * the text has 2^29 bytes or more, or a pattern of the tokenizer takes too many steps on it.
 */
MHA_API mha_status mha_tokenizer_encode(const mha_tokenizer *tokenizer, const char *text,
                                        size_t length, unsigned flags, mha_tokens *tokens);

/* Two texts with the marks between them, as BERT compares sentences. */
MHA_API mha_status mha_tokenizer_encode_pair(const mha_tokenizer *tokenizer, const char *first,
                                             size_t first_length, const char *second,
                                             size_t second_length, unsigned flags,
                                             mha_tokens *tokens);
MHA_API void mha_tokens_free(mha_tokens *tokens);

/*
 * The text of some tokens, terminated by a zero byte that *length does not count, for
 * mha_text_free(). Tokens of bytes give these bytes, so a text may begin or end inside of a
 * character. `length` may be NULL. MHA_ERR_INDEX: an id does not exist.
 */
MHA_API mha_status mha_tokenizer_decode(const mha_tokenizer *tokenizer, const int32_t *ids,
                                        ptrdiff_t count, unsigned flags, char **text,
                                        size_t *length);
MHA_API void mha_text_free(char *text);

/* The entry of the vocabulary as it is stored ("##ing", "Ġthe", "▁the"); NULL for no such id. And
 * the id of an entry; -1 if there is none. */
MHA_API const char *mha_tokenizer_piece(const mha_tokenizer *tokenizer, int32_t id);
MHA_API int32_t mha_tokenizer_find(const mha_tokenizer *tokenizer, const char *piece);

/* MHA_TOKEN_SPECIAL and MHA_TOKEN_UNKNOWN of an id; 0 for no such id. */
MHA_API uint32_t mha_tokenizer_flags(const mha_tokenizer *tokenizer, int32_t id);

/* The marks that a tokenizer may have. */
typedef enum mha_mark {
    MHA_MARK_BEGIN = 0,     /* <s>, <|begin_of_text|>, [CLS] if there is no other */
    MHA_MARK_END = 1,       /* </s>, <|endoftext|>, [SEP] if there is no other */
    MHA_MARK_UNKNOWN = 2,   /* <unk>, [UNK] */
    MHA_MARK_PAD = 3,       /* <pad>, [PAD] */
    MHA_MARK_CLASS = 4,     /* [CLS] */
    MHA_MARK_SEPARATOR = 5, /* [SEP] */
    MHA_MARK_MASK = 6,      /* [MASK] */
    MHA_MARK_TURN_END = 7   /* <|im_end|>, <|eot_id|>: the end of a turn of a chat */
} mha_mark;

/* The id of a mark; -1 if there is none. */
MHA_API int32_t mha_tokenizer_mark(const mha_tokenizer *tokenizer, mha_mark mark);

typedef struct mha_chat_message {
    const char *role; /* "system", "user", "assistant" */
    const char *content;
} mha_chat_message;

/*
 * The text of a chat in the form that the model was trained on: ChatML, Llama 2 or Llama 3. The
 * form is recognised by the chat template of the model's files, or by the marks of its vocabulary.
 * If `reply` is not 0, the text ends where the assistant's reply begins. MHA_ERR_FLAG: the model's
 * form of chats is not one of these.
 */
MHA_API mha_status mha_tokenizer_chat(const mha_tokenizer *tokenizer,
                                      const mha_chat_message *messages, ptrdiff_t count, int reply,
                                      char **text, size_t *length, char *message,
                                      size_t message_size);

/* ============================================================= 2. model ===== */

/* A model never changes after it was opened: any number of threads may run it at the same time,
 * each with its own state and workspace. */
typedef struct mha_model mha_model;

typedef enum mha_model_kind {
    MHA_MODEL_ENCODER = 0,         /* BERT: every token sees all tokens */
    MHA_MODEL_DECODER = 1,         /* GPT-2, Llama: every token sees those before it */
    MHA_MODEL_ENCODER_DECODER = 2, /* T5, BART, Marian, our translator */
    MHA_MODEL_IMAGE_ENCODER = 3    /* ViT: patches of a picture instead of tokens */
} mha_model_kind;

/* How matrices are stored in memory. */
typedef enum mha_model_storage {
    MHA_STORE_AS_FILE = 0, /* each matrix in its type in the file */
    MHA_STORE_F32 = 1,
    MHA_STORE_F16 = 2,
    MHA_STORE_BF16 = 3,
    MHA_STORE_I8 = 4, /* one scale per output */
    MHA_STORE_Q8 = 5, /* groups of 32 inputs with a scale: MHA_Q8_0 */
    MHA_STORE_Q4 = 6  /* groups of 32 inputs with a scale and a minimum: MHA_Q4_1 */
} mha_model_storage;

typedef struct mha_model_config {
    size_t size; /* sizeof(mha_model_config) */
    mha_model_storage storage;
    const char *tokenizer; /* a path for mha_tokenizer_open(); NULL: beside or in the model */
    char *message;         /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
    mha_arithmetic arithmetic; /* of products with the weights of linears, layers, feed-forwards */
} mha_model_config;

/*
 * Opens the model at `path`. `config` may be NULL. Files are mapped; matrices are packed once into
 * memory of the model, and embeddings are read from the file as they are needed, so the file must
 * not change until mha_model_free(). A model without a tokenizer can be opened; functions that
 * need one return MHA_ERR_FLAG. On error *model is NULL.
 */
MHA_API mha_status mha_model_open(mha_model **model, const char *path,
                                  const mha_model_config *config);

/* NULL is allowed. */
MHA_API void mha_model_free(mha_model *model);

/* How products with the matrices of a model are computed, in words as mha_arithmetic_explain() has
 * them: "native ..." if some are native. With MHA_NATIVE matrices of bf16, i8 and, where
 * mha_arithmetic_explain() says so, block types are, in the files or as config.storage says; others
 * are exact. NULL for NULL. */
MHA_API const char *mha_model_arithmetic(const mha_model *model);

/* The attentions of a model. */
typedef enum mha_attention_kind {
    MHA_ATTENTION_ENCODER = 0, /* self-attention of an encoder */
    MHA_ATTENTION_DECODER = 1, /* self-attention of a decoder */
    MHA_ATTENTION_CROSS = 2    /* of a decoder to the encoder's output */
} mha_attention_kind;
enum { MHA_ATTENTION_KINDS = 3 };

enum { MHA_IMAGE_CHANNELS = 4 };

typedef struct mha_model_info {
    size_t size;        /* sizeof(mha_model_info); set by the caller */
    const char *family; /* "bert", "gpt2", "llama", ... */
    mha_model_kind kind;
    ptrdiff_t layers[MHA_ATTENTION_KINDS]; /* layers that have this attention */
    ptrdiff_t width, inner;                /* of the residual stream and of the feed-forward */
    ptrdiff_t heads, key_heads, head_width;
    ptrdiff_t vocabulary;  /* rows of the embedding, which may be more than the tokenizer has */
    ptrdiff_t positions;   /* longest sequence; 0: no limit */
    ptrdiff_t recommended; /* tokens per text that the files recommend for vectors; 0: not said */
    int has_logits;        /* the model predicts tokens */
    ptrdiff_t labels;      /* classes of a classifier; 0: none */
    int64_t parameters;
    size_t file_bytes, memory_bytes;       /* of the weights */
    ptrdiff_t image_size, patch, channels; /* of an image encoder */
    double length_penalty; /* that the files recommend for a beam search; 1: they do not say */
    /* Of an image encoder with at most MHA_IMAGE_CHANNELS channels: a value of 0 to 255 of channel
     * c becomes (value / 255 - image_mean[c]) / image_deviation[c]. 0.5 and 0.5: the files do not
     * say. */
    float image_mean[MHA_IMAGE_CHANNELS], image_deviation[MHA_IMAGE_CHANNELS];
} mha_model_info;

MHA_API mha_status mha_model_get_info(const mha_model *model, mha_model_info *info);

/* Borrowed from the model; NULL if it has none. And the one for the texts that an encoder-decoder
 * writes, if it is another one (Marian, the translator of "mha train"); else the same. */
MHA_API const mha_tokenizer *mha_model_tokenizer(const mha_model *model);
MHA_API const mha_tokenizer *mha_model_target_tokenizer(const mha_model *model);

/*
 * Describes the model in words: a table of what it is, its parameters and memory, and a drawing of
 * one layer. Writes at most `size` bytes, always terminated; returns the length of the whole text,
 * like snprintf.
 */
MHA_API size_t mha_model_describe(const mha_model *model, char *text, size_t size);

/* The heads of one attention; -1 if there is none. Layers of a pruned model differ. */
MHA_API ptrdiff_t mha_model_heads(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer);

/* The names of the families that can be opened, numbered from 0; NULL past the last. */
MHA_API const char *mha_model_family_at(int number);

/* ============================================================= 3. state ===== */

/* Keys and values of running sequences in all layers of a decoder, with the tokens they came from;
 * for an encoder-decoder also the encoder's keys and values. One call at a time may use a state. */
typedef struct mha_state mha_state;

typedef struct mha_state_config {
    size_t size;               /* sizeof(mha_state_config) */
    ptrdiff_t sequences;       /* numbered 0 .. sequences-1, and empty; 0: 1 */
    ptrdiff_t capacity;        /* most tokens of a sequence; 0: the positions of the model, or 1024
                                * if it has no limit */
    ptrdiff_t source_capacity; /* most tokens of a source text; 0: the same default */
    mha_dtype type;            /* f32, f16, bf16, i8 */
    char *message;             /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
} mha_state_config;

/* `config` may be NULL. MHA_ERR_FLAG: the model is not a decoder. On error *state is NULL. */
MHA_API mha_status mha_state_create(mha_state **state, const mha_model *model,
                                    const mha_state_config *config);
MHA_API void mha_state_free(mha_state *state);

/* Tokens of a sequence, and the tokens themselves; -1 and NULL if there is no such sequence. */
MHA_API ptrdiff_t mha_state_length(const mha_state *state, ptrdiff_t sequence);
MHA_API const int32_t *mha_state_tokens(const mha_state *state, ptrdiff_t sequence);

/* Most tokens of a sequence; 0 for NULL. */
MHA_API ptrdiff_t mha_state_capacity(const mha_state *state);

/* Removes all tokens from `length` on; the source text of an encoder-decoder stays. `to` becomes a
 * copy of `from`. Every sequence n becomes what parents[n] was before the call, for beam search. */
MHA_API mha_status mha_state_truncate(mha_state *state, ptrdiff_t sequence, ptrdiff_t length);
MHA_API mha_status mha_state_fork(mha_state *state, ptrdiff_t to, ptrdiff_t from);
MHA_API mha_status mha_state_reorder(mha_state *state, const int64_t *parents);

/* Bytes that are reserved for sequences of the full capacity; they are used as sequences grow. */
MHA_API size_t mha_state_bytes(const mha_state *state);

/* A prompt that was computed once, for later runs of the same model: to a file and back, to the
 * bit. The file belongs to a model of the same weights; another one is MHA_ERR_FORMAT. */
MHA_API mha_status mha_state_save(const mha_state *state, const char *path, char *message,
                                  size_t message_size);
MHA_API mha_status mha_state_load(mha_state **state, const mha_model *model, const char *path,
                                  char *message, size_t message_size);

/* =============================================================== 4. run ===== */

/* Changes to heads, by kind: [layers][H] and, for means, [layers][H][D]. Layers of a pruned model
 * have different numbers of heads (mha_model_heads()); theirs follow one another. NULL: unchanged.
 * A gate is a factor of the head's output; a mode is an mha_head_mode of mha.h. */
typedef struct mha_head_settings {
    size_t size; /* sizeof(mha_head_settings) */
    const float *gates[MHA_ATTENTION_KINDS];
    const uint8_t *modes[MHA_ATTENTION_KINDS];
    const float *means[MHA_ATTENTION_KINDS];
} mha_head_settings;

/*
 * What one attention computes, copied out while the model runs. Weights and statistics are those
 * of mha_options, with the lists of chosen heads and rows, where b counts the sequences of the
 * call and S is the longest key length of them. q, k, v and heads are f32, element (b, h, i, c);
 * q and k are as they are multiplied, after norm and rotation; heads is weights times values,
 * before W_O, after the gate. Rows of q and heads are those of the call, packed one sequence after
 * another, so sb is not used; k and v have the G key/value heads and the rows that the keys come
 * from. With a state they have the keys of this call only, and none for MHA_ATTENTION_CROSS
 * (MHA_ERR_FLAG). NULL data: not requested.
 */
typedef struct mha_capture {
    mha_attention_kind kind;
    ptrdiff_t layer;
    mha_out weights; /* f32 */
    const int64_t *weights_heads, *weights_rows;
    ptrdiff_t weights_head_count, weights_row_count;
    const mha_statistics *statistics;
    mha_out q, k, v, heads;
} mha_capture;

/*
 * One call. Sequence b has the rows [starts[b], starts[b+1]) of ids. With a state, sequence b
 * continues sequences[b] (NULL: b) of it. A decoder without a state computes whole sequences.
 *
 * An encoder-decoder also has source texts: with them the encoder runs, and a state keeps its
 * result; later calls of these sequences leave them out. A sequence that has tokens must be
 * truncated to 0 before it can get another source. A call with source texts alone, without starts,
 * ids and state, runs only the encoder, for source_hidden and captures. Image encoders have pixels,
 * [B][channels] [height][width], scaled as the model was trained, and no ids.
 */
typedef struct mha_model_call {
    size_t size; /* sizeof(mha_model_call) */
    ptrdiff_t B;
    const int64_t *starts;   /* [B+1] */
    const int32_t *ids;      /* [starts[B]] */
    const int32_t *segments; /* token types of BERT; NULL: 0 */
    const int64_t *source_starts;
    const int32_t *source_ids;
    const float *pixels;

    mha_state *state; /* NULL: none */
    const int64_t *sequences;

    /* Outputs, f32. NULL: not requested. */
    float *hidden;             /* [rows][width], after the last norm */
    float *logits;             /* [logit_row_count][vocabulary] */
    const int64_t *logit_rows; /* rows of ids; NULL: all */
    ptrdiff_t logit_row_count;
    float *source_hidden; /* [source rows][width] of the encoder of an encoder-decoder */
    float *pooled;        /* [B][width]: BERT's pooler */
    float *labels;        /* [B][labels]: logits of a classifier */
    float *streams;       /* [layers + 1][rows][width]: the residual stream before each layer of
                           * the stack that reads ids or pixels, and after the last layer */

    const mha_head_settings *heads;
    const mha_capture *captures;
    ptrdiff_t capture_count;

    char *message; /* on error a sentence is written here; NULL: not requested */
    size_t message_size;

    /* [source rows]: tokens of source texts that are not 0 here are attended to by no token, in the
     * encoder and in cross-attention, as if they were not there; the others keep their positions.
     * Not with a state (MHA_ERR_FLAG). NULL: none. */
    const uint8_t *source_ignored;

    /* [parts][rows][width]: what each part of the stack that reads ids or pixels computes, before
     * it joins the residual stream and before any norm: of every layer the self-attention, the
     * cross-attention if the layer has one, and the feed-forward. f32; NULL: not requested. */
    float *parts;
} mha_model_call;

/* `work` needs mha_model_work_size() bytes; NULL: allocated and freed. With a state nothing is
 * changed on error. MHA_ERR_INDEX: an id is out of range. MHA_ERR_LENGTH: a sequence is empty or
 * too long. */
MHA_API mha_status mha_model_run(const mha_model *model, const mha_model_call *call, void *work,
                                 size_t work_size, mha_pool *pool);

/* 0 if the call is not valid for mha_model_run(). Enough for any later call with the same starts,
 * outputs and captures, however many tokens the state has by then. */
MHA_API size_t mha_model_work_size(const mha_model *model, const mha_model_call *call, int threads);

/* A new model without some heads: keep[kind] is [layers][H], not 0 for the heads that stay, NULL:
 * all. At least one head stays in every layer. See mha_layer_prune(). What both models have is
 * shared; either may be freed first. */
MHA_API mha_status mha_model_prune(mha_model **pruned, const mha_model *model,
                                   const uint8_t *const keep[MHA_ATTENTION_KINDS], char *message,
                                   size_t message_size);

/* How a model is saved. All zero: smaller matrices, and nothing is replaced. */
typedef struct mha_save_config {
    size_t size;   /* sizeof(mha_save_config) */
    int zeros;     /* 1: matrices keep their shapes, and W_O has zeros for removed heads */
    int replace;   /* 1: a model that is at `path` is replaced */
    char *message; /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
    mha_model_storage storage; /* MHA_STORE_AS_FILE, or MHA_STORE_Q8 for a folder: see below */
} mha_save_config;

/*
 * Writes a model, pruned or not, to a new folder: config.json, all tensors of the source in
 * model.safetensors, and the other files of its folder, such as the tokenizer. Weights have the
 * types of the file, whatever the storage in memory. mha_model_open() opens the folder, and gives
 * the results of the saved model: the same bits for weights in f32, f16 and bf16 without `zeros`.
 *
 * With MHA_STORE_Q8 matrices and embeddings of a folder are rounded to groups of 32 with a scale, a
 * quarter of their size in f32; those of fewer than 64 rows, or whose rows are no whole number of
 * groups, stay as they are. Only libmha reads such files. MHA_ERR_FLAG: the matrices of this model
 * are stored with their inputs first (GPT-2), or it is one file.
 *
 * config.json lists removed heads as "pruned_heads", which transformers 4 reads, for BERT and its
 * relatives, ViT, DeiT and GPT-2. Llama and its relatives get other numbers of heads if all layers
 * have the same number. Everything else has a key of our own, "mha_pruned_heads". With `zeros`
 * every program can read the model, but it is not smaller. A GGUF or llama2.c file is written as
 * such a file, with `zeros` only: these have one number of heads for all layers (MHA_ERR_FLAG).
 *
 * `config` may be NULL. The folder or file is complete or not there. MHA_ERR_FILE: something is at
 * `path`. A folder is replaced only if it has a config.json and no folders in folders.
 */
MHA_API mha_status mha_model_save(const mha_model *model, const char *path,
                                  const mha_save_config *config);

/* ========================================================= 5. sentences ===== */

typedef enum mha_pooling {
    MHA_POOLING_MODEL = 0, /* as the model's files say; else the mean */
    MHA_POOLING_MEAN = 1,  /* of all tokens, marks included */
    MHA_POOLING_FIRST = 2, /* the first token, [CLS] */
    MHA_POOLING_LAST = 3,
    MHA_POOLING_MAX = 4
} mha_pooling;

typedef struct mha_encode_config {
    size_t size; /* sizeof(mha_encode_config) */
    mha_pooling pooling;
    int normalize;     /* 1: length 1; 0: as the model's files say; -1: never */
    ptrdiff_t longest; /* tokens of a text beyond this are cut off, and beyond the limit of the
                        * model always; 0: what the files recommend, else the limit */
    const mha_head_settings *heads;
    char *message;
    size_t message_size;
    int64_t
        *cut; /* [count]: the number of tokens that were cut off each text; NULL: not requested */
} mha_encode_config;

/* One vector per text: vectors[count][width]. Texts are sorted by length and computed together. Of
 * an encoder-decoder the encoder runs. Image encoders are MHA_ERR_FLAG. */
MHA_API mha_status mha_model_encode(const mha_model *model, const char *const *texts,
                                    ptrdiff_t count, const mha_encode_config *config,
                                    float *vectors, mha_pool *pool);

/* ========================================================== 6. generate ===== */

typedef struct mha_sampling {
    float temperature;         /* 0: the most probable token (greedy) */
    ptrdiff_t top_k;           /* 0: off */
    float top_p;               /* 0: off */
    float min_p;               /* 0: off */
    float repetition_penalty;  /* 0 or 1: off */
    ptrdiff_t repetition_last; /* tokens that count as repeated; 0: all */
    uint64_t seed;
} mha_sampling;

/* Called for every new token of sequence b, with the text that has become complete in UTF-8 and
 * cannot be part of a stop, which may be none; and with id -1 for the rest at the end. If it does
 * not return 0, this sequence stops. */
typedef int (*mha_generate_callback)(void *context, ptrdiff_t b, int32_t id, const char *text,
                                     size_t length);

enum { MHA_BEAMS_MAX = 64 };

typedef struct mha_generate_config {
    size_t size;    /* sizeof(mha_generate_config) */
    ptrdiff_t most; /* new tokens per sequence; 0: as many as fit, at most 4096 without a state */
    mha_sampling sampling;
    const char *const *stops; /* texts that end a sequence; they are not part of it */
    ptrdiff_t stop_count;
    int ignore_end;   /* go on after the model's end mark */
    mha_state *state; /* sequences 0 .. B-1 continue, and get the prompts and all new tokens but the
                       * last; NULL: a state of its own */
    const mha_head_settings *heads;
    mha_generate_callback callback;
    void *context;
    char *message;
    size_t message_size;
    ptrdiff_t beams;       /* hypotheses per text, at most MHA_BEAMS_MAX; 0 or 1: no beam search */
    ptrdiff_t best;        /* results per text, at most `beams`; 0: 1 */
    double length_penalty; /* hypotheses are ranked by log-probability / length^length_penalty,
                            * where the length counts the end mark; 0: by log-probability */
} mha_generate_config;

typedef struct mha_generation {
    int32_t *ids; /* new tokens, without the end mark */
    ptrdiff_t count;
    char *text; /* of the new tokens, without marks */
    size_t length;
    double log_probability; /* of the new tokens, before sampling changed the distribution; a token
                             * that the model's files demand at the start counts 0 */
    int ended;              /* 1: an end mark or a stop; 0: the limit, or the callback */
    double score;           /* mean log-probability of the new tokens and their end mark */
    double confidence;      /* exp(score), from 0 to 1: the geometric mean of their probabilities */
} mha_generation;

/*
 * Continues B prompts of token ids in one batch: prompt b is ids[starts[b]] .. ids[starts[b+1]].
 * For an encoder-decoder the prompts are the source texts. A sequence gives the same tokens
 * whatever the other sequences. results[B] are freed by mha_generation_free() each. MHA_ERR_FULL: a
 * prompt does not fit into the state. MHA_ERR_FORMAT: the model's logits are NaN or infinite.
 *
 * The memory of a call, if it is between 256 KB and 64 MB, stays with the model until
 * mha_model_free(), and the next call of the same extents uses it.
 *
 * Beam search, config.beams: a step extends all running hypotheses of a text and ranks these
 * continuations by their log-probability. Of the best `beams`, those that end are finished; the
 * best `beams` that do not end run on. The search is over when there are `beams` finished
 * hypotheses and the best running one, with its present length, does not rank above the last of
 * them; at the limit of `most` the best are finished as they are. The results are then
 * results[B][best], those of a text adjacent and the best first; what was not found has no tokens.
 * Beam search does not go with sampling, stops, a callback or a state of the caller (MHA_ERR_FLAG).
 */
MHA_API mha_status mha_model_generate(const mha_model *model, ptrdiff_t B, const int64_t *starts,
                                      const int32_t *ids, const mha_generate_config *config,
                                      mha_generation *results, mha_pool *pool);
MHA_API void mha_generation_free(mha_generation *generation);

/* Log-probabilities of tokens, each given those before it in its sequence (natural logarithm):
 * scores[starts[B]], 0 for the first token of a sequence. For a decoder. */
MHA_API mha_status mha_model_score(const mha_model *model, ptrdiff_t B, const int64_t *starts,
                                   const int32_t *ids, const mha_head_settings *heads,
                                   double *scores, char *message, size_t message_size,
                                   mha_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
