// SPDX-License-Identifier: GPL-2.0-or-later
/* Which xenalyze can read a trace: the processors, the version of Xen and the records decide. */

#include "ctl/reader.h"

#include <stdio.h>
#include <string.h>

#include "ctl/doc.h"
#include "tests/unit/test.h"

#define AMD(version)                                                                               \
    "{\"host\":{\"cpu_vendor\":\"AuthenticAMD\",\"xen_version\":\"" version "\",\"cpus\":8}"
#define INTEL  "{\"host\":{\"cpu_vendor\":\"GenuineIntel\",\"xen_version\":\"4.20.1\",\"cpus\":8}"
#define HVM    ",\"classes\":{\"sched\":5,\"hvm\":7}}"
#define NO_HVM ",\"classes\":{\"sched\":5,\"hvm\":0}}"

static const struct {
    const char *name, *document;
    uint32_t event, reason; /* of an exit that was seen; 0: none was */
    const char *described;
    const char *command; /* NULL: none */
} cases[] = {
    {"AMD before 4.19", AMD("4.17.6") HVM, 0, 0, "xenalyze of Xen 4.18 or earlier, with --svm-mode",
     "xenalyze --cpu-hz 2.3G --svm-mode --summary t   # of Xen 4.18 or earlier"},
    {"Hygon's are AMD's", "{\"host\":{\"cpu_vendor\":\"HygonGenuine\"},\"classes\":{\"hvm\":1}}", 0,
     0, "xenalyze of Xen 4.18 or earlier, with --svm-mode",
     "xenalyze --cpu-hz 2.3G --svm-mode --summary t   # of Xen 4.18 or earlier"},
    {"AMD, 4.19", AMD("4.19.0") HVM, 0, 0,
     "xenalyze of Xen 4.19 or later, which stops at many of AMD's VM exits",
     "xenalyze --cpu-hz 2.3G --summary t   # of Xen 4.19 or later"},
    {"AMD without exits", AMD("4.20.4") NO_HVM, 0, 0, "xenalyze",
     "xenalyze --cpu-hz 2.3G --summary t"},
    {"AMD by the event, without a sidecar", "{}", 0x81103, 0x400,
     "xenalyze of Xen 4.19 or later, which stops at many of AMD's VM exits",
     "xenalyze --cpu-hz 2.3G --summary t   # of Xen 4.19 or later"},
    {"AMD by the reason, without a sidecar", "{}", 0x81102, 0x7b,
     "xenalyze of Xen 4.18 or earlier, with --svm-mode",
     "xenalyze --cpu-hz 2.3G --svm-mode --summary t   # of Xen 4.18 or earlier"},
    {"a reason of AMD's that xenalyze does not know", AMD("4.17.6") HVM, 0x81102, 0x402,
     "xenalyze of Xen 4.18 or earlier, with --svm-mode --tolerance=4",
     "xenalyze --cpu-hz 2.3G --svm-mode --tolerance=4 --summary t   # of Xen 4.18 or earlier"},
    {"Intel", INTEL HVM, 0x81102, 30, "xenalyze", "xenalyze --cpu-hz 2.3G --summary t"},
    {"Intel's flags are no reason", INTEL HVM, 0x81102, 0x80000021, "xenalyze",
     "xenalyze --cpu-hz 2.3G --summary t"},
    {"a reason of Intel's that xenalyze does not know", INTEL HVM, 0x81102, 62,
     "xenalyze, with --tolerance=4", "xenalyze --cpu-hz 2.3G --tolerance=4 --summary t"},
    {"the class guest", "{\"classes\":{\"guest\":1}}", 0, 0,
     "not xenalyze, which stops at records of the class guest", NULL},
    {"256 CPUs", "{\"host\":{\"cpus\":256}}", 0, 0, "xenalyze",
     "xenalyze --cpu-hz 2.3G --summary t"},
    {"257 CPUs", "{\"host\":{\"cpus\":257}}", 0, 0, "not xenalyze, which reads at most 256 CPUs",
     NULL},
    {"nothing is known", "{}", 0, 0, "xenalyze", "xenalyze --cpu-hz 2.3G --summary t"},
    {"a version of something else", AMD("unstable") HVM, 0, 0,
     "xenalyze of Xen 4.18 or earlier, with --svm-mode",
     "xenalyze --cpu-hz 2.3G --svm-mode --summary t   # of Xen 4.18 or earlier"},
};

static void check_command(const struct reader_facts *facts, const char *want)
{
    char text[256] = "", expected[256] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");

    if (!CHECK(file))
        return;
    reader_print_command(file, facts, "", "t", 2300000);
    (void)fclose(file);
    if (want)
        (void)snprintf(expected, sizeof(expected), "           %s\n", want);
    if (!CHECK(strcmp(text, expected) == 0))
        (void)printf("# got  %s# want %s\n", text, expected);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        _cleanup_doc_ struct json_object *doc = NULL;
        struct reader_facts facts;

        test_case(cases[i].name);
        CHECK(doc_parse(cases[i].document, strlen(cases[i].document), &doc) == 0);
        facts = reader_facts_of(doc);
        if (cases[i].event)
            reader_note_exit(&facts, cases[i].event, cases[i].reason);
        if (!CHECK(strcmp(reader_describe(&facts), cases[i].described) == 0))
            (void)printf("# got %s\n", reader_describe(&facts));
        check_command(&facts, cases[i].command);
    }
    return test_end();
}
