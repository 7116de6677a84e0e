/* SPDX-License-Identifier: MIT */
/* A model of ten pieces, and checks of tokens and texts. */
#include "support/sentencepiece_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

void small_model(sentencepiece_builder *b, int kind)
{
    b->size = 0;
    builder_marks(b);
    builder_piece(b, SPACE, -5, TYPE_NORMAL);
    builder_piece(b, "a", -4, TYPE_NORMAL);
    builder_piece(b, "b", -4, TYPE_NORMAL);
    builder_piece(b, "ab", -2, TYPE_NORMAL);
    builder_piece(b, SPACE "a", -3, TYPE_NORMAL);
    builder_piece(b, SPACE "ab", -1, TYPE_NORMAL);
    builder_piece(b, "\xc3\xa9", -6, TYPE_NORMAL);
    builder_number(b, TRAINER, MODEL_TYPE, kind);
}

sentencepiece *open_model(const sentencepiece_builder *b)
{
    sentencepiece *sp = NULL;
    char message[256] = "";
    const mha_status status = sentencepiece_open_memory(&sp, b->bytes, b->size, message, 256);
    CHECK(status == MHA_OK, "status %d: %s", status, message);
    return sp;
}

void check_bytes(const sentencepiece *sp, const char *text, size_t length, const char *wanted)
{
    char written[1024] = "";
    size_t used = 0;
    token_list list = {0};
    if (sp == NULL)
        return;
    sentencepiece_encode(sp, text, length, &list);
    for (ptrdiff_t n = 0; n < list.count; n++)
        used +=
            (size_t)snprintf(written + used, sizeof written - used, "%s%d:%zu-%zu", n ? " " : "",
                             list.tokens[n].id, list.tokens[n].begin, list.tokens[n].end);
    CHECK(!list.failed && strcmp(written, wanted) == 0, "%s: %s, not %s", text, written, wanted);
    token_list_free(&list);
}

void check_tokens(const sentencepiece *sp, const char *text, const char *wanted)
{
    check_bytes(sp, text, strlen(text), wanted);
}

void check_text(const sentencepiece *sp, const int32_t *ids, ptrdiff_t count, bool skip_marks,
                const char *wanted)
{
    char *text = NULL;
    size_t length = 0;
    if (sp == NULL)
        return;
    const mha_status status = sentencepiece_decode(sp, ids, count, skip_marks, &text, &length);
    if (CHECK(status == MHA_OK, "status %d", status))
        CHECK(length == strlen(text) && strcmp(text, wanted) == 0, "'%s', not '%s'", text, wanted);
    free(text);
}
