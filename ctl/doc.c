// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * json-c converts between types silently ("12" is 12, {} is "{ }"); the readers here check the type
 * first, so that a strange document shows as an empty one.
 */

#include "ctl/doc.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json_visit.h>
#include <string.h>

#include "common/json-text.h"
#include "common/utf8.h"
#include "ctl/str.h"

#define DOC_VERSION 1u /* keys are only ever added to it */

int doc_parse(const char *text, size_t bytes, struct json_object **ret_doc)
{
    return json_text_parse(text, bytes, JSON_FILE_MAX_MEMORY, NULL, ret_doc);
}

int doc_read_file(const char *path, struct json_object **ret_doc)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    return fd < 0 ? -errno : json_text_read(fd, JSON_FILE_MAX_MEMORY, ret_doc);
}

struct json_object *doc_free(struct json_object *doc)
{
    (void)json_object_put(doc); /* says only whether others still hold it */
    return NULL;
}

bool doc_is(struct json_object *doc, const char *format)
{
    return strcmp(doc_text(doc, "format", ""), format) == 0 &&
           doc_number(doc, "version") == DOC_VERSION;
}

const char *doc_text(struct json_object *doc, const char *path, const char *fallback)
{
    struct json_object *found = doc_find(doc, path);

    return json_object_is_type(found, json_type_string) ? json_object_get_string(found) : fallback;
}

uint64_t doc_number(struct json_object *doc, const char *path)
{
    struct json_object *found = doc_find(doc, path);

    if (!json_object_is_type(found, json_type_int) || json_object_get_int64(found) < 0)
        return 0;
    return json_object_get_uint64(found);
}

bool doc_flag(struct json_object *doc, const char *path)
{
    struct json_object *found = doc_find(doc, path);

    return json_object_is_type(found, json_type_boolean) && json_object_get_boolean(found);
}

bool doc_says_no(struct json_object *doc, const char *path)
{
    return doc_find(doc, path) && !doc_flag(doc, path);
}

struct json_object *doc_array(struct json_object *doc, const char *path)
{
    struct json_object *found = doc_find(doc, path);

    return json_object_is_type(found, json_type_array) ? found : NULL;
}

size_t doc_length(struct json_object *array)
{
    return array ? json_object_array_length(array) : 0;
}

struct json_object *doc_at(struct json_object *array, size_t i)
{
    return json_object_array_get_idx(array, i);
}

static int clean_string(struct json_object *object, int flags, struct json_object *parent,
                        const char *key, size_t *index, void *context)
{
    _cleanup_free_ char *text = NULL;

    (void)flags, (void)parent, (void)key, (void)index, (void)context;
    if (!json_object_is_type(object, json_type_string))
        return JSON_C_VISIT_RETURN_CONTINUE;
    text = strdup(json_object_get_string(object));
    if (text)
        str_make_printable(text);
    (void)json_object_set_string(object, text ? text : ""); /* 0 only for other types */
    return JSON_C_VISIT_RETURN_CONTINUE;
}

void doc_make_printable(struct json_object *doc)
{
    (void)json_c_visit(doc, 0, clean_string, NULL); /* the visitor never fails */
}

/*
 * json-c escapes only what JSON requires, which is C0. All else that is not shown is escaped here;
 * it stands inside strings, so the document stays the same.
 */
static void print_escaped(FILE *file, struct json_object *doc, int flags)
{
    const char *text = json_object_to_json_string_ext(doc, flags);

    for (text = text ? text : "{}"; *text;) {
        uint32_t character;
        size_t length = utf8_read(text, &character);

        if (length == 0)
            (void)fputs("\\ufffd", file);
        else if (character >= 0x10000 && !utf8_is_shown(character))
            (void)fprintf(file, "\\u%04x\\u%04x", 0xd7c0 + (character >> 10),
                          0xdc00 + (character & 0x3ff));
        else if (*text != '\n' && !utf8_is_shown(character))
            (void)fprintf(file, "\\u%04x", character);
        else
            (void)fwrite(text, 1, length, file);
        text += length ? length : 1;
    }
    (void)fputc('\n', file);
}

void doc_print(FILE *file, struct json_object *doc)
{
    print_escaped(file, doc,
                  JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                      JSON_C_TO_STRING_NOSLASHESCAPE);
}

void doc_print_line(FILE *file, struct json_object *doc)
{
    print_escaped(file, doc, JSON_C_TO_STRING_NOSLASHESCAPE);
}

struct json_object *doc_new(const char *format)
{
    struct json_object *doc = json_object_new_object();

    doc_add_text(doc, "format", format);
    doc_add_number(doc, "version", DOC_VERSION);
    return doc;
}

bool doc_session_has_ended(struct json_object *session)
{
    return strcmp(doc_text(session, "state", ""), "ended") == 0;
}
