// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xensim: a stand-in for Xen. See docs/xensim.md.
 */

#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "common/util.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", command_run, "[OPTION]... -- COMMAND...   run COMMAND on a simulated Xen"},
    {"verify", command_verify, "[OPTION]... FILE...      prove a capture of `numbered` complete"},
    {"rules", command_rules, "[OPTION]... FILE...       is it a trace that every reader reads"},
    {"records", command_records, "[-v] [--no-tsc] FILE    a hash of each CPU's records"},
    {"stat", command_stat, "                           (inside run) the Xen's state as JSON"},
    {"pause", command_pause, "                          (inside run) stop the producer"},
    {"resume", command_resume, "                         (inside run) let it go on"},
    {"wait", command_wait, "                           (inside run) until a replay has ended"},
    {"insert", command_insert, "CPU N                    (inside run) N numbered records, now"},
    {"event", command_event, "[OPTION]... CPU EVENT [WORD]... (inside run) a record, now"},
    {"domain", command_domain, "list|add|crash|... [ID]    (inside run) domains that come and go"},
    {"poke", command_poke, "WHAT CPU                   (inside run) break something"},
    {"fault", command_fault, "NAME on|off                (inside run) a fault of --fault"},
};

static int usage(void)
{
    (void)fputs("usage: xensim COMMAND ...\n", stderr);
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        (void)fprintf(stderr, "  xensim %s %s\n", commands[i].name, commands[i].help);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage();
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return usage();
}
