/* SPDX-License-Identifier: MIT */
/* Captions of scenes in English and French, word by word. */
#include "scenes/scene_caption.h"

#include <stdio.h>
#include <string.h>

/* The numbers of words are part of every trained model: the order must stay. */
static const char *const words[] = {
    "<english>", "<french>",   "a",     "and",    "to",     "the",      "left",   "right",
    "of",        "above",      "below", "small",  "large",  "red",      "green",  "blue",
    "yellow",    "purple",     "white", "circle", "square", "triangle", "cross",  "ring",
    "bar",       "un",         "une",   "et",     "d'",     "à",        "gauche", "droite",
    "au-dessus", "au-dessous", "petit", "petite", "grand",  "grande",   "rouge",  "vert",
    "verte",     "bleu",       "bleue", "jaune",  "violet", "violette", "blanc",  "blanche",
    "cercle",    "carré",      "croix", "anneau", "barre",
};
enum { WORDS = sizeof words / sizeof words[0] };

const char *scene_language_name(scene_language language)
{
    static const char *const names[SCENE_LANGUAGES] = {"english", "french"};
    return names[language];
}

bool scene_language_find(const char *name, scene_language *language)
{
    for (int n = 0; n < SCENE_LANGUAGES; n++)
        if (strcmp(name, scene_language_name((scene_language)n)) == 0) {
            *language = (scene_language)n;
            return true;
        }
    return false;
}

int caption_word_count(void)
{
    return WORDS;
}

const char *caption_word(int number)
{
    return number >= 0 && number < WORDS ? words[number] : NULL;
}

/* ---------------------------------------------------------------- grammar ----- */

/* Masculine and feminine forms. */
enum { MASCULINE, FEMININE, GENDERS };
typedef const char *forms[GENDERS];

static const struct {
    const char *word;
    int gender;
} french_kinds[SCENE_KINDS] = {
    [SCENE_CIRCLE] = {"cercle", MASCULINE},     [SCENE_SQUARE] = {"carré", MASCULINE},
    [SCENE_TRIANGLE] = {"triangle", MASCULINE}, [SCENE_CROSS] = {"croix", FEMININE},
    [SCENE_RING] = {"anneau", MASCULINE},       [SCENE_BAR] = {"barre", FEMININE},
};
static const forms french_colors[SCENE_COLORS] = {
    [SCENE_RED] = {"rouge", "rouge"},        [SCENE_GREEN] = {"vert", "verte"},
    [SCENE_BLUE] = {"bleu", "bleue"},        [SCENE_YELLOW] = {"jaune", "jaune"},
    [SCENE_PURPLE] = {"violet", "violette"}, [SCENE_WHITE] = {"blanc", "blanche"},
};
static const forms french_sizes[SCENE_SIZES] = {
    [SCENE_SMALL] = {"petit", "petite"}, [SCENE_LARGE] = {"grand", "grande"}};
static const forms french_article = {"un", "une"};

enum { RELATION_WORDS = 4 };
static const char *const relations[SCENE_LANGUAGES][SCENE_RELATIONS][RELATION_WORDS] = {
    {{"above"}, {"below"}, {"to", "the", "left", "of"}, {"to", "the", "right", "of"}},
    {{"au-dessus", "d'"}, {"au-dessous", "d'"}, {"à", "gauche", "d'"}, {"à", "droite", "d'"}},
};

/* Every word of the tables above is in the list, which a test makes sure of. */
static void say(scene_caption *caption, const char *word, int shape)
{
    int number = 0;
    while (number < WORDS && strcmp(words[number], word) != 0)
        number++;
    caption->words[caption->count] = number;
    caption->shapes[caption->count++] = shape;
}

static void say_english(scene_caption *caption, const scene_shape *shape, int number)
{
    say(caption, "a", -1);
    if (shape->size != SCENE_MIDDLE)
        say(caption, scene_size_name(shape->size), number);
    say(caption, scene_color_name(shape->color), number);
    say(caption, scene_kind_name(shape->kind), number);
}

/* The size comes before the noun, the colour after it. */
static void say_french(scene_caption *caption, const scene_shape *shape, int number)
{
    const int gender = french_kinds[shape->kind].gender;
    say(caption, french_article[gender], -1);
    if (shape->size != SCENE_MIDDLE)
        say(caption, french_sizes[shape->size][gender], number);
    say(caption, french_kinds[shape->kind].word, number);
    say(caption, french_colors[shape->color][gender], number);
}

static void say_shape(scene_caption *caption, scene_language language, const scene *s, int number)
{
    if (language == SCENE_ENGLISH)
        say_english(caption, &s->shapes[number], number);
    else
        say_french(caption, &s->shapes[number], number);
}

static void say_relation(scene_caption *caption, scene_language language, scene_relation relation)
{
    const char *const *const said = relations[language][relation];
    for (int n = 0; n < RELATION_WORDS && said[n] != NULL; n++)
        say(caption, said[n], -1);
}

void scene_caption_make(const scene *s, scene_language language, scene_caption *caption)
{
    caption->count = 0;
    for (int n = 0; n < s->count; n++) {
        if (n > 1)
            say(caption, language == SCENE_ENGLISH ? "and" : "et", -1);
        if (n > 0)
            say_relation(caption, language, scene_relation_of(s, 0, n));
        say_shape(caption, language, s, n);
    }
}

void caption_text(const int *numbers, int count, char text[CAPTION_TEXT_MAX])
{
    size_t used = 0;
    bool joined = true;
    text[0] = '\0';
    for (int n = 0; n < count && used < CAPTION_TEXT_MAX; n++) {
        const char *const word = caption_word(numbers[n]);
        used += (size_t)snprintf(text + used, CAPTION_TEXT_MAX - used, "%s%s", joined ? "" : " ",
                                 word != NULL ? word : "?");
        joined = word != NULL && word[strlen(word) - 1] == '\'';
    }
}
