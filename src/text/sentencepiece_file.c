/* SPDX-License-Identifier: MIT */
/*
 * Reader of SentencePiece files (sentencepiece_file.h). A protobuf message is a list of numbered
 * fields; the reader of fields is here too, since nothing else in the project reads protobuf.
 * Fields that are not used are skipped. Every length is checked against the bytes that remain.
 */
#include "text/sentencepiece_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/unigram.h"

/* ------------------------------------------------------------- fields ----- */

typedef struct wire {
    const unsigned char *at, *end;
    bool damaged;
} wire;

typedef enum wire_type {
    WIRE_VARINT = 0,
    WIRE_8_BYTES = 1,
    WIRE_BYTES = 2,
    WIRE_4_BYTES = 5
} wire_type;

typedef struct wire_field {
    uint64_t number;
    wire_type type;
    uint64_t value; /* of a number; else the length of the bytes */
    const unsigned char *bytes;
} wire_field;

static uint64_t read_varint(wire *w)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end)
            break;
        const unsigned char byte = *w->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    w->damaged = true;
    return 0;
}

static uint64_t read_fixed(wire *w, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(w->end - w->at) < size) {
        w->damaged = true;
        return 0;
    }
    for (size_t n = 0; n < size; n++)
        value |= (uint64_t)*w->at++ << 8 * n;
    return value;
}

static void read_value(wire *w, wire_field *field)
{
    switch (field->type) {
    case WIRE_VARINT:
        field->value = read_varint(w);
        break;
    case WIRE_8_BYTES:
        field->value = read_fixed(w, 8);
        break;
    case WIRE_4_BYTES:
        field->value = read_fixed(w, 4);
        break;
    case WIRE_BYTES:
        field->value = read_varint(w);
        field->bytes = w->at;
        if (w->damaged || field->value > (uint64_t)(w->end - w->at))
            w->damaged = true;
        else
            w->at += field->value;
        break;
    default:
        w->damaged = true;
    }
}

/* The next field. False: the message has ended, or is damaged. */
static bool next_field(wire *w, wire_field *field)
{
    if (w->damaged || w->at == w->end)
        return false;
    const uint64_t tag = read_varint(w);
    *field = (wire_field){.number = tag >> 3, .type = (wire_type)(tag & 7)};
    w->damaged = w->damaged || field->number == 0;
    if (!w->damaged)
        read_value(w, field);
    return !w->damaged;
}

static bool is_field(const wire_field *field, uint64_t number, wire_type type)
{
    return field->number == number && field->type == type;
}

static wire nested(const wire_field *field)
{
    return (wire){field->bytes, field->bytes + field->value, false};
}

/* ----------------------------------------------------------- messages ----- */

typedef struct reading {
    sentencepiece_model *model;
    mha_status status;
    char *message;
    size_t message_size;
} reading;

static void fail(reading *r, mha_status status, const char *what)
{
    if (r->status != MHA_OK)
        return;
    r->status = status;
    if (r->message_size > 0)
        snprintf(r->message, r->message_size, "%s", what);
}

static void fail_at_piece(reading *r, int32_t id, const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "piece %d %s", id, what);
    fail(r, MHA_ERR_FORMAT, text);
}

unsigned sentencepiece_type_flags(uint64_t type)
{
    static const unsigned flags[] = {[2] = PIECE_UNKNOWN,
                                     [3] = PIECE_SPECIAL,
                                     [4] = PIECE_USER,
                                     [5] = PIECE_UNUSED,
                                     [6] = PIECE_BYTE};
    return type < sizeof flags / sizeof flags[0] ? flags[type] : 0;
}

static float float_of_bits(uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static void read_piece(reading *r, wire w)
{
    const int32_t id = vocab_size(r->model->vocabulary);
    const char *piece = NULL;
    size_t length = 0;
    float score = 0;
    uint64_t type = 1;
    wire_field field;
    while (next_field(&w, &field)) {
        if (is_field(&field, 1, WIRE_BYTES)) {
            piece = (const char *)field.bytes;
            length = (size_t)field.value;
        } else if (is_field(&field, 2, WIRE_4_BYTES)) {
            score = float_of_bits(field.value);
        } else if (is_field(&field, 3, WIRE_VARINT)) {
            type = field.value;
        }
    }
    if (w.damaged)
        fail_at_piece(r, id, "is damaged");
    else if (length == 0 || memchr(piece, 0, length) != NULL)
        fail_at_piece(r, id, "is empty or has a zero byte");
    else if (isnan(score))
        fail_at_piece(r, id, "has a score that is not a number");
    else if (type < 1 || type > 6)
        fail_at_piece(r, id, "is of an unknown type");
    else if (id >= VOCABULARY_MAX)
        fail(r, MHA_ERR_FORMAT, "the vocabulary has more than 4194304 pieces");
    else if (!vocab_add(r->model->vocabulary, id, piece, length, score,
                        sentencepiece_type_flags(type)))
        fail(r, MHA_ERR_MEMORY, "out of memory");
}

static void read_unknown_surface(sentencepiece_model *model, const wire_field *field)
{
    const size_t length =
        field->value < UNKNOWN_SURFACE_MAX ? (size_t)field->value : UNKNOWN_SURFACE_MAX - 1;
    memcpy(model->unknown_surface, field->bytes, length);
    model->unknown_surface[length] = '\0';
}

static void read_trainer(reading *r, wire w)
{
    sentencepiece_model *const model = r->model;
    wire_field field;
    while (next_field(&w, &field)) {
        if (is_field(&field, 44, WIRE_BYTES))
            read_unknown_surface(model, &field);
        if (field.type != WIRE_VARINT)
            continue;
        switch (field.number) {
        case 3:
            model->kind = (sentencepiece_kind)field.value;
            if (field.value != SENTENCEPIECE_UNIGRAM && field.value != SENTENCEPIECE_BPE)
                fail(r, MHA_ERR_FORMAT, "the model is neither unigram nor BPE");
            break;
        case 24:
            model->space_is_suffix = field.value != 0;
            break;
        case 35:
            model->byte_fallback = field.value != 0;
            break;
        case 41:
            model->begin_id = (int32_t)field.value;
            break;
        case 42:
            model->end_id = (int32_t)field.value;
            break;
        case 43:
            model->pad_id = (int32_t)field.value;
            break;
        default:
            break;
        }
    }
    if (w.damaged)
        fail(r, MHA_ERR_FORMAT, "the trainer's settings are damaged");
}

static void read_rules(reading *r, const wire_field *field)
{
    precompiled_free(r->model->rules);
    r->model->rules = NULL;
    if (field->value == 0)
        return;
    const mha_status status =
        precompiled_create(&r->model->rules, field->bytes, (size_t)field->value);
    if (status != MHA_OK)
        fail(r, status,
             status == MHA_ERR_MEMORY ? "out of memory" : "the rules of normalisation are damaged");
}

static void read_normalizer(reading *r, wire w)
{
    sentencepiece_model *const model = r->model;
    wire_field field;
    while (next_field(&w, &field)) {
        if (is_field(&field, 2, WIRE_BYTES))
            read_rules(r, &field);
        else if (is_field(&field, 3, WIRE_VARINT))
            model->adds_space = field.value != 0;
        else if (is_field(&field, 4, WIRE_VARINT))
            model->removes_extra_spaces = field.value != 0;
        else if (is_field(&field, 5, WIRE_VARINT))
            model->escapes_spaces = field.value != 0;
    }
    if (w.damaged)
        fail(r, MHA_ERR_FORMAT, "the normaliser's settings are damaged");
}

/* -------------------------------------------------------------- model ----- */

mha_status sentencepiece_model_begin(sentencepiece_model *model)
{
    *model = (sentencepiece_model){
        .vocabulary = vocab_create(),
        .kind = SENTENCEPIECE_UNIGRAM,
        .adds_space = true,
        .removes_extra_spaces = true,
        .escapes_spaces = true,
        .unknown_id = -1,
        .begin_id = 1,
        .end_id = 2,
        .pad_id = -1,
        .unknown_surface = " \xe2\x81\x87 ",
    };
    return model->vocabulary == NULL ? MHA_ERR_MEMORY : MHA_OK;
}

void sentencepiece_model_free(sentencepiece_model *model)
{
    vocab_free(model->vocabulary);
    precompiled_free(model->rules);
    memset(model, 0, sizeof *model);
}

/* A mark that the file names must be a piece that is a mark. */
static int32_t checked_mark(const vocabulary *v, int32_t id)
{
    const bool is_mark = id >= 0 && id < vocab_size(v) && vocab_flags(v, id) & PIECE_SPECIAL;
    return is_mark ? id : -1;
}

/* The piece of type "byte" of this byte exists. */
static bool has_byte(const vocabulary *v, unsigned char byte)
{
    const int32_t id = vocab_byte_id(v, byte);
    return id >= 0 && vocab_flags(v, id) & PIECE_BYTE;
}

static bool is_byte_piece(const char *piece)
{
    static const char digits[] = "0123456789ABCDEF";
    return strlen(piece) == 6 && memcmp(piece, "<0x", 3) == 0 && piece[5] == '>' &&
           strchr(digits, piece[3]) != NULL && strchr(digits, piece[4]) != NULL;
}

static void check_piece(reading *r, int32_t id)
{
    const unsigned flags = vocab_flags(r->model->vocabulary, id);
    const char *const piece = vocab_piece(r->model->vocabulary, id, NULL);
    if (flags & PIECE_BYTE && !is_byte_piece(piece))
        fail_at_piece(r, id, "is a byte, but is not written like <0x41>");
    if (flags & PIECE_UNKNOWN) {
        if (r->model->unknown_id >= 0)
            fail_at_piece(r, id, "is a second unknown piece");
        r->model->unknown_id = id;
    }
}

static void check(reading *r)
{
    sentencepiece_model *const model = r->model;
    const vocabulary *const v = model->vocabulary;
    for (int32_t id = 0; id < vocab_size(v); id++)
        check_piece(r, id);
    if (model->unknown_id < 0)
        fail(r, MHA_ERR_FORMAT, "the vocabulary has no unknown piece");
    for (int byte = 0; model->byte_fallback && byte < 256; byte++) {
        if (!has_byte(v, (unsigned char)byte))
            fail(r, MHA_ERR_FORMAT, "the vocabulary lacks one of the 256 byte pieces");
    }
    model->begin_id = checked_mark(v, model->begin_id);
    model->end_id = checked_mark(v, model->end_id);
    model->pad_id = checked_mark(v, model->pad_id);
}

mha_status sentencepiece_model_check(sentencepiece_model *model, char *message, size_t message_size)
{
    reading r = {model, MHA_OK, message, message == NULL ? 0 : message_size};
    check(&r);
    return r.status;
}

mha_status sentencepiece_model_read(sentencepiece_model *model, const void *bytes, size_t size,
                                    char *message, size_t message_size)
{
    reading r = {model, MHA_OK, message, message == NULL ? 0 : message_size};
    wire w = {bytes, (const unsigned char *)bytes + size, false};
    wire_field field;
    if (sentencepiece_model_begin(model) != MHA_OK)
        fail(&r, MHA_ERR_MEMORY, "out of memory");
    while (r.status == MHA_OK && next_field(&w, &field)) {
        if (is_field(&field, 1, WIRE_BYTES))
            read_piece(&r, nested(&field));
        else if (is_field(&field, 2, WIRE_BYTES))
            read_trainer(&r, nested(&field));
        else if (is_field(&field, 3, WIRE_BYTES))
            read_normalizer(&r, nested(&field));
    }
    if (w.damaged)
        fail(&r, MHA_ERR_FORMAT, "not a SentencePiece model, or a damaged one");
    if (r.status == MHA_OK)
        check(&r);
    if (r.status != MHA_OK)
        sentencepiece_model_free(model);
    return r.status;
}
