# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For scripts that tests/real-xen/run starts in dom0:  . "$REAL_XEN_LIB"
# Checks are those of tests/check.sh.
#
#   pv_guest_start NAME [MIB] [idle|load|panic|poweroff] [ON_CRASH]
#                                 $guest_type: pv, or pvh
#   pv_guest_destroy NAME
#   guest_id NAME                 prints a guest's domain id
#   load_start [N], load_stop     keeps every vCPU of dom0, and so every physical CPU, busy
#
# and of xentraced:
#
#   daemon_is_ready               the service runs and answers
#   value KEY COMMAND...          the first number or word of that name in the JSON that COMMAND prints
#   total KEY COMMAND...          the ledger's total of KEY in it, and
#   ledger_balances COMMAND...    produced = delivered + lost + dropped + evicted
#   info_number KEY FILE          a top-level number of `info --json`
#   wakeups, wakeups_in SECONDS   of all threads of the service together
#   daemon_pid, virqs             its PID, and how many VIRQ_TBUF it has counted
#   stop_until_fired              stops it (SIGSTOP) until VIRQ_TBUF has fired
#   "${varlink[@]}" METHOD JSON   the reply to a call, by a program that nobody here wrote for it
#   virq_is_counted               the same, then lets it continue: it counts that one

. "${REAL_XEN_LIB%/*}/check.sh"

real_xen_load=()
# shellcheck disable=SC2034,SC2016 # the script's; Perl's
varlink=(perl -MIO::Socket::UNIX -e '
    my $socket = IO::Socket::UNIX->new(Peer => "/run/xentraced/control") or die "$!\n";
    syswrite $socket, qq({"method":"$ARGV[0]","parameters":$ARGV[1]}\0);
    $/ = "\0";
    my $reply = <$socket>;
    print "$reply\n";
    exit($reply =~ /"error":/)')

guest_id() {
    xl domid "$1"
}

# 64 MiB are too few for Debian's kernel. A guest that panics is destroyed, as it would be in production.
pv_guest_start() {
    local name=$1 mib=${2:-128} mode=${3:-idle} on_crash=${4:-destroy} config
    config=$(mktemp)
    cat >"$config" <<END
name = "$name"
type = "${guest_type:-pv}"
kernel = "/usr/lib/real-xen/guest-vmlinux"
ramdisk = "/usr/lib/real-xen/guest-initramfs"
extra = "console=hvc0 panic=1 loglevel=4 mitigations=off real_xen=$mode"
memory = $mib
vcpus = 1
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "$on_crash"
END
    if ! xl create -q "$config"; then
        rm -f "$config"
        return 1
    fi
    rm -f "$config"
}

pv_guest_destroy() {
    xl destroy "$1"
}

# On each vCPU, pinned there, a pair of processes that wake each other up through pipes, in short bursts:
# hypercalls, blocks and wake-ups on all physical CPUs. Bursts, because each emulated CPU is a thread of
# the host; eight of them always busy on two cores, and nothing else in dom0 gets anywhere.
load_start() { # load_start [N]: of the first N vCPUs only
    local cpu
    [ ${#real_xen_load[@]} -eq 0 ] || return 0
    for cpu in $(seq 0 $((${1:-$(nproc)} - 1))); do
        taskset -c "$cpu" bash "${BASH_SOURCE[0]%/*}/load" &
        real_xen_load+=($!)
    done
}

load_stop() {
    [ ${#real_xen_load[@]} -gt 0 ] || return 0
    # The echoing half of each pair ends with its pipe.
    kill "${real_xen_load[@]}" 2>/dev/null || true
    wait "${real_xen_load[@]}" 2>/dev/null || true
    real_xen_load=()
}

daemon_is_ready() { systemctl is-active -q xentraced && xentracectl version | grep xentraced >/dev/null; }

# dom0 has no JSON tool, and in the emulator a process takes 70 ms: these start none but COMMAND.
value() {
    local document
    document=$("${@:2}") && [[ $document =~ \"$1\":[[:space:]]*(\"[^\"]*\"|[^],}[:space:]]*) ]] || return
    document=${BASH_REMATCH[1]#\"}
    echo "${document%\"}"
}

# The totals stand before the list of CPUs.
ledger_number() { # ledger_number KEY DOCUMENT: sets number
    [[ $2 =~ \"ledger\":[[:space:]]*"{"[^[]*\"$1\":[[:space:]]*([0-9]+) ]] && number=${BASH_REMATCH[1]}
}
total() {
    local document number
    document=$("${@:2}") && ledger_number "$1" "$document" && echo "$number"
}

ledger_balances() {
    local document number key sum=0
    document=$("$@") || return
    for key in delivered lost dropped evicted; do
        ledger_number $key "$document" && sum=$((sum + number)) || return
    done
    ledger_number produced "$document" && same "$number" "$sum"
}

info_number() { # info_number KEY FILE
    value "$1" xentracectl --json info "$2"
}

wakeups() {
    awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }' \
        /proc/"$(systemctl show -P MainPID xentraced)"/task/*/status
}

wakeups_in() { # wakeups_in SECONDS
    local before
    before=$(wakeups)
    sleep "$1"
    echo $(($(wakeups) - before))
}

virqs() { value virqs xentracectl --json status; }
daemon_pid() { systemctl show -P MainPID xentraced; }
has_virqs() { [ "$(virqs)" -ge "$1" ]; }
interrupts() { # on all CPUs
    awk '/evtchn:xentraced/ { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' \
        /proc/interrupts
}
has_fired() { [ "$(interrupts)" -gt "$1" ]; }

# Stops the daemon until a buffer is half full. To ask starts processes, which fills it: there is no pause.
# systemd's watchdog bears 60 s.
stop_until_fired() {
    local before deadline
    before=$(interrupts)
    deadline=$((SECONDS + 50))
    kill -STOP "$(daemon_pid)"
    until has_fired "$before"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
    done
}
virq_is_counted() {
    local before status=0
    before=$(virqs)
    stop_until_fired || status=1
    kill -CONT "$(daemon_pid)"
    [ "$status" -eq 0 ] && wait_until 20 has_virqs $((before + 1))
}
