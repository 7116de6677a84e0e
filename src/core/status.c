/* SPDX-License-Identifier: MIT */
/* Version, status codes and their texts, element sizes, and the messages of failed calls. */
#include "core/internal.h"

#include <stdarg.h>
#include <stdio.h>

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major.minor.patch)

int mha_version(void)
{
    return MHA_VERSION_MAJOR * 1000000 + MHA_VERSION_MINOR * 1000 + MHA_VERSION_PATCH;
}

const char *mha_version_string(void)
{
    return VERSION_TEXT(MHA_VERSION_MAJOR, MHA_VERSION_MINOR, MHA_VERSION_PATCH);
}

const char *mha_status_string(mha_status status)
{
    switch (status) {
    case MHA_OK:
        return "MHA_OK: success";
    case MHA_ERR_NULL:
        return "MHA_ERR_NULL: a required pointer is NULL";
    case MHA_ERR_STRUCT:
        return "MHA_ERR_STRUCT: the size field of a struct is not one this library knows; set it "
               "to sizeof the struct";
    case MHA_ERR_SHAPE:
        return "MHA_ERR_SHAPE: impossible shape";
    case MHA_ERR_OVERFLOW:
        return "MHA_ERR_OVERFLOW: extents and strides do not fit in memory";
    case MHA_ERR_DTYPE:
        return "MHA_ERR_DTYPE: unknown or unsupported combination of element types";
    case MHA_ERR_STRIDE:
        return "MHA_ERR_STRIDE: two elements of an output share an address";
    case MHA_ERR_ALIGN:
        return "MHA_ERR_ALIGN: a pointer is not aligned to its element type";
    case MHA_ERR_OVERLAP:
        return "MHA_ERR_OVERLAP: an output overlaps other memory of the call";
    case MHA_ERR_SCALE:
        return "MHA_ERR_SCALE: scale, base or eps is not a usable number";
    case MHA_ERR_SOFTCAP:
        return "MHA_ERR_SOFTCAP: softcap is negative or not finite";
    case MHA_ERR_FLAG:
        return "MHA_ERR_FLAG: unknown flag or enum value, or settings that do not go together";
    case MHA_ERR_WINDOW:
        return "MHA_ERR_WINDOW: a window edge is below -1, or a ring has dropped what it needs";
    case MHA_ERR_POSITION:
        return "MHA_ERR_POSITION: query positions are not given although L != S, or given where a "
               "cache decides";
    case MHA_ERR_LENGTH:
        return "MHA_ERR_LENGTH: a length, start, offset or range of tokens is invalid";
    case MHA_ERR_INDEX:
        return "MHA_ERR_INDEX: a chosen head or row does not exist";
    case MHA_ERR_WORKSPACE:
        return "MHA_ERR_WORKSPACE: the workspace is too small";
    case MHA_ERR_PLAN:
        return "MHA_ERR_PLAN: the plan does not cover what this run requests";
    case MHA_ERR_MEMORY:
        return "MHA_ERR_MEMORY: out of memory";
    case MHA_ERR_THREAD:
        return "MHA_ERR_THREAD: threads cannot be created, or more than MHA_MAX_THREADS were "
               "requested";
    case MHA_ERR_ISA:
        return "MHA_ERR_ISA: MHA_ISA names an instruction set that cannot run here";
    case MHA_ERR_FULL:
        return "MHA_ERR_FULL: the cache has no room for these tokens";
    case MHA_ERR_SEQUENCE:
        return "MHA_ERR_SEQUENCE: the cache has no such sequence, or it is listed twice";
    case MHA_ERR_FILE:
        return "MHA_ERR_FILE: a file cannot be opened, read or written";
    case MHA_ERR_DROPOUT:
        return "MHA_ERR_DROPOUT: dropout is not a number in [0, 1), or a first number is negative";
    case MHA_ERR_MPI:
        return "MHA_ERR_MPI: MPI reported an error, or a rank is gone";
    case MHA_ERR_TIMEOUT:
        return "MHA_ERR_TIMEOUT: a rank did not answer in time";
    case MHA_ERR_AGREE:
        return "MHA_ERR_AGREE: the ranks of a group were given different arguments";
    case MHA_ERR_FORMAT:
        return "MHA_ERR_FORMAT: a file is damaged or of another kind";
    }
    return "unknown status";
}

const char *mhai_dtype_name(mha_dtype dtype)
{
    static const char *const names[] = {"MHA_F32",  "MHA_F16",  "MHA_BF16", "MHA_F64",
                                        "MHA_I8",   "MHA_Q8_0", "MHA_Q4_0", "MHA_Q4_1",
                                        "MHA_Q4_K", "MHA_Q5_K", "MHA_Q6_K"};
    return (unsigned)dtype <= MHA_Q6_K ? names[dtype] : "no mha_dtype";
}

size_t mha_dtype_size(mha_dtype dtype)
{
    switch (dtype) {
    case MHA_F32:
        return 4;
    case MHA_F16:
        return 2;
    case MHA_BF16:
        return 2;
    case MHA_F64:
        return 8;
    case MHA_I8:
        return 1;
    default:
        return 0;
    }
}

/* -------------------------------------------------------------- messages ----- */

static void write_message(char *message, size_t size, const char *format, va_list list)
{
    if (message && size > 0)
        vsnprintf(message, size, format, list);
}

mha_status mhai_fail(const mha_options *options, mha_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    write_message(options->message, options->message_size, format, list);
    va_end(list);
    return status;
}

mha_status mhai_fail_to(char *message, size_t size, mha_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    write_message(message, size, format, list);
    va_end(list);
    return status;
}
