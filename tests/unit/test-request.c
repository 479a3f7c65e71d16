// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * daemon/control/request.c: each call takes the parameters of the interface's file and no others,
 * with their types; what is wrong is named.
 */

#include "daemon/control/request.h"

#include <errno.h>

#include <json-c/json.h>

#include "common/interface.h"
#include "common/protocol.h"
#include "daemon/control/connection.h"
#include "tests/unit/test.h"

static const struct passed two = {.fds = {10, 11}, .count = 2};
static const struct passed none;
static const struct config config;

static int read_start(struct json_object *parameters, struct failure *failure)
{
    struct start_request request;

    return request_read_start(parameters, &none, &config, &request, failure);
}

static int read_snapshot(struct json_object *parameters, struct failure *failure)
{
    struct snapshot_request request;

    return request_read_snapshot(parameters, &none, &config, &request, failure);
}

static int read_clean(struct json_object *parameters, struct failure *failure)
{
    struct clean_request request;

    return request_read_clean(parameters, &config, &request, failure);
}

static int read_status(struct json_object *parameters, struct failure *failure)
{
    struct status_request request;

    return request_read_status(parameters, &request, failure);
}

static int read_remove(struct json_object *parameters, struct failure *failure)
{
    struct remove_request request;

    return request_read_remove(parameters, &request, failure);
}

static int read_name(struct json_object *parameters, struct failure *failure)
{
    const char *name;

    return request_read_text(parameters, FIELD_NAME, false, &name, failure);
}

static int read_required_name(struct json_object *parameters, struct failure *failure)
{
    const char *name;

    return request_read_text(parameters, FIELD_NAME, true, &name, failure);
}

static const struct {
    const char *method;
    int (*read)(struct json_object *parameters, struct failure *failure);
} methods[] = {
    {PROTOCOL_START, read_start},           {PROTOCOL_STOP, read_name},
    {PROTOCOL_ABORT, read_required_name},   {PROTOCOL_ROTATE, read_name},
    {PROTOCOL_TRIGGER, read_required_name}, {PROTOCOL_STATUS, read_status},
    {PROTOCOL_SNAPSHOT, read_snapshot},     {PROTOCOL_VACUUM, read_clean},
    {PROTOCOL_REMOVE, read_remove},         {PROTOCOL_STOP_RECORDER, request_read_nothing},
    {PROTOCOL_FILES, request_read_nothing}, {PROTOCOL_RELOAD, request_read_nothing},
};

static int read_one(size_t i, const char *key, const char *value, struct failure *failure)
{
    struct json_object *parameters = json_object_new_object();
    int r;

    json_object_object_add(parameters, key, value ? json_tokener_parse(value) : NULL);
    *failure = (struct failure){0};
    r = methods[i].read(parameters, failure);
    json_object_put(parameters);
    return r;
}

static void check_refused(size_t i, const char *key, const char *value)
{
    struct failure failure;

    CHECK_INT(read_one(i, key, value, &failure), -EINVAL);
    CHECK_STR(failure.name, SERVICE_ERROR_PARAMETER);
    CHECK_STR(failure.parameter, key);
}

/* Every parameter of method I, from the text after its name. */
static unsigned int check_parameters(size_t i, const char *text)
{
    char key[64], type[16];
    struct failure failure;
    unsigned int count = 0;
    int length;

    while (sscanf(text, "%*[ (,\n]%63[a-z_]: %15[]a-z?[]%n", key, type, &length) == 2) {
        if (type[0] == '?') /* or it may not be left out, nor be null */
            CHECK_INT(read_one(i, key, NULL, &failure), 0);
        else
            check_refused(i, key, NULL);
        check_refused(i, key, "{}");
        if (strstr(type, "int")) {
            check_refused(i, key, "-1");
            check_refused(i, key, "\"1\"");
            check_refused(i, key, "1.5");
        }
        if (strstr(type, "bool"))
            check_refused(i, key, "1");
        text += length;
        count++;
    }
    return count;
}

static void test_interface(void)
{
    char head[64];

    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        const char *method;

        test_case(methods[i].method);
        (void)snprintf(head, sizeof(head), "\nmethod %s(", methods[i].method);
        method = strstr(interface_text, head);
        if (!CHECK(method))
            continue;
        CHECK(check_parameters(i, method + strlen(head) - 1) > 0 ||
              strstr(method, "()") < strchr(method, '>'));
        check_refused(i, "unknown", NULL);
    }
}

static void test_descriptors(void)
{
    struct json_object *parameters = json_tokener_parse("{\"output_fd\":1,\"sidecar_fd\":0}");
    struct start_request request;
    struct failure failure = {0};

    test_case("descriptors by their index");
    CHECK_INT(request_read_start(parameters, &two, &config, &request, &failure), 0);
    CHECK_INT(request.options.output_fd, 11);
    CHECK_INT(request.options.sidecar_fd, 10);
    CHECK(request.has_options && request.options.has_output);
    json_object_put(parameters);

    test_case("one that no parameter names");
    parameters = json_tokener_parse("{\"output_fd\":1}");
    CHECK_INT(request_read_start(parameters, &two, &config, &request, &failure), -EINVAL);
    CHECK_STR(failure.name, ERROR_INVALID);
    json_object_put(parameters);

    test_case("one that two name");
    parameters = json_tokener_parse("{\"output_fd\":1,\"sidecar_fd\":1}");
    CHECK_INT(request_read_start(parameters, &two, &config, &request, &failure), -EINVAL);
    CHECK_STR(failure.parameter, "sidecar_fd");
    json_object_put(parameters);

    test_case("one that was not sent");
    parameters = json_tokener_parse("{\"output_fd\":2}");
    CHECK_INT(request_read_start(parameters, &two, &config, &request, &failure), -EINVAL);
    CHECK_STR(failure.parameter, "output_fd");
    json_object_put(parameters);
}

static void test_numbers(void)
{
    struct json_object *parameters =
        json_tokener_parse("{\"time_usec\":9223372036854775807,\"keep_files\":4294967295}");
    struct start_request request;
    struct failure failure = {0};

    test_case("the largest numbers");
    CHECK_INT(request_read_start(parameters, &none, &config, &request, &failure), 0);
    CHECK_UINT(request.options.time_usec, INT64_MAX);
    CHECK_UINT(request.options.keep_files, UINT32_MAX);
    json_object_put(parameters);
    test_case("larger ones");
    check_refused(0, "time_usec", "9223372036854775808");
    check_refused(0, "keep_files", "4294967296");
}

int main(void)
{
    test_interface();
    test_descriptors();
    test_numbers();
    return test_end();
}
