/* SPDX-License-Identifier: MIT */
/*
 * Tables of wrong arguments. A fault is one row: the field of a complete, valid call that it
 * changes, how, and the status that must be returned. A file that uses the macros first defines
 * FAULT_SUBJECT, the type of the struct with the call; fields are those of that struct.
 */
#ifndef MHA_FAULT_TABLE_H
#define MHA_FAULT_TABLE_H

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fault_action {
    PUT_INTEGER,  /* field = integer */
    PUT_REAL,     /* field = real */
    COPY_POINTER, /* field = the field at `from` */
    MOVE_POINTER, /* field += integer bytes */
    POKE_ARRAY    /* field, an int64_t pointer, [index] = integer */
} fault_action;

typedef struct fault {
    const char *name;
    fault_action action;
    size_t at, size, from;
    int64_t integer;
    double real;
    int index;
    unsigned kinds;    /* the calls it applies to, one bit each */
    unsigned statuses; /* the statuses that are allowed, bits 1 << -status */
} fault;

/* Changes the field. */
void fault_apply(const fault *f, void *subject);

#define IS(code) (1u << -MHA_ERR_##code)
/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers too */
#define AT(field) offsetof(FAULT_SUBJECT, field), sizeof(((FAULT_SUBJECT *)0)->field)
#define PUT(kinds, field, value, statuses)                                                      \
    {                                                                                           \
#field " = " #value, PUT_INTEGER, AT(field), 0, (int64_t)(value), 0, 0, kinds, statuses \
    }
#define REAL(kinds, field, value, statuses)                                                 \
    {                                                                                       \
#field " = " #value, PUT_REAL, AT(field), 0, 0, (double)(value), 0, kinds, statuses \
    }
#define COPY(kinds, field, other, statuses)                                                    \
    {                                                                                          \
#field " = " #other, COPY_POINTER, AT(field), offsetof(FAULT_SUBJECT, other), 0, 0, 0, \
            kinds, statuses                                                                    \
    }
#define MOVE(kinds, field, bytes)                                                       \
    {                                                                                   \
#field " += " #bytes, MOVE_POINTER, AT(field), 0, bytes, 0, 0, kinds, IS(ALIGN) \
    }
#define POKE(kinds, field, index, value, statuses)                                             \
    {                                                                                          \
#field "[" #index "] = " #value, POKE_ARRAY, AT(field), 0, (int64_t)(value), 0, index, \
            kinds, statuses                                                                    \
    }

/* A stride so large that bytes, or even elements, overflow an address. */
#define HUGE_STRIDE(kinds, field, statuses)                                             \
    PUT(kinds, field, PTRDIFF_MAX, statuses), PUT(kinds, field, PTRDIFF_MIN, statuses), \
        PUT(kinds, field, PTRDIFF_MAX / 2 + 1, statuses)
#define WRONG_TYPE(kinds, field)                                       \
    PUT(kinds, field, -1, IS(DTYPE)), PUT(kinds, field, 4, IS(DTYPE)), \
        PUT(kinds, field, INT_MAX, IS(DTYPE)), PUT(kinds, field, MHA_F64, IS(DTYPE))

#define WRONG_LENGTH(kinds, field, index, full)                                                   \
    POKE(kinds, field, index, -1, IS(LENGTH)), POKE(kinds, field, index, (full) + 1, IS(LENGTH)), \
        POKE(kinds, field, index, INT64_MAX, IS(LENGTH)),                                         \
        POKE(kinds, field, index, INT64_MIN, IS(LENGTH)),                                         \
        POKE(kinds, field, index, INT64_MAX / 8, IS(LENGTH))

#endif
