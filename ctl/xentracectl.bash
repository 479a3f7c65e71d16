# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xentracectl(1). xentracectl itself knows its commands and options, and what each
# of them takes: see `xentracectl help --completion`.

# The last item of a comma-separated list, among the names of events.
_xentracectl_events() {
    local list=$1 head='' names

    [[ $list == *,* ]] && head=${list%,*},
    names=$(xentracectl events --names 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$names" -- "${list##*,}")
    compopt -o nospace 2>/dev/null
}

_xentracectl_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# Completes a word of KIND, with its CHOICES if the kind has some.
_xentracectl_word() { # KIND CHOICES CURRENT SOCKET...
    local kind=$1 choices=$2 cur=$3
    shift 3

    case $kind in
    list | choice) ;;
    commands) choices=$(xentracectl help --completion 2>/dev/null | sed -n 's/^words list //p') ;;
    captures) choices=$(xentracectl "$@" list --names 2>/dev/null) ;;
    # What stop and rotate take: the flight recorder is neither ended by its name nor rotated.
    running) choices=$(xentracectl "$@" list --names --running 2>/dev/null | grep -vx flight-recorder) ;;
    session) choices=$(xentracectl "$@" list --names --running 2>/dev/null) ;;
    traces) choices=$(xentracectl "$@" list --files --names 2>/dev/null) ;;
    triggers) choices=$(xentracectl "$@" list --triggers --names 2>/dev/null) ;;
    cpus) choices=all ;;
    events)
        _xentracectl_events "$cur"
        return
        ;;
    file | files)
        _xentracectl_files "$cur"
        return
        ;;
    *) return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
}

_xentracectl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=() options="" words="" list="" names kind choices i socket=()

    COMPREPLY=()
    # bash splits --option=value at the =
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --socket)
            [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i++))
            socket=(--socket "${COMP_WORDS[++i]-}")
            ;;
        -*) ;;
        *)
            command=("${COMP_WORDS[i]}")
            break
            ;;
        esac
    done

    while read -r names kind choices; do
        if [[ $names == words ]]; then
            words=$kind list=$choices
        elif [[ $kind != flag && ($prev == "${names%|*}" || $prev == "${names#*|}") ]]; then
            _xentracectl_word "$kind" "$choices" "$cur" "${socket[@]}"
            return
        else
            options+=" ${names%|*}"
        fi
    done < <(xentracectl help --completion "${command[@]}" 2>/dev/null)

    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
    else
        _xentracectl_word "$words" "$list" "$cur" "${socket[@]}"
    fi
}

complete -F _xentracectl xentracectl
