/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The side of -H that is reached (ctl/remote.h is the other one): what runs there is
 *
 *     xentracectl --served=1FLAGS HOST PATH COMMAND [ARGUMENT]...
 *
 * HOST is this host's name as it was typed there; PATH is the file there that the command writes,
 * "-" for standard output there, "" for none. The first line of standard output is
 * "\036xentracectl-served 1 VERSION". On a terminal (FLAGS has "l") the command's output follows as
 * it is; otherwise frames do: a letter, the length as four bytes, most significant first, and that
 * many bytes. When standard input ends, the command is interrupted. One thread.
 */

#include <stdbool.h>
#include <stddef.h>

#define SERVED_WORD     "--served="
#define SERVED_WORDS    3 /* before the command */
#define SERVED_PROTOCOL "1"
#define SERVED_MARKER   "\036xentracectl-served "
#define SERVED_LIVE     'l' /* a live view, on a terminal */
#define SERVED_TERMINAL 't' /* standard error there is a terminal */

#define SERVED_HEAD_BYTES  5u
#define SERVED_FRAME_BYTES 65536u /* the longest frame, without its head */

enum served_frame {
    SERVED_OUT = 'o',  /* standard output */
    SERVED_ERR = 'e',  /* standard error */
    SERVED_FILE = 'f', /* the file at PATH */
    SERVED_SIDECAR = 's',
    SERVED_STARTED = 'b',  /* record: the capture runs */
    SERVED_PROGRESS = 'p', /* record: its line */
    SERVED_EXIT = 'x',     /* one byte, the exit status; the last frame */
};

/*
 * Begins with the words after the program's name if they are such a command line: prints the first
 * line. Returns true, with the exit code, in the process that has passed everything on; false in
 * the one that is to run the command.
 */
bool served_begin(char **words, int *ret_code);

/* What follows is as of the process that runs the command; without -H: "", NULL, -1 or nothing. */
const char *served_host(void);
const char *served_path(void);
int served_output_fd(void); /* receives the file at PATH */
int served_sidecar_fd(void);
bool served_has_terminal(void);
void served_send(enum served_frame frame, const char *text);
