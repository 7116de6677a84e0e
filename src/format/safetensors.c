/* SPDX-License-Identifier: MIT */
/* Safetensors: the table of element types, sizes of tensors, and messages of errors. */
#include "format/safetensors_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/replace_file.h"

/* ----------------------------------------------------------------- types ----- */

static const struct {
    const char *name;
    unsigned bits;
} types[SAFETENSORS_TYPES] = {
    [SAFETENSORS_BOOL] = {"BOOL", 8},
    [SAFETENSORS_F4] = {"F4", 4},
    [SAFETENSORS_F6_E2M3] = {"F6_E2M3", 6},
    [SAFETENSORS_F6_E3M2] = {"F6_E3M2", 6},
    [SAFETENSORS_U8] = {"U8", 8},
    [SAFETENSORS_I8] = {"I8", 8},
    [SAFETENSORS_F8_E5M2] = {"F8_E5M2", 8},
    [SAFETENSORS_F8_E4M3] = {"F8_E4M3", 8},
    [SAFETENSORS_F8_E8M0] = {"F8_E8M0", 8},
    [SAFETENSORS_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [SAFETENSORS_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [SAFETENSORS_I16] = {"I16", 16},
    [SAFETENSORS_U16] = {"U16", 16},
    [SAFETENSORS_F16] = {"F16", 16},
    [SAFETENSORS_BF16] = {"BF16", 16},
    [SAFETENSORS_I32] = {"I32", 32},
    [SAFETENSORS_U32] = {"U32", 32},
    [SAFETENSORS_F32] = {"F32", 32},
    [SAFETENSORS_C64] = {"C64", 64},
    [SAFETENSORS_F64] = {"F64", 64},
    [SAFETENSORS_I64] = {"I64", 64},
    [SAFETENSORS_U64] = {"U64", 64},
};

const char *safetensors_type_name(safetensors_type type)
{
    return types[type].name;
}

unsigned safetensors_type_bits(safetensors_type type)
{
    return types[type].bits;
}

bool safetensors_type_find(const char *name, safetensors_type *type)
{
    for (int n = 0; n < SAFETENSORS_TYPES; n++)
        if (strcmp(name, types[n].name) == 0) {
            *type = (safetensors_type)n;
            return true;
        }
    return false;
}

mha_status safetensors_bytes(safetensors_type type, size_t rank, const uint64_t *shape,
                             uint64_t *bytes)
{
    uint64_t count = 1;
    for (size_t n = 0; n < rank; n++)
        if (__builtin_mul_overflow(count, shape[n], &count))
            return MHA_ERR_OVERFLOW;
    if (__builtin_mul_overflow(count, (uint64_t)types[type].bits, &count))
        return MHA_ERR_OVERFLOW;
    *bytes = count / 8;
    return count % 8 == 0 ? MHA_OK : MHA_ERR_SHAPE;
}

void safetensors_swap(safetensors_type type, void *data, size_t bytes)
{
    /* A complex number is two f32, and each is swapped on its own. */
    const unsigned bits = type == SAFETENSORS_C64 ? 32 : types[type].bits;
    const size_t size = bits > 8 ? bits / 8 : 1;
    mhai_file_swap(data, size, bytes / size);
}

/* -------------------------------------------------------------- messages ----- */

mha_status safetensors_fail(const safetensors_report *report, mha_status status, const char *format,
                            ...)
{
    if (!report->message || report->size == 0)
        return status;
    const int length = snprintf(report->message, report->size, "%s: ", report->path);
    if (length < 0 || (size_t)length >= report->size)
        return status;
    va_list list;
    va_start(list, format);
    vsnprintf(report->message + length, report->size - (size_t)length, format, list);
    va_end(list);
    return status;
}

mha_status safetensors_fail_file(const safetensors_report *report, const char *done, int error)
{
    char reason[128] = "";
    if (strerror_r(error, reason, sizeof reason))
        snprintf(reason, sizeof reason, "error %d", error);
    return safetensors_fail(report, MHA_ERR_FILE, "cannot be %s: %s", done, reason);
}

safetensors_shown safetensors_show(const char *name)
{
    safetensors_shown shown;
    const size_t room = sizeof shown.text - 4;
    size_t used = 0;
    for (; used < room && name[used]; used++) {
        const unsigned char c = (unsigned char)name[used];
        /* U+0080 to U+009F, encoded as C2 80 to C2 9F, are control characters too. */
        const bool control =
            c < 0x20 || c == 0x7f || (used && c < 0xa0 && name[used - 1] == '\xc2');
        shown.text[used] = control ? '?' : (char)c;
        if (control && c >= 0x80)
            shown.text[used - 1] = '?';
    }
    const bool cut = name[used] != '\0';
    if (cut)
        while (used > 0 && (name[used] & 0xc0) == 0x80) /* do not cut within a character */
            used--;
    memcpy(shown.text + used, cut ? "..." : "", cut ? 4 : 1);
    return shown;
}
