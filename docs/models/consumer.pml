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
 * next record that it expects: how chunks are committed is commit.pml.
 *
 * BREAK 1: the consumer is published before the records were copied.
 * BREAK 2: the move is noted after the commit.
 * BREAK 3: the account is entered after the commit.
 * BREAK 4: the producer is loaded before the consumer is published.
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

/* Xen's. */
byte prod[CPUS], cons[CPUS];
byte slot[CPUS * DATA];
byte xen_lost[CPUS]; /* and not reported yet */
byte xen_done;       /* CPUs that write no more */

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
    xen_done++
}

/* --- The daemon. --- */

inline enter_account()
{
    line = cpu * 2 + (1 - line_of[cpu]);
    sum[line] = sum[cpu * 2 + line_of[cpu]] + bytes_records;
    added[line] = bytes_records;
    from[line] = my_cons[cpu];
    to[line] = next_cons;
    line_of[cpu] = 1 - line_of[cpu];
    line = 0
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

/* tbuf_consume() */
inline consume(next)
{
#if BREAK == 4
    seen = prod[cpu];
    cons[cpu] = next;
#else
    cons[cpu] = next;
    seen = prod[cpu];
#endif
    d_step {
        if
        :: DISTANCE(seen, my_cons[cpu]) + 2 > DATA -> unsettled[cpu] = 1 + seen
        :: else ->
            if
            :: unsettled[cpu] > 0 && unsettled[cpu] != 1 + seen -> unsettled[cpu] = 0
            :: else -> skip
            fi
        fi;
        my_cons[cpu] = next;
        seen = 0
    }
}

proctype daemon()
{
    byte my_cons[CPUS], unsettled[CPUS];
    byte cpu, waiting, bytes, i, value, next_cons, bytes_records, expected, line, seen;
    bool was_killed = false; /* a daemon before was */

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
            my_cons[cpu] = cons[cpu];
            unsettled[cpu] = 0;
            /* ring_resume_cpu() */
            assert(cons[cpu] == ring_cons[cpu] || (moving_cpu == cpu && moving_from == cons[cpu]));
            if
            :: my_cons[cpu] != ring_cons[cpu] -> next_cons = ring_cons[cpu]; consume(next_cons)
            :: else -> skip
            fi;
            line = cpu * 2 + line_of[cpu];
            d_step {
                bytes_records = sum[line];
                if
                :: from[line] == my_cons[cpu] && to[line] != my_cons[cpu] ->
                    bytes_records = bytes_records - added[line]
                :: else -> skip
                fi;
                line = cpu * 2 + (1 - line_of[cpu]);
                sum[line] = bytes_records;
                added[line] = 0;
                from[line] = my_cons[cpu];
                to[line] = my_cons[cpu]
            };
            line_of[cpu] = 1 - line_of[cpu];
            assert(sum[line] == ring_next[cpu] - 1); /* it has each window that the ring has */
            d_step { line = 0; bytes_records = 0; next_cons = 0 };
            cpu++
        :: else -> break
        od;
        cpu = 0;

        /* Rounds. */
        do
        :: true ->
            waiting = DISTANCE(prod[cpu], my_cons[cpu]);
            if
            :: waiting == 0 -> skip
            :: else ->
                if /* the window may be cut */
                :: bytes = waiting
                :: waiting > 1 -> bytes = 1
                fi;
                next_cons = (my_cons[cpu] + bytes) % (2 * DATA);
#if BREAK == 1
                cons[cpu] = next_cons;
#endif
                i = 0;
                expected = ring_next[cpu];
                do
                :: i < bytes ->
                    value = slot[cpu * DATA + (my_cons[cpu] + i) % DATA];
                    d_step {
                        if
                        :: value > LOST -> expected = expected + (value - LOST)
                        :: else -> assert(value == expected); expected++
                        fi;
                        value = 0;
                        i++
                    }
                :: else -> break
                od;
                atomic { bytes_records = expected - ring_next[cpu]; i = 0; waiting = 0; bytes = 0 };
#if BREAK != 3
                enter_account();
#endif
                d_step { commit_cpu = cpu; commit_next = expected; commit_cons = next_cons };
#if BREAK == 2
                is_armed = true;
                apply_commit();
                is_armed = false;
                note_move();
#else
                note_move();
                is_armed = true;
                apply_commit();
                is_armed = false;
#endif
#if BREAK == 3
                enter_account();
#endif
                consume(next_cons);
                d_step { expected = 0; next_cons = 0; bytes_records = 0 }
            fi;
            cpu = (cpu + 1) % CPUS
        :: cpu == 0 && xen_done == CPUS && DISTANCE(prod[0], my_cons[0]) == 0 &&
                DISTANCE(prod[1], my_cons[1]) == 0 -> break
        od;

        /* The end: what Xen has dropped is reported, or it is known that some may be missing. */
        do
        :: cpu < CPUS ->
            assert(ring_next[cpu] - 1 + xen_lost[cpu] == RECORDS(cpu));
            assert(sum[cpu * 2 + line_of[cpu]] == ring_next[cpu] - 1);
            assert(xen_lost[cpu] == 0 || was_killed || unsettled[cpu] == 1 + prod[cpu]);
            cpu++
        :: else -> break
        od;
        is_stopped = true
    } unless { is_killed && !is_stopped };
    if
    :: is_stopped -> skip
    :: else ->
        d_step {
            is_killed = false;
            was_killed = true;
            cpu = 0; waiting = 0; bytes = 0; i = 0; value = 0; next_cons = 0;
            bytes_records = 0; expected = 0; line = 0; seen = 0;
            my_cons[0] = 0; my_cons[1] = 0; unsettled[0] = 0; unsettled[1] = 0
        };
        goto again
    fi
}

proctype killer()
{
    do
    :: atomic { kills < KILLS && !is_killed && !is_stopped -> is_killed = true; kills++ }
    :: true -> break
    od
}

init {
    atomic { run xen(0); run xen(1); run daemon(); run killer() }
}
