// SPDX-License-Identifier: GPL-2.0-or-later
/* Source: systemd.unit(5) and systemd-system.conf(5) on drop-ins and how they are masked. */

#include "daemon/config/config-files.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define SUFFIX ".conf"

/* A file as a whole; its name is in the text. */
static void config_refuse_file(struct config_reading *reading, const char *path, int error)
{
    const struct config_origin origin = {.file = path};

    (void)config_refuse(reading, &origin, "Cannot read the configuration %s: %s", path,
                        strerror(error)); /* noted is all that is wanted */
}

static bool is_directory(FILE *file)
{
    struct stat st;

    return fstat(fileno(file), &st) == 0 && S_ISDIR(st.st_mode);
}

/* With the name that READING keeps. */
static void config_visit(struct config_reading *reading, const char *path, bool is_required,
                         void (*read)(struct config_reading *reading, const char *path, FILE *file))
{
    _cleanup_file_ FILE *file = fopen(path, "re");
    int error = errno;
    const char *kept;

    if (!file && error == ENOENT && !is_required)
        return;
    kept = config_add_file(reading, path);
    if (!kept)
        return;
    if (!file) {
        config_refuse_file(reading, kept, error);
        return;
    }
    read(reading, kept, file);
    if (ferror(file)) /* whose errno is lost */
        config_refuse_file(reading, kept, is_directory(file) ? EISDIR : EIO);
}

/* --- Drop-ins. --- */

struct drop_ins {
    char **names; /* without their directories */
    size_t count;
};

static void drop_ins_done(struct drop_ins *drop_ins)
{
    for (size_t i = 0; i < drop_ins->count; i++)
        free(drop_ins->names[i]);
    free(drop_ins->names);
}

static bool drop_ins_has(const struct drop_ins *drop_ins, const char *name)
{
    for (size_t i = 0; i < drop_ins->count; i++)
        if (strcmp(drop_ins->names[i], name) == 0)
            return true;
    return false;
}

static int drop_ins_add(struct drop_ins *drop_ins, const char *name)
{
    char **more = reallocarray(drop_ins->names, drop_ins->count + 1, sizeof(*more));

    if (!more)
        return -ENOMEM;
    drop_ins->names = more;
    more[drop_ins->count] = strdup(name);
    if (!more[drop_ins->count])
        return -ENOMEM;
    drop_ins->count++;
    return 0;
}

static bool is_drop_in(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > strlen(SUFFIX) &&
           strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

static void drop_ins_collect(struct drop_ins *drop_ins, struct config_reading *reading,
                             const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;

    if (!directory) {
        if (errno != ENOENT && errno != ENOTDIR)
            config_refuse_file(reading, path, errno);
        return;
    }
    while ((entry = readdir(directory)))
        if (is_drop_in(entry->d_name) && !drop_ins_has(drop_ins, entry->d_name) &&
            drop_ins_add(drop_ins, entry->d_name) < 0)
            reading->has_no_memory = true;
    (void)closedir(directory);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_null_device(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* The first directory that has NAME decides: a link to nowhere hides those after it, too. */
static void config_visit_drop_in(struct config_reading *reading, const struct config_source *source,
                                 const char *name,
                                 void (*read)(struct config_reading *reading, const char *path,
                                              FILE *file))
{
    for (size_t i = 0; i < CONFIG_DIRECTORIES_MAX && source->directories[i]; i++) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        if (asprintf(&path, "%s/%s", source->directories[i], name) < 0) {
            path = NULL; /* asprintf(3) leaves it undefined */
            reading->has_no_memory = true;
            return;
        }
        if (lstat(path, &st) < 0)
            continue;
        if (!is_null_device(path))
            config_visit(reading, path, true, read);
        return;
    }
}

void config_visit_files(struct config_reading *reading, const struct config_source *source,
                        void (*read)(struct config_reading *reading, const char *path, FILE *file))
{
    _cleanup_(drop_ins_done) struct drop_ins drop_ins = {0};

    config_visit(reading, source->file, source->is_required, read);
    for (size_t i = 0; i < CONFIG_DIRECTORIES_MAX && source->directories[i]; i++)
        drop_ins_collect(&drop_ins, reading, source->directories[i]);
    if (drop_ins.count > 0)
        qsort(drop_ins.names, drop_ins.count, sizeof(*drop_ins.names), compare_names);
    for (size_t i = 0; i < drop_ins.count; i++)
        config_visit_drop_in(reading, source, drop_ins.names[i], read);
}
