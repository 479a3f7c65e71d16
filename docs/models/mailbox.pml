/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models collector/mailbox.c, and the two ways in which its reader waits: the main thread makes the
 * eventfd quiet (receive() of collector/collector.c), the collector never reads it, and has an event
 * of its multishot poll for every increment (loop_once()).
 *
 * A message has two halves, which are stored and loaded one after the other.
 *
 * BREAK 1: the index is published before the message is stored.
 * BREAK 2: the slot is released before the message is loaded.
 * BREAK 3: the main thread makes the eventfd quiet after its last look, not before it.
 * BREAK 4: the reader is woken before the message is put.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define SLOTS    2
#define MESSAGES 5

byte first[SLOTS], second[SLOTS];
byte written, read_up_to;
byte eventfd; /* counter */
byte events;  /* of the multishot poll */
bool is_main; /* the reader is the main thread, else the collector */

inline wake()
{
    d_step {
        eventfd++;
        events++;
    }
}

active proctype writer()
{
    byte n = 0, batch;

    do
    :: n < MESSAGES ->
#if BREAK == 4
        wake();
#endif
        batch = n;
        do
        :: n < MESSAGES && (n == batch || n == batch + 1) ->
            /* The protocol between the threads rules out a full mailbox. */
            (written - read_up_to < SLOTS);
#if BREAK == 1
            written++;
            first[(written - 1) % SLOTS] = n + 1;
            second[(written - 1) % SLOTS] = n + 1;
#else
            first[written % SLOTS] = n + 1;
            second[written % SLOTS] = n + 1;
            written++;
#endif
            n++;
        :: n > batch -> break
        od
#if BREAK != 4
        wake();
#endif
    :: else -> break
    od
}

byte received;

/* Receives one message, if there is one. */
inline receive()
{
    is_received = false;
    if
    :: read_up_to == written -> skip
    :: else ->
#if BREAK == 2
        read_up_to++;
        one = first[(read_up_to - 1) % SLOTS];
        other = second[(read_up_to - 1) % SLOTS];
#else
        one = first[read_up_to % SLOTS];
        other = second[read_up_to % SLOTS];
        read_up_to++;
#endif
        received++;
        assert(one == received && other == received); /* whole, in order, once */
        is_received = true;
    fi
}

active proctype reader()
{
    byte one, other;
    bool is_received;

    if
    :: is_main = true
    :: is_main = false
    fi
    do
    :: received == MESSAGES -> break
    :: received < MESSAGES && is_main && eventfd > 0 -> /* poll(2) returns */
        do
        :: receive();
            if
            :: is_received -> skip
            :: else ->
#if BREAK == 3
                eventfd = 0;
                break
#else
                eventfd = 0;
                receive();
                if
                :: is_received -> skip
                :: else -> break
                fi
#endif
            fi
        od
    :: received < MESSAGES && !is_main && events > 0 -> /* the completion is taken first */
        events = 0;
        do
        :: receive();
            if
            :: is_received -> skip
            :: else -> break
            fi
        od
    od
}
