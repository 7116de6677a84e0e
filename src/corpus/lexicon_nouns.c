/* SPDX-License-Identifier: MIT */
/* The nouns: English and French forms, gender and kinds. */
#include "corpus/lexicon_parts.h"

#define ROOM (KIND_PLACE | KIND_INSIDE)
#define SURFACE KIND_SURFACE
#define SHELTER KIND_SHELTER
#define OPENS KIND_OPENS
#define WRITTEN KIND_WRITTEN

/* Nouns that are regular in both languages: M masculine, W feminine in French. */
#define M(english, french, kinds)                                  \
    {                                                              \
        {english, english "s"}, {french, french "s"}, false, kinds \
    }
#define W(english, french, kinds)                                 \
    {                                                             \
        {english, english "s"}, {french, french "s"}, true, kinds \
    }

const lexicon_noun lexicon_nouns[] = {
    M("boy", "garçon", P),
    W("girl", "fille", P),
    {{"man", "men"}, {"homme", "hommes"}, false, P},
    {{"woman", "women"}, {"femme", "femmes"}, true, P},
    {{"child", "children"}, {"enfant", "enfants"}, false, P},
    M("king", "roi", P),
    W("queen", "reine", P),
    W("sister", "sœur", P),
    M("brother", "frère", P),
    W("mother", "mère", P),
    M("uncle", "oncle", P),
    W("aunt", "tante", P),
    M("friend", "ami", P),
    M("teacher", "professeur", P),
    M("doctor", "médecin", P),
    M("neighbor", "voisin", P),
    M("farmer", "fermier", P),
    {{"hero", "heroes"}, {"héros", "héros"}, false, P},
    W("nurse", "infirmière", P),
    {{"actress", "actresses"}, {"actrice", "actrices"}, true, P},
    {{"witch", "witches"}, {"sorcière", "sorcières"}, true, P},

    M("cat", "chat", A),
    M("dog", "chien", A),
    {{"fox", "foxes"}, {"renard", "renards"}, false, A},
    {{"horse", "horses"}, {"cheval", "chevaux"}, false, A},
    {{"bird", "birds"}, {"oiseau", "oiseaux"}, false, A},
    {{"mouse", "mice"}, {"souris", "souris"}, true, A},
    W("cow", "vache", A),
    M("rabbit", "lapin", A),
    {{"owl", "owls"}, {"hibou", "hiboux"}, false, A},
    M("hedgehog", "hérisson", A),
    W("bee", "abeille", A),
    M("donkey", "âne", A),
    W("turtle", "tortue", A),
    W("goat", "chèvre", A),
    {{"wolf", "wolves"}, {"loup", "loups"}, false, A},
    M("elephant", "éléphant", A),
    {{"bear", "bears"}, {"ours", "ours"}, false, A},
    W("frog", "grenouille", A),

    W("apple", "pomme", F),
    {{"cake", "cakes"}, {"gâteau", "gâteaux"}, false, F},
    M("egg", "œuf", F),
    W("pear", "poire", F),
    {{"cherry", "cherries"}, {"cerise", "cerises"}, true, F},
    M("onion", "oignon", F),
    M("bean", "haricot", F),

    W("table", "table", O | SURFACE | SHELTER),
    W("chair", "chaise", O | SURFACE | SHELTER),
    W("key", "clé", O),
    {{"hat", "hats"}, {"chapeau", "chapeaux"}, false, O},
    {{"knife", "knives"}, {"couteau", "couteaux"}, false, O},
    W("clock", "horloge", O),
    M("tool", "outil", O),
    M("bag", "sac", O | OPENS),
    {{"box", "boxes"}, {"boîte", "boîtes"}, true, O | OPENS | SURFACE},
    W("bottle", "bouteille", O | OPENS),
    W("lamp", "lampe", O),
    {{"coat", "coats"}, {"manteau", "manteaux"}, false, O},
    {{"dress", "dresses"}, {"robe", "robes"}, true, O},
    {{"jewel", "jewels"}, {"bijou", "bijoux"}, false, O},
    M("toy", "jouet", O),
    W("axe", "hache", O),
    W("guitar", "guitare", O),
    {{"gift", "gifts"}, {"cadeau", "cadeaux"}, false, O | OPENS},
    W("ladder", "échelle", O | SURFACE | SHELTER),
    M("umbrella", "parapluie", O | OPENS | SHELTER),
    M("computer", "ordinateur", O),

    M("book", "livre", T | OPENS | WRITTEN),
    W("letter", "lettre", T | OPENS | WRITTEN),
    {{"newspaper", "newspapers"}, {"journal", "journaux"}, false, T},
    {{"story", "stories"}, {"histoire", "histoires"}, true, T | WRITTEN},
    M("poem", "poème", T | WRITTEN),
    W("song", "chanson", T | WRITTEN),

    W("car", "voiture", V | OPENS),
    {{"boat", "boats"}, {"bateau", "bateaux"}, false, V | SURFACE},
    M("bicycle", "vélo", V),
    M("train", "train", V),
    M("plane", "avion", V),

    W("house", "maison", ROOM),
    M("garden", "jardin", ROOM),
    W("school", "école", ROOM),
    M("park", "parc", ROOM),
    W("forest", "forêt", ROOM),
    {{"church", "churches"}, {"église", "églises"}, true, ROOM},
    M("hotel", "hôtel", ROOM),
    M("market", "marché", L),
    {{"beach", "beaches"}, {"plage", "plages"}, true, L | SURFACE},
    W("street", "rue", ROOM),
    W("kitchen", "cuisine", ROOM),
    {{"hospital", "hospitals"}, {"hôpital", "hôpitaux"}, false, ROOM},
    {{"library", "libraries"}, {"bibliothèque", "bibliothèques"}, true, ROOM},
    {{"castle", "castles"}, {"château", "châteaux"}, false, ROOM},
    W("island", "île", L | SURFACE),
    M("village", "village", ROOM),
    M("bridge", "pont", L | SURFACE | SHELTER),
    M("museum", "musée", ROOM),

    M("tree", "arbre", N | SHELTER),
    W("flower", "fleur", N),
    W("river", "rivière", N),
    W("mountain", "montagne", N),
    W("star", "étoile", N),
    M("lake", "lac", N),
    W("stone", "pierre", N | SURFACE),
};
const int lexicon_noun_count = sizeof lexicon_nouns / sizeof lexicon_nouns[0];
