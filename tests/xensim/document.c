// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the scripts ask of JSON documents, hundreds of times: a process of a millisecond.
 *
 *   document number FILE KEY...       the value that is there, a text without its quotes; see
 *                                     element() for the keys of an array
 *   document balances FILE            its ledger does, in total and per CPU, to the record
 *   document as-reported FILE REPORT  its ledger says what `xensim run --report` says was produced
 *
 * Exit status: 0, 1 with a sentence on stderr, 2 for wrong usage.
 */

#include <json-c/json.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index of the object whose NAME is TEXT; that of none, if none is. */
static long named(struct json_object *array, const char *name, const char *text)
{
    long length = (long)json_object_array_length(array), i;

    for (i = 0; i < length; i++) {
        struct json_object *object = json_object_array_get_idx(array, (size_t)i), *value;

        if (json_object_object_get_ex(object, name, &value) && value &&
            strcmp(json_object_get_string(value), text) == 0)
            break;
    }
    return i;
}

/* KEY is an index, -1 for the last one; or NAME=TEXT. */
static bool element(struct json_object *array, const char *key, struct json_object **ret_value)
{
    long length = (long)json_object_array_length(array), i;
    const char *text = strchr(key, '=');
    char *name = strndup(key, strcspn(key, "="));

    i = text ? named(array, name, text + 1) : strtol(key, NULL, 10);
    free(name);
    if (i < 0)
        i += length;
    if (i < 0 || i >= length)
        return false;
    *ret_value = json_object_array_get_idx(array, (size_t)i);
    return true;
}

static struct json_object *child(struct json_object *parent, const char *key)
{
    struct json_object *value = NULL;

    if (json_object_is_type(parent, json_type_array)
            ? element(parent, key, &value)
            : json_object_object_get_ex(parent, key, &value))
        return value;
    (void)fprintf(stderr, "There is no '%s'.\n", key);
    exit(1);
}

static struct json_object *document(const char *file)
{
    struct json_object *value = json_object_from_file(file);

    if (value)
        return value;
    (void)fprintf(stderr, "%s", json_util_get_last_err());
    exit(1);
}

static int64_t count(struct json_object *parent, const char *key)
{
    struct json_object *value = child(parent, key);

    if (json_object_is_type(value, json_type_int))
        return json_object_get_int64(value);
    (void)fprintf(stderr, "'%s' is no number.\n", key);
    exit(1);
}

static int number(char **argv)
{
    struct json_object *root = document(argv[0]), *value = root;

    while (*++argv)
        value = child(value, *argv);
    (void)puts(json_object_is_type(value, json_type_string)
                   ? json_object_get_string(value)
                   : json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
    (void)json_object_put(root);
    return 0;
}

static int check_line(struct json_object *line)
{
    if (count(line, "produced") == count(line, "delivered") + count(line, "lost") +
                                       count(line, "dropped") + count(line, "evicted"))
        return 0;
    (void)fprintf(stderr, "It does not balance: %s\n", json_object_to_json_string(line));
    return 1;
}

static int balances(char **argv)
{
    struct json_object *root = document(argv[0]), *ledger = child(root, "ledger"),
                       *cpus = child(ledger, "cpus");
    int status = check_line(ledger);

    for (size_t i = 0; i < json_object_array_length(cpus); i++)
        status |= check_line(json_object_array_get_idx(cpus, i));
    (void)json_object_put(root);
    return status;
}

static struct json_object *of_cpu(struct json_object *cpus, int64_t cpu)
{
    for (size_t i = 0; i < json_object_array_length(cpus); i++)
        if (count(json_object_array_get_idx(cpus, i), "cpu") == cpu)
            return json_object_array_get_idx(cpus, i);
    (void)fprintf(stderr, "The producer had no CPU %" PRId64 ".\n", cpu);
    exit(1);
}

static int as_reported(char **argv)
{
    struct json_object *root = document(argv[0]), *report = document(argv[1]),
                       *cpus = child(child(root, "ledger"), "cpus");
    int status = 0;

    for (size_t i = 0; i < json_object_array_length(cpus); i++) {
        struct json_object *line = json_object_array_get_idx(cpus, i),
                           *truth = of_cpu(child(report, "cpus"), count(line, "cpu"));

        if (count(line, "produced") == count(truth, "attempted") &&
            count(line, "lost") == count(truth, "lost"))
            continue;
        (void)fprintf(stderr, "%s, but it was:\n", json_object_to_json_string(line));
        (void)fprintf(stderr, "%s\n", json_object_to_json_string(truth));
        status = 1;
    }
    (void)json_object_put(root);
    (void)json_object_put(report);
    return status;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "number") == 0)
        return number(argv + 2);
    if (argc == 3 && strcmp(argv[1], "balances") == 0)
        return balances(argv + 2);
    if (argc == 4 && strcmp(argv[1], "as-reported") == 0)
        return as_reported(argv + 2);
    (void)fputs("usage: document number|balances|as-reported FILE ...\n", stderr);
    return 2;
}
