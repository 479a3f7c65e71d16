// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/sidecar-path.h"
#include "ctl/doc.h"
#include "ctl/served.h"
#include "ctl/str.h"

/* A stream, as far as the daemon is concerned: neither path nor sidecar is on this host. */
static int open_served(struct target *target, const struct output_options *options, bool is_bundle,
                       char **ret_error)
{
    struct output_options stream = *options;
    int r;

    stream.is_archive = true;
    r = output_open(&stream, &target->output, ret_error);
    if (r < 0)
        return r;
    free(target->output->trace.path);
    target->output->trace.path = NULL;
    target->is_served_bundle = is_bundle;
    return 0;
}

/* Sends the sidecar: DOC, with the names of the files there. */
static int finish_served(const struct target *target, struct json_object *doc, char **ret_error)
{
    struct json_object *place = doc_find(doc, "output");
    _cleanup_free_ char *sidecar = sidecar_path_of(served_path());
    int fd = fcntl(served_sidecar_fd(), F_DUPFD_CLOEXEC, 3);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (!file)
        return str_refuse(-errno, ret_error, "Cannot send the sidecar: %m.");
    json_object_object_del(doc, "remote");
    if (place && strcmp(served_path(), "-") != 0) {
        doc_set_text(place, "path", served_path());
        doc_set_text(place, "sidecar", sidecar);
    }
    doc_print(file, doc);
    if (fclose(file) != 0)
        return str_refuse(-errno, ret_error, "Cannot send the sidecar: %m.");
    if (!place || !target->is_served_bundle)
        return 0;
    doc_set_text(place, "kind", "bundle");
    json_object_object_del(place, "sidecar");
    return 0;
}

int target_open(struct target *target, const struct output_options *options, bool is_bundle,
                char **ret_error)
{
    *target = (struct target){};
    if (!options->typed)
        return 0;
    if (served_path())
        return open_served(target, options, is_bundle, ret_error);
    if (is_bundle)
        return bundle_open(options, &target->bundle, &target->output, ret_error);
    return output_open(options, &target->output, ret_error);
}

int target_finish(struct target *target, struct json_object *doc, char **ret_error)
{
    char **error = ret_error;
    _cleanup_free_ char *ignored = NULL;
    int r, described;

    if (!target->output)
        return 0;
    if (served_path())
        return finish_served(target, doc, ret_error);
    r = output_finish(target->output, ret_error);
    if (r < 0)
        error = &ignored; /* the first sentence is the reason; what was copied is described */
    described = output_describe(target->output, doc, error);
    if (r >= 0)
        r = described;
    if (r < 0 || !target->bundle)
        return r;
    return bundle_pack(target->bundle, target->output, doc, ret_error);
}

/* The members first: their directory is the bundle's. */
void target_done(struct target *target)
{
    target->output = output_free(target->output);
    target->bundle = bundle_free(target->bundle);
}
