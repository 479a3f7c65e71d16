// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Lives of triggers, as words: what happens and when, in seconds.
 *
 *   on@0 off@5    there is a ring, or none any more     f@10   the condition comes true
 *   t@20          the timer                             w@12   the snapshot is written
 *   e@12          ... could not be written               g@12   ... not even at the last attempt
 *
 * After each word: the state (Off, Armed, Delaying, Writing, Retrying, Cooling, eXhausted), with a
 * "!" if a snapshot is asked for, and the time at which it wants to be called, "-" for none.
 */

#include "daemon/triggers/trigger.h"

#include <json-c/json.h>

#include "common/units.h"
#include "common/util.h"
#include "daemon/document/trigger-document.h"
#include "tests/unit/test.h"

#define DAY  86400u
#define REAL UINT64_C(1795241112000000000) /* the wall clock at time 0 */

struct life_case {
    const char *name;
    unsigned int delay, cooldown, max_per_day; /* seconds; 0 is 1 for max_per_day */
    const char *words;
    const char *states;
    unsigned int fired, written, failed, busy, cooling, exhausted;
};

static const struct life_case life_cases[] = {
    {"off", 0, 60, 10, "f@1 t@2 off@3 f@4", "O- O- O- O-", 0, 0, 0, 0, 0, 0},
    {"at once", 0, 60, 10, "on@0 f@1 w@3 t@63", "A- W!- C63 A-", 1, 1, 0, 0, 0, 0},
    {"with a delay", 5, 60, 10, "on@0 f@1 t@5 t@6 w@7 t@67", "A- D6 D6 W!- C67 A-", 1, 1, 0, 0, 0,
     0},
    {"busy", 5, 60, 10, "on@0 f@1 f@2 t@6 f@7 f@8 w@9", "A- D6 D6 W!- W- W- C69", 4, 1, 0, 3, 0, 0},
    {"fires when the delay is over, before the timer", 5, 60, 10, "on@0 f@1 f@7 t@8",
     "A- D6 D6 W!-", 2, 0, 0, 1, 0, 0},
    {"cools, exactly", 0, 60, 10, "on@0 f@0 w@0 f@59 f@60", "A- W!- C60 C60 W!-", 3, 1, 0, 0, 1, 0},
    {"cools although it was given up", 0, 60, 10, "on@0 f@1 g@2 f@61 t@62", "A- W!- C62 C62 A-", 2,
     0, 1, 0, 1, 0},
    {"tries again", 0, 60, 10, "on@0 f@1 e@2 f@2 t@2 t@3 w@4", "A- W!- R3 R3 R3 W!- C64", 2, 1, 0,
     1, 0, 0},
    {"tries again for a minute", 0, 60, 10,
     "on@0 f@1 e@2 t@3 e@3 t@5 e@5 t@9 e@9 t@17 e@17 t@33 e@33 t@65 e@65",
     "A- W!- R3 W!- R5 W!- R9 W!- R17 W!- R33 W!- R65 W!- C125", 1, 0, 1, 0, 0, 0},
    {"each snapshot has all its attempts", 0, 0, 10, "on@0 f@1 e@2 t@3 w@3 f@4 e@5 t@6 g@7",
     "A- W!- R3 W!- A- W!- R6 W!- A-", 2, 1, 1, 0, 0, 0},
    {"the ring ends before it is tried again", 0, 60, 10, "on@0 f@1 e@2 off@3 t@4 on@5",
     "A- W!- R3 O- O- C63", 1, 0, 1, 0, 0, 0},
    {"the ring ends during an attempt", 0, 60, 10, "on@0 f@1 off@2 e@3", "A- W!- W- O-", 1, 0, 1, 0,
     0, 0},
    {"no cooldown", 0, 0, 10, "on@0 f@1 w@2 f@2 w@3", "A- W!- A- W!- A-", 2, 2, 0, 0, 0, 0},
    {"the timer comes early", 0, 60, 10, "on@0 f@1 w@3 t@62 t@63", "A- W!- C63 C63 A-", 1, 1, 0, 0,
     0, 0},
    {"one a day", 0, 60, 1, "on@0 f@1 w@10 t@70 f@71 f@86409 f@86410",
     "A- W!- C70 X86410 X86410 X86410 W!-", 4, 1, 0, 0, 0, 2},
    {"two a day, rolling", 0, 0, 2,
     "on@0 f@10 w@10 f@100 w@100 f@200 f@86410 w@86411 f@86412 t@86500",
     "A- W!- A- W!- X86410 X86410 W!- X86500 X86500 A-", 5, 3, 0, 0, 0, 2},
    {"what failed is not one of the day's", 0, 0, 1, "on@0 f@1 g@2 f@3 g@4 f@5 w@6 f@7",
     "A- W!- A- W!- A- W!- X86406 X86406", 4, 1, 2, 0, 0, 1},
    {"exhausted before it is cool", 0, 60, 1, "on@0 f@0 w@0 f@1 f@60", "A- W!- C60 C60 X86400", 3,
     1, 0, 0, 1, 1},
    {"a cooldown longer than a day", 0, 90000, 1, "on@0 f@0 w@0 f@86400 t@90000",
     "A- W!- C90000 C90000 A-", 2, 1, 0, 0, 1, 0},
    {"the ring ends during the delay", 5, 60, 10, "on@0 f@1 off@2 t@6 f@7 on@8 t@62",
     "A- D6 O- O- O- C62 A-", 1, 0, 1, 0, 0, 0},
    {"the ring ends during the snapshot", 0, 60, 10, "on@0 f@1 off@2 f@3 w@4 on@5",
     "A- W!- W- W- O- C64", 2, 1, 0, 1, 0, 0},
    {"and begins again meanwhile", 0, 60, 10, "on@0 f@1 off@2 on@3 w@4", "A- W!- W- W- C64", 1, 1,
     0, 0, 0, 0},
    {"the ring ends and begins", 0, 60, 10, "on@0 off@1 on@2 f@3", "A- O- A- W!-", 1, 0, 0, 0, 0,
     0},
    {"exhausted over a ring's end", 0, 0, 1, "on@0 f@0 w@0 off@1 on@2 off@3 on@86400",
     "A- W!- X86400 O- X86400 O- A-", 1, 1, 0, 0, 0, 0},
};

static const struct trigger_domain nobody;

static char letter_of(enum trigger_state state)
{
    static const char letters[] = {
        [TRIGGER_OFF] = 'O',      [TRIGGER_ARMED] = 'A',   [TRIGGER_DELAYING] = 'D',
        [TRIGGER_WRITING] = 'W',  [TRIGGER_COOLING] = 'C', [TRIGGER_EXHAUSTED] = 'X',
        [TRIGGER_RETRYING] = 'R',
    };

    return letters[state];
}

static void play(struct trigger *trigger, const char *word, char *states, size_t size)
{
    enum trigger_action action = TRIGGER_NOTHING;
    uint64_t seconds = strtoull(strchr(word, '@') + 1, NULL, 10);
    uint64_t usec = seconds * USEC_PER_SEC;
    size_t length = strlen(states);
    char next[24] = "-", reason[32];

    (void)snprintf(reason, sizeof(reason), "Because of %s.", word);
    if (word[0] == 'o')
        trigger_set_ring(trigger, word[1] == 'n', usec);
    else if (word[0] == 'f')
        action = trigger_fire(trigger, usec, REAL + seconds * NSEC_PER_SEC, reason, &nobody);
    else if (word[0] == 't')
        action = trigger_advance(trigger, usec);
    else if (word[0] == 'w')
        trigger_written(trigger, usec, reason);
    else if (word[0] == 'g')
        trigger->retries = TRIGGER_RETRIES;
    if (word[0] == 'e' || word[0] == 'g')
        trigger_failed(trigger, usec, reason);
    if (trigger_next_usec(trigger) != TRIGGER_NO_TIME)
        (void)snprintf(next, sizeof(next), "%" PRIu64, trigger_next_usec(trigger) / USEC_PER_SEC);
    (void)snprintf(states + length, size - length, "%s%c%s%s", length ? " " : "",
                   letter_of(trigger->state), action == TRIGGER_SNAPSHOT ? "!" : "", next);
}

static void test_lives(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(life_cases); i++) {
        const struct life_case *c = &life_cases[i];
        const struct trigger_config config = {
            .delay_usec = c->delay * USEC_PER_SEC,
            .cooldown_usec = c->cooldown * USEC_PER_SEC,
            .max_per_day = c->max_per_day,
        };
        char words[256], states[256] = "";
        struct trigger trigger;
        char *rest = NULL;

        test_case(c->name);
        CHECK_INT(trigger_init(&trigger, &config), 0);
        (void)snprintf(words, sizeof(words), "%s", c->words);
        for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
            play(&trigger, w, states, sizeof(states));
        CHECK_STR(states, c->states);
        CHECK_UINT(trigger.fired, c->fired);
        CHECK_UINT(trigger.written, c->written);
        CHECK_UINT(trigger.failed, c->failed);
        CHECK_UINT(trigger.suppressed.busy, c->busy);
        CHECK_UINT(trigger.suppressed.cooldown, c->cooling);
        CHECK_UINT(trigger.suppressed.max_per_day, c->exhausted);
        CHECK_UINT(trigger.fired, c->written + c->failed + c->busy + c->cooling + c->exhausted +
                                      (trigger.state == TRIGGER_DELAYING) +
                                      (trigger.state == TRIGGER_RETRYING) +
                                      (trigger.state == TRIGGER_WRITING));
        trigger_done(&trigger);
    }
}

/*
 * Budgets of domains: 5 a day, of which 2 for one domain and 1 kept for those that had none. Each
 * word is a domain's letter and a time in minutes (Z and U have the same UUID; U, V, which has
 * another one, and u, which has none, the same name); "+" if it has its snapshot, "-" if it has had
 * its part, "x" if the day's are used up.
 */
struct domain_case {
    const char *name;
    const char *words;
    const char *answers;
};

static const struct domain_case domain_cases[] = {
    {"one domain has its part", "A0 A1 A2 A10", "++--"},
    {"... and more after pauses that double",
     "A0 A1 A10 A11 A30 A31 A70 A71 A150 A151 A270 A271 A390 A391", "++-+-+-+-+-+-+"},
    {"the others have theirs", "A0 A1 A2 B3 C4", "++-++"},
    {"... whatever it does in its pauses", "A0 A1 A11 A31 A71 A151 B152 C153 D154", "+++++++++"},
    {"one is kept for who had none", "A0 A1 B2 B3 A4 B5 C6", "++++--+"},
    {"when the day is used up, new ones have pauses that double",
     "A0 A1 B2 C3 D4 E5 E13 E14 F15 F33 F34 G73 G74", "+++++xx+xx+x+"},
    {"... which no domain in a loop makes longer", "A0 A1 B2 C3 D4 A11 E13 E14", "++++++x+"},
    {"... nor is its loop ended by them", "A0 A1 B2 C3 D4 E14 A15 F34", "++++++++"},
    {"a day later it has it again", "A0 A1 A1439 A1440 A1441", "+++-+"},
    {"... and is new again", "A0 B1 B2 C3 C4 A1440 A1441 B1442", "++++-+++"},
    {"by the same UUID it is the same", "Z0 U1 Z2 Z3 A4", "++--+"},
    {"by the name alone it is another one", "U0 V1 V2 U3 U4 V5", "++++--"},
    {"... also if that has no UUID", "u0 u1 u2 U3", "++-+"},
    {"domains without a UUID are told by their names", "u0 u1 u2 A3 A4 A5", "++-++-"},
    {"unknown ones are one", "?0 ?1 ?2 A3", "++-+"},
};

static void test_domains(void)
{
    const struct trigger_config config = {.max_per_day = 5, .max_per_domain = 2, .kept_for_new = 1};

    for (size_t i = 0; i < ARRAY_SIZE(domain_cases); i++) {
        const struct domain_case *c = &domain_cases[i];
        char words[128], answers[32] = "", *rest = NULL;
        struct trigger trigger;
        size_t n = 0;

        test_case(c->name);
        CHECK_INT(trigger_init(&trigger, &config), 0);
        trigger_set_ring(&trigger, true, 0);
        (void)snprintf(words, sizeof(words), "%s", c->words);
        for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
            uint64_t now = strtoull(w + 1, NULL, 10) * 60 * USEC_PER_SEC;
            uint64_t exhausted = trigger.suppressed.max_per_day;
            struct trigger_domain domain = {0};

            domain.name[0] = w[0] == '?' ? '\0' : strchr("UVu", w[0]) ? 'u' : w[0];
            domain.uuid[0] = strchr("ZU", w[0]) ? '5' : w[0] == 'V' ? '6' : '\0';

            if (trigger_fire(&trigger, now, 0, "", &domain) == TRIGGER_SNAPSHOT) {
                trigger_written(&trigger, now, "path");
                answers[n++] = '+';
            } else {
                answers[n++] = trigger.suppressed.max_per_day > exhausted ? 'x' : '-';
            }
        }
        CHECK_STR(answers, c->answers);
        CHECK_UINT(trigger.fired, trigger.written + trigger.suppressed.max_per_day +
                                      trigger.suppressed.max_per_domain);
        trigger_done(&trigger);
    }
}

/* Never more than so many in 24 hours, and never fewer than may be. */
static void test_rolling(void)
{
    const struct trigger_config config = {.max_per_day = 7, .cooldown_usec = 600 * USEC_PER_SEC};
    uint64_t random = test_seed(), now = 0, written[4096];
    struct trigger trigger;
    size_t n = 0;

    test_case("rolling");
    CHECK_INT(trigger_init(&trigger, &config), 0);
    trigger_set_ring(&trigger, true, 0);
    while (n < ARRAY_SIZE(written)) {
        bool may = true;

        now += test_random(&random) % (7200 * USEC_PER_SEC);
        if (n >= 7 && now - written[n - 7] < DAY * USEC_PER_SEC)
            may = false;
        if (n >= 1 && now - written[n - 1] < 600 * USEC_PER_SEC)
            may = false;
        if (!CHECK((trigger_fire(&trigger, now, 0, "", &nobody) == TRIGGER_SNAPSHOT) == may))
            break;
        if (may) {
            written[n++] = now;
            trigger_written(&trigger, now, "path");
        }
    }
    trigger_done(&trigger);
}

/* --- Another configuration. --- */

struct reconfigure_case {
    const char *name;
    struct trigger_config before;
    const char *words;
    uint64_t at; /* seconds */
    struct trigger_config after;
    char state;
    uint64_t next; /* seconds; 0: none */
};

#define SECONDS(n) ((n)*USEC_PER_SEC)

static const struct reconfigure_case reconfigure_cases[] = {
    {"armed", {.max_per_day = 1}, "on@0", 5, {.max_per_day = 3}, 'A', 0},
    {"off", {.max_per_day = 1}, "on@0 off@1", 5, {.max_per_day = 3}, 'O', 0},
    {"a longer cooldown",
     {.cooldown_usec = SECONDS(10), .max_per_day = 9},
     "on@0 f@0 w@1",
     5,
     {.cooldown_usec = SECONDS(60), .max_per_day = 9},
     'C',
     61},
    {"a longer one, when the first is over",
     {.cooldown_usec = SECONDS(10), .max_per_day = 9},
     "on@0 f@0 w@1 t@11",
     12,
     {.cooldown_usec = SECONDS(60), .max_per_day = 9},
     'C',
     61},
    {"a shorter cooldown",
     {.cooldown_usec = SECONDS(60), .max_per_day = 9},
     "on@0 f@0 w@1",
     5,
     {.cooldown_usec = SECONDS(2), .max_per_day = 9},
     'A',
     0},
    {"a delay stays as it began",
     {.delay_usec = SECONDS(60), .max_per_day = 9},
     "on@0 f@1",
     5,
     {.max_per_day = 9},
     'D',
     61},
    {"more a day", {.max_per_day = 1}, "on@0 f@0 w@1", 5, {.max_per_day = 2}, 'A', 0},
    {"fewer a day",
     {.max_per_day = 9},
     "on@0 f@0 w@1 f@2 w@2 f@3 w@3",
     5,
     {.max_per_day = 2},
     'X',
     DAY + 2},
    {"many more a day, after many",
     {.max_per_day = 2},
     "on@0 f@0 w@1 f@2 w@2",
     5,
     {.max_per_day = 9},
     'A',
     0},
    {"while it writes", {.max_per_day = 9}, "on@0 f@0", 5, {.max_per_day = 1}, 'W', 0},
};

static void test_reconfiguring(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(reconfigure_cases); i++) {
        const struct reconfigure_case *c = &reconfigure_cases[i];
        char words[256], states[256] = "";
        struct trigger trigger;
        uint64_t fired, next;
        char *rest = NULL;

        test_case(c->name);
        CHECK_INT(trigger_init(&trigger, &c->before), 0);
        (void)snprintf(words, sizeof(words), "%s", c->words);
        for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
            play(&trigger, w, states, sizeof(states));
        fired = trigger.fired;
        CHECK_INT(trigger_reconfigure(&trigger, &c->after, SECONDS(c->at)), 0);
        next = trigger_next_usec(&trigger);
        CHECK_INT(letter_of(trigger.state), c->state);
        CHECK_UINT(next == TRIGGER_NO_TIME ? 0 : next / USEC_PER_SEC, c->next);
        CHECK_UINT(trigger.fired, fired);
        if (trigger.state == TRIGGER_WRITING)
            trigger_written(&trigger, SECONDS(c->at + 1), "path");
        trigger_done(&trigger);
    }
}

/* --- The document. --- */

static const char *text_of(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;

    if (!CHECK(json_object_object_get_ex(object, key, &value)))
        return NULL;
    return json_object_get_string(value);
}

static uint64_t count_of(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;

    CHECK(json_object_object_get_ex(object, key, &value));
    return json_object_get_uint64(value);
}

static void test_document(void)
{
    const struct trigger_config config = {
        .name = "slow",
        .condition = TRIGGER_RUNNABLE_LATENCY,
        .condition_text = "runnable-latency=50ms",
        .cooldown_usec = 60 * USEC_PER_SEC,
        .max_per_day = 10,
        .last_usec = 30 * USEC_PER_SEC,
    };
    struct json_object *document, *suppressed = NULL;
    struct trigger trigger;
    char states[64] = "";

    test_case("document of one that never fired");
    CHECK_INT(trigger_init(&trigger, &config), 0);
    document = document_of_trigger(&trigger);
    CHECK_STR(text_of(document, "name"), "slow");
    CHECK_STR(text_of(document, "state"), "off");
    CHECK_STR(text_of(document, "last_snapshot"), "");
    CHECK_STR(text_of(document, "last_error"), "");
    CHECK_STR(text_of(document, "last_reason"), "");
    CHECK_UINT(count_of(document, "last_fired_ns"), 0);
    CHECK_UINT(count_of(document, "last_suppressed_ns"), 0);
    json_object_put(document);

    test_case("document");
    play(&trigger, "on@0", states, sizeof(states));
    play(&trigger, "f@1", states, sizeof(states));
    play(&trigger, "w@2", states, sizeof(states));
    play(&trigger, "f@70", states, sizeof(states));
    CHECK_UINT(trigger_last_usec(&trigger, 70 * USEC_PER_SEC), 30 * USEC_PER_SEC);
    play(&trigger, "e@71", states, sizeof(states));
    play(&trigger, "t@72", states, sizeof(states));
    CHECK_UINT(trigger_last_usec(&trigger, 72 * USEC_PER_SEC), 32 * USEC_PER_SEC);
    play(&trigger, "g@71", states, sizeof(states));
    play(&trigger, "f@72", states, sizeof(states));

    test_case("the time before the event, not before the delay is over");
    trigger.config.delay_usec = 5 * USEC_PER_SEC;
    trigger.retries = 0;
    CHECK_UINT(trigger_last_usec(&trigger, 77 * USEC_PER_SEC), 35 * USEC_PER_SEC);
    trigger.config.last_usec = 0;
    CHECK_UINT(trigger_last_usec(&trigger, 77 * USEC_PER_SEC), 0);
    trigger.config.last_usec = 30 * USEC_PER_SEC;
    trigger.config.delay_usec = 0;

    test_case("document of one that has fired");
    document = document_of_trigger(&trigger);
    CHECK_STR(text_of(document, "condition"), "runnable-latency=50ms");
    CHECK_STR(text_of(document, "state"), "cooling");
    CHECK_UINT(count_of(document, "delay_usec"), 0);
    CHECK_UINT(count_of(document, "cooldown_usec"), 60000000);
    CHECK_UINT(count_of(document, "max_per_day"), 10);
    CHECK_UINT(count_of(document, "last_usec"), 30000000);
    CHECK_UINT(count_of(document, "fired"), 3);
    CHECK_UINT(count_of(document, "last_fired_ns"), REAL + 70 * NSEC_PER_SEC);
    CHECK_STR(text_of(document, "last_reason"), "Because of f@70.");
    CHECK_UINT(count_of(document, "written"), 1);
    CHECK_STR(text_of(document, "last_snapshot"), "Because of w@2.");
    CHECK_STR(text_of(document, "last_error"), "Because of g@71.");
    CHECK(json_object_object_get_ex(document, "suppressed", &suppressed));
    CHECK_UINT(count_of(suppressed, "busy"), 0);
    CHECK_UINT(count_of(suppressed, "cooldown"), 1);
    CHECK_UINT(count_of(suppressed, "max_per_day"), 0);
    CHECK_UINT(count_of(document, "last_suppressed_ns"), REAL + 72 * NSEC_PER_SEC);
    CHECK_STR(text_of(document, "last_suppressed_reason"), "Because of f@72.");
    json_object_put(document);

    test_case("an error is over when one is written");
    play(&trigger, "f@200", states, sizeof(states));
    play(&trigger, "w@201", states, sizeof(states));
    document = document_of_trigger(&trigger);
    CHECK_STR(text_of(document, "last_error"), "");
    json_object_put(document);
    trigger_done(&trigger);
}

static void test_report(void)
{
    struct trigger_config config = {.name = "slow", .max_per_day = 10, .report = true};
    struct json_object *document;
    struct trigger trigger;

    test_case("the report of a snapshot");
    CHECK_INT(trigger_init(&trigger, &config), 0);
    document = document_of_trigger(&trigger); /* its path is shown before there is one */
    CHECK_STR(text_of(document, "last_report"), "");
    json_object_put(document);
    trigger_set_ring(&trigger, true, 0);
    CHECK_INT(trigger_fire(&trigger, 1, REAL, "why", &nobody), TRIGGER_SNAPSHOT);
    trigger_written(&trigger, 2, "/state/snapshot-a.b.xentrace");
    document = document_of_trigger(&trigger);
    CHECK_STR(text_of(document, "last_report"), "/state/snapshot-a.b.report.txt");
    json_object_put(document);

    test_case("no report any more");
    config.report = false;
    CHECK_INT(trigger_reconfigure(&trigger, &config, 3), 0);
    CHECK_INT(trigger_fire(&trigger, 4, REAL, "why", &nobody), TRIGGER_SNAPSHOT);
    trigger_written(&trigger, 5, "/state/snapshot-c.xentrace");
    document = document_of_trigger(&trigger);
    CHECK(!json_object_object_get_ex(document, "last_report", NULL));
    json_object_put(document);
    trigger_done(&trigger);
}

int main(void)
{
    test_lives();
    test_domains();
    test_rolling();
    test_reconfiguring();
    test_document();
    test_report();
    return test_end();
}
