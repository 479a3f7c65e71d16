/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The options with which commands that read a trace restrict their answers: to a part of the time,
 * and to some domains, vCPUs or CPUs.
 *
 *   struct options { ...; struct selection_options selection; };
 *   static const struct args_option report_options[] = {
 *       ...
 *       SELECTION_OPTIONS(struct options, selection),
 *       {},
 *   };
 *   r = args_parse(...);
 *   r = selection_check(&options.selection, path, &error);        -EINVAL: args_exit()
 *   r = selection_open(ctl, &options.selection, path, false, &input, &error);
 *
 * docs/measures.md ("Selections") defines what it means for each number. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/units.h"
#include "ctl/args-table.h"
#include "trace/merge.h"

struct ctl;
struct input;
struct json_object;
struct measures;

/* As typed; NULL, 0: not given. Borrowed from argv. */
struct selection_options {
    const char *since, *until, *around;
    uint64_t window_usec;
    uint32_t tsc_khz;
    bool now;
    struct args_list domains, vcpus; /* each value may be a list, with commas */
    const char *cpus;
    bool may_be_missing; /* set by a command that reads another trace, too */
};

/* How long --around is without --window. */
#define SELECTION_WINDOW_USEC (200 * USEC_PER_MSEC)

/* Lines for the table of a command whose values go into TYPE, of which MEMBER is the selection. */
/* clang-format off */
#define SELECTION_SPAN_OPTIONS(type, member)                                                       \
    {.help = "Which part of the trace:"},                                                          \
    {"since", 'S', "TIME", ARGS_TEXT, offsetof(type, member.since),                                \
     .help = "from TIME on: 02:51:00.5 (wall clock), +3.5s (after\n"                               \
             "the beginning of the trace), -40s (before its end)"},                                \
    {"until", 'U', "TIME", ARGS_TEXT, offsetof(type, member.until), .help = "before TIME"}
#define SELECTION_AROUND_OPTIONS(type, member)                                                     \
    {"around", 0, "TIME", ARGS_TEXT, offsetof(type, member.around), .help = "around TIME"},        \
    {"window", 0, "TIME", ARGS_DURATION, offsetof(type, member.window_usec), USEC_PER_MSEC,        \
     .help = "with --around: length of the part: 500 (ms), 2s\n(default 200ms)"}
#define SELECTION_CLOCK_OPTIONS(type, member)                                                      \
    {"tsc-khz", 0, "N", ARGS_COUNT, offsetof(type, member.tsc_khz), .detail = "kHz",               \
     .help = "the TSC's frequency, if there is no sidecar"}
#define SELECTION_INPUT_OPTIONS(type, member)                                                      \
    {"now", 0, NULL, ARGS_FLAG, offsetof(type, member.now),                                        \
     .help = "read what the flight recorder holds at the moment"}
#define SELECTION_SUBJECT_OPTIONS(type, member)                                                    \
    {"domain", 0, "LIST", ARGS_LIST, offsetof(type, member.domains),                               \
     .help = "these domains: names, IDs or UUIDs: web,5"},                                         \
    {"vcpu", 0, "LIST", ARGS_LIST, offsetof(type, member.vcpus),                                   \
     .help = "these vCPUs: web.0,5.1"},                                                            \
    {"cpu", 0, "LIST", ARGS_CPUS, offsetof(type, member.cpus),                                     \
     .help = "these CPUs: 0-3,8"}
/* clang-format on */

#define SELECTION_TIME_OPTIONS(type, member)                                                       \
    SELECTION_SPAN_OPTIONS(type, member), SELECTION_AROUND_OPTIONS(type, member),                  \
        SELECTION_CLOCK_OPTIONS(type, member)
#define SELECTION_OPTIONS(type, member)                                                            \
    SELECTION_TIME_OPTIONS(type, member), SELECTION_INPUT_OPTIONS(type, member),                   \
        SELECTION_SUBJECT_OPTIONS(type, member)

/*
 * As far as it can be checked without the trace. PATH: the word that names one; NULL: none. 0;
 * -EINVAL with a sentence in *RET_ERROR (free it).
 */
int selection_check(const struct selection_options *options, const char *path, char **ret_error);

/* The same of one moment: TEXT is the value of OPTION ("--at"). */
int selection_check_time(const char *option, const char *text, char **ret_error);

/* Whether a part of the trace is selected by its time; whether domains, vCPUs or CPUs are. */
bool selection_has_part(const struct selection_options *options);
bool selection_has_subjects(const struct selection_options *options);

/*
 * Finds the domains, vCPUs and CPUs by INPUT's sidecar: input.subjects, input.shown. 0; -EINVAL or
 * -ENOENT with a sentence in *RET_ERROR; -ENOMEM. selection_open() does this.
 */
int selection_find_subjects(const struct selection_options *options, struct input *input,
                            char **ret_error);

/*
 * After MEASURES were taken: -ENOENT with a sentence in *RET_ERROR if nothing of what was selected
 * is in the trace.
 */
int selection_check_shown(const struct input *input, const struct measures *measures,
                          char **ret_error);

/* "selection" of a document, if there is one. */
void selection_doc_add(struct json_object *doc, const struct input *input);

/*
 * Opens the trace at PATH ("-": standard input; NULL: the flight recorder with --now, else the
 * newest snapshot) and begins to read the part that was selected
 * (input.merge). AGAIN: input_begin() will be called. Returns as input_open().
 */
int selection_open(const struct ctl *ctl, const struct selection_options *options, const char *path,
                   bool again, struct input **ret_input, char **ret_error);

/*
 * A moment of a trace from FIRST_TSC to LAST_TSC (0: not known). 0; -EINVAL with a sentence in
 * *RET_ERROR.
 */
int selection_find_tsc(const char *option, const char *text, const struct input *input,
                       uint64_t first_tsc, uint64_t last_tsc, uint64_t *ret_tsc, char **ret_error);
