#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Metrics: `xentracectl metrics` and metrics-file=, judged by promtool, and scraped by a real Prometheus
# through node_exporter's textfile collector.

. "$(dirname "$0")/lib.sh"

root=$(dirname "$script")/../..
rules=$root/monitoring

free_port() { # of the loopback
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
is_valid() { promtool check metrics <"$1"; }
value_in() { sed -n "s/^$2 //p" "$1"; } # value_in FILE SERIES
file_says_up() { [ "$(value_in "$file" xentraced_up)" = "$1" ]; }

# What Prometheus answers to a query: the value of the only series.
query() {
    python3 - "$prometheus_port" "$1" <<'END'
import json, sys, urllib.parse, urllib.request
url = "http://127.0.0.1:%s/api/v1/query?query=%s" % (sys.argv[1], urllib.parse.quote(sys.argv[2]))
result = json.load(urllib.request.urlopen(url, timeout=5))["data"]["result"]
print(result[0]["value"][1] if len(result) == 1 else "%d series" % len(result))
END
}
rules_loaded() {
    python3 -c 'import json, sys, urllib.request
groups = json.load(urllib.request.urlopen(sys.argv[1], timeout=5))["data"]["groups"]
print(sum(len(group["rules"]) for group in groups))' "http://127.0.0.1:$prometheus_port/api/v1/rules"
}
query_is() { [ "$(query "$1" 2>/dev/null)" = "$2" ]; }

# Neither may see the stand-in's library.
start_node_exporter() {
    node_port=$(free_port)
    env -u LD_PRELOAD prometheus-node-exporter --collector.disable-defaults --collector.textfile \
        --collector.textfile.directory="$dir/metrics" \
        --web.listen-address="127.0.0.1:$node_port" >"$dir/node-exporter" 2>&1 &
}
start_prometheus() {
    prometheus_port=$(free_port)
    cat >"$dir/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$(readlink -f "$rules/xentraced.rules.yml")"]
scrape_configs:
  - {job_name: node, static_configs: [{targets: ["127.0.0.1:$node_port"]}]}
END
    env -u LD_PRELOAD prometheus --config.file="$dir/prometheus.yml" \
        --storage.tsdb.path="$dir/prometheus" --web.listen-address="127.0.0.1:$prometheus_port" \
        >"$dir/prometheus.log" 2>&1 &
}

scraped() {
    local produced
    file=$dir/metrics/xentraced.prom
    check_logs=("$dir/log" "$dir/node-exporter" "$dir/prometheus.log")
    mkdir "$dir/metrics"
    configure '[daemon]' "metrics-file=$file"
    recorder 'memory=8M' '[trigger by-hand]' 'condition=manual'
    daemon_start || exit 1
    check "the file is there soon" wait_until 10 test -e "$file"
    check "promtool accepts it" is_valid "$file"
    ctl metrics >"$dir/printed"
    check "promtool accepts what xentracectl prints" is_valid "$dir/printed"
    check "both have the same metrics" \
        diff <(sed 's/ [^ ]*$//' "$file" | sort) <(sed 's/ [^ ]*$//' "$dir/printed" | sort)
    check "others may read it" same "$(stat -c %a "$file")" 644
    check "nothing else is in the directory" same "$(ls -A "$dir/metrics")" xentraced.prom

    start_node_exporter
    start_prometheus
    check "Prometheus has scraped it" wait_until 60 query_is xentraced_up 1
    check "node_exporter has no complaint" query_is node_textfile_scrape_error 0
    check "Prometheus has the recorder's state" \
        query_is 'xentraced_recorder_state{state="running"}' 1
    check "all alert rules are loaded" same "$(rules_loaded)" "$(grep -c -- '- alert:' "$rules/xentraced.rules.yml")"
    "$xensim" pause
    settle_recorder
    produced=$(number "$dir/recorder" ledger produced)
    check "records were produced" above "$produced" 0
    check "Prometheus has their number, a period later" wait_until 40 \
        query_is 'xentraced_session_produced_records_total{session="flight-recorder"}' "$produced"

    check "the daemon ends" daemon_stop
    check "the file says that it does not run" file_says_up 0
    check "promtool accepts that" is_valid "$file"
    check "Prometheus knows" wait_until 10 query_is xentraced_up 0
    check "the alert is on its way" wait_until 10 \
        query_is 'ALERTS{alertname="XentracedDown",alertstate="pending"}' 1
    check "xentracectl says so too" shows '^xentraced_up 0$' ctl metrics
    check "and fails" fails 'xentraced_up 0' ctl metrics
}

# A directory of somebody else's.
hostile_directory() {
    mkdir "$dir/metrics"
    echo mine >"$dir/victim"
    ln -s "$dir/victim" "$dir/metrics/xentraced.prom"
    ln -s "$dir/victim" "$dir/metrics/.xentraced.prom.new"
    configure '[daemon]' "metrics-file=$dir/metrics/xentraced.prom"
    daemon_start || exit 1
    check "links are replaced" wait_until 10 test -f "$dir/metrics/xentraced.prom" -a \
        ! -L "$dir/metrics/xentraced.prom"
    check "not what they lead to" same "$(cat "$dir/victim")" mine
}

missing_directory() {
    configure '[daemon]' "metrics-file=$dir/none/xentraced.prom"
    daemon_start || exit 1
    check "a file that cannot be written is in the log" wait_until 10 \
        grep -q "Cannot write metrics to $dir/none/xentraced.prom: No such file" "$dir/log"
    check "the daemon answers" ctl status
    mkdir "$dir/none"
    check "it is written when it can be" wait_until 30 test -e "$dir/none/xentraced.prom"
    check "which is in the log, too" wait_until 5 grep -q 'written to .* again' "$dir/log"
    check "and the failure only once" same "$(grep -c 'Cannot write metrics' "$dir/log")" 1
}

fifo_in_place() {
    mkdir "$dir/metrics"
    mkfifo "$dir/metrics/xentraced.prom"
    configure '[daemon]' "metrics-file=$dir/metrics/xentraced.prom"
    daemon_start || exit 1
    check "a FIFO is replaced, and nobody waits for its reader" wait_until 10 \
        test -f "$dir/metrics/xentraced.prom"
}

main() {
    local program
    for program in promtool prometheus prometheus-node-exporter; do
        if ! command -v "$program" >/dev/null; then
            fail "$program is not installed (apt-get install prometheus prometheus-node-exporter)"
            return
        fi
    done
    check "promtool accepts the alert rules" promtool check rules "$rules/xentraced.rules.yml"
    check "the alerts fire when they should, and only then" \
        promtool test rules "$rules/xentraced.rules.test.yml"
    sim --cpus 4 --workload sched --rate 200K -- scraped
    sim_clean
    sim --cpus 2 --workload sched --rate 10K -- hostile_directory
    sim_clean
    sim --cpus 2 --workload sched --rate 10K -- missing_directory
    sim_clean
    sim --cpus 2 --workload sched --rate 10K -- fifo_in_place
    sim_clean
}

dispatch "$@"
