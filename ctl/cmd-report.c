// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl report: what a trace says. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "common/sidecar-path.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/measures-doc.h"
#include "ctl/str.h"
#include "trace/measures.h"
#include "trace/sidecar.h"

static void source_freep(struct source **source)
{
    source_free(*source);
}

static void measures_freep(struct measures **measures)
{
    measures_free(*measures);
}

static void sidecar_freep(struct sidecar **sidecar)
{
    sidecar_free(*sidecar);
}

static int read_sidecar(const char *path, struct sidecar **ret_sidecar)
{
    _cleanup_free_ char *sidecar = strcmp(path, "-") == 0 ? NULL : sidecar_path_of(path);

    return sidecar_new(sidecar, ret_sidecar);
}

static int open_trace(const char *path, struct source **ret_source)
{
    int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                    : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd < 0 ? -errno : source_new_fd(fd, ret_source);
}

static int report(struct ctl *ctl, const char *path)
{
    _cleanup_(source_freep) struct source *source = NULL;
    _cleanup_(sidecar_freep) struct sidecar *sidecar = NULL;
    _cleanup_(measures_freep) struct measures *measures = NULL;
    _cleanup_(merge_done) struct merge merge = {0};
    _cleanup_doc_ struct json_object *doc = NULL;
    int r;

    r = open_trace(path, &source);
    if (r == 0)
        r = read_sidecar(path, &sidecar);
    if (r == 0)
        r = merge_init(&merge, source, MERGE_ALL);
    if (r == 0)
        r = measures_new(&merge, sidecar_vendor(sidecar) == SIDECAR_VENDOR_AMD, &measures);
    if (r < 0) {
        ctl_error("Cannot read %s: %s.", path, strerror(-r));
        return CTL_FAILURE;
    }
    if (measures->records == 0) {
        ctl_error("%s has no record: it is empty, or no trace. See: xentracectl info", path);
        return CTL_FAILURE;
    }
    doc = doc_new("xentraced-report");
    measures_doc_add(doc, measures);
    if (ctl->json)
        doc_print(stdout, doc);
    else
        (void)printf("%" PRIu64 " records\n", measures->records);
    return CTL_OK;
}

static int cmd_report(struct ctl *ctl, int argc, char **argv)
{
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, 1, NULL, NULL, &error);
    if (r == 0 && optind == argc)
        r = str_refuse(-EINVAL, &error, "report needs the name of a trace file.");
    if (r < 0)
        return args_exit(&verb_report, r, error);
    return report(ctl, argv[optind]);
}

const struct verb verb_report = {
    .name = "report",
    .run = cmd_report,
    .words = "FILE",
    .completes = "files",
    .summary = "who ran, who waited, and for whom",
    .help = "Reads a trace (- is standard input) and shows what happened. Needs no daemon.\n",
};
