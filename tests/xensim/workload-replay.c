// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `replay`: the records of a real trace, inserted on their CPUs in the order of their TSCs.
 *
 * The file's lost and wrap records are left out: the simulated buffers make their own. What is
 * inserted, and in which order, depends on the file and the options only; how much per tick depends
 * on the clock. A tick that meets tracing switched off stops at that record and goes on with it.
 */

#include "workload.h"

#include <errno.h>
#include <string.h>

#include "tbuf.h"
#include "walk.h"

#include "common/record.h"

struct replay_record {
    uint64_t tsc;
    uint32_t cpu;
    uint32_t words[RECORD_MAX_BYTES / 4];
};

struct replay_state {
    struct replay_record *records;
    size_t count;
    size_t room;
    size_t next;
    uint64_t loop;
    uint64_t first_tsc;
    uint64_t span; /* TSC ticks of one loop */
    uint64_t base; /* what first_tsc is moved to */
    double passed; /* TSC ticks of file time, in this loop */
    double credit_bytes;
};

static int add_record(struct replay_state *st, uint32_t cpu, uint64_t tsc, const uint32_t *words,
                      uint32_t bytes)
{
    struct replay_record *r;

    if (st->count == st->room) {
        size_t room = st->room ? st->room * 2 : 4096;
        struct replay_record *more = realloc(st->records, room * sizeof(*more));

        if (!more)
            return -ENOMEM;
        st->records = more;
        st->room = room;
    }
    r = &st->records[st->count++];
    r->tsc = tsc;
    r->cpu = cpu;
    memcpy(r->words, words, bytes);
    return 0;
}

/* A record without a TSC belongs to the one before it on its CPU. */
static int add_window(struct replay_state *st, const struct walk_window *w, uint64_t *last_tsc)
{
    uint32_t offset = 0, bytes, words[RECORD_MAX_BYTES / 4];
    int r;

    while ((r = walk_record(w, &offset, words, &bytes)) > 0) {
        if (record_has_tsc(words[0]))
            *last_tsc = max_u64(*last_tsc, record_tsc(words));
        if (record_is_wrap(words[0]) || record_is_lost(words[0]))
            continue;
        if (add_record(st, w->cpu, *last_tsc, words, bytes) < 0)
            return -ENOMEM;
    }
    return r;
}

/* By TSC; a stable sort, since a CPU's records stay in their order. */
static void sort_records(struct replay_record *from, struct replay_record *to, size_t count)
{
    size_t half = count / 2, a = 0, b = half;

    if (count < 2)
        return;
    sort_records(from, to, half);
    sort_records(from + half, to, count - half);
    for (size_t i = 0; i < count; i++)
        to[i] = b == count || (a < half && from[a].tsc <= from[b].tsc) ? from[a++] : from[b++];
    memcpy(from, to, count * sizeof(*from));
}

static int sort_and_measure(struct replay_state *st)
{
    struct replay_record *room = calloc(st->count, sizeof(*room));

    if (!room)
        return -ENOMEM;
    sort_records(st->records, room, st->count);
    free(room);
    st->first_tsc = st->records[0].tsc;
    st->span = st->records[st->count - 1].tsc - st->first_tsc;
    st->span += st->span / st->count + 1; /* the pause between two loops */
    return 0;
}

static int load(struct replay_state *st, const char *path, uint32_t nr_cpus)
{
    uint64_t *last_tsc = calloc(SIM_MAX_CPUS, sizeof(*last_tsc));
    struct walk_file file;
    struct walk_window w;
    int r = last_tsc ? walk_open(path, &file) : -ENOMEM;

    if (r < 0) {
        free(last_tsc);
        (void)fprintf(stderr, "xensim: cannot read %s: %s\n", path, strerror(-r));
        return r;
    }
    while ((r = walk_next(&file, &w)) > 0) {
        if (w.cpu >= nr_cpus) {
            (void)fprintf(stderr, "xensim: %s has a CPU %u: it needs --cpus %u\n", path, w.cpu,
                          w.cpu + 1);
            r = -EINVAL;
        } else {
            r = add_window(st, &w, &last_tsc[w.cpu]);
        }
        if (r < 0)
            break;
    }
    walk_close(&file);
    free(last_tsc);
    if (r == -EBADMSG || (r == 0 && st->count == 0))
        (void)fprintf(stderr, "xensim: %s is not a whole trace\n", path);
    if (r == 0)
        r = st->count ? sort_and_measure(st) : -EINVAL;
    return r;
}

static void replay_stop(void *state)
{
    struct replay_state *st = state;

    if (st)
        free(st->records);
    free(st);
}

static int replay_start(struct sim *sim, const struct workload_options *options, void **ret_state)
{
    struct replay_state *st;
    int r;

    if (!options->replay_file) {
        (void)fprintf(stderr, "xensim: --workload replay needs --replay FILE\n");
        return -EINVAL;
    }
    st = calloc(1, sizeof(*st));
    if (!st)
        return -ENOMEM;
    r = load(st, options->replay_file, sim->shared->nr_cpus);
    if (r < 0) {
        replay_stop(st);
        return r;
    }
    *ret_state = st;
    return 0;
}

static uint64_t moved_tsc(const struct replay_state *st, const struct workload_options *options,
                          uint64_t tsc)
{
    uint64_t on = st->loop * st->span;

    switch (options->tsc) {
    case WORKLOAD_TSC_EXACT:
        return tsc + on;
    case WORKLOAD_TSC_MOVED:
        return st->base + (tsc - st->first_tsc) + on;
    case WORKLOAD_TSC_NOW:
        return 0; /* tbuf_insert() asks the clock */
    }
    return 0;
}

static enum tbuf_result insert_next(struct sim *sim, const struct replay_state *st,
                                    const struct workload_options *options)
{
    const struct replay_record *r = &st->records[st->next];
    uint32_t has_tsc = r->words[0] & (uint32_t)TRC_HD_CYCLE_FLAG;
    const struct tbuf_event e = {
        .event = record_event(r->words[0]) | has_tsc,
        .extra_words = TRC_HD_EXTRA(r->words[0]),
        .tsc = moved_tsc(st, options, r->tsc),
        .extra = r->words + (has_tsc ? 3 : 1),
    };
    enum tbuf_result result;

    sim_lock(&sim->shared->cpus[r->cpu].lock);
    result = tbuf_insert(sim, r->cpu, &e);
    sim_unlock(&sim->shared->cpus[r->cpu].lock);
    return result;
}

/* Is the next record's turn within this tick? */
static bool is_due(const struct replay_state *st, const struct workload_options *options)
{
    if (options->rate_max || options->rate_bytes)
        return st->credit_bytes > 0;
    return (double)(st->records[st->next].tsc - st->first_tsc) <= st->passed;
}

static uint64_t replay_produce(struct sim *sim, const struct workload_options *options, void *state,
                               uint64_t nsec, bool *ret_finished)
{
    struct replay_state *st = state;
    uint64_t bytes = 0;

    if (!st->base)
        st->base = sim_tsc();
    st->passed += (double)nsec * sim->shared->cpu_khz / 1e6 * options->replay_speed;
    if (options->rate_max)
        st->credit_bytes = 16384;
    else
        st->credit_bytes += (double)options->rate_bytes * (double)nsec / 1e9;
    while (is_due(st, options)) {
        uint32_t size = record_bytes(st->records[st->next].words[0]);

        if (insert_next(sim, st, options) == TBUF_DISABLED)
            break;
        bytes += size;
        st->credit_bytes -= size;
        if (++st->next < st->count)
            continue;
        st->next = 0;
        st->passed -= (double)st->span;
        if (++st->loop == options->replay_loops) {
            *ret_finished = true;
            break;
        }
    }
    return bytes;
}

const struct workload workload_replay = {
    .name = "replay",
    .start = replay_start,
    .produce = replay_produce,
    .stop = replay_stop,
};
