/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models what Xen drops while a full buffer is emptied: __insert_record() of Xen, tbuf_consume() and
 * tbuf_is_unsettled() of collector/tbuf.c. Xen reports a loss before its next record. If there is
 * none, the daemon must know that something may be missing.
 *
 * A record fills one or two slots, a lost_records record one.
 *
 * BREAK 1: the producer is loaded before the consumer is published.
 * BREAK 2: a buffer in which the largest record does not fit, but the smallest, is not nearly full.
 * BREAK 3: a loss counts as reported with the next window, whatever Xen has written.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define DATA    5 /* slots of the buffer */
#define RECORDS 8
#if BREAK == 2
#define NEED 1
#else
#define NEED 3 /* a lost_records record and the largest record */
#endif
#define DISTANCE(prod, cons) ((prod) >= (cons) -> (prod) - (cons) : (prod) + 2 * DATA - (cons))

byte prod, cons;
byte lost; /* and not reported yet */
bool is_done;

active proctype xen()
{
    byte n = 0, used, size;

    do
    :: n < RECORDS ->
        atomic {
            used = DISTANCE(prod, cons);
            n++;
            if
            :: size = 1
            :: size = 2
            fi
        };
        if
        :: used + size + (lost > 0) > DATA -> lost++
        :: else ->
            if
            :: lost > 0 -> prod = (prod + 1) % (2 * DATA); lost = 0
            :: else -> skip
            fi;
            prod = (prod + size) % (2 * DATA)
        fi
    :: true -> break
    od;
    is_done = true
}

active proctype daemon()
{
    byte bytes, next, seen, unsettled_prod;
    bool is_unsettled;

    do
    :: atomic {
            prod != cons ->
            if /* the window may be cut */
            :: bytes = DISTANCE(prod, cons)
            :: bytes = 1
            fi;
            next = (cons + bytes) % (2 * DATA);
            bytes = DISTANCE(next, cons)
        };
#if BREAK == 1
        seen = prod;
        cons = next;
#else
        cons = next;
        seen = prod;
#endif
        atomic {
            if /* its distance to the consumer of before */
            :: DISTANCE(seen, next) + bytes + NEED > DATA ->
                is_unsettled = true;
                unsettled_prod = seen
#if BREAK == 3
            :: else -> is_unsettled = false
#else
            :: else -> is_unsettled = is_unsettled && seen == unsettled_prod
#endif
            fi;
            bytes = 0;
            next = 0;
            seen = 0
        }
    :: is_done && prod == cons -> break
    od;
    assert(lost == 0 || (is_unsettled && unsettled_prod == prod))
}
