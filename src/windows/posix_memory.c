/* SPDX-License-Identifier: MIT */
/*
 * Memory. On Windows memory of aligned_alloc() would have to be freed by a function of its own, so
 * every block of malloc() and its relatives has a note before it, with the place where the block of
 * mingw-w64 begins. And mappings of files.
 */
#include "windows/windows_parts.h"

#undef malloc
#undef calloc
#undef realloc
#undef free

typedef struct note {
    void *block;
    size_t size;
} note;

enum { ALIGNMENT = sizeof(note) }; /* of malloc(), here as there */

static note *note_of(void *memory)
{
    return (note *)memory - 1;
}

static void *begin(void *block, size_t shift, size_t size)
{
    if (!block) {
        errno = ENOMEM;
        return NULL;
    }
    void *const memory = (char *)block + shift;
    *note_of(memory) = (note){block, size};
    return memory;
}

void *mhaw_malloc(size_t size)
{
    return begin(size <= SIZE_MAX - sizeof(note) ? malloc(size + sizeof(note)) : NULL, sizeof(note),
                 size);
}

void *mhaw_calloc(size_t count, size_t size)
{
    if (size > 0 && count > (SIZE_MAX - sizeof(note)) / size) {
        errno = ENOMEM;
        return NULL;
    }
    return begin(calloc(1, count * size + sizeof(note)), sizeof(note), count * size);
}

/* For blocks of mhaw_malloc() and mhaw_calloc() only, as everywhere. */
void *mhaw_realloc(void *memory, size_t size)
{
    if (!memory)
        return mhaw_malloc(size);
    void *const block = note_of(memory)->block;
    return begin(size <= SIZE_MAX - sizeof(note) ? realloc(block, size + sizeof(note)) : NULL,
                 sizeof(note), size);
}

void *mhaw_aligned_alloc(size_t alignment, size_t size)
{
    const size_t more = alignment + sizeof(note);
    if (alignment <= ALIGNMENT)
        return mhaw_malloc(size);
    char *const block = size <= SIZE_MAX - more ? malloc(size + more) : NULL;
    const uintptr_t first = (uintptr_t)block + sizeof(note);
    const uintptr_t aligned = (first + alignment - 1) / alignment * alignment;
    return begin(block, aligned - (uintptr_t)block, size);
}

int mhaw_posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *const made = mhaw_aligned_alloc(alignment, size);
    if (made)
        *memory = made;
    return made ? 0 : ENOMEM;
}

void mhaw_free(void *memory)
{
    if (memory)
        free(note_of(memory)->block);
}

size_t mhaw_malloc_usable_size(void *memory)
{
    return memory ? note_of(memory)->size : 0;
}

/* -------------------------------------------------------------- mappings ----- */

static DWORD protection_of(int protection)
{
    return protection & PROT_WRITE  ? PAGE_READWRITE
           : protection & PROT_READ ? PAGE_READONLY
                                    : PAGE_NOACCESS;
}

static void *map_file(size_t size, int fd)
{
    const HANDLE file = (HANDLE)_get_osfhandle(fd);
    const HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
    if (!mapping)
        return NULL;
    void *const view = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size);
    CloseHandle(mapping); /* the view stays */
    return view;
}

void *mhaw_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (address || offset != 0 || (!(flags & MAP_ANONYMOUS) && protection != PROT_READ)) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    void *const made = flags & MAP_ANONYMOUS ? VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT,
                                                            protection_of(protection))
                                             : map_file(size, fd);
    if (made)
        return made;
    mhaw_fail();
    return MAP_FAILED;
}

int mhaw_munmap(void *address, size_t size)
{
    MEMORY_BASIC_INFORMATION about;
    (void)size; /* the whole mapping */
    if (VirtualQuery(address, &about, sizeof about) == 0)
        return mhaw_fail();
    const bool done =
        about.Type == MEM_MAPPED ? UnmapViewOfFile(address) : VirtualFree(address, 0, MEM_RELEASE);
    return done ? 0 : mhaw_fail();
}

int mhaw_mprotect(void *address, size_t size, int protection)
{
    DWORD before;
    return VirtualProtect(address, size, protection_of(protection), &before) ? 0 : mhaw_fail();
}

/* Unlocking pages that are not locked takes them from the working set of the process. */
int mhaw_madvise(void *address, size_t size, int advice)
{
    if (advice != MADV_DONTNEED)
        return mhaw_fail_with(EINVAL);
    VirtualUnlock(address, size);
    return 0;
}
