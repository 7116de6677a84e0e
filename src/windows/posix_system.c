/* SPDX-License-Identifier: MIT */
/* Environment, signals, random numbers, terminals and libraries. */
#include "windows/windows_parts.h"

#include <ntsecapi.h>

int mhaw_setenv(const char *name, const char *value, int overwrite)
{
    if (!overwrite && getenv(name))
        return 0;
    return _putenv_s(name, value) == 0 ? 0 : -1;
}

/* Windows has no variables without a value. */
int mhaw_unsetenv(const char *name)
{
    return mhaw_setenv(name, "", 1);
}

int mhaw_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    /* Only setting another handler says what the handler was. */
    void (*const was)(int) = signal(number, action ? action->sa_handler : SIG_DFL);
    if (was == SIG_ERR)
        return -1;
    if (!action)
        signal(number, was);
    if (before)
        *before = (struct sigaction){.sa_handler = was};
    return 0;
}

ssize_t mhaw_getrandom(void *data, size_t size, unsigned flags)
{
    (void)flags;
    return RtlGenRandom(data, (ULONG)size) ? (ssize_t)size : mhaw_fail_with(EIO);
}

int mhaw_poll(struct pollfd *wanted, unsigned count, int timeout)
{
    const HANDLE handle = (HANDLE)_get_osfhandle(wanted->fd);
    DWORD bytes = 0;
    if (count != 1 || timeout != 0)
        return mhaw_fail_with(EINVAL);
    switch (GetFileType(handle)) {
    case FILE_TYPE_PIPE: /* read() also returns when the writer is gone */
        wanted->revents = !PeekNamedPipe(handle, NULL, 0, NULL, &bytes, NULL) || bytes > 0;
        break;
    case FILE_TYPE_CHAR:
        wanted->revents = WaitForSingleObject(handle, 0) == WAIT_OBJECT_0;
        break;
    default:
        wanted->revents = POLLIN;
    }
    return wanted->revents ? 1 : 0;
}

int mhaw_ioctl(int fd, int request, struct winsize *size)
{
    CONSOLE_SCREEN_BUFFER_INFO screen;
    if (request != TIOCGWINSZ)
        return mhaw_fail_with(EINVAL);
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(fd), &screen))
        return mhaw_fail();
    size->ws_col = screen.srWindow.Right - screen.srWindow.Left + 1;
    return 0;
}

long mhaw_sysconf(int name)
{
    SYSTEM_INFO info;
    if (name != _SC_PAGESIZE)
        return mhaw_fail_with(EINVAL);
    GetSystemInfo(&info);
    return (long)info.dwPageSize;
}

void *mhaw_dlopen(const char *name, int flags)
{
    wide_path wide;
    (void)flags;
    return mhaw_widen(&wide, name) ? LoadLibraryW(wide.text) : NULL;
}

void *mhaw_dlsym(void *library, const char *name)
{
    const FARPROC function = GetProcAddress(library, name);
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

int mhaw_dlclose(void *library)
{
    return FreeLibrary(library) ? 0 : mhaw_fail();
}
