// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which list is too long is not known before: addresses, vCPUs, losses, pairs of CPUs. The limit
 * falls until the text is short enough.
 */

#include "ctl/page-trim.h"

#include <json-c/json.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "ctl/doc.h"
#include "ctl/str.h"

#define LEAST_ENTRIES 16u

/* The sum of the numbers in VALUE: more of them is more to see. */
static double weight_of(struct json_object *value)
{
    double sum = 0;

    switch (json_object_get_type(value)) {
    case json_type_int:
        return (double)json_object_get_uint64(value);
    case json_type_array:
        for (size_t i = 0; i < json_object_array_length(value); i++)
            sum += weight_of(json_object_array_get_idx(value, i));
        return sum;
    case json_type_object: {
        json_object_object_foreach(value, key, entry)
        {
            (void)key;
            sum += weight_of(entry);
        }
        return sum;
    }
    default:
        return 0;
    }
}

static int compare_weights(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x < *y) - (*x > *y);
}

void page_trim_note(struct json_object *trimmed, const char *path, size_t kept, size_t of)
{
    struct json_object *entry;

    for (size_t i = 0; i < json_object_array_length(trimmed); i++) {
        entry = json_object_array_get_idx(trimmed, i);
        if (strcmp(doc_text(entry, "path", ""), path) == 0) {
            (void)json_object_object_add(entry, "kept", json_object_new_uint64(kept));
            return;
        }
    }
    entry = doc_append_object(trimmed);
    doc_add_text(entry, "path", path);
    doc_add_number(entry, "kept", kept);
    doc_add_number(entry, "of", of);
}

/* Of OBJECT's entries, MOST stay. */
static void trim_object(struct json_object *object, size_t most, const char *path,
                        struct json_object *trimmed)
{
    size_t nr = (size_t)json_object_object_length(object), i = 0, kept = 0;
    double *weights = calloc(nr + 1, sizeof(*weights)), *sorted = calloc(nr + 1, sizeof(*sorted));
    const char **keys = calloc(nr + 1, sizeof(*keys));

    if (weights && sorted && keys) {
        json_object_object_foreach(object, key, value)
        {
            keys[i] = key;
            weights[i++] = weight_of(value);
        }
        memcpy(sorted, weights, nr * sizeof(*weights));
        qsort(sorted, nr, sizeof(*sorted), compare_weights);
        for (i = 0; i < nr; i++) {
            if (kept < most && weights[i] >= sorted[most - 1])
                kept++;
            else
                json_object_object_del(object, keys[i]);
        }
        page_trim_note(trimmed, path, kept, nr);
    }
    free(weights);
    free(sorted);
    free(keys);
}

/* Objects of objects, or of numbers, in which each key is another thing: those may be long. */
static void trim_below(struct json_object *value, size_t most, const char *path,
                       struct json_object *trimmed)
{
    if (json_object_is_type(value, json_type_array) && json_object_array_length(value) > most) {
        page_trim_note(trimmed, path, most, json_object_array_length(value));
        (void)json_object_array_del_idx(value, most, json_object_array_length(value) - most);
    }
    if (!json_object_is_type(value, json_type_object))
        return;
    if ((size_t)json_object_object_length(value) > most)
        trim_object(value, most, path, trimmed);
    json_object_object_foreach(value, key, entry)
    {
        _cleanup_free_ char *below = str_format("%s%s%s", path, *path ? "." : "", key);

        if (below)
            trim_below(entry, most, below, trimmed);
    }
}

static size_t length_of(struct json_object *doc)
{
    size_t length = 0;

    (void)json_object_to_json_string_length(doc, JSON_C_TO_STRING_PLAIN, &length);
    return length;
}

void page_trim(struct json_object *doc, size_t bytes, struct json_object *trimmed)
{
    for (size_t most = 4096; length_of(doc) > bytes && most >= LEAST_ENTRIES; most /= 2)
        trim_below(doc, most, "", trimmed);
}
