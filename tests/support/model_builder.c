/* SPDX-License-Identifier: MIT */
/* Writes small models (model_builder.h): lists of tensors become safetensors files. */
#include "support/model_builder.h"

#include <string.h>

#include "format/convert.h"
#include "format/safetensors.h"
#include "support/tensor_lines.h"
#include "support/test.h"

enum { NUMBERS_MAX = 1 << 18 };

/* Tensor n begins with element n * `shift` of the numbers. */
static void write_list(const char *path, const char *tensors, int layers, const void *numbers,
                       safetensors_type type, size_t shift)
{
    static tensor_line list[TENSOR_LINES_MAX];
    static safetensors_item items[TENSOR_LINES_MAX];
    char message[300];
    const size_t count = tensor_lines_read(tensors, layers, list);
    const size_t size = safetensors_type_bits(type) / 8;
    for (size_t n = 0; n < count; n++) {
        if (tensor_line_elements(&list[n]) + n * shift > NUMBERS_MAX)
            builder_die("a tensor is too large");
        items[n] = (safetensors_item){list[n].name, type, list[n].rank, list[n].shape,
                                      (const char *)numbers + n * shift * size};
    }
    if (safetensors_write(path, items, count, NULL, 0, message, sizeof message))
        builder_die(message);
}

void model_builder_tensors(const char *path, const char *tensors, int layers)
{
    static float numbers[NUMBERS_MAX];
    for (int n = 0; n < NUMBERS_MAX; n++)
        numbers[n] = (float)n;
    write_list(path, tensors, layers, numbers, SAFETENSORS_F32, 0);
}

static void write_config(const temp_folder *folder, const char *config)
{
    if (!file_make(temp_path(folder, "config.json"), config, strlen(config)))
        builder_die("config.json cannot be written");
}

void model_builder_random(const temp_folder *folder, const char *config, const char *tensors,
                          int layers, bool half)
{
    static float numbers[NUMBERS_MAX];
    static uint16_t halves[NUMBERS_MAX];
    test_random random = {19};
    for (int n = 0; n < NUMBERS_MAX; n++) {
        numbers[n] = 0.4f * test_random_normal(&random);
        halves[n] = convert_f32_to_f16(numbers[n]);
    }
    write_config(folder, config);
    write_list(temp_path(folder, "model.safetensors"), tensors, layers,
               half ? (const void *)halves : numbers, half ? SAFETENSORS_F16 : SAFETENSORS_F32, 97);
}

void model_builder_folder(const temp_folder *folder, const char *config, const char *tensors,
                          int layers)
{
    write_config(folder, config);
    model_builder_tensors(temp_path(folder, "model.safetensors"), tensors, layers);
}
