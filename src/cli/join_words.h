/* SPDX-License-Identifier: MIT */
#ifndef CLI_JOIN_WORDS_H
#define CLI_JOIN_WORDS_H

/* Words that were given without quotes become one sentence. argv[1] and on; returns how many
 * sentences there are. `joined` is for free(). */
int join_words(char **argv, int words, char **joined);

#endif
