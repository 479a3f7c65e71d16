/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models collector/extent.c and collector/grower.c: two extents, of the collector, which takes and
 * gives steps, and the grower, which has a budget for both. The main thread removes the first extent
 * at the end, as ring_free() does.
 *
 * BREAK 1: the grower takes an offer back without a compare-and-exchange.
 * BREAK 2: the grower is woken before what is wanted has changed.
 * BREAK 3: a step that goes back does not end the refusals of others.
 * BREAK 4: an extent is removed while a step of it is processed.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define EXTENTS 2
#define STEPS   2 /* of each */
#define BUDGET  2
#define CHANGES 2 /* of what the collector wants */

mtype = {ABSENT, OFFERED, IN_USE, RELEASED};

mtype state[EXTENTS * STEPS] = ABSENT;
bool is_backed[EXTENTS * STEPS]; /* by memory */
byte wanted[EXTENTS];
bool is_refused[EXTENTS];
bool is_removed[EXTENTS];
byte used; /* of the budget */
bool eventfd;
bool is_locked; /* the grower's mutex */
byte busy = EXTENTS;
bool collector_is_done;

#define STATE(extent, step) state[(extent) * STEPS + (step)]

#define IS_ANY(STATE) (state[0] == STATE || state[1] == STATE || state[2] == STATE || \
                       state[3] == STATE)
/* Chooses a step in a state. */
#define CHOOSE(step, STATE) \
    if \
    :: state[0] == STATE -> step = 0 \
    :: state[1] == STATE -> step = 1 \
    :: state[2] == STATE -> step = 2 \
    :: state[3] == STATE -> step = 3 \
    fi

/* --- The collector. --- */

inline want(extent, number)
{
    if
    :: wanted[extent] == number -> skip
    :: else ->
#if BREAK == 2
        eventfd = true;
        is_refused[extent] = false;
        wanted[extent] = number
#else
        is_refused[extent] = false;
        wanted[extent] = number;
        eventfd = true
#endif
    fi
}

#define NR_IN_USE(extent) ((STATE(extent, 0) == IN_USE) + (STATE(extent, 1) == IN_USE))

active proctype collector()
{
    byte extent, n, step, changes = 0;

    do
    :: changes < CHANGES -> /* asks for more, or for what it has */
        changes++;
        atomic {
            if
            :: extent = 0
            :: extent = 1
            fi;
            if
            :: n = STEPS
            :: n = NR_IN_USE(extent)
            fi
        };
        want(extent, n);
        n = 0
    :: atomic { /* extent_take() */
            IS_ANY(OFFERED);
            CHOOSE(step, OFFERED);
            state[step] = IN_USE;
            assert(is_backed[step])
        };
        step = 0
    :: atomic { /* pool_give_step() */
            changes < CHANGES && IS_ANY(IN_USE);
            CHOOSE(step, IN_USE);
            assert(is_backed[step]);
            changes++
        };
        extent = step / STEPS;
        if
        :: want(extent, NR_IN_USE(extent) - 1);
            state[step] = RELEASED;
            eventfd = true
        :: state[step] = RELEASED; /* ring_give_step() */
            eventfd = true;
            want(extent, NR_IN_USE(extent))
        fi;
        step = 0
    :: changes == CHANGES -> break
    od;

    /* In the end it wants all of the second extent, and nothing of the first. */
    want(0, NR_IN_USE(0));
    step = 0;
    do
    :: step < STEPS ->
        if
        :: STATE(0, step) == IN_USE -> STATE(0, step) = RELEASED; eventfd = true
        :: else -> skip
        fi;
        step++
    :: else -> break
    od;
    want(0, 0);
    want(1, STEPS);
    collector_is_done = true
}

/* --- The grower. --- */

byte task, task_grows; /* one that is carried out: a step, or none */
#define NO_TASK (EXTENTS * STEPS)

/* An extent that was removed is not looked at any more. */
inline find_shrink(extent)
{
    limit = wanted[extent];
    kept = 0;
    i = 0;
    do
    :: atomic { i < STEPS -> kept = kept + (STATE(extent, i) == IN_USE); i++ }
    :: atomic { i == STEPS -> i = 0; break }
    od;
    do
    :: atomic { i < STEPS && task == NO_TASK -> seen = STATE(extent, i) };
        atomic {
            if
            :: seen == RELEASED -> task = extent * STEPS + i
            :: seen == OFFERED && kept >= limit ->
                if
#if BREAK == 1
                :: true ->
#else
                :: STATE(extent, i) == OFFERED ->
#endif
                    STATE(extent, i) = RELEASED;
                    task = extent * STEPS + i
#if BREAK != 1
                :: else -> kept++
#endif
                fi
            :: seen == OFFERED && kept < limit -> kept++
            :: else -> skip
            fi;
            i++
        }
    :: atomic { i == STEPS || task != NO_TASK -> i = 0; kept = 0; seen = 0; limit = 0; break }
    od
}

inline find_growth(extent)
{
    absent = STEPS;
    do
    :: atomic {
            i < STEPS ->
            if
            :: STATE(extent, i) == ABSENT -> absent = (absent == STEPS -> i : absent)
            :: else -> kept++
            fi;
            i++
        }
    :: atomic { i == STEPS -> i = 0; break }
    od;
    if
    :: kept >= wanted[extent] -> skip
    :: else ->
        if
        :: absent == STEPS || used + 1 > BUDGET -> is_refused[extent] = true
        :: else -> task = extent * STEPS + absent; task_grows = true
        fi
    fi;
    atomic { kept = 0; absent = 0 }
}

active proctype grower()
{
    byte i, kept, limit, extent, absent;
    mtype seen;

end:
    do
    :: eventfd ->
        eventfd = false;
        atomic { !is_locked -> is_locked = true };
        do
        :: /* find_task() */
            atomic { task = NO_TASK; task_grows = false };
            do
            :: extent < EXTENTS && task == NO_TASK ->
                if
                :: !is_removed[extent] -> find_shrink(extent)
                :: else -> skip
                fi;
                extent++
            :: atomic { extent == EXTENTS || task != NO_TASK -> extent = 0; break }
            od;
            do
            :: extent < EXTENTS && task == NO_TASK ->
                if
                :: !is_removed[extent] && !is_refused[extent] -> find_growth(extent)
                :: else -> skip
                fi;
                extent++
            :: atomic { extent == EXTENTS || task != NO_TASK -> extent = 0; break }
            od;
            if
            :: task == NO_TASK -> break
            :: else -> skip
            fi;
            busy = task / STEPS;
            is_locked = false;
            /* run_task() */
            if
            :: task_grows ->
                assert(!is_backed[task] && state[task] == ABSENT);
                used++;
                assert(used <= BUDGET && !is_removed[busy]);
                is_backed[task] = true;
                state[task] = OFFERED
            :: !task_grows ->
                assert(is_backed[task] && state[task] == RELEASED && !is_removed[busy]);
                is_backed[task] = false;
                used--;
                state[task] = ABSENT
            fi;
            atomic { !is_locked -> is_locked = true };
            busy = EXTENTS;
            if
            :: !task_grows ->
#if BREAK != 3
                d_step { is_refused[0] = false; is_refused[1] = false }
#else
                skip
#endif
            :: else -> skip
            fi
        od;
        is_locked = false
    od
}

/* --- The main thread. --- */

/* The second extent has all that it wanted: the budget suffices for it alone. */
inline check_growth()
{
    assert(STATE(1, 0) == OFFERED || STATE(1, 0) == IN_USE);
    assert(STATE(1, 1) == OFFERED || STATE(1, 1) == IN_USE)
}

active proctype main()
{
    bool waits;

    if
    :: waits = true
    :: waits = false
    fi;
    if
    :: waits -> timeout; check_growth() /* nothing but the collector has woken the grower */
    :: !waits -> collector_is_done
    fi;
    atomic { !is_locked -> is_locked = true };
#if BREAK != 4
    do /* pthread_cond_wait() */
    :: busy == 0 -> is_locked = false; atomic { !is_locked && busy != 0 -> is_locked = true }
    :: else -> break
    od;
#endif
    is_removed[0] = true;
    /* Its memory is unmapped: it does not count any more. */
    d_step {
        used = used - is_backed[0] - is_backed[1];
        is_backed[0] = false;
        is_backed[1] = false;
        is_refused[0] = false;
        is_refused[1] = false
    };
    is_locked = false;
    eventfd = true;
    timeout;
    check_growth()
}
