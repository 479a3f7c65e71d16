// SPDX-License-Identifier: GPL-2.0-or-later
/* common/utf8.c: whatever goes in, valid UTF-8 without control characters comes out. */

#include "common/utf8.h"

#include "common/util.h"
#include "tests/unit/test.h"

#define BAD "\xef\xbf\xbd"

static const struct {
    const char *name;
    const char *from;
    const char *to;
} cases[] = {
    {"empty", "", ""},
    {"ASCII", "web-1 (old)\\", "web-1 (old)\\"},
    {"two, three and four bytes", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7",
     "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7"},
    {"the first of each length", "\xc2\xa0\xe0\xa0\x80\xf0\x90\x80\x80",
     "\xc2\xa0\xe0\xa0\x80\xf0\x90\x80\x80"},
    {"the last of each length", "\xdf\xbf\xef\xbf\xbd\xf4\x8f\xbf\xbd",
     "\xdf\xbf\xef\xbf\xbd\xf4\x8f\xbf\xbd"},
    {"around the surrogates", "\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"},

    {"Latin-1", "M\xfcnchen", "M" BAD "nchen"},
    {"a continuation without a beginning",
     "a\x80"
     "b\xbf",
     "a" BAD "b" BAD},
    {"bytes that begin nothing", "\xc0\xc1\xf5\xf8\xfe\xff", BAD BAD BAD BAD BAD BAD},
    {"overlong, two bytes", "\xc0\xaf", BAD BAD},
    {"overlong, three bytes", "\xe0\x80\xaf", BAD BAD BAD},
    {"overlong, three bytes, the last", "\xe0\x9f\xbf", BAD BAD BAD},
    {"overlong, four bytes", "\xf0\x80\x80\xaf", BAD BAD BAD BAD},
    {"overlong, four bytes, the last", "\xf0\x8f\xbf\xbf", BAD BAD BAD BAD},
    {"the first surrogate", "\xed\xa0\x80", BAD BAD BAD},
    {"the last surrogate", "\xed\xbf\xbf", BAD BAD BAD},
    {"above U+10FFFF", "\xf4\x90\x80\x80", BAD BAD BAD BAD},
    {"cut after the first of two", "a\xc3", "a" BAD},
    {"cut after the first of three", "a\xe2", "a" BAD},
    {"cut after the second of three", "a\xe2\x82", "a" BAD BAD},
    {"cut after the third of four", "a\xf0\x9f\x90", "a" BAD BAD BAD},
    {"cut, and a character follows", "\xe2\x82z\xf0\x9f\xc3\xa4", BAD BAD "z" BAD BAD "\xc3\xa4"},

    {"noncharacters, which D-Bus refuses",
     "\xef\xb7\x90\xef\xb7\xaf\xef\xbf\xbe\xf0\x9f\xbf\xbf\xf4\x8f\xbf\xbf", BAD BAD BAD BAD BAD},
    {"beside noncharacters", "\xef\xb7\x8f\xef\xb7\xb0", "\xef\xb7\x8f\xef\xb7\xb0"},

    {"C0", "\x01\t\n\x1b[31m\x1f ", "\\x01\\x09\\x0a\\x1b[31m\\x1f "},
    {"DEL", "~\x7f", "~\\x7f"},
    {"C1",
     "\xc2\x80\xc2\x9b"
     "31m\xc2\x9f\xc2\xa0",
     "\\x80\\x9b31m\\x9f\xc2\xa0"},
    {"overrides of the direction", "\u202a\u202e\u2066\u2069\u200e\u200f\u061c",
     "\\u202a\\u202e\\u2066\\u2069\\u200e\\u200f\\u061c"},
    {"separators", "\u2028\u2029", "\\u2028\\u2029"},
    {"invisible", "\u200b\u200d\ufeff\u00ad\u2060\u3164",
     "\\u200b\\u200d\\ufeff\\u00ad\\u2060\\u3164"},
    {"invisible, beyond 16 bits", "\U000e0041\U000e0100", "\\U000e0041\\U000e0100"},
    {"beside those", "\u200a\u2010\u2027\u202f\u2070\u00ac",
     "\u200a\u2010\u2027\u202f\u2070\u00ac"},
};

static void test_cases(void)
{
    char to[64];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_case(cases[i].name);
        CHECK_UINT(utf8_copy(to, sizeof(to), cases[i].from), strlen(cases[i].to));
        CHECK_STR(to, cases[i].to);
    }
}

/* Cut to every size, TO ends at a character's boundary and nothing after SIZE is written. */
static void test_cuts(void)
{
    static const struct {
        const char *name;
        const char *from;
        size_t size;
        const char *to;
    } cuts[] = {
        {"room for the terminator alone", "a", 1, ""},
        {"ASCII", "abc", 3, "ab"},
        {"fits exactly", "abc", 4, "abc"},
        {"inside a character of two bytes", "a\xc3\xa4", 3, "a"},
        {"a character of two bytes fits exactly", "a\xc3\xa4", 4, "a\xc3\xa4"},
        {"after one byte of three", "ab\xe2\x82\xac", 4, "ab"},
        {"after two bytes of three", "ab\xe2\x82\xac", 5, "ab"},
        {"after three bytes of four", "\xf0\x9f\x90\xa7", 4, ""},
        {"inside a replacement", "ab\xff", 5, "ab"},
        {"inside an escape sequence", "ab\x1b", 6, "ab"},
        {"an escape sequence fits exactly", "ab\x1b", 7, "ab\\x1b"},
        {"nothing that is shorter comes after the cut",
         "\xe2\x82\xac"
         "b",
         3, ""},
    };
    char to[16];

    for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
        test_case(cuts[i].name);
        memset(to, '#', sizeof(to));
        CHECK_UINT(utf8_copy(to, cuts[i].size, cuts[i].from), strlen(cuts[i].to));
        CHECK_STR(to, cuts[i].to);
        CHECK_INT(to[cuts[i].size], '#');
    }
}

static void test_short(void)
{
    static const struct {
        const char *name;
        const char *from;
        size_t size;
        const char *to;
    } cuts[] = {
        {"fits exactly", "abcde", 6, "abcde"},
        {"one too long", "abcdef", 6, "ab" UTF8_ELLIPSIS},
        {"room for an ellipsis alone", "abcd", 4, UTF8_ELLIPSIS},
        {"a character is not cut", "ab\u00e4\u00e4", 6, "ab" UTF8_ELLIPSIS},
        {"nor is an escape sequence", "a\u202ebcde", 9, "a" UTF8_ELLIPSIS},
    };
    char to[16];

    for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
        test_case(cuts[i].name);
        memset(to, '#', sizeof(to));
        CHECK_UINT(utf8_copy_short(to, cuts[i].size, cuts[i].from), strlen(cuts[i].to));
        CHECK_STR(to, cuts[i].to);
        CHECK_INT(to[cuts[i].size], '#');
    }
}

/* As snprintf() cuts it. */
static void test_trim(void)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7z";
    static const size_t lengths[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11}; /* of each cut */
    char cut[16];

    test_case("a character that was cut is removed");
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        (void)snprintf(cut, i + 1, "%s", text);
        CHECK_UINT(utf8_trim(cut), lengths[i]);
        CHECK_UINT(strlen(cut), lengths[i]);
        CHECK(strncmp(cut, text, lengths[i]) == 0);
    }
}

/* A check of our own that knows nothing of the tables: decodes, and encodes again. */
static bool is_clean(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    while (*p) {
        unsigned int bytes = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
        uint32_t c = bytes == 1 ? *p : *p & (0x7fu >> bytes);

        if (*p >> 6 == 2 || *p >= 0xf8)
            return false;
        for (unsigned int i = 1; i < bytes; i++) {
            if (p[i] >> 6 != 2)
                return false;
            c = c << 6 | (p[i] & 0x3f);
        }
        if ((c >= 0xfdd0 && c <= 0xfdef) || (c & 0xfffe) == 0xfffe)
            return false;
        if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ||
            (bytes == 2 && c < 0x80) || (bytes == 3 && c < 0x800) || (bytes == 4 && c < 0x10000))
            return false;
        p += bytes;
    }
    return true;
}

/* Whether nothing in TEXT, which is clean, is to be escaped. */
static bool is_shown(const char *text)
{
    uint32_t character;

    while (*text) {
        text += utf8_read(text, &character);
        if (!utf8_is_shown(character))
            return false;
    }
    return true;
}

static void test_random_bytes(void)
{
    uint64_t seed = test_seed();
    char from[40], to[40];

    test_case("random bytes");
    for (unsigned int i = 0; i < 200000; i++) {
        size_t length = test_random(&seed) % sizeof(from), size = 1 + test_random(&seed) % 40;
        /* Half of them from bytes that make sequences likely. */
        bool likely = test_random(&seed) & 1;

        for (size_t j = 0; j < length; j++)
            from[j] = (char)(likely ? "\x80\xbf\xc2\xe0\xed\xef\xf0\xf4\x9f\x90\xa0"
                                      "a"[test_random(&seed) % 12]
                                    : (char)(1 + test_random(&seed) % 255));
        from[length < sizeof(from) ? length : sizeof(from) - 1] = '\0';
        if (!CHECK(utf8_copy(to, size, from) < size) || !CHECK(is_clean(to)))
            return;
        if (is_clean(from) && is_shown(from) && strlen(from) < size && !CHECK_STR(to, from))
            return;
    }
}

int main(void)
{
    test_cases();
    test_cuts();
    test_short();
    test_trim();
    test_random_bytes();
    return test_end();
}
