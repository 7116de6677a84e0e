/* SPDX-License-Identifier: MIT */
/* The tables of valid and invalid GGUF files, written as the bytes that follow the header, and the
 * bytes of a whole file. */
#include "support/gguf_cases.h"

#include <stdlib.h>
#include <string.h>

/* Numbers whose other bytes are 0, and the largest ones. */
#define N4(low) low "\0\0\0"
#define N8(low) low "\0\0\0\0\0\0\0"
#define MAX4 "\377\377\377\377"
#define MAX8 MAX4 MAX4
#define HIGH8 "\0\0\0\0\0\0\0\200" /* 2^63 */
#define BIT32 "\0\0\0\0\1\0\0\0"   /* 2^32 */
#define BIT61 "\0\0\0\0\0\0\0\40"  /* 2^61 */

#define U8 N4("\0")
#define U32 N4("\4")
#define BOOL N4("\7")
#define STRING N4("\10")
#define ARRAY N4("\11")
#define U64 N4("\12")

#define F32 N4("\0")
#define Q4_0 N4("\2")

/* The pair "k" = 5, and a tensor of one letter with one axis. */
#define KEY(letter) N8("\1") letter
#define PAIR(letter) KEY(letter) U8 "\5"
#define NAME(letter) N8("\1") letter
#define VECTOR(letter, extent, type, offset) NAME(letter) N4("\1") extent type offset

#define EIGHT "abcdefgh"
#define NAME_64 EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT
#define ALIGNMENT_KEY N8("\21") "general.alignment"

#define CASE(name, version, tensors, pairs, body, alignment, data, says)             \
    {                                                                                \
        name, version, tensors, pairs, body, sizeof(body) - 1, alignment, data, says \
    }
#define PAIRS(name, pairs, body, says) CASE(name, 3, 0, pairs, body, 32, 0, says)
#define TENSORS(name, tensors, body, data, says) CASE(name, 3, tensors, 0, body, 32, data, says)

const gguf_case gguf_invalid[] = {
    CASE("version 0", 0, 0, 0, "", 32, 0, "GGUF version 0 is unknown"),
    CASE("version 1", 1, 0, 0, "", 32, 0, "GGUF version 1 is not supported"),
    CASE("version 4", 4, 0, 0, "", 32, 0, "GGUF version 4 is unknown"),
    CASE("big-endian", 0x03000000, 0, 0, "", 32, 0, "a big-endian GGUF file"),

    /* Keys */
    PAIRS("2^64 - 1 pairs", UINT64_MAX, PAIR("k"), "announces 18446744073709551615 keys"),
    PAIRS("two pairs in the bytes of one", 2, KEY("k") ARRAY U8 N8("\0"), "announces 2 keys"),
    PAIRS("one pair too many", 3, PAIR("k") PAIR("l") KEY("m") U8, "within the value"),
    PAIRS("key of 2^64 - 1 bytes", 1, MAX8 "kkkkkkkk", "ends within key 0"),
    PAIRS("key up to the end", 1, N8("\40") "kkkkkkkkkkkk", "ends within key 0"),
    PAIRS("key with a zero byte", 1, KEY("\0") U8 "\5", "key 0 is not UTF-8"),
    PAIRS("key that is not UTF-8", 2, PAIR("k") KEY("\377") U8 "\5", "key 1 is not UTF-8"),
    PAIRS("key twice", 3, PAIR("k") PAIR("l") PAIR("k"), "the key \"k\" occurs twice"),

    /* Values */
    PAIRS("type 13", 1, KEY("k") N4("\15") "\5\5\5\5", "the unknown type 13"),
    PAIRS("type 2^32 - 1", 1, KEY("k") MAX4 "\5\5\5\5", "the unknown type 4294967295"),
    PAIRS("value cut off", 1, KEY("k") U64 "\5\5\5", "within the value of the key \"k\""),
    PAIRS("string of 2^64 - 1 bytes", 1, KEY("k") STRING MAX8 "abc", "within the value"),
    PAIRS("string up to the end", 1, KEY("k") STRING N8("\4") "abc", "within the value"),
    PAIRS("bool of 2", 1, KEY("k") BOOL "\2", "neither 0 nor 1"),
    PAIRS("array of bools with 2", 1, KEY("k") ARRAY BOOL N8("\3") "\1\0\2", "neither 0 nor 1"),
    PAIRS("array of type 13", 1, KEY("k") ARRAY N4("\15") N8("\1") "\5", "the unknown type 13"),
    PAIRS("array of arrays", 1, KEY("k") ARRAY ARRAY N8("\1") U8 N8("\0"), "an array of arrays"),
    PAIRS("array without its length", 1, KEY("k") ARRAY U8 "\1", "within the value"),
    PAIRS("array of 2^64 - 1 bytes", 1, KEY("k") ARRAY U8 MAX8 "abc", "within the value"),
    PAIRS("array whose bytes wrap to 0", 1, KEY("k") ARRAY U64 BIT61 "abc", "within the value"),
    PAIRS("array of 2^61 strings", 1, KEY("k") ARRAY STRING BIT61 N8("\0"), "within the value"),
    PAIRS("array of one string too many", 1, KEY("k") ARRAY STRING N8("\2") N8("\0") "abc",
          "within the value"),
    PAIRS("string of an array up to the end", 1,
          KEY("k") ARRAY STRING N8("\2") N8("\0") N8("\12") "abc", "within the value"),

    /* Alignment */
    PAIRS("alignment u64", 1, ALIGNMENT_KEY U64 N8("\40"), "general.alignment is not a u32"),
    PAIRS("alignment 0", 1, ALIGNMENT_KEY U32 N4("\0"), "general.alignment is 0, not a power"),
    PAIRS("alignment 24", 1, ALIGNMENT_KEY U32 N4("\30"), "general.alignment is 24, not a power"),

    /* Tensors */
    TENSORS("2^64 - 1 tensors", UINT64_MAX, VECTOR("t", N8("\1"), F32, N8("\0")), 4,
            "announces 18446744073709551615 tensors"),
    TENSORS("three tensors in the bytes of two", 3,
            VECTOR("s", N8("\0"), F32, N8("\0")) VECTOR("t", N8("\1"), F32, N8("\0")), 0,
            "announces 3 tensors"),
    TENSORS("list that is cut off", 2,
            NAME("t") N4("\0") F32 N8("\0") NAME("u") N4("\3") N8("\1") N8("\1"), 0,
            "within entry 1 of the list"),
    TENSORS("name of 65 bytes", 1, N8("\101") NAME_64 "x" N4("\0") F32 N8("\0"), 4,
            "has 65 bytes; 64 are allowed"),
    TENSORS("name of 2^64 - 1 bytes", 1, MAX8 "tttttttttttttttt", 4, "within entry 0"),
    TENSORS("name with a zero byte", 1, VECTOR("\0", N8("\1"), F32, N8("\0")), 4, "not UTF-8"),
    TENSORS("name that is not UTF-8", 1, VECTOR("\300", N8("\1"), F32, N8("\0")), 4, "not UTF-8"),
    TENSORS("name twice", 2,
            VECTOR("t", N8("\1"), F32, N8("\0")) VECTOR("t", N8("\1"), F32, N8("\40")), 36,
            "the tensor \"t\" occurs twice"),
    TENSORS("five axes", 1,
            NAME("t") N4("\5") N8("\1") N8("\1") N8("\1") N8("\1") N8("\1") F32 N8("\0"), 4,
            "has 5 axes; 4 are allowed"),
    TENSORS("2^32 - 1 axes", 1, NAME("t") MAX4 N8("\1") F32 N8("\0"), 4, "has 4294967295 axes"),
    TENSORS("a type that was removed", 1, VECTOR("t", N8("\1"), N4("\4"), N8("\0")), 64,
            "the unknown type 4"),
    TENSORS("the first type that is unknown", 1, VECTOR("t", N8("\1"), N4("\53"), N8("\0")), 64,
            "the unknown type 43"),
    TENSORS("type 2^32 - 1", 1, VECTOR("t", N8("\1"), MAX4, N8("\0")), 64,
            "the unknown type 4294967295"),
    TENSORS("extent 2^63", 1, VECTOR("t", HIGH8, F32, N8("\0")), 4, "\"t\" overflows"),
    TENSORS("extent 2^64 - 1", 1, VECTOR("t", MAX8, F32, N8("\0")), 4, "\"t\" overflows"),
    TENSORS("2^64 elements, wraps to 0", 1, NAME("t") N4("\2") BIT32 BIT32 F32 N8("\0"), 4,
            "\"t\" overflows"),
    TENSORS("2^63 elements", 1, NAME("t") N4("\2") BIT61 N8("\4") F32 N8("\0"), 4,
            "\"t\" overflows"),
    TENSORS("extent 2^63 after an extent of 0", 1, NAME("t") N4("\2") HIGH8 N8("\0") F32 N8("\0"),
            4, "\"t\" overflows"),
    TENSORS("2^62 elements of 4 bytes", 1, NAME("t") N4("\2") BIT61 N8("\2") F32 N8("\0"), 4,
            "\"t\" overflows"),
    TENSORS("rows that are no whole blocks", 1, VECTOR("t", N8("\41"), Q4_0, N8("\0")), 64,
            "rows of 33 elements, not a multiple of the 32 in a block of Q4_0"),
    TENSORS("rows of half a block", 1, NAME("t") N4("\2") N8("\20") N8("\4") Q4_0 N8("\0"), 64,
            "rows of 16 elements"),
    TENSORS("no axes, but blocks", 1, NAME("t") N4("\0") Q4_0 N8("\0"), 64, "rows of 1 elements"),
    TENSORS("offset that is not aligned", 1, VECTOR("t", N8("\1"), F32, N8("\4")), 64,
            "the offset 4 of the tensor \"t\" is not a multiple of the alignment 32"),
    TENSORS("one byte is missing", 1, VECTOR("t", N8("\1"), F32, N8("\0")), 3,
            "not inside of the file of 67 bytes"),
    TENSORS("offset past the end", 1, VECTOR("t", N8("\1"), F32, N8("\40")), 4, "not inside"),
    TENSORS("offset that wraps around", 1,
            VECTOR("t", N8("\1"), F32, "\300\377\377\377\377\377\377\377"), 4, "not inside"),
    TENSORS("bytes that wrap around", 1, NAME("t") N4("\1") "\0\0\0\0\0\0\0\20" N4("\33") N8("\0"),
            4, "not inside"),
    TENSORS("empty tensor past the end", 1, VECTOR("t", N8("\0"), F32, N8("\40")), 4, "not inside"),
    TENSORS("two tensors at one place", 2,
            VECTOR("t", N8("\1"), F32, N8("\0")) VECTOR("u", N8("\1"), F32, N8("\0")), 4,
            "the tensors \"t\" and \"u\" overlap"),
    TENSORS("a tensor that begins inside of another", 3,
            VECTOR("a", N8("\1"), F32, N8("\100")) VECTOR("t", N8("\11"), F32, N8("\0"))
                VECTOR("u", N8("\1"), F32, N8("\40")),
            68, "the tensors \"t\" and \"u\" overlap"),
};
const size_t gguf_invalid_count = sizeof gguf_invalid / sizeof gguf_invalid[0];

const gguf_case gguf_valid[] = {
    CASE("nothing", 3, 0, 0, "", 1, 0, NULL),
    CASE("version 2", 2, 1, 1, PAIR("k") VECTOR("t", N8("\1"), F32, N8("\0")), 32, 4, NULL),
    CASE("empty key", 3, 0, 1, N8("\0") U8 "\5", 1, 0, NULL),
    CASE("empty arrays", 3, 0, 2, KEY("k") ARRAY U8 N8("\0") KEY("l") ARRAY STRING N8("\0"), 1, 0,
         NULL),
    CASE("alignment 1", 3, 2, 1,
         ALIGNMENT_KEY U32 N4("\1") VECTOR("t", N8("\1"), F32, N8("\0"))
             VECTOR("u", N8("\1"), F32, N8("\5")),
         1, 9, NULL),
    CASE("alignment 64", 3, 1, 1,
         ALIGNMENT_KEY U32 N4("\100") VECTOR("t", N8("\1"), F32, N8("\100")), 64, 68, NULL),
    TENSORS("name of 64 bytes", 1, N8("\100") NAME_64 N4("\0") F32 N8("\0"), 4, NULL),
    TENSORS("tensors in reverse, with a gap", 2,
            VECTOR("t", N8("\1"), F32, N8("\100")) VECTOR("u", N8("\1"), F32, N8("\0")), 68, NULL),
    TENSORS("empty tensors at one place", 3,
            VECTOR("t", N8("\0"), F32, N8("\0")) VECTOR("u", N8("\0"), F32, N8("\0"))
                VECTOR("v", N8("\1"), F32, N8("\0")),
            4, NULL),
    TENSORS("bytes after the tensors", 1, VECTOR("t", N8("\1"), F32, N8("\0")), 32, NULL),
};
const size_t gguf_valid_count = sizeof gguf_valid / sizeof gguf_valid[0];

const gguf_case gguf_sample = CASE(
    "sample", 3, 5, 18,
    N8("\2") "u8" U8 "\377" N8("\2") "i8" N4("\1") "\376" N8("\3") "u16" N4("\2") "\376\377" N8("\3") "i16" N4("\3") "\376\377" N8(
        "\3") "u32" U32
              "\376\377\377\377" N8("\3") "i32" N4("\5") "\376\377\377\377" N8("\3") "f32" N4(
                  "\6") "\0\0\300\277" N8("\4") "true" BOOL "\1" N8("\5") "false" BOOL "\0" N8("\6") "string" STRING
                  N8("\5") "h\303\251l\0" N8("\3") "u64" U64 N8("\11") N8("\4") "huge" U64 MAX8
                      N8("\3") "i64" N4("\13") "\376\377\377\377\377\377\377\377" N8("\3") "f64" N4(
                          "\14") "\0\0\0\0\0\0\4\300" N8("\5") "words" ARRAY STRING N8("\4")
                          N8("\3") "one" N8("\0") N8("\2") "\303\251" N8("\1") "z" N8(
                              "\6") "scores" ARRAY N4("\6")
                              N8("\3") "\0\0\200\77"
                                       "\0\0\0\300"
                                       "\0\0\0\77" N8("\5") "types" ARRAY N4("\5") N8(
                                           "\2") "\1\0\0\0"
                                                 "\377\377\377\377" N8("\5") "flags" ARRAY BOOL N8(
                                                     "\3") "\1\0\1" N8("\12") "token.embd" N4("\2")
                                                     N8("\3") N8("\2") F32 N8("\0") N8(
                                                         "\6") "blocks" N4("\2") N8("\100") N8("\2")
                                                         Q4_0 N8("\40") N8("\5") "cubes" N4("\4")
                                                             N8("\1") N8("\2") N8("\3") N8("\1")
                                                                 N4("\1") N8("\200") N8(
                                                                     "\5") "bytes" N4("\1") N8("\7")
                                                                     N4("\30") N8("\240")
                                                                         N8("\6") "scalar" N4("\0")
                                                                             N4("\34") N8("\300"),
    32, 200, NULL);

static void put_number(unsigned char *at, uint64_t value, int size)
{
    for (int n = 0; n < size; n++)
        at[n] = (unsigned char)(value >> 8 * n);
}

unsigned char *gguf_case_bytes(const gguf_case *c, size_t *size)
{
    static const char magic[] = {'G', 'G', 'U', 'F'};
    const size_t end = 24 + c->body_length;
    /* A file without tensors ends with its body. */
    const size_t begin = c->data ? (end + c->alignment - 1) / c->alignment * c->alignment : end;
    unsigned char *const bytes = calloc(begin + c->data, 1);
    memcpy(bytes, magic, sizeof magic);
    put_number(bytes + 4, c->version, 4);
    put_number(bytes + 8, c->tensors, 8);
    put_number(bytes + 16, c->pairs, 8);
    memcpy(bytes + 24, c->body, c->body_length);
    for (size_t n = 0; n < c->data; n++)
        bytes[begin + n] = (unsigned char)(7 * n);
    *size = begin + c->data;
    return bytes;
}
