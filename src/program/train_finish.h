/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRAIN_FINISH_H
#define PROGRAM_TRAIN_FINISH_H

#include "program/train_loop.h"
#include "program/train_request.h"

/* Writes the model of a finished training and deletes its checkpoint; prints its size, validation
 * and accuracy. Returns an exit code, after a message on stderr if it failed. */
int train_finish(const train_request *request, const train_loop_job *job, mha_pool *pool);

#endif
