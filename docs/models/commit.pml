/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models how a ring's memory changes, store by store, and how the next daemon takes it over:
 * ring_fill(), drop_head(), prepare_commit(), commit_now(), ring_apply_commit(), ring_commit_drop(),
 * ring_pad_chunk() and ring_close_chunk() of collector/ring.c; finish_commit(), adopt_chunk(),
 * sort_chunks() and settle_ledger() of collector/ring-adopt.c. The daemon is killed between any two
 * stores, also while it takes the ring over.
 *
 * A window holds one record and fills one unit. A chunk has two units, and so has a page: a chunk
 * with one window is padded when it is closed. Of the CPUs there is one.
 *
 * BREAK 1: a commit that was carried out stays armed while the next one is prepared.
 * BREAK 2: the header covers the padding before the padding is written.
 * BREAK 3: an evicted chunk keeps its number until it is filled again.
 * BREAK 4: a window is published without a commit.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define CHUNKS     3
#define UNITS      2 /* of a chunk */
#define MAX_LISTED 1
#define RECORDS    4
#define KILLS      2
#define PADDING    200
#define NO_CHUNK   CHUNKS

/* The ring's memory, which survives. */
byte seq[CHUNKS], fill[CHUNKS], last_window[CHUNKS]; /* struct ring_chunk */
byte count[CHUNKS];
byte unit[CHUNKS * UNITS];   /* a record, or padding */
byte length[CHUNKS * UNITS]; /* of the window that begins there, as its header says */
byte produced, dropped, cons;
bool is_armed;
byte commit_chunk, commit_seq, commit_fill, commit_last, commit_count;
byte commit_produced, commit_dropped, commit_cons;

/* The truth. */
byte evicted_to; /* the newest record in a chunk that was evicted */
bool was_dropped[RECORDS + 1];

bool is_killed, is_stopped;
bool is_adopting; /* the ring; only then it is killed a second time */

/* --- Check. --- */

inline count_record(record)
{
    found = 0;
    n = 0;
    do
    :: n < CHUNKS * UNITS ->
        found = found + (seq[n / UNITS] != 0 && n % UNITS < fill[n / UNITS] && unit[n] == record);
        n++
    :: else -> break
    od;
    n = 0
}

/* What a ring that is taken over must be. */
inline check_ring()
{
    d_step {
        record = 1;
        present = 0;
        do
        :: record <= RECORDS ->
            count_record(record);
            if
            :: record <= evicted_to || record > cons || was_dropped[record] -> assert(found == 0)
            :: else -> assert(found == 1)
            fi;
            present = present + found;
            record++
        :: else -> break
        od;
        record = 0;
        lowest = 0;
        highest = 0;
        nr_numbers = 0;
        i = 0;
        do
        :: i < CHUNKS ->
            if
            :: seq[i] != 0 ->
                nr_numbers++;
                lowest = (lowest == 0 || seq[i] < lowest -> seq[i] : lowest);
                highest = (seq[i] > highest -> seq[i] : highest);
                assert(fill[i] == UNITS);
                assert(length[i * UNITS] == 2 || unit[i * UNITS + 1] != PADDING);
                assert(length[i * UNITS] == 1 || unit[i * UNITS + 1] == PADDING);
                assert(count[i] == 1 + (unit[i * UNITS + 1] != PADDING));
                assert(present >= count[i])
            :: else -> /* nor does what is in a chunk without a number */
                count[i] = 0; fill[i] = 0; last_window[i] = 0;
                unit[i * UNITS] = 0; unit[i * UNITS + 1] = 0;
                length[i * UNITS] = 0; length[i * UNITS + 1] = 0
            fi;
            i++
        :: else -> break
        od;
        assert(nr_numbers == 0 || highest - lowest + 1 == nr_numbers); /* contiguous */
        assert(produced == cons && produced >= dropped + present);
        next_seq = highest + 1;
        i = 0; found = 0; present = 0; lowest = 0; highest = 0; nr_numbers = 0
    }
}

/* --- The daemon. --- */

inline apply_commit()
{
    produced = commit_produced;
    dropped = commit_dropped;
    cons = commit_cons;
    if
    :: commit_chunk == NO_CHUNK -> skip
    :: else ->
        count[commit_chunk] = commit_count;
        seq[commit_chunk] = commit_seq;
        fill[commit_chunk] = commit_fill;
        last_window[commit_chunk] = commit_last
    fi
}

/* What a commit says does not matter any more, nor is it kept apart as another state. */
inline disarm()
{
    d_step {
        is_armed = false;
        commit_chunk = 0; commit_seq = 0; commit_fill = 0; commit_last = 0; commit_count = 0;
        commit_produced = 0; commit_dropped = 0; commit_cons = 0
    }
}

inline commit_now()
{
#if BREAK == 4
    apply_commit()
#elif BREAK == 1
    is_armed = true;
    apply_commit()
#else
    is_armed = true;
    apply_commit();
    disarm()
#endif
}

/* Pads a chunk whose fill is one unit. */
inline pad(chunk)
{
#if BREAK == 2
    length[chunk * UNITS] = 2;
    unit[chunk * UNITS + 1] = PADDING;
#else
    unit[chunk * UNITS + 1] = PADDING;
    length[chunk * UNITS] = 2;
#endif
    fill[chunk] = 2
}

/* A chunk has no number any more: what it holds is evicted. */
inline evict(chunk)
{
    evicted_to = unit[chunk * UNITS + (unit[chunk * UNITS + 1] != PADDING)];
    seq[chunk] = 0
}

/* The oldest in the list leaves it. */
inline drop_head()
{
    d_step {
        i = 0;
        head = NO_CHUNK;
        do
        :: i < CHUNKS ->
            if
            :: is_listed[i] && (head == NO_CHUNK || my_seq[i] < my_seq[head]) -> head = i
            :: else -> skip
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        is_listed[head] = false;
        nr_listed--;
#if BREAK != 3
        evict(head);
#endif
        head = 0
    }
}

inline take_free()
{
    atomic {
        if
        :: !is_listed[0] -> filling = 0
        :: !is_listed[1] -> filling = 1
        :: !is_listed[2] -> filling = 2
        fi;
        my_seq[filling] = next_seq;
        next_seq++;
        my_fill = 0
    };
    count[filling] = 0;
#if BREAK == 3
    if
    :: seq[filling] != 0 -> d_step { evict(filling) }
    :: else -> skip
    fi;
#endif
    seq[filling] = 0;
    fill[filling] = 0
}

byte my_seq[CHUNKS]; /* struct chunk of the daemon that runs: found again, or reset */
bool is_listed[CHUNKS];

proctype daemon()
{
    byte filling, my_fill, next_seq, nr_listed, head, i, n, end;
    byte record, found, present, lowest, highest, nr_numbers;

again:
    {
        /* ring_adopt_state() */
        if
        :: is_armed -> apply_commit(); disarm()
        :: else -> skip
        fi;
        i = 0;
        do
        :: i < CHUNKS ->
            if
            :: seq[i] != 0 ->
                end = last_window[i] + length[i * UNITS + last_window[i]];
                assert(end == fill[i] || end == fill[i] + fill[i] % UNITS); /* else refused */
                fill[i] = end;
                if
                :: end == 1 -> pad(i)
                :: else -> skip
                fi;
                atomic { end = 0; is_listed[i] = true; my_seq[i] = seq[i]; nr_listed++ }
            :: else -> skip
            fi;
            i++
        :: else -> break
        od;
        skip;
        check_ring();
        is_adopting = false;

        do
        :: cons < RECORDS ->
            record = cons + 1;
            if
            :: filling == NO_CHUNK ->
                do
                :: nr_listed > MAX_LISTED -> drop_head()
                :: else -> break
                od;
                take_free()
            :: else -> skip
            fi;
            if
            :: true -> /* a window */
                length[filling * UNITS + my_fill] = 1;
                unit[filling * UNITS + my_fill] = record;
                was_dropped[record] = false;
                commit_chunk = filling;
                commit_seq = my_seq[filling];
                commit_fill = my_fill + 1;
                commit_last = my_fill;
                commit_count = count[filling] + 1;
                commit_produced = produced + 1;
                commit_dropped = dropped
            :: my_fill == 0 && record == 3 -> /* no chunk was free */
                was_dropped[record] = true;
                commit_chunk = NO_CHUNK;
                commit_produced = produced + 1;
                commit_dropped = dropped + 1
            fi;
            commit_cons = record;
            commit_now();
            my_fill = my_fill + !was_dropped[record];
            record = 0;
            if /* ring_close_chunk() */
            :: my_fill == 0 || my_fill == 1 -> skip
            :: my_fill > 0 ->
                if
                :: my_fill == 1 -> pad(filling)
                :: else -> skip
                fi;
                atomic {
                    is_listed[filling] = true;
                    nr_listed++;
                    filling = NO_CHUNK;
                    my_fill = 0
                }
            fi
        :: else -> break
        od;
        is_stopped = true
    } unless { is_killed && !is_stopped };
    if
    :: is_stopped && !is_killed -> skip
    :: else ->
        d_step {
            /* Also after the last record: the next daemon looks at what is left. */
            is_killed = false;
            is_stopped = false;
            is_adopting = true;
            filling = NO_CHUNK;
            my_fill = 0; next_seq = 0; nr_listed = 0; head = 0; i = 0; n = 0; end = 0; record = 0;
            my_seq[0] = 0; my_seq[1] = 0; my_seq[2] = 0;
            is_listed[0] = false; is_listed[1] = false; is_listed[2] = false
        };
        goto again
    fi
}

active proctype killer()
{
    byte kills;

    atomic { is_killed = true; run daemon() } /* which begins with nothing */
    do
    :: atomic { kills < KILLS && !is_killed && (kills == 0 || is_adopting) -> is_killed = true; kills++ }
    :: true -> break
    od
}
