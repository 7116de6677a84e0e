/* SPDX-License-Identifier: MIT */
/* Files beside config.json: those of sentence-transformers, which say how one vector is made of a
 * text, and how the pixels of pictures are scaled. */
#ifndef MODEL_DESCRIBE_USAGE_H
#define MODEL_DESCRIBE_USAGE_H

#include "model/describe.h"

enum { MODEL_FOLDER_MAX = 64 };

/* modules.json: `pooling_folder` receives the name of the folder with the configuration of the
 * pooling; it is unchanged if there is no pooling. A module that changes vectors in another way is
 * refused. */
mha_status describe_modules(const config_reader *r, model_usage *usage,
                            char pooling_folder[MODEL_FOLDER_MAX]);
/* 1_Pooling/config.json */
mha_status describe_pooling(const config_reader *r, model_usage *usage);
/* sentence_bert_config.json */
mha_status describe_sentences(const config_reader *r, model_usage *usage);
/* preprocessor_config.json, after the number of channels */
mha_status describe_pixels(const config_reader *r, model_description *description);

#endif
