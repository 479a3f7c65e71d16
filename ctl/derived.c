// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A snapshot's document: a part of what a session recorded, which every reader of sidecars knows.
 * Facts about the session as a whole (its ledger, its options) are left out.
 */

#include "ctl/derived.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ctl/output.h"
#include "ctl/str.h"
#include "trace/sidecar.h"

static bool is_snapshot(struct json_object *original)
{
    return original && doc_is(original, DOC_FORMAT_SNAPSHOT);
}

struct json_object *derived_read_original(const char *sidecar_path)
{
    struct json_object *doc = NULL;

    if (!sidecar_path || doc_read_file(sidecar_path, &doc) < 0)
        return NULL;
    if (!doc_is(doc, DOC_FORMAT_SESSION) && !doc_is(doc, DOC_FORMAT_SNAPSHOT))
        return doc_free(doc);
    return doc;
}

static void copy_key(struct json_object *doc, struct json_object *original, const char *key)
{
    struct json_object *value = doc_find(original, key);

    if (value)
        doc_add_document(doc, key, value);
}

/* The pairs from the last one before the trace to the first one after it: all that is needed. */
static void add_clock(struct json_object *doc, struct json_object *original,
                      const struct derived *derived)
{
    struct json_object *pairs = doc_array(original, "clock"), *clock = doc_add_array(doc, "clock");
    size_t from = 0, until = doc_length(pairs);

    for (size_t i = 0; i < doc_length(pairs); i++)
        if (doc_number(doc_at(pairs, i), "tsc") <= derived->first_tsc)
            from = i;
    for (size_t i = doc_length(pairs); i > from + 1; i--)
        if (doc_number(doc_at(pairs, i - 1), "tsc") > derived->last_tsc)
            until = i;
    for (size_t i = from; i < until; i++)
        (void)json_object_array_add(clock, json_object_get(doc_at(pairs, i)));
}

/* Those of its time; all of them, if the time is unknown. */
static void add_domains(struct json_object *doc, struct json_object *original, uint64_t first_ns,
                        uint64_t last_ns)
{
    struct json_object *all = doc_array(original, "domains");
    struct json_object *domains = doc_add_array(doc, "domains");

    for (size_t i = 0; i < doc_length(all); i++) {
        struct json_object *domain = doc_at(all, i);
        uint64_t first = doc_number(domain, "first_seen_ns");
        uint64_t last = doc_number(domain, "last_seen_ns");

        if (first_ns == 0 || (first <= last_ns && (last == 0 || last >= first_ns)))
            (void)json_object_array_add(domains, json_object_get(domain));
    }
}

static void add_snapshot(struct json_object *doc, struct json_object *original,
                         const struct sidecar *clock, const struct derived *derived)
{
    struct json_object *snapshot = doc_add_object(doc, "snapshot");
    uint64_t complete = max_u64(sidecar_complete_from_tsc(clock), derived->complete_from_tsc);
    const char *session =
        doc_text(original, is_snapshot(original) ? "snapshot.session" : "name", "");

    doc_add_text(snapshot, "session", session);
    doc_add_text(snapshot, "label", doc_text(original, "snapshot.label", ""));
    doc_add_text(snapshot, "cause", derived->cause);
    doc_add_text(snapshot, "reason", doc_text(original, "snapshot.reason", ""));
    doc_add_text(snapshot, "message", derived->message);
    doc_add_flag(snapshot, "ok", true);
    doc_add_number(snapshot, "first_ns", sidecar_realtime_nsec(clock, derived->first_tsc));
    doc_add_number(snapshot, "last_ns", sidecar_realtime_nsec(clock, derived->last_tsc));
    doc_add_number(snapshot, "first_tsc", derived->first_tsc);
    doc_add_number(snapshot, "last_tsc", derived->last_tsc);
    if (complete > 0) {
        doc_add_number(snapshot, "complete_from_tsc", complete);
        doc_add_number(snapshot, "complete_from_ns", sidecar_realtime_nsec(clock, complete));
    }
    doc_add_number(snapshot, "records", derived->records);
    doc_add_number(snapshot, "lost", derived->lost);
}

static const char *name_of(const struct output *output)
{
    const char *slash = output->trace.path ? strrchr(output->trace.path, '/') : NULL;

    return slash ? slash + 1 : "";
}

struct json_object *derived_doc(struct json_object *original, const struct sidecar *clock,
                                const struct derived *derived, const struct output *output)
{
    static const char *const copied[] = {"started", "events", "cpus",
                                         "buffers", "host",   "domain_names"};
    struct json_object *doc = doc_new(DOC_FORMAT_SNAPSHOT), *part;

    doc_add_text(doc, "name", name_of(output));
    doc_add_text(doc, "kind", "snapshot");
    doc_add_text(doc, "state", "ended");
    part = doc_add_object(doc, "ended");
    doc_add_text(part, "reason", derived->cause);
    doc_add_text(part, "message", derived->message);
    part = doc_add_object(doc, "output");
    doc_add_text(part, "kind", output->is_stream ? "stream" : "file");
    doc_add_text(part, "path", output->trace.path ? output->trace.path : "-");
    doc_add_number(part, "bytes", derived->bytes);
    for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
        copy_key(doc, original, copied[i]);
    if (!doc_find(doc, "host"))
        doc_add_object(doc, "host");
    if (doc_number(doc, "host.tsc_khz") == 0 && derived->tsc_khz > 0)
        doc_add_number(doc_find(doc, "host"), "tsc_khz", derived->tsc_khz);
    add_clock(doc, original, derived);
    add_domains(doc, original, sidecar_realtime_nsec(clock, derived->first_tsc),
                sidecar_realtime_nsec(clock, derived->last_tsc));
    add_snapshot(doc, original, clock, derived);
    part = doc_add_object(doc, derived->cause);
    doc_add_text(part, "from", derived->from);
    return doc;
}

/* Pipes to the host that has asked with -H cannot be synced. */
static bool sync_file(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL;
}

static int write_sidecar(struct output *output, struct json_object *doc)
{
    int fd = fcntl(output->sidecar.fd, F_DUPFD_CLOEXEC, 3);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok;

    if (!file)
        return -errno;
    doc_print(file, doc);
    ok = fflush(file) == 0 && sync_file(fd) && sync_file(output->trace.fd);
    ok = fclose(file) == 0 && ok;
    return ok ? 0 : -errno;
}

int derived_keep(struct output *output, struct json_object *doc, char **ret_error)
{
    int r = output->sidecar.fd >= 0 ? write_sidecar(output, doc) : 0;

    if (r < 0) {
        errno = -r;
        return str_refuse(r, ret_error, "Cannot write %s: %m.", output->sidecar.path);
    }
    return output_keep(output, ret_error);
}
