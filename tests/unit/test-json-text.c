// SPDX-License-Identifier: GPL-2.0-or-later
/* common/json-text.c: the memory of hostile JSON is bounded before any of it is allocated. */

#include "common/json-text.h"

#include <json-c/json.h>
#include <malloc.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define MEMORY (UINT64_C(4) << 20)

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* "{\"a\":[" + COUNT times PART, which may have a %zu, + "0]}". */
static char *repeat(const char *begin, const char *part, size_t count, const char *end)
{
    size_t size = strlen(begin) + count * (strlen(part) + 24) + strlen(end) + 1;
    char *text = malloc(size), *p = stpcpy(text, begin);

    for (size_t i = 0; i < count; i++)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        p += snprintf(p, size - (size_t)(p - text), part, i);
#pragma GCC diagnostic pop
    (void)stpcpy(p, end);
    return text;
}

/* What is estimated is never less than what json-c takes, and not absurdly more. */
static void test_estimate(void)
{
    static const struct {
        const char *name, *begin, *part, *end;
    } cases[] = {
        {"empty objects", "{\"a\":[", "{},", "0]}"},
        {"empty arrays", "{\"a\":[", "[],", "0]}"},
        {"numbers", "{\"a\":[", "1,", "0]}"},
        {"fractions", "{\"a\":[", "1.5,", "0]}"},
        {"empty strings", "{\"a\":[", "\"\",", "0]}"},
        {"strings", "{\"a\":[", "\"some text of a domain's name\",", "0]}"},
        {"members", "{", "\"%zu\":1,", "\"a\":0}"},
        {"members with texts", "{", "\"a name of a member %1$zu\":\"x%1$zu\",", "\"a\":0}"},
        {"objects with a member", "{\"a\":[", "{\"b\":{}},", "0]}"},
        {"objects in two arrays", "{\"a\":[", "[[{}]],", "0]}"},
        {"a long string", "{\"a\":\"", "%zu", "\"}"},
        {"the ledger of a CPU", "{\"a\":[",
         "{\"cpu\":%zu,\"produced\":1,\"delivered\":2,\"lost\":3,\"dropped\":4,\"evicted\":5,"
         "\"fill\":6,\"fill_max\":7},",
         "0]}"},
    };
    /* Around the sizes at which tables, arrays and buffers grow. */
    static const size_t counts[] = {1, 9, 11, 12, 22, 33, 43, 65, 1000, 1367, 4097, 22000};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_case(cases[i].name);
        for (size_t j = 0; j < ARRAY_SIZE(counts); j++) {
            char *text = repeat(cases[i].begin, cases[i].part, counts[j], cases[i].end);
            size_t before = allocated(), after;
            uint64_t estimate = json_text_memory(text, strlen(text));
            struct json_object *object = NULL;

            CHECK_INT(json_text_parse(text, strlen(text), UINT64_MAX, NULL, &object), 0);
            after = allocated();
            CHECK(after - before <= estimate);
            json_object_put(object);
            free(text);
        }
    }
}

static void test_limit(void)
{
    static const char *const parts[] = {"{},", "[],", "1,", "\"\",", "/*,*/1,"};
    struct json_object *object = NULL;

    test_case("more than the limit is not parsed");
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        char *text = repeat("{\"a\":[", parts[i], 1000000, "0]}");
        size_t before = allocated();

        CHECK_INT(json_text_parse(text, strlen(text), MEMORY, NULL, &object), -EFBIG);
        CHECK_UINT(allocated(), before);
        free(text);
    }
    test_case("the sidecar of the largest host is within the limit");
    {
        char *text = repeat("{\"cpus\":[",
                            "{\"cpu\":%zu,\"produced\":1000000000000,\"delivered\":1000000000000,"
                            "\"lost\":3,\"dropped\":4,\"evicted\":5,\"fill\":6,\"fill_max\":7,"
                            "\"windows\":8},",
                            16383, "0]}");

        CHECK_INT(json_text_parse(text, strlen(text), JSON_FILE_MAX_MEMORY, NULL, &object), 0);
        json_object_put(object);
        free(text);
    }
}

static void test_parse(void)
{
    static const struct {
        const char *name, *text;
        size_t bytes; /* 0: of the text */
        int result, result_used;
        size_t used;
    } cases[] = {
        {"an object", "{\"a\":1}", 0, 0, 0, 7},
        {"white space after it", "{} \r\n\t", 0, 0, 0, 6},
        {"another object after it", "{}{}", 0, -EBADMSG, 0, 2},
        {"text after it", "{}x", 0, -EBADMSG, 0, 2},
        {"a zero after it", "{}", 3, -EBADMSG, 0, 2},
        {"a zero in it", "{\"a\0\":1}", 8, -EBADMSG, -EBADMSG, 0},
        {"nothing", "", 0, -EBADMSG, -EBADMSG, 0},
        {"null", "null ", 0, -EBADMSG, -EBADMSG, 0},
        {"an array", "[]", 0, -EBADMSG, -EBADMSG, 0},
        {"a number", "1 ", 0, -EBADMSG, -EBADMSG, 0},
        {"without an end", "{\"a\":[1,", 0, -EBADMSG, -EBADMSG, 0},
    };
    char *deep;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_object *object = NULL;
        size_t bytes = cases[i].bytes ? cases[i].bytes : strlen(cases[i].text), used = 0;

        test_case(cases[i].name);
        CHECK_INT(json_text_parse(cases[i].text, bytes, MEMORY, NULL, &object), cases[i].result);
        json_object_put(object);
        object = NULL;
        CHECK_INT(json_text_parse(cases[i].text, bytes, MEMORY, &used, &object),
                  cases[i].result_used);
        CHECK_UINT(used, cases[i].used);
        json_object_put(object);
    }

    test_case("nested 10,000 deep");
    deep = repeat("", "{\"a\":", 10000, "1");
    {
        struct json_object *object = NULL;

        CHECK_INT(json_text_parse(deep, strlen(deep), UINT64_MAX, NULL, &object), -EBADMSG);
    }
    free(deep);
}

int main(void)
{
    test_estimate();
    test_limit();
    test_parse();
    return test_end();
}
