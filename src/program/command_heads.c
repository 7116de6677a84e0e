/* SPDX-License-Identifier: MIT */
/*
 * mha heads: what every head of a model attends to, measured on sentences.
 *
 *      sentences --heads_table_make()--> rows, one per head
 *      --kind, --like, --where, --sort --> chosen rows --heads_report_...()--> text or JSON
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/args.h"
#include "program/commands.h"
#include "program/heads_alignment.h"
#include "program/heads_pictures.h"
#include "program/heads_report.h"
#include "program/heads_table.h"
#include "program/options.h"
#include "translator/sentence.h"

static const char details[] =
    "A role is the first rule that holds: sink, fixed offset (previous, next), self, duplicate,\n"
    "induction, question mark, rare word, a relation of the grammar, one word, broad, far; else\n"
    "mixed. n is the number of items that the score is the mean of: sentences, or words with that\n"
    "relation.\n"
    "Importance is the mean of |d loss / d gate|, divided by the norm of these values over the\n"
    "heads of the layer; it is measured on the laboratory without --texts and --pairs only. With\n"
    "TEXT the heads are measured on this sentence alone. --like compares heads by the\n"
    "Jensen-Shannon divergence of their rows, in nats (at most 0.693); HEAD may also be written\n"
    "\"cross L2 H4\". How different the heads of a layer are is the mean of it over all pairs.\n"
    "\n"
    "--pairs measures an encoder-decoder on sentences with given translations, as \"mha train\n"
    "--pairs\" reads them. With --alignments, line n of FILE has the links of pair n, made by\n"
    "people: \"0-0 1-2 2p1\", sure ones with -, possible ones with p, words separated by spaces\n"
    "and counted from 0. The error rate of every head of cross-attention is printed.\n"
    "\n"
    "The model is a translator of \"mha train\", found as by \"mha translate\", or any that\n"
    "\"mha inspect\" opens, such as a folder of Hugging Face. Other models than translators are\n"
    "measured on a TEXT, --texts, --pairs, or the sentence pairs that come with the model\n"
    "(sentences.tsv in its folder); words that are cut into tokens are measured as a whole unless\n"
    "--pieces is given. Which words correspond is then not known, but estimated from 20 or more\n"
    "sentences with their translations: a head of cross-attention that finds these links in 0.1\n"
    "more of the words than the best fixed offset is \"aligned\".\n"
    "\n"
    "Of a model that reads pictures, TEXT names a PNG, PGM or PPM file, and --images a set of\n"
    "them. The roles are then: class token, self, a neighbour (above, below, left, right),\n"
    "neighbours, same row, same column, border, same part (object or ground), object, broad, far;\n"
    "and how far the heads of each layer look is printed.\n"
    "\n"
    "--where takes conditions that must all hold: role=NAME, where the beginning of a name is\n"
    "enough, and columns compared with numbers. Columns for --where and --sort:\n"
    "  layer head score importance entropy smoothed broad confidence distance far sink first\n"
    "  end prev self next duplicate induction question rare one aer says reads apart\n"
    "\n"
    "Examples:\n"
    "  mha heads\n"
    "  mha heads --where 'prev>0.5 layer<2'\n"
    "  mha heads --kind cross --sort aer --gold\n"
    "  mha heads --like 'cross 2.4'\n"
    "  mha heads --where role=sink --json\n"
    "  mha heads --model all-MiniLM-L6-v2 \"The tired cat ran away.\"\n"
    "  mha heads --model my-translator --pairs test.tsv\n"
    "  mha heads --model vit-fashion --images /usr/share/datasets/fashion-mnist\n"
    "  mha heads --model my-translator --pairs a.en,a.fr --alignments a.links\n";

typedef struct heads_request {
    heads_setup setup;
    const char *where, *sort, *kind_name;
    int kind; /* ATTENTION_KINDS: all */
    const char *like_name;
    head_name like; /* with like_name */
    bool gold, pieces, as_json;
    const char *text;
    const char *alignments;
    bool target_first;
} heads_request;

/* -------------------------------------------------------------- options ----- */

/* --like must name exactly one head, since all heads of its kind are compared with it. */
static int find_like(heads_request *r)
{
    head_choice choice;
    if (r->like_name == NULL)
        return EXIT_GO_ON;
    const int code = option_head("heads", "like", r->like_name, &choice);
    if (code != EXIT_GO_ON)
        return code;
    if (choice.kind == ATTENTION_KINDS || choice.layer == 0)
        return args_wrong("heads: --like %s: give kind, layer and head, as in \"cross 2.4\" or "
                          "\"cross L2 H4\"",
                          r->like_name);
    if (r->kind != ATTENTION_KINDS && r->kind != choice.kind)
        return args_wrong("heads: --like compares heads of one kind; leave out --kind %s",
                          r->kind_name);
    r->like = (head_name){(attention_kind)choice.kind, choice.layer - 1, choice.head - 1};
    return EXIT_GO_ON;
}

/* Checks what depends on the model. */
static int check_like(const heads_request *r)
{
    const head_shape shape = r->setup.session.subject.shape;
    const int layers = shape.layers[r->like.kind];
    if (r->like_name == NULL)
        return EXIT_GO_ON;
    const int code = heads_setup_kind(&r->setup, "heads", "like", r->like_name, (int)r->like.kind);
    if (code != EXIT_GO_ON || (r->like.layer < layers && r->like.head < shape.heads))
        return code;
    return args_wrong("heads: --like %s: there are %d layers of %d heads", r->like_name, layers,
                      shape.heads);
}

/* Importance needs a pair of sentences and derivatives, which only translators have. */
static int check_importance(const heads_request *r)
{
    const bool sorted = r->sort != NULL && strcmp(r->sort, "importance") == 0;
    const bool filtered = r->where != NULL && strstr(r->where, "importance") != NULL;
    if (r->setup.pairs != NULL || (!sorted && !filtered))
        return EXIT_GO_ON;
    return args_wrong(
        "heads: --%s: importance is a derivative of the loss of our translator, not "
        "measured on other models and --texts; \"mha ablate\" measures what each head "
        "costs",
        sorted ? "sort" : "where");
}

/* Refuses options that would have no effect beside the others. */
static int check_unused(const heads_request *r, const arg_command *command)
{
    int code = EXIT_GO_ON;
    if (r->text != NULL)
        code = args_refuse(command, "sentences split seed",
                           "selects sentences of the corpus; leave it out with a TEXT");
    if (code == EXIT_GO_ON && r->text != NULL)
        code = args_refuse(command, "texts pairs images",
                           "names texts to measure on; leave it out with a TEXT");
    if (code == EXIT_GO_ON && r->like_name == NULL &&
        ((r->sort != NULL && strcmp(r->sort, "apart") == 0) ||
         (r->where != NULL && strstr(r->where, "apart") != NULL)))
        code =
            args_wrong("heads: \"apart\" is the distance from a head; choose it with --like HEAD");
    return code;
}

/* What has no effect on alignments is refused with them, and the reverse. */
static int check_alignments(const heads_request *r, const arg_command *command)
{
    if (r->alignments == NULL)
        return args_refuse(command, "target-first",
                           "is about the links of --alignments; leave it out");
    if (r->text != NULL)
        return args_wrong("heads: --alignments belongs to sentence pairs; leave out the TEXT");
    if (r->setup.pairs_file == NULL)
        return args_wrong("heads: --alignments needs --pairs: the sentences that are aligned");
    return args_refuse(command, "texts split seed kind where sort like gold pieces",
                       "has no effect on --alignments; leave it out");
}

static int align(const heads_request *r, bool limited)
{
    const alignment_request request = {.model_file = r->setup.model_file,
                                       .pairs = r->setup.pairs_file,
                                       .alignments = r->alignments,
                                       .target_first = r->target_first,
                                       .sentences = limited ? r->setup.sentences : 0,
                                       .threads = r->setup.threads,
                                       .as_json = r->as_json};
    return heads_alignment(&request);
}

/* What is about words has no effect on pictures. */
static int check_pictures(const heads_request *r, const arg_command *command)
{
    if (!r->setup.session.subject.reads_pictures)
        return EXIT_GO_ON;
    return args_refuse(command, "kind where sort like pieces",
                       "is about words; leave it out with a model that reads pictures");
}

/* Reports mistakes before the work begins. */
static int check(heads_request *r)
{
    int none = 0;
    int code = option_kind("heads", r->kind_name, &r->kind);
    if (code == EXIT_GO_ON)
        code = find_like(r);
    if (code == EXIT_GO_ON && r->where != NULL)
        code = heads_filter("heads", r->where, NULL, &none);
    if (code == EXIT_GO_ON && r->sort != NULL)
        code = heads_sort(r->sort, NULL, 0);
    return code;
}

/* ------------------------------------------------------------------ run ----- */

/* Selects, filters and sorts the rows, then prints them. `chosen` has room for all. */
static int print(const heads_request *r, const head_study *study, const heads_row *all,
                 heads_row *chosen)
{
    int count = 0;
    for (int n = 0; n < study->heads; n++)
        if ((r->kind == ATTENTION_KINDS || r->kind == (int)all[n].name.kind) &&
            (r->like_name == NULL || r->like.kind == all[n].name.kind))
            chosen[count++] = all[n];
    if (r->where != NULL)
        heads_filter("heads", r->where, chosen, &count);
    if (r->sort != NULL || r->like_name != NULL)
        heads_sort(r->sort != NULL ? r->sort : "apart", chosen, count);
    const heads_report report = {.model = r->setup.session.path,
                                 .text = r->text,
                                 .texts = r->text == NULL ? heads_setup_file(&r->setup) : NULL,
                                 .are_pairs = r->setup.pairs_file != NULL,
                                 .translates = r->setup.session.model != NULL,
                                 .split = r->setup.split,
                                 .seed = r->setup.seed,
                                 .study = study,
                                 .rows = chosen,
                                 .count = count,
                                 .all = all,
                                 .gold = r->gold,
                                 .like = r->like_name != NULL};
    if (r->as_json)
        heads_report_json(&report);
    else
        heads_report_text(&report);
    return EXIT_FINE;
}

/* Measures all heads, including those that are not printed: the summary counts them. */
static int study_and_print(const heads_request *r)
{
    const head_shape shape = r->setup.session.subject.shape;
    heads_table table;
    heads_row *const chosen = calloc((size_t)head_count(shape), sizeof *chosen);
    mha_status status = heads_table_make(&table, &r->setup,
                                         r->like_name != NULL ? head_number(shape, r->like) : -1);
    if (chosen == NULL)
        status = MHA_ERR_MEMORY;
    const int code =
        status == MHA_OK ? print(r, table.study, table.rows, chosen) : heads_failed(status);
    heads_table_free(&table);
    free(chosen);
    return code;
}

/* With a TEXT the one pair of the setup is replaced by it. */
static int run(const heads_request *r)
{
    char message[HEAD_MESSAGE_MAX];
    const int code = check_like(r);
    if (code != EXIT_GO_ON)
        return code;
    if (r->setup.session.subject.reads_pictures)
        return heads_pictures(&r->setup, r->as_json);
    if (r->text == NULL)
        return study_and_print(r);
    if (r->setup.pairs == NULL) {
        heads_request shown = *r;
        shown.text = r->setup.set.texts[0].text;
        return study_and_print(&shown);
    }
    source_sentence source = {.line = 0};
    source_read(&source, r->setup.session.model, r->text, false);
    source_warn(&source);
    heads_request cleaned = *r;
    cleaned.text = source.text;
    if (source.problem[0] == '\0' &&
        head_pair_of_text(r->setup.session.model, source.text, r->setup.pairs,
                          r->setup.session.pool, message))
        return study_and_print(&cleaned);
    return args_failed("%s", source.problem[0] != '\0' ? source.problem : message);
}

int command_heads(int argc, char **argv)
{
    heads_request r = {
        .setup = {.usual = SHIPPED_LABORATORY, .split_name = "test", .sentences = 200, .seed = 1}};
    uint64_t given = 0;
    const arg_option options[] = {
        {OPTION_MODEL(&r.setup.model_file, "lab; en-fr with --pairs")},
        {OPTION_TEXTS(&r.setup.texts_file)},
        {OPTION_PAIRS(&r.setup.pairs_file)},
        {OPTION_IMAGES(&r.setup.images_folder)},
        {"alignments", ARG_TEXT, &r.alignments, "FILE",
         "with --pairs: how well cross-attention aligns words", 0, 0},
        {"target-first", ARG_FLAG, &r.target_first, NULL,
         "in links of --alignments, the word of the target comes first", 0, 0},
        {HEADS_SENTENCES(r.setup)},
        {OPTION_SPLIT(&r.setup.split_name)},
        {OPTION_SEED(&r.setup.seed)},
        {"kind", ARG_TEXT, &r.kind_name, "K", "only heads of encoder, decoder or cross", 0, 0},
        {"where", ARG_TEXT, &r.where, "W", "only heads for which all conditions hold", 0, 0},
        {"sort", ARG_TEXT, &r.sort, "COLUMN", "sort by this column, the largest first", 0, 0},
        {"like", ARG_TEXT, &r.like_name, "HEAD", "compare with this head, such as \"cross 2.4\"", 0,
         0},
        {"gold", ARG_FLAG, &r.gold, NULL, "also how well heads find relations of the grammar", 0,
         0},
        {"pieces", ARG_FLAG, &r.pieces, NULL, "measure tokens, not the words they are pieces of", 0,
         0},
        {OPTION_THREADS(&r.setup.threads)},
        {OPTION_JSON(&r.as_json)},
    };
    const arg_command command = {
        .name = "heads",
        .usage = "[OPTION...] [TEXT...]",
        .summary = "Measure what every head of a model attends to, and name its role.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = INT_MAX,
        .given = &given,
    };
    int words;
    char *joined;
    int code = options_parse_sentences(&command, argc, argv, &words, &joined);
    if (code != EXIT_GO_ON)
        return code;
    if (words > 0) {
        r.text = argv[1];
        r.setup.sentences = 1;
        r.setup.own_text = true;
    }
    r.setup.text = r.text;
    code = words > 1 ? args_wrong("heads: one sentence at a time, not %d", words) : check(&r);
    if (code == EXIT_GO_ON)
        code = check_unused(&r, &command);
    if (code == EXIT_GO_ON)
        code = check_alignments(&r, &command);
    if (code == EXIT_GO_ON && r.alignments != NULL) {
        free(joined);
        return align(&r, args_given(&command, "sentences"));
    }
    if (code == EXIT_GO_ON)
        code = heads_setup_open(&r.setup, "heads");
    if (code == EXIT_GO_ON)
        code = heads_setup_refuse(&r.setup, &command, "gold split seed");
    if (code == EXIT_GO_ON)
        code = check_pictures(&r, &command);
    if (code == EXIT_GO_ON)
        code = check_importance(&r);
    r.setup.session.subject.words.pieces = r.pieces;
    if (code == EXIT_GO_ON)
        code = run(&r);
    heads_setup_close(&r.setup);
    free(joined);
    return code;
}
