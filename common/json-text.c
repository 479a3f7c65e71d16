// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * json-c makes a hash table of 16 entries of each "{}", 300 times the text. So the memory is
 * estimated from the brackets and commas before it is called. Those in strings are counted, too:
 * json-c knows comments and other quotes than the standard, and a scan that knew fewer could be
 * made to miss some. Nesting is bounded by json-c itself.
 */

#include "common/json-text.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

/* Of json-c 0.16 and malloc(3), measured by tests/unit/test-json-text: an object with its table; */
#define OBJECT_BYTES 896u
/* an array with its first elements; */
#define ARRAY_BYTES 448u
/* and a value, its place in a table or array that grows, and its name. */
#define VALUE_BYTES 352u
/* A byte of a string: once more while the parser's buffer grows, and rounded up. */
#define TEXT_FACTOR 4u

uint64_t json_text_memory(const char *text, size_t bytes)
{
    uint64_t objects = 0, arrays = 0, values = 1;

    for (size_t i = 0; i < bytes; i++) {
        objects += text[i] == '{';
        arrays += text[i] == '[';
        values += text[i] == ',';
    }
    return objects * (OBJECT_BYTES + VALUE_BYTES) + arrays * (ARRAY_BYTES + VALUE_BYTES) +
           values * VALUE_BYTES + (uint64_t)bytes * TEXT_FACTOR;
}

static bool is_white_space(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\0' || !strchr(" \t\r\n", text[i]))
            return false;
    return true;
}

/* FLAGS are json-c's. */
static int parse(const char *text, size_t bytes, uint64_t max_memory, int flags, size_t *ret_used,
                 struct json_object **ret_object)
{
    struct json_tokener *tokener;
    struct json_object *object;
    size_t used;

    if (bytes > INT32_MAX || json_text_memory(text, bytes) > max_memory)
        return -EFBIG;
    tokener = json_tokener_new();
    if (!tokener)
        return -ENOMEM;
    json_tokener_set_flags(tokener, flags);
    object = json_tokener_parse_ex(tokener, text, (int)bytes);
    used = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    if (!json_object_is_type(object, json_type_object) ||
        (!ret_used && !is_white_space(text + used, bytes - used))) {
        (void)json_object_put(object); /* says only whether others still hold it */
        return -EBADMSG;
    }
    if (ret_used)
        *ret_used = used;
    *ret_object = object;
    return 0;
}

int json_text_parse(const char *text, size_t bytes, uint64_t max_memory, size_t *ret_used,
                    struct json_object **ret_object)
{
    return parse(text, bytes, max_memory, 0, ret_used, ret_object);
}

/*
 * json-c 0.16 takes control characters in strings and single quotation marks for JSON, and ends a
 * key at a NUL, so that two keys could look alike.
 */
static bool has_strict_strings(const char *text, size_t bytes)
{
    bool is_string = false;

    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];

        if (c == '"')
            is_string = !is_string;
        if (is_string ? (unsigned char)c < ' ' : c == '\'')
            return false;
        if (!is_string || c != '\\')
            continue;
        if (bytes - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
            return false;
        i++; /* what is escaped may be a quotation mark */
    }
    return !is_string;
}

int json_text_parse_strict(const char *text, size_t bytes, uint64_t max_memory,
                           struct json_object **ret_object)
{
    if (!has_strict_strings(text, bytes))
        return -EBADMSG;
    return parse(text, bytes, max_memory, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8, NULL,
                 ret_object);
}

int json_text_read(int fd, uint64_t max_memory, struct json_object **ret_object)
{
    _cleanup_free_ char *text = NULL;
    struct stat status;
    size_t bytes = 0;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EBADMSG;
    if ((uint64_t)status.st_size > max_memory / TEXT_FACTOR)
        return -EFBIG;
    text = malloc((size_t)status.st_size + 1);
    if (!text)
        return -ENOMEM;
    while (bytes < (size_t)status.st_size) {
        ssize_t n = pread(fd, text + bytes, (size_t)status.st_size - bytes, (off_t)bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        bytes += (size_t)n;
    }
    return json_text_parse(text, bytes, max_memory, NULL, ret_object);
}
