/* SPDX-License-Identifier: MIT */
/*
 * Arguments of mha_merge(): wrong ones get their status code and nothing is written; unusual ones
 * that are valid are accepted. The results are tested in test_merge.c.
 */
#include "support/test.h"

#include <stdlib.h>

#include <mha/mha.h>

enum { B = 2, H = 4 };

/* A valid merge that a test spoils. */
typedef struct arguments {
    mha_shape shape;
    mha_out o, lse;
    mha_view o2, lse2;
    float memory[4 * B * H * 8];
} arguments;

static void spoil(arguments *a, int n)
{
    char *const o = a->o.data, *const lse = a->lse.data;
    switch (n) {
    case 0:
        a->o.data = NULL;
        break;
    case 1:
        a->lse.data = NULL;
        break;
    case 2:
        a->o2.data = NULL;
        break;
    case 3:
        a->lse2.data = NULL;
        break;
    case 4:
        a->shape.B = -1;
        break;
    case 5:
        a->shape.Dv = MHA_MAX_HEAD_WIDTH + 1;
        break;
    case 6:
        a->shape.H = PTRDIFF_MAX;
        break;
    case 7:
        a->o2.sb = PTRDIFF_MAX;
        break;
    case 8:
        a->shape.B = a->shape.H = a->shape.L = (ptrdiff_t)1 << 40;
        break;
    case 9:
        a->shape.o_type = MHA_I8;
        break;
    case 10:
        a->shape.o_type = (mha_dtype)17;
        break;
    case 11:
        a->o.sh = 0;
        break;
    case 12:
        a->lse.sl = 0;
        break;
    case 13:
        a->o.data = o + 1;
        break;
    case 14:
        a->lse2.data = lse + 2;
        break;
    case 15:
        a->o2.data = a->o.data;
        break;
    case 16:
        a->lse2.data = a->lse.data;
        break;
    case 17:
        a->lse.data = a->o.data;
        break;
    case 18:
        a->lse2.data = o + 8;
        break;
    default:
        a->o2.data = lse - 4;
        break;
    }
}

static const mha_status refusals[] = {
    MHA_ERR_NULL,    MHA_ERR_NULL,     MHA_ERR_NULL,     MHA_ERR_NULL,     MHA_ERR_SHAPE,
    MHA_ERR_SHAPE,   MHA_ERR_OVERFLOW, MHA_ERR_OVERFLOW, MHA_ERR_OVERFLOW, MHA_ERR_DTYPE,
    MHA_ERR_DTYPE,   MHA_ERR_STRIDE,   MHA_ERR_STRIDE,   MHA_ERR_ALIGN,    MHA_ERR_ALIGN,
    MHA_ERR_OVERLAP, MHA_ERR_OVERLAP,  MHA_ERR_OVERLAP,  MHA_ERR_OVERLAP,  MHA_ERR_OVERLAP};

static arguments *arguments_new(void)
{
    enum { L = 2, Dv = 4, COUNT = B * H * L * Dv, ROWS = B * H * L };
    arguments *const a = calloc(1, sizeof *a);
    if (!a)
        abort();
    a->shape = (mha_shape){.B = B, .H = H, .L = L, .Dv = Dv};
    a->o = mha_out_bhld(a->memory, H, L, Dv);
    a->lse = mha_out_bhld(a->memory + COUNT, H, L, 1);
    a->o2 = mha_view_bhld(a->memory + COUNT + ROWS, H, L, Dv);
    a->lse2 = mha_view_bhld(a->memory + 2 * COUNT + ROWS, H, L, 1);
    return a;
}

static mha_status arguments_merge(arguments *a)
{
    return mha_merge(&a->shape, a->o, a->lse, a->o2, a->lse2);
}

static void wrong_arguments_are_refused(void)
{
    for (int n = 0; n < (int)(sizeof refusals / sizeof refusals[0]); n++) {
        arguments *const a = arguments_new();
        for (size_t e = 0; e < sizeof a->memory / sizeof a->memory[0]; e++)
            a->memory[e] = (float)e;
        spoil(a, n);
        const mha_status status = arguments_merge(a);
        CHECK(status == refusals[n], "case %d: %s, not %s", n, mha_status_string(status),
              mha_status_string(refusals[n]));
        for (size_t e = 0; e < sizeof a->memory / sizeof a->memory[0]; e++)
            CHECK(a->memory[e] == (float)e, "case %d: element %zu was written", n, e);
        free(a);
    }
    CHECK(mha_merge(NULL, (mha_out){0}, (mha_out){0}, (mha_view){0}, (mha_view){0}) == MHA_ERR_NULL,
          "shape NULL is taken");
}

static void valid_arguments_are_taken(void)
{
    arguments *const a = arguments_new();
    CHECK(arguments_merge(a) == MHA_OK, "the call that the others spoil fails");
    a->o2.sb = a->o2.sh = a->o2.sl = 0;
    a->lse2.sb = a->lse2.sh = a->lse2.sl = 0;
    CHECK(arguments_merge(a) == MHA_OK, "a part that is broadcast is refused");
    a->shape.B = 1;
    a->o.sb = a->o2.sb = PTRDIFF_MIN;
    CHECK(arguments_merge(a) == MHA_OK, "a stride that is not used is looked at");
    free(a);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(wrong_arguments_are_refused);
    RUN(valid_arguments_are_taken);
    return test_end();
}
