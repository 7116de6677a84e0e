/* SPDX-License-Identifier: MIT */
/*
 * The page around its data: the template, into which a live page has some insertions. One that runs
 * its model itself has elements of its own after the data, in this order:
 *
 *      #live-engine     JSON: the names of the files, which of them is the model
 *      #live-file-N     the files, in base64
 *      #live-module     the module of WebAssembly, in base64
 *      #live-worker     the script that runs it (web/worker.js)
 */
#include <stdlib.h>
#include <string.h>

#include "page/page.h"
#include "page/page_template.h"
#include "page/page_weights.h"

/* A place in the template's head, and what is written after it. */
typedef struct insertion {
    const char *after, *text;
} insertion;

/* Writes JSON into a script element. "<" occurs only inside strings of JSON, where it can be
 * escaped: then no text can end the element early. */
static void put_escaped(FILE *file, const char *text)
{
    while (*text != '\0') {
        const size_t plain = strcspn(text, "<");
        fwrite(text, 1, plain, file);
        text += plain;
        if (*text == '<') {
            fputs("\\u003c", file);
            text++;
        }
    }
}

/* Writes the template up to the end of the data. The insertions are in the template, in this order.
 */
static void put_head(FILE *file, const insertion *insertions, size_t count, const char *json_text)
{
    const char *head = (const char *)page_template_head;
    for (size_t n = 0; n < count; n++) {
        const char *const at = strstr(head, insertions[n].after) + strlen(insertions[n].after);
        fwrite(head, 1, (size_t)(at - head), file);
        fputs(insertions[n].text, file);
        head = at;
    }
    fputs(head, file);
    put_escaped(file, json_text);
}

void page_write(FILE *file, const void *json_text)
{
    put_head(file, NULL, 0, json_text);
    fputs((const char *)page_template_tail, file);
}

/* The page is told that it is live, and may send requests to its own server. */
void page_write_served(FILE *file, const char *json_text)
{
    static const insertion insertions[] = {
        {"<html", " data-live=\"server\""},
        {"default-src 'none';", " connect-src 'self';"},
    };
    put_head(file, insertions, sizeof insertions / sizeof insertions[0], json_text);
    fputs((const char *)page_template_tail, file);
}

/* ---------------------------------------------------------------- live ----- */

static void put_engine(FILE *file, const page_live *page)
{
    char *text = NULL;
    size_t size;
    FILE *const memory = open_memstream(&text, &size);
    if (memory == NULL)
        return;
    json j = json_begin(memory);
    json_open_object(&j, NULL);
    json_bool(&j, "translator", page->is_translator);
    json_string(&j, "model", page->model);
    json_open_array(&j, "files");
    for (int n = 0; n < page->count; n++)
        json_string(&j, NULL, page->files[n].name);
    json_close(&j);
    json_close(&j);
    fclose(memory);
    put_escaped(file, text);
    free(text);
}

/* The script element before this one ends, another begins. The last one ends with the template. */
static void next_element(FILE *file, const char *id, int number)
{
    fprintf(file, "</script>\n<script type=\"text/plain\" id=\"%s", id);
    if (number >= 0)
        fprintf(file, "-%d", number);
    fputs("\">", file);
}

void page_write_live(FILE *file, const void *live)
{
    static const insertion insertions[] = {
        {"<html", " data-live=\"worker\""},
        {"default-src 'none';", " worker-src blob:;"},
        {"script-src", " 'wasm-unsafe-eval'"},
    };
    const page_live *const page = live;
    put_head(file, insertions, sizeof insertions / sizeof insertions[0], page->json_text);
    next_element(file, "live-engine", -1);
    put_engine(file, page);
    for (int n = 0; n < page->count; n++) {
        next_element(file, "live-file", n);
        page_write_bytes(file, page->files[n].bytes, page->files[n].size);
    }
    next_element(file, "live-module", -1);
    page_write_bytes(file, page->module.bytes, page->module.size);
    next_element(file, "live-worker", -1);
    fputs((const char *)page_template_worker, file);
    fputs((const char *)page_template_tail, file);
}
