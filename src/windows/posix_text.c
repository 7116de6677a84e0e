/* SPDX-License-Identifier: MIT */
/* Functions on strings that mingw-w64 does not have, or whose memory it allocates itself. */
#include "windows/posix.h"

char *mhaw_strndup(const char *text, size_t length)
{
    const size_t used = strnlen(text, length);
    char *const copy = malloc(used + 1);
    if (copy) {
        memcpy(copy, text, used);
        copy[used] = '\0';
    }
    return copy;
}

char *mhaw_strdup(const char *text)
{
    return mhaw_strndup(text, strlen(text));
}

char *mhaw_stpcpy(char *to, const char *from)
{
    const size_t length = strlen(from);
    memcpy(to, from, length + 1);
    return to + length;
}

int mhaw_strerror_r(int error, char *text, size_t size)
{
    return strerror_s(text, size, error);
}

int mhaw_vasprintf(char **text, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    return *text ? vsnprintf(*text, (size_t)length + 1, format, list) : -1;
}

locale_t mhaw_newlocale(int mask, const char *name, locale_t base)
{
    (void)mask;
    (void)base;
    return strcmp(name, "C") == 0 ? "C" : NULL;
}

void mhaw_freelocale(locale_t locale)
{
    (void)locale;
}

double mhaw_strtod_l(const char *text, char **end, locale_t locale)
{
    (void)locale;
    return strtod(text, end);
}
