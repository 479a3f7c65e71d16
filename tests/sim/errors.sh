#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Whatever is wrong, with the host, the configuration or what was typed, is told in one line that says
# what to do; Xen's masks, what it traces and all files are then as they were, and the daemon serves on.

. "$(dirname "$0")/lib.sh"

xentrace=/usr/lib/xen-4.17/bin/xentrace

# All that a refused command must leave alone: Xen's state, files with their sizes.
everything() {
    xen_state
    find "$dir" -mindepth 1 \( -name 'log*' -o -name output -o -name errors \) -prune -o \
        \( -type d -printf '%P\n' -o -printf '%P %s %Ts\n' \) | sort
}

refused() { # refused NAME REGEX COMMAND...
    local name=$1 regex=$2 before
    shift 2
    before=$(everything)
    check "$name" "${refuses:-refuses}" "$regex" "$@"
    check "$name: nothing changed" same "$(everything)" "$before"
}

misused() { # misused REGEX ARGUMENT...: a usage error of xentracectl
    local regex=$1
    shift
    refuses=refuses_usage refused "xentracectl $*" "$regex" ctl "$@"
}

mistaken() { # mistaken REGEX ARGUMENT...: an error of what was asked for
    local regex=$1
    shift
    refused "xentracectl $*" "$regex" ctl "$@"
}

run_daemon() { # run_daemon OPTION...: one that is to give up by itself
    timeout 10 "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" "$@"
}

no_start() { # no_start NAME REGEX OPTION...
    local name=$1 regex=$2
    shift 2
    refused "$name" "$regex" run_daemon "$@"
}

# The statuses that the unit does not restart after.
never_starts() { refuses=refuses_host no_start "$@"; }
refuses_host() { refuses_with 69 "$@"; }
misconfigured() { refuses=refuses_config no_start "$@"; }
refuses_config() { refuses_with 78 "$@"; }

works() { # works NAME: a capture comes out complete
    ctl record --quiet -T 0.3 "$1" && "$xensim" verify "$dir/state/$1.xentrace"
}

# --- The host. ---

fault() { # fault FAULT REGEX: the daemon does not start on such a host
    "$xensim" fault "$1" on
    "${3:-no_start}" "$1" "$2"
    "$xensim" fault "$1" off
}

# Xen denies what it allowed when the daemon started.
denied() { # denied FAULT REGEX
    "$xensim" fault "$1" on
    mistaken "^xentracectl: Nothing was started: $2" start "denied-$1"
    mistaken "^xentracectl: Nothing was started: $2" start -o "$dir/denied.xentrace"
    "$xensim" fault "$1" off
}

bad_host() {
    fault no-xen "not a Xen host.*Boot" never_starts
    fault not-root "No access to /dev/xen/privcmd: run xentraced as root"
    fault not-dom0 "not the control domain.*there" never_starts
    fault version-mismatch "do not match the hypervisor.*install"
    fault flask "Flask policy"
    fault no-tbuf "without trace buffers" never_starts
    fault no-evtchn "/dev/xen/evtchn does not exist: load the module"
    fault virq-busy "Another domain is already tracing this host.*Nothing was changed; end it"

    daemon_start || exit 1
    denied flask "Xen denies access.*Flask"
    denied not-dom0 "This is not the control domain"
    denied map-denied "Xen did not map its trace buffers"
    check "once all is allowed a capture works" works allowed
    denied flask "Xen denies access.*Flask" # this time with the buffers mapped
    check "and again" works again
}

# --- Another consumer. ---

beside_xentrace() {
    "$xentrace" -e 0x0002f000 "$dir/by-xentrace" >/dev/null 2>&1 &
    local pid=$!
    wait_until 10 is_bound
    check "beside xentrace" refuses "xentrace \(PID $pid\) is already tracing this host.*end it first" \
        run_daemon
    check "beside xentrace: no file" test ! -e "$dir/state" -a ! -e "$dir/control"
    check "beside xentrace: its masks are as they were" grep -q '"event_mask":"0x0002f000"' \
        <(xen_state)
    sleep 0.3
    kill -INT "$pid"
    check "xentrace ends undisturbed" wait "$pid"
    check "and its file is complete" "$xensim" verify --warn-rounds "$dir/by-xentrace"
}
is_bound() { "$xensim" stat | tr -d ' \n' | grep '"virq_bound":true' >/dev/null; }

# As a service it waits, with one line in the log, and starts when the other has ended.
beside_xentrace_as_service() {
    "$xentrace" -e 0x0002f000 "$dir/by-xentrace" >/dev/null 2>&1 &
    local pid=$! manager
    wait_until 10 is_bound
    : >"$dir/log"
    "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" -- \
        "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>"$dir/log" &
    manager=$!
    check "as a service: it waits, and says for whom" wait_until 20 grep -Eq \
        "Waiting\. xentrace \(PID $pid\) is already tracing this host.*end it first\. xentraced starts within 5 s" "$dir/log"
    check "as a service: so does its status" wait_until 10 grep -q ' status Waiting. xentrace' "$dir/service.log"
    check "as a service: so does xentracectl" fails \
        "it is not running, or is waiting for xentrace \(PID [0-9]+\).*systemctl start" ctl status
    sleep 6 # it tries again
    check "as a service: it is the same process" same "$(grep -c ' started ' "$dir/service.log")" 1
    check "as a service: one line in the log" same "$(wc -l <"$dir/log")" 1
    kill -INT "$pid"
    check "as a service: xentrace ends undisturbed" wait "$pid"
    check "as a service: it starts by itself" wait_until 30 reports ctl status
    check "as a service: a capture works" works after
    kill -TERM "$manager"
    check "as a service: it ends well" wait "$manager"
    # And one that is ended while it waits.
    "$xentrace" -e 0x0002f000 "$dir/by-xentrace-2" >/dev/null 2>&1 &
    pid=$!
    wait_until 10 is_bound
    : >"$dir/log"
    "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" -- \
        "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>"$dir/log" &
    manager=$!
    check "as a service: it waits again" wait_until 20 grep -q "Waiting\." "$dir/log"
    kill -TERM "$manager"
    check "as a service: it ends at once" wait_until 3 has_ended "$manager"
    kill -INT "$pid"
    wait "$pid"
}
has_ended() { ! kill -0 "$1" 2>/dev/null; }

beside_xentraced() {
    daemon_start || exit 1
    ctl start first >/dev/null
    no_start_beside "the same socket"
    no_start_beside "another socket" --socket "$dir/other" --state-dir "$dir/other-state"
    check "the first one's capture ends well" ctl stop first
    check "and is complete" "$xensim" verify "$dir/state/first.xentrace"
}
no_start_beside() {
    local name="beside xentraced, $1" before
    shift
    before=$(xen_state)
    check "$name" refuses "xentraced \(PID $daemon\) is already tracing this host" run_daemon "$@"
    check "$name: nothing changed" same "$(xen_state)" "$before"
    check "$name: no file" test ! -e "$dir/other" -a ! -e "$dir/other-state"
}

# --- No memory for the buffers. ---

no_memory() {
    daemon_start || exit 1
    mistaken "Xen has no memory for trace buffers.*--buffer-pages" start
    mistaken "Xen has no memory for trace buffers" start -S 1000 -o "$dir/f.xentrace"
    check "fewer may be tried" ctl start -S 16 smaller
    check "and are there" ctl stop smaller
    check "the file is complete" "$xensim" verify "$dir/state/smaller.xentrace"
}

# --- Configuration. ---

bad_line() { # bad_line LINE REGEX TEXT
    printf '%b' "$3" >"$dir/bad.conf"
    misconfigured "configuration: $3" "$dir/bad.conf, line $1: .*$2" --config "$dir/bad.conf"
}

bad_configuration() {
    mkdir "$dir/state"
    bad_line 2 "no key 'pol' in \[daemon\]; did you mean 'pool'" '[daemon]\npol = 64M\n'
    bad_line 3 "'reserve' belongs in \[capture\]" '[daemon]\npool = 64M\nreserve = 1G\n'
    bad_line 2 "'much' is not a size" '[daemon]\npool = much\n'
    bad_line 2 "'1K' is not a size from 2M" '[daemon]\npool = 1K\n'
    bad_line 2 "'-1' is neither 'auto' nor a size" '[capture]\nreserve = -1\n'
    bad_line 2 "nor a number of pages" '[capture]\nbuffer-pages = 0\n'
    bad_line 4 "nor a number of pages" '# a comment\n\n[capture]\nbuffer-pages = 65536\n'
    bad_line 2 "not of the form 'key = value'" '[daemon]\npool\n'
    bad_line 1 "'pool' belongs in \[daemon\]" 'pool = 64M\n'
    bad_line 1 "not of the form 'key = value'" '[daemon\n'
    misconfigured "a configuration that is not there" "Cannot read.*none.conf: No such file" \
        --config "$dir/none.conf"
    misconfigured "a configuration that is a directory" "Cannot read the configuration $dir: " --config "$dir"
    printf '[daemon]\ncontrol-group = no-such-group\n' >"$dir/bad.conf"
    misconfigured "a group that is not there" "group does not exist.*groupadd" --config "$dir/bad.conf"
    printf '[daemon]\npool = 64M ; %0500d\n' 0 >"$dir/bad.conf"
    echo "[capture]" >>"$dir/bad.conf"
    touch "$dir/file"
    no_start "a state directory that is a file" "state directory $dir/file: .*--state-dir" \
        --state-dir "$dir/file"
    no_start "a socket where none can be" "Cannot open the runtime directory /proc/none/: .*--socket" \
        --socket /proc/none/control
    no_start "a socket with a long path" "is too long" --socket "$dir/$(printf '%0200d' 0)"
    no_start "a socket whose place a file has" "Cannot listen at $dir/file: .*--socket" --socket "$dir/file"
    refuses=refuses_usage refused "xentraced --nonsense" "nonsense" "$build/xentraced" --nonsense
    refuses=refuses_usage refused "xentraced now" "'now'; see xentraced --help" "$build/xentraced" now
}

# A socket on which somebody listens is not taken from him.
foreign_socket() {
    mkdir "$dir/state"
    python3 -c 'if True:
        import socket, sys, time
        s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(9); time.sleep(60)' \
        "$dir/control" &
    wait_until 5 test -S "$dir/control"
    sleep 0.2
    no_start "somebody else's socket" "Another xentraced is already listening at $dir/control"
    kill $!
}

# --- What is typed. ---

# A daemon that does not run is exit status 3 of `status`, as with systemctl.
refuses_status() { refuses_with 3 "$@"; }
nobody_there() {
    local command refuses
    for command in start record "stop any" "status" list; do
        refuses=refuses
        [ "$command" != status ] || refuses=refuses_status
        mistaken "Cannot reach xentraced at $dir/none: it is not running.*systemctl start" \
            --socket "$dir/none" $command
    done
    refuses=refuses
    mistaken "Cannot reach xentraced" --socket "$dir/none" record -o "$dir/out.xentrace"
}

bad_values() {
    mistaken "CPU.*7" start -c 8
    mistaken "CPU.*7" start -c 0,2-99
    mistaken "CPU.*7" record -c 0x100
    misused "CPU" start -c 0x0
    misused "CPU" start -c ""
    misused "CPU" start -c 5-2
    misused "CPU" start -c zero
    misused "did you mean \"?'?sched" start -e shced
    misused "did you mean \"?'?hvm-entryexit" start -e sched,hvm-entryexti
    misused "selects nothing" start -e 0x0
    misused "selects nothing" start -e 0x00020000
    misused "empty item" start -e ""
    misused "event mask" start -e 0xfffffffff
    misused "not a time" start -T soon
    misused "not a time" start -T -1
    misused "greater than 0" record -T 0
    misused "greater than 0" start -s 0
    misused "not a size" start -r lots
    misused "not a size" start --max-size 1X
    misused "greater than 0" start --max-size 0
    misused "number of pages" start -S 0
    misused "number of pages" start -S 16k
    misused "number of pages" start -S 99999999999
    misused "needs a value" start -e
    misused "no option --evnts; did you mean --events" start --evnts sched
    misused "no option -Z" start -Z
    misused "There is no command.*start|did you mean.*start" strat
    misused "one argument" start a b
    misused "not a valid name" start a/b
    misused "not a valid name" start ""
    misused "needs -o" start --force
    mistaken "poll interval" start -s 2h
    mistaken "65535" start -S 65536
    misused "M needs a value" start -M
    misused "64 is a number of bytes, less than a page.*write 64M" record -M64
    misused "not a size" start -M much
    misused "greater than 0" start -M 0
    mistaken "A ring of 1M is too small: use at least 2M" start -M 1M
    mistaken "more than dom0 can spare.*is free.*memory-share=.*50 %" start -M 900T
    misused "max-age needs -M" start --max-age 10
}

bad_names() {
    local name
    for name in ../up . .hidden "two words" $'two\nlines' "$(printf 'n%064d' 0)" 'a*' "naïve"; do
        case $name in
            */*) misused "not a valid name" start "$name" ;;
            *) mistaken "is not a valid name: use 1 to 64 letters" start "$name" ;;
        esac
    done
    touch "$dir/state/taken.xentrace"
    mistaken "taken.xentrace exists.*another name" start taken
    echo "mine" >"$dir/state/half.json"
    mistaken "half.json exists.*another name" start half
    mistaken "no capture 'unknown'.*list" stop unknown
    mistaken "no capture 'unknown'.*list" status unknown
    mistaken "No capture is running" stop
}

bad_outputs() {
    echo "precious" >"$dir/exists.xentrace"
    mistaken "exists and was not changed.*--force" start -o "$dir/exists.xentrace"
    mistaken "exists" record -o "$dir/exists.xentrace"
    touch "$dir/other.json"
    mistaken "other.json exists" start -o "$dir/other.xentrace"
    mistaken "Cannot write to $dir/none/f: No such file" start -o "$dir/none/f"
    mistaken "directory" start -o "$dir"
    mistaken "directory" start -o "$dir/"
    mistaken "Cannot create /proc/f" start -o /proc/f
    mkfifo "$dir/pipe"
    mistaken "has no reader" start -o "$dir/pipe"
    misused "needs the name" start -o ""
    mistaken "There is no space for .*Free some space, lower --reserve" start -r 1000000000
    mistaken "There is no space" start -r 1000000000 -o "$dir/new.xentrace"
    mistaken "There is no space" start -r 1000000000 --force -o "$dir/exists.xentrace"
    check "what --force was to replace is as it was" same "$(cat "$dir/exists.xentrace")" precious
    mistaken "allocated with 16 pages per CPU.*Omit --buffer-pages" start -S 17
}

same_name_twice() {
    check "one runs" ctl start one
    # What it writes changes all the time: refused() would tell.
    check "the same one is refused" refuses "A capture named 'one' is already running" ctl start one
    check "and with a file of its own" refuses "A capture named 'one' is already running" \
        ctl start -o "$dir/two.xentrace" one
    check "no file is left of them" test ! -e "$dir/two.xentrace" -a ! -e "$dir/two.json"
    check "the first one ends well" ctl stop one
    check "and is complete" "$xensim" verify "$dir/state/one.xentrace"
    mistaken "one.* exists.*Choose another name" start one
}

bad_requests() {
    nobody_there
    daemon_start || exit 1
    bad_values
    bad_names
    bad_outputs
    check "after all that a capture works" works works
    bad_values # now with the buffers mapped
    same_name_twice
    check "the daemon is the one it was" kill -0 "$daemon"
}

# Booted with tracing on and a mask of its own: a change of either would be seen.
booted=(--preset-pages 16 --preset-mask 0x0002f000 --rate 1M)

main() {
    # In a PID namespace of its own, where no other test's daemon can be taken for the one in the way.
    if [ $$ -ne 1 ] && unshare --pid --fork --mount-proc true 2>/dev/null; then
        exec unshare --pid --fork --kill-child --mount-proc "$script"
    fi
    sim "${booted[@]}" -- bad_host
    sim_clean
    sim "${booted[@]}" -- bad_configuration
    sim_clean
    sim "${booted[@]}" -- foreign_socket
    sim_clean
    sim "${booted[@]}" -- bad_requests
    sim_clean
    sim --pages 16 --rate 1M -- no_memory
    sim_clean
    if [ -x "$xentrace" ]; then
        sim --rate 1M -- beside_xentrace
        sim_clean
        sim --rate 1M -- beside_xentrace_as_service
        sim_clean
    else
        echo "# $xentrace is not installed: nothing beside it"
    fi
    sim --rate 1M -- beside_xentraced
    sim_clean
}

dispatch "$@"
