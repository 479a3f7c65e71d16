// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/base/log.h"

#include <sys/stat.h>
#include <sys/uio.h>

#include "daemon/base/log-id.h"
#include "daemon/base/log-quota.h"
#include "daemon/base/requester.h"
#include "tests/unit/test.h"

static char sent[8192]; /* "[MESSAGE=...][PRIORITY=...]" */

/* The journal. */
int sd_journal_sendv(const struct iovec *fields, int count);
int sd_journal_sendv(const struct iovec *fields, int count)
{
    size_t length = 0;

    for (int i = 0; i < count && length < sizeof(sent); i++)
        length += (size_t)snprintf(sent + length, sizeof(sent) - length, "[%.*s]",
                                   (int)fields[i].iov_len, (const char *)fields[i].iov_base);
    return 0;
}

/* Standard error is the journal's. */
static void become_service(void)
{
    char stream[64];
    struct stat st;

    CHECK_INT(fstat(STDERR_FILENO, &st), 0);
    (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    CHECK_INT(setenv("JOURNAL_STREAM", stream, 1), 0);
    log_open();
}

static void test_fields(void)
{
    const struct log_about about = {
        .id = LOG_ID_TRIGGER,
        .session = "a",
        .cpus = "0-3,7",
        .file = "/a b",
        .domain = "web",
        .trigger = "crash",
    };
    char long_path[4096];

    test_case("a line without fields");
    log_line(LOG_INFO, NULL, "%s.", "Ready");
    CHECK_STR(sent, "[MESSAGE=Ready.][PRIORITY=6]");
    test_case("a line about a session");
    log_line(LOG_WARNING, "a", "Ended.");
    CHECK_STR(sent, "[MESSAGE=a: Ended.][PRIORITY=4][SESSION=a]");
    test_case("an event with all fields");
    log_event(LOG_ERR, &about, "%d.", 5);
    CHECK_STR(sent, "[MESSAGE=a: 5.][PRIORITY=3][MESSAGE_ID=" LOG_ID_TRIGGER
                    "][SESSION=a][CPU=0-3,7][DOMAIN=web][TRIGGER=crash][FILE=/a b]");
    test_case("an event that is about nothing");
    log_event(LOG_ERR, &(struct log_about){.id = LOG_ID_POOL_REFUSED}, "Full.");
    CHECK_STR(sent, "[MESSAGE=Full.][PRIORITY=3][MESSAGE_ID=" LOG_ID_POOL_REFUSED "]");
    test_case("a path that is too long is left out");
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    log_event(LOG_ERR,
              &(struct log_about){.id = LOG_ID_SNAPSHOT, .session = "a", .file = long_path},
              "Full.");
    CHECK_STR(sent, "[MESSAGE=a: Full.][PRIORITY=3][MESSAGE_ID=" LOG_ID_SNAPSHOT "][SESSION=a]");
    test_case("a level that is not logged");
    sent[0] = '\0';
    log_event(LOG_DEBUG, &about, "No.");
    CHECK_STR(sent, "");
}

/* Whether a line about SESSION, which WHO causes, is written. */
static bool is_written(const char *session, const struct requester *who)
{
    sent[0] = '\0';
    log_event(LOG_NOTICE, &(struct log_about){.session = session, .who = who}, "Line.");
    return sent[0];
}

static unsigned int count_written(const char *session, const struct requester *who)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < 1000; i++)
        count += is_written(session, who);
    return count;
}

static void test_owners(void)
{
    const struct requester root = {.is_set = true, .person = PERSON_ROOT};
    const struct requester user = {.is_set = true, .uid = 1000, .person = 1000};
    const struct requester other = {.is_set = true, .uid = 1001, .person = 1001};
    const struct requester nobody = {.is_set = false};

    test_case("lines that a user causes are limited, and those about its captures, in sum");
    log_set_owner("own", &user);
    CHECK_UINT(count_written("flight-recorder", &user), LOG_QUOTA_LINES_MAX);
    CHECK_UINT(count_written("own", NULL), 0);
    test_case("another user's are not affected");
    log_set_owner("other", &other);
    CHECK_UINT(count_written("other", NULL), LOG_QUOTA_LINES_MAX);
    test_case("root's lines are not limited, whatever they are about");
    CHECK_UINT(count_written("nightly", &root), 1000);
    CHECK_UINT(count_written("own", &root), 1000);
    CHECK_UINT(count_written("flight-recorder", &nobody), 1000);
    CHECK_UINT(count_written("flight-recorder", NULL), 1000);
    CHECK_UINT(count_written(NULL, NULL), 1000);
    test_case("a name that is root's now");
    log_set_owner("own", &root);
    CHECK_UINT(count_written("own", NULL), 1000);
    log_set_owner("other", NULL);
    CHECK_UINT(count_written("other", NULL), 1000);
}

int main(void)
{
    become_service();
    test_fields();
    test_owners();
    return test_end();
}
