/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models how a ring's borrowed chunks move home, and what the next daemon makes of it: move_content(),
 * ring_move_home() and ring_give_step() of collector/ring-borrow.c, run_task() of collector/grower.c
 * for the step that goes back, and adopt_steps(), sort_chunks() and finish_moves() of
 * collector/ring-adopt.c. The daemon, and with it the grower, is killed between any two stores, also
 * while it takes the ring over.
 *
 * A chunk's content is two words, as its state is without its number. The states of all chunks are in
 * memory of the ring's own; the content of borrowed ones is in a step, and is zero when the step has
 * gone back.
 *
 * BREAK 1: the copy gets its number before its content.
 * BREAK 2: the original loses its number before the copy gets it.
 * BREAK 3: a step goes back before the originals in it have lost their numbers.
 * BREAK 4: the next daemon does not end moves that were under way.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define HOME   3 /* chunks of the ring's own */
#define STEPS  2 /* of one chunk each */
#define CHUNKS (HOME + STEPS)
#define LISTED 4 /* numbers in the ring, from 1 on, when it begins */
#define KILLS  2
#define NONE   CHUNKS

/* Memory that survives. */
byte seq[CHUNKS], state_one[CHUNKS], state_two[CHUNKS];
byte one[CHUNKS], two[CHUNKS];
bool is_there[CHUNKS]; /* its step is backed by memory */

byte oldest = 1; /* number in the ring: the truth */
byte newest = LISTED;

/* Of the daemon that runs. */
bool is_borrowed[CHUNKS], is_free[CHUNKS];
bool is_given[CHUNKS]; /* to the grower */
bool is_killed, is_stopped;
bool is_adopting; /* the ring; only then it is killed a second time */

/* Each number is there once, whole. */
inline check_ring()
{
    d_step {
        number = oldest;
        do
        :: number <= newest ->
            i = 0;
            found = 0;
            do
            :: i < CHUNKS ->
                if
                :: seq[i] == number ->
                    found++;
                    assert(is_there[i] && one[i] == number && two[i] == number);
                    assert(state_one[i] == number && state_two[i] == number)
                :: else -> skip
                fi;
                i++
            :: else -> break
            od;
            assert(found == 1);
            number++
        :: else -> break
        od;
        number = 0;
        i = 0;
        found = 0
    }
}

#define CAN_MOVE_FROM(chunk) (is_borrowed[chunk] && seq[chunk] != 0)
#define CAN_MOVE_TO(chunk)   (is_free[chunk])

inline give_step(step)
{
    is_free[step] = false;
    is_borrowed[step] = false;
    is_given[step] = true
}

proctype daemon()
{
    byte from, to, number, i, found;

again:
    {
        /* adopt_steps() */
        i = HOME;
        do
        :: i < CHUNKS ->
            if
            :: seq[i] == 0 -> d_step { one[i] = 0; two[i] = 0; is_there[i] = false }
            :: else -> d_step { is_there[i] = true; is_borrowed[i] = true }
            fi;
            i++
        :: else -> break
        od;
        /* sort_chunks(), finish_moves() */
        number = 1;
        do
        :: number <= LISTED + 1 ->
            from = NONE;
            to = NONE;
            i = 0;
            d_step {
                do
                :: i < CHUNKS ->
                    if
                    :: seq[i] == number && i < HOME -> to = i
                    :: seq[i] == number && i >= HOME -> from = i
                    :: else -> skip
                    fi;
                    i++
                :: else -> break
                od;
                i = 0
            };
#if BREAK != 4
            if
            :: from != NONE && to != NONE ->
                assert(state_one[from] == state_one[to] && state_two[from] == state_two[to]);
                seq[from] = 0
            :: else -> skip
            fi;
#endif
            number++
        :: else -> break
        od;
        atomic { number = 0; from = NONE; to = NONE };
        check_ring();
        atomic {
            i = 0;
            do
            :: i < CHUNKS ->
                is_free[i] = seq[i] == 0 && (i < HOME || is_borrowed[i]);
                i++
            :: else -> break
            od;
            i = 0;
            is_adopting = false
        };

        do
        /* ring_move_home() */
        :: (CAN_MOVE_FROM(3) || CAN_MOVE_FROM(4)) &&
                (CAN_MOVE_TO(0) || CAN_MOVE_TO(1) || CAN_MOVE_TO(2)) ->
            atomic {
                from = (CAN_MOVE_FROM(4) && (!CAN_MOVE_FROM(3) || seq[4] < seq[3]) -> 4 : 3);
                to = (CAN_MOVE_TO(0) -> 0 : (CAN_MOVE_TO(1) -> 1 : 2));
                is_free[to] = false
            };
#if BREAK == 1
            seq[to] = seq[from];
#endif
#if BREAK == 3
            give_step(from);
#endif
            one[to] = one[from];
            two[to] = two[from];
            state_one[to] = state_one[from];
            state_two[to] = state_two[from];
#if BREAK == 2
            number = seq[from];
            seq[from] = 0;
            seq[to] = number;
            number = 0;
#elif BREAK != 1
            seq[to] = seq[from];
            seq[from] = 0;
#else
            seq[from] = 0;
#endif
#if BREAK != 3
            atomic { is_free[from] = true; from = NONE; to = NONE };
            check_ring()
#else
            atomic { from = NONE; to = NONE }
#endif
        /* ring_evict(), as long as newer ones are left */
        :: oldest < newest - 1 && oldest < 3 ->
            atomic {
                i = 0;
                do
                :: i < CHUNKS ->
                    if
                    :: seq[i] == oldest -> seq[i] = 0; is_free[i] = true
                    :: else -> skip
                    fi;
                    i++
                :: else -> break
                od;
                i = 0;
                oldest++
            }
        /* ... and a new chunk that has its first commit: see commit.pml for its steps */
        :: newest == LISTED && (is_free[0] || is_free[3]) ->
            atomic {
                to = (is_free[0] -> 0 : 3);
                is_free[to] = false;
                number = newest + 1
            };
            one[to] = number;
            two[to] = number;
            d_step {
                state_one[to] = number;
                state_two[to] = number;
                seq[to] = number;
                newest++
            };
            atomic { to = NONE; number = 0 }
        /* ring_give_step() */
        :: is_borrowed[3] && is_free[3] -> give_step(3)
        :: is_borrowed[4] && is_free[4] -> give_step(4)
        :: !is_borrowed[3] && !is_borrowed[4] -> break
        od;
        is_stopped = true
    } unless { is_killed && !is_stopped };
    if
    :: is_stopped && !is_killed -> skip
    :: else ->
        d_step {
            is_killed = false;
            is_stopped = false;
            is_adopting = true;
            is_borrowed[3] = false; is_borrowed[4] = false;
            is_given[3] = false; is_given[4] = false;
            is_free[0] = false; is_free[1] = false; is_free[2] = false;
            is_free[3] = false; is_free[4] = false;
            from = NONE; to = NONE; number = 0; i = 0; found = 0
        };
        goto again
    fi
}

active proctype grower()
{
end:
    do
    :: d_step { is_given[3] -> one[3] = 0; two[3] = 0; is_there[3] = false; is_given[3] = false }
    :: d_step { is_given[4] -> one[4] = 0; two[4] = 0; is_there[4] = false; is_given[4] = false }
    od
}

active proctype killer()
{
    byte kills, i;

    /* Two chunks are borrowed, of which one is older, and one newer, than one at home. */
    d_step {
        seq[3] = 1; seq[0] = 2; seq[4] = 3; seq[1] = 4;
        i = 0;
        do
        :: i < CHUNKS ->
            one[i] = seq[i]; two[i] = seq[i]; state_one[i] = seq[i]; state_two[i] = seq[i];
            is_there[i] = true;
            i++
        :: else -> break
        od;
        i = 0;
        is_killed = true
    };
    run daemon();
    do
    :: atomic { kills < KILLS && !is_killed && (kills == 0 || is_adopting) -> is_killed = true; kills++ }
    :: true -> break
    od
}
