/* SPDX-License-Identifier: MIT */
/* "mha serve" where it does not exist: on Windows. */
#include "program/args.h"
#include "program/commands.h"

int command_serve(int argc, char **argv)
{
    const arg_command command = {
        .name = "serve",
        .usage = "",
        .summary = "Serve the page of \"mha view\" live; not on Windows.",
        .details = "This program was built for Windows, where it cannot serve pages. \"mha view\"\n"
                   "writes the same page to a file.\n",
    };
    const int code = args_parse(&command, argc, argv, NULL);
    return code != EXIT_GO_ON
               ? code
               : args_failed("this program cannot serve pages on Windows; write a page with "
                             "\"mha view\"");
}
