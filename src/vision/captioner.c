/* SPDX-License-Identifier: MIT */
/* Models that say what is in a picture: their words, and what they say (captioner.h). */
#include "vision/captioner.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- words ----- */

static void put_words(json *j, const transformer_config *config)
{
    json_integer(j, "max_position_embeddings", config->positions);
    json_open_array(j, "words");
    for (int n = 0; n < caption_word_count(); n++)
        json_string(j, NULL, caption_word(n));
    json_close(j);
}

/* The words must be those of captions, in their order. */
static void read_words(folder_config *r, transformer_config *config)
{
    const json_value *const list = folder_config_member(r, "words");
    bool same = list && json_tree_count(list) == (size_t)caption_word_count();
    for (int n = 0; same && n < caption_word_count(); n++) {
        const char *text;
        same = json_tree_get_string(json_tree_element(list, (size_t)n), &text, NULL) &&
               strcmp(text, caption_word(n)) == 0;
    }
    if (!same)
        folder_config_refuse(r, "words", "the list of words of captions of scenes");
    config->form = FORM_CAPTIONS;
    config->words[TRANSFORMER_TARGET] = WORDS_SPECIAL + caption_word_count();
    config->positions = folder_config_size(r, "max_position_embeddings");
}

const scene_model_kind captioner_kind = {
    .type = "mha_captions", .architecture = "MhaCaptions", .put = put_words, .read = read_words};

/* ------------------------------------------------------------------ saying ----- */

/* One picture and the words so far; NULL if out of memory. */
static batch *batch_of(const scene_model *c, const float *pixels, const caption_ids *caption)
{
    const size_t floats = scene_model_floats(c);
    batch *const b =
        batch_of_captions(caption, 1, WORD_END, vision_tokens(&c->config.vision), floats);
    if (b)
        memcpy(b->pixels, pixels, floats * sizeof *pixels);
    return b;
}

/* The word after ids[count], and the log-probability of these, with that of the end if that is the
 * word. */
static mha_status next_word(const scene_model *c, const float *pixels, const caption_ids *caption,
                            int *word, double *score)
{
    int said[CAPTION_WORDS_MAX + 1];
    const network_mode mode = {.said = said};
    network_loss loss;
    batch *const b = batch_of(c, pixels, caption);
    const mha_status status = b ? network_forward(c->network, b, &mode, &loss) : MHA_ERR_MEMORY;
    batch_free(b);
    if (status != MHA_OK)
        return status;
    *word = said[caption->count];
    *score = -loss.sum;
    if (*word != WORD_END)
        *score += network_scores(c->network)[caption->count].loss;
    return MHA_OK;
}

mha_status captioner_say(const scene_model *c, const float *pixels, scene_language language,
                         caption_said *said)
{
    int ids[CAPTION_WORDS_MAX];
    caption_ids caption = {.ids = ids, .begin = WORDS_SPECIAL + (int)language};
    const int most =
        c->config.positions - 1 < CAPTION_WORDS_MAX ? c->config.positions - 1 : CAPTION_WORDS_MAX;
    for (;;) {
        int word;
        const mha_status status = next_word(c, pixels, &caption, &word, &said->score);
        if (status != MHA_OK)
            return status;
        said->complete = word == WORD_END;
        if (said->complete || caption.count == most)
            break;
        ids[caption.count++] = word;
    }
    said->count = caption.count;
    for (int n = 0; n < caption.count; n++)
        said->words[n] = ids[n] >= WORDS_SPECIAL ? ids[n] - WORDS_SPECIAL : -1;
    return MHA_OK;
}

mha_status captioner_weights(const scene_model *c, const float *pixels, scene_language language,
                             const caption_said *said, float *weights)
{
    int ids[CAPTION_WORDS_MAX];
    for (int n = 0; n < said->count; n++)
        ids[n] = said->words[n] < 0 ? WORD_UNKNOWN : WORDS_SPECIAL + said->words[n];
    const caption_ids caption = {ids, said->count, WORDS_SPECIAL + (int)language};
    batch *const b = batch_of(c, pixels, &caption);
    const mha_status status = b ? scene_model_weights(c, b, weights) : MHA_ERR_MEMORY;
    batch_free(b);
    return status;
}
