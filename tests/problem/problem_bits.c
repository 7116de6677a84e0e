/* SPDX-License-Identifier: MIT */
/*
 * problem_bits COUNT: random problems, and for each a line with its word and hashes of the bytes of
 * its inputs and outputs. tests/wasm/check_bits.sh compares the lines of two machines. Outputs in
 * f64 are left out: they depend on the exp() of the C library.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "problem/problem.h"

enum { SEED = 19 };

/* One hash of the tensors [first, last). */
static uint64_t hash_of(const problem *p, tensor_id first, tensor_id last)
{
    uint64_t hash = 1;
    for (tensor_id id = first; id < last; id++)
        if (p->tensors[id].memory)
            hash = hash_bytes(hash | 1, (const char *)p->tensors[id].memory, p->tensors[id].bytes);
    return hash;
}

static bool print_case(uint64_t number)
{
    const problem_spec spec = problem_spec_case(SEED, number);
    char message[WORD_MESSAGE_MAX], word[WORD_TEXT_MAX];
    problem p;
    if (!problem_build(&p, &spec, message, sizeof message)) {
        fprintf(stderr, "problem_bits: %s\n", message);
        return false;
    }
    problem_reset(&p);
    const mha_status status = call_run(&p.call, NULL);
    word_print(&p.word, word, sizeof word);
    const bool f64 = p.call.shape.q_type == MHA_F64;
    printf("%" PRIu64 " %s %d %016" PRIx64 " %016" PRIx64 "\n", number, word, (int)status,
           hash_of(&p, TENSOR_Q, TENSOR_O), f64 ? 0 : hash_of(&p, TENSOR_O, TENSOR_COUNT));
    problem_free(&p);
    return true;
}

int main(int argc, char **argv)
{
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    for (uint64_t n = 0; n < count; n++)
        if (!print_case(n))
            return 1;
    return 0;
}
