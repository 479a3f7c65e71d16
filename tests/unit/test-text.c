// SPDX-License-Identifier: GPL-2.0-or-later

#include "common/text.h"

#include <errno.h>

#include "common/util.h"
#include "tests/unit/test.h"

struct items_case {
    const char *name;
    const char *list;
    const char *joined; /* with '|' between the items */
};

static const struct items_case items_cases[] = {
    {"one", "sched", "sched"},
    {"three", "a,b,c", "a|b|c"},
    {"blanks", " a , b\t,\nc ", "a|b|c"},
    {"blanks inside stay", "a b,c", "a b|c"},
    {"nothing is one empty item", "", ""},
    {"a comma at the end", "a,", "a|"},
    {"a comma alone", ",", "|"},
    {"only blanks", "  ,  ", "|"},
};

static void test_items(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(items_cases); i++) {
        char joined[64] = "";
        const char *between = "";
        struct text_item item;

        test_case(items_cases[i].name);
        for (const char *rest = items_cases[i].list; text_next_item(&rest, &item);) {
            strcat(joined, between);
            strncat(joined, item.begin, item.length);
            between = "|";
        }
        CHECK_STR(joined, items_cases[i].joined);
    }
}

struct quote_case {
    const char *name;
    const char *text;
    const char *quoted;
};

static const struct quote_case quote_cases[] = {
    {"plain", "sched", "sched"},
    {"empty", "", ""},
    {"escape sequence", "\033[2Jx", "?[2Jx"},
    {"not ASCII", "\xc3\xa9t\xc3\xa9", "??t??"},
    {"47 letters", "01234567890123456789012345678901234567890123456",
     "01234567890123456789012345678901234567890123456"},
    {"48 letters", "012345678901234567890123456789012345678901234567",
     "01234567890123456789012345678901234567890123..."},
};

static void test_quotes(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(quote_cases); i++) {
        const char *text = quote_cases[i].text;
        struct text_item item = {.begin = text, .length = strlen(text)};
        char buffer[TEXT_QUOTE_MAX];

        test_case(quote_cases[i].name);
        CHECK_STR(text_quote(buffer, &item), quote_cases[i].quoted);
    }
}

static void test_words(void)
{
    const struct text_item all = {.begin = "AlL0x1F", .length = 3};
    const struct text_item hex = {.begin = "0X1", .length = 3};
    const struct text_item no_hex = {.begin = "0x1", .length = 2};

    test_case("words");
    CHECK(text_item_is(&all, "all"));
    CHECK(!text_item_is(&all, "al"));
    CHECK(!text_item_is(&all, "all0"));
    CHECK(!text_item_is_hex(&all));
    CHECK(text_item_is_hex(&hex));
    CHECK(!text_item_is_hex(&no_hex));

    test_case("digits");
    for (int c = -128; c < 128; c++) {
        const char *const digits = "0123456789abcdef0123456789ABCDEF";
        const char *found = c == 0 ? NULL : strchr(digits, c);

        CHECK_UINT(text_hex_digit((char)c), found ? (unsigned int)((found - digits) % 16) : 16);
    }
}

static void test_refusal(void)
{
    _cleanup_free_ char *sentence = NULL;

    test_case("refusal");
    CHECK_INT(text_refuse(-ERANGE, &sentence, "CPU %u %s.", 7u, "is missing"), -ERANGE);
    CHECK_STR(sentence, "CPU 7 is missing.");
}

int main(void)
{
    test_items();
    test_quotes();
    test_words();
    test_refusal();
    return test_end();
}
