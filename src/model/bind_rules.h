/* SPDX-License-Identifier: MIT */
/* Short forms for the tables of bind_*.c. */
#ifndef MODEL_BIND_RULES_H
#define MODEL_BIND_RULES_H

#include "model/bind.h"

#define IN_LAYER(member) SCOPE_LAYER, offsetof(bound_layer, member)
#define IN_STACK(member) SCOPE_STACK, offsetof(bound_stack, member)
#define IN_MODEL(member) SCOPE_MODEL, offsetof(model_binding, member)

/* PLACE is one of the three above, names a string, outputs and inputs without EXTENT_. */
#define MATRIX_(scope_, at_, names_, outputs_, inputs_, flags_)                                 \
    {                                                                                           \
        scope_, FORM_MATRIX, at_, names_, EXTENT_##outputs_, EXTENT_##inputs_, flags_, PART_ALL \
    }
#define MATRIX(...) MATRIX_(__VA_ARGS__)
#define VECTOR_(scope_, at_, names_, count_, flags_)                                    \
    {                                                                                   \
        scope_, FORM_VECTOR, at_, names_, EXTENT_##count_, EXTENT_ONE, flags_, PART_ALL \
    }
#define VECTOR(...) VECTOR_(__VA_ARGS__)
#define LINEAR_(scope_, at_, names_, outputs_, inputs_, flags_)                                 \
    {                                                                                           \
        scope_, FORM_LINEAR, at_, names_, EXTENT_##outputs_, EXTENT_##inputs_, flags_, PART_ALL \
    }
#define LINEAR(...) LINEAR_(__VA_ARGS__)
#define PART_(scope_, at_, names_, outputs_, part_, flags_)                                     \
    {                                                                                           \
        scope_, FORM_LINEAR, at_, names_, EXTENT_##outputs_, EXTENT_WIDTH, flags_, PART_##part_ \
    }
#define PART(...) PART_(__VA_ARGS__)
#define NORM_(scope_, at_, names_, count_, flags_)                                    \
    {                                                                                 \
        scope_, FORM_NORM, at_, names_, EXTENT_##count_, EXTENT_ONE, flags_, PART_ALL \
    }
#define NORM(...) NORM_(__VA_ARGS__)
#define RULES_END                                                              \
    {                                                                          \
        SCOPE_MODEL, FORM_VECTOR, 0, NULL, EXTENT_ANY, EXTENT_ANY, 0, PART_ALL \
    }

#endif
