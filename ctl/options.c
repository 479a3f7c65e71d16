// SPDX-License-Identifier: GPL-2.0-or-later
/* The letters are xentrace's. */

#include "ctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "common/protocol.h"
#include "common/units.h"
#include "ctl/str.h"

#define MIB (UINT64_C(1024) * 1024)

#define AT(member) offsetof(struct capture_options, member)

/* name, letter, argument, type, member, unit of a number alone, detail, key of the call, help */
const struct args_option options_table[] = {
    {"quiet", 'q', NULL, ARGS_FLAG, AT(quiet), .help = "do not show progress"},
    {"bundle", 0, NULL, ARGS_FLAG, AT(bundle),
     .help = "with -o: one tar archive of the trace and its sidecar"},
    {"events", 'e', "LIST", ARGS_EVENTS, AT(events), 0, NULL, FIELD_EVENTS,
     "events, named by `xentracectl events` (default all)"},
    {"cpus", 'c', "LIST", ARGS_CPUS, AT(cpus), 0, NULL, FIELD_CPUS,
     "CPUs: 0-7 or 0,2,4- or 0xff (default all)"},
    {"time", 'T', "TIME", ARGS_DURATION, AT(time_usec), USEC_PER_SEC, NULL, FIELD_TIME,
     "end after TIME: 10 (seconds), 500ms, 5min"},
    {"output", 'o', "FILE", ARGS_FILE, AT(output), 0, NULL, NULL,
     "write to FILE, with its sidecar; - is standard output\n"
     "(default: a new file in " XENTRACED_STATE_DIR ")"},
    {"force", 0, NULL, ARGS_DESTROY, AT(force),
     .help = "replace FILE and its sidecar if they exist"},
    {"reserve", 'r', "SIZE", ARGS_SIZE_OR_0, AT(reserve_bytes), MIB, NULL, FIELD_RESERVE,
     "leave SIZE of the disk free: 500 (MiB), 2G"},
    {"max-size", 0, "SIZE", ARGS_SIZE, AT(max_size_bytes), 1, NULL, FIELD_MAX_SIZE,
     "end at SIZE: 1048576 (bytes), 100M"},
    {"buffer-pages", 'S', "N", ARGS_COUNT, AT(buffer_pages), 0, "pages", FIELD_BUFFER_PAGES,
     "pages per CPU for Xen's buffers, if they are not set yet"},
    {"poll", 's', "TIME", ARGS_DURATION, AT(poll_usec), USEC_PER_MSEC, NULL, FIELD_POLL,
     "read the buffers at least every TIME: 100 (ms), 1s"},
    {"discard", 'D', NULL, ARGS_DESTROY, AT(discard), 0, NULL, FIELD_DISCARD,
     "discard the records that Xen's buffers hold at the start"},
    {"keep-enabled", 'x', NULL, ARGS_FLAG, AT(keep_enabled), 0, NULL, FIELD_KEEP_ENABLED,
     "leave tracing enabled at the end"},
    {"start-disabled", 'X', NULL, ARGS_FLAG, AT(start_disabled), 0, NULL, FIELD_START_DISABLED,
     "set up, but never enable tracing"},
    {.help = "To keep only the newest records, in memory or in files on the disk:"},
    {"memory", 'M', "SIZE", ARGS_SIZE, AT(memory_bytes), 1, NULL, FIELD_MEMORY,
     "keep SIZE in memory: 67108864 (bytes), 64M"},
    {"max-age", 0, "TIME", ARGS_DURATION, AT(max_age_usec), USEC_PER_SEC, NULL, FIELD_MAX_AGE,
     "with -M: keep no older records: 30 (seconds), 5min"},
    {"compress", 0, "HOW", ARGS_CHOICE, AT(compress), 0, "zstd no", FIELD_COMPRESS,
     "compress the files: zstd or no (default)"},
    {"segment-size", 0, "SIZE", ARGS_SIZE, AT(segment_size_bytes), 1, NULL, FIELD_SEGMENT_SIZE,
     "write numbered files of SIZE: 100M"},
    {"segment-time", 0, "TIME", ARGS_DURATION, AT(segment_time_usec), USEC_PER_SEC, NULL,
     FIELD_SEGMENT_TIME, "write numbered files of TIME: 5min"},
    {"keep-files", 0, "N", ARGS_COUNT, AT(keep_files), 0, "files", FIELD_KEEP_FILES,
     "keep N of these files, and delete the oldest"},
    {"keep-size", 0, "SIZE", ARGS_SIZE, AT(keep_size_bytes), 1, NULL, FIELD_KEEP_SIZE,
     "keep SIZE of these files, and delete the oldest"},
    {"on-reserve", 0, "ACTION", ARGS_CHOICE, AT(on_reserve), 0, "stop rotate pause",
     FIELD_ON_RESERVE,
     "at the reserve: stop (default), rotate (delete the\n"
     "oldest file), pause (until there is space)"},
    {"persist", 0, NULL, ARGS_FLAG, AT(persist), 0, NULL, FIELD_PERSIST,
     "continue in the next file after a restart of xentraced"},
    {},
};

static bool is_segmented(const struct capture_options *options)
{
    return options->segment_size_bytes || options->segment_time_usec;
}

/* What a ring in memory and a disk ring need, and what they exclude. */
static int check_rings(const struct capture_options *options, char **ret_error)
{
    bool keeps = options->keep_files || options->keep_size_bytes;

    if (options->memory_bytes && options->memory_bytes < PAGE_BYTES) /* a forgotten unit */
        return str_refuse(-EINVAL, ret_error,
                          "-M %" PRIu64 " is a number of bytes, less than a page: for 64 MiB, "
                          "write 64M.",
                          options->memory_bytes);
    if (options->memory_bytes && is_segmented(options))
        return str_refuse(-EINVAL, ret_error,
                          "-M keeps the capture in memory, --segment-size and --segment-time keep "
                          "it on the disk: choose one.");
    if (options->max_age_usec && !options->memory_bytes)
        return str_refuse(-EINVAL, ret_error,
                          "--max-age needs -M: it limits a capture that is kept in memory.");
    if (keeps && !is_segmented(options))
        return str_refuse(-EINVAL, ret_error,
                          "--keep-files and --keep-size need --segment-size or --segment-time: "
                          "without them the capture is one file.");
    if (options->persist && options->table == OPTIONS_OF_RECORD)
        return str_refuse(-EINVAL, ret_error,
                          "record ends with this command, so its capture is not continued after a "
                          "restart: use start --persist.");
    if (options->persist && !is_segmented(options))
        return str_refuse(-EINVAL, ret_error,
                          "--persist continues a capture in its next file: it needs "
                          "--segment-size or --segment-time.");
    if (is_segmented(options) && options->output)
        return str_refuse(-EINVAL, ret_error,
                          "-o names a single file, but segments are written to xentraced's own "
                          "directory: omit -o.");
    if (options->keep_size_bytes && options->keep_size_bytes < options->segment_size_bytes)
        return str_refuse(-EINVAL, ret_error,
                          "--keep-size is less than one segment of --segment-size: leave room for "
                          "two or more.");
    if (options->on_reserve && strcmp(options->on_reserve, "rotate") == 0 && !is_segmented(options))
        return str_refuse(-EINVAL, ret_error,
                          "--on-reserve rotate deletes the oldest segments: it needs "
                          "--segment-size or --segment-time.");
    return 0;
}

int options_parse(struct ctl *ctl, const struct args_option *table, int argc, char **argv,
                  struct capture_options *options, char **ret_error)
{
    int r;

    *options = (struct capture_options){.table = table};
    r = args_parse(ctl, table, argc, argv, 1, options, &options->given, ret_error);
    if (r < 0)
        return r;
    if (optind < argc) {
        options->name = argv[optind];
        r = args_check_name(options->name, "a capture", ret_error);
        if (r < 0)
            return r;
    }
    if (options->force && !options->output)
        return str_refuse(-EINVAL, ret_error, "--force needs -o: it replaces that file.");
    if (options->bundle && !options->output)
        return str_refuse(-EINVAL, ret_error,
                          "--bundle needs -o, which names the archive: -o FILE.tar, or -o - for "
                          "standard output.");
    return check_rings(options, ret_error);
}

void options_done(struct capture_options *options)
{
    free(options->events);
    options->events = NULL;
}
