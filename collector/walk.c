// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sinks differ in their filters, not in the records: one pass over a piece, the survey, proves the
 * framing, reads the losses, and counts the records of each kind, for all sinks. A filter lets a
 * kind pass or not, so the counts show how much of the piece passes each of them. If all records
 * pass, the piece is copied at once or is already in place; if none passes, nothing is done. Only
 * if some records pass, each one is examined. For the first such sink, this is done together with
 * the survey, because loading a header costs more than anything else here.
 */

#include "collector/walk.h"

#include <string.h>

#include "common/record.h"
#include "common/util.h"

#define PADDING_MAX_BYTES 32u /* a wrap_buffer record without a TSC: 4 + 7 * 4 */
#define SUBCLASSES        16u

const struct walk_filter walk_everything = {
    .passes = {[0 ... EVENT_CLASSES - 1] = UINT16_MAX},
};

void walk_filter_init(struct walk_filter *filter, const struct event_set *set)
{
    *filter = (struct walk_filter){0};
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        for (uint32_t subclass = 0; subclass < SUBCLASSES; subclass++)
            if (event_set_has(set, 1u << (TRC_CLS_SHIFT + i) | subclass << TRC_SUBCLS_SHIFT))
                filter->passes[i] |= (uint16_t)(1u << subclass);
}

static uint32_t classes_of(uint32_t header)
{
    return record_event(header) >> TRC_CLS_SHIFT;
}

static unsigned int subclass_of(uint32_t header)
{
    return header >> TRC_SUBCLS_SHIFT & (SUBCLASSES - 1);
}

/* Of several, which a record can have. */
static unsigned int lowest_class(uint32_t header)
{
    return (unsigned int)__builtin_ctz(classes_of(header));
}

static bool filter_passes(const struct walk_filter *filter, uint32_t header)
{
    uint32_t passes = 0;

    for (uint32_t classes = classes_of(header); classes; classes &= classes - 1)
        passes |= filter->passes[__builtin_ctz(classes)];
    return passes >> subclass_of(header) & 1;
}

/* Xen makes no record without a class: where one seems to be, the bytes are no records. */
static bool has_class(uint32_t header)
{
    return classes_of(header) != 0;
}

/*
 * The class of a usual event, by its class bits: nearly all have one, which is not TRC_GEN's. The
 * kind of a usual record is its class and subclass. 0: not usual.
 */
static const uint8_t usual_class[1u << EVENT_CLASSES] = {
    [1u << 1] = 1, [1u << 2] = 2, [1u << 3] = 3, [1u << 4] = 4,   [1u << 5] = 5,   [1u << 6] = 6,
    [1u << 7] = 7, [1u << 8] = 8, [1u << 9] = 9, [1u << 10] = 10, [1u << 11] = 11,
};

static bool is_usual(uint32_t header)
{
    return usual_class[classes_of(header)] > 0;
}

/* Filler and reports of losses pass every filter, and are not counted as records. */
static bool is_for_all(uint32_t header)
{
    return record_is_wrap(header) || record_is_lost(header);
}

static uint32_t load_word(const uint8_t *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

static void note_tsc(struct walk_result *result, uint64_t tsc)
{
    if (result->first_tsc == 0)
        result->first_tsc = tsc;
    result->last_tsc = tsc;
}

static void note_lost(struct walk_result *result, const uint8_t *p)
{
    struct lost_record lost;

    memcpy(&lost, p, sizeof(lost));
    result->lost += lost.count;
    if (result->lost_first_tsc == 0)
        result->lost_first_tsc = (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0];
    result->lost_last_tsc = record_tsc(p);
}

/* The content of a piece, independent of filters. */
struct survey {
    struct walk_result result;                 /* but for kept_bytes and records */
    uint32_t kinds[EVENT_CLASSES][SUBCLASSES]; /* usual records */
    uint32_t classes;                          /* a bit for each class that has some */
    bool has_for_all;                          /* see is_for_all() */
    bool has_unusual;                          /* other records that are not usual */
};

/* The records of a piece that pass a filter. */
struct selection {
    const struct walk_filter *filter;
    uint8_t *kept;
    /*
     * Adds the figures that the survey does not have: kept_bytes, the TSCs, and the counts of
     * unusual records.
     */
    struct walk_result *result;
    uint64_t *class_records;
};

static void survey_record(struct survey *survey, const uint8_t *p, uint32_t header)
{
    if (is_for_all(header)) {
        survey->has_for_all = true;
        if (record_is_lost(header))
            note_lost(&survey->result, p);
        return;
    }
    if (is_usual(header)) {
        survey->kinds[lowest_class(header)][subclass_of(header)]++;
        survey->classes |= classes_of(header);
    } else {
        survey->has_unusual = true;
    }
    if (record_has_tsc(header))
        note_tsc(&survey->result, record_tsc(p));
}

/* The place where the record is kept may overlap P. */
static void select_record(struct selection *selection, const uint8_t *p, uint32_t header)
{
    struct walk_result *result = selection->result;
    uint32_t length = record_bytes(header);

    if (!is_for_all(header)) {
        if (!filter_passes(selection->filter, header))
            return;
        if (!is_usual(header)) {
            selection->class_records[lowest_class(header)]++;
            result->records++;
        }
        if (record_has_tsc(header))
            note_tsc(result, record_tsc(p));
    }
    if (selection->kept)
        memmove(selection->kept + result->kept_bytes, p, length);
    result->kept_bytes += length;
}

/*
 * Returns the end of the record at P. If the size is computed from the header, the next header can
 * be loaded only after this one. A branch is predicted, which avoids the wait. Kinds of records
 * follow each other in patterns, so the prediction is usually right: there is a branch for each
 * common size. A jump through a table is rarely predicted where speculation is restricted.
 */
static inline const uint8_t *next_record(const uint8_t *p, uint32_t header)
{
    uint32_t shape = header >> TRACE_EXTRA_SHIFT;

/* The first barrier keeps the comparisons a chain, the second one keeps the branch a branch. */
#define USUAL(size)                                                                                \
    __asm__("" : "+r"(shape));                                                                     \
    if (shape == (8u | ((size)-12) / 4)) { /* with a TSC */                                        \
        p += (size);                                                                               \
        __asm__("" : "+r"(p));                                                                     \
        return p;                                                                                  \
    }
    USUAL(16)
    USUAL(20)
    USUAL(24)
    USUAL(28)
    USUAL(12)
    USUAL(36)
#undef USUAL
    return p + record_bytes(header);
}

/*
 * The fast way past usual records: up to one that is not usual, or that is after LAST. A copy of
 * the largest size needs no loop; the next record overwrites the excess. The branch for those that
 * pass is guessed as well as those for the sizes. SURVEY or SELECTION may be NULL, where it is
 * inlined: that half is left out then.
 */
static inline __attribute__((always_inline)) const uint8_t *pass_usual(const uint8_t *p,
                                                                       const uint8_t *last,
                                                                       struct survey *survey,
                                                                       struct selection *selection)
{
    const struct walk_filter *filter = selection ? selection->filter : NULL;
    uint8_t *to = selection ? selection->kept + selection->result->kept_bytes : NULL;
    const uint8_t *timed = NULL, *kept_timed = NULL;
    uint32_t classes = 0;

    while (p <= last) {
        uint32_t header = load_word(p);
        unsigned int class = usual_class[classes_of(header)];
        const uint8_t *next = next_record(p, header);

        if (class == 0)
            break;
        if (survey) {
            survey->kinds[class][subclass_of(header)]++;
            classes |= classes_of(header);
            timed = record_has_tsc(header) ? p : timed;
        }
        if (selection && filter->passes[class] >> subclass_of(header) & 1) {
            memcpy(to, p, RECORD_MAX_BYTES);
            to += next - p;
            kept_timed = record_has_tsc(header) ? p : kept_timed;
        }
        p = next;
    }
    if (survey)
        survey->classes |= classes;
    if (selection)
        selection->result->kept_bytes = (uint32_t)(to - selection->kept);
    if (timed)
        note_tsc(&survey->result, record_tsc(timed));
    if (kept_timed)
        note_tsc(selection->result, record_tsc(kept_timed));
    return p;
}

/* The fast way notes no first TSC. */
static bool has_begun(const struct walk_result *result)
{
    return result->first_tsc != 0;
}

/* Surveys the piece, selects from it, or both. Returns how many bytes of whole records it has. */
static inline __attribute__((always_inline)) uint32_t pass_records(const uint8_t *piece,
                                                                   uint32_t bytes,
                                                                   struct survey *survey,
                                                                   struct selection *selection)
{
    bool is_fast =
        bytes >= RECORD_MAX_BYTES && (!selection || (selection->kept && selection->kept != piece));
    uint32_t offset = 0;

    while (bytes - offset >= RECORD_MIN_BYTES) {
        const uint8_t *p = piece + offset;
        uint32_t header = load_word(p);

        if (!has_class(header) || record_bytes(header) > bytes - offset)
            break;
        if (survey)
            survey_record(survey, p, header);
        if (selection)
            select_record(selection, p, header);
        p += record_bytes(header);
        if (is_fast && (!survey || has_begun(&survey->result)) &&
            (!selection || has_begun(selection->result)))
            p = pass_usual(p, piece + bytes - RECORD_MAX_BYTES, survey, selection);
        offset = (uint32_t)(p - piece);
    }
    return offset;
}

/* Adds what a piece holds to what came before it. */
static void add_result(struct walk_result *sum, const struct walk_result *next)
{
    sum->consumed_bytes += next->consumed_bytes;
    sum->kept_bytes += next->kept_bytes;
    sum->records += next->records;
    sum->lost += next->lost;
    if (!sum->first_tsc)
        sum->first_tsc = next->first_tsc;
    if (next->last_tsc)
        sum->last_tsc = next->last_tsc;
    if (!sum->lost_first_tsc)
        sum->lost_first_tsc = next->lost_first_tsc;
    if (next->lost_last_tsc)
        sum->lost_last_tsc = next->lost_last_tsc;
    sum->broken = next->broken;
}

/* Counts the usual records that pass. Returns how much of the piece does. */
static enum walk_passing count_kinds(const struct survey *survey, const struct walk_filter *filter,
                                     uint64_t *class_records, uint64_t *records)
{
    bool some = survey->has_for_all || survey->has_unusual;
    bool all = !survey->has_unusual;

    for (uint32_t classes = survey->classes; classes; classes &= classes - 1) {
        unsigned int i = (unsigned int)__builtin_ctz(classes);
        const uint32_t *kinds = survey->kinds[i];
        uint64_t sum = 0, passing = 0;

        for (unsigned int subclass = 0; subclass < SUBCLASSES; subclass++) {
            sum += kinds[subclass];
            passing += filter->passes[i] >> subclass & 1 ? kinds[subclass] : 0;
        }
        class_records[i] += passing;
        *records += passing;
        some = some || passing > 0;
        all = all && passing == sum;
    }
    return all ? WALK_ALL : some ? WALK_SOME : WALK_NONE;
}

/* Where the part's records of this piece go. */
static uint8_t *place_of(const struct walk_part *part)
{
    return part->kept ? part->kept + part->result.kept_bytes : NULL;
}

static struct selection selection_of(struct walk_part *part, struct walk_result *result)
{
    return (struct selection){
        .filter = part->filter,
        .kept = place_of(part),
        .result = result,
        .class_records = part->class_records,
    };
}

/* The part to select for with the survey: the first that some of the last piece was for. */
static struct walk_part *find_selecting(struct walk_part *const *parts, unsigned int nr_parts,
                                        const uint8_t *piece)
{
    for (unsigned int i = 0; i < nr_parts; i++)
        if (parts[i]->passing == WALK_SOME && parts[i]->kept && place_of(parts[i]) != piece)
            return parts[i];
    return NULL;
}

/* Enters the piece into its part. SELECTED: as it was selected already, or NULL. */
static void enter_piece(struct walk_part *part, const uint8_t *piece, const struct survey *survey,
                        const struct walk_result *selected)
{
    uint32_t bytes = survey->result.consumed_bytes;
    struct walk_result result = selected ? *selected : (struct walk_result){0};
    struct selection selection = selection_of(part, &result);

    part->passing = count_kinds(survey, part->filter, part->class_records, &result.records);
    if (!selected && part->passing == WALK_SOME)
        (void)pass_records(piece, bytes, NULL, &selection);
    if (!selected && part->passing == WALK_ALL) {
        if (selection.kept && selection.kept != piece)
            memcpy(selection.kept, piece, bytes);
        result.kept_bytes = bytes;
        result.first_tsc = survey->result.first_tsc;
        result.last_tsc = survey->result.last_tsc;
    }
    result.consumed_bytes = bytes;
    result.lost = survey->result.lost;
    result.lost_first_tsc = survey->result.lost_first_tsc;
    result.lost_last_tsc = survey->result.lost_last_tsc;
    result.broken = survey->result.broken;
    add_result(&part->result, &result);
}

static bool is_broken(const uint8_t *piece, uint32_t passed, uint32_t bytes, bool whole)
{
    if (bytes - passed >= RECORD_MIN_BYTES && !has_class(load_word(piece + passed)))
        return true;
    return whole && passed != bytes;
}

void walk_piece(uint8_t *piece, uint32_t bytes, bool whole, struct walk_part *const *parts,
                unsigned int nr_parts)
{
    struct walk_part *selecting = find_selecting(parts, nr_parts, piece);
    struct walk_part *in_place = NULL;
    struct walk_result selected = {0};
    struct survey survey = {0};
    uint32_t passed;

    if (selecting) {
        struct selection selection = selection_of(selecting, &selected);

        passed = pass_records(piece, bytes, &survey, &selection);
    } else {
        passed = pass_records(piece, bytes, &survey, NULL);
    }
    survey.result.consumed_bytes = passed;
    survey.result.broken = is_broken(piece, passed, bytes, whole);
    for (unsigned int i = 0; i < nr_parts; i++)
        if (parts[i]->kept && place_of(parts[i]) == piece)
            in_place = parts[i];
        else
            enter_piece(parts[i], piece, &survey, parts[i] == selecting ? &selected : NULL);
    if (in_place) /* last, since it may overwrite the piece */
        enter_piece(in_place, piece, &survey, NULL);
}

void walk_window(const uint8_t *window, uint32_t bytes, bool whole,
                 const struct walk_filter *filter, uint8_t *kept,
                 uint64_t class_records[static EVENT_CLASSES], struct walk_result *ret_result)
{
    struct walk_part part = {
        .filter = filter,
        .kept = kept,
        .passing = kept == window ? WALK_ALL : WALK_SOME,
    };
    struct walk_part *parts[] = {&part};

    walk_piece((uint8_t *)(uintptr_t)window, bytes, whole, parts, 1); /* written to if it is KEPT */
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        class_records[i] += part.class_records[i];
    *ret_result = part.result;
}

/* Of a record that has a TSC. */
static bool is_older(const uint8_t *p, uint32_t header, uint64_t tsc, uint64_t losses_tsc)
{
    struct lost_record lost;

    if (record_tsc(p) < tsc)
        return tsc - record_tsc(p) < WALK_FOREIGN_TICKS;
    if (!record_is_lost(header))
        return false;
    memcpy(&lost, p, sizeof(lost));
    return ((uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0]) < losses_tsc;
}

uint32_t walk_pass_older(const uint8_t *window, uint32_t bytes, uint64_t tsc, uint64_t losses_tsc,
                         bool *ret_found)
{
    uint32_t older_bytes = 0;
    uint32_t offset = 0;

    *ret_found = false;
    while (bytes - offset >= RECORD_MIN_BYTES) {
        uint32_t header = load_word(window + offset);
        uint32_t length = record_bytes(header);

        if (!has_class(header) || length > bytes - offset)
            break;
        if (record_is_wrap(header)) {
            offset += length;
            continue;
        }
        if (!record_has_tsc(header)) {
            *ret_found = true; /* unless an older one follows */
        } else if (is_older(window + offset, header, tsc, losses_tsc)) {
            *ret_found = false;
            older_bytes = offset + length;
        } else {
            *ret_found = true;
            break;
        }
        offset += length;
    }
    return older_bytes;
}

void walk_write_padding(uint8_t *destination, uint32_t bytes)
{
    memset(destination, 0, bytes);
    while (bytes > 0) {
        uint32_t length = (uint32_t)min_u64(bytes, PADDING_MAX_BYTES);
        uint32_t extra_words = (length - RECORD_MIN_BYTES) / 4;
        uint32_t header = TRC_TRACE_WRAP_BUFFER | extra_words << TRACE_EXTRA_SHIFT;

        memcpy(destination, &header, sizeof(header));
        destination += length;
        bytes -= length;
    }
}
