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
#define ENGLISH(base, past)  \
    {                        \
        base, base "s", past \
    }
/* Events have no imperfect, states have no participle. */
#define EVENT \
    {         \
        NULL  \
    }
#define STATE EVENT

/* clang-format off */
const lexicon_verb lexicon_verbs[] = {
    {"sleep", ENGLISH("sleep", "slept"), NULL, {"dors", "dors", "dort", "dormons", "dorment"},
     FUTURE("dormir"), EVENT, FORMS("dormi"), WITH_AVOIR, FRAME_ALONE, P | A, 0},
    {"run", ENGLISH("run", "ran"), NULL, {"cours", "cours", "court", "courons", "courent"},
     FUTURE("courr"), EVENT, FORMS("couru"), WITH_AVOIR, FRAME_ALONE, P | A, 0},
    {"run away", ENGLISH("run", "ran"), "away",
     {"enfuis", "enfuis", "enfuit", "enfuyons", "enfuient"},
     FUTURE("enfuir"), EVENT, FORMS("enfui"), REFLEXIVE, FRAME_ALONE, P | A, 0},
    {"jump", ENGLISH("jump", "jumped"), NULL, FIRST("saut"),
     FUTURE("sauter"), EVENT, FORMS("sauté"), WITH_AVOIR, FRAME_ALONE, P | A, 0},
    {"fall", ENGLISH("fall", "fell"), NULL, FIRST("tomb"),
     FUTURE("tomber"), EVENT, FORMS("tombé"), WITH_ETRE, FRAME_ALONE, P | A | F | O, 0},
    {"arrive", ENGLISH("arrive", "arrived"), NULL, FIRST("arriv"),
     FUTURE("arriver"), EVENT, FORMS("arrivé"), WITH_ETRE, FRAME_ALONE, P | A | V, 0},
    {"sing", ENGLISH("sing", "sang"), NULL, FIRST("chant"),
     FUTURE("chanter"), EVENT, FORMS("chanté"), WITH_AVOIR, FRAME_ALONE, P, 0},
    {"wake up", ENGLISH("wake", "woke"), "up", FIRST("réveill"),
     FUTURE("réveiller"), EVENT, FORMS("réveillé"), REFLEXIVE, FRAME_ALONE, P | A, 0},
    {"go to", {"go", "goes", "went"}, "to", {"vais", "vas", "va", "allons", "vont"},
     FUTURE("ir"), EVENT, FORMS("allé"), WITH_ETRE, FRAME_A, P | A | V, L},
    {"come from", ENGLISH("come", "came"), "from",
     {"viens", "viens", "vient", "venons", "viennent"},
     FUTURE("viendr"), EVENT, FORMS("venu"), WITH_ETRE, FRAME_DE, P | A | V, L},
    {"talk to", ENGLISH("talk", "talked"), "to", FIRST("parl"),
     FUTURE("parler"), EVENT, FORMS("parlé"), WITH_AVOIR, FRAME_A, P, P | A},
    {"talk about", ENGLISH("talk", "talked"), "about", FIRST("parl"),
     FUTURE("parler"), EVENT, FORMS("parlé"), WITH_AVOIR, FRAME_DE, P, KIND_ANY},
    {"think about", {"think", "thinks", "thought"}, "about", FIRST("pens"),
     FUTURE("penser"), EVENT, FORMS("pensé"), WITH_AVOIR, FRAME_A, P, KIND_ANY},
    {"see", ENGLISH("see", "saw"), NULL, {"vois", "vois", "voit", "voyons", "voient"},
     FUTURE("verr"), EVENT, FORMS("vu"), WITH_AVOIR, FRAME_DIRECT, P | A, KIND_ANY},
    {"look at", ENGLISH("look", "looked"), "at", FIRST("regard"),
     FUTURE("regarder"), EVENT, FORMS("regardé"), WITH_AVOIR, FRAME_DIRECT, P | A, KIND_ANY},
    {"look for", ENGLISH("look", "looked"), "for", FIRST("cherch"),
     FUTURE("chercher"), EVENT, FORMS("cherché"), WITH_AVOIR, FRAME_DIRECT, P | A, KIND_ANY},
    {"eat", ENGLISH("eat", "ate"), NULL, {"mange", "manges", "mange", "mangeons", "mangent"},
     FUTURE("manger"), EVENT, FORMS("mangé"), WITH_AVOIR, FRAME_DIRECT, P | A, F},
    {"take", ENGLISH("take", "took"), NULL, {"prends", "prends", "prend", "prenons", "prennent"},
     FUTURE("prendr"), EVENT, {"pris", "prise", "pris", "prises"}, WITH_AVOIR,
     FRAME_DIRECT, P, F | O | T},
    {"write", ENGLISH("write", "wrote"), NULL, {"écris", "écris", "écrit", "écrivons", "écrivent"},
     FUTURE("écrir"), EVENT, FORMS("écrit"), WITH_AVOIR, FRAME_DIRECT, P, KIND_WRITTEN},
    {"listen to", ENGLISH("listen", "listened"), "to", FIRST("écout"),
     FUTURE("écouter"), EVENT, FORMS("écouté"), WITH_AVOIR, FRAME_DIRECT, P | A, P | A | T},
    {"wait for", ENGLISH("wait", "waited"), "for",
     {"attends", "attends", "attend", "attendons", "attendent"},
     FUTURE("attendr"), EVENT, FORMS("attendu"), WITH_AVOIR, FRAME_DIRECT, P, P | V},
    {"buy", ENGLISH("buy", "bought"), NULL, {"achète", "achètes", "achète", "achetons", "achètent"},
     FUTURE("achèter"), EVENT, FORMS("acheté"), WITH_AVOIR, FRAME_DIRECT, P, F | O | T | V},
    {"open", ENGLISH("open", "opened"), NULL, FIRST("ouvr"),
     FUTURE("ouvrir"), EVENT, FORMS("ouvert"), WITH_AVOIR, FRAME_DIRECT, P, KIND_OPENS},
    {"follow", ENGLISH("follow", "followed"), NULL, {"suis", "suis", "suit", "suivons", "suivent"},
     FUTURE("suivr"), EVENT, FORMS("suivi"), WITH_AVOIR, FRAME_DIRECT, P | A, P | A | V},
    {"give", ENGLISH("give", "gave"), NULL, FIRST("donn"),
     FUTURE("donner"), EVENT, FORMS("donné"), WITH_AVOIR, FRAME_GIVE, P, F | O | T},
    {"love", ENGLISH("love", "loved"), NULL, FIRST("aim"),
     FUTURE("aimer"), IMPERFECT("aim"), STATE, WITH_AVOIR,
     FRAME_DIRECT, P | A, P | A | F | L | T | N},
    {"want", ENGLISH("want", "wanted"), NULL, {"veux", "veux", "veut", "voulons", "veulent"},
     FUTURE("voudr"), IMPERFECT("voul"), STATE, WITH_AVOIR, FRAME_DIRECT, P, F | O | T | V},
    {"know", ENGLISH("know", "knew"), NULL,
     {"connais", "connais", "connaît", "connaissons", "connaissent"},
     FUTURE("connaîtr"), IMPERFECT("connaiss"), STATE, WITH_AVOIR, FRAME_DIRECT, P | A, P | L},
    {"have", {"have", "has", "had"}, NULL, {"ai", "as", "a", "avons", "ont"},
     FUTURE("aur"), IMPERFECT("av"), STATE, WITH_AVOIR, FRAME_DIRECT, P, A | F | O | T | V},
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
