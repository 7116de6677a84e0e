/* SPDX-License-Identifier: MIT */
/*
 * Tests of the grammar with handwritten pairs, one test per construction of the language: English
 * text is parsed and its French translation compared. Also alignment and roles of two sentences,
 * and sentences that must be refused.
 */
#include "support/test.h"

#include <string.h>

#include "corpus/corpus.h"

typedef struct example {
    const char *english, *french;
} example;

static void check_examples(const example *list, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        corpus_pair pair;
        char message[CORPUS_MESSAGE_MAX], french[CORPUS_TEXT_MAX];
        if (!CHECK(corpus_translate(list[n].english, &pair, NULL, message), "%s: %s",
                   list[n].english, message))
            continue;
        corpus_detokenise(CORPUS_FRENCH, &pair.side[CORPUS_FRENCH], french);
        CHECK(strcmp(french, list[n].french) == 0, "%s\n    gives  %s\n    wanted %s",
              list[n].english, french, list[n].french);
    }
}
#define CHECK_EXAMPLES(list) check_examples(list, sizeof(list) / sizeof(list)[0])

static void the_two_sentences(void)
{
    static const example list[] = {
        {"The cat that I saw yesterday ran away", "le chat que j'ai vu hier s'est enfui"},
        {"The quick brown fox jumps", "le renard brun rapide saute"},
    };
    CHECK_EXAMPLES(list);
}

static void articles_agree_and_elide(void)
{
    static const example list[] = {
        {"the cat sleeps", "le chat dort"},
        {"the girl sleeps", "la fille dort"},
        {"the cats sleep", "les chats dorment"},
        {"the bird sleeps", "l'oiseau dort"},
        {"the bee sleeps", "l'abeille dort"},
        {"the donkey sleeps", "l'âne dort"},
        {"the man sleeps", "l'homme dort"},
        {"the owl sleeps", "le hibou dort"},
        {"the hero sleeps", "le héros dort"},
        {"the hedgehogs sleep", "les hérissons dorment"},
        {"an owl sleeps", "un hibou dort"},
        {"a cow sleeps", "une vache dort"},
        {"some horses sleep", "des chevaux dorment"},
        {"the axe falls", "la hache tombe"},
        {"the clock falls", "l'horloge tombe"},
        {"the egg falls", "l'œuf tombe"},
    };
    CHECK_EXAMPLES(list);
}

static void determiners_agree(void)
{
    static const example list[] = {
        {"this dog runs", "ce chien court"},
        {"this bird runs", "cet oiseau court"},
        {"this man runs", "cet homme court"},
        {"this hero runs", "ce héros court"},
        {"this bee runs", "cette abeille court"},
        {"these mice run", "ces souris courent"},
        {"my sister sings", "ma sœur chante"},
        {"my aunt sings", "ma tante chante"},
        {"my actress sings", "mon actrice chante"},
        {"my beautiful actress sings", "ma belle actrice chante"},
        {"his mother sings", "sa mère chante"},
        {"her brother sings", "son frère chante"},
        {"her nurse sings", "son infirmière chante"},
        {"our friends sing", "nos amis chantent"},
        {"their uncle sings", "leur oncle chante"},
        {"your children sing", "tes enfants chantent"},
        {"every woman sings", "chaque femme chante"},
        {"many birds sleep", "beaucoup d'oiseaux dorment"},
        {"many owls sleep", "beaucoup de hiboux dorment"},
        {"two birds sleep", "deux oiseaux dorment"},
        {"the eight old horses sleep", "les huit vieux chevaux dorment"},
    };
    CHECK_EXAMPLES(list);
}

static void adjectives_agree_and_are_ordered(void)
{
    static const example list[] = {
        {"the small white mouse sleeps", "la petite souris blanche dort"},
        {"the big black dogs sleep", "les grands chiens noirs dorment"},
        {"a beautiful bird sleeps", "un bel oiseau dort"},
        {"the old friend sleeps", "le vieil ami dort"},
        {"the old hero sleeps", "le vieux héros dort"},
        {"i see a new computer", "je vois un nouvel ordinateur"},
        {"i see a new red computer", "je vois un nouvel ordinateur rouge"},
        {"i see the new boats", "je vois les nouveaux bateaux"},
        {"i see a beautiful old tree", "je vois un beau vieil arbre"},
        {"some old women sing", "de vieilles femmes chantent"},
        {"some tired women sing", "des femmes fatiguées chantent"},
        {"the happy queens sing", "les reines heureuses chantent"},
        {"the jealous witch sings", "la sorcière jalouse chante"},
        {"the goat is white", "la chèvre est blanche"},
        {"the cherries were expensive", "les cerises étaient chères"},
        {"this pear will be good", "cette poire sera bonne"},
        {"the girls are kind", "les filles sont gentilles"},
        {"i am tired", "je suis fatigué"},
        {"we were sad", "nous étions tristes"},
        {"she is never jealous", "elle n'est jamais jalouse"},
        {"you will not always be young", "tu ne seras pas toujours jeune"},
    };
    CHECK_EXAMPLES(list);
}

static void tenses(void)
{
    static const example list[] = {
        {"i eat an apple", "je mange une pomme"},
        {"we eat an apple", "nous mangeons une pomme"},
        {"the wolves ate the apple", "les loups ont mangé la pomme"},
        {"you will eat the apple tomorrow", "tu mangeras la pomme demain"},
        {"she went to the school", "elle est allée à l'école"},
        {"the cows fell", "les vaches sont tombées"},
        {"the goat arrived yesterday", "la chèvre est arrivée hier"},
        {"she woke up", "elle s'est réveillée"},
        {"you wake up now", "tu te réveilles maintenant"},
        {"we ran away", "nous nous sommes enfuis"},
        {"i run away", "je m'enfuis"},
        {"the frogs will run away", "les grenouilles s'enfuiront"},
        {"i had a dog", "j'avais un chien"},
        {"the women knew the village", "les femmes connaissaient le village"},
        {"the king wants a horse", "le roi veut un cheval"},
        {"he will see the mountain", "il verra la montagne"},
        {"i will buy a bag", "j'achèterai un sac"},
        {"i will go to the beach", "j'irai à la plage"},
        {"he came from the hospital", "il est venu de l'hôpital"},
        {"my aunt opened a letter", "ma tante a ouvert une lettre"},
    };
    CHECK_EXAMPLES(list);
}

static void contractions(void)
{
    static const example list[] = {
        {"i talk to the king", "je parle au roi"},
        {"i talk to the queen", "je parle à la reine"},
        {"i talk to the man", "je parle à l'homme"},
        {"i talk to the kings", "je parle aux rois"},
        {"i talk to the hero", "je parle au héros"},
        {"i talk about the dog", "je parle du chien"},
        {"i talk about the bee", "je parle de l'abeille"},
        {"i talk about the dogs", "je parle des chiens"},
        {"i talk about some dogs", "je parle de chiens"},
        {"i talk about some birds", "je parle d'oiseaux"},
        {"i talk about a dog", "je parle d'un chien"},
        {"i talk about eight dogs", "je parle de huit chiens"},
        {"i talk about some small dogs", "je parle de petits chiens"},
        {"i think about the small bird", "je pense au petit oiseau"},
        {"she comes from the market", "elle vient du marché"},
        {"she gives the book to the boy", "elle donne le livre au garçon"},
        {"she sleeps near the river", "elle dort près de la rivière"},
        {"she sleeps near the park", "elle dort près du parc"},
        {"she sleeps next to the churches", "elle dort à côté des églises"},
        {"she sleeps in front of the hotel", "elle dort devant l'hôtel"},
        {"she sleeps under the bridge", "elle dort sous le pont"},
    };
    CHECK_EXAMPLES(list);
}

static void negation(void)
{
    static const example list[] = {
        {"the cat does not sleep", "le chat ne dort pas"},
        {"the cat doesn't eat the egg", "le chat ne mange pas l'œuf"},
        {"i do not love the king", "je n'aime pas le roi"},
        {"he does not have a dog", "il n'a pas de chien"},
        {"he does not have any birds", "il n'a pas d'oiseaux"},
        {"he did not see the house", "il n'a pas vu la maison"},
        {"the girl did not fall", "la fille n'est pas tombée"},
        {"we did not run away", "nous ne nous sommes pas enfuis"},
        {"she never opens any letters", "elle n'ouvre jamais de lettres"},
        {"you will not write a poem", "tu n'écriras pas de poème"},
        {"the owls are not happy", "les hiboux ne sont pas heureux"},
    };
    CHECK_EXAMPLES(list);
}

static void pronouns_follow_their_nouns(void)
{
    static const example list[] = {
        {"the turtle sleeps because it is tired", "la tortue dort parce qu'elle est fatiguée"},
        {"the dog sleeps because it is tired", "le chien dort parce qu'il est fatigué"},
        {"i want the cars because they are new",
         "je veux les voitures parce qu'elles sont nouvelles"},
        {"i want the boats because they are beautiful",
         "je veux les bateaux parce qu'ils sont beaux"},
        {"the girl saw the key and she took it", "la fille a vu la clé et elle l'a prise"},
        {"the boy saw the keys and he took them", "le garçon a vu les clés et il les a prises"},
        {"the boy saw the hats and he took them", "le garçon a vu les chapeaux et il les a pris"},
        {"the king loves the queen but she does not love him",
         "le roi aime la reine mais elle ne l'aime pas"},
        {"the king is sad when i do not look at him",
         "le roi est triste quand je ne le regarde pas"},
        {"the woman wrote a letter and you opened it",
         "la femme a écrit une lettre et tu l'as ouverte"},
        {"the nurse fell but we did not see her",
         "l'infirmière est tombée mais nous ne l'avons pas vue"},
        {"i bought a toy and i gave it to the child",
         "j'ai acheté un jouet et je l'ai donné à l'enfant"},
    };
    CHECK_EXAMPLES(list);
}

/* Me, te, nous; le, la, les; lui, leur: before the verb, in this order, elided, inside a negation.
 */
static void object_pronouns(void)
{
    static const example list[] = {
        {"he sees her", "il la voit"},
        {"i love you", "je t'aime"},
        {"you love me", "tu m'aimes"},
        {"she loves us", "elle nous aime"},
        {"they look at them", "ils les regardent"},
        {"the cat saw it", "le chat l'a vu"},
        {"it sleeps", "il dort"},
        {"they sleep", "ils dorment"},
        {"we did not see them", "nous ne les avons pas vus"},
        {"he did not see us", "il ne nous a pas vus"},
        {"i waited for her", "je l'ai attendue"},
        {"you never listen to me", "tu ne m'écoutes jamais"},
        {"did you see me?", "est-ce que tu m'as vu ?"},
        {"who knows you?", "qui te connaît ?"},
        {"the girl who loves me sleeps", "la fille qui m'aime dort"},
        {"she talks to him", "elle lui parle"},
        {"she talked to them", "elle leur a parlé"},
        {"i will not talk to you", "je ne te parlerai pas"},
        {"they give it to him", "ils le lui donnent"},
        {"they give it to them", "ils le leur donnent"},
        {"he gives them to me", "il me les donne"},
        {"i will bring it to you tomorrow", "je te l'apporterai demain"},
        {"she does not give it to us", "elle ne nous le donne pas"},
        {"he did not give it to her", "il ne le lui a pas donné"},
        {"the girl took the pears and he brought them to her",
         "la fille a pris les poires et il les lui a apportées"},
        {"the woman bought a key and you gave it to me",
         "la femme a acheté une clé et tu me l'as donnée"},
        {"the girl sleeps because i talk to her", "la fille dort parce que je lui parle"},
        {"he gives me to the king", "il me donne au roi"},
        {"he sees the houses because they are big",
         "il voit les maisons parce qu'elles sont grandes"},
        {"they sleep because they are tired", "ils dorment parce qu'ils sont fatigués"},
    };
    CHECK_EXAMPLES(list);
}

static void two_objects(void)
{
    static const example list[] = {
        {"she gives the boy a book", "elle donne un livre au garçon"},
        {"she gives a book to the boy", "elle donne un livre au garçon"},
        {"she gave the girls the old letters", "elle a donné les vieilles lettres aux filles"},
        {"she does not give the boys any books", "elle ne donne pas de livres aux garçons"},
        {"she gives him a book", "elle lui donne un livre"},
        {"she gives a book to him", "elle lui donne un livre"},
        {"i showed them my car", "je leur ai montré ma voiture"},
        {"you brought us an apple", "tu nous as apporté une pomme"},
        {"he will send me two letters", "il m'enverra deux lettres"},
        {"she never showed us her books", "elle ne nous a jamais montré ses livres"},
        {"she gives her two books", "elle lui donne deux livres"},
        {"she gives her two books to him", "elle lui donne ses deux livres"},
        {"she gives her brother her book", "elle donne son livre à son frère"},
        {"the book that she gave him is old", "le livre qu'elle lui a donné est vieux"},
        {"the letters that he sent the nurse are sad",
         "les lettres qu'il a envoyées à l'infirmière sont tristes"},
        {"who brought you the cherries?", "qui t'a apporté les cerises ?"},
        {"will you give the king the jewel?", "est-ce que tu donneras le bijou au roi ?"},
    };
    CHECK_EXAMPLES(list);
}

static void the_progressive(void)
{
    static const example list[] = {
        {"the cat is sleeping", "le chat dort"},
        {"the cat was sleeping", "le chat dormait"},
        {"i am eating an apple", "je mange une pomme"},
        {"we were eating the apples", "nous mangions les pommes"},
        {"you were not running", "tu ne courais pas"},
        {"the frogs were running away", "les grenouilles s'enfuyaient"},
        {"she was waking up", "elle se réveillait"},
        {"he is often singing", "il chante souvent"},
        {"is the bird singing?", "est-ce que l'oiseau chante ?"},
        {"where were you sleeping?", "où est-ce que tu dormais ?"},
        {"who is looking for me?", "qui me cherche ?"},
        {"they are not giving it to us", "ils ne nous le donnent pas"},
        {"i was bringing her a cake", "je lui apportais un gâteau"},
        {"the cat was sleeping when the dog arrived", "le chat dormait quand le chien est arrivé"},
        {"the girl who was singing fell", "la fille qui chantait est tombée"},
        {"the train that we are waiting for is new", "le train que nous attendons est nouveau"},
        {"my aunt is going to the market", "ma tante va au marché"},
    };
    CHECK_EXAMPLES(list);
}

static void relative_clauses(void)
{
    static const example list[] = {
        {"the girl who ran sleeps", "la fille qui a couru dort"},
        {"the house that i saw was old", "la maison que j'ai vue était vieille"},
        {"the cats that i saw yesterday ran", "les chats que j'ai vus hier ont couru"},
        {"the letters that you wrote are sad", "les lettres que tu as écrites sont tristes"},
        {"the apple that she takes is red", "la pomme qu'elle prend est rouge"},
        {"the pear that a bird ate was green", "la poire qu'un oiseau a mangée était verte"},
        {"i love the dog that sleeps", "j'aime le chien qui dort"},
        {"i know the women who sang", "je connais les femmes qui ont chanté"},
        {"i see the actress who fell", "je vois l'actrice qui est tombée"},
        {"the boy that we looked for arrives", "le garçon que nous avons cherché arrive"},
        {"the horses that do not sleep are black", "les chevaux qui ne dorment pas sont noirs"},
    };
    CHECK_EXAMPLES(list);
}

static void adverbs(void)
{
    static const example list[] = {
        {"the turtle runs slowly", "la tortue court lentement"},
        {"he often sleeps", "il dort souvent"},
        {"he often slept", "il a souvent dormi"},
        {"he always went to the park", "il est toujours allé au parc"},
        {"he will rarely sleep here today", "il dormira rarement ici aujourd'hui"},
        {"she does not often see the dog", "elle ne voit pas souvent le chien"},
        {"she never saw the dog", "elle n'a jamais vu le chien"},
        {"i sleep in the garden today", "je dors dans le jardin aujourd'hui"},
    };
    CHECK_EXAMPLES(list);
}

static void questions(void)
{
    static const example list[] = {
        {"does the cat sleep?", "est-ce que le chat dort ?"},
        {"did she sleep?", "est-ce qu'elle a dormi ?"},
        {"will the bird sing?", "est-ce que l'oiseau chantera ?"},
        {"is the cat tired?", "est-ce que le chat est fatigué ?"},
        {"were the girls happy?", "est-ce que les filles étaient heureuses ?"},
        {"will you be happy?", "est-ce que tu seras heureux ?"},
        {"do you have a dog?", "est-ce que tu as un chien ?"},
        {"where did the man sleep?", "où est-ce que l'homme a dormi ?"},
        {"why are you sad?", "pourquoi est-ce que tu es triste ?"},
        {"when will he arrive?", "quand est-ce qu'il arrivera ?"},
        {"who saw the cat?", "qui a vu le chat ?"},
        {"who does not love the king?", "qui n'aime pas le roi ?"},
        {"who will be famous tomorrow?", "qui sera célèbre demain ?"},
    };
    CHECK_EXAMPLES(list);
}

static void verbs_with_a_second_word(void)
{
    static const example list[] = {
        {"i look at the star", "je regarde l'étoile"},
        {"i look for the star", "je cherche l'étoile"},
        {"we waited for the train", "nous avons attendu le train"},
        {"you listened to the song", "tu as écouté la chanson"},
        {"the dogs woke up", "les chiens se sont réveillés"},
        {"i follow the witch", "je suis la sorcière"},
    };
    CHECK_EXAMPLES(list);
}

/* Sentences that are not in the language are refused, with a reason. */
static void refuses_other_sentences(void)
{
    static const char *const list[] = {
        "",
        "?",
        "the",
        "cat sleeps",
        "the cat sleep",
        "the cats sleeps",
        "a apple falls",
        "every cats sleep",
        "many cat sleeps",
        "two cat sleep",
        "i see me",
        "we see me",
        "you love you",
        "he gives me to her",
        "she gives him it",
        "she gives the boy it",
        "she gives the boy",
        "she gives a book",
        "she gives the table a book",
        "the boy that she gave a book sleeps",
        "the cat that i sleep ran",
        "the cat is sleep",
        "the cat sleeping",
        "the cat will sleeping",
        "she is loving him",
        "he is seeing the house",
        "i sleep because the cat that it saw ran",
        "they see the houses because they are big",
        "the king saw the dog because it saw it",
        "the cat saw the dog because it was tired",
        "the cat sleeps the dog",
        "the cat does not never sleep",
        "the cat does not rarely sleep",
        "does the cat sleep",
        "the cat sleeps?",
        "does the cat be tired?",
        "the cat that i talk about sleeps",
        "the colourless cat sleeps",
        "i see",
        "the cat that sleeps",
        "a cat that a dog that a bee that a fox that a cow that i saw saw saw saw saw ran",
    };
    for (size_t n = 0; n < sizeof list / sizeof list[0]; n++) {
        corpus_pair pair;
        char message[CORPUS_MESSAGE_MAX];
        CHECK(!corpus_translate(list[n], &pair, NULL, message), "accepted: %s", list[n]);
        CHECK(message[0] != '\0', "no reason: %s", list[n]);
    }
}

/* --------------------------------------------------- alignment and roles --- */

static bool has_role(const corpus_pair *pair, corpus_role_kind kind, int first, int second,
                     int french_first, int french_second)
{
    for (int n = 0; n < pair->role_count; n++) {
        const corpus_role *role = &pair->roles[n];
        if (role->kind == kind && role->first[CORPUS_ENGLISH] == first &&
            role->second[CORPUS_ENGLISH] == second && role->first[CORPUS_FRENCH] == french_first &&
            role->second[CORPUS_FRENCH] == french_second)
            return true;
    }
    return false;
}

static bool has_sources(const corpus_pair *pair, const uint64_t *sources, int count)
{
    bool same =
        CHECK(pair->side[CORPUS_FRENCH].count == count, "%d", pair->side[CORPUS_FRENCH].count);
    for (int n = 0; n < count && same; n++)
        same = CHECK(pair->sources[n] == sources[n], "token %d: %#llx", n,
                     (unsigned long long)pair->sources[n]);
    return same;
}

static void alignment_and_roles_of_the_cat(void)
{
    corpus_pair pair;
    char message[CORPUS_MESSAGE_MAX];
    /*  0   1   2    3 4   5         6   7
     *  the cat that i saw yesterday ran away
     *  le chat que j' ai vu hier s' est enfui
     *  0  1    2   3  4  5  6    7  8   9      */
    static const uint64_t sources[] = {1,      1 << 1, 1 << 2, 1 << 3, 1 << 4,
                                       1 << 4, 1 << 5, 1 << 6, 1 << 6, (1 << 6) | (1 << 7)};
    if (!CHECK(corpus_translate("the cat that i saw yesterday ran away", &pair, NULL, message),
               "%s", message))
        return;
    if (!has_sources(&pair, sources, sizeof sources / sizeof sources[0]))
        return;
    CHECK(pair.role_count == 5, "%d roles", pair.role_count);
    CHECK(has_role(&pair, ROLE_DETERMINER_NOUN, 0, 1, 0, 1), "the cat");
    CHECK(has_role(&pair, ROLE_RELATIVE_ANTECEDENT, 2, 1, 2, 1), "that - cat");
    CHECK(has_role(&pair, ROLE_SUBJECT_VERB, 3, 4, 3, 5), "i saw");
    CHECK(has_role(&pair, ROLE_VERB_OBJECT, 4, 1, 5, 1), "saw - cat");
    CHECK(has_role(&pair, ROLE_SUBJECT_VERB, 1, 6, 1, 9), "cat ran");
}

static void contractions_have_two_sources(void)
{
    corpus_pair pair;
    char message[CORPUS_MESSAGE_MAX];
    /*  0  1     2     3   4     5     6       7  8
     *  he talks about the small bees because they sleep
     *  il parle des petites abeilles parce qu' elles dorment
     *  0  1     2   3       4        5     6   7     8      */
    if (!CHECK(corpus_translate("he talks about the small bees because they sleep", &pair, NULL,
                                message),
               "%s", message))
        return;
    CHECK(pair.sources[2] == ((1 << 2) | (1 << 3)), "des: %#llx",
          (unsigned long long)pair.sources[2]);
    CHECK(pair.sources[5] == 1 << 6 && pair.sources[6] == 1 << 6, "parce que");
    CHECK(has_role(&pair, ROLE_DETERMINER_NOUN, 3, 5, 2, 4), "the bees");
    CHECK(has_role(&pair, ROLE_ADJECTIVE_NOUN, 4, 5, 3, 4), "small bees");
    CHECK(has_role(&pair, ROLE_PRONOUN_ANTECEDENT, 7, 5, 7, 4), "they - bees");
    CHECK(has_role(&pair, ROLE_SUBJECT_VERB, 7, 8, 7, 8), "they sleep");
}

/* A pronoun before the French verb is aligned with the English one after the verb, and with its
 * "to". */
static void alignment_and_roles_of_pronouns(void)
{
    corpus_pair pair;
    char message[CORPUS_MESSAGE_MAX];
    /*  0   1    2    3   4     5   6 7   8   9    10   11 12
     *  the girl took the pears and i did not give them to her
     *  la fille a pris les poires et je ne les lui ai pas données
     *  0  1     2 3    4   5      6  7  8  9   10  11 12  13      */
    static const char text[] = "the girl took the pears and i did not give them to her";
    static const uint64_t sources[] = {1,
                                       1 << 1,
                                       1 << 2,
                                       1 << 2,
                                       1 << 3,
                                       1 << 4,
                                       1 << 5,
                                       1 << 6,
                                       1 << 8,
                                       1 << 10,
                                       (1 << 11) | (1 << 12),
                                       1 << 7,
                                       1 << 8,
                                       1 << 9};
    if (!CHECK(corpus_translate(text, &pair, NULL, message), "%s", message) ||
        !has_sources(&pair, sources, sizeof sources / sizeof sources[0]))
        return;
    CHECK(has_role(&pair, ROLE_VERB_OBJECT, 9, 10, 13, 9), "give them");
    CHECK(has_role(&pair, ROLE_PRONOUN_ANTECEDENT, 10, 4, 9, 5), "them - pears");
    CHECK(has_role(&pair, ROLE_PRONOUN_ANTECEDENT, 12, 1, 10, 1), "her - girl");
    CHECK(has_role(&pair, ROLE_SUBJECT_VERB, 6, 9, 7, 13), "i give");
}

/* "À" has no word of its own where the recipient comes first; "is" belongs to the French verb. */
static void alignment_and_roles_of_two_objects(void)
{
    corpus_pair pair;
    char message[CORPUS_MESSAGE_MAX];
    /*  0   1  2      3   4   5 6            0    1     2  3     4  5
     *  she is giving the boy a book         elle donne un livre au garçon */
    static const uint64_t sources[] = {1,      (1 << 1) | (1 << 2), 1 << 5,
                                       1 << 6, (1 << 3) | (1 << 4), 1 << 4};
    if (!CHECK(corpus_translate("she is giving the boy a book", &pair, NULL, message), "%s",
               message) ||
        !has_sources(&pair, sources, sizeof sources / sizeof sources[0]))
        return;
    CHECK(has_role(&pair, ROLE_SUBJECT_VERB, 0, 2, 0, 1), "she is giving");
    CHECK(has_role(&pair, ROLE_VERB_OBJECT, 2, 6, 1, 3), "giving a book");
    CHECK(has_role(&pair, ROLE_DETERMINER_NOUN, 3, 4, 4, 5), "the boy");
}

static const lexicon_noun *noun(const char *english)
{
    for (int n = 0; n < lexicon_noun_count; n++)
        if (strcmp(lexicon_nouns[n].english[0], english) == 0)
            return &lexicon_nouns[n];
    return NULL;
}

static const lexicon_adjective *adjective(const char *english)
{
    for (int n = 0; n < lexicon_adjective_count; n++)
        if (strcmp(lexicon_adjectives[n].english, english) == 0)
            return &lexicon_adjectives[n];
    return NULL;
}

static const lexicon_verb *verb(const char *name)
{
    for (int n = 0; n < lexicon_verb_count; n++)
        if (strcmp(lexicon_verbs[n].name, name) == 0)
            return &lexicon_verbs[n];
    return NULL;
}

/* A derivation made by hand, without the parser. */
static void a_derivation_is_built(void)
{
    const corpus_derivation d = {
        .clauses[CLAUSE_MAIN] = {
            .subject = {.noun = noun("fox"),
                        .determiner = DETERMINER_THE,
                        .adjectives = {adjective("quick"), adjective("brown")}},
            .verb = verb("jump")}};
    corpus_pair pair;
    char english[CORPUS_TEXT_MAX], french[CORPUS_TEXT_MAX];
    if (!CHECK(corpus_build(&d, &pair), "not built"))
        return;
    corpus_detokenise(CORPUS_ENGLISH, &pair.side[CORPUS_ENGLISH], english);
    corpus_detokenise(CORPUS_FRENCH, &pair.side[CORPUS_FRENCH], french);
    CHECK(strcmp(english, "the quick brown fox jumps") == 0, "%s", english);
    CHECK(strcmp(french, "le renard brun rapide saute") == 0, "%s", french);
}

/* Derivations that no text leads to are refused as well, with the reason. */
static void faults_are_named(void)
{
    corpus_derivation d = {.clauses[CLAUSE_MAIN] = {.subject = {.pronoun = PRONOUN_SHE},
                                                    .verb = verb("give"),
                                                    .object = {.pronoun = PRONOUN_IT},
                                                    .recipient = {.pronoun = PRONOUN_HE}}};
    corpus_clause *const clause = &d.clauses[CLAUSE_MAIN];
    corpus_pair pair;
    CHECK(corpus_fault(&d) == NULL && corpus_build(&d, &pair), "%s", corpus_fault(&d));
    clause->shifted = true;
    CHECK(corpus_fault(&d) != NULL && !corpus_build(&d, &pair), "gives him it");
    clause->shifted = false;
    clause->object.pronoun = PRONOUN_YOU;
    CHECK(corpus_fault(&d) != NULL && !corpus_build(&d, &pair), "gives you to him");
    clause->recipient.pronoun = PRONOUN_NONE;
    clause->subject.pronoun = PRONOUN_YOU;
    CHECK(corpus_fault(&d) != NULL && !corpus_build(&d, &pair), "you give you");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(the_two_sentences);
    RUN(articles_agree_and_elide);
    RUN(determiners_agree);
    RUN(adjectives_agree_and_are_ordered);
    RUN(tenses);
    RUN(contractions);
    RUN(negation);
    RUN(pronouns_follow_their_nouns);
    RUN(object_pronouns);
    RUN(two_objects);
    RUN(the_progressive);
    RUN(relative_clauses);
    RUN(adverbs);
    RUN(questions);
    RUN(verbs_with_a_second_word);
    RUN(refuses_other_sentences);
    RUN(alignment_and_roles_of_the_cat);
    RUN(contractions_have_two_sources);
    RUN(alignment_and_roles_of_pronouns);
    RUN(alignment_and_roles_of_two_objects);
    RUN(faults_are_named);
    RUN(a_derivation_is_built);
    return test_end();
}
