/* SPDX-License-Identifier: MIT */
/*
 * Marian's folders (sentencepiece.h): two SentencePiece models split texts, and vocab.json gives
 * their pieces the ids that the network knows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/json_tree.h"
#include "text/sentencepiece_parts.h"

static bool is_language(const char *piece, size_t length)
{
    return length > 4 && memcmp(piece, ">>", 2) == 0 && memcmp(piece + length - 2, "<<", 2) == 0;
}

static unsigned flags_of(const char *piece, size_t length)
{
    if (strcmp(piece, "<unk>") == 0)
        return PIECE_UNKNOWN;
    const bool mark = strcmp(piece, "</s>") == 0 || strcmp(piece, "<pad>") == 0 ||
                      strcmp(piece, "<s>") == 0 || is_language(piece, length);
    return mark ? PIECE_SPECIAL : 0;
}

static int32_t find(const vocabulary *v, const char *piece)
{
    return vocab_find(v, piece, strlen(piece));
}

/* Returns what is wrong, or NULL. */
static const char *read_ids(sentencepiece *sp, const json_value *root)
{
    if (json_tree_type_of(root) != JSON_TREE_OBJECT)
        return "not an object of pieces and ids";
    for (size_t n = 0; n < json_tree_count(root); n++) {
        size_t length;
        int64_t id;
        const char *const piece = json_tree_key(root, n, &length);
        if (!json_tree_get_integer(json_tree_element(root, n), &id) || id < 0 ||
            id >= VOCABULARY_MAX)
            return "an id is not a number from 0 to 4194303";
        if (vocab_piece(sp->own_ids, (int32_t)id, NULL) != NULL)
            return "two pieces have the same id";
        if (!vocab_add(sp->own_ids, (int32_t)id, piece, length, 0, flags_of(piece, length)))
            return "out of memory";
    }
    sp->own_unknown_id = find(sp->own_ids, "<unk>");
    sp->own_end_id = find(sp->own_ids, "</s>");
    sp->own_pad_id = find(sp->own_ids, "<pad>");
    sp->adds_begin = false;
    sp->adds_end = sp->own_end_id >= 0;
    return sp->own_unknown_id < 0 ? "there is no piece <unk>" : NULL;
}

static mha_status read_vocabulary(sentencepiece *sp, const char *path, char *message,
                                  size_t message_size)
{
    json_tree *tree;
    const mha_status status = json_tree_read_file(&tree, path, message, message_size);
    if (status != MHA_OK)
        return status;
    sp->own_ids = vocab_create();
    const char *const wrong =
        sp->own_ids == NULL ? "out of memory" : read_ids(sp, json_tree_root(tree));
    json_tree_free(tree);
    if (wrong == NULL)
        return MHA_OK;
    if (message != NULL && message_size > 0)
        snprintf(message, message_size, "%s: %s", path, wrong);
    return strcmp(wrong, "out of memory") == 0 ? MHA_ERR_MEMORY : MHA_ERR_FORMAT;
}

mha_status sentencepiece_find_marian(sentencepiece *sp, const char *path, char *message,
                                     size_t message_size)
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash == NULL ? path : slash + 1;
    const bool is_target = strcmp(name, "target.spm") == 0;
    if (!is_target && strcmp(name, "source.spm") != 0)
        return MHA_OK;
    char *const own = sentencepiece_beside(path, "target_vocab.json");
    char *const shared = sentencepiece_beside(path, "vocab.json");
    mha_status status = MHA_ERR_MEMORY;
    if (own != NULL && shared != NULL) {
        const char *const chosen = is_target && access(own, F_OK) == 0 ? own : shared;
        status = MHA_OK;
        if (access(chosen, F_OK) == 0)
            status = read_vocabulary(sp, chosen, message, message_size);
    }
    free(own);
    free(shared);
    return status;
}
