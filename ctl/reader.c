// SPDX-License-Identifier: GPL-2.0-or-later
/* A table of cases is in tests/ctl/test-reader.c. */

#include "ctl/reader.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/doc.h"
#include "ctl/str.h"
#include "trace/exit-reasons.h"

#define XENALYZE_CPUS_MAX 256u

/* Above these xenalyze stops, unless --tolerance=4. */
#define XENALYZE_VMX_REASON_MAX 56u
#define XENALYZE_SVM_REASON_MAX 0x401u

#define SVM_EVENT_SINCE_MINOR 19u

enum reader reader_of(const struct reader_facts *facts)
{
    if (facts->has_guest_records || facts->nr_cpus > XENALYZE_CPUS_MAX)
        return READER_NONE;
    if (!facts->has_exits || !facts->is_amd)
        return READER_ANY;
    if (facts->has_svm_exits || facts->xen_minor >= SVM_EVENT_SINCE_MINOR)
        return READER_SINCE_4_19;
    return READER_SVM_MODE;
}

static bool wants_tolerance(const struct reader_facts *facts)
{
    return facts->highest_reason >
           (facts->is_amd ? XENALYZE_SVM_REASON_MAX : XENALYZE_VMX_REASON_MAX);
}

static bool is_amd(const char *vendor)
{
    return strcmp(vendor, "AuthenticAMD") == 0 || strcmp(vendor, "HygonGenuine") == 0;
}

static unsigned int minor_of(const char *version)
{
    return strncmp(version, "4.", 2) == 0 ? (unsigned int)strtoul(version + 2, NULL, 10) : 0;
}

struct reader_facts reader_facts_of(struct json_object *document)
{
    return (struct reader_facts){
        .has_exits = doc_number(document, "classes.hvm") > 0,
        .has_guest_records = doc_number(document, "classes.guest") > 0,
        .is_amd = is_amd(doc_text(document, "host.cpu_vendor", "")),
        .xen_minor = minor_of(doc_text(document, "host.xen_version", "")),
        .nr_cpus = doc_number(document, "host.cpus"),
    };
}

void reader_note_exit(struct reader_facts *facts, uint32_t event, uint32_t reason)
{
    bool is_new = exit_event_is_svm(event);

    facts->has_exits = true;
    facts->has_svm_exits = facts->has_svm_exits || is_new;
    facts->is_amd = facts->is_amd || is_new || exit_reason_is_svm(reason);
    if ((reason & 0xffff) > facts->highest_reason)
        facts->highest_reason = reason & 0xffff;
}

const char *reader_describe(const struct reader_facts *facts)
{
    switch (reader_of(facts)) {
    case READER_ANY:
        return wants_tolerance(facts) ? "xenalyze, with --tolerance=4" : "xenalyze";
    case READER_SVM_MODE:
        return wants_tolerance(facts)
                   ? "xenalyze of Xen 4.18 or earlier, with --svm-mode --tolerance=4"
                   : "xenalyze of Xen 4.18 or earlier, with --svm-mode";
    case READER_SINCE_4_19:
        return "xenalyze of Xen 4.19 or later, which stops at many of AMD's VM exits";
    case READER_NONE:
        break;
    }
    return facts->has_guest_records ? "not xenalyze, which stops at records of the class guest"
                                    : "not xenalyze, which reads at most 256 CPUs";
}

void reader_print_command(FILE *file, const struct reader_facts *facts, const char *sudo,
                          const char *quoted, uint64_t khz)
{
    enum reader reader = reader_of(facts);
    char hz[STR_HZ_MAX];

    if (reader == READER_NONE)
        return;
    (void)fprintf(file, "%9s  %sxenalyze ", "", sudo);
    if (khz)
        (void)fprintf(file, "--cpu-hz %s ", str_hz(hz, khz));
    (void)fprintf(file, "%s%s--summary %s%s\n", reader == READER_SVM_MODE ? "--svm-mode " : "",
                  wants_tolerance(facts) ? "--tolerance=4 " : "", quoted,
                  reader == READER_SVM_MODE     ? "   # of Xen 4.18 or earlier"
                  : reader == READER_SINCE_4_19 ? "   # of Xen 4.19 or later"
                                                : "");
}
