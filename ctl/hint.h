/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Suggestions for unknown commands and options: the equivalent of a name in other programs
 * (systemctl, perf, lttng, trace-cmd, xentrace), or the most similar name in the table of commands
 * (ctl/ctl.h). Destructive commands and options are never suggested.
 */

struct verb;

/*
 * -EINVAL with one sentence in *RET_ERROR (free it), or -ENOMEM: there is no command TYPED, no
 * option --WORD, no option -LETTER. VERB is the command that the option was given to; NULL: none
 * yet.
 */
int hint_refuse_command(const char *typed, char **ret_error);
int hint_refuse_option(const struct verb *verb, const char *word, char **ret_error);
int hint_refuse_letter(const struct verb *verb, char letter, char **ret_error);

/* The same for a number in place of an option, such as "-40s". */
int hint_refuse_number(const struct verb *verb, const char *typed, char **ret_error);
