// SPDX-License-Identifier: GPL-2.0-or-later
/* common/varlink.c, and json_text_parse_strict(): what is no message, or too much of one, is
 * refused before it takes memory. */

#include "common/varlink.h"

#include <json-c/json.h>

#include "common/json-text.h"
#include "common/util.h"
#include "tests/unit/test.h"

static const struct {
    const char *name;
    const char *text;
    int result;
} texts[] = {
    {"an empty object", "{}", 0},
    {"a call", "{\"method\":\"a.B\",\"parameters\":{\"names\":[\"x\",\"y\"]}}", 0},
    {"brackets and commas in a string", "{\"a\":\"{{{{{{{{{{[[[[[[[,,,,\"}", 0},
    {"a quotation mark in a string", "{\"a\":\"\\\"{\"}", 0},
    {"a backslash at the end of a string", "{\"a\":\"\\\\\"}", 0},
    {"as deep as it may be", "{\"a\":[[[[[[[]]]]]]]}", 0},
    {"white space around it", " {\"a\": 1 }", 0},
    {"U+0001 and what begins like a NUL", "{\"a\":\"\\u0001\\u000a\\\\u0000\"}", 0},

    {"nothing", "", -EBADMSG},
    {"no object", "[1]", -EBADMSG},
    {"a number", "17", -EBADMSG},
    {"not the end of an object", "{\"a\":1", -EBADMSG},
    {"not the end of a string", "{\"a", -EBADMSG},
    {"nothing after a backslash", "{\"a\\", -EBADMSG},
    {"a bracket too many", "{}}", -EBADMSG},
    {"two objects", "{}{}", -EBADMSG},
    {"something after it", "{}x", -EBADMSG},
    {"brackets that do not match", "{\"a\":[}]", -EBADMSG},
    {"single quotation marks", "{'a':1}", -EBADMSG},
    {"a quotation mark in single ones", "{'\"':[[[[[[[[[]]]]]]]]],'\"':1}", -EBADMSG},
    {"a comma too many", "{\"a\":1,}", -EBADMSG},
    {"a comment", "{/* */}", -EBADMSG},
    {"a NUL in a value", "{\"a\":\"x\\u0000y\"}", -EBADMSG},
    {"a NUL in a key", "{\"a\\u0000b\":1}", -EBADMSG},
    {"Latin-1", "{\"a\":\"\xfc\"}", -EBADMSG},
    {"a control character", "{\"a\":\"\n\"}", -EBADMSG},
    {"what sd-bus begins with", "AUTH EXTERNAL 30\r\n", -EBADMSG},
    {"33 deep", "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
     -EBADMSG},
};

static void check_texts(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct json_object *message = NULL;

        test_case(texts[i].name);
        CHECK_INT(json_text_parse_strict(texts[i].text, strlen(texts[i].text),
                                         VARLINK_CALL_MEMORY_MAX, &message),
                  texts[i].result);
        CHECK(texts[i].result == 0 ? !!message : !message);
        json_object_put(message);
    }
}

/* As many of PIECE as there is room for, between HEAD and TAIL. */
static int parse_many(const char *head, const char *piece, size_t nr, const char *tail)
{
    size_t bytes = strlen(head) + nr * strlen(piece) + strlen(tail), at = strlen(head);
    char *text = malloc(bytes + 1);
    struct json_object *message = NULL;
    int r;

    strcpy(text, head);
    for (size_t i = 0; i < nr; i++, at += strlen(piece))
        strcpy(text + at, piece);
    strcpy(text + at, tail);
    r = json_text_parse_strict(text, bytes, VARLINK_CALL_MEMORY_MAX, &message);
    json_object_put(message);
    free(text);
    return r;
}

static void check_bounds(void)
{
    test_case("10,000 brackets");
    CHECK_INT(parse_many("{\"a\":", "[", 10000, ""), -EFBIG);
    test_case("21,000 empty objects");
    CHECK_INT(parse_many("{\"a\":[", "{},", 21000, "{}]}"), -EFBIG);
    test_case("32,000 numbers");
    CHECK_INT(parse_many("{\"a\":[", "1,", 32000, "1]}"), -EFBIG);
    test_case("as many names as are accepted");
    CHECK_INT(parse_many("{\"a\":[", "\"b\",", 8192, "\"b\"]}"), 0);
}

/* The byte after the text is none of it. */
static void check_end(void)
{
    struct json_object *message = NULL;

    test_case("the end of the text is its length");
    CHECK_INT(json_text_parse_strict("{}x", 2, VARLINK_CALL_MEMORY_MAX, &message), 0);
    json_object_put(message);
    CHECK_INT(json_text_parse_strict("{\"a\"", 3, VARLINK_CALL_MEMORY_MAX, &message), -EBADMSG);
    CHECK_INT(json_text_parse_strict("{\"\\u0000", 7, VARLINK_CALL_MEMORY_MAX, &message), -EBADMSG);
}

static int read_call(const char *text, struct varlink_call *ret_call, struct json_object **message)
{
    json_object_put(*message);
    *message = NULL;
    CHECK_INT(json_text_parse_strict(text, strlen(text), VARLINK_CALL_MEMORY_MAX, message), 0);
    return varlink_read_call(*message, ret_call);
}

static void check_calls(void)
{
    struct json_object *message = NULL;
    struct varlink_call call;

    test_case("a call is read");
    CHECK_INT(read_call("{\"method\":\"a.B\",\"parameters\":{\"c\":1},\"more\":true,\"new\":1}",
                        &call, &message),
              0);
    CHECK_STR(call.method, "a.B");
    CHECK(call.more && !call.oneway && !call.upgrade);
    CHECK_INT(json_object_object_length(call.parameters), 1);
    test_case("null is as if it were left out");
    CHECK_INT(read_call("{\"method\":\"a.B\",\"parameters\":null,\"more\":null}", &call, &message),
              0);
    CHECK(!call.parameters && !call.more);
    test_case("what is no call");
    CHECK_INT(read_call("{}", &call, &message), -EBADMSG);
    CHECK_INT(read_call("{\"method\":1}", &call, &message), -EBADMSG);
    CHECK_INT(read_call("{\"method\":\"a.B\",\"parameters\":[]}", &call, &message), -EBADMSG);
    CHECK_INT(read_call("{\"method\":\"a.B\",\"oneway\":1}", &call, &message), -EBADMSG);
    CHECK_INT(read_call("{\"method\":\"a.B\",\"upgrade\":\"yes\"}", &call, &message), -EBADMSG);
    json_object_put(message);
}

static void check_text(const char *expected, struct json_object *message)
{
    size_t bytes = 0;

    CHECK_STR(varlink_text(message, &bytes), expected);
    CHECK_UINT(bytes, strlen(expected) + 1);
    json_object_put(message);
}

static void check_made(void)
{
    struct json_object *parameters = json_object_new_object(), *message;
    struct varlink_reply reply;
    size_t bytes;

    test_case("messages are made");
    json_object_object_add(parameters, "path", json_object_new_string("/a"));
    check_text("{\"method\":\"a.B\",\"parameters\":{\"path\":\"/a\"},\"more\":true}",
               varlink_make_call("a.B", parameters, true));
    check_text("{\"method\":\"a.B\",\"parameters\":{}}", varlink_make_call("a.B", NULL, false));
    check_text("{\"parameters\":{},\"continues\":true}", varlink_make_reply(NULL, true));
    check_text("{\"parameters\":{}}", varlink_make_reply(NULL, false));
    test_case("an error is made and read");
    message = varlink_make_error("a.E", NULL);
    CHECK_INT(varlink_read_reply(message, &reply), 0);
    CHECK_STR(reply.error, "a.E");
    CHECK(reply.parameters && !reply.continues);
    json_object_put(message);
    test_case("what is not UTF-8 is not sent");
    message = varlink_make_error("M\xfcnchen", NULL);
    CHECK(!varlink_text(message, &bytes));
    json_object_put(message);
}

int main(void)
{
    check_texts();
    check_bounds();
    check_end();
    check_calls();
    check_made();
    return test_end();
}
