// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/base/log.h"

#include <sys/stat.h>
#include <sys/uio.h>

#include "daemon/base/log-id.h"
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

int main(void)
{
    become_service();
    test_fields();
    return test_end();
}
