/* SPDX-License-Identifier: MIT */
/* The commands of the program. argv[0] is the command's name; each returns an exit code:
 * 0 success, 1 failure, 2 wrong usage. Results go to stdout, messages to stderr. */
#ifndef PROGRAM_COMMANDS_H
#define PROGRAM_COMMANDS_H

int command_verify(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_demo(int argc, char **argv);
int command_prove(int argc, char **argv);
int command_conv(int argc, char **argv);
int command_corpus(int argc, char **argv);
int command_scenes(int argc, char **argv);
int command_tensors(int argc, char **argv);
int command_sweep(int argc, char **argv);
int command_train(int argc, char **argv);
int command_translate(int argc, char **argv);
int command_show(int argc, char **argv);
int command_see(int argc, char **argv);
int command_heads(int argc, char **argv);
int command_ablate(int argc, char **argv);
int command_prune(int argc, char **argv);
int command_view(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_version(int argc, char **argv);
int command_embed(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_score(int argc, char **argv);
int command_tokenize(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_bleu(int argc, char **argv);

#endif
