/* SPDX-License-Identifier: MIT */
/* Configurations of every family, compared with the numbers that they mean; and configurations that
 * must be refused, with the part of the message that names the reason. */
#include "model/describe.h"
#include "model/families.h"
#include "support/gguf_builder.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mha_status describe(const char *text, model_description *d, char message[300])
{
    json_tree *tree = NULL;
    const model_family *family;
    message[0] = '\0';
    if (json_tree_parse(&tree, "config.json", text, strlen(text), message, 300))
        return MHA_ERR_FORMAT;
    const config_reader r = {.object = json_tree_root(tree),
                             .path = "config.json",
                             .message = message,
                             .message_size = 300};
    const mha_status status = describe_config(d, &family, &r);
    json_tree_free(tree);
    return status;
}

/* What a configuration must give. A number that is 0 here must be 0 there. */
typedef struct expectation {
    const char *config;
    mha_model_kind kind;
    int width, vocabulary, positions, encoder_layers, decoder_layers;
    int heads, key_heads, head_width, inner;
    mha_activation activation;
    mha_norm norm;
    double eps;
    bool gated, norm_first, tied;
    position_kind position;
    int offset;
} expectation;

#define PAIR_CONFIG                                                                           \
    "\"d_model\":32,\"encoder_layers\":2,\"decoder_layers\":3,\"encoder_attention_heads\":4," \
    "\"decoder_attention_heads\":8,\"encoder_ffn_dim\":37,\"decoder_ffn_dim\":41"

/* Defaults are those of the classes of transformers. */
static const expectation expectations[] = {
    {"{\"model_type\":\"bert\"}", MHA_MODEL_ENCODER, 768, 30522, 512, 12, 0, 12, 12, 64, 3072,
     MHA_ACTIVATION_GELU, MHA_NORM_LAYER, 1e-12, false, false, true, POSITION_LEARNED, 0},
    {"{\"model_type\":\"roberta\",\"max_position_embeddings\":514,\"layer_norm_eps\":1e-5,"
     "\"type_vocab_size\":1}",
     MHA_MODEL_ENCODER, 768, 50265, 512, 12, 0, 12, 12, 64, 3072, MHA_ACTIVATION_GELU,
     MHA_NORM_LAYER, 1e-5, false, false, true, POSITION_LEARNED, 2},
    {"{\"model_type\":\"xlm-roberta\",\"vocab_size\":250002,\"max_position_embeddings\":514}",
     MHA_MODEL_ENCODER, 768, 250002, 512, 12, 0, 12, 12, 64, 3072, MHA_ACTIVATION_GELU,
     MHA_NORM_LAYER, 1e-12, false, false, true, POSITION_LEARNED, 2},
    {"{\"model_type\":\"camembert\",\"vocab_size\":32005,\"max_position_embeddings\":514}",
     MHA_MODEL_ENCODER, 768, 32005, 512, 12, 0, 12, 12, 64, 3072, MHA_ACTIVATION_GELU,
     MHA_NORM_LAYER, 1e-12, false, false, true, POSITION_LEARNED, 2},
    {"{\"model_type\":\"distilbert\"}", MHA_MODEL_ENCODER, 768, 30522, 512, 6, 0, 12, 12, 64, 3072,
     MHA_ACTIVATION_GELU, MHA_NORM_LAYER, 1e-12, false, false, true, POSITION_LEARNED, 0},
    {"{\"model_type\":\"albert\"}", MHA_MODEL_ENCODER, 4096, 30000, 512, 12, 0, 64, 64, 64, 16384,
     MHA_ACTIVATION_GELU_TANH, MHA_NORM_LAYER, 1e-12, false, false, true, POSITION_LEARNED, 0},
    {"{\"model_type\":\"electra\"}", MHA_MODEL_ENCODER, 256, 30522, 512, 12, 0, 4, 4, 64, 1024,
     MHA_ACTIVATION_GELU, MHA_NORM_LAYER, 1e-12, false, false, true, POSITION_LEARNED, 0},
    {"{\"model_type\":\"vit\"}", MHA_MODEL_IMAGE_ENCODER, 768, 0, 197, 12, 0, 12, 12, 64, 3072,
     MHA_ACTIVATION_GELU, MHA_NORM_LAYER, 1e-12, false, true, false, POSITION_LEARNED, 0},
    {"{\"model_type\":\"deit\",\"image_size\":[384,384]}", MHA_MODEL_IMAGE_ENCODER, 768, 0, 578, 12,
     0, 12, 12, 64, 3072, MHA_ACTIVATION_GELU, MHA_NORM_LAYER, 1e-12, false, true, false,
     POSITION_LEARNED, 0},
    {"{\"model_type\":\"mha_vit\",\"image_size\":28,\"patch_size\":6,\"patch_stride\":4,"
     "\"pooling\":\"class\"}",
     MHA_MODEL_IMAGE_ENCODER, 768, 0, 37, 12, 0, 12, 12, 64, 3072, MHA_ACTIVATION_GELU,
     MHA_NORM_LAYER, 1e-12, false, true, false, POSITION_LEARNED, 0},
    {"{\"model_type\":\"mha_vit\",\"image_size\":28,\"patch_size\":4,\"pooling\":\"mean\"}",
     MHA_MODEL_IMAGE_ENCODER, 768, 0, 49, 12, 0, 12, 12, 64, 3072, MHA_ACTIVATION_GELU,
     MHA_NORM_LAYER, 1e-12, false, true, false, POSITION_LEARNED, 0},
    {"{\"model_type\":\"gpt2\",\"n_inner\":null}", MHA_MODEL_DECODER, 768, 50257, 1024, 0, 12, 12,
     12, 64, 3072, MHA_ACTIVATION_GELU_TANH, MHA_NORM_LAYER, 1e-5, false, true, true,
     POSITION_LEARNED, 0},
    {"{\"model_type\":\"llama\",\"hidden_size\":576,\"num_attention_heads\":9,"
     "\"num_key_value_heads\":3,\"num_hidden_layers\":30,\"intermediate_size\":1536,"
     "\"vocab_size\":49152,\"tie_word_embeddings\":true,\"rms_norm_eps\":1e-5}",
     MHA_MODEL_DECODER, 576, 49152, 2048, 0, 30, 9, 3, 64, 1536, MHA_ACTIVATION_SILU, MHA_NORM_RMS,
     1e-5, true, true, true, POSITION_ROTARY, 0},
    {"{\"model_type\":\"mistral\"}", MHA_MODEL_DECODER, 4096, 32000, 131072, 0, 32, 32, 8, 128,
     14336, MHA_ACTIVATION_SILU, MHA_NORM_RMS, 1e-6, true, true, false, POSITION_ROTARY, 0},
    {"{\"model_type\":\"qwen2\"}", MHA_MODEL_DECODER, 4096, 151936, 32768, 0, 32, 32, 32, 128,
     22016, MHA_ACTIVATION_SILU, MHA_NORM_RMS, 1e-6, true, true, false, POSITION_ROTARY, 0},
    {"{\"model_type\":\"qwen3\",\"hidden_size\":1024,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":8}",
     MHA_MODEL_DECODER, 1024, 151936, 32768, 0, 32, 16, 8, 128, 22016, MHA_ACTIVATION_SILU,
     MHA_NORM_RMS, 1e-6, true, true, false, POSITION_ROTARY, 0},
    {"{\"model_type\":\"gemma\"}", MHA_MODEL_DECODER, 3072, 256000, 8192, 0, 28, 16, 16, 256, 24576,
     MHA_ACTIVATION_GELU_TANH, MHA_NORM_RMS, 1e-6, true, true, true, POSITION_ROTARY, 0},
    {"{\"model_type\":\"gemma2\"}", MHA_MODEL_DECODER, 2304, 256000, 8192, 0, 26, 8, 4, 256, 9216,
     MHA_ACTIVATION_GELU_TANH, MHA_NORM_RMS, 1e-6, true, true, true, POSITION_ROTARY, 0},
    {"{\"model_type\":\"gemma3_text\"}", MHA_MODEL_DECODER, 2304, 262208, 131072, 0, 26, 8, 4, 256,
     9216, MHA_ACTIVATION_GELU_TANH, MHA_NORM_RMS, 1e-6, true, true, true, POSITION_ROTARY, 0},
    {"{\"model_type\":\"t5\"}", MHA_MODEL_ENCODER_DECODER, 512, 32128, 0, 6, 6, 8, 8, 64, 2048,
     MHA_ACTIVATION_RELU, MHA_NORM_RMS, 1e-6, false, true, false, POSITION_RELATIVE, 0},
    {"{\"model_type\":\"t5\",\"feed_forward_proj\":\"gated-gelu\",\"d_kv\":32}",
     MHA_MODEL_ENCODER_DECODER, 512, 32128, 0, 6, 6, 8, 8, 32, 2048, MHA_ACTIVATION_GELU_TANH,
     MHA_NORM_RMS, 1e-6, true, true, false, POSITION_RELATIVE, 0},
    {"{\"model_type\":\"bart\"," PAIR_CONFIG "}", MHA_MODEL_ENCODER_DECODER, 32, 50265, 1024, 2, 3,
     8, 8, 4, 41, MHA_ACTIVATION_GELU, MHA_NORM_LAYER, 1e-5, false, false, true, POSITION_LEARNED,
     2},
    {"{\"model_type\":\"mbart\"," PAIR_CONFIG "}", MHA_MODEL_ENCODER_DECODER, 32, 50265, 1024, 2, 3,
     8, 8, 4, 41, MHA_ACTIVATION_GELU, MHA_NORM_LAYER, 1e-5, false, true, true, POSITION_LEARNED,
     2},
    {"{\"model_type\":\"marian\",\"activation_function\":\"swish\"," PAIR_CONFIG "}",
     MHA_MODEL_ENCODER_DECODER, 32, 58101, 1024, 2, 3, 8, 8, 4, 41, MHA_ACTIVATION_SILU,
     MHA_NORM_LAYER, 1e-5, false, false, true, POSITION_SINES, 0},
    {"{\"model_type\":\"transformer\",\"vocab_size\":43,\"source_vocab_size\":51,"
     "\"normalize_before\":true,\"position_embedding\":\"sines\",\"position_offset\":1,"
     "\"eos_token_id\":2,\"bos_token_id\":1,\"tie_word_embeddings\":false," PAIR_CONFIG "}",
     MHA_MODEL_ENCODER_DECODER, 32, 43, 0, 2, 3, 8, 8, 4, 41, MHA_ACTIVATION_RELU, MHA_NORM_LAYER,
     1e-5, false, true, false, POSITION_SINES, 1},
};
enum { EXPECTATIONS = sizeof expectations / sizeof expectations[0] };

static void check_numbers(const expectation *e, const model_description *d)
{
    const stack_description *const stack =
        &d->stack[e->decoder_layers ? STACK_DECODER : STACK_ENCODER];
    const attention_description *const a = &stack->attention;
    const struct {
        const char *what;
        int is, wanted;
    } numbers[] = {{"kind", (int)d->kind, (int)e->kind},
                   {"width", d->width, e->width},
                   {"vocabulary", d->vocabulary, e->vocabulary},
                   {"positions", d->positions, e->positions},
                   {"encoder layers", d->stack[STACK_ENCODER].layers, e->encoder_layers},
                   {"decoder layers", d->stack[STACK_DECODER].layers, e->decoder_layers},
                   {"heads", a->heads, e->heads},
                   {"key heads", a->key_heads, e->key_heads},
                   {"head width", a->head_width, e->head_width},
                   {"inner", stack->inner, e->inner},
                   {"activation", (int)d->activation, (int)e->activation},
                   {"norm", (int)d->norm, (int)e->norm},
                   {"gated", d->gated, e->gated},
                   {"norm first", d->norm_first, e->norm_first},
                   {"tied", d->tied, e->tied},
                   {"position", (int)stack->embedding.position, (int)e->position},
                   {"offset", stack->embedding.position_offset, e->offset},
                   {"causal", stack->causal, e->decoder_layers > 0}};
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        CHECK(numbers[n].is == numbers[n].wanted, "%s: %s is %d, not %d", d->family,
              numbers[n].what, numbers[n].is, numbers[n].wanted);
    CHECK(d->norm_eps == (float)e->eps, "%s: eps is %g", d->family, (double)d->norm_eps);
}

static void every_family(void)
{
    for (int n = 0; n < EXPECTATIONS; n++) {
        model_description d;
        char message[300];
        const mha_status status = describe(expectations[n].config, &d, message);
        if (CHECK(status == MHA_OK, "%s: %s", expectations[n].config, message))
            check_numbers(&expectations[n], &d);
        description_free(&d);
    }
}

/* Every name of the public list is a "model_type", or the translator's own. */
static void names_of_families(void)
{
    int n = 0;
    for (; mha_model_family_at(n); n++)
        CHECK(model_family_find(mha_model_family_at(n)) != NULL, "%s", mha_model_family_at(n));
    CHECK(n == 24 && !mha_model_family_at(-1) && !mha_model_family_at(1000), "%d families", n);
}

/* --------------------------------------------------------------- details ----- */

static model_description of(const char *config)
{
    model_description d;
    char message[300];
    const mha_status status = describe(config, &d, message);
    CHECK(status == MHA_OK, "%s: %s", config, message);
    return d;
}

static int windows(const model_description *d)
{
    int bits = 0;
    for (int n = 0; n < d->stack[STACK_DECODER].layers; n++)
        bits |= (attention_window(&d->stack[STACK_DECODER].attention, n) > 0) << n;
    return bits;
}

#define SIX_LAYERS "\"num_hidden_layers\":6,\"sliding_window\":7"

static void windows_of_layers(void)
{
    static const struct {
        const char *config;
        int layers; /* bit n: layer n has a window */
    } cases[] = {
        {"{\"model_type\":\"mistral\"," SIX_LAYERS "}", 63},
        {"{\"model_type\":\"mistral\",\"num_hidden_layers\":6,\"sliding_window\":null}", 0},
        {"{\"model_type\":\"qwen2\"," SIX_LAYERS "}", 0},
        {"{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"max_window_layers\":4," SIX_LAYERS
         "}",
         48},
        {"{\"model_type\":\"gemma2\"," SIX_LAYERS "}", 21},
        {"{\"model_type\":\"gemma3_text\"," SIX_LAYERS "}", 31},
        {"{\"model_type\":\"gemma3_text\",\"sliding_window_pattern\":3," SIX_LAYERS "}", 27},
        {"{\"model_type\":\"gemma2\",\"layer_types\":[\"full_attention\",\"full_attention\","
         "\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\"]"
         "," SIX_LAYERS "}",
         60},
        {"{\"model_type\":\"gemma2\",\"layer_types\":[\"sliding_attention\",\"sliding_attention\","
         "\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"]"
         "," SIX_LAYERS "}",
         27},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        model_description d = of(cases[n].config);
        CHECK(windows(&d) == cases[n].layers, "%s: %d", cases[n].config, windows(&d));
        description_free(&d);
    }
}

/* The frequencies are those of transformers for these parameters. */
static void rotary_positions(void)
{
    static const char scaled[] =
        "{\"model_type\":\"llama\",\"head_dim\":16,\"rope_theta\":10000,\"rope_scaling\":"
        "{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
        "\"original_max_position_embeddings\":64}}";
    static const float wanted[8] = {
        1.0f,           0.244384587f,    0.0130422562f,   0.00395284733f,
        0.00124999997f, 0.000395284733f, 0.000125000006f, 3.95284733e-05f};
    model_description d = of(scaled);
    const attention_description *a = &d.stack[STACK_DECODER].attention;
    for (int n = 0; a->rope_frequencies && n < 8; n++)
        CHECK(fabsf(a->rope_frequencies[n] - wanted[n]) <= 1e-6f * wanted[n], "%d: %g", n,
              (double)a->rope_frequencies[n]);
    CHECK(a->rope_frequencies != NULL, "no frequencies");
    description_free(&d);

    d = of("{\"model_type\":\"llama\",\"head_dim\":4,\"rope_parameters\":{\"rope_theta\":100,"
           "\"rope_type\":\"linear\",\"factor\":4}}");
    a = &d.stack[STACK_DECODER].attention;
    CHECK(a->rope_base == 100 && a->rope_frequencies && a->rope_frequencies[0] == 0.25f &&
              a->rope_frequencies[1] == 0.025f,
          "linear scaling");
    description_free(&d);

    d = of("{\"model_type\":\"gemma3_text\",\"rope_parameters\":{\"full_attention\":"
           "{\"rope_theta\":5e5,\"rope_type\":\"default\"},\"sliding_attention\":"
           "{\"rope_theta\":2e4,\"rope_type\":\"default\"}}}");
    a = &d.stack[STACK_DECODER].attention;
    CHECK(a->rope_base == 5e5 && a->rope_local_base == 2e4 && !a->rope_frequencies, "two bases");
    description_free(&d);

    d = of("{\"model_type\":\"gemma3_text\"}");
    a = &d.stack[STACK_DECODER].attention;
    CHECK(a->rope_base == 1e6 && a->rope_local_base == 1e4 && a->rope_pairs == MHA_ROPE_HALVES,
          "Gemma 3's defaults");
    description_free(&d);
}

static void details(void)
{
    model_description d = of("{\"model_type\":\"gemma2\",\"torch_dtype\":\"bfloat16\","
                             "\"hidden_size\":3072,\"query_pre_attn_scalar\":144,"
                             "\"attn_logit_softcapping\":null}");
    const stack_description *stack = &d.stack[STACK_DECODER];
    CHECK(stack->embedding.scale == 55.5f, "rounded to bf16: %g", (double)stack->embedding.scale);
    CHECK(fabsf(stack->attention.scale - 1.0f / 12) < 1e-7f && stack->attention.softcap == 0 &&
              d.logit_softcap == 30 && d.norm_add == 1,
          "Gemma 2");
    d = of("{\"model_type\":\"t5\"}");
    CHECK(d.logit_scale == 1 / sqrtf(512) && d.stack[STACK_DECODER].attention.scale == 1 &&
              d.usage.decoder_start == 0 && d.usage.ends[0] == 1 && d.usage.source_end,
          "T5");
    d = of("{\"model_type\":\"t5\",\"tie_word_embeddings\":false}");
    CHECK(d.logit_scale == 0, "T5 1.1 does not scale");
    d = of("{\"model_type\":\"t5\",\"architectures\":[\"T5EncoderModel\"]}");
    CHECK(d.kind == MHA_MODEL_ENCODER && d.stack[STACK_DECODER].layers == 0, "T5's encoder");
    d = of("{\"model_type\":\"gpt2\",\"scale_attn_weights\":false,"
           "\"scale_attn_by_inverse_layer_idx\":true,\"eos_token_id\":[7,9]}");
    CHECK(d.stack[STACK_DECODER].attention.scale == 1 &&
              d.stack[STACK_DECODER].attention.scale_by_layer,
          "GPT-2's scales");
    CHECK(d.usage.end_count == 2 && d.usage.ends[0] == 7 && d.usage.ends[1] == 9, "two ends");
    d = of("{\"model_type\":\"marian\",\"scale_embedding\":true,\"d_model\":64,\"vocab_size\":60,"
           "\"decoder_start_token_id\":59,\"bad_words_ids\":[[59],[1,2]]}");
    CHECK(d.stack[STACK_ENCODER].embedding.scale == 8 && d.usage.forbidden_count == 1 &&
              d.usage.forbidden[0] == 59 && d.stack[STACK_ENCODER].embedding.sine_steps == 32,
          "Marian");
    d = of("{\"model_type\":\"albert\",\"embedding_size\":64}");
    CHECK(d.stack[STACK_ENCODER].shared && d.stack[STACK_ENCODER].embedding.width == 64, "ALBERT");
    d = of("{\"model_type\":\"bert\",\"architectures\":[\"BertForTokenClassification\"]}");
    CHECK(d.labels_per_token && d.label_pooled && d.pooler_activation == MHA_ACTIVATION_TANH,
          "BERT's labels");
    d = of("{\"model_type\":\"gemma\",\"hidden_activation\":null,\"hidden_act\":\"gelu\","
           "\"head_dim\":null,\"num_key_value_heads\":null,\"pad_token_id\":300000}");
    CHECK(d.activation == MHA_ACTIVATION_GELU_TANH, "null is the default: %d", (int)d.activation);
    CHECK(d.stack[STACK_DECODER].attention.head_width == 192 &&
              d.stack[STACK_DECODER].attention.key_heads == 16 && d.usage.pad == -1,
          "null is none");
    d = of("{\"model_type\":\"qwen3\"}");
    CHECK(d.stack[STACK_DECODER].attention.qk_norm == MHA_NORM_RMS, "Qwen 3's norms");
}

/* Heads that are not there any more, with one key or the other. */
static void removed_heads(void)
{
    model_description d = of("{\"model_type\":\"bert\",\"pruned_heads\":{\"3\":[5,0],\"11\":[2]}}");
    CHECK(d.pruned_count == 3 && description_heads(&d, MHA_ATTENTION_ENCODER, 3) == 10 &&
              description_heads(&d, MHA_ATTENTION_ENCODER, 11) == 11 &&
              description_heads(&d, MHA_ATTENTION_ENCODER, 4) == 12,
          "BERT: %zu", d.pruned_count);
    CHECK(description_is_pruned(&d, MHA_ATTENTION_ENCODER, 3, 5) &&
              !description_is_pruned(&d, MHA_ATTENTION_ENCODER, 3, 4) &&
              !description_is_pruned(&d, MHA_ATTENTION_ENCODER, 5, 5),
          "which heads");
    description_free(&d);
    d = of("{\"model_type\":\"t5\",\"mha_pruned_heads\":{\"cross\":{\"0\":[1]},\"decoder\":{}}}");
    CHECK(d.pruned_count == 1 && description_heads(&d, MHA_ATTENTION_CROSS, 0) == 7 &&
              description_heads(&d, MHA_ATTENTION_DECODER, 0) == 8,
          "T5: %zu", d.pruned_count);
    description_free(&d);
    d = of("{\"model_type\":\"bert\",\"pruned_heads\":{},\"mha_pruned_heads\":null}");
    CHECK(d.pruned_count == 0, "none");
}

/* --------------------------------------------------------------- refusals ----- */

static const struct refusal {
    const char *config, *says;
} refusals[] = {
    {"{}", "\"model_type\" is missing"},
    {"[1]", "\"model_type\" is missing"},
    {"{\"model_type\":\"mamba\"}", "\"mamba\", expected one of bert, roberta"},
    {"{\"model_type\":\"bert\",\"num_hidden_layers\":5000}",
     "\"num_hidden_layers\" is 5000, expected 1 to 1024"},
    {"{\"model_type\":\"bert\",\"num_hidden_layers\":0}", "\"num_hidden_layers\" is 0"},
    {"{\"model_type\":\"bert\",\"hidden_size\":-768}", "\"hidden_size\" is -768"},
    {"{\"model_type\":\"bert\",\"hidden_size\":1e300}", "\"hidden_size\" is 1e+300"},
    {"{\"model_type\":\"bert\",\"hidden_size\":768.5}", "expected a whole number"},
    {"{\"model_type\":\"bert\",\"hidden_size\":\"768\"}", "\"hidden_size\" must be a number"},
    {"{\"model_type\":\"bert\",\"hidden_size\":[1,2]}", "\"hidden_size\" must be a number"},
    {"{\"model_type\":\"bert\",\"hidden_size\":770}", "12 heads do not divide"},
    {"{\"model_type\":\"bert\",\"hidden_size\":4096,\"num_attention_heads\":2}",
     "a width of 2048, expected at most 1024"},
    {"{\"model_type\":\"bert\",\"hidden_act\":\"mish\"}", "\"hidden_act\" is \"mish\""},
    {"{\"model_type\":\"bert\",\"hidden_act\":3}", "the name of an activation"},
    {"{\"model_type\":\"bert\",\"layer_norm_eps\":0}", "\"layer_norm_eps\" is 0"},
    {"{\"model_type\":\"bert\",\"tie_word_embeddings\":1}", "must be true or false"},
    {"{\"model_type\":\"bert\",\"is_decoder\":true}", "\"is_decoder\" must be false"},
    {"{\"model_type\":\"bert\",\"position_embedding_type\":\"relative_key\"}", "\"relative_key\""},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"12\":[1]}}",
     "has the layer \"12\", expected 0 to 11"},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"-1\":[1]}}", "has the layer \"-1\""},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"0x\":[1]}}", "has the layer \"0x\""},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"0\":[12]}}", "heads that are not 0 to 11"},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"0\":[-1]}}", "heads that are not 0 to 11"},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"0\":[\"a\"]}}", "heads that are not 0 to 11"},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"0\":[1,2,1]}}", "has head 1 of layer 0 twice"},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"7\":[0,1,2,3,4,5,6,7,8,9,10,11]}}",
     "leaves no head in layer 7"},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"1\":{\"0\":3}}}",
     "must have a list of heads for layer 1"},
    {"{\"model_type\":\"bert\",\"pruned_heads\":[1]}", "is not an object of layers"},
    {"{\"model_type\":\"bert\",\"pruned_heads\":{\"0\":[1]},\"mha_pruned_heads\":{\"encoder\":{"
     "\"0\":[1]}}}",
     "expected only \"mha_pruned_heads\""},
    {"{\"model_type\":\"bert\",\"mha_pruned_heads\":{\"cross\":{\"0\":[1]}}}",
     "has \"cross\", expected an attention"},
    {"{\"model_type\":\"bert\",\"mha_pruned_heads\":{\"middle\":{\"0\":[1]}}}",
     "has \"middle\", expected an attention"},
    {"{\"model_type\":\"bert\",\"mha_pruned_heads\":[1]}", "is not an object of attentions"},
    {"{\"model_type\":\"t5\",\"pruned_heads\":{\"0\":[1]}}", "does not say of which attention"},
    {"{\"model_type\":\"albert\",\"pruned_heads\":{\"1\":[1]}}",
     "has the layer \"1\", expected 0 to 0"},
    {"{\"model_type\":\"roberta\",\"max_position_embeddings\":2}", "expected more than"},
    {"{\"model_type\":\"albert\",\"num_hidden_groups\":2}", "\"num_hidden_groups\" is 2"},
    {"{\"model_type\":\"llama\",\"quantization_config\":{}}", "quantized"},
    {"{\"model_type\":\"llama\",\"num_key_value_heads\":5}", "5 key/value heads do not divide 32"},
    {"{\"model_type\":\"llama\",\"head_dim\":1024,\"num_attention_heads\":2048}", "together"},
    {"{\"model_type\":\"llama\",\"head_dim\":7,\"num_attention_heads\":8}", "even number"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}}", "\"yarn\""},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
     "\"low_freq_factor\":4,\"high_freq_factor\":1}}",
     "\"high_freq_factor\" is 1"},
    {"{\"model_type\":\"llama\",\"rope_theta\":0}", "\"rope_theta\" is 0"},
    {"{\"model_type\":\"llama\",\"rope_theta\":\"a\"}", "\"rope_theta\" must be a number"},
    {"{\"model_type\":\"gemma2\",\"use_bidirectional_attention\":true}", "must be false"},
    {"{\"model_type\":\"gemma2\",\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\"]}",
     "has 1 elements, expected 2"},
    {"{\"model_type\":\"gemma2\",\"num_hidden_layers\":1,\"layer_types\":[\"chunked\"]}",
     "\"chunked\""},
    {"{\"model_type\":\"gemma2\",\"num_hidden_layers\":4,\"layer_types\":[\"full_attention\","
     "\"sliding_attention\",\"full_attention\",\"full_attention\"]}",
     "order"},
    {"{\"model_type\":\"vit\",\"patch_size\":300}", "\"image_size\" is 224"},
    {"{\"model_type\":\"mha_vit\"}", "\"pooling\" must be"},
    {"{\"model_type\":\"mha_vit\",\"pooling\":\"max\"}", "\"pooling\" must be"},
    {"{\"model_type\":\"mha_vit\",\"pooling\":\"mean\",\"patch_stride\":17}",
     "\"patch_stride\" is 17"},
    {"{\"model_type\":\"vit\",\"image_size\":1000000,\"patch_size\":1}", "more than"},
    {"{\"model_type\":\"vit\",\"num_channels\":100000}", "more than"},
    {"{\"model_type\":\"t5\",\"feed_forward_proj\":\"gated-mish\"}", "\"gated-mish\""},
    {"{\"model_type\":\"t5\",\"relative_attention_num_buckets\":7}", "multiple of 4"},
    {"{\"model_type\":\"t5\",\"relative_attention_max_distance\":16}", "expected more than half"},
    {"{\"model_type\":\"marian\",\"vocab_size\":10}", "\"decoder_start_token_id\" is 58100"},
    {"{\"model_type\":\"marian\",\"normalize_before\":true}", "\"normalize_before\" is true"},
    {"{\"model_type\":\"transformer\"}", "\"d_model\" is missing"},
    {"{\"model_type\":\"transformer\",\"vocab_size\":9,\"eos_token_id\":2,\"bos_token_id\":1,"
     "\"position_embedding\":\"waves\"," PAIR_CONFIG "}",
     "\"waves\""},
};

static void configurations_that_are_refused(void)
{
    for (size_t n = 0; n < sizeof refusals / sizeof refusals[0]; n++) {
        model_description d;
        char message[300];
        const mha_status status = describe(refusals[n].config, &d, message);
        CHECK(status == MHA_ERR_FORMAT, "%s: %s", refusals[n].config, mha_status_string(status));
        CHECK(strncmp(message, "config.json: ", 13) == 0 && strstr(message, refusals[n].says),
              "%s: %s", refusals[n].config, message);
        description_free(&d);
    }
}

/* ------------------------------------------------------------------- GGUF ----- */

typedef struct gguf_change {
    const char *key; /* NULL: none */
    double value;
} gguf_change;

/* A model of two layers with one number changed. */
static mha_status describe_built(const char *architecture, gguf_change change, bool frequencies,
                                 model_description *d, char message[300])
{
    static const gguf_change numbers[] = {
        {"block_count", 2},          {"embedding_length", 16},    {"feed_forward_length", 24},
        {"context_length", 64},      {"attention.head_count", 4}, {"attention.head_count_kv", 2},
        {"attention.key_length", 4}, {"rope.dimension_count", 4}, {"attention.sliding_window", 8}};
    gguf_builder g = {.bytes = NULL};
    char key[80];
    size_t size;
    gguf_file *file;
    const model_family *family;
    gguf_builder_text(&g, "general.architecture", architecture);
    gguf_builder_integer(&g, "tokenizer.ggml.eos_token_id", 3);
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
        const bool changed = change.key && strcmp(change.key, numbers[n].key) == 0;
        snprintf(key, sizeof key, "%s.%s", architecture, numbers[n].key);
        gguf_builder_integer(&g, key, (uint32_t)(changed ? change.value : numbers[n].value));
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", architecture);
    gguf_builder_real(&g, key, 1e-5f);
    snprintf(key, sizeof key, "%s.rope.freq_base", architecture);
    gguf_builder_real(&g, key, 100.0f);
    gguf_builder_tensors(&g, "token_embd.weight 10 16\ntoken_types.weight 2 16\n", 1, 2.0f);
    if (frequencies)
        gguf_builder_tensors(&g, "rope_freqs.weight 2\n", 1, 2.0f);
    unsigned char *const bytes = gguf_builder_file(&g, &size);
    gguf_builder_free(&g);
    mha_status status = gguf_open_memory(&file, bytes, size, message, 300);
    if (CHECK(status == MHA_OK, "%s", message)) {
        const config_reader r = {
            .gguf = file, .prefix = "", .path = "m.gguf", .message = message, .message_size = 300};
        status = describe_gguf(d, &family, &r);
    }
    gguf_close(file);
    free(bytes);
    return status;
}

static void metadata_of_gguf(void)
{
    static const struct {
        const char *architecture, *family;
        mha_rope_pairs pairs;
        mha_activation activation;
        double local_base;
        int every;
    } cases[] = {{"llama", "llama", MHA_ROPE_NEIGHBOURS, MHA_ACTIVATION_SILU, 0, 0},
                 {"qwen2", "qwen2", MHA_ROPE_HALVES, MHA_ACTIVATION_SILU, 0, 0},
                 {"qwen3", "qwen3", MHA_ROPE_HALVES, MHA_ACTIVATION_SILU, 0, 0},
                 {"gemma", "gemma", MHA_ROPE_HALVES, MHA_ACTIVATION_GELU_TANH, 0, 0},
                 {"gemma2", "gemma2", MHA_ROPE_HALVES, MHA_ACTIVATION_GELU_TANH, 0, 2},
                 {"gemma3", "gemma3_text", MHA_ROPE_HALVES, MHA_ACTIVATION_GELU_TANH, 10000, 6}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        model_description d;
        char message[300] = "";
        const mha_status status =
            describe_built(cases[n].architecture, (gguf_change){NULL, 0}, false, &d, message);
        const attention_description *const a = &d.stack[STACK_DECODER].attention;
        if (!CHECK(status == MHA_OK, "%s: %s", cases[n].architecture, message))
            continue;
        CHECK(strcmp(d.family, cases[n].family) == 0 && a->rope_pairs == cases[n].pairs &&
                  d.activation == cases[n].activation && a->rope_base == 100 &&
                  a->rope_local_base == cases[n].local_base && a->window == 8 &&
                  a->window_every == cases[n].every && d.norm_add == 0,
              "%s", cases[n].architecture);
        CHECK(d.vocabulary == 10 && d.width == 16 && a->heads == 4 && a->key_heads == 2 &&
                  a->head_width == 4 && d.positions == 64 && d.usage.ends[0] == 3,
              "%s", cases[n].architecture);
        description_free(&d);
    }
}

static void frequencies_of_gguf(void)
{
    model_description d;
    char message[300] = "";
    const mha_status status = describe_built("llama", (gguf_change){NULL, 0}, true, &d, message);
    const float *const f = d.stack[STACK_DECODER].attention.rope_frequencies;
    CHECK(status == MHA_OK && f && f[0] == 0.5f && fabsf(f[1] - 0.05f) < 1e-8f, "%s", message);
    description_free(&d);
}

static void metadata_that_are_refused(void)
{
    static const struct {
        const char *architecture;
        gguf_change change;
        const char *says;
    } cases[] = {{"mamba", {NULL, 0}, "\"mamba\", expected one of llama"},
                 {"llama", {"block_count", 4000}, "\"block_count\" is 4000"},
                 {"llama", {"attention.head_count", 3}, "do not divide"},
                 {"llama", {"attention.key_length", 3}, "even"},
                 {"llama", {"rope.dimension_count", 6}, "positions rotate 6 of 4"},
                 {"llama", {"embedding_length", 0}, "\"embedding_length\" is 0"}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        model_description d;
        char message[300] = "";
        const mha_status status =
            describe_built(cases[n].architecture, cases[n].change, false, &d, message);
        CHECK(status == MHA_ERR_FORMAT && strstr(message, cases[n].says), "%s %s: %s",
              cases[n].architecture, cases[n].change.key, message);
        description_free(&d);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_family);
    RUN(names_of_families);
    RUN(windows_of_layers);
    RUN(rotary_positions);
    RUN(details);
    RUN(removed_heads);
    RUN(configurations_that_are_refused);
    RUN(metadata_of_gguf);
    RUN(frequencies_of_gguf);
    RUN(metadata_that_are_refused);
    return test_end();
}
