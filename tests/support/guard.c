/* SPDX-License-Identifier: MIT */
/*
 * Mappings with an unreadable page before and after them, and problem memory made of them.
 */
#define _GNU_SOURCE
#include "support/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATTERN = 0xa5 };

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

guard_buffer guard_new(size_t size, guard_side side)
{
    const size_t page = page_size();
    const size_t inner = (size / page + 1) * page;
    guard_buffer buffer = {NULL, size, NULL, inner + 2 * page};
    void *map = mmap(NULL, buffer.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        give_up("guard_new: mmap");
    buffer.map = map;
    if (mprotect(buffer.map + page, inner, PROT_READ | PROT_WRITE) != 0)
        give_up("guard_new: mprotect");
    memset(buffer.map + page, PATTERN, inner);
    buffer.data = buffer.map + page + (side == GUARD_AFTER ? inner - size : 0);
    return buffer;
}

void guard_seal(const guard_buffer *buffer)
{
    const size_t page = page_size();
    if (mprotect(buffer->map + page, buffer->map_size - 2 * page, PROT_READ) != 0)
        give_up("guard_seal: mprotect");
}

bool guard_intact(const guard_buffer *buffer)
{
    const size_t page = page_size();
    const unsigned char *data = buffer->data, *end = buffer->map + buffer->map_size - page;
    for (const unsigned char *p = buffer->map + page; p < data; p++)
        if (*p != PATTERN)
            return false;
    for (const unsigned char *p = data + buffer->size; p < end; p++)
        if (*p != PATTERN)
            return false;
    return true;
}

void guard_free(guard_buffer *buffer)
{
    if (buffer->map && munmap(buffer->map, buffer->map_size) != 0)
        give_up("guard_free: munmap");
    *buffer = (guard_buffer){0};
}

/* ---------------------------------------------------- memory of problems ----- */

static void *take(size_t bytes, void **handle, guard_side side)
{
    guard_buffer *const buffer = malloc(sizeof *buffer);
    if (!buffer)
        give_up("guard memory: malloc");
    *buffer = guard_new(bytes, side);
    *handle = buffer;
    return buffer->data;
}

static void *take_back(size_t bytes, void **handle)
{
    return take(bytes, handle, GUARD_AFTER);
}

static void *take_front(size_t bytes, void **handle)
{
    return take(bytes, handle, GUARD_BEFORE);
}

static void give(void *handle)
{
    guard_free(handle);
    free(handle);
}

const problem_memory guard_memory_back = {take_back, give};
const problem_memory guard_memory_front = {take_front, give};
const problem_memory *const guard_memories[3] = {NULL, &guard_memory_back, &guard_memory_front};
