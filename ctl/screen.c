// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The signals are blocked and read from a signalfd, so that no handler has to restore anything.
 *
 * A frame is one write: the terminal shows the old picture, then the new one. Lines are overwritten
 * and cleared to their end, instead of clearing the whole screen first.
 */

#include "ctl/screen.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#include "common/units.h"
#include "ctl/frame.h"

#define ENTER "\033[?1049h\033[?25l\033[H\033[2J" /* alternate screen, no cursor, empty */
#define LEAVE "\033[0m\033[?25h\033[?1049l"

#define ESCAPE_WAIT_MSEC 50 /* what follows an escape of a key comes at once, of ssh nearly so */
#define SEQUENCE_MAX     8

struct screen {
    int signal_fd;
    sigset_t old_mask;
    struct termios old;
    bool is_shown;
};

/* Nothing can be done about a terminal that is gone; the next read reports it. */
static void write_all(const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(STDOUT_FILENO, text, bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text += n;
        bytes -= (size_t)n;
    }
}

static int screen_show(struct screen *screen)
{
    struct termios raw = screen->old;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* ISIG stays: Ctrl-C and Ctrl-Z are signals */
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
        return -errno;
    write_all(ENTER, strlen(ENTER));
    screen->is_shown = true;
    return 0;
}

static void screen_hide(struct screen *screen)
{
    if (!screen->is_shown)
        return;
    write_all(LEAVE, strlen(LEAVE));
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->old); /* or it is gone */
    screen->is_shown = false;
}

static int catch_signals(struct screen *screen)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGPIPE};
    sigset_t mask;

    (void)sigemptyset(&mask);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        (void)sigaddset(&mask, signals[i]);
    if (sigprocmask(SIG_BLOCK, &mask, &screen->old_mask) < 0)
        return -errno;
    screen->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return screen->signal_fd < 0 ? -errno : 0;
}

int screen_new(struct screen **ret_screen)
{
    _cleanup_screen_ struct screen *screen = NULL;
    const char *term = getenv("TERM");
    int r;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0)
        return -ENOTTY;
    screen = calloc(1, sizeof(*screen));
    if (!screen)
        return -ENOMEM;
    screen->signal_fd = -1;
    (void)sigprocmask(SIG_BLOCK, NULL, &screen->old_mask);
    if (tcgetattr(STDIN_FILENO, &screen->old) < 0)
        return -errno;
    r = catch_signals(screen);
    if (r < 0)
        return r;
    r = screen_show(screen);
    if (r < 0)
        return r;
    *ret_screen = TAKE_PTR(screen);
    return 0;
}

struct screen *screen_free(struct screen *screen)
{
    if (!screen)
        return NULL;
    screen_hide(screen);
    fd_close(&screen->signal_fd);
    (void)sigprocmask(SIG_SETMASK, &screen->old_mask, NULL);
    free(screen);
    return NULL;
}

void screen_size(const struct screen *screen, unsigned int *ret_rows, unsigned int *ret_cols)
{
    struct winsize size = {0};

    (void)screen;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    *ret_rows = size.ws_row;
    *ret_cols = size.ws_col;
}

/* The last line has no newline, which would scroll. */
void screen_draw(struct screen *screen, const struct frame *frame)
{
    _cleanup_free_ char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    (void)screen;
    if (!file)
        return;
    (void)fputs("\033[H", file);
    for (unsigned int i = 0; i < frame->used; i++)
        (void)fprintf(file, "%s%s\033[K", i ? "\r\n" : "", frame->lines[i] ? frame->lines[i] : "");
    (void)fputs("\033[J", file);
    if (fclose(file) == 0)
        write_all(text, bytes);
}

/* Ctrl-Z: the shell has its terminal back until it continues us. */
static void screen_suspend(struct screen *screen)
{
    screen_hide(screen);
    (void)raise(SIGSTOP);
    (void)screen_show(screen);
}

static enum screen_event read_signal(struct screen *screen)
{
    struct signalfd_siginfo info;

    if (read(screen->signal_fd, &info, sizeof(info)) != sizeof(info))
        return SCREEN_TIMEOUT;
    if (info.ssi_signo == SIGWINCH)
        return SCREEN_RESIZED;
    if (info.ssi_signo != SIGTSTP)
        return SCREEN_QUIT;
    screen_suspend(screen);
    return SCREEN_RESIZED;
}

/* What a key sends after its escape. */
static int decode(const char *sequence)
{
    static const struct {
        const char *sequence;
        int key;
    } keys[] = {
        {"[A", SCREEN_KEY_UP},         {"OA", SCREEN_KEY_UP},    {"[B", SCREEN_KEY_DOWN},
        {"OB", SCREEN_KEY_DOWN},       {"[C", SCREEN_KEY_RIGHT}, {"OC", SCREEN_KEY_RIGHT},
        {"[D", SCREEN_KEY_LEFT},       {"OD", SCREEN_KEY_LEFT},  {"[H", SCREEN_KEY_HOME},
        {"OH", SCREEN_KEY_HOME},       {"[1~", SCREEN_KEY_HOME}, {"[F", SCREEN_KEY_END},
        {"OF", SCREEN_KEY_END},        {"[4~", SCREEN_KEY_END},  {"[5~", SCREEN_KEY_PAGE_UP},
        {"[6~", SCREEN_KEY_PAGE_DOWN}, {"", SCREEN_KEY_ESCAPE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (strcmp(keys[i].sequence, sequence) == 0)
            return keys[i].key;
    }
    return 0; /* of no meaning here */
}

static bool is_last_of_sequence(const char *sequence, size_t length)
{
    char c = sequence[length - 1];

    return length > 1 && c >= '@' && c <= '~';
}

static int read_sequence(void)
{
    char sequence[SEQUENCE_MAX + 1] = "";
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};

    for (size_t length = 0; length < SEQUENCE_MAX;) {
        if (poll(&fd, 1, ESCAPE_WAIT_MSEC) <= 0 || read(STDIN_FILENO, sequence + length, 1) != 1)
            break;
        length++;
        sequence[length] = 0;
        if (is_last_of_sequence(sequence, length))
            break;
    }
    return decode(sequence);
}

static enum screen_event read_key(int *ret_key)
{
    unsigned char byte;
    ssize_t n = read(STDIN_FILENO, &byte, 1);

    if (n < 0 && errno == EINTR)
        return SCREEN_TIMEOUT;
    if (n <= 0)
        return SCREEN_QUIT; /* the terminal is gone */
    *ret_key = byte == '\033' ? read_sequence() : byte;
    return SCREEN_KEY;
}

enum screen_event screen_wait(struct screen *screen, uint64_t timeout_usec,
                              const struct pollfd *others, size_t nr_others, int *ret_key)
{
    struct pollfd fds[2 + SCREEN_OTHERS_MAX] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = screen->signal_fd, .events = POLLIN},
    };
    int timeout_msec = (int)min_u64((timeout_usec + USEC_PER_MSEC - 1) / USEC_PER_MSEC, 60000);

    assert(nr_others <= SCREEN_OTHERS_MAX);
    for (size_t i = 0; i < nr_others; i++)
        fds[2 + i] = others[i];
    if (poll(fds, 2 + nr_others, timeout_msec) <= 0)
        return SCREEN_TIMEOUT;
    if (fds[1].revents)
        return read_signal(screen);
    return fds[0].revents ? read_key(ret_key) : SCREEN_INPUT;
}
