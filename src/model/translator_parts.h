/* SPDX-License-Identifier: MIT */
/* What the parts of the translator share. See translator.h for who does what. */
#ifndef MODEL_TRANSLATOR_PARTS_H
#define MODEL_TRANSLATOR_PARTS_H

#include "model/translator.h"

struct translator {
    transformer_config config;
    transformer_map map;
    float *values; /* embeddings and norms are read here */
    float *codes;  /* of all positions, [translator_longest()][width] */
    coder_layer layers[TRANSFORMER_SIDES][TRANSFORMER_LAYERS_MAX];
    mha_linear *logits; /* the target embedding, turned */
    vocabulary words[TRANSFORMER_SIDES];
    translator_note *notes;
    int note_count;
};

/* Takes `values` over, also where it fails. The vocabularies are left empty. */
translator *translator_build(const transformer_config *config, float *values,
                             char message[TRANSFORMER_MESSAGE_MAX]);

/* Copies of the special words, then of `count` others. False: no memory. */
bool vocabulary_make(vocabulary *v, const char *const *words, int count);
void vocabulary_free(vocabulary *v);

/* "<begin>", "<end>", "<unknown>". */
const char *vocabulary_special(int word);

/* ------------------------------------------------------------ decoding ----- */

/*
 * Sentences that are translated together, each with `beam` hypotheses at most; hypothesis n of
 * sentence s is sequence s * beam + n. With caches a step reads the last word of a hypothesis;
 * without, all of its words.
 */
typedef struct decoding {
    const translator *model;
    mha_pool *pool;
    int sentences, beam;
    bool cached;
    int longest;      /* rows of the longest source sentence, end included */
    int64_t *lengths; /* [sentences] rows */
    float *memory;    /* [sentences][longest][width] */
    mha_cache *self[TRANSFORMER_LAYERS_MAX], *cross[TRANSFORMER_LAYERS_MAX];

    float *x, *y, *z, *inside;     /* [rows][width], the last [rows][ff_width] */
    float *keys;                   /* the memory of each hypothesis; only without caches */
    int *words, *positions;        /* [rows] */
    int64_t *key_rows, *memory_of; /* [sentences * beam] */
    void *work;
    size_t work_size;
} decoding;

/* Encodes the sentences. `d` is all zero but for model, pool, sentences, beam and cached; after an
 * error too it wants decoding_end(). */
mha_status decoding_begin(decoding *d, const int *const *sources, const int *lengths);
void decoding_end(decoding *d);

typedef struct decoding_step {
    int rows;                 /* hypotheses that go on */
    const int64_t *sequences; /* [rows] */
    int length;               /* words each has read, WORD_BEGIN included */
    const int *words;         /* [rows][length] */
    float *logits;            /* [rows][words] of the next word */
    float *weights;           /* [layers][rows][heads][longest], or NULL */
} decoding_step;

mha_status decoding_run(decoding *d, const decoding_step *step);

/* Sequence n goes on from what parents[n] has read; [sentences * beam]. */
mha_status decoding_reorder(decoding *d, const int64_t *parents);

#endif
