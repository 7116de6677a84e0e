/* SPDX-License-Identifier: MIT */
/* The UTF-8 decoder (base/utf8.h), over every character and every sequence of up to three bytes. */
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "support/test.h"

static void every_character_round_trips(void)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        char bytes[5] = "";
        uint32_t again = 0;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        const size_t written = utf8_encode(bytes, c);
        if (!CHECK(utf8_decode(bytes, written, &again) == written && again == c,
                   "U+%04X: %zu bytes, read back as U+%04X", c, written, again))
            return;
        for (size_t length = 1; length < written; length++)
            CHECK(utf8_decode(bytes, length, &again) == 0, "U+%04X cut to %zu bytes", c, length);
    }
}

/* Counted, so that no sequence but the shortest form of a character is accepted: 128, 1920 and
 * 63488 less 2048 surrogates. */
static void nothing_else_is_accepted(void)
{
    long long accepted[5] = {0};
    for (uint32_t n = 0; n < 0x1000000; n++) {
        const char bytes[3] = {(char)(n >> 16), (char)(n >> 8), (char)n};
        uint32_t c;
        accepted[utf8_decode(bytes, 3, &c)]++;
    }
    CHECK(accepted[1] == 128LL * 65536, "%lld of one byte", accepted[1] / 65536);
    CHECK(accepted[2] == 1920LL * 256, "%lld of two bytes", accepted[2] / 256);
    CHECK(accepted[3] == 63488 - 2048, "%lld of three bytes", accepted[3]);
}

static void long_and_late_forms_are_refused(void)
{
    static const char *const wrong[] = {"\xc0\x80",         "\xe0\x80\x80",     "\xf0\x80\x80\x80",
                                        "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",     "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80", "\xf0\x90\x80\x41", "\x80"};
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
        uint32_t c = 0;
        CHECK(utf8_decode(wrong[n], strlen(wrong[n]), &c) == 0, "case %zu is U+%04X", n, c);
        CHECK(text_decode(wrong[n], &c) == 1 && c == 0xfffd, "case %zu as text: U+%04X", n, c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_character_round_trips);
    RUN(nothing_else_is_accepted);
    RUN(long_and_late_forms_are_refused);
    return test_end();
}
