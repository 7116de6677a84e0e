/* SPDX-License-Identifier: MIT */
/*
 * The answers for the view Study: an experiment on one text (heads/probe.h), as JSON.
 *
 *      {"format": "mha-probe-1", "text": "the cat sleeps",
 *       "source": ["the", "cat", "sleeps", "<end>"], "target": ["<begin>", "le", "chat", "dort"],
 *       "written": {"before": "le chat dort", "after": "le chien dort"},
 *       "rows": [{"word": "le", "number": 17, "before": -0.01, "after": -0.02,
 *                 "likely_before": [{"word": "le", "number": 17, "p": 0.99}, ...],
 *                 "likely_after": [...]}, ...]}
 *
 * A row is a token that the model predicts: `before` and `after` are its log-probabilities, with 17
 * digits, in the whole model and in the one that is interfered with; both read the target that the
 * whole model writes, or the given one. A row whose right token is not known has no word. An
 * encoder, which predicts no tokens, has "turned" instead of rows: 1 - the cosine of the two
 * vectors of the text. A classifier of pictures has
 * "classes_before" and "classes_after" too, the probabilities of all classes. "written" is there if
 * the model translates and something is changed.
 *
 * With a row in the request, one of its words is taken apart, in the model that is interfered with
 * (heads/word_shares.h):
 *
 *      "shares": {"row": 1, "word": "chat", "number": 97, "logit": 9.1, "sum": 9.1,
 *                 "heads": [{"kind": "cross", "layer": 1, "head": 2, "share": 0.7}, ...],
 *                 "others": [{"name": "embedding", "share": 0.1},
 *                            {"name": "feed-forward", "layer": 1, "share": 1.9}, ...]}
 *
 * or, if that cannot be done for this model, "no_shares" has the reason. With "lens" the answer has
 * what each layer would say (heads/logit_lens.h), also in the model that is interfered with:
 *
 *      "lens": [[{"expected": -8.1, "likely": [{"word": "de", "number": 3, "p": 0.2}, ...]}, ...]]
 *
 * for each row a list from the embedding to the output; "no_lens" has the reason if it takes too
 * long.
 */
#ifndef PAGE_PROBE_H
#define PAGE_PROBE_H

#include "page/serve_request.h"

/* With "patch" the chosen heads have the outputs, before W_O, that they have in the whole model on
 * another text (heads/head_patches.h), and "patch" has what was read there:
 *
 *      "patch": {"text": "the dog sleeps", "source": [...], "target": [...]}
 *
 * The decoder of a model that translates reads the same target in both, unless "to" names another
 * one. If both targets have the same tokens, every row has "second": the log-probability of its
 * word in the whole model on the other text. */

enum { PROBE_LIKELY = 5 };   /* words listed of each row */
#define PROBE_LENS_COST 2e10 /* multiplications that a lens may take */

/* The JSON, for free(). NULL, with a message: the text cannot be read, a word to hide does not
 * exist, no word would be left, there is no such row or word, or out of memory. */
char *page_probe_json(const subject *model, const serve_request *request, mha_pool *pool,
                      char message[SUBJECT_MESSAGE_MAX]);

#endif
