/* SPDX-License-Identifier: MIT */
/* Numbers of a sentence that its translation lacks (unsure_translation.h). */
#include "heads/unsure_translation.h"

#include <string.h>

/* A longer number is compared by its first digits. */
enum { DIGITS_MAX = LOST_NUMBER_MAX - 1, DIGITS_LEAST = 2 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes of one separator of digits at `text`: a point, a comma, a blank or one of the two blanks of
 * UTF-8 that do not break a line; 0: there is none. */
static size_t separator(const char *text)
{
    if (strchr(",. ", text[0]) != NULL)
        return text[0] != '\0';
    if (strncmp(text, "\xc2\xa0", 2) == 0)
        return 2;
    return strncmp(text, "\xe2\x80\xaf", 3) == 0 ? 3 : 0;
}

/* Copies a number of `text`, from its first digit on. `whole`: with the digits behind separators.
 * Returns what follows it. */
static const char *read_number(const char *text, bool whole, char digits[LOST_NUMBER_MAX])
{
    size_t count = 0;
    while (is_digit(*text)) {
        if (count < DIGITS_MAX)
            digits[count++] = *text;
        text++;
        const size_t skip = whole && !is_digit(*text) ? separator(text) : 0;
        if (skip > 0 && is_digit(text[skip]))
            text += skip;
    }
    digits[count] = '\0';
    return text;
}

/* Is one of the numbers of `text` this one? */
static bool has_number(const char *text, const char *number, bool whole)
{
    char digits[LOST_NUMBER_MAX];
    while (*text != '\0') {
        if (!is_digit(*text)) {
            text++;
            continue;
        }
        text = read_number(text, whole, digits);
        if (strcmp(digits, number) == 0)
            return true;
    }
    return false;
}

/* Are all digits of the number at `text` in the target, as one number or part by part? */
static bool keeps_number(const char *text, const char *end, const char *target)
{
    char digits[LOST_NUMBER_MAX];
    read_number(text, true, digits);
    if (strlen(digits) < DIGITS_LEAST || has_number(target, digits, true))
        return true;
    while (text < end) {
        if (!is_digit(*text)) {
            text++;
            continue;
        }
        text = read_number(text, false, digits);
        if (!has_number(target, digits, false))
            return false;
    }
    return true;
}

bool unsure_lost_number(const char *source, const char *target, char number[LOST_NUMBER_MAX])
{
    char digits[LOST_NUMBER_MAX];
    while (*source != '\0') {
        if (!is_digit(*source)) {
            source++;
            continue;
        }
        const char *const end = read_number(source, true, digits);
        if (!keeps_number(source, end, target)) {
            memcpy(number, digits, sizeof digits);
            return true;
        }
        source = end;
    }
    number[0] = '\0';
    return false;
}
