// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "common/sidecar-path.h"
#include "ctl/doc.h"
#include "ctl/str.h"
#include "ctl/tar.h"

#define ARCHIVE_SUFFIX ".tar"
#define SIDECAR_SUFFIX ".json"
#define FOLDER         "/var/tmp" /* what is large, and outlives a crash */

struct bundle {
    struct output *archive;
    char *folder;             /* of the members; NULL: they are beside the archive */
    const char *trace_suffix; /* of theirs; static */
};

/* --- Opening. --- */

/* "/dir/a" for "/dir/a.tar" */
static char *stem_of(const char *path)
{
    size_t length = strlen(path), cut = strlen(ARCHIVE_SUFFIX);

    if (length > cut && path[length - cut - 1] != '/' &&
        strcmp(path + length - cut, ARCHIVE_SUFFIX) == 0)
        length -= cut;
    return strndup(path, length);
}

static int make_folder(struct bundle *bundle, const char *nothing, char **ret_error)
{
    const char *parent = getenv("TMPDIR");
    char *folder = str_format("%s/xentracectl-XXXXXX", parent && *parent ? parent : FOLDER);

    if (!folder)
        return -ENOMEM;
    if (!mkdtemp(folder)) {
        int r = str_refuse(-errno, ret_error, "Cannot create a directory in %s: %m. %s.",
                           parent && *parent ? parent : FOLDER, nothing);

        free(folder);
        return r;
    }
    bundle->folder = folder;
    return 0;
}

/* The name of the members, without a suffix. */
static int find_stem(struct bundle *bundle, const char *nothing, char **ret_stem, char **ret_error)
{
    const struct output *archive = bundle->archive;
    char *stem;
    int r;

    if (archive->is_stdout || archive->is_stream) {
        r = make_folder(bundle, nothing, ret_error);
        if (r < 0)
            return r;
        stem = str_format("%s/trace", bundle->folder);
    } else {
        stem = stem_of(archive->trace.path);
    }
    if (!stem)
        return -ENOMEM;
    *ret_stem = stem;
    return 0;
}

static void bundle_freep(struct bundle **bundle)
{
    (void)bundle_free(*bundle);
}

int bundle_open(const struct output_options *options, struct bundle **ret_bundle,
                struct output **ret_members, char **ret_error)
{
    _cleanup_(bundle_freep) struct bundle *bundle = calloc(1, sizeof(*bundle));
    struct output_options archive = *options, members = *options;
    _cleanup_free_ char *stem = NULL, *path = NULL;
    int r;

    if (!bundle)
        return -ENOMEM;
    archive.is_archive = true;
    r = output_open(&archive, &bundle->archive, ret_error);
    if (r < 0)
        return r;
    r = find_stem(bundle, options->nothing, &stem, ret_error);
    if (r < 0)
        return r;
    bundle->trace_suffix = options->is_packed ? TRACE_SUFFIX TRACE_SUFFIX_PACKED : TRACE_SUFFIX;
    path = str_format("%s%s", stem, bundle->trace_suffix);
    if (!path)
        return -ENOMEM;
    members.typed = path;
    members.force = false;
    r = output_open(&members, ret_members, ret_error);
    if (r < 0)
        return r;
    *ret_bundle = TAKE_PTR(bundle);
    return 0;
}

/* --- Packing. --- */

static const char *archive_name(const struct bundle *bundle)
{
    return bundle->archive->is_stdout ? "standard output" : bundle->archive->trace.path;
}

/*
 * The name of a file in the archive: its own, or the daemon's name for it, if unpacking that cannot
 * write to another directory.
 */
static char *member_name(const struct bundle *bundle, const struct output_file *file,
                         struct json_object *doc, const char *suffix)
{
    const char *name = doc_text(doc, "name", "");

    if (!bundle->folder)
        return strdup(strrchr(file->path, '/') + 1);
    if (!*name || *name == '.' || strchr(name, '/'))
        name = "trace";
    return str_format("%s%s", name, suffix);
}

static int pack_file(const struct bundle *bundle, const struct output_file *file, const char *name)
{
    _cleanup_fd_ int fd =
        openat(file->directory_fd, strrchr(file->path, '/') + 1, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (!name)
        return -ENOMEM;
    return fd < 0 ? -errno : tar_write_file(bundle->archive->trace.fd, name, fd);
}

static int pack(const struct bundle *bundle, const struct output *members, struct json_object *doc)
{
    _cleanup_free_ char *trace = member_name(bundle, &members->trace, doc, bundle->trace_suffix);
    _cleanup_free_ char *sidecar = member_name(bundle, &members->sidecar, doc, SIDECAR_SUFFIX);
    int r;

    r = pack_file(bundle, &members->trace, trace);
    if (r < 0)
        return r;
    r = pack_file(bundle, &members->sidecar, sidecar);
    if (r < 0)
        return r;
    r = tar_write_end(bundle->archive->trace.fd);
    if (r < 0 || bundle->archive->is_stream)
        return r;
    return fsync(bundle->archive->trace.fd) < 0 && errno != EINVAL ? -errno : 0;
}

/* The files that it names are gone. */
static void rename_output(const struct bundle *bundle, struct json_object *doc)
{
    struct json_object *output = doc_find(doc, "output");

    if (!output)
        return;
    doc_add_text(output, "path", bundle->archive->is_stdout ? "-" : bundle->archive->trace.path);
    doc_add_text(output, "kind", "bundle");
    doc_add_text(output, "sidecar", NULL);
}

int bundle_pack(struct bundle *bundle, struct output *members, struct json_object *doc,
                char **ret_error)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction old;
    int r;

    (void)sigaction(SIGPIPE, &ignore, &old); /* valid: cannot fail */
    r = pack(bundle, members, doc);
    (void)sigaction(SIGPIPE, &old, NULL);
    if (r < 0)
        return str_refuse(r, ret_error,
                          "The bundle could not be written to %s: %s. It is incomplete; the "
                          "records are in %s.",
                          archive_name(bundle),
                          r == -EPIPE ? "the reader has closed the pipe" : strerror(-r),
                          members->trace.path);
    r = output_keep(bundle->archive, ret_error);
    if (r < 0)
        return r;
    (void)unlinkat(members->trace.directory_fd, strrchr(members->trace.path, '/') + 1, 0);
    (void)unlinkat(members->sidecar.directory_fd, strrchr(members->sidecar.path, '/') + 1, 0);
    rename_output(bundle, doc);
    return 0;
}

struct bundle *bundle_free(struct bundle *bundle)
{
    if (!bundle)
        return NULL;
    (void)output_free(bundle->archive);
    if (bundle->folder)
        (void)rmdir(bundle->folder); /* with files in it, it stays */
    free(bundle->folder);
    free(bundle);
    return NULL;
}
