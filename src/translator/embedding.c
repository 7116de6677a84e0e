/* SPDX-License-Identifier: MIT */
/* The parts of a transformer that are not products: embedding, position codes, layer norm. */
#include <math.h>
#include <string.h>

#include "translator/row_math.h"
#include "translator/transformer.h"

/* The rate of a column is computed by repeated multiplication; computing it in another way would
 * change the bits of every result. */
void transformer_positions(const transformer_config *config, int first, int count, float *codes)
{
    const int width = config->width;
    const bool halves = config->form == FORM_MARIAN;
    const double step = pow(10000.0, -2.0 / width);
    double rate = 1.0;
    for (int c = 0; c < width; c += 2) {
        const int sine = halves ? c / 2 : c, cosine = halves ? width / 2 + sine : c + 1;
        for (int n = 0; n < count; n++) {
            float *const code = codes + (ptrdiff_t)n * width;
            code[sine] = (float)sin((first + n) * rate);
            code[cosine] = (float)cos((first + n) * rate);
        }
        rate *= step;
    }
}

void transformer_vision_codes(const transformer_config *config, float *codes)
{
    const vision_shape *const v = &config->vision;
    const int width = config->width, quarter = width / 4, across = vision_across(v);
    const double step = pow(10000.0, -1.0 / quarter);
    memset(codes, 0, (size_t)vision_marks(v) * (size_t)width * sizeof *codes);
    double rate = 1.0;
    for (int c = 0; c < quarter; c++, rate *= step)
        for (int n = 0; n < across * across; n++) {
            float *const code = codes + (ptrdiff_t)(n + vision_marks(v)) * width;
            const double row = n / across, column = n % across;
            code[c] = (float)sin(row * rate);
            code[quarter + c] = (float)cos(row * rate);
            code[2 * quarter + c] = (float)sin(column * rate);
            code[3 * quarter + c] = (float)cos(column * rate);
        }
}

void transformer_embed(const transformer_config *config, const float *embedding, const int *words,
                       const int *positions, ptrdiff_t rows, float *x)
{
    const int width = config->width;
    const float scale = sqrtf((float)width);
    for (ptrdiff_t row = 0; row < rows; row++) {
        float *const to = x + row * width;
        transformer_positions(config, positions[row], 1, to);
        row_embed(embedding + (ptrdiff_t)words[row] * width, scale, to, width, to);
    }
}

typedef struct norm_pass {
    const float *x, *weight, *bias;
    float *y, *stats;
    ptrdiff_t rows;
    int width;
} norm_pass;

enum { NORM_ROWS = 32 };

static void norm_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const norm_pass *const pass = arg;
    const ptrdiff_t first = number * NORM_ROWS, left = pass->rows - first;
    for (ptrdiff_t row = first; row < first + (left < NORM_ROWS ? left : NORM_ROWS); row++) {
        float unused[2];
        row_norm(pass->x + row * pass->width, pass->width, pass->weight, pass->bias,
                 pass->y + row * pass->width, pass->stats ? pass->stats + 2 * row : unused);
    }
}

void transformer_norm(const float *x, ptrdiff_t rows, int width, const float *weight,
                      const float *bias, float *y, float *stats, mha_pool *pool)
{
    norm_pass pass = {x, weight, bias, y, stats, rows, width};
    mha_pool_run(pool, (rows + NORM_ROWS - 1) / NORM_ROWS, norm_task, &pass);
}
