/* SPDX-License-Identifier: MIT */
/* The tables of valid and invalid safetensors headers, and the bytes of a file with such a header.
 */
#include "support/safetensors_cases.h"

#include <stdlib.h>
#include <string.h>

/* The JSON of a tensor with this dtype, shape and offsets. */
#define T(dtype, shape, offsets) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* A file with one tensor "a". */
#define A(dtype, shape, offsets) "{\"a\":" T(dtype, shape, offsets) "}"
#define GOOD T("U8", "[4]", "[0,4]")

#define JSON_RULE "InvalidHeaderDeserialization"

/* BAD is a file that is refused. The length that a file of LENGTH states in its first 8 bytes is
 * wrong by `error`. */
#define BAD(name, header, data, rule, says) LENGTH(name, header, data, rule, says, 0)
#define LENGTH(name, header, data, rule, says, error)             \
    {                                                             \
        name, header, sizeof(header) - 1, data, error, rule, says \
    }
#define EIGHT(text) text text text text text text text text

const st_case st_invalid[] = {
    /* the length of the header */
    LENGTH("header one byte beyond the file", A("U8", "[4]", "[0,4]"), 0, "InvalidHeaderLength",
           "the file has", 1),
    LENGTH("header far beyond the file", A("U8", "[4]", "[0,4]"), 4, "InvalidHeaderLength",
           "bytes, the file has", 1000),
    LENGTH("header of the largest length in a small file", "{}", 0, "InvalidHeaderLength",
           "would have 100000000 bytes", 100000000 - 2),
    LENGTH("header one byte too large", "{}", 0, "HeaderTooLarge", "would have 100000001 bytes",
           100000001 - 2),
    LENGTH("header length of 2^63", "{}", 0, "HeaderTooLarge", "9223372036854775808",
           INT64_MAX - 1),
    LENGTH("header length of 2^64 - 1", "{}", 0, "HeaderTooLarge", "18446744073709551615", -3),
    LENGTH("header length of 2^64 - 8, wraps to 0", "{}", 0, "HeaderTooLarge",
           "18446744073709551608", -10),
    LENGTH("header shorter than its JSON", A("U8", "[4]", "[0,4]"), 4, JSON_RULE, "not JSON", -1),
    LENGTH("header longer than its JSON", A("U8", "[4]", "[0,4]"), 4, JSON_RULE,
           "more text after the value", 1),
    BAD("header without a byte", "", 0, JSON_RULE, "a value is expected"),
    BAD("header of one brace", "{", 0, JSON_RULE, "a key is expected"),
    BAD("header of spaces", "        ", 0, JSON_RULE, "a value is expected"),

    /* UTF-8 */
    BAD("byte that starts no character", "{\"\xff\":" GOOD "}", 4, "InvalidHeader", "not UTF-8"),
    BAD("character that is cut off", "{\"\xc3\":" GOOD "}", 4, "InvalidHeader", "not UTF-8"),
    BAD("character cut off by the end", "{}\xe2\x82", 0, "InvalidHeader", "not UTF-8"),
    BAD("slash in two bytes", "{\"\xc0\xaf\":" GOOD "}", 4, "InvalidHeader", "not UTF-8"),
    BAD("three bytes where two do", "{\"\xe0\x9f\xbf\":" GOOD "}", 4, "InvalidHeader", "not UTF-8"),
    BAD("four bytes where three do", "{\"\xf0\x8f\xbf\xbf\":" GOOD "}", 4, "InvalidHeader",
        "not UTF-8"),
    BAD("surrogate in UTF-8", "{\"\xed\xa0\x80\":" GOOD "}", 4, "InvalidHeader", "not UTF-8"),
    BAD("character beyond Unicode", "{\"\xf4\x90\x80\x80\":" GOOD "}", 4, "InvalidHeader",
        "not UTF-8"),
    BAD("byte order mark", "\xef\xbb\xbf{}", 0, JSON_RULE, "at byte 0"),

    /* JSON */
    BAD("object is not closed", "{\"a\":" GOOD, 4, JSON_RULE, "a comma or the end"),
    BAD("comma after the last", "{\"a\":" GOOD ",}", 4, JSON_RULE, "a key is expected"),
    BAD("comma before the first", "{,\"a\":" GOOD "}", 4, JSON_RULE, "a key is expected"),
    BAD("no comma", "{\"a\":" GOOD "\"b\":" T("U8", "[0]", "[4,4]") "}", 4, JSON_RULE,
        "a comma or the end"),
    BAD("no colon", "{\"a\"" GOOD "}", 4, JSON_RULE, "a colon is expected"),
    BAD("comment", "{/**/\"a\":" GOOD "}", 4, JSON_RULE, "a key is expected"),
    BAD("simple quotes", "{'a':" GOOD "}", 4, JSON_RULE, "a key is expected"),
    BAD("name without end", "{\"a", 0, JSON_RULE, "an unterminated string"),
    BAD("name with an escape without end", "{\"a\\", 0, JSON_RULE, "an unterminated string"),
    BAD("control character in a name", "{\"a\x1f\":" GOOD "}", 4, JSON_RULE, "a control character"),
    BAD("byte 0 in a name", "{\"a\0\":" GOOD "}", 4, JSON_RULE, "a control character"),
    BAD("escaped byte 0 in a name", "{\"a\\u0000\":" GOOD "}", 4, JSON_RULE, "\\u0000"),
    BAD("escape that is none", "{\"\\x61\":" GOOD "}", 4, JSON_RULE, "an unknown escape"),
    BAD("escape with a wrong digit", "{\"\\u006g\":" GOOD "}", 4, JSON_RULE, "four hexadecimal"),
    BAD("escape with three digits", "{\"\\u061\":" GOOD "}", 4, JSON_RULE, "four hexadecimal"),
    BAD("first half of a pair alone", "{\"\\ud83d\":" GOOD "}", 4, JSON_RULE, "surrogate"),
    BAD("second half of a pair alone", "{\"\\ude00\":" GOOD "}", 4, JSON_RULE, "surrogate"),
    BAD("pair of two first halves", "{\"\\ud83d\\ud83d\":" GOOD "}", 4, JSON_RULE, "surrogate"),
    BAD("byte 0 after the object", "{}\0", 0, JSON_RULE, "more text after"),
    BAD("form feed after the object", "{}\f", 0, JSON_RULE, "more text after"),
    BAD("second object", "{}{}", 0, JSON_RULE, "more text after"),
    BAD("65 levels", "{\"a\":{\"x\":" EIGHT("[[[[[[[") "[[[[[[[", 0, JSON_RULE,
        "more than 64 levels"),
    BAD("array as the header", "[]", 0, JSON_RULE, "the header is not an object"),
    BAD("null as the header", "null", 0, JSON_RULE, "the header is not an object"),
    BAD("text as the header", "\"{}\"", 0, JSON_RULE, "the header is not an object"),
    BAD("word that is none", "nil", 0, JSON_RULE, "a value is expected"),

    /* duplicate keys */
    BAD("tensor twice, the same", "{\"a\":" GOOD ",\"a\":" GOOD "}", 4, "DuplicateKey", "\"a\""),
    BAD("tensor twice, one after the other", "{\"a\":" GOOD ",\"a\":" T("U8", "[4]", "[4,8]") "}",
        8, "DuplicateKey", "\"a\""),
    BAD("tensor twice, once escaped", "{\"ab\":" GOOD ",\"a\\u0062\":" GOOD "}", 4, "DuplicateKey",
        "\"ab\""),
    BAD("dtype twice",
        "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
        "DuplicateKey", "dtype occurs twice"),
    BAD("shape twice",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
        "DuplicateKey", "shape occurs twice"),
    BAD("offsets twice",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"data_offsets\":[0,4]}}", 4,
        "DuplicateKey", "data_offsets occurs twice"),
    BAD("unknown field twice",
        "{\"a\":{\"x\":1,\"x\":2,\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
        "DuplicateKey", "\"x\""),
    BAD("key twice within an unknown field",
        "{\"a\":{\"x\":[{\"y\":1,\"y\":2}],\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
        4, "DuplicateKey", "\"y\""),
    BAD("metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "DuplicateKey",
        "\"__metadata__\""),
    BAD("key of the metadata twice", "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0,
        "DuplicateKey", "\"k\""),

    /* metadata */
    BAD("metadata is a text", "{\"__metadata__\":\"x\"}", 0, JSON_RULE, "not an object"),
    BAD("metadata is an array", "{\"__metadata__\":[]}", 0, JSON_RULE, "not an object"),
    BAD("metadata with a number", "{\"__metadata__\":{\"k\":1}}", 0, JSON_RULE, "is not a string"),
    BAD("metadata with null", "{\"__metadata__\":{\"k\":null}}", 0, JSON_RULE, "is not a string"),
    BAD("metadata with an object", "{\"__metadata__\":{\"k\":{}}}", 0, JSON_RULE,
        "is not a string"),
    BAD("metadata without end", "{\"__metadata__\":{\"k\":\"1\"}", 0, JSON_RULE,
        "a comma or the end"),

    /* fields */
    BAD("tensor is null", "{\"a\":null}", 0, JSON_RULE, "\"a\": not an object"),
    BAD("tensor is an array", "{\"a\":[\"U8\",[4],[0,4]]}", 4, JSON_RULE, "\"a\": not an object"),
    BAD("tensor is empty", "{\"a\":{}}", 0, JSON_RULE, "\"a\" has no dtype"),
    BAD("no dtype", "{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, JSON_RULE, "has no dtype"),
    BAD("no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, JSON_RULE,
        "has no shape"),
    BAD("no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, JSON_RULE,
        "has no data_offsets"),
    BAD("field in capitals", "{\"a\":{\"Dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
        JSON_RULE, "has no dtype"),
    BAD("dtype unknown", A("F33", "[4]", "[0,4]"), 4, JSON_RULE, "unknown dtype \"F33\""),
    BAD("dtype in small letters", A("u8", "[4]", "[0,4]"), 4, JSON_RULE, "unknown dtype \"u8\""),
    BAD("dtype with a space", A("U8 ", "[4]", "[0,4]"), 4, JSON_RULE, "unknown dtype \"U8 \""),
    BAD("dtype empty", A("", "[4]", "[0,4]"), 4, JSON_RULE, "unknown dtype \"\""),
    BAD("dtype is a number", "{\"a\":{\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
        JSON_RULE, "dtype is not a string"),

    /* shapes */
    BAD("shape is a number", A("U8", "4", "[0,4]"), 4, JSON_RULE, "shape is not an array"),
    BAD("shape is null", A("U8", "null", "[0,4]"), 4, JSON_RULE, "shape is not an array"),
    BAD("extent is negative", A("U8", "[-4]", "[0,4]"), 4, JSON_RULE, "not a whole number"),
    BAD("extent is minus zero", A("U8", "[-0]", "[0,0]"), 0, JSON_RULE, "not a whole number"),
    BAD("extent with a fraction", A("U8", "[4.0]", "[0,4]"), 4, JSON_RULE, "not a whole number"),
    BAD("extent with an exponent", A("U8", "[4e0]", "[0,4]"), 4, JSON_RULE, "not a whole number"),
    BAD("extent with a leading 0", A("U8", "[04]", "[0,4]"), 4, JSON_RULE, "a leading 0"),
    BAD("extent with a plus", A("U8", "[+4]", "[0,4]"), 4, JSON_RULE, "a value is expected"),
    BAD("extent in hexadecimal", A("U8", "[0x4]", "[0,4]"), 4, JSON_RULE, "a comma or the end"),
    BAD("extent is a text", A("U8", "[\"4\"]", "[0,4]"), 4, JSON_RULE,
        "something other than numbers"),
    BAD("extent is an array", A("U8", "[[4]]", "[0,4]"), 4, JSON_RULE,
        "something other than numbers"),
    BAD("extent of 2^64", A("U8", "[18446744073709551616]", "[0,0]"), 0, JSON_RULE,
        "not a whole number"),
    BAD("number without a digit", A("U8", "[-]", "[0,0]"), 0, JSON_RULE, "lacks a digit"),
    BAD("number with an empty fraction", A("U8", "[1.]", "[0,0]"), 0, JSON_RULE, "lacks a digit"),
    BAD("number with an empty exponent", A("U8", "[1e+]", "[0,0]"), 0, JSON_RULE, "lacks a digit"),
    BAD("elements overflow", A("U8", "[4294967296,4294967296]", "[0,0]"), 0, "ValidationOverflow",
        "2^64 bits"),
    BAD("elements overflow before a 0", A("U8", "[4294967296,4294967296,0]", "[0,0]"), 0,
        "ValidationOverflow", "2^64 bits"),
    BAD("bits overflow by one element", A("U8", "[2305843009213693952]", "[0,0]"), 0,
        "ValidationOverflow", "2^64 bits"),
    BAD("bits of f64 overflow", A("F64", "[288230376151711744]", "[0,0]"), 0, "ValidationOverflow",
        "2^64 bits"),
    BAD("as many bits as can be counted", A("U8", "[2305843009213693951]", "[0,0]"), 0,
        "TensorInvalidInfo", "2305843009213693951 bytes"),
    BAD("half a byte", A("F4", "[3]", "[0,1]"), 1, "MisalignedSlice", "4 bits"),
    BAD("three elements of six bits", A("F6_E2M3", "[3]", "[0,2]"), 2, "MisalignedSlice", "6 bits"),
    BAD("one element of six bits", A("F6_E3M2", "[]", "[0,1]"), 1, "MisalignedSlice", "6 bits"),
    BAD("one byte more than the shape", A("U8", "[4]", "[0,5]"), 5, "TensorInvalidInfo",
        "its shape has 4 bytes, its offsets 5"),
    BAD("one byte less than the shape", A("U8", "[4]", "[0,3]"), 3, "TensorInvalidInfo",
        "its shape has 4 bytes, its offsets 3"),
    BAD("single element without bytes", A("F32", "[]", "[0,0]"), 0, "TensorInvalidInfo",
        "its shape has 4 bytes"),
    BAD("empty tensor with a byte", A("F32", "[3,0]", "[0,1]"), 1, "TensorInvalidInfo",
        "its shape has 0 bytes"),

    /* offsets */
    BAD("one offset", A("U8", "[4]", "[0]"), 4, JSON_RULE, "data_offsets are not two"),
    BAD("three offsets", A("U8", "[4]", "[0,4,4]"), 4, JSON_RULE, "data_offsets are not two"),
    BAD("offsets are an object", A("U8", "[4]", "{}"), 4, JSON_RULE,
        "data_offsets is not an array"),
    BAD("offset is negative", A("U8", "[4]", "[-4,0]"), 4, JSON_RULE, "data_offsets are not two"),
    BAD("offset with a fraction", A("U8", "[4]", "[0,4.0]"), 4, JSON_RULE,
        "data_offsets are not two"),
    BAD("offset of 2^64", A("U8", "[4]", "[0,18446744073709551616]"), 4, JSON_RULE,
        "data_offsets are not two"),
    BAD("begin after the end", A("U8", "[0]", "[4,0]"), 4, "InvalidOffset", "4 to 0"),
    BAD("end before its begin", "{\"a\":" GOOD ",\"b\":" T("U8", "[0]", "[4,3]") "}", 4,
        "InvalidOffset", "4 to 3"),
    BAD("byte before the first", A("U8", "[4]", "[1,5]"), 5, "InvalidOffset", "begin at 0"),
    BAD("hole of one byte", "{\"a\":" GOOD ",\"b\":" T("U8", "[4]", "[5,9]") "}", 9,
        "InvalidOffset", "\"b\" has the bytes 5 to 9 but should begin at 4"),
    BAD("overlap of one byte", "{\"a\":" GOOD ",\"b\":" T("U8", "[4]", "[3,7]") "}", 7,
        "InvalidOffset", "\"b\" has the bytes 3 to 7 but should begin at 4"),
    BAD("two tensors, the same bytes", "{\"a\":" GOOD ",\"b\":" GOOD "}", 4, "InvalidOffset",
        "should begin at 4"),
    BAD("tensor within another", "{\"a\":" GOOD ",\"b\":" T("U8", "[2]", "[1,3]") "}", 4,
        "InvalidOffset", "1 to 3"),
    BAD("empty tensor within another", "{\"a\":" GOOD ",\"b\":" T("U8", "[0]", "[2,2]") "}", 4,
        "InvalidOffset", "2 to 2"),
    BAD("offsets at the end of 64 bits",
        A("U8", "[1]", "[18446744073709551614,18446744073709551615]"), 4, "InvalidOffset",
        "18446744073709551614"),

    /* the end of the file */
    BAD("one byte too many", A("U8", "[4]", "[0,4]"), 5, "MetadataIncompleteBuffer",
        "the tensors have 4 bytes, the file has 5"),
    BAD("one byte too few", A("U8", "[4]", "[0,4]"), 3, "MetadataIncompleteBuffer",
        "the tensors have 4 bytes, the file has 3"),
    BAD("bytes without a tensor", "{}", 1, "MetadataIncompleteBuffer", "the tensors have 0 bytes"),
    BAD("tensor without bytes", A("U8", "[4]", "[0,4]"), 0, "MetadataIncompleteBuffer",
        "the file has 0"),
    BAD("tensor larger than any file", A("U8", "[2305843009213693951]", "[0,2305843009213693951]"),
        4, "MetadataIncompleteBuffer", "2305843009213693951"),
};
const size_t st_invalid_count = sizeof st_invalid / sizeof st_invalid[0];

#define FINE(name, header, data, warning) LENGTH(name, header, data, NULL, warning, 0)
#define UNKNOWN "unknown field"

const st_case st_valid[] = {
    FINE("empty object", "{}", 0, NULL),
    FINE("trailing spaces", "{}      ", 0, NULL),
    FINE("white space all around", "\t\n {\r\n} \t\n\r", 0, NULL),
    FINE("one tensor", A("U8", "[4]", "[0,4]"), 4, NULL),
    FINE(
        "white space everywhere",
        "{ \"a\" : { \"dtype\" : \"U8\" , \"shape\" : [ 2 , 2 ] , \"data_offsets\" : [ 0 , 4 ] } }",
        4, NULL),
    FINE("fields in another order",
         "{\"a\":{\"data_offsets\":[0,4],\"shape\":[4],\"dtype\":\"U8\"}}", 4, NULL),
    FINE("single element", A("F32", "[]", "[0,4]"), 4, NULL),
    FINE("no elements", A("F32", "[0]", "[0,0]"), 0, NULL),
    FINE("no elements, large extents", A("F64", "[0,4294967296,4294967296]", "[0,0]"), 0, NULL),
    FINE("largest extent of the format, none of it", A("U8", "[281474976710655,0]", "[0,0]"), 0,
         NULL),
    FINE("extent of 2^48", A("U8", "[281474976710656,0]", "[0,0]"), 0, "2^48 or more"),
    FINE("extent of 2^64 - 1", A("U8", "[0,18446744073709551615]", "[0,0]"), 0, "2^48 or more"),
    FINE("two elements of four bits", A("F4", "[2]", "[0,1]"), 1, NULL),
    FINE("four elements of six bits", A("F6_E2M3", "[2,2]", "[0,3]"), 3, NULL),
    FINE("tensors out of order", "{\"b\":" T("U8", "[4]", "[4,8]") ",\"a\":" GOOD "}", 8, NULL),
    FINE("empty tensors between others",
         "{\"a\":" GOOD ",\"e\":" T("F32", "[0]", "[4,4]") ",\"f\":" T(
             "F32", "[0]", "[4,4]") ",\"b\":" T("U8", "[1]", "[4,5]") "}",
         5, NULL),
    FINE("not aligned", "{\"a\":" T("U8", "[1]", "[0,1]") ",\"b\":" T("F64", "[1]", "[1,9]") "}", 9,
         NULL),
    FINE("empty name", "{\"\":" GOOD "}", 4, NULL),
    FINE("name in other scripts", "{\"\xc3\xa9\xe6\x9d\xb1\xf0\x9f\x98\x80\":" GOOD "}", 4, NULL),
    FINE("name in escapes", "{\"\\u00e9\\u6771\\ud83d\\ude00\\n\\\"\\\\\\/\":" GOOD "}", 4, NULL),
    FINE("the last characters of each length",
         "{\"\x7f\xdf\xbf\xef\xbf\xbf\xf4\x8f\xbf\xbf\xed\x9f\xbf\":" GOOD "}", 4, NULL),
    FINE("names that differ in case", "{\"A\":" GOOD ",\"a\":" T("U8", "[0]", "[4,4]") "}", 4,
         NULL),
    FINE("metadata", "{\"__metadata__\":{\"format\":\"pt\",\"\":\"\"},\"a\":" GOOD "}", 4, NULL),
    FINE("metadata at the end", "{\"a\":" GOOD ",\"__metadata__\":{\"a\":\"a\"}}", 4, NULL),
    FINE("metadata without a key", "{\"__metadata__\":{}}", 0, NULL),
    FINE("metadata of null", "{\"__metadata__\":null}", 0, "null instead of an object"),
    FINE("unknown field", "{\"a\":{\"x\":1,\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
         4, UNKNOWN),
    FINE("unknown field, all of JSON",
         "{\"a\":{\"x\":[{\"y\":-1.5e+3,\"z\":[]},true,false,null,\"t\",{}],\"dtype\":\"U8\","
         "\"shape\":"
         "[4],\"data_offsets\":[0,4]}}",
         4, UNKNOWN),
    FINE("64 levels",
         "{\"a\":{\"x\":" EIGHT("[[[[[[[") "[[[[[[" EIGHT(
             "]]]]]]]") "]]]]]]"
                        ",\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
         4, UNKNOWN),
};
const size_t st_valid_count = sizeof st_valid / sizeof st_valid[0];

unsigned char *st_bytes(const char *header, size_t header_length, size_t data, int64_t length_error,
                        size_t *size)
{
    const uint64_t length = (uint64_t)header_length + (uint64_t)length_error;
    *size = 8 + header_length + data;
    unsigned char *const bytes = calloc(1, *size);
    if (!bytes)
        return NULL;
    for (int n = 0; n < 8; n++)
        bytes[n] = (unsigned char)(length >> 8 * n);
    memcpy(bytes + 8, header, header_length);
    return bytes;
}

unsigned char *st_case_bytes(const st_case *c, size_t *size)
{
    return st_bytes(c->header, c->header_length, c->data, c->length_error, size);
}
