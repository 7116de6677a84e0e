/* SPDX-License-Identifier: MIT */
/* WordPiece (wordpiece.h): pieces are found in a trie. The length of a word is limited, and with it
 * the time for a word that repeats the beginning of a long piece. */
#include "text/wordpiece.h"

bool wordpiece_create(wordpiece *model, const vocabulary *v, const char *prefix)
{
    if (!piece_trie_create(&model->trie, v, (piece_filter){.lacks = PIECE_ADDED}))
        return false;
    model->inside = PIECE_TRIE_ROOT;
    for (; *prefix && model->inside >= 0; prefix++)
        model->inside = piece_trie_child(&model->trie, model->inside, (unsigned char)*prefix);
    return true;
}

void wordpiece_free(wordpiece *model)
{
    piece_trie_free(&model->trie);
}

static size_t count_characters(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t n = 0; n < length; n++)
        count += ((unsigned char)text[n] & 0xc0) != 0x80;
    return count;
}

/* The longest piece that continues a node of the trie, and its length in the text; -1 if there is
 * none. */
static int32_t longest_piece(const piece_trie *trie, int32_t node, const char *text, size_t length,
                             size_t *piece_length)
{
    int32_t found = -1;
    for (size_t n = 0; n < length && node >= 0; n++) {
        node = piece_trie_child(trie, node, (unsigned char)text[n]);
        if (node >= 0 && trie->ids[node] >= 0) {
            found = trie->ids[node];
            *piece_length = n + 1;
        }
    }
    return found;
}

void wordpiece_encode(const wordpiece *model, const char *word, size_t length, token_list *list)
{
    const ptrdiff_t before = list->count;
    bool known =
        length <= 4 * model->longest_word && count_characters(word, length) <= model->longest_word;
    for (size_t at = 0, piece = 0; known && at < length; at += piece) {
        const int32_t id = longest_piece(&model->trie, at ? model->inside : PIECE_TRIE_ROOT,
                                         word + at, length - at, &piece);
        known = id >= 0;
        if (known)
            token_list_add(list, id, at ? MHA_TOKEN_CONTINUES : 0, at, at + piece);
    }
    if (!known) {
        list->count = before;
        token_list_add(list, model->unknown, MHA_TOKEN_UNKNOWN, 0, length);
    }
}
