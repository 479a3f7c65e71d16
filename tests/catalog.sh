#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The catalog explains every MESSAGE_ID of the code, and no other; journalctl accepts it.

set -uo pipefail
. "$(dirname "$0")/check.sh"
cd "${srcdir:-$(dirname "$0")/..}" || exit 1

header=daemon/base/log-id.h
catalog=systemd/xentraced.catalog
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

sed -n 's/^#define LOG_ID_[A-Z_]* *"\(.*\)"$/\1/p' "$header" | sort >"$tmp/code"
sed -n 's/^-- \([^ ]*\).*/\1/p' "$catalog" | sort >"$tmp/catalog"
names() { sed -n 's/^#define \(LOG_ID_[A-Z_]*\) .*/\1/p' "$header"; }

unused() {
    local name
    for name in $(names); do
        grep -rqw "$name" --include='*.c' daemon || echo "$name"
    done
}
# A MESSAGE_ID= that is not of the list.
strays() { grep -rnE '"MESSAGE_ID=[^%"]|"[0-9a-f]{32}"' --include='*.[ch]' daemon | grep -v "^$header:"; }
# What @...@ stands for must be a field that log.c sends.
unknown_fields() {
    grep -o '@[A-Z_]*@' "$catalog" | tr -d @ | sort -u | while read -r field; do
        grep -q "\"$field=" daemon/base/log.c || echo "$field"
    done
}
incomplete() { # entries without a subject, who it is of, or a text
    awk '/^-- /{ if (id && !(s && d && t)) print id; id = $2; s = d = t = 0 }
        /^Subject: ./{ s = 1 } /^Defined-By: xentraced$/{ d = 1 } id && /./ && !/^(-- |#|Subject:|Defined-By:|Documentation:)/{ t = 1 }
        END { if (id && !(s && d && t)) print id }' "$catalog"
}
none() { [ -z "$1" ] || { echo "$1"; return 1; }; }

check "there are IDs" above "$(wc -l <"$tmp/code")" 10
check "each ID of the code is in the catalog, and no other" diff "$tmp/code" "$tmp/catalog"
check "no ID is there twice" none "$(uniq -d "$tmp/code")"
check "each is 32 hexadecimal digits" none "$(grep -vE '^[0-9a-f]{32}$' "$tmp/code")"
check "each is logged somewhere" none "$(unused)"
check "no other ID is logged" none "$(strays)"
check "each field in the catalog is one that is logged" none "$(unknown_fields)"
check "each entry has a subject, an origin and a text" none "$(incomplete)"

if command -v journalctl >/dev/null; then
    mkdir -p "$tmp/root/usr/lib/systemd/catalog" "$tmp/root/var/lib/systemd/catalog"
    cp "$catalog" "$tmp/root/usr/lib/systemd/catalog/"
    check "journalctl compiles it" journalctl --root="$tmp/root" --update-catalog
    journalctl --root="$tmp/root" --list-catalog 2>/dev/null | cut -d' ' -f1 | sort >"$tmp/listed"
    check "and finds all of it" diff "$tmp/code" "$tmp/listed"
else
    skip "journalctl compiles it" "there is no journalctl"
fi
finish
