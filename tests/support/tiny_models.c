/* SPDX-License-Identifier: MIT */
/* Fills in descriptions and bindings of small models: see tiny_models.h. */
#include "support/tiny_models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "model/model_parts.h"
#include "support/test.h"

enum { WIDTH = 64, INNER = 96, WORDS = 60, LAYERS = 3, POSITIONS = 48 };

typedef struct tiny {
    model_files files;
    mha_dtype type;
    test_random random;
    bool transposed; /* matrices are stored [inputs, outputs] */
} tiny;

static const char *const names[TINY_KINDS] = {"BERT", "GPT-2",  "Llama",  "Gemma", "T5",
                                              "BART", "Marian", "ALBERT", "ViT"};

const char *tiny_name(tiny_kind kind)
{
    return names[kind];
}

/* ------------------------------------------------------------------ numbers ----- */

static void *keep(tiny *t, size_t bytes)
{
    model_binding *const b = &t->files.binding;
    b->copies = realloc(b->copies, (b->copy_count + 1) * sizeof *b->copies);
    void *const memory = calloc(1, bytes);
    if (!b->copies || !memory)
        abort();
    b->copies[b->copy_count++] = memory;
    return memory;
}

static void *random_numbers(tiny *t, size_t count, mha_dtype type, float mean, float deviation)
{
    void *const data = keep(t, count * mha_dtype_size(type));
    for (size_t n = 0; n < count; n++)
        element_store(type, data, (ptrdiff_t)n, mean + deviation * test_random_normal(&t->random));
    t->files.binding.parameters += (int64_t)count;
    return data;
}

static bound_matrix table(tiny *t, ptrdiff_t rows, ptrdiff_t width, float deviation)
{
    const bound_matrix m = {random_numbers(t, (size_t)(rows * width), t->type, 0.0f, deviation),
                            t->type,
                            rows,
                            width,
                            width,
                            1,
                            NULL,
                            0};
    return m;
}

static bound_vector vector(tiny *t, ptrdiff_t count, float mean, float deviation)
{
    const bound_vector v = {random_numbers(t, (size_t)count, MHA_F32, mean, deviation), MHA_F32,
                            count, NULL, 0};
    return v;
}

static bound_linear linear(tiny *t, ptrdiff_t outputs, ptrdiff_t inputs, bool bias)
{
    bound_linear l = {table(t, outputs, inputs, 1.2f / sqrtf((float)inputs)), {0}};
    if (t->transposed) {
        l.weight.out_stride = 1;
        l.weight.in_stride = outputs;
    }
    if (bias)
        l.bias = vector(t, outputs, 0.0f, 0.1f);
    return l;
}

static bound_norm norm(tiny *t)
{
    const model_description *const d = &t->files.description;
    bound_norm n = {vector(t, d->width, 1.0f - d->norm_add, 0.2f), {0}};
    if (d->norm == MHA_NORM_LAYER)
        n.bias = vector(t, d->width, 0.0f, 0.1f);
    return n;
}

/* -------------------------------------------------------------------- layers ----- */

typedef struct layer_style {
    bool before, inside, after, bias, cross;
} layer_style;

static bound_norms norms(tiny *t, layer_style style)
{
    bound_norms n = {0};
    if (style.before)
        n.before = norm(t);
    if (style.inside)
        n.inside = norm(t);
    if (style.after)
        n.after = norm(t);
    return n;
}

static bound_attention attention(tiny *t, const attention_description *a, layer_style style)
{
    const ptrdiff_t width = t->files.description.width;
    bound_attention b = {.norms = norms(t, style),
                         .q = linear(t, (ptrdiff_t)a->heads * a->head_width, width, style.bias),
                         .k = linear(t, (ptrdiff_t)a->key_heads * a->head_width, width, style.bias),
                         .v = linear(t, (ptrdiff_t)a->key_heads * a->head_width, width, style.bias),
                         .o = linear(t, width, (ptrdiff_t)a->heads * a->head_width, style.bias)};
    if (a->qk_norm != MHA_NORM_NONE) {
        b.q_norm = vector(t, a->head_width, 1.0f - t->files.description.norm_add, 0.2f);
        b.k_norm = vector(t, a->head_width, 1.0f - t->files.description.norm_add, 0.2f);
    }
    return b;
}

static void fill_layers(tiny *t, int stack, layer_style style)
{
    const model_description *const d = &t->files.description;
    const stack_description *const s = &d->stack[stack];
    bound_stack *const b = &t->files.binding.stack[stack];
    const int count = s->shared ? 1 : s->layers;
    b->layers = calloc((size_t)count, sizeof *b->layers);
    if (!b->layers)
        abort();
    for (int n = 0; n < count; n++) {
        b->layers[n].self = attention(t, &s->attention, style);
        if (style.cross)
            b->layers[n].cross = attention(t, &s->attention, style);
        b->layers[n].ff.norms = norms(t, style);
        b->layers[n].ff.up = linear(t, s->inner, d->width, style.bias);
        b->layers[n].ff.down = linear(t, d->width, s->inner, style.bias);
        if (d->gated)
            b->layers[n].ff.gate = linear(t, s->inner, d->width, style.bias);
    }
}

/* ------------------------------------------------------------------- families ----- */

static stack_description plain_stack(bool causal)
{
    const stack_description s = {.layers = LAYERS,
                                 .causal = causal,
                                 .inner = INNER,
                                 .embedding = {.width = WIDTH},
                                 .attention = {.heads = 4, .key_heads = 4, .head_width = 16}};
    return s;
}

static void add_tokens(tiny *t, int stack)
{
    const embedding_description *const e = &t->files.description.stack[stack].embedding;
    bound_stack *const b = &t->files.binding.stack[stack];
    b->tokens = table(t, WORDS, e->width, 0.7f);
    if (e->position == POSITION_LEARNED)
        b->position = table(t, POSITIONS + e->position_offset, e->width, 0.3f);
    if (e->segments > 0)
        b->segments = table(t, e->segments, e->width, 0.3f);
}

static void tie_output(tiny *t, int stack)
{
    t->files.binding.output.weight = t->files.binding.stack[stack].tokens;
    t->files.description.tied = true;
}

static void fill_bert(tiny *t, bool albert)
{
    model_description *const d = &t->files.description;
    model_binding *const b = &t->files.binding;
    d->kind = MHA_MODEL_ENCODER;
    d->activation = albert ? MHA_ACTIVATION_GELU_TANH : MHA_ACTIVATION_GELU;
    d->stack[0] = plain_stack(false);
    d->stack[0].embedding =
        (embedding_description){.width = WIDTH, .position = POSITION_LEARNED, .segments = 2};
    if (albert) {
        d->stack[0].embedding.width = WIDTH / 2;
        d->stack[0].shared = true;
    }
    add_tokens(t, 0);
    fill_layers(t, 0, (layer_style){.after = true, .bias = true});
    const int width = d->width;
    d->width = d->stack[0].embedding.width;
    b->stack[0].embedding_norm = norm(t);
    d->width = width;
    if (albert)
        b->stack[0].embedding_project = linear(t, WIDTH, WIDTH / 2, true);
    b->transform = linear(t, d->stack[0].embedding.width, WIDTH, true);
    d->transform_activation = d->activation;
    d->width = d->stack[0].embedding.width;
    b->transform_norm = norm(t);
    d->width = width;
    tie_output(t, 0);
    b->output.bias = vector(t, WORDS, 0.0f, 0.2f);
    b->pooler = linear(t, WIDTH, WIDTH, true);
    d->pooler_activation = MHA_ACTIVATION_TANH;
    d->labels = 5;
    d->label_pooled = !albert;
    b->label = linear(t, 5, WIDTH, true);
}

static void fill_gpt2(tiny *t)
{
    model_description *const d = &t->files.description;
    d->kind = MHA_MODEL_DECODER;
    d->activation = MHA_ACTIVATION_GELU_TANH;
    d->stack[1] = plain_stack(true);
    d->stack[1].embedding.position = POSITION_LEARNED;
    add_tokens(t, 1);
    t->transposed = true;
    fill_layers(t, 1, (layer_style){.before = true, .bias = true});
    t->files.binding.stack[1].final_norm = norm(t);
    tie_output(t, 1);
}

static void fill_llama(tiny *t)
{
    model_description *const d = &t->files.description;
    d->kind = MHA_MODEL_DECODER;
    d->norm = MHA_NORM_RMS;
    d->activation = MHA_ACTIVATION_SILU;
    d->gated = true;
    stack_description *const s = &d->stack[1];
    *s = plain_stack(true);
    s->embedding.position = POSITION_ROTARY;
    s->attention = (attention_description){.heads = 6,
                                           .key_heads = 2,
                                           .head_width = 16,
                                           .qk_norm = MHA_NORM_RMS,
                                           .rope_pairs = MHA_ROPE_HALVES,
                                           .rope_base = 1000.0,
                                           .window = 5,
                                           .window_every = 2};
    add_tokens(t, 1);
    fill_layers(t, 1, (layer_style){.before = true});
    t->files.binding.stack[1].final_norm = norm(t);
    t->files.binding.output = linear(t, WORDS, WIDTH, false);
}

static void fill_gemma(tiny *t)
{
    model_description *const d = &t->files.description;
    d->kind = MHA_MODEL_DECODER;
    d->norm = MHA_NORM_RMS;
    d->norm_add = 1.0f;
    d->activation = MHA_ACTIVATION_GELU_TANH;
    d->gated = true;
    d->logit_softcap = 3.0f;
    stack_description *const s = &d->stack[1];
    *s = plain_stack(true);
    s->embedding =
        (embedding_description){.width = WIDTH, .scale = 8.0f, .position = POSITION_ROTARY};
    s->attention = (attention_description){.heads = 4,
                                           .key_heads = 2,
                                           .head_width = 32,
                                           .scale = 0.15f,
                                           .softcap = 2.5f,
                                           .rope_pairs = MHA_ROPE_NEIGHBOURS,
                                           .rope_width = 24,
                                           .rope_base = 5000.0,
                                           .rope_local_base = 100.0,
                                           .window = 4,
                                           .window_from = 1,
                                           .scale_by_layer = true};
    add_tokens(t, 1);
    fill_layers(t, 1, (layer_style){.before = true, .inside = true});
    t->files.binding.stack[1].final_norm = norm(t);
    tie_output(t, 1);
}

static void fill_t5(tiny *t)
{
    model_description *const d = &t->files.description;
    d->kind = MHA_MODEL_ENCODER_DECODER;
    d->norm = MHA_NORM_RMS;
    d->norm_eps = 1e-6f;
    d->activation = MHA_ACTIVATION_GELU_TANH;
    d->gated = true;
    d->logit_scale = 0.125f;
    d->positions = 0;
    d->usage.decoder_start = 0;
    for (int s = 0; s < STACKS; s++) {
        d->stack[s] = plain_stack(s == STACK_DECODER);
        d->stack[s].embedding.position = POSITION_RELATIVE;
        d->stack[s].attention.scale = 1.0f;
        d->stack[s].attention.relative_buckets = 8;
        d->stack[s].attention.relative_distance = 16;
        if (s == STACK_ENCODER)
            add_tokens(t, s);
        else
            t->files.binding.stack[s].tokens = t->files.binding.stack[0].tokens;
        fill_layers(t, s, (layer_style){.before = true, .cross = s == STACK_DECODER});
        t->files.binding.stack[s].relative = table(t, 8, 4, 1.0f);
        t->files.binding.stack[s].final_norm = norm(t);
    }
    tie_output(t, STACK_DECODER);
}

static void fill_bart(tiny *t, bool marian)
{
    model_description *const d = &t->files.description;
    d->kind = MHA_MODEL_ENCODER_DECODER;
    d->activation = marian ? MHA_ACTIVATION_SILU : MHA_ACTIVATION_GELU;
    d->usage.decoder_start = 1;
    for (int s = 0; s < STACKS; s++) {
        d->stack[s] = plain_stack(s == STACK_DECODER);
        d->stack[s].layers = s == STACK_DECODER ? 2 : 3;
        d->stack[s].embedding.position = marian ? POSITION_SINES : POSITION_LEARNED;
        d->stack[s].embedding.position_offset = marian ? 0 : 2;
        d->stack[s].embedding.sine_steps = marian ? WIDTH / 2 : 0;
        d->stack[s].embedding.scale = marian ? 8.0f : 0.0f;
        add_tokens(t, s);
        fill_layers(t, s, (layer_style){.after = true, .bias = true, .cross = s == STACK_DECODER});
        if (!marian)
            t->files.binding.stack[s].embedding_norm = norm(t);
    }
    tie_output(t, STACK_DECODER);
    t->files.binding.output.bias = vector(t, WORDS, 0.0f, 0.2f);
}

static void fill_vit(tiny *t)
{
    model_description *const d = &t->files.description;
    model_binding *const b = &t->files.binding;
    d->kind = MHA_MODEL_IMAGE_ENCODER;
    d->activation = MHA_ACTIVATION_GELU;
    d->image_size = 12;
    d->patch = 4;
    d->channels = 3;
    d->extra_tokens = 2;
    d->positions = 11;
    d->stack[0] = plain_stack(false);
    d->stack[0].embedding.position = POSITION_LEARNED;
    b->stack[0].position = table(t, 11, WIDTH, 0.3f);
    fill_layers(t, 0, (layer_style){.before = true, .bias = true});
    b->stack[0].final_norm = norm(t);
    b->stack[0].patches = linear(t, WIDTH, 3 * 4 * 4, true);
    b->stack[0].class_token = vector(t, WIDTH, 0.0f, 0.5f);
    b->stack[0].distillation_token = vector(t, WIDTH, 0.0f, 0.5f);
    b->label = linear(t, 5, WIDTH, true);
    b->label_distilled = linear(t, 5, WIDTH, true);
    d->labels = 5;
}

/* ------------------------------------------------------------------------ all ----- */

model_files tiny_files(tiny_kind kind, mha_dtype type, uint64_t seed)
{
    tiny t = {.type = type, .random = {seed}};
    model_description *const d = &t.files.description;
    *d = (model_description){
        .width = WIDTH,
        .vocabulary = WORDS,
        .source_vocabulary = WORDS,
        .positions = POSITIONS,
        .norm = MHA_NORM_LAYER,
        .norm_eps = 1e-5f,
        .usage = {.decoder_start = -1, .begin = -1, .end = -1, .pad = -1, .first = -1}};
    strcpy(d->family, "tiny");
    switch (kind) {
    case TINY_BERT:
    case TINY_ALBERT:
        fill_bert(&t, kind == TINY_ALBERT);
        break;
    case TINY_GPT2:
        fill_gpt2(&t);
        break;
    case TINY_LLAMA:
        fill_llama(&t);
        break;
    case TINY_GEMMA:
        fill_gemma(&t);
        break;
    case TINY_T5:
        fill_t5(&t);
        break;
    case TINY_BART:
    case TINY_MARIAN:
        fill_bart(&t, kind == TINY_MARIAN);
        break;
    default:
        fill_vit(&t);
    }
    return t.files;
}

mha_model *tiny_model_new(tiny_kind kind, mha_model_storage storage, uint64_t seed,
                          model_files *files)
{
    char message[256] = "";
    model_files made = tiny_files(kind, MHA_F32, seed);
    const mha_model_config config = {.size = sizeof config,
                                     .storage = storage,
                                     .message = message,
                                     .message_size = sizeof message};
    mha_model *model;
    if (files)
        *files = made;
    if (model_build(&model, &made, &config)) {
        fprintf(stderr, "%s: %s\n", tiny_name(kind), message);
        abort();
    }
    return model;
}

void tiny_ids(int32_t *ids, ptrdiff_t count, ptrdiff_t words, uint64_t seed)
{
    test_random random = {seed};
    for (ptrdiff_t n = 0; n < count; n++)
        ids[n] = (int32_t)test_random_below(&random, words);
}
