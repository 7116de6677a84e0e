/* SPDX-License-Identifier: MIT */
/* Private declarations shared by the parts of the translator, which are listed in translator.h. */
#ifndef TRANSLATOR_PARTS_H
#define TRANSLATOR_PARTS_H

#include "translator/translator.h"

struct translator {
    transformer_config config;
    transformer_map map;
    float *values; /* all parameters; embeddings and norms are read from here */
    float *codes;  /* of all positions, [translator_longest()][width] */
    coder_layer layers[TRANSFORMER_SIDES][TRANSFORMER_LAYERS_MAX];
    mha_linear *logits; /* the target embedding as a linear layer, rows -> logits */
    vocabulary words[TRANSFORMER_SIDES];
    translator_note *notes;
    int note_count;
    bool laboratory;
};

/* Takes ownership of `values`, even if it fails. The vocabularies are left empty. */
translator *translator_build(const transformer_config *config, float *values,
                             char message[TRANSFORMER_MESSAGE_MAX]);

/* Makes a vocabulary of copies of the special words and of `count` others. Returns false if out
 * of memory. */
bool vocabulary_make(vocabulary *v, const char *const *words, int count);
void vocabulary_free(vocabulary *v);

/* Finds out whether the vocabularies are those of the corpus. */
void translator_find_laboratory(translator *t);

/* The special words as text: "<begin>", "<end>", "<unknown>". */
const char *vocabulary_special(int word);

/* ------------------------------------------------------------ decoding ----- */

/*
 * Sentences that are translated together, each with at most `beam` hypotheses; hypothesis n of
 * sentence s is sequence s * beam + n. With caches a step reads the last word of each hypothesis;
 * without, it reads all of its words.
 */
typedef struct decoding {
    const translator *model;
    mha_pool *pool;
    int sentences, beam;
    bool cached;
    int longest;      /* rows of the longest source sentence, WORD_END included */
    int64_t *lengths; /* [sentences] rows */
    float *memory;    /* [sentences][longest][width] */
    mha_cache *self[TRANSFORMER_LAYERS_MAX], *cross[TRANSFORMER_LAYERS_MAX];

    float *x, *y, *z, *inside;     /* [rows][width], the last [rows][ff_width] */
    float *keys;                   /* a copy of the memory per hypothesis; only without caches */
    int *words, *positions;        /* [rows] */
    int64_t *key_rows, *memory_of; /* [sentences * beam] */
    void *work;
    size_t work_size;
} decoding;

/* Encodes the sentences. `d` is zero except for model, pool, sentences, beam and cached. The caller
 * must call decoding_end() even after an error. */
mha_status decoding_begin(decoding *d, const int *const *sources, const int *lengths);
void decoding_end(decoding *d);

typedef struct decoding_step {
    int rows;                 /* hypotheses to continue */
    const int64_t *sequences; /* [rows] */
    int length;               /* words of each so far, WORD_BEGIN included */
    const int *words;         /* [rows][length] */
    float *logits;            /* [rows][words] of the next word */
    float *weights;           /* [layers][rows][heads][longest], or NULL */
} decoding_step;

/* Computes the logits of the next word, and the cross-attention weights of the last. */
mha_status decoding_run(decoding *d, const decoding_step *step);

/* Sequence n continues from what sequence parents[n] has read; parents[sentences * beam]. */
mha_status decoding_reorder(decoding *d, const int64_t *parents);

#endif
