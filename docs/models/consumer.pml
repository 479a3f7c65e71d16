/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models how records leave Xen's buffers: __insert_record() of Xen; tbuf_peek(), tbuf_copy(),
 * tbuf_consume() and tbuf_resume() of collector/tbuf.c; visit_take_window() of collector/drain.c;
 * the commit of a window's position (note_move(), commit_now(), ring_resume_cpu()) of
 * collector/ring.c and collector/ring-read.c; account_enter() and account_settle_cpu() of
 * collector/account.c; resume_buffers() of daemon/session/ring-storage.c. The daemon is killed
 * between any two steps, and the next one continues.
 *
 * A record, and a lost_records record, fill one slot. The content of the ring is the number of the
 * next record that it expects: how chunks are committed is commit.pml. Losses that are not reported
 * at the end are losses.pml.
 *
 * BREAK 1: the consumer is published before the records were copied.
 * BREAK 2: the move is noted after the commit.
 * BREAK 3: the account is entered after the commit.
 * BREAK 4: the account's number is changed before its line.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define CPUS    2
#define DATA    2 /* slots of a buffer */
#define RECORDS(cpu) ((cpu) == 0 -> 4 : 1)
#define KILLS   2
#define LOST    32 /* + their number: a lost_records record */
#define NO_CPU  CPUS

/* Xen's. A record of CPU 1 waits from the beginning. */
byte prod[CPUS], cons[CPUS];
byte slot[CPUS * DATA];
byte xen_lost[CPUS]; /* and not reported yet */
bool xen_is_done;    /* it writes no more */

/* The ring's memory, which survives. */
byte ring_next[CPUS] = 1;
byte ring_cons[CPUS];
byte moving_cpu = NO_CPU, moving_from;
bool is_armed;
byte commit_cpu, commit_next, commit_cons;

/* The account's lines, two of each CPU, which survive. */
bool line_of[CPUS];
byte sum[CPUS * 2], added[CPUS * 2], from[CPUS * 2], to[CPUS * 2];

bool is_killed, is_stopped;
bool is_adopting = true; /* the buffers; only then it is killed a second time */
byte kills;

#define DISTANCE(prod, cons) ((prod) >= (cons) -> (prod) - (cons) : (prod) + 2 * DATA - (cons))

/* --- Xen. --- */

proctype xen(byte cpu)
{
    byte n = 0, used;

    do
    :: n < RECORDS(cpu) ->
        n++;
        used = DISTANCE(prod[cpu], cons[cpu]);
        if
        :: used + 1 + (xen_lost[cpu] > 0) > DATA -> xen_lost[cpu]++
        :: else ->
            if
            :: xen_lost[cpu] > 0 ->
                slot[cpu * DATA + prod[cpu] % DATA] = LOST + xen_lost[cpu];
                d_step { prod[cpu] = (prod[cpu] + 1) % (2 * DATA); xen_lost[cpu] = 0 }
            :: else -> skip
            fi;
            slot[cpu * DATA + prod[cpu] % DATA] = n;
            prod[cpu] = (prod[cpu] + 1) % (2 * DATA)
        fi;
        used = 0
    :: else -> break
    od;
    xen_is_done = true
}

#define IS_WAITING(cpu) (prod[cpu] != my_cons[cpu])

/* --- The daemon. --- */

inline enter_account()
{
    line = cpu * 2 + (1 - line_of[cpu]);
    before = sum[cpu * 2 + line_of[cpu]];
#if BREAK == 4
    line_of[cpu] = 1 - line_of[cpu];
#endif
    sum[line] = before + nr_records;
    added[line] = nr_records;
    from[line] = my_cons[cpu];
    to[line] = next_cons;
#if BREAK != 4
    line_of[cpu] = 1 - line_of[cpu];
#endif
    atomic { line = 0; before = 0 }
}

inline note_move()
{
    moving_cpu = NO_CPU;
    moving_from = my_cons[cpu];
    moving_cpu = cpu
}

inline apply_commit()
{
    ring_next[commit_cpu] = commit_next;
    ring_cons[commit_cpu] = commit_cons
}

proctype daemon()
{
    byte my_cons[CPUS];
    byte cpu, bytes, i, value, next_cons, nr_records, expected, line, before;

again:
    {
        /* ring_adopt_state(), resume_buffers(), settle_account() */
        if
        :: is_armed -> apply_commit(); is_armed = false
        :: else -> skip
        fi;
        cpu = 0;
        do
        :: cpu < CPUS ->
            atomic {
                my_cons[cpu] = cons[cpu];
                /* ring_resume_cpu() */
                assert(cons[cpu] == ring_cons[cpu] || (moving_cpu == cpu && moving_from == cons[cpu]))
            };
            if
            :: my_cons[cpu] != ring_cons[cpu] ->
                atomic { cons[cpu] = ring_cons[cpu]; my_cons[cpu] = ring_cons[cpu] }
            :: else -> skip
            fi;
            atomic {
                line = cpu * 2 + line_of[cpu];
                nr_records = sum[line];
                if
                :: from[line] == my_cons[cpu] && to[line] != my_cons[cpu] ->
                    nr_records = nr_records - added[line]
                :: else -> skip
                fi;
                line = cpu * 2 + (1 - line_of[cpu]);
                sum[line] = nr_records;
                added[line] = 0;
                from[line] = my_cons[cpu];
                to[line] = my_cons[cpu]
            };
            atomic {
                line_of[cpu] = 1 - line_of[cpu];
                assert(sum[line] == ring_next[cpu] - 1); /* it has each window that the ring has */
                line = 0;
                nr_records = 0;
                cpu++
            }
        :: else -> break
        od;
        atomic { cpu = 0; is_adopting = false };

        /* Rounds. */
        do
        :: atomic {
                IS_WAITING(0) || IS_WAITING(1) ->
                if
                :: IS_WAITING(0) -> cpu = 0
                :: IS_WAITING(1) -> cpu = 1
                fi;
                if /* the window may be cut */
                :: bytes = DISTANCE(prod[cpu], my_cons[cpu])
                :: bytes = 1
                fi;
                next_cons = (my_cons[cpu] + bytes) % (2 * DATA);
                expected = ring_next[cpu]
            };
#if BREAK == 1
            cons[cpu] = next_cons;
#endif
            do
            :: atomic {
                    i < bytes ->
                    value = slot[cpu * DATA + (my_cons[cpu] + i) % DATA];
                    if
                    :: value > LOST -> expected = expected + (value - LOST)
                    :: else -> assert(value == expected); expected++
                    fi;
                    value = 0;
                    i++
                }
            :: atomic {
                    i == bytes ->
                    nr_records = expected - ring_next[cpu];
                    i = 0;
                    bytes = 0;
                    break
                }
            od;
#if BREAK != 3
            enter_account();
#endif
            atomic { commit_cpu = cpu; commit_next = expected; commit_cons = next_cons };
#if BREAK != 2
            note_move();
#endif
            is_armed = true;
            apply_commit();
            is_armed = false;
#if BREAK == 2
            note_move();
#endif
#if BREAK == 3
            enter_account();
#endif
            atomic {
                cons[cpu] = next_cons; /* tbuf_consume() */
                my_cons[cpu] = next_cons;
                expected = 0;
                next_cons = 0;
                nr_records = 0;
                cpu = 0
            }
        :: xen_is_done && !IS_WAITING(0) && !IS_WAITING(1) -> break
        od;

        do
        :: cpu < CPUS ->
            atomic {
                assert(ring_next[cpu] - 1 + xen_lost[cpu] == RECORDS(cpu));
                assert(sum[cpu * 2 + line_of[cpu]] == ring_next[cpu] - 1);
                cpu++
            }
        :: else -> break
        od;
        is_stopped = true
    } unless { is_killed && !is_stopped };
    if
    :: is_stopped -> skip
    :: else ->
        d_step {
            is_killed = false;
            is_adopting = true;
            cpu = 0; bytes = 0; i = 0; value = 0; next_cons = 0;
            nr_records = 0; expected = 0; line = 0; before = 0;
            my_cons[0] = 0; my_cons[1] = 0
        };
        goto again
    fi
}

proctype killer()
{
    do
    :: atomic { kills < KILLS && !is_killed && !is_stopped && (kills == 0 || is_adopting) ->
            is_killed = true; kills++ }
    :: true -> break
    od
}

init {
    atomic {
        slot[DATA] = 1;
        prod[1] = 1;
        run xen(0);
        run daemon();
        run killer()
    }
}
