/* SPDX-License-Identifier: MIT */
/* Changes members of a JSON file and leaves everything else as it is written. */
#ifndef FORMAT_JSON_EDIT_H
#define FORMAT_JSON_EDIT_H

#include <mha/mha.h>

/* A member of the outermost object. Keys have no characters that JSON escapes; a value is JSON. */
typedef struct json_change {
    const char *key, *value;
} json_change;

/*
 * The text of an object with these members: each replaces one of the same key, or is added at the
 * end. *result, terminated, is freed by the caller; NULL on error. `name` is for messages, and
 * `message` may be NULL. MHA_ERR_FORMAT: the text is not a JSON object.
 */
mha_status json_edit(char **result, const char *name, const char *text, size_t length,
                     const json_change *changes, size_t count, char *message, size_t message_size);

#endif
