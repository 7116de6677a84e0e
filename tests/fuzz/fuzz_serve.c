/* SPDX-License-Identifier: MIT */
/*
 * Bytes as the body of a request to "mha serve": as they are, or as numbers of pieces of which
 * requests consist. A body is refused with a message, or everything in the request is within the
 * model.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_serve.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_serve.c test.c        a test with pseudo-random bytes
 */
#include <stdlib.h>
#include <string.h>

#include "page/serve_request.h"
#include "support/fuzz.h"

enum { BODY_MAX = 8192, LAYERS = 3, HEADS = 4 };

/* A model with all kinds of attention. */
static const head_shape shape = {
    .layers = {[0] = LAYERS, [1] = LAYERS, [2] = LAYERS}, .heads = HEADS, .width = 8};

typedef struct body {
    char text[BODY_MAX + 1];
    size_t length;
} body;

static void add(body *b, const char *piece)
{
    const size_t length = strlen(piece);
    if (length <= BODY_MAX - b->length) {
        memcpy(b->text + b->length, piece, length);
        b->length += length;
    }
}

/* Mostly a number that is allowed, else one that is not or no number at all. */
static void add_number(fuzz *f, body *b)
{
    static const char *const odd[] = {"0",  "5",    "4096", "4095",  "-1",
                                      "1.", "1e99", "null", "\"1\"", "18446744073709551616"};
    static const char *const usual[] = {"1", "2", "3"};
    add(b, fuzz_rare(f) ? odd[fuzz_pick(f, 10)] : usual[fuzz_pick(f, 3)]);
}

static void add_word(fuzz *f, body *b)
{
    static const char *const words[] = {"\"the cat\"", "\"\"", "\"\\u00e9\\ud83d\\ude00\"",
                                        "\"\\u0000\"", "\"a\\\\b\""};
    add(b, fuzz_rare(f) ? "7" : words[fuzz_pick(f, fuzz_rare(f) ? 5 : 3)]);
}

static void add_kind(fuzz *f, body *b)
{
    static const char *const kinds[] = {"\"encoder\"", "\"decoder\"", "\"cross\"", "\"self\""};
    add(b, "\"kind\":");
    add(b, kinds[fuzz_pick(f, fuzz_rare(f) ? 4 : 3)]);
    add(b, ",\"layer\":");
    add_number(f, b);
}

/* A list of heads, with what becomes of them or without. */
static void add_heads(fuzz *f, body *b, bool with_change)
{
    const ptrdiff_t count = 1 + fuzz_pick(f, 3);
    add(b, "[");
    for (ptrdiff_t n = 0; n < count; n++) {
        add(b, n ? ",{" : "{");
        add_kind(f, b);
        add(b, ",\"head\":");
        add_number(f, b);
        if (with_change)
            add(b, fuzz_pick(f, 2) ? ",\"change\":\"zero\"" : ",\"change\":\"uniform\"");
        add(b, "}");
    }
    add(b, "]");
}

static void add_probe(fuzz *f, body *b)
{
    add(b, "{\"row\":");
    add_number(f, b);
    if (fuzz_pick(f, 2)) {
        add(b, ",\"hidden\":[");
        add_number(f, b);
        add(b, "]");
    }
    if (fuzz_pick(f, 2))
        add(b, ",\"lens\":true");
    if (fuzz_pick(f, 2)) {
        add(b, ",\"word\":");
        add_number(f, b);
    }
    if (fuzz_pick(f, 2)) {
        add(b, ",\"patch\":{\"text\":");
        add_word(f, b);
        add(b, ",\"heads\":");
        add_heads(f, b, false);
        add(b, "}");
    }
    add(b, "}");
}

/* Sizes and bytes that belong together, or not. */
static void add_picture(fuzz *f, body *b)
{
    static const char *const sizes[] = {"1,\"columns\":1", "2,\"columns\":3",
                                        "1024,\"columns\":1025"};
    static const char *const bytes[] = {"\"AA==\"", "\"AAECAwQF\"", "\"AAECAwQFAAECAwQFAAECAwQF\"",
                                        "\"A*==\"", "\"\"",         "{}"};
    add(b, "{\"rows\":");
    add(b, sizes[fuzz_pick(f, fuzz_rare(f) ? 3 : 2)]);
    add(b, fuzz_pick(f, 2) ? ",\"channels\":1,\"bytes\":" : ",\"channels\":3,\"bytes\":");
    add(b, bytes[fuzz_pick(f, fuzz_rare(f) ? 6 : 3)]);
    add(b, "}");
}

static void make_request(fuzz *f, body *b)
{
    add(b, "{\"text\":");
    add_word(f, b);
    if (fuzz_rare(f)) {
        add(b, ",\"picture\":");
        add_picture(f, b);
    }
    if (fuzz_pick(f, 2)) {
        add(b, ",\"to\":");
        add_word(f, b);
    }
    if (fuzz_pick(f, 2)) {
        add(b, ",\"changes\":");
        add_heads(f, b, true);
    }
    switch (fuzz_pick(f, 4)) {
    case 0:
        add(b, ",\"effects\":false");
        break;
    case 1:
        add(b, ",\"compute\":{");
        add_kind(f, b);
        add(b, "}");
        break;
    case 2:
        add(b, ",\"probe\":");
        add_probe(f, b);
        break;
    default:
        break;
    }
    add(b, "}");
    if (fuzz_rare(f) && b->length)
        b->text[(size_t)fuzz_pick(f, 256) % b->length] = (char)fuzz_pick(f, 256);
}

static void check_text(const body *b, const char *text)
{
    if (text && (text < b->text || text + strlen(text) > b->text + b->length))
        fuzz_die("a text outside of the body");
}

/* Marks of heads beyond those of the model are 0. */
static void check_marks(const uint8_t *marks, int most)
{
    for (int n = 0; n < SERVE_HEADS_MAX; n++)
        if (marks[n] > most || (marks[n] && n >= LAYERS * HEADS))
            fuzz_die("a head that does not exist");
}

static void check_request(const body *b, const serve_request *r)
{
    check_text(b, r->request.text);
    check_text(b, r->request.target);
    check_text(b, r->picture.bytes);
    if (r->picture.bytes &&
        (r->picture.rows > SERVE_SIDE_MAX || r->picture.columns > SERVE_SIDE_MAX ||
         strlen(r->picture.bytes) !=
             (r->picture.rows * r->picture.columns * r->picture.channels + 2) / 3 * 4))
        fuzz_die("a picture of another size");
    check_text(b, r->probe.patch_text);
    check_text(b, r->probe.patch_target);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        check_marks(r->changes[kind], HEAD_UNIFORM);
        check_marks(r->probe.patched[kind], 1);
    }
    if (r->compute && (r->layer < 0 || r->layer >= LAYERS))
        fuzz_die("a layer that does not exist");
    if (r->probe.hidden_end < 0 || r->probe.hidden_end > SERVE_TOKENS_MAX || r->probe.row < -1 ||
        r->probe.word < -1)
        fuzz_die("a token that cannot exist");
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    static serve_request request;
    char message[SUBJECT_MESSAGE_MAX] = "";
    fuzz f = fuzz_begin(bytes, size);
    body *const b = calloc(1, sizeof *b); /* on the heap, where a sanitizer sees its end */
    if (fuzz_rare(&f)) {
        b->length = size < BODY_MAX ? size : BODY_MAX;
        memcpy(b->text, bytes, b->length);
    } else {
        make_request(&f, b);
    }
    const bool fine = serve_request_read(&request, shape, b->text, b->length, message);
    if (fine == (message[0] != '\0'))
        fuzz_die("result and message disagree");
    if (fine)
        check_request(b, &request);
    free(b);
    return fine;
}

static void pseudo_random_requests(void)
{
    uint8_t bytes[96];
    test_random random = {test_seed(132)};
    const int64_t rounds = test_effort(20000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++) {
        fuzz_random_bytes(&random, bytes, sizeof bytes);
        valid += fuzz_one(bytes, sizeof bytes);
    }
    CHECK(rounds < 1000 || (valid > rounds / 4 && valid < rounds), "%lld of %lld were accepted",
          (long long)valid, (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_requests)
