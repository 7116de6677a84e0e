/* SPDX-License-Identifier: MIT */
/* Small models in Hugging Face's form for tests. */
#ifndef MHA_MODEL_BUILDER_H
#define MHA_MODEL_BUILDER_H

#include "support/temp_files.h"

/* Writes a safetensors file with f32 tensors, the lines of tensor_lines.h. Element n of each is n.
 */
void model_builder_tensors(const char *path, const char *tensors, int layers);

/* The same as model.safetensors of a folder, with a config.json. */
void model_builder_folder(const temp_folder *folder, const char *config, const char *tensors,
                          int layers);

/* The same with random numbers, in f32 or f16. */
void model_builder_random(const temp_folder *folder, const char *config, const char *tensors,
                          int layers, bool half);

#endif
