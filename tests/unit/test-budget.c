// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Requests as words: who, what, when (in seconds), in that order.
 *
 *   aF@0     user a wants a file           aL@0, aO@0    a live second, an output of its own
 *   af:5     a's file is on the disk, with 5 bytes       ax    a's file failed
 *   al, ao   a's live second, its output has ended
 *
 * After each request: "+", and the bytes that a file may have ("+100"); or the limit that was
 * reached: "running", "places", "interval", "number", "bytes", "live", "users", and the time that
 * the sentence names.
 */

#include "daemon/session/budget.h"

#include <errno.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define DAY 86400u

/* One each 10 s, 3 a day, 100 bytes a day. */
static const struct limits_config limits = {
    .snapshot_interval_usec = 10 * USEC_PER_SEC,
    .snapshots_per_day = 3,
    .snapshot_bytes_per_day = 100,
};

struct budget_case {
    const char *name;
    const char *words;
    const char *answers;
};

static const struct budget_case cases[] = {
    {"one at a time", "aF@0 aF@20 af:5 aF@30", "+100 running +95"},
    {"... for each user", "aF@0 bF@0", "+100 +100"},
    {"one in each interval, from its beginning", "aF@0 af:5 aF@9 aF@10", "+100 interval:1s +95"},
    {"also after one that failed", "aF@0 ax aF@5 aF@10", "+100 interval:5s +100"},
    {"the interval is each user's own", "aF@0 af:5 bF@1 bf:5 aF@2 bF@2",
     "+100 +100 interval:8s interval:9s"},
    {"no interval by what was refused", "aF@0 af:5 aF@9 aF@10", "+100 interval:1s +95"},
    {"a number a day", "aF@0 af:5 aF@10 af:5 aF@20 af:5 aF@30 aF@86399 aF@86400",
     "+100 +95 +90 number:1d number:1s +90"},
    {"what failed is not one of them", "aF@0 ax aF@10 ax aF@20 ax aF@30 ax aF@40",
     "+100 +100 +100 +100 +100"},
    {"bytes a day", "aF@0 af:60 aF@10 af:40 aF@20 aF@86400", "+100 +40 bytes:1d +60"},
    {"more than all, by a file that was let through", "aF@0 af:101 aF@10", "+100 bytes:1d"},
    {"empty files keep nobody out", "aF@0 af:0 aF@10 af:100 aF@20 aF@86410",
     "+100 +100 bytes:1d +100"},
    {"places for all of them", "aF@0 bF@0 cF@0 dF@0 eF@0 eL@0 eO@0 af:1 eF@0",
     "+100 +100 +100 +100 places places places +100"},
    {"outputs have no limits but the places", "aO@0 aO@0 aO@0 aO@0 aO@0 ao aO@0",
     "+ + + + places +"},
    {"live seconds have their own", "aF@0 aL@0 al aL@0 aL@1 aF@2 al af:1 aF@10 aL@10",
     "+100 + live:900ms + running +99 +"},
    {"one live second at a time", "aL@0 aL@5 al aL@6", "+ running +"},
    {"as many as a second has, all day", "aL@0 al aL@1 al aL@2 al aL@3 al aL@4 al aL@5 al aF@5",
     "+ + + + + + +100"},
    {"a file that takes two days", "aF@0 aF@172800 af:7 aF@172800", "+100 running +100"},
};

/* The limit that FAILURE is about, and the time that it names. */
static void describe(const struct failure *failure, char *text, size_t size)
{
    static const struct {
        const char *part, *word;
    } words[] = {
        {"snapshot-interval=", "interval"},   {"snapshots-per-day=", "number"},
        {"snapshot-bytes-per-day=", "bytes"}, {"newest second", "live"},
        {"still being written", "running"},   {"of users other than root", "places"},
        {"users have taken", "users"},
    };
    const char *in = strstr(failure->text, " in "), *word = "?";
    size_t length = 0;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strstr(failure->text, words[i].part))
            word = words[i].word;
    for (const char *next = in; next; next = strstr(next + 1, " in ")) /* the number's */
        if (next[4] >= '0' && next[4] <= '9')
            length = strcspn(in = next + 4, ".");
    (void)snprintf(text, size, "%s%s%.*s", word, length ? ":" : "", (int)length, in ? in : "");
}

static void play(struct budget *budget, struct budget_grant grants[26][BUDGET_KINDS],
                 const char *word, char *answers, size_t size)
{
    const char *at = strchr(word, '@'), *colon = strchr(word, ':');
    uint64_t usec = at ? strtoull(at + 1, NULL, 10) * USEC_PER_SEC : 0;
    unsigned int user = (unsigned int)(word[0] - 'a');
    enum budget_kind kind = strchr("Ll", word[1])   ? BUDGET_LIVE
                            : strchr("Oo", word[1]) ? BUDGET_OUTPUT
                                                    : BUDGET_FILE;
    struct budget_grant *grant = &grants[user][kind];
    struct failure failure = {0};
    char answer[64] = "+";
    int r;

    if (!at) {
        budget_end(budget, grant, word[1] != 'x', colon ? strtoull(colon + 1, NULL, 10) : 0);
        return;
    }
    r = budget_begin(budget, 1000 + user, kind, usec, grant, &failure);
    if (r < 0) {
        CHECK_INT(r, -EDQUOT);
        CHECK_STR(failure.name, ERROR_LIMIT);
        describe(&failure, answer, sizeof(answer));
    } else if (grant->allowed_bytes != UINT64_MAX) {
        (void)snprintf(answer, sizeof(answer), "+%" PRIu64, grant->allowed_bytes);
    }
    (void)snprintf(answers + strlen(answers), size - strlen(answers), "%s%s", answers[0] ? " " : "",
                   answer);
}

static void test_cases(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct budget_grant grants[26][BUDGET_KINDS] = {0};
        char words[256], answers[256] = "";
        struct budget *budget = NULL;
        char *rest = NULL;

        test_case(cases[i].name);
        CHECK_INT(budget_new(&limits, &budget), 0);
        (void)snprintf(words, sizeof(words), "%s", cases[i].words);
        for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
            play(budget, grants, w, answers, sizeof(answers));
        CHECK_STR(answers, cases[i].answers);
        CHECK(!budget_free(budget));
    }
}

static void test_users(void)
{
    struct budget_grant grant;
    struct failure failure = {0};
    struct budget *budget = NULL;

    test_case("as many users as there may be, in a day");
    CHECK_INT(budget_new(&limits, &budget), 0);
    for (uid_t uid = 0; uid < BUDGET_USERS_MAX; uid++) {
        CHECK_INT(budget_begin(budget, uid, BUDGET_FILE, uid, &grant, &failure), 0);
        budget_end(budget, &grant, true, 1);
    }
    CHECK_INT(budget_begin(budget, 5000, BUDGET_LIVE, 1000, &grant, &failure), -EDQUOT);
    CHECK(strstr(failure.text, "64 users"));
    test_case("who did nothing for a day makes place");
    CHECK_INT(budget_begin(budget, 5000, BUDGET_FILE, DAY * USEC_PER_SEC, &grant, &failure), 0);
    CHECK_UINT(grant.allowed_bytes, 100);
    budget_end(budget, &grant, true, 1);
    test_case("nobody's grant is nothing to give back");
    grant = (struct budget_grant){0};
    budget_end(budget, &grant, true, 1);
    budget_free(budget);
    CHECK(!budget_free(NULL));
}

static void test_other_limits(void)
{
    struct limits_config other = limits;
    struct budget_grant grant;
    struct failure failure = {0};
    struct budget *budget = NULL;

    test_case("less is allowed from now on");
    CHECK_INT(budget_new(&limits, &budget), 0);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, i * 10 * USEC_PER_SEC, &grant, &failure), 0);
        budget_end(budget, &grant, true, 30);
    }
    other.snapshots_per_day = 1;
    budget_set_limits(budget, &other);
    CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, 20 * USEC_PER_SEC, &grant, &failure), -EDQUOT);
    CHECK(strstr(failure.text, "2 snapshots in the last 24 hours, which is the limit. Try "
                               "again in 1d."));
    other.snapshots_per_day = 1000;
    other.snapshot_bytes_per_day = 50;
    budget_set_limits(budget, &other);
    CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, 20 * USEC_PER_SEC, &grant, &failure), -EDQUOT);
    CHECK(strstr(failure.text, "the limit of 50B"));

    test_case("and more");
    other.snapshot_bytes_per_day = 1000;
    budget_set_limits(budget, &other);
    for (uint64_t i = 2; i < 1000; i++) {
        if (!CHECK_INT(
                budget_begin(budget, 1, BUDGET_FILE, i * 10 * USEC_PER_SEC, &grant, &failure), 0))
            break;
        CHECK_UINT(grant.allowed_bytes, 940);
        budget_end(budget, &grant, true, 0);
    }
    CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, 10000 * USEC_PER_SEC, &grant, &failure),
              -EDQUOT);
    budget_free(budget);
}

static void test_words(void)
{
    const struct budget_grant grant = {
        .is_taken = true, .allowed_bytes = 20, .more_usec = 3600 * USEC_PER_SEC};
    struct failure failure = {0};
    struct budget *budget = NULL;

    test_case("a snapshot that is too large");
    CHECK_INT(budget_new(&limits, &budget), 0);
    CHECK_INT(budget_explain_bytes(budget, &grant, 1048576, &failure), -EDQUOT);
    CHECK_STR(failure.text,
              "This snapshot would have 1M, and of the 100B that you may write in 24 hours, 20B is "
              "left; more is available in 1h. Ask for less with --last or --max-size. Root has no "
              "limit, and sets yours with snapshot-bytes-per-day= in [limits].");
    budget_free(budget);
}

int main(void)
{
    test_cases();
    test_users();
    test_other_limits();
    test_words();
    return test_end();
}
