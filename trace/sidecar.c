// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/json-text.h"
#include "common/utf8.h"
#include "common/util.h"

#define TEXT_BYTES_MAX 1024u /* a longer one ends with an ellipsis */

struct clock_pair {
    uint64_t tsc;
    uint64_t realtime_nsec;
};

struct sidecar {
    int problem;
    uint64_t tsc_khz;
    enum sidecar_vendor vendor;
    uint64_t complete_from_tsc;
    uint64_t reason_nsec, reason_tsc;
    char *reason, *hostname, *boot_id, *scheduler, *granularity, *xen_version;
    struct clock_pair *clock;
    size_t nr_clock;
    struct sidecar_domain *domains;
    size_t nr_domains;
};

/* --- JSON. --- */

static struct json_object *find(struct json_object *object, const char *path)
{
    struct json_object *found;

    return json_pointer_get(object, path, &found) == 0 ? found : NULL;
}

static uint64_t get_number(struct json_object *object, const char *path)
{
    struct json_object *number = find(object, path);

    return json_object_is_type(number, json_type_int) ? json_object_get_uint64(number) : 0;
}

/* A printable copy, of at most MAX bytes with the zero; NULL: there is none. */
static char *get_text_of(struct json_object *object, const char *path, size_t max)
{
    struct json_object *text = find(object, path);
    char copy[TEXT_BYTES_MAX];

    if (!json_object_is_type(text, json_type_string) || json_object_get_string_len(text) == 0)
        return NULL;
    (void)utf8_copy_short(copy, max, json_object_get_string(text));
    return strdup(copy);
}

static char *get_text(struct json_object *object, const char *path)
{
    return get_text_of(object, path, TEXT_BYTES_MAX);
}

static size_t get_length(struct json_object *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* --- Reading. --- */

static void read_clock(struct sidecar *sidecar, struct json_object *array)
{
    size_t length = get_length(array);

    sidecar->clock = calloc(length + 1, sizeof(*sidecar->clock));
    for (size_t i = 0; sidecar->clock && i < length; i++) {
        struct json_object *pair = json_object_array_get_idx(array, i);
        struct clock_pair *last = sidecar->clock + sidecar->nr_clock;

        *last = (struct clock_pair){get_number(pair, "/tsc"), get_number(pair, "/realtime_ns")};
        if (last->realtime_nsec == 0 || (sidecar->nr_clock > 0 && last->tsc < last[-1].tsc))
            continue;
        sidecar->nr_clock++;
    }
}

static void read_domains(struct sidecar *sidecar, struct json_object *array)
{
    size_t length = get_length(array);

    sidecar->domains = calloc(length + 1, sizeof(*sidecar->domains));
    for (size_t i = 0; sidecar->domains && i < length; i++) {
        struct json_object *domain = json_object_array_get_idx(array, i);

        sidecar->domains[sidecar->nr_domains++] = (struct sidecar_domain){
            .domid = (uint32_t)get_number(domain, "/domid"),
            .first_nsec = get_number(domain, "/first_seen_ns"),
            .last_nsec = get_number(domain, "/last_seen_ns"),
            .name = get_text_of(domain, "/name", SIDECAR_NAME_MAX),
            .uuid = get_text(domain, "/uuid"),
        };
    }
}

/* --- Labels. --- */

static int compare_names(const void *a, const void *b)
{
    const struct sidecar_domain *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* Names in the order of compare_names(). */
struct names {
    struct sidecar_domain **list;
    size_t nr;
};

static bool has_name(const struct names *names, const char *name, size_t length)
{
    char copy[SIDECAR_NAME_MAX];
    struct sidecar_domain key = {.name = copy}, *of_key = &key;

    (void)snprintf(copy, sizeof(copy), "%.*s", (int)length, name);
    return bsearch(&of_key, names->list, names->nr, sizeof(of_key), compare_names);
}

/* "5", "d5", "5.1", "d5v1": how this program names domains and vCPUs that have no name. */
static bool is_like_id(const char *name)
{
    name += *name == 'd' || *name == 'D';
    return *name >= '0' && *name <= '9' && name[strspn(name, "0123456789.vV")] == '\0';
}

/* Whether NAME without blanks at its ends is WORD, in any case. */
static bool is_word(const char *name, const char *word)
{
    size_t length = strlen(word);

    name += strspn(name, " ");
    return strncasecmp(name, word, length) == 0 &&
           name[length + strspn(name + length, " ")] == '\0';
}

/* The begin of digits at the end of NAME; NULL: there are none. */
static const char *last_number(const char *name)
{
    const char *end = name + strlen(name), *p = end;

    while (p > name && p[-1] >= '0' && p[-1] <= '9')
        p--;
    return p < end ? p : NULL;
}

/* "cluster.1", if there is a "cluster"; "web v1", which a vCPU of "web" is called. */
static bool is_like_vcpu(const struct names *names, const char *name)
{
    const char *number = last_number(name);
    size_t length = number ? (size_t)(number - name) : 0;

    if (length >= 2 && number[-1] == '.')
        return has_name(names, name, length - 1);
    return length >= 2 && number[-1] == 'v' && number[-2] == ' ';
}

/* Whether the name of a domain alone might be taken for that of another. */
static bool is_mistakable(const struct names *names, size_t i)
{
    const struct sidecar_domain *domain = names->list[i];
    const char *name = domain->name, *mark = strstr(name, " (d");

    if (is_word(name, "idle") || is_like_id(name) || is_like_vcpu(names, name))
        return true;
    if (domain->domid != 0 && (is_word(name, "Domain-0") || is_word(name, "dom0")))
        return true;
    return mark && mark[strlen(" (d")] >= '0' && mark[strlen(" (d")] <= '9'; /* as a label */
}

/* Names that are alike follow one another; a domain may be listed more than once. */
static size_t count_alike(const struct names *names, size_t i, bool *ret_has_others)
{
    size_t n = 1;

    *ret_has_others = false;
    for (; i + n < names->nr && strcmp(names->list[i]->name, names->list[i + n]->name) == 0; n++)
        if (names->list[i + n]->domid != names->list[i]->domid)
            *ret_has_others = true;
    return n;
}

static char *make_label(const struct sidecar_domain *domain)
{
    char label[SIDECAR_LABEL_MAX];

    (void)snprintf(label, sizeof(label), "%s (d%" PRIu32 ")", domain->name, domain->domid & 0xffff);
    return strdup(label);
}

static void label_domains(struct sidecar *sidecar)
{
    struct names names = {.list = calloc(sidecar->nr_domains + 1, sizeof(*names.list))};
    size_t alike;
    bool has_others;

    for (size_t i = 0; names.list && i < sidecar->nr_domains; i++)
        if (sidecar->domains[i].name)
            names.list[names.nr++] = &sidecar->domains[i];
    if (names.nr > 0)
        qsort(names.list, names.nr, sizeof(*names.list), compare_names);
    for (size_t i = 0; i < names.nr; i += alike) {
        alike = count_alike(&names, i, &has_others);
        for (size_t j = i; j < i + alike; j++)
            if (has_others || is_mistakable(&names, j))
                names.list[j]->label = make_label(names.list[j]);
    }
    free(names.list);
}

static enum sidecar_vendor vendor_of(const char *name)
{
    if (name && strcmp(name, "GenuineIntel") == 0)
        return SIDECAR_VENDOR_INTEL;
    if (name && (strcmp(name, "AuthenticAMD") == 0 || strcmp(name, "HygonGenuine") == 0))
        return SIDECAR_VENDOR_AMD;
    return SIDECAR_VENDOR_UNKNOWN;
}

static bool is_sidecar(struct json_object *document)
{
    struct json_object *format = find(document, "/format");
    const char *text =
        json_object_is_type(format, json_type_string) ? json_object_get_string(format) : "";

    return strcmp(text, "xentraced-session") == 0 || strcmp(text, "xentraced-snapshot") == 0;
}

static void read_document(struct sidecar *sidecar, struct json_object *document)
{
    _cleanup_free_ char *vendor = get_text(document, "/host/cpu_vendor");

    sidecar->tsc_khz = get_number(document, "/host/tsc_khz");
    sidecar->vendor = vendor_of(vendor);
    sidecar->hostname = get_text(document, "/host/hostname");
    sidecar->boot_id = get_text(document, "/host/boot_id");
    sidecar->scheduler = get_text(document, "/host/scheduler");
    sidecar->xen_version = get_text(document, "/host/xen_version");
    sidecar->granularity = get_text(document, "/host/scheduler_granularity");
    sidecar->reason = get_text(document, "/snapshot/reason");
    sidecar->reason_nsec = get_number(document, "/snapshot/reason_ns");
    sidecar->reason_tsc = get_number(document, "/snapshot/reason_tsc");
    sidecar->complete_from_tsc = get_number(document, "/snapshot/complete_from_tsc");
    if (sidecar->complete_from_tsc == 0)
        sidecar->complete_from_tsc = get_number(document, "/segment/complete_from_tsc");
    if (sidecar->complete_from_tsc == 0)
        sidecar->complete_from_tsc = get_number(document, "/complete_from_tsc");
    read_clock(sidecar, find(document, "/clock"));
    read_domains(sidecar, find(document, "/domains"));
    label_domains(sidecar);
}

static int sidecar_read(struct sidecar *sidecar, const char *path)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct json_object *document = NULL;
    int r;

    if (fd < 0)
        return -errno;
    r = json_text_read(fd, JSON_FILE_MAX_MEMORY, &document);
    if (r < 0)
        return r;
    r = is_sidecar(document) ? 0 : -EBADMSG;
    if (r == 0)
        read_document(sidecar, document);
    json_object_put(document);
    return r;
}

int sidecar_new_document(struct json_object *document, struct sidecar **ret_sidecar)
{
    struct sidecar *sidecar = calloc(1, sizeof(*sidecar));

    if (!sidecar)
        return -ENOMEM;
    sidecar->problem = is_sidecar(document) ? 0 : -EBADMSG;
    if (sidecar->problem == 0)
        read_document(sidecar, document);
    *ret_sidecar = sidecar;
    return 0;
}

int sidecar_new(const char *path, struct sidecar **ret_sidecar)
{
    struct sidecar *sidecar = calloc(1, sizeof(*sidecar));

    if (!sidecar)
        return -ENOMEM;
    sidecar->problem = path && strcmp(path, "-") != 0 ? sidecar_read(sidecar, path) : -ENOENT;
    *ret_sidecar = sidecar;
    return 0;
}

struct sidecar *sidecar_free(struct sidecar *sidecar)
{
    if (!sidecar)
        return NULL;
    for (size_t i = 0; i < sidecar->nr_domains; i++) {
        free(sidecar->domains[i].name);
        free(sidecar->domains[i].uuid);
        free(sidecar->domains[i].label);
    }
    free(sidecar->domains);
    free(sidecar->clock);
    free(sidecar->reason);
    free(sidecar->hostname);
    free(sidecar->boot_id);
    free(sidecar->scheduler);
    free(sidecar->granularity);
    free(sidecar->xen_version);
    free(sidecar);
    return NULL;
}

/* --- Questions. --- */

int sidecar_problem(const struct sidecar *sidecar)
{
    return sidecar->problem;
}

uint64_t sidecar_tsc_khz(const struct sidecar *sidecar)
{
    return sidecar->tsc_khz;
}

enum sidecar_vendor sidecar_vendor(const struct sidecar *sidecar)
{
    return sidecar->vendor;
}

uint64_t sidecar_complete_from_tsc(const struct sidecar *sidecar)
{
    return sidecar->complete_from_tsc;
}

const char *sidecar_reason(const struct sidecar *sidecar)
{
    return sidecar->reason;
}

uint64_t sidecar_reason_nsec(const struct sidecar *sidecar)
{
    return sidecar->reason_nsec;
}

uint64_t sidecar_reason_tsc(const struct sidecar *sidecar)
{
    return sidecar->reason_tsc;
}

const char *sidecar_hostname(const struct sidecar *sidecar)
{
    return sidecar->hostname;
}

const char *sidecar_boot_id(const struct sidecar *sidecar)
{
    return sidecar->boot_id;
}

const char *sidecar_scheduler(const struct sidecar *sidecar)
{
    return sidecar->scheduler;
}

const char *sidecar_granularity(const struct sidecar *sidecar)
{
    return sidecar->granularity;
}

const char *sidecar_xen_version(const struct sidecar *sidecar)
{
    return sidecar->xen_version;
}

/* A number of 64 bits with a sign: what is beyond is no time that a trace has. */
static __int128 bounded(__int128 number)
{
    if (number > INT64_MAX)
        return INT64_MAX;
    return number < -INT64_MAX ? -INT64_MAX : number;
}

/* VALUE + DELTA * MUL / DIV, for negative ones too; never below 0. */
static uint64_t scale(uint64_t value, __int128 delta, __int128 mul, uint64_t div)
{
    __int128 result;

    /* Most times are short: a division of 64 bits takes a third of the time. */
    if (delta >= 0 && delta <= UINT32_MAX * INT64_C(2048) && mul >= 0 && mul <= 1000000)
        return (uint64_t)bounded((__int128)value + (uint64_t)delta * (uint64_t)mul / div);
    result = (__int128)value + bounded(delta) * bounded(mul) / (__int128)div;

    return result < 0 ? 0 : (uint64_t)bounded(result);
}

uint64_t sidecar_realtime_nsec(const struct sidecar *sidecar, uint64_t tsc)
{
    const struct clock_pair *p, *end;

    if (sidecar->nr_clock == 0 || sidecar->tsc_khz == 0)
        return 0;
    end = sidecar->clock + sidecar->nr_clock;
    for (p = sidecar->clock; p + 1 < end && p[1].tsc <= tsc; p++)
        ;
    if (p + 1 < end && tsc >= p->tsc)
        return scale(p->realtime_nsec, (__int128)tsc - p->tsc,
                     (__int128)p[1].realtime_nsec - p->realtime_nsec, p[1].tsc - p->tsc);
    return scale(p->realtime_nsec, (__int128)tsc - p->tsc, 1000000, sidecar->tsc_khz);
}

bool sidecar_clock_at(const struct sidecar *sidecar, size_t i, uint64_t *ret_tsc,
                      uint64_t *ret_realtime_nsec)
{
    if (i >= sidecar->nr_clock)
        return false;
    *ret_tsc = sidecar->clock[i].tsc;
    *ret_realtime_nsec = sidecar->clock[i].realtime_nsec;
    return true;
}

bool sidecar_find_tsc(const struct sidecar *sidecar, uint64_t realtime_nsec, uint64_t *ret_tsc)
{
    uint64_t low = 0, high = INT64_MAX;

    if (sidecar_realtime_nsec(sidecar, 1) == 0 && sidecar_realtime_nsec(sidecar, high) == 0)
        return false;
    while (low < high) { /* a clock that was set back: some TSC at which it showed that time */
        uint64_t middle = low + (high - low) / 2;

        if (sidecar_realtime_nsec(sidecar, middle) < realtime_nsec)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_tsc = low;
    return true;
}

/* The one that was there at that time, or else the last. */
static const struct sidecar_domain *find_domain(const struct sidecar *sidecar, uint32_t domid,
                                                uint64_t realtime_nsec)
{
    const struct sidecar_domain *found = NULL;

    for (size_t i = 0; i < sidecar->nr_domains; i++) {
        const struct sidecar_domain *domain = &sidecar->domains[i];

        if (domain->domid != domid)
            continue;
        if (realtime_nsec >= domain->first_nsec && realtime_nsec <= domain->last_nsec &&
            realtime_nsec > 0)
            return domain;
        if (!found || domain->last_nsec >= found->last_nsec)
            found = domain;
    }
    return found;
}

const char *sidecar_domain_name(const struct sidecar *sidecar, uint32_t domid,
                                uint64_t realtime_nsec)
{
    const struct sidecar_domain *domain = find_domain(sidecar, domid, realtime_nsec);

    return domain ? domain->name : NULL;
}

const char *sidecar_domain_label(const struct sidecar *sidecar, uint32_t domid,
                                 uint64_t realtime_nsec)
{
    const struct sidecar_domain *domain = find_domain(sidecar, domid, realtime_nsec);

    if (!domain)
        return NULL;
    return domain->label ? domain->label : domain->name;
}

const char *sidecar_domain_uuid(const struct sidecar *sidecar, uint32_t domid,
                                uint64_t realtime_nsec)
{
    const struct sidecar_domain *domain = find_domain(sidecar, domid, realtime_nsec);

    return domain ? domain->uuid : NULL;
}

bool sidecar_domain_at(const struct sidecar *sidecar, size_t i, struct sidecar_domain *ret_domain)
{
    if (i >= sidecar->nr_domains)
        return false;
    *ret_domain = sidecar->domains[i];
    return true;
}

bool sidecar_find_domain(const struct sidecar *sidecar, const char *name, uint32_t *ret_domid)
{
    const struct sidecar_domain *found = NULL;

    for (size_t i = 0; i < sidecar->nr_domains; i++) {
        const struct sidecar_domain *domain = &sidecar->domains[i];

        if ((domain->name && strcmp(domain->name, name) == 0) ||
            (domain->uuid && strcasecmp(domain->uuid, name) == 0))
            if (!found || domain->last_nsec >= found->last_nsec)
                found = domain;
    }
    if (found)
        *ret_domid = found->domid;
    return found != NULL;
}
