// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Requests as words: who, what, when (in seconds), in that order.
 *
 *   aF@0     user a wants a file           aL@0, aO@0    a live second, an output of its own
 *   af:5     a's file is on the disk, with 5 bytes       ax    a's file failed
 *   al, ao   a's live second, its output has ended
 *
 * After each request: "+", and the bytes that a file may have ("+100"); or the limit that was
 * reached: "running", "places", "interval", "number", "bytes", "live", "own", and the time that
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
    {"outputs have no limits but the places", "aO@0 aO@0 bO@0 bO@0 aO@0 ao aO@0",
     "+ + + + places +"},
    {"one user leaves the last place to others", "aO@0 aO@0 aO@0 aO@0 aF@0 aL@0 bF@0 ao aF@0",
     "+ + + own own own +100 +100"},
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
        {"snapshot-interval=", "interval"},     {"snapshots-per-day=", "number"},
        {"snapshot-bytes-per-day=", "bytes"},   {"newest second", "live"},
        {"still being written", "running"},     {"of users other than root", "places"},
        {"of your snapshots are being", "own"},
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

    test_case("a thousand users, each of whom has room");
    CHECK_INT(budget_new(&limits, &budget), 0);
    for (uid_t person = 1; person <= 1000; person++) {
        CHECK_INT(budget_begin(budget, person, BUDGET_FILE, person, &grant, &failure), 0);
        budget_end(budget, &grant, true, 100);
    }
    CHECK_INT(budget_begin(budget, 5000, BUDGET_FILE, 1001, &grant, &failure), 0);
    budget_end(budget, &grant, true, 1);
    test_case("none of them is forgotten for another");
    for (uid_t person = 1; person <= 1000; person++)
        CHECK_INT(budget_begin(budget, person, BUDGET_FILE, 3600 * USEC_PER_SEC, &grant, &failure),
                  -EDQUOT);
    test_case("who did nothing for a day is new");
    CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, (DAY + 1) * USEC_PER_SEC, &grant, &failure), 0);
    CHECK_UINT(grant.allowed_bytes, 100);
    budget_end(budget, &grant, true, 1);
    test_case("nobody's grant is nothing to give back");
    grant = (struct budget_grant){0};
    budget_end(budget, &grant, true, 1);
    budget_free(budget);
    CHECK(!budget_free(NULL));
}

/* --- Across a restart. --- */

#define REALTIME UINT64_C(1795000000000000) /* in November 2026 */
#define LATER    (5 * DAY * USEC_PER_SEC)   /* of the clock that a test begins with */

/* What a budget saves in which user 1 has files of 40 and 50 bytes, a minute ago and now. */
static ssize_t save_two(void **ret_bytes)
{
    struct budget_grant grant;
    struct failure failure = {0};
    struct budget *budget = NULL;
    ssize_t length;

    CHECK_INT(budget_new(&limits, &budget), 0);
    CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, LATER, &grant, &failure), 0);
    budget_end(budget, &grant, true, 40);
    CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, LATER + 60 * USEC_PER_SEC, &grant, &failure), 0);
    budget_end(budget, &grant, true, 50);
    length = budget_save(budget, LATER + 60 * USEC_PER_SEC, REALTIME, ret_bytes);
    budget_free(budget);
    return length;
}

/* Has USER 1 ask a daemon that begins at NOW seconds, and the wall clock AGE later. */
static void check_loaded(const void *bytes, size_t length, uint64_t age, int result, int begun,
                         uint64_t allowed)
{
    uint64_t now_usec = 2 * DAY * USEC_PER_SEC + 1; /* the host was booted meanwhile */
    struct budget_grant grant = {0};
    struct failure failure = {0};
    struct budget *budget = NULL;

    CHECK_INT(budget_new(&limits, &budget), 0);
    CHECK_INT(budget_load(budget, bytes, length, now_usec, REALTIME + age * USEC_PER_SEC), result);
    CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, now_usec, &grant, &failure), begun);
    if (begun == 0)
        CHECK_UINT(grant.allowed_bytes, allowed);
    CHECK_INT(budget_begin(budget, 2, BUDGET_FILE, now_usec, &grant, &failure), 0);
    budget_free(budget);
}

static void test_restart(void)
{
    void *bytes = NULL;
    ssize_t saved = save_two(&bytes);
    size_t length = saved > 0 ? (size_t)saved : 0;
    char *damaged = calloc(1, 2 * BUDGET_SAVED_MAX_BYTES);

    CHECK(length > 0 && damaged);
    if (!length || !damaged)
        return;
    test_case("the interval lasts across a restart");
    check_loaded(bytes, length, 9, 0, -EDQUOT, 0);
    test_case("the bytes of a day do, too");
    check_loaded(bytes, length, 10, 0, 0, 10);
    check_loaded(bytes, length, DAY - 61, 0, 0, 10);
    test_case("what is a day old is not counted");
    check_loaded(bytes, length, DAY - 60, 0, 0, 50);
    check_loaded(bytes, length, DAY, 0, 0, 100);
    test_case("a wall clock that was set back ends nothing");
    check_loaded(bytes, length, (uint64_t)-3600, 0, -EDQUOT, 0);
    test_case("a file that is cut, empty, too long, or of another version");
    for (size_t i = 0; i < length; i++)
        if (i % 24 != 0) /* else one is missing at the end */
            check_loaded(bytes, length - i, 10, -EBADMSG, 0, 100);
    check_loaded(bytes, 0, 10, -EBADMSG, 0, 100);
    memcpy(damaged, bytes, length);
    check_loaded(damaged, 2 * BUDGET_SAVED_MAX_BYTES, 10, -EBADMSG, 0, 100);
    damaged[strlen("xentraced budget ")] = '9';
    check_loaded(damaged, length, 10, -EBADMSG, 0, 100);
    test_case("any bytes in it: at worst this user waits a day");
    for (size_t i = strlen("xentraced budget 1\n"); i < length; i++)
        for (unsigned int bit = 0; bit < 8; bit++) {
            struct budget_grant grant = {0};
            struct failure failure = {0};
            struct budget *budget = NULL;

            memcpy(damaged, bytes, length);
            damaged[i] = (char)(damaged[i] ^ (1 << bit));
            CHECK_INT(budget_new(&limits, &budget), 0);
            CHECK_INT(budget_load(budget, damaged, length, LATER, REALTIME), 0);
            (void)budget_begin(budget, 1, BUDGET_FILE, LATER, &grant, &failure);
            CHECK(grant.allowed_bytes <= 100);
            CHECK_INT(budget_begin(budget, 7, BUDGET_FILE, LATER, &grant, &failure), 0);
            CHECK_INT(budget_begin(budget, 1, BUDGET_FILE, LATER + DAY * USEC_PER_SEC, &grant,
                                   &failure) == 0 ||
                          grant.is_taken,
                      1);
            budget_free(budget);
        }
    free(bytes);
    free(damaged);
}

static void test_save_limit(void)
{
    struct limits_config many = limits;
    struct budget_grant grant;
    struct failure failure = {0};
    struct budget *budget = NULL;
    void *bytes = NULL;

    test_case("a file of the limits that is bounded, whoever uses them");
    many.snapshots_per_day = BUDGET_FILES_MAX;
    many.snapshot_bytes_per_day = UINT64_MAX;
    many.snapshot_interval_usec = 0;
    CHECK_INT(budget_new(&many, &budget), 0);
    for (uid_t person = 1; person <= 60; person++)
        for (uint64_t i = 0; i < BUDGET_FILES_MAX; i++) {
            if (budget_begin(budget, person, BUDGET_FILE, LATER + i, &grant, &failure) < 0)
                break;
            budget_end(budget, &grant, true, 1);
        }
    CHECK(budget_save(budget, LATER + 5000, REALTIME, &bytes) <= (ssize_t)BUDGET_SAVED_MAX_BYTES);
    free(bytes);
    budget_free(budget);
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
    test_restart();
    test_save_limit();
    test_other_limits();
    test_words();
    return test_end();
}
