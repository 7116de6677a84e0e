/* SPDX-License-Identifier: MIT */
/* Numbers heads: kind by kind, layer by layer. Reports and pages name them by kind, layer and head.
 */
#include "heads/head_names.h"

#include <stdio.h>

head_shape head_shape_of(const transformer_config *config)
{
    head_shape shape = {.heads = config->heads, .width = config->width / config->heads};
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        shape.layers[kind] = attention_kind_layers(config, (attention_kind)kind);
    return shape;
}

int head_count(head_shape shape)
{
    int layers = 0;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        layers += shape.layers[kind];
    return layers * shape.heads;
}

head_name head_at(head_shape shape, int number)
{
    int kind = 0;
    for (;; kind++) {
        const int here = shape.layers[kind] * shape.heads;
        if (number < here)
            break;
        number -= here;
    }
    return (head_name){(attention_kind)kind, number / shape.heads, number % shape.heads};
}

int head_number(head_shape shape, head_name name)
{
    int layers = name.layer;
    for (int kind = 0; kind < (int)name.kind; kind++)
        layers += shape.layers[kind];
    return layers * shape.heads + name.head;
}

void head_label(head_name name, char label[HEAD_LABEL_MAX])
{
    snprintf(label, HEAD_LABEL_MAX, "%s %d.%d", attention_kind_name(name.kind), name.layer + 1,
             name.head + 1);
}
