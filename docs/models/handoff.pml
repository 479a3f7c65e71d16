/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models collector/handoff.c between the collector (sink_give_queued(), sink_take_back() of
 * collector/sink-handoff.c) and the worker that compresses (packer_run_once() of
 * daemon/output/packer.c). The worker returns nothing until a frame ends: where the slots are full,
 * where the collector is held up, or at the end. The time after which it ends a frame in any case is
 * left out: none of this may depend on it.
 *
 * Items and answers have two halves, which are stored and loaded one after the other.
 *
 * BREAK 1: an item is published before it is stored.
 * BREAK 2: a slot is used again once it was returned, whether or not its answer was read.
 * BREAK 3: a flag that changes does not wake the worker.
 * BREAK 4: an answer is published before it is stored.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define SLOTS 2
#define ITEMS 3
#define END   (ITEMS + 1)

byte item_one[SLOTS], item_two[SLOTS];
byte done_one[SLOTS], done_two[SLOTS];
byte given, returned; /* each written by one thread */
byte taken;           /* the worker's */
byte taken_back;      /* the collector's */
bool is_canceled, is_held_up;
bool eventfd;   /* of the worker */
bool is_poked;  /* the collector */
byte answer[END]; /* what the worker answered, apart from the slots */

#if BREAK == 2
#define IS_FULL (given - returned == SLOTS)
#else
#define IS_FULL (given - taken_back == SLOTS)
#endif

active proctype collector()
{
    byte arrived = 0; /* chunks in the queue, and before */
    byte room;        /* of the grant: chunks that may be under way */
    bool finishes = false, is_end_given = false, must_wake = false, has_failed = false;
    bool is_stuck, wants_turn = true, may_abort;

    if
    :: room = 1
    :: room = SLOTS + 1
    fi;
    if
    :: may_abort = true
    :: may_abort = false
    fi
    do
    :: (is_end_given || has_failed) && taken_back == given -> break
    :: else ->
        if /* what wakes it */
        :: wants_turn -> wants_turn = false
        :: is_poked -> is_poked = false
        :: arrived < ITEMS -> arrived++
        :: arrived == ITEMS && !finishes -> finishes = true
        :: may_abort && !has_failed && !is_end_given -> /* sink_abandon() */
            has_failed = true;
            is_canceled = true;
            must_wake = true
        fi;

        do /* handoff_take_done() */
        :: taken_back == returned -> break
        :: else ->
            assert(done_one[taken_back % SLOTS] == answer[taken_back]);
            assert(done_two[taken_back % SLOTS] == answer[taken_back]);
            taken_back++
        od;

        is_stuck = false;
        do /* sink_give_queued() */
        :: has_failed -> break
        :: !has_failed && given < arrived ->
            if
            :: given - taken_back >= room -> is_stuck = true; break
            :: else -> skip
            fi;
            if
            :: IS_FULL -> break
            :: else -> skip
            fi;
#if BREAK == 1
            given++;
            item_one[(given - 1) % SLOTS] = given;
            item_two[(given - 1) % SLOTS] = given;
#else
            item_one[given % SLOTS] = given + 1;
            item_two[given % SLOTS] = given + 1;
            given++;
#endif
            must_wake = true
        :: !has_failed && given >= arrived ->
            if
            :: finishes && !is_end_given && !IS_FULL ->
                item_one[given % SLOTS] = END;
                item_two[given % SLOTS] = END;
                given++;
                is_end_given = true;
                must_wake = true
            :: else -> skip
            fi;
            break
        od;

        if /* handoff_set_needs() */
        :: is_held_up != is_stuck ->
            is_held_up = is_stuck;
#if BREAK != 3
            must_wake = true
#endif
        :: else -> skip
        fi;

        if /* handoff_wake() */
        :: must_wake -> eventfd = true; must_wake = false
        :: must_wake -> wants_turn = true /* the submission queue is full */
        :: !must_wake -> skip
        fi
    od
}

/* Answers all that it has taken. */
inline return_taken()
{
#if BREAK == 4
    i = returned;
    returned = taken;
#else
    i = returned;
#endif
    do
    :: i < taken ->
        answer[i] = taken;
        done_one[i % SLOTS] = taken;
        done_two[i % SLOTS] = taken;
        i++
    :: else -> break
    od;
    i = 0;
    returned = taken;
    is_poked = true
}

active proctype worker()
{
    byte i, one, other, in_frame = 0;

    do
    :: is_canceled ->
        do
        :: taken < given -> taken++
        :: else -> break
        od;
        in_frame = 0;
        if
        :: taken > returned -> return_taken()
        :: else -> skip
        fi;
end_canceled:
        (eventfd);
        eventfd = false
    :: !is_canceled ->
        if
        :: taken == given -> /* packer_wait() */
            if
            :: in_frame > 0 && is_held_up -> in_frame = 0; return_taken()
            :: else ->
end_idle:
                (eventfd);
                eventfd = false
            fi
        :: else ->
            one = item_one[taken % SLOTS];
            other = item_two[taken % SLOTS];
            assert(one == other && (one == taken + 1 || one == END)); /* whole, in order, once */
            taken++;
            in_frame++;
            if
            :: one == END || taken - returned == SLOTS -> in_frame = 0; return_taken()
            :: else -> skip
            fi
        fi
    od
}
