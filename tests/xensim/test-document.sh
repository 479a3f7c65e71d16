#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# document: what it finds, and that a ledger that is wrong by one record anywhere is not let pass.

set -u
. "$(dirname "$0")/../check.sh"
build=${builddir:-.}
[ -x "$build/tests/xensim/document" ] || build=.
document=$(cd "$build/tests/xensim" && pwd)/document
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

says() { # says TEXT ARGUMENT...: what document prints
    check "${*:2} says '$1'" prints "$@"
}
prints() { same "$("$document" "${@:2}" || echo "status $?")" "$1"; }
refused() { # refused ARGUMENT...: with a sentence
    check "$*${change:+, after $change} is refused" fails . "$document" "$@"
}

cat >good <<'END'
{"name": "a \"b\"", "none": null, "yes": true, "large": 18446744073709551615, "list": [1, {"n": -2}],
 "ledger": {"produced": 10, "delivered": 4, "lost": 3, "dropped": 2, "evicted": 1, "cpus": [
  {"cpu": 0, "produced": 0, "delivered": 0, "lost": 0, "dropped": 0, "evicted": 0},
  {"cpu": 2, "produced": 10, "delivered": 4, "lost": 3, "dropped": 2, "evicted": 1}]}}
END
says 'a "b"' number good name
says null number good none
says true number good yes
says 18446744073709551615 number good large
says -2 number good list 1 n
says -2 number good list -1 n
says '[1,{"n":-2}]' number good list
says 10 number good ledger cpus cpu=2 produced
refused number good ledger cpus cpu=1
refused number good ledger cpus cp=2
refused number good list 2
refused number good list -3
refused number good name more
refused number good none more
refused number good nothing
refused number not-there name
echo '{"name": ' >half
refused number half name

says "" balances good
for key in produced delivered lost dropped evicted; do
    for line in 2 3 4; do # the total, and each CPU
        change="${line}s/$key\": /&1/"
        sed "$change" good >wrong
        refused balances wrong
    done
done
change='s/"dropped"/"drooped"/'
sed "$change" good >wrong
refused balances wrong
change=

echo '{"cpus": [{"cpu": 0, "attempted": 0, "lost": 0}, {"cpu": 1, "attempted": 7, "lost": 7},
 {"cpu": 2, "attempted": 10, "lost": 3}]}' >report
says "" as-reported good report
for change in 's/attempted": 10/attempted": 11/' 's/lost": 3/lost": 2/' 's/"cpu": 2/"cpu": 3/'; do
    sed "$change" report >wrong
    refused as-reported good wrong
done
finish
