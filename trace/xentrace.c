// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The public interface: what the other files of this folder do, behind structures that may grow. A
 * record is decoded only if the caller asks for its fields or its text: reading one is then not
 * much more than merging it.
 *
 * Invariant: `merge` is initialized from trace_begin() to trace_end(), and `current` is the item
 * that it returned last. Of a borrowed trace, `merge` is the client's, which has begun it.
 */

#include "trace/xentrace.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "common/sidecar-path.h"
#include "common/trace-open.h"
#include "common/util.h"
#include "trace/about.h"
#include "trace/events.h"
#include "trace/exit-reasons.h"
#include "trace/hardware.h"
#include "trace/measures-doc.h"
#include "trace/measures.h"
#include "trace/merge.h"
#include "trace/record-text.h"
#include "trace/sidecar.h"
#include "trace/source.h"
#include "trace/state.h"
#include "trace/subjects.h"
#include "trace/xentrace-borrow.h"

/* The frequency that is assumed if nobody says it: xenalyze's. */
#define ASSUMED_KHZ UINT64_C(2400000)

/* An observer, as earlier versions of the interface have it. */
#define OBSERVER_BYTES_1 offsetof(struct xentrace_observer, cpu_interval)
#define OBSERVER_BYTES_2 offsetof(struct xentrace_observer, gap)

#define FIELDS_MAX (EVENT_FIELDS_MAX > XENTRACE_WORDS_MAX ? EVENT_FIELDS_MAX : XENTRACE_WORDS_MAX)

/* A loss on a CPU that is not over. */
struct open_gap {
    bool is_open;
    uint64_t from_tsc, records;
};

struct xentrace {
    bool is_borrowed; /* the source, the sidecar, the merge */
    struct source *source;
    struct sidecar *sidecar;
    uint64_t tsc_khz;
    bool khz_is_assumed;
    bool is_svm;
    unsigned int xen; /* EVENT_XEN(); 0: unknown */
    struct event_cache cache;
    bool has_first;
    uint64_t first_tsc;
    struct xentrace_domain domain;

    struct merge *merge; /* own_merge, or borrowed */
    struct merge own_merge;
    struct merge_part part;
    bool has_merge;
    bool has_ended;
    struct merge_record current;
    bool has_record;
    uint64_t last_tsc; /* of the last record, shown or not */

    const struct subjects *subjects; /* NULL: all */
    struct about *about;             /* NULL: all */

    struct xentrace_record record;
    struct xentrace_field fields[FIELDS_MAX];
    char reasons[FIELDS_MAX][EXIT_REASON_TEXT_MAX];
    char text[RECORD_TEXT_MAX + 1];

    struct xentrace_observer observer;
    struct state_observer state_observer;
    struct state state;
    struct hardware hardware;
    struct open_gap *gaps; /* [nr_gaps], by number of the stream */
    unsigned int nr_gaps;
    bool has_state;
    bool is_stopped; /* by a function of the observer */
};

const char *xentrace_version(void)
{
    return PACKAGE_VERSION;
}

/* --- The state, for the observer. --- */

static void trace_forget_state(struct xentrace *trace)
{
    if (trace->has_state) {
        state_done(&trace->state);
        hardware_done(&trace->hardware);
    }
    free(trace->gaps);
    trace->gaps = NULL;
    trace->nr_gaps = 0;
    trace->has_state = false;
}

static uint32_t trace_cpu_of(const struct xentrace *trace, uint32_t stream)
{
    return merge_cpu_of(trace->merge, stream);
}

static uint32_t wait_of(const struct state_interval *interval)
{
    static const uint32_t waits[STATE_WAITS] = {
        [STATE_WAKE] = XENTRACE_WAKE,
        [STATE_PREEMPT] = XENTRACE_PREEMPT,
        [STATE_OTHER] = XENTRACE_OTHER,
    };
    uint32_t domid = interval->vcpu->key >> 16;

    if (interval->runstate != STATE_RUNNABLE || domid == STATE_DOMAIN_IDLE ||
        domid == STATE_DOMAIN_DEFAULT)
        return XENTRACE_NO_WAIT;
    return waits[interval->wait];
}

/* As `report --view intervals` has them: on CPUs that were selected, it is what happened there. */
static bool trace_shows(const struct xentrace *trace, uint32_t key, uint32_t cpu)
{
    const struct subjects *subjects = trace->subjects;

    if (!subjects)
        return true;
    return subjects_has_vcpu(subjects, key) &&
           (!subjects->of_cpus || (cpu != XENTRACE_NO_CPU && subjects_has_cpu(subjects, cpu)));
}

static void on_interval(void *context, const struct state_interval *interval)
{
    struct xentrace *trace = context;
    struct xentrace_interval out = {
        .domid = interval->vcpu->key >> 16,
        .vcpu = interval->vcpu->key & 0xffff,
        .runstate = (uint32_t)interval->runstate, /* both have Xen's numbers */
        .wait = wait_of(interval),
        .cpu = XENTRACE_NO_CPU,
        .begin_cpu = trace_cpu_of(trace, interval->changer),
        .from_tsc = interval->from,
        .to_tsc = interval->to,
        .ends_in_loss = interval->ends_in_loss,
        .next_runstate = (uint32_t)interval->next,
    };

    if (interval->runstate == STATE_RUNNING)
        out.cpu = trace_cpu_of(trace, interval->stream);
    if (!trace_shows(trace, interval->vcpu->key, out.cpu))
        return;
    if (trace->observer.interval(trace->observer.context, &out) != 0)
        trace->is_stopped = true;
}

static void on_exit_end(void *context, struct state_vcpu *vcpu, uint32_t reason, bool timed,
                        uint64_t cycles)
{
    struct xentrace *trace = context;
    char name[EXIT_REASON_TEXT_MAX];
    const struct xentrace_exit out = {
        .domid = vcpu->key >> 16,
        .vcpu = vcpu->key & 0xffff,
        .cpu = trace_cpu_of(trace, vcpu->exit_stream),
        .reason = reason,
        .name = exit_reason_name(trace->is_svm, reason, name),
        .from_tsc = vcpu->exit_since,
        .is_complete = timed,
        .to_tsc = timed ? trace->current.tsc : 0,
        .cycles = cycles,
    };

    if (!trace_shows(trace, vcpu->key, out.cpu))
        return;
    if (trace->observer.exit(trace->observer.context, &out) != 0)
        trace->is_stopped = true;
}

static void on_hardware(void *context, const struct hardware_interval *interval)
{
    static const uint32_t kinds[] = {
        [HARDWARE_IDLE] = XENTRACE_IDLE,
        [HARDWARE_FREQUENCY] = XENTRACE_FREQUENCY,
        [HARDWARE_INTERRUPT] = XENTRACE_INTERRUPT,
    };
    struct xentrace *trace = context;
    const struct xentrace_cpu_interval out = {
        .cpu = interval->cpu,
        .kind = kinds[interval->kind],
        .value = interval->value,
        .is_complete = !interval->is_incomplete,
        .from_tsc = interval->from,
        .to_tsc = interval->to,
        .ends_in_loss = interval->ends_in_loss,
    };

    if (subjects_are_vcpus(trace->subjects) || !subjects_has_cpu(trace->subjects, out.cpu))
        return;
    if (trace->observer.cpu_interval(trace->observer.context, &out) != 0)
        trace->is_stopped = true;
}

/* --- Losses. --- */

static int trace_grow_gaps(struct xentrace *trace, unsigned int nr)
{
    struct open_gap *gaps;

    if (nr <= trace->nr_gaps)
        return 0;
    gaps = reallocarray(trace->gaps, nr, sizeof(*gaps));
    if (!gaps)
        return -ENOMEM;
    trace->gaps = gaps;
    for (; trace->nr_gaps < nr; trace->nr_gaps++)
        gaps[trace->nr_gaps] = (struct open_gap){0};
    return 0;
}

static void trace_end_gap(struct xentrace *trace, uint32_t stream, uint64_t to_tsc)
{
    struct open_gap *gap = &trace->gaps[stream];
    const struct xentrace_gap out = {
        .cpu = trace_cpu_of(trace, stream),
        .records = gap->records,
        .from_tsc = gap->from_tsc,
        .to_tsc = max_u64(gap->from_tsc, to_tsc),
    };

    if (!gap->is_open)
        return;
    gap->is_open = false;
    if (!subjects_has_cpu(trace->subjects, out.cpu))
        return;
    if (trace->observer.gap(trace->observer.context, &out) != 0)
        trace->is_stopped = true;
}

static int trace_update_gaps(struct xentrace *trace, int item)
{
    const struct merge_record *record = &trace->current;
    int r;

    if (item == MERGE_RECORD && !record_is_lost(record->header))
        return 0;
    r = trace_grow_gaps(trace, merge_streams(trace->merge));
    if (r < 0)
        return r;
    if (item == MERGE_BLIND)
        trace->gaps[record->stream] = (struct open_gap){
            .is_open = true, .from_tsc = record->tsc, .records = merge_word(record, 0)};
    else
        trace_end_gap(trace, record->stream, record->tsc);
    return 0;
}

/* Of a part, there may be some that end after it. */
static void trace_end_gaps(struct xentrace *trace)
{
    for (unsigned int i = 0; i < trace->nr_gaps; i++)
        trace_end_gap(trace, i, trace->last_tsc);
}

/* --- Its beginning. --- */

static int trace_begin_state(struct xentrace *trace)
{
    int r;

    trace_forget_state(trace);
    trace->is_stopped = false;
    if (trace->observer.size == 0)
        return 0;
    trace->state_observer = (struct state_observer){
        .context = trace,
        .interval = trace->observer.interval ? on_interval : NULL,
        .exit = trace->observer.exit ? on_exit_end : NULL,
    };
    hardware_init(&trace->hardware, on_hardware, trace);
    r = state_init(&trace->state, &trace->state_observer);
    trace->has_state = r == 0;
    return r;
}

static int trace_update_hardware(struct xentrace *trace, int item)
{
    int r = hardware_grow(&trace->hardware, merge_streams(trace->merge));

    if (r < 0)
        return r;
    if (item == MERGE_BLIND)
        hardware_begin_blind(&trace->hardware, &trace->current);
    else
        hardware_record(&trace->hardware, &trace->current, record_event(trace->current.header));
    return 0;
}

static int trace_update_state(struct xentrace *trace, int item)
{
    int r = state_grow(&trace->state, merge_streams(trace->merge));

    if (r < 0)
        return r;
    if (item == MERGE_BLIND)
        state_begin_blind(&trace->state, &trace->current);
    else
        state_record(&trace->state, &trace->current);
    if (trace->state.error < 0)
        return trace->state.error;
    if (trace->observer.gap) {
        r = trace_update_gaps(trace, item);
        if (r < 0)
            return r;
    }
    return trace->observer.cpu_interval ? trace_update_hardware(trace, item) : 0;
}

/* --- Reading. --- */

static void trace_end(struct xentrace *trace)
{
    if (trace->has_merge && !trace->is_borrowed)
        merge_done(trace->merge);
    trace->has_merge = false;
    trace->has_record = false;
}

/* From the beginning of the part, or where the pipe is. */
static int trace_begin(struct xentrace *trace)
{
    int r = trace_begin_state(trace);

    if (r < 0)
        return r;
    trace_end(trace);
    trace->has_ended = false;
    if (!source_is_stream(trace->source))
        (void)source_seek(trace->source, 0);
    trace->has_merge = true;
    return merge_init(trace->merge, trace->source, trace->part);
}

static int trace_finish(struct xentrace *trace)
{
    if (!trace->has_ended && trace->has_state) {
        state_end(&trace->state);
        trace_end_gaps(trace);
    }
    trace->has_ended = true;
    return trace->merge->error;
}

/* The vendor follows from the sidecar, or from the first exit that only one of them makes. */
static void trace_note_vendor(struct xentrace *trace)
{
    if (!trace->is_svm && state_is_exit(record_event(trace->current.header)))
        trace->is_svm = exit_record_is_svm(&trace->current);
}

static struct record_text_style trace_style(struct xentrace *trace)
{
    return (struct record_text_style){
        .is_svm = trace->is_svm,
        .xen = trace->xen,
        .cache = &trace->cache,
        .first_tsc = min_u64(trace->first_tsc, trace->current.tsc),
        .tsc_khz = trace->tsc_khz,
    };
}

/* Whether `current` is about what was selected: 1, 0, or a negative errno. */
static int trace_is_about(struct xentrace *trace)
{
    const struct record_text_style style = trace_style(trace);
    bool is_about;
    int r = about_record(trace->about, &trace->current, &style, &is_about);

    return r < 0 ? r : is_about;
}

/* The next item is `current`: 1 if it is a record that is shown, 0 if not; -ENODATA: the end. */
static int trace_read_item(struct xentrace *trace)
{
    int item = merge_next(trace->merge, &trace->current), r;

    if (item == MERGE_END)
        return -ENODATA;
    if (item == MERGE_RECORD) {
        trace->last_tsc = trace->current.tsc;
        trace_note_vendor(trace);
    }
    r = trace->has_state ? trace_update_state(trace, item) : 0;
    if (r < 0)
        return r;
    if (item == MERGE_BLIND)
        return 0;
    if (!trace->has_first)
        trace->first_tsc = trace->current.tsc;
    trace->has_first = true;
    return trace->about ? trace_is_about(trace) : 1;
}

/* The next record is `current`: 1. 0 at the end, or a negative errno. */
static int trace_advance(struct xentrace *trace)
{
    int r = 0;

    if (!trace->has_merge) {
        r = trace_begin(trace);
        if (r < 0)
            return r;
    }
    trace->has_record = false;
    do {
        r = trace_read_item(trace);
    } while (r == 0);
    if (r == -ENODATA)
        return trace_finish(trace);
    if (r < 0)
        return r;
    trace->has_record = true;
    return 1;
}

static const struct event_info *trace_event_info(struct xentrace *trace)
{
    return event_cache_find(&trace->cache, trace->current.header, trace->xen);
}

/* Time since the first record. A hostile trace may have one that is older. */
static uint64_t trace_since_first(const struct xentrace *trace, uint64_t tsc)
{
    return tsc > trace->first_tsc ? tsc - trace->first_tsc : 0;
}

int xentrace_next(struct xentrace *trace, const struct xentrace_record **ret_record)
{
    const struct event_info *info;
    struct xentrace_record *record = &trace->record;
    int r = trace_advance(trace);

    if (r <= 0)
        return r;
    info = trace_event_info(trace);
    *record = (struct xentrace_record){
        .tsc = trace->current.tsc,
        .nsec = xentrace_ticks_to_nsec(trace, trace_since_first(trace, trace->current.tsc)),
        .cpu = trace->current.cpu,
        .event = record_event(trace->current.header),
        .name = info ? info->name : NULL,
        .nr_words = merge_words(&trace->current),
    };
    memcpy(record->words, trace->current.words, (size_t)4 * record->nr_words);
    *ret_record = record;
    return 1;
}

int xentrace_run(struct xentrace *trace, uint64_t max_records)
{
    trace->is_stopped = false;
    for (uint64_t i = 0; max_records == 0 || i < max_records; i++) {
        int r = trace_advance(trace);

        if (r <= 0)
            return r;
        if (trace->is_stopped)
            break;
    }
    return 1;
}

int xentrace_observe(struct xentrace *trace, const struct xentrace_observer *observer)
{
    if (observer && observer->size != sizeof(*observer) && observer->size != OBSERVER_BYTES_2 &&
        observer->size != OBSERVER_BYTES_1)
        return -EINVAL;
    trace->observer = (struct xentrace_observer){0};
    if (observer)
        memcpy(&trace->observer, observer, observer->size);
    return trace_begin_state(trace);
}

int xentrace_select(struct xentrace *trace, uint64_t from_tsc, uint64_t until_tsc)
{
    if (from_tsc >= until_tsc)
        return -EINVAL;
    if (source_is_stream(trace->source))
        return -ESPIPE;
    trace_end(trace);
    trace->part = (struct merge_part){.from = from_tsc, .until = until_tsc};
    return 0;
}

int xentrace_seek(struct xentrace *trace, uint64_t tsc)
{
    return xentrace_select(trace, min_u64(tsc, UINT64_MAX - 1), UINT64_MAX);
}

int xentrace_damage(const struct xentrace *trace, uint64_t *ret_offset)
{
    struct source_damage damage = source_damage(trace->source);

    if (!trace->has_ended || !damage.is_damaged)
        return 0;
    *ret_offset = damage.offset;
    return 1;
}

/* --- Measures. --- */

static void measures_freep(struct measures **measures)
{
    measures_free(*measures);
}

static void json_putp(struct json_object **object)
{
    (void)json_object_put(*object); /* NULL is fine */
}

/* DOC's object `measures` as text. */
static int print_measures(struct json_object *doc, char **ret_json)
{
    struct json_object *object;
    const char *text;

    if (!json_object_object_get_ex(doc, "measures", &object))
        return -ENOMEM;
    text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE);
    *ret_json = text ? strdup(text) : NULL;
    return *ret_json ? 0 : -ENOMEM;
}

int xentrace_measures(struct xentrace *trace, char **ret_json)
{
    _cleanup_(measures_freep) struct measures *measures = NULL;
    _cleanup_(json_putp) struct json_object *doc = json_object_new_object();
    int r = 0;

    if (!doc)
        return -ENOMEM;
    trace_forget_state(trace);
    trace->has_record = false;
    if (!source_is_stream(trace->source) || !trace->has_merge)
        r = trace_begin(trace);
    if (r < 0)
        return r;
    r = measures_new_of(trace->merge, NULL, trace->is_svm, MEASURES_ALL, &measures);
    trace_forget_state(trace); /* the observer has seen none of it */
    trace->has_ended = true;
    if (r < 0)
        return r;
    measures_doc_add(doc, measures);
    return print_measures(doc, ret_json);
}

/* --- A record's fields. --- */

static uint32_t type_of(enum event_type type)
{
    static const uint8_t types[] = {
        [EVENT_NUMBER] = XENTRACE_NUMBER,
        [EVENT_SIGNED] = XENTRACE_SIGNED,
        [EVENT_HEX] = XENTRACE_HEX,
        [EVENT_ADDRESS] = XENTRACE_ADDRESS,
        [EVENT_VCPU] = XENTRACE_VCPU,
        [EVENT_DOMAIN] = XENTRACE_DOMAIN,
        [EVENT_CPU] = XENTRACE_CPU,
        [EVENT_NSEC] = XENTRACE_NSEC,
        [EVENT_USEC] = XENTRACE_USEC,
        [EVENT_MHZ] = XENTRACE_MHZ,
        [EVENT_TICKS] = XENTRACE_TICKS,
        [EVENT_REASON] = XENTRACE_REASON,
        [EVENT_HYPERCALL] = XENTRACE_HYPERCALL,
        [EVENT_SHUTDOWN] = XENTRACE_SHUTDOWN,
        [EVENT_FLAG] = XENTRACE_FLAG,
        [EVENT_ARGUMENT] = XENTRACE_ARGUMENT,
    };

    return type < ARRAY_SIZE(types) ? types[type] : XENTRACE_NUMBER;
}

/* Adds a field as number NR, if the record has it. Returns the number of the next. */
static size_t trace_add_field(struct xentrace *trace, size_t nr, const struct event_field *of)
{
    struct xentrace_field *field = &trace->fields[nr];
    uint64_t value;

    if (!event_field_value(of, trace->current.words, merge_words(&trace->current), &value))
        return nr;
    *field = (struct xentrace_field){
        .name = of->name, .type = type_of(of->type), .bits = of->width, .value = value};
    if (of->type == EVENT_REASON)
        field->text = exit_reason_name(trace->is_svm, (uint32_t)value, trace->reasons[nr]);
    else if (of->type == EVENT_HYPERCALL)
        field->text = event_hypercall_name(value);
    else if (of->type == EVENT_SHUTDOWN)
        field->text = event_shutdown_name(value);
    return nr + 1;
}

static size_t trace_add_words(struct xentrace *trace)
{
    static const char *const names[XENTRACE_WORDS_MAX] = {"word0", "word1", "word2", "word3",
                                                          "word4", "word5", "word6"};
    size_t nr = merge_words(&trace->current);

    for (size_t i = 0; i < nr; i++)
        trace->fields[i] = (struct xentrace_field){
            .name = names[i],
            .type = XENTRACE_HEX,
            .bits = 32,
            .value = merge_word(&trace->current, (unsigned int)i),
        };
    return nr;
}

size_t xentrace_fields(struct xentrace *trace, const struct xentrace_field **ret_fields)
{
    const struct event_info *info = trace->has_record ? trace_event_info(trace) : NULL;
    size_t nr = 0;

    *ret_fields = trace->fields;
    if (!trace->has_record)
        return 0;
    if (!info)
        return trace_add_words(trace);
    for (const struct event_field *field = info->fields; field->name && nr < FIELDS_MAX; field++)
        nr = trace_add_field(trace, nr, field);
    return nr;
}

const struct xentrace_field *xentrace_field(struct xentrace *trace, const char *name)
{
    const struct xentrace_field *fields;
    size_t nr = xentrace_fields(trace, &fields);

    for (size_t i = 0; i < nr; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

typedef size_t (*text_fn)(char text[static RECORD_TEXT_MAX], const struct merge_record *record,
                          const struct record_text_style *style);

static const char *trace_text(struct xentrace *trace, text_fn fn)
{
    struct merge_record record = trace->current;
    const struct record_text_style style = trace_style(trace);
    size_t length;

    if (!trace->has_record)
        return "";
    length = fn(trace->text, &record, &style);
    trace->text[length - 1] = '\0'; /* the newline */
    return trace->text;
}

const char *xentrace_text(struct xentrace *trace)
{
    return trace_text(trace, record_text);
}

const char *xentrace_json(struct xentrace *trace)
{
    return trace_text(trace, record_json);
}

/* --- Time. --- */

uint64_t xentrace_tsc_khz(const struct xentrace *trace)
{
    return trace->tsc_khz;
}

int xentrace_tsc_khz_is_assumed(const struct xentrace *trace)
{
    return trace->khz_is_assumed;
}

uint64_t xentrace_first_tsc(const struct xentrace *trace)
{
    return trace->first_tsc;
}

uint64_t xentrace_realtime_nsec(const struct xentrace *trace, uint64_t tsc)
{
    return sidecar_realtime_nsec(trace->sidecar, tsc);
}

int xentrace_find_realtime(const struct xentrace *trace, uint64_t realtime_nsec, uint64_t *ret_tsc)
{
    return sidecar_find_tsc(trace->sidecar, realtime_nsec, ret_tsc) ? 0 : -ENODATA;
}

/* A * B / C, at most UINT64_MAX. */
static uint64_t multiply_divide(uint64_t a, uint64_t b, uint64_t c)
{
    unsigned __int128 result;

    if (a <= UINT64_MAX / b)
        return a * b / c;
    result = (unsigned __int128)a * b / c;
    return result > UINT64_MAX ? UINT64_MAX : (uint64_t)result;
}

uint64_t xentrace_ticks_to_nsec(const struct xentrace *trace, uint64_t ticks)
{
    return multiply_divide(ticks, 1000000, trace->tsc_khz);
}

uint64_t xentrace_nsec_to_ticks(const struct xentrace *trace, uint64_t nsec)
{
    return multiply_divide(nsec, trace->tsc_khz, 1000000);
}

/* --- Facts. --- */

const char *xentrace_hostname(const struct xentrace *trace)
{
    return sidecar_hostname(trace->sidecar);
}

const char *xentrace_boot_id(const struct xentrace *trace)
{
    return sidecar_boot_id(trace->sidecar);
}

const char *xentrace_scheduler(const struct xentrace *trace)
{
    return sidecar_scheduler(trace->sidecar);
}

const char *xentrace_xen_version(const struct xentrace *trace)
{
    return sidecar_xen_version(trace->sidecar);
}

const char *xentrace_reason(const struct xentrace *trace)
{
    return sidecar_reason(trace->sidecar);
}

const char *xentrace_cpu_vendor(const struct xentrace *trace)
{
    switch (sidecar_vendor(trace->sidecar)) {
    case SIDECAR_VENDOR_INTEL:
        return "intel";
    case SIDECAR_VENDOR_AMD:
        return "amd";
    case SIDECAR_VENDOR_UNKNOWN:
        break;
    }
    return NULL;
}

uint64_t xentrace_complete_from_tsc(const struct xentrace *trace)
{
    return sidecar_complete_from_tsc(trace->sidecar);
}

const struct xentrace_domain *xentrace_domain(struct xentrace *trace, size_t i)
{
    struct sidecar_domain domain;

    if (!sidecar_domain_at(trace->sidecar, i, &domain))
        return NULL;
    trace->domain = (struct xentrace_domain){
        .domid = domain.domid,
        .name = domain.name,
        .uuid = domain.uuid,
        .first_seen_nsec = domain.first_nsec,
        .last_seen_nsec = domain.last_nsec,
    };
    return &trace->domain;
}

static uint64_t realtime_or_last(const struct xentrace *trace, uint64_t tsc)
{
    return tsc > 0 ? sidecar_realtime_nsec(trace->sidecar, tsc) : 0;
}

const char *xentrace_domain_name(const struct xentrace *trace, uint32_t domid, uint64_t tsc)
{
    return sidecar_domain_name(trace->sidecar, domid, realtime_or_last(trace, tsc));
}

const char *xentrace_domain_label(const struct xentrace *trace, uint32_t domid, uint64_t tsc)
{
    return sidecar_domain_label(trace->sidecar, domid, realtime_or_last(trace, tsc));
}

const char *xentrace_domain_uuid(const struct xentrace *trace, uint32_t domid, uint64_t tsc)
{
    return sidecar_domain_uuid(trace->sidecar, domid, realtime_or_last(trace, tsc));
}

int xentrace_find_domain(const struct xentrace *trace, const char *name, uint32_t *ret_domid)
{
    return sidecar_find_domain(trace->sidecar, name, ret_domid) ? 0 : -ENOENT;
}

/* --- Open. --- */

struct xentrace *xentrace_close(struct xentrace *trace)
{
    if (!trace)
        return NULL;
    trace_end(trace);
    trace_forget_state(trace);
    about_free(trace->about);
    if (!trace->is_borrowed) {
        source_free(trace->source);
        sidecar_free(trace->sidecar);
    }
    free(trace);
    return NULL;
}

static void xentrace_closep(struct xentrace **trace)
{
    xentrace_close(*trace);
}

/* The time of the first record, from the first rounds. -EBADMSG: there is no window. */
static int trace_find_first(struct xentrace *trace)
{
    struct merge merge;
    int r;

    if (source_is_stream(trace->source))
        return 0;
    r = merge_init(&merge, trace->source, (struct merge_part){.until = 1});
    if (r == 0 && merge_streams(&merge) == 0 && source_damage(trace->source).is_damaged)
        r = -EBADMSG;
    trace->has_first = merge.nr_heap > 0;
    if (trace->has_first)
        trace->first_tsc = merge.heap[0]->now;
    merge_done(&merge);
    return r;
}

/* The facts of the sidecar that decide how records are decoded. */
static void trace_note_sidecar(struct xentrace *trace)
{
    trace->is_svm = sidecar_vendor(trace->sidecar) == SIDECAR_VENDOR_AMD;
    if (sidecar_xen_version(trace->sidecar))
        trace->xen = event_xen_parse(sidecar_xen_version(trace->sidecar));
}

/* Takes SOURCE. PATH may be NULL. */
static int trace_new(struct source *source, const char *path,
                     const struct xentrace_options *options, struct xentrace **ret_trace)
{
    _cleanup_(xentrace_closep) struct xentrace *trace = calloc(1, sizeof(*trace));
    _cleanup_free_ char *beside = NULL;
    const char *sidecar = options ? options->sidecar : NULL;
    int r;

    if (!trace) {
        source_free(source);
        return -ENOMEM;
    }
    trace->source = source;
    trace->merge = &trace->own_merge;
    trace->part = MERGE_ALL;
    if (!sidecar && path) {
        sidecar = beside = sidecar_path_of(path);
        if (!beside)
            return -ENOMEM;
    }
    r = sidecar_new(sidecar, &trace->sidecar);
    if (r < 0)
        return r;
    trace_note_sidecar(trace);
    trace->tsc_khz =
        options && options->tsc_khz ? options->tsc_khz : sidecar_tsc_khz(trace->sidecar);
    trace->khz_is_assumed = trace->tsc_khz == 0;
    if (trace->khz_is_assumed)
        trace->tsc_khz = ASSUMED_KHZ;
    r = trace_find_first(trace);
    if (r < 0)
        return r;
    *ret_trace = TAKE_PTR(trace);
    return 0;
}

static bool options_are_known(const struct xentrace_options *options)
{
    return !options || options->size == sizeof(*options);
}

static int open_fd(int fd, const char *path, const struct xentrace_options *options,
                   struct xentrace **ret_trace)
{
    _cleanup_fd_ int owned = fd;
    struct source *source;
    struct stat status;
    int r;

    if (!options_are_known(options))
        return -EINVAL;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    r = source_new_fd(fd_take(&owned), &source);
    return r < 0 ? r : trace_new(source, path, options, ret_trace);
}

int xentrace_open_fd(int fd, const struct xentrace_options *options, struct xentrace **ret_trace)
{
    return open_fd(fd, NULL, options, ret_trace);
}

int xentrace_open(const char *path, const struct xentrace_options *options,
                  struct xentrace **ret_trace)
{
    int fd = trace_open(path);

    return fd < 0 ? fd : open_fd(fd, path, options, ret_trace);
}

int xentrace_open_memory(const void *data, size_t bytes, const struct xentrace_options *options,
                         struct xentrace **ret_trace)
{
    struct source *source;
    int r;

    if (!options_are_known(options))
        return -EINVAL;
    r = source_new_memory(data, bytes, &source);
    return r < 0 ? r : trace_new(source, NULL, options, ret_trace);
}

int xentrace_borrow(const struct xentrace_borrow *from, struct xentrace **ret_trace)
{
    _cleanup_(xentrace_closep) struct xentrace *trace = calloc(1, sizeof(*trace));
    int r;

    if (!trace)
        return -ENOMEM;
    trace->is_borrowed = true;
    trace->source = from->source;
    trace->sidecar = from->sidecar;
    trace->merge = from->merge;
    trace->has_merge = true;
    trace->subjects = from->subjects;
    trace->tsc_khz = from->tsc_khz;
    trace->khz_is_assumed = from->khz_is_assumed;
    trace->first_tsc = from->first_tsc;
    trace->has_first = from->first_tsc > 0;
    trace_note_sidecar(trace);
    r = from->subjects ? about_new(from->subjects, &trace->about) : 0;
    if (r < 0)
        return r;
    *ret_trace = TAKE_PTR(trace);
    return 0;
}
