/* SPDX-License-Identifier: MIT */
/* The verbs with all their forms, and the forms of être and avoir. */
#include "corpus/lexicon_parts.h"

#include <stddef.h>

/* Forms of a stem for je, tu, il, nous, ils. FIRST is the present of the -er group. */
#define FIRST(stem)                                           \
    {                                                         \
        stem "e", stem "es", stem "e", stem "ons", stem "ent" \
    }
#define FUTURE(stem)                                           \
    {                                                          \
        stem "ai", stem "as", stem "a", stem "ons", stem "ont" \
    }
#define IMPERFECT(stem)                                               \
    {                                                                 \
        stem "ais", stem "ais", stem "ait", stem "ions", stem "aient" \
    }
#define FORMS(stem)                         \
    {                                       \
        stem, stem "e", stem "s", stem "es" \
    }
#define ENGLISH(base, past, ing)  \
    {                             \
        base, base "s", past, ing \
    }
/* Verbs without the progressive. Events of this kind have no imperfect, states no participle. */
#define NO_ING NULL
#define NONE \
    {        \
        NULL \
    }

/* clang-format off */
const lexicon_verb lexicon_verbs[] = {
    {"sleep", ENGLISH("sleep", "slept", "sleeping"), NULL,
     {"dors", "dors", "dort", "dormons", "dorment"},
     FUTURE("dormir"), IMPERFECT("dorm"), FORMS("dormi"), WITH_AVOIR, FRAME_ALONE, P | A, 0},
    {"run", ENGLISH("run", "ran", "running"), NULL,
     {"cours", "cours", "court", "courons", "courent"},
     FUTURE("courr"), IMPERFECT("cour"), FORMS("couru"), WITH_AVOIR, FRAME_ALONE, P | A, 0},
    {"run away", ENGLISH("run", "ran", "running"), "away",
     {"enfuis", "enfuis", "enfuit", "enfuyons", "enfuient"},
     FUTURE("enfuir"), IMPERFECT("enfuy"), FORMS("enfui"), REFLEXIVE, FRAME_ALONE, P | A, 0},
    {"jump", ENGLISH("jump", "jumped", "jumping"), NULL, FIRST("saut"),
     FUTURE("sauter"), IMPERFECT("saut"), FORMS("sauté"), WITH_AVOIR, FRAME_ALONE, P | A, 0},
    {"fall", ENGLISH("fall", "fell", "falling"), NULL, FIRST("tomb"),
     FUTURE("tomber"), IMPERFECT("tomb"), FORMS("tombé"), WITH_ETRE, FRAME_ALONE, P | A | F | O, 0},
    {"arrive", ENGLISH("arrive", "arrived", "arriving"), NULL, FIRST("arriv"),
     FUTURE("arriver"), IMPERFECT("arriv"), FORMS("arrivé"), WITH_ETRE, FRAME_ALONE, P | A | V, 0},
    {"sing", ENGLISH("sing", "sang", "singing"), NULL, FIRST("chant"),
     FUTURE("chanter"), IMPERFECT("chant"), FORMS("chanté"), WITH_AVOIR, FRAME_ALONE, P, 0},
    {"wake up", ENGLISH("wake", "woke", "waking"), "up", FIRST("réveill"),
     FUTURE("réveiller"), IMPERFECT("réveill"), FORMS("réveillé"), REFLEXIVE,
     FRAME_ALONE, P | A, 0},
    {"go to", {"go", "goes", "went", "going"}, "to", {"vais", "vas", "va", "allons", "vont"},
     FUTURE("ir"), IMPERFECT("all"), FORMS("allé"), WITH_ETRE, FRAME_A, P | A | V, L},
    {"come from", ENGLISH("come", "came", "coming"), "from",
     {"viens", "viens", "vient", "venons", "viennent"},
     FUTURE("viendr"), IMPERFECT("ven"), FORMS("venu"), WITH_ETRE, FRAME_DE, P | A | V, L},
    {"talk to", ENGLISH("talk", "talked", "talking"), "to", FIRST("parl"),
     FUTURE("parler"), IMPERFECT("parl"), FORMS("parlé"), WITH_AVOIR, FRAME_TO, P, P | A},
    {"talk about", ENGLISH("talk", "talked", "talking"), "about", FIRST("parl"),
     FUTURE("parler"), IMPERFECT("parl"), FORMS("parlé"), WITH_AVOIR, FRAME_DE, P, KIND_ANY},
    {"think about", {"think", "thinks", "thought", "thinking"}, "about", FIRST("pens"),
     FUTURE("penser"), IMPERFECT("pens"), FORMS("pensé"), WITH_AVOIR, FRAME_A, P, KIND_ANY},
    {"see", ENGLISH("see", "saw", NO_ING), NULL, {"vois", "vois", "voit", "voyons", "voient"},
     FUTURE("verr"), NONE, FORMS("vu"), WITH_AVOIR, FRAME_DIRECT, P | A, KIND_ANY},
    {"look at", ENGLISH("look", "looked", "looking"), "at", FIRST("regard"),
     FUTURE("regarder"), IMPERFECT("regard"), FORMS("regardé"), WITH_AVOIR,
     FRAME_DIRECT, P | A, KIND_ANY},
    {"look for", ENGLISH("look", "looked", "looking"), "for", FIRST("cherch"),
     FUTURE("chercher"), IMPERFECT("cherch"), FORMS("cherché"), WITH_AVOIR,
     FRAME_DIRECT, P | A, KIND_ANY},
    {"eat", ENGLISH("eat", "ate", "eating"), NULL,
     {"mange", "manges", "mange", "mangeons", "mangent"},
     FUTURE("manger"),
     {"mangeais", "mangeais", "mangeait", "mangions", "mangeaient"}, FORMS("mangé"), WITH_AVOIR,
     FRAME_DIRECT, P | A, F},
    {"take", ENGLISH("take", "took", "taking"), NULL,
     {"prends", "prends", "prend", "prenons", "prennent"},
     FUTURE("prendr"), IMPERFECT("pren"), {"pris", "prise", "pris", "prises"}, WITH_AVOIR,
     FRAME_DIRECT, P, F | O | T},
    {"write", ENGLISH("write", "wrote", "writing"), NULL,
     {"écris", "écris", "écrit", "écrivons", "écrivent"},
     FUTURE("écrir"), IMPERFECT("écriv"), FORMS("écrit"), WITH_AVOIR,
     FRAME_DIRECT, P, KIND_WRITTEN},
    {"listen to", ENGLISH("listen", "listened", "listening"), "to", FIRST("écout"),
     FUTURE("écouter"), IMPERFECT("écout"), FORMS("écouté"), WITH_AVOIR,
     FRAME_DIRECT, P | A, P | A | T},
    {"wait for", ENGLISH("wait", "waited", "waiting"), "for",
     {"attends", "attends", "attend", "attendons", "attendent"},
     FUTURE("attendr"), IMPERFECT("attend"), FORMS("attendu"), WITH_AVOIR, FRAME_DIRECT, P, P | V},
    {"buy", ENGLISH("buy", "bought", "buying"), NULL,
     {"achète", "achètes", "achète", "achetons", "achètent"},
     FUTURE("achèter"), IMPERFECT("achet"), FORMS("acheté"), WITH_AVOIR,
     FRAME_DIRECT, P, F | O | T | V},
    {"open", ENGLISH("open", "opened", "opening"), NULL, FIRST("ouvr"),
     FUTURE("ouvrir"), IMPERFECT("ouvr"), FORMS("ouvert"), WITH_AVOIR, FRAME_DIRECT, P, KIND_OPENS},
    {"follow", ENGLISH("follow", "followed", "following"), NULL,
     {"suis", "suis", "suit", "suivons", "suivent"},
     FUTURE("suivr"), IMPERFECT("suiv"), FORMS("suivi"), WITH_AVOIR,
     FRAME_DIRECT, P | A, P | A | V},
    {"give", ENGLISH("give", "gave", "giving"), NULL, FIRST("donn"),
     FUTURE("donner"), IMPERFECT("donn"), FORMS("donné"), WITH_AVOIR, FRAME_GIVE, P, F | O | T},
    {"show", ENGLISH("show", "showed", "showing"), NULL, FIRST("montr"),
     FUTURE("montrer"), IMPERFECT("montr"), FORMS("montré"), WITH_AVOIR, FRAME_GIVE,
     P, A | F | O | T | V},
    {"bring", {"bring", "brings", "brought", "bringing"}, NULL, FIRST("apport"),
     FUTURE("apporter"), IMPERFECT("apport"), FORMS("apporté"), WITH_AVOIR, FRAME_GIVE,
     P, F | O | T},
    {"send", {"send", "sends", "sent", "sending"}, NULL,
     {"envoie", "envoies", "envoie", "envoyons", "envoient"},
     FUTURE("enverr"), IMPERFECT("envoy"), FORMS("envoyé"), WITH_AVOIR, FRAME_GIVE, P, O | T},
    {"love", ENGLISH("love", "loved", NO_ING), NULL, FIRST("aim"),
     FUTURE("aimer"), IMPERFECT("aim"), NONE, WITH_AVOIR,
     FRAME_DIRECT, P | A, P | A | F | L | T | N},
    {"want", ENGLISH("want", "wanted", NO_ING), NULL,
     {"veux", "veux", "veut", "voulons", "veulent"},
     FUTURE("voudr"), IMPERFECT("voul"), NONE, WITH_AVOIR, FRAME_DIRECT, P, F | O | T | V},
    {"know", ENGLISH("know", "knew", NO_ING), NULL,
     {"connais", "connais", "connaît", "connaissons", "connaissent"},
     FUTURE("connaîtr"), IMPERFECT("connaiss"), NONE, WITH_AVOIR, FRAME_DIRECT, P | A, P | L},
    {"have", {"have", "has", "had", NO_ING}, NULL, {"ai", "as", "a", "avons", "ont"},
     FUTURE("aur"), IMPERFECT("av"), NONE, WITH_AVOIR, FRAME_DIRECT, P, A | F | O | T | V},
};
/* clang-format on */
const int lexicon_verb_count = sizeof lexicon_verbs / sizeof lexicon_verbs[0];

const char *const lexicon_avoir[PERSON_COUNT] = {"ai", "as", "a", "avons", "ont"};

const lexicon_copula lexicon_be = {
    .english_present = {"am", "are", "is", "are", "are"},
    .english_past = {"was", "were", "was", "were", "were"},
    .present = {"suis", "es", "est", "sommes", "sont"},
    .imperfect = {"étais", "étais", "était", "étions", "étaient"},
    .future = FUTURE("ser"),
};
