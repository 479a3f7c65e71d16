// SPDX-License-Identifier: GPL-2.0-or-later
/* The line that shows how far a trace was read: on a terminal, after a second, and gone at the end.
 */

#include "ctl/reading.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "common/units.h"
#include "tests/unit/test.h"
#include "trace/merge.h"

#define MIB (UINT64_C(1) << 20)

static void check_line(uint64_t total, uint64_t taken, uint64_t usec, const char *want)
{
    const struct reading reading = {.verb = "Reading", .name = "t", .total_bytes = total};
    char text[READING_TEXT_MAX];

    if (!CHECK(strcmp(reading_format(text, &reading, taken, usec), want) == 0))
        (void)printf("# got %s\n", text);
}

static void test_lines(void)
{
    struct reading writing;
    char text[READING_TEXT_MAX];

    test_case("the line");
    check_line(1000 * MIB, 250 * MIB, 2 * USEC_PER_SEC, "Reading t: 25%, 250M of 1000M, 6s left");
    check_line(1000 * MIB, 1000 * MIB, USEC_PER_SEC, "Reading t: 100%, 1000M of 1000M, 0s left");
    check_line(0, 32 * MIB, USEC_PER_SEC, "Reading t: 32M");
    check_line(16 * MIB, 32 * MIB, USEC_PER_SEC, "Reading t: 32M"); /* the file has grown */
    reading_init(&writing, "Writing", "", 1000 * MIB);
    CHECK(strcmp(reading_format(text, &writing, 430 * MIB, USEC_PER_SEC),
                 "Writing: 43%, 430M of 1000M, 1s left") == 0);
}

/* What is written to TERMINAL now. */
static const char *read_terminal(int terminal)
{
    static char text[512];
    ssize_t n = read(terminal, text, sizeof(text) - 1);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static int open_terminal(int *ret_terminal)
{
    struct termios raw;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), slave;

    if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0)
        return -1;
    slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    if (slave < 0 || tcgetattr(slave, &raw) < 0)
        return -1;
    cfmakeraw(&raw);
    (void)tcsetattr(slave, TCSANOW, &raw);
    *ret_terminal = terminal;
    return slave;
}

static void test_terminal(void)
{
    struct merge merge = {0};
    struct reading reading;
    int old = dup(STDERR_FILENO), terminal, slave = open_terminal(&terminal);

    if (slave < 0) {
        (void)puts("ok - a terminal # SKIP there is none");
        return;
    }
    (void)dup2(slave, STDERR_FILENO);
    reading_begin(&reading, &merge, "t", 100 * MIB);
    test_case("on a terminal");
    if (!CHECK(merge.on_bytes))
        goto end;
    merge.on_bytes(merge.on_bytes_context, 16 * MIB);
    CHECK(*read_terminal(terminal) == '\0'); /* within the first second */
    reading.begin_usec -= 2 * USEC_PER_SEC;
    merge.on_bytes(merge.on_bytes_context, 50 * MIB);
    CHECK(strncmp(read_terminal(terminal), "\r\033[KReading t: 50%", 18) == 0);
    merge.on_bytes(merge.on_bytes_context, 51 * MIB);
    CHECK(*read_terminal(terminal) == '\0'); /* not for each call */
    merge.on_bytes(merge.on_bytes_context, UINT64_MAX);
    CHECK(strcmp(read_terminal(terminal), "\r\033[K") == 0);
    reading_end(&reading);
    CHECK(*read_terminal(terminal) == '\0');
end:
    (void)dup2(old, STDERR_FILENO);
}

static void test_pipe(void)
{
    struct merge merge = {0};
    struct reading reading;
    int old = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

    test_case("not into a file");
    (void)dup2(null, STDERR_FILENO);
    reading_begin(&reading, &merge, "t", 100 * MIB);
    (void)dup2(old, STDERR_FILENO);
    CHECK(!merge.on_bytes);
}

int main(void)
{
    test_lines();
    test_terminal();
    test_pipe();
    return test_end();
}
