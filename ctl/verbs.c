/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands and their help: pages that fit a screen. xentracectl(1) says the rest; change the
 * two together, and the completion.
 */

#include <string.h>

#include "common/suggest.h"
#include "ctl/ctl.h"

#define CAPTURE_OPTIONS                                                                            \
    "  -e, --events LIST     events: sched,hvm-entryexit,0x0010f000 (default all;\n"               \
    "                        for the names: xentracectl events)\n"                                 \
    "  -c, --cpus LIST       CPUs: 0-7 or 0,2,4- or 0xff (default all)\n"                          \
    "  -T, --time TIME       end after TIME: 10 (seconds), 500ms, 5min\n"                          \
    "  -o, --output FILE     write to FILE, with its sidecar; - is standard output\n"              \
    "                        (default: a new file in " XENTRACED_STATE_DIR ")\n"                   \
    "      --force           replace FILE and its sidecar if they exist\n"                         \
    "  -r, --reserve SIZE    leave SIZE of the disk free: 500 (MiB), 2G\n"                         \
    "      --max-size SIZE   end at SIZE: 1048576 (bytes), 100M\n"                                 \
    "  -S, --buffer-pages N  pages per CPU for Xen's buffers, if they are not set yet\n"           \
    "  -s, --poll TIME       look at the buffers at least every TIME: 100 (ms), 1s\n"              \
    "  -D, --discard         drop what is in Xen's buffers at the start\n"                         \
    "  -x, --keep-enabled    leave tracing enabled at the end\n"                                   \
    "  -X, --start-disabled  set up, but never enable tracing\n"                                   \
    "\n"                                                                                           \
    "To keep only the newest part, in memory until the end, or in files on the disk:\n"            \
    "  -M, --memory SIZE     keep SIZE in memory: 67108864 (bytes), 64M\n"                         \
    "      --max-age TIME    ... and nothing that is older: 30 (seconds), 5min\n"                  \
    "      --segment-size SIZE, --segment-time TIME\n"                                             \
    "                        write numbered files, each of that size or time\n"                    \
    "      --keep-files N, --keep-size SIZE\n"                                                     \
    "                        ... and keep so much of them; the oldest goes\n"                      \
    "      --on-reserve WHAT at the reserve: stop (default), rotate (delete the\n"                 \
    "                        oldest file), pause (until there is space)\n"

static const char overview[] =
    "Usage: xentracectl [OPTION]... COMMAND [ARGUMENT]...\n"
    "Captures Xen's trace records through xentraced.\n"
    "\n"
    "  start [NAME]         start a capture in the background\n"
    "  record [NAME]        start a capture, show its progress, wait for its end\n"
    "  stop [NAME|--all]    end a capture and wait for its finished file\n"
    "  snapshot [NAME]      write what the flight recorder holds to a file\n"
    "  trigger NAME         fire a trigger of the configuration\n"
    "  rotate [NAME]        close the segment that a capture is writing\n"
    "  status [NAME]        the daemon, Xen, captures, triggers and snapshots\n"
    "  list                 the captures, a line each\n"
    "  info FILE...         what is in a trace file, and whether it is sound\n"
    "  events               the names of events\n"
    "  version              the versions of xentracectl and xentraced\n"
    "  help [COMMAND]       this page, or that of a command\n"
    "\n"
    "      --socket PATH    the daemon's socket (default $XENTRACED_SOCKET, else\n"
    "                       " XENTRACED_SOCKET ")\n"
    "      --json           print JSON\n"
    "  -h, --help           help; behind a command: about it\n"
    "      --version        the same as the command\n"
    "\n"
    "  xentracectl record -e sched -T 10 -o sched.xentrace\n";

static const struct verb verbs[] = {
    {"start", cmd_start,
     "Usage: xentracectl start [OPTION]... [NAME]\n"
     "Starts a capture in the background and returns at once.\n"
     "\n" CAPTURE_OPTIONS "\n"
     "  xentracectl start -e sched -c 0-7 -T 10\n"},
    {"record", cmd_record,
     "Usage: xentracectl record [OPTION]... [NAME]\n"
     "Starts a capture, shows its progress on standard error and waits for its end.\n"
     "Ctrl-C ends the capture cleanly; a second one gives up waiting for its file.\n"
     "\n" CAPTURE_OPTIONS "  -q, --quiet           show no progress\n"
     "\n"
     "  xentracectl record -e hvm -T 30 -o hvm.xentrace\n"
     "  xentracectl record -T 10 -o - | zstd > all.xentrace.zst\n"},
    {"stop", cmd_stop,
     "Usage: xentracectl stop [NAME|--all|--abort NAME]\n"
     "Ends a capture and waits until its file is finished. Without NAME: the only\n"
     "one. The flight recorder ends only if it is named.\n"
     "\n"
     "  -a, --all            end all captures\n"
     "      --abort          end the capture NAME at once, although its disk does not\n"
     "                       answer; records that are not on the disk are dropped\n"},
    {"snapshot", cmd_snapshot,
     "Usage: xentracectl snapshot [OPTION]... [NAME]\n"
     "Writes what a ring in memory holds to a file, while recording goes on, and\n"
     "waits for the file: of the flight recorder, else of the only start -M.\n"
     "\n"
     "      --last TIME       only the newest part: 30 (seconds), 5min\n"
     "      --max-size SIZE   only the newest part: 1048576 (bytes), 100M\n"
     "  -o, --output FILE     write to FILE, with its sidecar; - is standard output\n"
     "                        (default: a new file in " XENTRACED_STATE_DIR ")\n"
     "      --force           replace FILE and its sidecar if they exist\n"
     "      --session NAME    of that ring\n"
     "      --label TEXT      who asks, or why: for the file's name and the sidecar\n"
     "\n"
     "  xentracectl snapshot --last 30s --label slow-guest\n"},
    {"trigger", cmd_trigger,
     "Usage: xentracectl trigger NAME\n"
     "Fires the trigger NAME, which has condition=manual in xentraced's\n"
     "configuration: it takes its snapshot in the background. status shows it.\n"
     "Exit code 1: it writes none, as it is busy or had enough of them.\n"},
    {"rotate", cmd_rotate,
     "Usage: xentracectl rotate [NAME]\n"
     "Closes the segment that a capture with --segment-size or --segment-time is\n"
     "writing, waits for it, and prints its file. Without NAME: the only such capture.\n"},
    {"status", cmd_status,
     "Usage: xentracectl status [NAME]\n"
     "Shows the daemon, Xen, the flight recorder, captures, triggers and snapshots;\n"
     "with NAME that capture, CPU by CPU.\n"},
    {"list", cmd_list,
     "Usage: xentracectl list [OPTION]...\n"
     "Lists the captures that run, and the newest ones that have ended.\n"
     "\n"
     "      --running        only those that run\n"
     "      --triggers       the triggers in their place\n"
     "      --names          only names\n"},
    {"info", cmd_info,
     "Usage: xentracectl info FILE...\n"
     "Reads trace files (- is standard input) to their end and says what is in them\n"
     "and whether they are sound; adds what their sidecars tell. Needs no daemon.\n"
     "Exit code 1: a file is damaged, incomplete or cannot be read.\n"},
    {"events", cmd_events,
     "Usage: xentracectl events [--names]\n"
     "Lists the names that -e takes, with their masks.\n"
     "\n"
     "      --names          only names\n"},
    {"version", cmd_version,
     "Usage: xentracectl version\n"
     "Prints the versions of xentracectl and, if it can be reached, xentraced.\n"},
    {"help", cmd_help,
     "Usage: xentracectl help [COMMAND]\n"
     "Explains xentracectl, or one of its commands.\n"},
};

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

const char *verb_suggest(const char *typed)
{
    const char *names[ARRAY_SIZE(verbs)];

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        names[i] = verbs[i].name;
    return suggest_nearest(typed, names, ARRAY_SIZE(names));
}

const char *verb_overview(void)
{
    return overview;
}
