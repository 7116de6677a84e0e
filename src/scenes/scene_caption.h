/* SPDX-License-Identifier: MIT */
/*
 * What there is to say about a scene:
 *
 *      a small red square
 *      a small red square above a blue circle
 *      a small red square above a blue circle and to the left of a large white bar
 *      un petit carré rouge au-dessus d'un cercle bleu et à gauche d'une grande barre blanche
 *
 * The first shape, and how it lies to each other one. Both languages share one list of words, which
 * begins with a mark for each language.
 */
#ifndef SCENES_SCENE_CAPTION_H
#define SCENES_SCENE_CAPTION_H

#include "scenes/scene.h"

typedef enum scene_language { SCENE_ENGLISH, SCENE_FRENCH, SCENE_LANGUAGES } scene_language;

/* "english", "french". Returns false if there is no such language. */
const char *scene_language_name(scene_language language);
bool scene_language_find(const char *name, scene_language *language);

enum { CAPTION_WORDS_MAX = 21, CAPTION_TEXT_MAX = 256 };

typedef struct scene_caption {
    int count;
    int words[CAPTION_WORDS_MAX];  /* numbers in the list of words */
    int shapes[CAPTION_WORDS_MAX]; /* the shape whose size, colour or kind a word says; -1: none */
} scene_caption;

void scene_caption_make(const scene *s, scene_language language, scene_caption *caption);

/* The list of words. Word number `language` is the mark of that language. NULL: there is no such
 * word. */
int caption_word_count(void);
const char *caption_word(int number);

/* The words as text: "d'" is joined to the next word. Numbers of no word become "?". */
void caption_text(const int *words, int count, char text[CAPTION_TEXT_MAX]);

#endif
