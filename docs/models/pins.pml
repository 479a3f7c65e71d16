/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models pins: ring_pin(), ring_fill(), ring_evict(), ring_free_limbo() and ring_close_chunk() of
 * collector/ring.c on the collector thread; ring_pin_first(), ring_pin_next(), ring_copy_chunk() and
 * ring_advance_pin() of collector/ring-read.c in two snapshots that are written at the same time.
 *
 * A window holds one record; a chunk holds two windows, or one that is padded when the chunk is
 * closed. What a list of the collector's own does is one step here; what a snapshot may read, and
 * all that a snapshot does, is one step each.
 *
 * BREAK 1: the pin is advanced over a chunk before it was read.
 * BREAK 2: an evicted chunk that is pinned is linked as a free one is.
 * BREAK 3: the last closed chunk leads to the next by its link, not to the pin's view of it.
 * BREAK 4: the length of the view's last window is read from the chunk.
 * BREAK 5: a pin leaves no chunk to new records.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define CHUNKS     3
#define MAX_LISTED 1
#define RECORDS    4
#define PINS       2
#define TAIL       CHUNKS /* the pin's view of the chunk that is being filled */
#define NIL        (CHUNKS + 1)
#define UNPINNED   255

/* Chunks. */
byte seq[CHUNKS], fill[CHUNKS], next[CHUNKS], limbo_next[CHUNKS];
byte record[CHUNKS * 2], length[CHUNKS * 2];

/* The ring. */
byte free_list = 0, nr_free = CHUNKS;
byte head = NIL, tail = NIL, nr_listed;
byte limbo_head = NIL;
byte filling = NIL;
byte next_seq = 1;

/* Pins. */
byte first[PINS] = UNPINNED, last[PINS], pin_chunk[PINS] = NIL;
byte tail_fill[PINS], tail_seq[PINS], tail_of[PINS], tail_length[PINS];
bool is_asked[PINS], is_pinned[PINS];
byte oldest[PINS], newest[PINS]; /* records in the ring at that time: the truth */

byte n_records; /* recorded */

#define PIN_HOLDS(pin, chunk) (first[pin] <= seq[chunk] && seq[chunk] <= last[pin])
/* ring_advance_pin(), but for the end. */
#define ADVANCE(pin, chunk) \
    first[pin] = (chunk == NIL -> first[pin] : (chunk == TAIL -> tail_seq[pin] : seq[chunk]))
#define HOLDS(chunk)          (PIN_HOLDS(0, chunk) || PIN_HOLDS(1, chunk))

inline give(chunk)
{
    next[chunk] = free_list;
    free_list = chunk;
    nr_free++
}

inline evict()
{
    c = head;
    head = next[c];
    nr_listed--;
    tail = (head == NIL -> NIL : tail);
    if
    :: HOLDS(c) ->
#if BREAK == 2
        next[c] = limbo_head;
#endif
        limbo_next[c] = limbo_head;
        limbo_head = c
    :: else -> give(c)
    fi;
    c = 0
}

inline free_limbo()
{
    c = limbo_head;
    limbo_head = NIL;
    do
    :: c != NIL ->
        after = limbo_next[c];
        if
        :: HOLDS(c) -> limbo_next[c] = limbo_head; limbo_head = c
        :: else -> give(c)
        fi;
        c = after
    :: else -> break
    od;
    c = 0;
    after = 0
}

/* The list is never longer than two chunks. */
inline make_room()
{
    has_unpinned = head != NIL && (!HOLDS(head) || !HOLDS(tail));
    do
    :: nr_free == 0 && head != NIL && has_unpinned -> evict()
    :: else -> break
    od;
    has_unpinned = false
}

/* A chunk to fill, in FILLING. */
inline fill_chunk()
{
    d_step {
        do
        :: nr_listed > MAX_LISTED -> evict()
        :: else -> break
        od;
        free_limbo();
        make_room();
        assert(nr_free > 0); /* whatever is pinned */
        filling = free_list;
        free_list = next[filling];
        nr_free--;
        seq[filling] = next_seq;
        next_seq++;
        fill[filling] = 0;
        next[filling] = NIL
    }
}

active proctype collector()
{
    byte c, after, pin;
    bool has_unpinned, has_room;

    /* Free chunks are a list. */
    d_step { next[0] = 1; next[1] = 2; next[2] = NIL };
    do
    :: n_records < RECORDS && filling == NIL -> fill_chunk()
    :: n_records < RECORDS && filling != NIL && fill[filling] < 2 ->
        record[filling * 2 + fill[filling]] = n_records + 1;
        length[filling * 2 + fill[filling]] = 1;
        n_records++;
        fill[filling]++
    :: filling != NIL && fill[filling] > 0 -> /* ring_close_chunk() */
        if
        :: fill[filling] == 1 -> length[filling * 2] = 2
        :: else -> skip
        fi;
        fill[filling] = 2;
        next[filling] = NIL;
        if
        :: tail != NIL -> next[tail] = filling
        :: else -> head = filling
        fi;
        d_step { tail = filling; nr_listed++; filling = NIL }
    :: atomic { /* ring_pin() */
            if
            :: is_asked[0] -> pin = 0
            :: is_asked[1] -> pin = 1
            fi;
            is_asked[pin] = false;
            free_limbo();
            make_room();
#if BREAK == 5
            has_room = true;
#else
            has_room = nr_free > 0;
#endif
            tail_fill[pin] = 0;
            if
            :: filling != NIL && fill[filling] > 0 ->
                tail_fill[pin] = fill[filling];
                tail_seq[pin] = seq[filling];
                tail_of[pin] = filling;
                tail_length[pin] = length[filling * 2 + fill[filling] - 1]
            :: else -> skip
            fi;
            pin_chunk[pin] = (head != NIL -> head : (tail_fill[pin] > 0 -> TAIL : NIL));
            pin_chunk[pin] = (has_room -> pin_chunk[pin] : NIL);
            newest[pin] = n_records;
            if
            :: has_room && head != NIL -> oldest[pin] = record[head * 2]; last[pin] = seq[tail]
            :: has_room && head == NIL && tail_fill[pin] > 0 -> oldest[pin] = record[filling * 2]
            :: else -> oldest[pin] = n_records + 1 /* it is empty, or the pin is refused */
            fi;
            last[pin] = (tail_fill[pin] > 0 -> tail_seq[pin] : last[pin]);
            first[pin] = (pin_chunk[pin] == NIL -> UNPINNED :
                              (pin_chunk[pin] == TAIL -> tail_seq[pin] : seq[head]));
            is_pinned[pin] = true;
            has_room = false;
            pin = 0
        }
    :: n_records == RECORDS && is_pinned[0] && is_pinned[1] -> break
    od
}

proctype snapshot(byte pin)
{
    byte chunk, i, expected, place, following, bytes;

    is_asked[pin] = true;
    atomic { /* MESSAGE_PINNED */
        is_pinned[pin] -> expected = oldest[pin];
        chunk = pin_chunk[pin]
    };
    do
    :: chunk != NIL ->
        atomic { /* Where it goes from there. */
            place = (chunk == TAIL -> tail_of[pin] : chunk);
            if
            :: chunk == TAIL || seq[place] >= last[pin] -> following = NIL
#if BREAK != 3
            :: chunk != TAIL && seq[place] < last[pin] && tail_fill[pin] > 0 &&
                    seq[place] + 1 == tail_seq[pin] -> following = TAIL
#endif
            :: else -> following = next[place]
            fi
        };
#if BREAK == 1
        ADVANCE(pin, following);
#endif
        i = 0;
        do
        :: atomic {
                i < (chunk == TAIL -> tail_fill[pin] : fill[place]) ->
                assert(record[place * 2 + i] == expected); /* as it was, none missing */
                expected++
            };
            atomic {
                bytes = length[place * 2 + i];
                if
                :: chunk == TAIL && i == tail_fill[pin] - 1 ->
#if BREAK != 4
                    bytes = tail_length[pin];
#endif
                    assert(bytes == 1) /* the snapshot pads it itself */
                :: else -> skip
                fi;
                i = i + bytes;
                bytes = 0
            }
        :: else -> break
        od;
        atomic {
#if BREAK != 1
            ADVANCE(pin, following);
#endif
            chunk = following;
            following = 0;
            place = 0;
            i = 0
        }
    :: else -> break
    od;
    first[pin] = UNPINNED;
    assert(expected == newest[pin] + 1)
}

init {
    atomic { run snapshot(0); run snapshot(1) }
}
