/* SPDX-License-Identifier: MIT */
/* Base64, in which files of text hold bytes. */
#ifndef TEXT_BASE64_H
#define TEXT_BASE64_H

#include <mha/mha.h>

/* The bytes, which the caller frees. MHA_ERR_FORMAT: the text is not base64. */
mha_status base64_decode(const char *text, size_t text_length, unsigned char **bytes,
                         size_t *length);

#endif
