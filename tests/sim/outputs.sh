#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Outputs that attack: a pipe that nobody reads holds no pin for longer than 5 s; whatever is no
# output is refused, whatever it is called; a FUSE file system that does not answer holds up nobody;
# what others have planted is not opened. And what a snapshot of a time in between holds, and a bundle.
#
#   tests/sim/outputs.sh [PART]...     only these parts

. "$(dirname "$0")/lib.sh"

client() { python3 "$(dirname "$script")/outputs.py" "$dir/control" "$@"; }
descriptors() { find "/proc/$daemon/fd" -mindepth 1 | wc -l; }
has_no_more_descriptors() { [ "$(descriptors)" -le "$1" ]; }
prompt() { # prompt COMMAND...: within a second
    timeout 1 "$@"
}
status_is_prompt() { prompt env "$build/xentracectl" status; }

# --- Readers. ---

unread() {
    local hoarder before=$SECONDS
    recorder_start memory=16M || exit 1
    wait_until 20 recorder_has $((4 * 1024 * 1024))
    client hoard 8 >"$dir/hoard" 2>&1 &
    hoarder=$!
    wait_until 5 grep -q asked "$dir/hoard"
    sleep 0.5
    check "unread: all pins are taken" refuses "are being written already" ctl snapshot early
    check "unread: they are free again" wait_until 9 ctl snapshot later
    echo "# $((SECONDS - before)) s"
    check "unread: each was told why" wait "$hoarder"
    check "unread: the snapshot is complete" whole "$dir/state/later.xentrace"
    check "unread: nothing was lost" same "$(recorder_status && number "$dir/recorder" ledger lost)" 0

    mkfifo "$dir/fifo"
    read_fifo "$dir/fifo" "$dir/slow" 120000
    check "unread: a slow reader has its time" ctl snapshot --max-size 1M -o "$dir/fifo"
    wait "$reader"
    check "unread: and all of it" whole "$dir/slow"
}

# --- Descriptors. ---

kinds() {
    local before
    recorder_start memory=16M || exit 1
    ctl snapshot first >/dev/null
    before=$(descriptors)
    check "kinds: whatever is no output is refused" client wrong-kinds
    check "kinds: no descriptor is left of them" wait_until 10 has_no_more_descriptors "$before"
    check "kinds: nothing was started" same "$(ctl list --running --names)" flight-recorder
    check "kinds: files that are opened for appending" client append "$dir"
    check "kinds: the trace is complete" whole "$dir/append.xentrace"
    check "kinds: the null device is an output" ctl snapshot -o /dev/null
}

# Groups of our own, seen by nobody else: see main().
fuse() {
    local server=() before who
    configure '[daemon]' 'control-group = tracers'
    recorder_start memory=16M || exit 1
    chmod 0711 "$dir"
    chmod 0666 "$dir/control"
    for who in operator root; do
        mkdir "$dir/fuse-$who"
        env -u LD_PRELOAD python3 "$(dirname "$script")/outputs.py" fuse "$dir/fuse-$who" "$dir/hang-$who" \
            >"$dir/served-$who" 2>&1 &
        server+=($!)
        if ! wait_until 5 grep -q mounted "$dir/served-$who"; then
            skip "fuse" "$(cat "$dir/served-$who")"
            return
        fi
        before=$(descriptors)
        env -u LD_PRELOAD python3 "$(dirname "$script")/outputs.py" "$dir/control" pass-fuse \
            "$dir/fuse-$who" "$dir/hang-$who" "$who" >"$dir/passed-$who" 2>&1 &
        wait_until 5 grep -q opened "$dir/passed-$who"
        touch "$dir/hang-$who"
        sleep 0.5
        check "fuse: $who: status is answered at once" status_is_prompt
        wait_until 30 has_lines "$dir/passed-$who" 7
        check "fuse: $who: status is answered at once, after that" status_is_prompt
        "fuse_answers_$who" "$dir/passed-$who"
        check "fuse: $who: a snapshot meanwhile" prompt env "$build/xentracectl" snapshot "beside-$who"
    done
    umount -l "$dir/fuse-operator" "$dir/fuse-root" 2>/dev/null
    kill "${server[@]}" # all that waits fails now
    wait "${server[@]}" 2>/dev/null
    check "fuse: nothing is left of it" wait_until 20 has_no_more_descriptors "$((before + 2))"
    check "fuse: the daemon is well" ctl snapshot after
}
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }
fuse_answers_operator() {
    sed 's/^/# /' "$1"
    check "fuse: an operator's files are refused, each" same "$(grep -c "True .* FUSE file system" "$1")" 6
    check "fuse: the server was not asked" same \
        "$(grep -c "unanswered \(3\|17\|4\|43\|16\|20\)$" "$dir/served-operator")" 0
}
# Root may, and is told that it waits.
fuse_answers_root() {
    sed 's/^/# /' "$1"
    check "fuse: root's wait, and are given up" above "$(grep -c "True .*has not answered for" "$1")" 2
}

planted() {
    recorder_start memory=16M || exit 1
    mkdir -m 1777 "$dir/sticky"
    echo precious >"$dir/sticky/victim"
    mkfifo -m 0666 "$dir/sticky/fifo"
    ln -s victim "$dir/sticky/link"
    chown -h 65534:65534 "$dir/sticky/fifo" "$dir/sticky/link"
    sleep 100 <>"$dir/sticky/fifo" &
    check "planted: a FIFO of somebody else" refuses "was created by another user" \
        ctl record -T 1 -o "$dir/sticky/fifo"
    check "planted: a link of somebody else" refuses "is a link created by another" \
        ctl snapshot -o "$dir/sticky/link"
    check "planted: --force replaces the link" ctl snapshot --force -o "$dir/sticky/link"
    check "planted: it is a file now" test -f "$dir/sticky/link" -a ! -L "$dir/sticky/link"
    check "planted: which is complete" whole "$dir/sticky/link"
    check "planted: what it pointed to is as it was" same "$(cat "$dir/sticky/victim")" precious
    kill $!
}

# --- A time in between. ---

# Between two moments, in nanoseconds, but for a round at each end.
is_within() { # is_within DOCUMENT SINCE UNTIL
    local first last
    first=$(number "$1" snapshot first_ns) last=$(number "$1" snapshot last_ns)
    echo "begins $((($2 - first) / 1000)) us before, ends $(((last - $3) / 1000)) us after"
    [ "$first" -le $(($2 + 50000000)) ] && [ "$first" -gt $(($2 - 400000000)) ] &&
        [ "$last" -ge $(($3 - 50000000)) ] && [ "$last" -lt $(($3 + 400000000)) ]
}
iso() { date -d "@$(($1 / 1000000000)).$(printf %09d $(($1 % 1000000000)))" '+%Y-%m-%d %H:%M:%S.%N'; }
times() {
    local since until zone
    recorder_start memory=64M || exit 1
    sleep 2
    since=$(date +%s%N)
    sleep 1.5
    until=$(date +%s%N)
    sleep 2.5
    for zone in UTC0 IST-5:30; do
        export TZ=$zone
        check "times: $zone: between two moments" ctl snapshot --json -o "$dir/$zone.xentrace" \
            --since "$(iso "$since")" --until "$(iso "$until")"
        check "times: $zone: it is of that time" is_within "$dir/$zone.json" "$since" "$until"
        check "times: $zone: and complete" whole "$dir/$zone.xentrace"
    done
    unset TZ
    check "times: seconds since 1970" ctl snapshot unix --since "@$((since / 1000000000))" \
        --until "@$((until / 1000000000 + 1))"
    check "times: is complete" whole "$dir/state/unix.xentrace"
    check "times: before now" ctl snapshot ago --since -3s --until -2s
    check "times: of that length" within_second "$dir/state/ago.json"
    check "times: complete, too" whole "$dir/state/ago.xentrace"
    ctl snapshot shorter --since -1h >"$dir/shorter" 2>&1
    check "times: a ring that does not go back as far: status 3" same $? 3
    check "times: says so" grep -q 'Holds.* of the 1h asked for' "$dir/shorter"
    ctl snapshot shorter-until --since -1h --until -3s >"$dir/shorter" 2>&1
    check "times: the same with an end: status 3" same $? 3
    check "times: nothing is so old" refuses "holds no records of that time. Its oldest record is from" \
        ctl snapshot none --since -2h --until -1h
    check "times: nor of the future" refuses "holds no records of that time" \
        ctl snapshot none --since "@$((until / 1000000000 + 3600))"
    check "times: a time as the name" refuses_usage "use --last 30s" ctl snapshot 30s
    check "times: the other way round" refuses "must be before --until" \
        ctl snapshot none --since -2s --until -3s
}
within_second() {
    local usec=$((($(number "$1" snapshot last_ns) - $(number "$1" snapshot first_ns)) / 1000))
    echo "$usec us"
    [ $usec -gt 900000 ] && [ $usec -lt 1800000 ]
}

# The clock is set an hour ahead after 3 s: each time is one of the clock as it was then.
stepped() {
    local since until
    export SET_CLOCK=$dir/set-clock
    launcher=(env "LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$build/tests/sim/libset-clock.so")
    recorder_start memory=64M || exit 1
    sleep 1.5
    since=$(date +%s%N)
    sleep 1
    until=$(date +%s%N)
    sleep 0.5
    touch "$SET_CLOCK"
    sleep 3.5 # it notices within a second
    check "stepped: from before the step" ctl snapshot before --since "$(iso "$since")" --until "$(iso "$until")"
    check "stepped: it is of that time" is_within "$dir/state/before.json" "$since" "$until"
    check "stepped: complete" whole "$dir/state/before.xentrace"
    since=$(($(date +%s%N) + 3600000000000 - 1500000000))
    check "stepped: from after the step" ctl snapshot after --since "$(iso "$since")"
    check "stepped: it is of that time, too" begins_at "$dir/state/after.json" "$since"
    check "stepped: complete, too" whole "$dir/state/after.xentrace"
}
begins_at() { # begins_at DOCUMENT SINCE
    local first
    first=$(number "$1" snapshot first_ns)
    echo "$((($2 - first) / 1000)) us before"
    [ "$first" -le $(($2 + 50000000)) ] && [ "$first" -gt $(($2 - 400000000)) ]
}

# --- Both in one. ---

bundle() {
    recorder_start memory=16M || exit 1
    wait_until 20 recorder_has $((1024 * 1024))
    mkdir "$dir/far" "$dir/tmp"
    TMPDIR=$dir/tmp ctl snapshot bundled -o - --bundle 2>"$dir/talk" | tar -C "$dir/far" -xf -
    check "bundle: a stream of both" test -s "$dir/far/bundled.xentrace" -a -s "$dir/far/bundled.json"
    check "bundle: complete" whole "$dir/far/bundled.xentrace"
    check "bundle: the sidecar belongs to it" grep -q 'Snapshot: bundled' \
        <(ctl info "$dir/far/bundled.xentrace")
    ctl snapshot -o - 2>"$dir/gone" | head -c 1 >/dev/null
    check "a reader that is gone is reported" \
        grep -q 'Cannot write the output: the reader has closed the pipe' "$dir/gone"
    check "bundle: nothing is left" same "$(ls "$dir/tmp")" ""
    check "bundle: a capture" ctl record --quiet -T 1 -o "$dir/capture.tar" --bundle
    check "bundle: alone" same "$(cd "$dir" && echo capture*)" capture.tar
    tar -C "$dir/far" -xf "$dir/capture.tar"
    check "bundle: a capture, complete" whole "$dir/far/capture.xentrace"
    balances "$dir/far/capture.json" || fail "bundle: its ledger balances"
    # A socket in the place of a file: the daemon is passed a pipe.
    python3 - "$build/xentracectl" "$dir/from-socket" <<'END'
import socket, subprocess, sys
ours, theirs = socket.socketpair()
child = subprocess.Popen([sys.argv[1], "snapshot", "-o", "-"], stdout=theirs, stderr=subprocess.DEVNULL)
theirs.close()
with open(sys.argv[2], "wb") as file:
    while data := ours.recv(65536):
        file.write(data)
sys.exit(child.wait())
END
    check "bundle: through a socket" same $? 0
    check "bundle: complete, too" whole "$dir/from-socket"
}

parts=(unread kinds fuse planted times times_pvh stepped bundle)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

run() { # run PART
    case $1 in
        times_pvh) sim --cpus 2 --rate 4M --tsc-offset 250s -- times ;; # see clock.sh
        *) sim --cpus 2 --rate 4M -- "$1" ;;
    esac
    sim_clean
}

main() {
    local part
    # Groups of our own, and mounts, seen by nobody else.
    if [ -z "${OUTPUTS_GROUPS:-}" ] && unshare --mount true 2>/dev/null; then
        OUTPUTS_GROUPS=1 exec unshare --mount "$script" "${parts[@]}"
    fi
    if [ -n "${OUTPUTS_GROUPS:-}" ]; then
        people xentrace:64001 tracers:64002:65534
    fi
    for part in "${parts[@]}"; do
        run "$part"
    done
    [ -z "${OUTPUTS_GROUPS:-}" ] || people_done
}

dispatch "$@"
