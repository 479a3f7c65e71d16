/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The facts of a capture that only its sidecar has: the TSC's frequency, the wall clock, the
 * processor's vendor, names (docs/file-format.md). It is untrusted: missing or invalid values read
 * as unknown.
 *
 * Any thread that owns it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;
struct sidecar;

enum sidecar_vendor {
    SIDECAR_VENDOR_UNKNOWN,
    SIDECAR_VENDOR_INTEL,
    SIDECAR_VENDOR_AMD,
};

/*
 * Reads the sidecar at PATH; "-" or NULL: none. A missing or invalid sidecar reads as empty, and
 * sidecar_problem() gives the reason. Returns 0 or -ENOMEM.
 */
int sidecar_new(const char *path, struct sidecar **ret_sidecar);
/* The same of DOCUMENT, which is borrowed. */
int sidecar_new_document(struct json_object *document, struct sidecar **ret_sidecar);
struct sidecar *sidecar_free(struct sidecar *sidecar);

/* 0: it was read; or a negative errno: -ENOENT, -EBADMSG (it is no sidecar), -EFBIG, of read(2). */
int sidecar_problem(const struct sidecar *sidecar);

uint64_t sidecar_tsc_khz(const struct sidecar *sidecar); /* 0: unknown */
enum sidecar_vendor sidecar_vendor(const struct sidecar *sidecar);
/* No record from then on is missing, but for losses that the trace reports; 0: unknown. */
uint64_t sidecar_complete_from_tsc(const struct sidecar *sidecar);
/* Why the snapshot was taken ("Domain 3 (web) crashed."), host, scheduler; NULL: unknown. */
const char *sidecar_reason(const struct sidecar *sidecar);
/* ... when that was seen, in nanoseconds since 1970; 0: unknown. */
uint64_t sidecar_reason_nsec(const struct sidecar *sidecar);
/* ... and the record that showed it; 0: none did, as with a crash. */
uint64_t sidecar_reason_tsc(const struct sidecar *sidecar);
const char *sidecar_hostname(const struct sidecar *sidecar);
const char *sidecar_boot_id(const struct sidecar *sidecar); /* 32 hexadecimal digits */
const char *sidecar_scheduler(const struct sidecar *sidecar);
const char *sidecar_granularity(const struct sidecar *sidecar);
const char *sidecar_xen_version(const struct sidecar *sidecar); /* "4.17.6"; NULL: unknown */

/* The wall clock at TSC, in nanoseconds since 1970; 0: unknown. */
uint64_t sidecar_realtime_nsec(const struct sidecar *sidecar, uint64_t tsc);
/*
 * The pairs that this follows, by their TSCs: number I, from 0. A step of the clock is two pairs
 * with the same TSC. False: there are no more.
 */
bool sidecar_clock_at(const struct sidecar *sidecar, size_t i, uint64_t *ret_tsc,
                      uint64_t *ret_realtime_nsec);
/* The other way round: the first TSC that is not before that time. False: unknown. */
bool sidecar_find_tsc(const struct sidecar *sidecar, uint64_t realtime_nsec, uint64_t *ret_tsc);

#define SIDECAR_NAME_MAX  80u /* with the zero; a longer name ends with an ellipsis */
#define SIDECAR_LABEL_MAX 90u

/*
 * The name and the UUID of domain DOMID at that time (0: its last ones); NULL: unknown. Printable
 * UTF-8; the sidecar's. The label is for people: the name, with the ID if other domains have that
 * name, or if it looks like something else: "web (d5)", "idle (d5)", "Domain-0 (d5)", "d1v0 (d5)".
 */
const char *sidecar_domain_name(const struct sidecar *sidecar, uint32_t domid,
                                uint64_t realtime_nsec);
const char *sidecar_domain_label(const struct sidecar *sidecar, uint32_t domid,
                                 uint64_t realtime_nsec);
const char *sidecar_domain_uuid(const struct sidecar *sidecar, uint32_t domid,
                                uint64_t realtime_nsec);
/* A domain that is listed; its texts are the sidecar's, NULL if unknown. */
struct sidecar_domain {
    uint32_t domid;
    uint64_t first_nsec, last_nsec; /* when it was seen */
    char *name, *uuid;
    char *label; /* NULL: the name */
};

/* Domain number I, from 0. False: there are no more. */
bool sidecar_domain_at(const struct sidecar *sidecar, size_t i, struct sidecar_domain *ret_domain);
/* The newest domain with that name or UUID. False: there is none. */
bool sidecar_find_domain(const struct sidecar *sidecar, const char *name, uint32_t *ret_domid);
