/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Wrong commands and options, and the right one: what other programs call it (systemctl, perf,
 * lttng, trace-cmd, xentrace), else the nearest by its letters. Made from the table of commands
 * (ctl/ctl.h); a command or option that destroys something is never suggested.
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
