// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A page is made beside its place, and takes it when it is complete. A signal does not end that: it
 * takes milliseconds. While the trace is read, which may take minutes, there is no such file, so
 * that none is left behind. Names in the data are of guests: where a browser could take them for
 * HTML, they are escaped.
 */

#include "ctl/page.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/page-template.h"
#include "ctl/served.h"
#include "ctl/str.h"
#include "ctl/table.h"

struct page_output {
    struct page_template template;
    FILE *file;
    char *path;      /* NULL: standard output */
    char *temporary; /* beside it; NULL: there is none */
};

/* Whether the file at PATH is a page, or there is none. */
static bool may_replace(const char *path)
{
    char first[sizeof(PAGE_FIRST_LINES)] = "";
    struct stat status;
    FILE *file;
    size_t n;

    if (lstat(path, &status) < 0)
        return errno == ENOENT;
    if (!S_ISREG(status.st_mode))
        return false;
    file = fopen(path, "re");
    if (!file)
        return false;
    n = fread(first, 1, sizeof(first) - 1, file);
    (void)fclose(file);
    return n == sizeof(first) - 1 && strcmp(first, PAGE_FIRST_LINES) == 0;
}

/* With the rights of a file that is newly made, which mkstemp(3) does not give. */
static int open_temporary(struct page_output *output, char **ret_error)
{
    mode_t mask = umask(0);
    int fd;

    (void)umask(mask);
    output->temporary = str_format("%s.XXXXXX", output->path);
    if (!output->temporary)
        return -ENOMEM;
    fd = mkostemp(output->temporary, O_CLOEXEC);
    if (fd < 0) {
        free(output->temporary);
        output->temporary = NULL;
        return str_refuse(-errno, ret_error, "Cannot create %s: %m.", output->path);
    }
    (void)fchmod(fd, 0666 & ~mask);
    output->file = fdopen(fd, "we");
    if (output->file)
        return 0;
    (void)close(fd);
    return -ENOMEM;
}

static void discard_temporary(struct page_output *output)
{
    if (output->temporary)
        (void)unlink(output->temporary);
    free(output->temporary);
    output->temporary = NULL;
    if (output->file && output->path)
        (void)fclose(output->file);
    output->file = NULL;
}

/* So that a folder that takes no file is reported before the trace is read. */
static int try_temporary(struct page_output *output, char **ret_error)
{
    int r = open_temporary(output, ret_error);

    discard_temporary(output);
    return r;
}

int page_check_path(const char *path, char **ret_error)
{
    if (strcmp(path, "-") == 0 || may_replace(path))
        return 0;
    return str_refuse(-EEXIST, ret_error,
                      "%s exists and is not a page. Nothing was written. The page that is made "
                      "is named after the option: --html PAGE",
                      path);
}

int page_open(const char *path, struct page_output **ret_output, char **ret_error)
{
    struct page_output *output = calloc(1, sizeof(*output));
    int r = 0;

    if (!output)
        return -ENOMEM;
    if (!page_template_find(&output->template)) {
        free(output);
        return str_refuse(-ENOTSUP, ret_error,
                          "This xentracectl was built without D3, and cannot make pages. Nothing "
                          "was written. Install libjs-d3, and build it again.");
    }
    if (served_path())
        r = (output->file = fdopen(served_output_fd(), "w")) ? 0 : -errno;
    else if (strcmp(path, "-") == 0)
        output->file = stdout;
    else if ((r = page_check_path(path, ret_error)) < 0)
        ;
    else if (!(output->path = strdup(path)))
        r = -ENOMEM;
    else
        r = try_temporary(output, ret_error);
    if (r < 0) {
        page_free(output);
        return r;
    }
    *ret_output = output;
    return 0;
}

/*
 * In JSON, '<' is in strings only. Without it, nothing in the data can end the script element that
 * it is in, or begin a comment.
 */
static size_t write_data(FILE *file, const char *text)
{
    size_t bytes = 0;

    while (*text) {
        size_t length = strcspn(text, "<");

        bytes += fwrite(text, 1, length, file);
        text += length;
        if (*text == '<') {
            bytes += fwrite("\\u003c", 1, 6, file);
            text++;
        }
    }
    return bytes;
}

static int refuse_writing(const struct page_output *output, char **ret_error)
{
    int error = errno;

    if (!output->path)
        clearerr(stdout); /* main() would report it again */
    errno = error;
    return str_refuse(errno > 0 ? -errno : -EIO, ret_error,
                      "Cannot write the page to %s: %m. It is incomplete.",
                      output->path ? output->path : "standard output");
}

static int write_all(struct page_output *output, const char *text, size_t *ret_bytes,
                     char **ret_error)
{
    const struct page_template *template = &output->template;
    size_t bytes;
    bool failed;

    errno = 0;
    bytes = fwrite(template->head, 1, template->head_bytes, output->file);
    bytes += write_data(output->file, text);
    bytes += fwrite(template->tail, 1, template->tail_bytes, output->file);
    failed = fflush(output->file) != 0 || ferror(output->file);
    if (output->path) {
        failed = fclose(output->file) != 0 || failed;
        output->file = NULL;
    }
    if (failed || (output->path && rename(output->temporary, output->path) < 0))
        return refuse_writing(output, ret_error);
    free(output->temporary);
    output->temporary = NULL;
    *ret_bytes = bytes;
    return 0;
}

/* A signal that ends the process waits until the page is in its place, or nothing remains. */
static int write_file(struct page_output *output, const char *text, size_t *ret_bytes,
                      char **ret_error)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t signals, before;
    int r;

    (void)sigemptyset(&signals); /* none of these can fail */
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        (void)sigaddset(&signals, ends[i]);
    (void)sigprocmask(SIG_BLOCK, &signals, &before);
    r = open_temporary(output, ret_error);
    if (r == 0)
        r = write_all(output, text, ret_bytes, ret_error);
    discard_temporary(output);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

int page_write(struct page_output *output, struct json_object *data, size_t *ret_bytes,
               char **ret_error)
{
    const char *text = json_object_to_json_string_ext(data, JSON_C_TO_STRING_PLAIN |
                                                                JSON_C_TO_STRING_NOSLASHESCAPE);

    if (!text)
        return -ENOMEM;
    return output->path ? write_file(output, text, ret_bytes, ret_error)
                        : write_all(output, text, ret_bytes, ret_error);
}

void page_print_written(const char *path, size_t bytes)
{
    _cleanup_free_ char *quoted = str_shell_show(path);
    char size[UNITS_TEXT_MAX];

    if (strcmp(path, "-") == 0 || !quoted)
        return;
    table_print_field(stdout, "Page", "%s", path);
    table_print_field(stdout, "Size", "%s", size_format(size, bytes));
    table_print_field(stdout, "Next", "xdg-open %s", quoted);
}

struct page_output *page_free(struct page_output *output)
{
    if (!output)
        return NULL;
    free(output->path);
    free(output);
    return NULL;
}
