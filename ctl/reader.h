/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which xenalyze can read a trace, beside `xentracectl report`, which reads all. Any thread.
 *
 * Source: Xen's tools/xentrace/xenalyze.c of 4.13 to 4.21. It is built for 256 CPUs. VM exits of
 * AMD's processors are read by those up to 4.18, with --svm-mode; Xen 4.19 gave them an event of
 * their own.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;
struct trace_file_summary;

/* The facts that decide which xenalyze it is. */
struct reader_facts {
    bool has_exits;          /* there are VM exits, or may be */
    bool has_svm_exits;      /* some have an event that only AMD's have, since Xen 4.19 */
    uint32_t highest_reason; /* of them, without the flags in bits 16 to 31 of Intel's */
    bool is_amd;             /* the processors are AMD's */
    bool has_guest_records;  /* of the class guest */
    unsigned int xen_minor;  /* 17 of Xen 4.17; 0: unknown */
    uint64_t nr_cpus;
};

enum reader {
    READER_ANY,        /* any xenalyze */
    READER_SVM_MODE,   /* of Xen 4.18 or earlier, with --svm-mode */
    READER_SINCE_4_19, /* of Xen 4.19 or later */
    READER_NONE,
};

enum reader reader_of(const struct reader_facts *facts);

/* From a sidecar or a session's document: as far as it knows. NULL: no facts. */
struct reader_facts reader_facts_of(struct json_object *document);
/* A VMEXIT with EVENT and REASON is in the trace. */
void reader_note_exit(struct reader_facts *facts, uint32_t event, uint32_t reason);

/*
 * For people: "xenalyze of Xen 4.18 or earlier, with --svm-mode", or that there is none and why.
 * Static.
 */
const char *reader_describe(const struct reader_facts *facts);
/*
 * Prints a line of "Next:": the command that prints a summary of the file, QUOTED for the shell.
 * SUDO is put before it; KHZ of the TSC, 0: unknown. Prints nothing if no xenalyze can read it.
 */
void reader_print_command(FILE *file, const struct reader_facts *facts, const char *sudo,
                          const char *quoted, uint64_t khz);
