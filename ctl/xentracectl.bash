# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xentracectl(1). xentracectl itself knows its commands and options, and the kinds of
# their arguments: see `xentracectl help --completion` and ctl/completion-data.h.

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

# Completes a word of KIND, with its CHOICES if the kind has some. The rest are options that say which
# daemon is asked for names.
_xentracectl_word() { # KIND CHOICES CURRENT OPTION...
    local kind=$1 choices=$2 cur=$3
    shift 3

    case $kind in
    choice) ;;
    commands) choices=$(xentracectl help --completion 2>/dev/null | sed -n 's/^command\t\([^\t]*\).*/\1/p') ;;
    captures) choices=$(xentracectl "$@" list --names 2>/dev/null) ;;
    # The flight recorder is neither ended by its name nor rotated.
    running) choices=$(xentracectl "$@" list --names --running 2>/dev/null | grep -vx flight-recorder) ;;
    session) choices=$(xentracectl "$@" list --names --running 2>/dev/null) ;;
    traces) choices=$(xentracectl "$@" list --files --names 2>/dev/null) ;;
    triggers) choices=$(xentracectl "$@" list --triggers --names 2>/dev/null) ;;
    cpus) choices=all ;;
    host)
        mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur")
        return
        ;;
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

# The command of `record -- COMMAND`, whose first word is the I-th: true if the cursor is in it.
_xentracectl_other_command() {
    local i=$1

    if ((i == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$i"
    else
        _xentracectl_files "${COMP_WORDS[COMP_CWORD]}"
    fi
}

_xentracectl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=() options="" words="commands" what name letter kind choices i daemon=()

    COMPREPLY=()
    # bash splits --option=value at the =
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --)
            _xentracectl_other_command $((i + 1))
            return
            ;;
        --socket | --host | -H)
            name=${COMP_WORDS[i]}
            [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i++))
            daemon+=("$name" "${COMP_WORDS[++i]-}")
            ;;
        -*) ;;
        *) [[ ${#command[@]} -gt 0 ]] || command=("${COMP_WORDS[i]}") ;;
        esac
    done

    while IFS=$'\t' read -r what name letter kind _ choices _; do
        case $what in
        words) words=$name ;;
        option)
            if [[ $kind != flag && ($prev == "$name" || $prev == "$letter") ]]; then
                _xentracectl_word "$kind" "$choices" "$cur" "${daemon[@]}"
                return
            fi
            options+=" $name"
            ;;
        esac
    done < <(xentracectl help --completion "${command[@]}" 2>/dev/null)

    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
    else
        _xentracectl_word "$words" "" "$cur" "${daemon[@]}"
    fi
}

complete -F _xentracectl xentracectl
