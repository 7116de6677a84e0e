/* SPDX-License-Identifier: MIT */
/* Applies one row of a table of wrong arguments (fault_table.h). */
#include "support/fault_table.h"

#include <string.h>

void fault_apply(const fault *f, void *subject)
{
    char *field = (char *)subject + f->at;
    const int32_t narrow = (int32_t)f->integer;
    const float real = (float)f->real;
    char *pointer;
    uintptr_t address;
    memcpy(&pointer, field, sizeof pointer);
    memcpy(&address, field, sizeof address);
    switch (f->action) {
    case PUT_INTEGER:
        memcpy(field, f->size == 4 ? (const void *)&narrow : &f->integer, f->size);
        break;
    case PUT_REAL:
        memcpy(field, f->size == 4 ? (const void *)&real : &f->real, f->size);
        break;
    case COPY_POINTER:
        memcpy(field, (char *)subject + f->from, f->size);
        break;
    case MOVE_POINTER:
        address += (uintptr_t)f->integer; /* as a number, since it may be NULL */
        memcpy(field, &address, sizeof address);
        break;
    case POKE_ARRAY:
        memcpy(pointer + 8 * f->index, &f->integer, 8);
        break;
    }
}
