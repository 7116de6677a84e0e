/* SPDX-License-Identifier: MIT */
/* mha inspect: describes a model, with mha_model_describe() or as JSON. */
#include <stdio.h>
#include <stdlib.h>

#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/model_session.h"
#include "program/options.h"

static const char details[] =
    "MODEL is a folder in Hugging Face's form, a GGUF file, a model file of llama2.c, or a\n"
    "translator of \"mha train\". Prints its family, sizes, parameters and memory, and a drawing "
    "of\n"
    "one layer. The tensors themselves are listed by \"mha tensors\".\n"
    "\n"
    "Examples:\n"
    "  mha inspect models/lab-en-fr.safetensors\n"
    "  mha inspect all-MiniLM-L6-v2/\n"
    "  mha inspect SmolLM2-135M-Instruct.Q4_1.gguf --json\n";

static const char *const kinds[] = {"encoder", "decoder", "encoder-decoder", "image encoder"};

static void print_json(const model_session *s)
{
    const mha_model_info *const info = &s->info;
    const mha_tokenizer *const tokenizer = mha_model_tokenizer(s->model);
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "family", info->family);
    json_string(&j, "kind", kinds[info->kind]);
    json_integer(&j, "encoder_layers", info->layers[MHA_ATTENTION_ENCODER]);
    json_integer(&j, "decoder_layers", info->layers[MHA_ATTENTION_DECODER]);
    json_integer(&j, "width", info->width);
    json_integer(&j, "heads", info->heads);
    json_integer(&j, "key_heads", info->key_heads);
    json_integer(&j, "head_width", info->head_width);
    json_integer(&j, "inner", info->inner);
    json_integer(&j, "vocabulary", info->vocabulary);
    json_integer(&j, "positions", info->positions);
    json_integer(&j, "labels", info->labels);
    json_integer(&j, "parameters", info->parameters);
    json_unsigned(&j, "file_bytes", info->file_bytes);
    json_unsigned(&j, "memory_bytes", info->memory_bytes);
    if (tokenizer != NULL) {
        json_open_object(&j, "tokenizer");
        json_string(&j, "kind", mha_tokenizer_kind(tokenizer));
        json_integer(&j, "size", mha_tokenizer_size(tokenizer));
        json_close(&j);
    }
    json_close(&j);
}

static int print_text(const model_session *s)
{
    const size_t length = mha_model_describe(s->model, NULL, 0);
    char *const text = malloc(length + 1);
    if (text == NULL)
        return args_failed("out of memory");
    mha_model_describe(s->model, text, length + 1);
    fputs(text, stdout);
    free(text);
    return EXIT_FINE;
}

int command_inspect(int argc, char **argv)
{
    bool as_json = false;
    model_request request = {.threads = 1};
    const arg_option options[] = {
        {OPTION_MODEL_PATH(&request.path)},
        {OPTION_TOKENIZER(&request.tokenizer)},
        {OPTION_STORE(&request.store)},
        {OPTION_ARITHMETIC(&request.arithmetic)},
        {OPTION_JSON(&as_json)},
    };
    const arg_command command = {
        .name = "inspect",
        .usage = "[OPTION...] [MODEL]",
        .summary =
            "Describe a model: family, sizes, parameters, memory, and a drawing of one layer.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = 1,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code != EXIT_GO_ON)
        return code;
    if (words > 0 && request.path != NULL)
        return args_wrong("inspect: --model names the model already; leave \"%s\" out", argv[1]);
    if (words > 0)
        request.path = argv[1];
    model_session session;
    code = model_session_open(&session, command.name, &request);
    if (code == EXIT_GO_ON && as_json) {
        print_json(&session);
        code = EXIT_FINE;
    } else if (code == EXIT_GO_ON) {
        code = print_text(&session);
    }
    model_session_close(&session);
    return code;
}
