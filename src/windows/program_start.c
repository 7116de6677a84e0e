/* SPDX-License-Identifier: MIT */
/* How programs begin on Windows: their arguments become UTF-8, standard streams are not translated,
 * and a terminal shows UTF-8 and colours. Only programs link this file. */
#include "windows/windows_parts.h"

#include <shellapi.h>

#undef main
int main(void);

static char **arguments(int *count)
{
    wchar_t **const wide = CommandLineToArgvW(GetCommandLineW(), count);
    char **const list = wide ? calloc((size_t)*count + 1, sizeof *list) : NULL;
    for (int n = 0; list && n < *count; n++) {
        const size_t size = 3 * wcslen(wide[n]) + 1;
        list[n] = malloc(size);
        if (!list[n] || !mhaw_narrow(list[n], size, wide[n]))
            return NULL;
    }
    LocalFree(wide);
    return list;
}

static void prepare_terminal(DWORD which)
{
    const HANDLE terminal = GetStdHandle(which);
    DWORD mode;
    if (GetConsoleMode(terminal, &mode))
        SetConsoleMode(terminal, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

int main(void)
{
    int argc = 0;
    char **const argv = arguments(&argc);
    if (!argv) {
        fputs("The arguments are not Unicode text, or there is no memory for them.\n", stderr);
        return 2;
    }
    for (int fd = 0; fd < 3; fd++)
        _setmode(fd, _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    prepare_terminal(STD_OUTPUT_HANDLE);
    prepare_terminal(STD_ERROR_HANDLE);
    return mhaw_program_main(argc, argv);
}
