/* SPDX-License-Identifier: MIT */
/* Pairs of a file as token ids, and batches of them (text_data.h). */
#include "translator/text_data.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "text/bpe_dropout.h"
#include "translator/bare_pair.h"
#include "translator/copied_words.h"
#include "translator/joined_pair.h"
#include "translator/pair_order.h"

/* The ids of all pairs of a file: those of the source and then those of the target, pair by pair.
 */
typedef struct id_set {
    int *ids;
    int64_t *starts;                /* [pairs] */
    int *counts[TRANSFORMER_SIDES]; /* [pairs] */
    int64_t *origins;               /* [pairs] the numbers of the pairs in their file */
    int64_t pairs;
} id_set;

struct text_data {
    training_data base;
    sentence_marks marks;
    const pair_file *file; /* of the training pairs */
    const mha_tokenizer *tokenizer;
    int positions;
    id_set train, valid;
    pair_order *order; /* made for the configuration of the first step */
};

/* ------------------------------------------------------------ encoding ----- */

enum { PIECE = 256 }; /* pairs per task */

/* The ids of PIECE pairs. */
typedef struct piece {
    int *ids;
    size_t used, room;
    int counts[PIECE][TRANSFORMER_SIDES];
    mha_status status;
} piece;

typedef struct encoding {
    const pair_file *file;
    const mha_tokenizer *tokenizer;
    piece *pieces;
} encoding;

static mha_status append_ids(piece *p, const mha_tokens *tokens)
{
    int *const grown =
        mhai_array_grow(p->ids, &p->room, p->used + (size_t)tokens->count, sizeof *p->ids);
    if (!grown && tokens->count > 0)
        return MHA_ERR_MEMORY;
    p->ids = grown;
    for (ptrdiff_t n = 0; n < tokens->count; n++)
        p->ids[p->used++] = tokens->tokens[n].id;
    return MHA_OK;
}

static mha_status encode_side(const mha_tokenizer *tokenizer, piece *p, const pair_text *pair,
                              int side, int *count)
{
    mha_tokens tokens;
    mha_status status = mha_tokenizer_encode(tokenizer, pair->text[side], pair->length[side],
                                             MHA_TEXT_PLAIN, &tokens);
    if (status != MHA_OK)
        return status;
    *count = (int)tokens.count;
    status = append_ids(p, &tokens);
    mha_tokens_free(&tokens);
    return status;
}

static void encode_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const encoding *const job = arg;
    piece *const p = &job->pieces[number];
    const int64_t first = number * PIECE, left = job->file->count - first;
    for (int n = 0; n < (left < PIECE ? left : PIECE) && p->status == MHA_OK; n++)
        for (int side = 0; side < TRANSFORMER_SIDES && p->status == MHA_OK; side++)
            p->status = encode_side(job->tokenizer, p, &job->file->pairs[first + n], side,
                                    &p->counts[n][side]);
}

/* ---------------------------------------------------------------- sets ----- */

static void set_free(id_set *set)
{
    free(set->ids);
    free(set->starts);
    free(set->origins);
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        free(set->counts[side]);
    *set = (id_set){.pairs = 0};
}

static bool set_allocate(id_set *set, int64_t pairs, size_t ids)
{
    set->ids = malloc((ids + 1) * sizeof *set->ids);
    set->starts = calloc((size_t)pairs, sizeof *set->starts);
    set->origins = calloc((size_t)pairs, sizeof *set->origins);
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        set->counts[side] = calloc((size_t)pairs, sizeof *set->counts[side]);
    return set->ids && set->starts && set->origins && set->counts[0] && set->counts[1];
}

/* Adds the pairs of a piece, which begin with number `first`, that are short enough to the set. */
static void add_piece(id_set *set, int64_t *used, const piece *p, int64_t first, int pairs,
                      int positions, text_counts *counts)
{
    const int *from = p->ids;
    for (int n = 0; n < pairs; n++) {
        const int *const lengths = p->counts[n];
        const size_t both = (size_t)lengths[0] + (size_t)lengths[1];
        if (lengths[0] < positions && lengths[1] < positions) {
            memcpy(set->ids + *used, from, both * sizeof *from);
            set->starts[set->pairs] = *used;
            set->origins[set->pairs] = first + n;
            for (int side = 0; side < TRANSFORMER_SIDES; side++) {
                set->counts[side][set->pairs] = lengths[side];
                counts->tokens[side] += lengths[side];
            }
            set->pairs++;
            *used += (int64_t)both;
        } else {
            counts->too_long++;
        }
        from += both;
    }
    counts->pairs = set->pairs;
}

/* Joins the pieces in order. */
static mha_status join(id_set *set, const encoding *job, int64_t pieces, int positions,
                       text_counts *counts)
{
    size_t ids = 0;
    int64_t used = 0;
    for (int64_t n = 0; n < pieces; n++) {
        if (job->pieces[n].status != MHA_OK)
            return job->pieces[n].status;
        ids += job->pieces[n].used;
    }
    if (!set_allocate(set, job->file->count, ids))
        return MHA_ERR_MEMORY;
    for (int64_t n = 0; n < pieces; n++) {
        const int64_t left = job->file->count - n * PIECE;
        add_piece(set, &used, &job->pieces[n], n * PIECE, (int)(left < PIECE ? left : PIECE),
                  positions, counts);
    }
    return set->pairs > 0 ? MHA_OK : MHA_ERR_LENGTH;
}

static mha_status set_fill(id_set *set, const pair_file *file, const mha_tokenizer *tokenizer,
                           int positions, mha_pool *pool, text_counts *counts)
{
    const int64_t pieces = (file->count + PIECE - 1) / PIECE;
    encoding job = {file, tokenizer, calloc((size_t)pieces, sizeof *job.pieces)};
    if (!job.pieces)
        return MHA_ERR_MEMORY;
    mha_pool_run(pool, (ptrdiff_t)pieces, encode_task, &job);
    const mha_status status = join(set, &job, pieces, positions, counts);
    for (int64_t n = 0; n < pieces; n++)
        free(job.pieces[n].ids);
    free(job.pieces);
    return status;
}

static id_pair pair_of(const id_set *set, int64_t number)
{
    const int *const source = set->ids + set->starts[number];
    const int count = set->counts[TRANSFORMER_SOURCE][number];
    return (id_pair){{source, source + count}, {count, set->counts[TRANSFORMER_TARGET][number]}};
}

/* FNV-1a over lengths and ids. */
static uint64_t set_hash(uint64_t hash, const id_set *set)
{
    static const uint64_t prime = UINT64_C(0x100000001b3);
    for (int64_t n = 0; n < set->pairs; n++) {
        const id_pair pair = pair_of(set, n);
        for (int side = 0; side < TRANSFORMER_SIDES; side++) {
            hash = (hash ^ (uint64_t)pair.count[side]) * prime;
            for (int k = 0; k < pair.count[side]; k++)
                hash = (hash ^ (uint64_t)pair.ids[side][k]) * prime;
        }
    }
    return hash;
}

/* ------------------------------------------------------------ variants ----- */

/* A pair as a step sees it: with replaced words, with a second sentence, without final marks, or
 * divided into tokens in another way. */
typedef struct variant {
    int *ids;
    size_t room;
    int counts[TRANSFORMER_SIDES];
} variant;

static mha_status encode_variant(const text_data *data, const training_config *config,
                                 const pair_text *pair, uint64_t seed, variant *v)
{
    piece p = {.ids = v->ids, .room = v->room};
    const bpe_dropout dropout = {config->bpe_dropout, seed};
    mha_status status = MHA_OK;
    for (int side = 0; side < TRANSFORMER_SIDES && status == MHA_OK; side++) {
        mha_tokens tokens;
        status = tokenizer_encode_dropout(data->tokenizer, pair->text[side], pair->length[side],
                                          MHA_TEXT_PLAIN, &dropout, &tokens);
        if (status != MHA_OK)
            break;
        v->counts[side] = (int)tokens.count;
        status = append_ids(&p, &tokens);
        mha_tokens_free(&tokens);
    }
    v->ids = p.ids;
    v->room = p.room;
    return status;
}

static const pair_text *train_pair(const text_data *data, int64_t number)
{
    return &data->file->pairs[data->train.origins[number]];
}

/* The variant of pair `number` in a step. One that is too long for the model is not used. */
static mha_status vary(const text_data *data, const training_config *config, int64_t number, rng r,
                       variant *v, id_pair *ids)
{
    pair_text pair = *train_pair(data, number);
    pair_buffer replaced, joined;
    if (rng_unit(&r) < config->copy && copied_words_replace(&pair, config->numbers, &r, &replaced))
        pair = pair_buffer_text(&replaced, pair.line);
    /* Without joined or bare pairs no number is drawn: trainings of before give the same bits. */
    if (config->join > 0.0 && rng_unit(&r) < config->join &&
        joined_pair_make(&pair, train_pair(data, rng_below(&r, data->train.pairs)), &joined))
        pair = pair_buffer_text(&joined, pair.line);
    if (config->bare > 0.0 && rng_unit(&r) < config->bare)
        bare_pair_make(&pair);
    const mha_status status = encode_variant(data, config, &pair, rng_next(&r), v);
    const bool fits = v->counts[0] < data->positions && v->counts[1] < data->positions;
    if (status == MHA_OK && fits)
        *ids = (id_pair){{v->ids, v->ids + v->counts[0]}, {v->counts[0], v->counts[1]}};
    return status;
}

static void variants_free(variant *variants, int count)
{
    for (int n = 0; variants && n < count; n++)
        free(variants[n].ids);
    free(variants);
}

/* ------------------------------------------------------------- batches ----- */

static batch *text_step(training_data *base, const training_config *config, int64_t step)
{
    text_data *const data = (text_data *)base;
    const id_set *const set = &data->train;
    if (!data->order)
        data->order =
            pair_order_create(set->counts[TRANSFORMER_SOURCE], set->counts[TRANSFORMER_TARGET],
                              set->pairs, config->batch_tokens, config->seed);
    int count = 0;
    const int32_t *const numbers = data->order ? pair_order_step(data->order, step, &count) : NULL;
    if (!numbers)
        return NULL;
    const bool varies =
        config->copy > 0.0 || config->join > 0.0 || config->bare > 0.0 || config->bpe_dropout > 0.0;
    id_pair *const pairs = calloc((size_t)count, sizeof *pairs);
    variant *const variants = varies ? calloc((size_t)count, sizeof *variants) : NULL;
    mha_status status = pairs && (variants || !varies) ? MHA_OK : MHA_ERR_MEMORY;
    /* The constant makes this series differ from those of the parameters, the order and dropout. */
    rng r = rng_for(config->seed + UINT64_C(0xc2b2ae3d27d4eb4f), (uint64_t)step);
    for (int n = 0; n < count && status == MHA_OK; n++) {
        pairs[n] = pair_of(set, numbers[n]);
        if (varies)
            status =
                vary(data, config, numbers[n], rng_for(rng_next(&r), 0), &variants[n], &pairs[n]);
    }
    batch *const made = status == MHA_OK ? batch_of_ids(pairs, count, data->marks) : NULL;
    variants_free(variants, count);
    free(pairs);
    return made;
}

static batch *text_some(training_data *base, const training_config *config, corpus_split split,
                        int64_t first, int count)
{
    const text_data *const data = (const text_data *)base;
    const id_set *const set = split == CORPUS_TRAIN ? &data->train : &data->valid;
    id_pair *const pairs = calloc((size_t)count, sizeof *pairs);
    (void)config;
    for (int n = 0; pairs && n < count; n++)
        pairs[n] = pair_of(set, first + n);
    batch *const made = pairs ? batch_of_ids(pairs, count, data->marks) : NULL;
    free(pairs);
    return made;
}

/* ------------------------------------------------------------- creation ----- */

static mha_status fill(text_data *data, const pair_file *train, const pair_file *valid,
                       const mha_tokenizer *tokenizer, int positions, mha_pool *pool,
                       text_counts counts[2])
{
    mha_status status = set_fill(&data->train, train, tokenizer, positions, pool, &counts[0]);
    if (status == MHA_OK)
        status = set_fill(&data->valid, valid, tokenizer, positions, pool, &counts[1]);
    if (status == MHA_OK)
        data->base = (training_data){
            .step = text_step,
            .some = text_some,
            .valid = data->valid.pairs,
            .form = FORM_MARIAN,
            .hash = set_hash(set_hash((uint64_t)mha_tokenizer_size(tokenizer), &data->train),
                             &data->valid)};
    return status;
}

mha_status text_data_create(text_data **made, const pair_file *train, const pair_file *valid,
                            const mha_tokenizer *tokenizer, int positions, mha_pool *pool,
                            text_counts counts[2])
{
    text_data *const data = *made = calloc(1, sizeof *data);
    if (!data)
        return MHA_ERR_MEMORY;
    /* As in Marian, the decoder begins with the pad mark. */
    data->marks = (sentence_marks){mha_tokenizer_mark(tokenizer, MHA_MARK_PAD),
                                   mha_tokenizer_mark(tokenizer, MHA_MARK_END)};
    data->file = train;
    data->tokenizer = tokenizer;
    data->positions = positions;
    memset(counts, 0, 2 * sizeof *counts);
    mha_status status = data->marks.begin < 0 || data->marks.end < 0 ? MHA_ERR_INDEX : MHA_OK;
    if (status == MHA_OK)
        status = fill(data, train, valid, tokenizer, positions, pool, counts);
    if (status != MHA_OK) {
        text_data_free(data);
        *made = NULL;
    }
    return status;
}

void text_data_free(text_data *data)
{
    if (!data)
        return;
    set_free(&data->train);
    set_free(&data->valid);
    pair_order_free(data->order);
    free(data);
}

training_data *text_data_base(text_data *data)
{
    return &data->base;
}
