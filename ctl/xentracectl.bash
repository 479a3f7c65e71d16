# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xentracectl(1). xentracectl itself knows its commands and options, and the kinds of
# their arguments: see `xentracectl help --completion` and ctl/completion-data.h.

# Offers the lines of standard input that begin with CURRENT, after HEAD, quoted. They may come from another
# host: `compgen -W` would expand them, and so run $(...) in them.
_xentracectl_offer() { # CURRENT [HEAD]
    local line

    while IFS= read -r line; do
        [[ -n $line && $line == "$1"* ]] || continue
        [[ $line == *[!A-Za-z0-9._@:,/+=-]* ]] && printf -v line %q "$line"
        COMPREPLY+=("${2-}$line")
    done
}

_xentracectl_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# Asks a daemon for names. What is no valid name is left out here too: the daemon may be another host's.
_xentracectl_ask() { # ARGUMENT...
    xentracectl "$@" | head -c 1000000 | LC_ALL=C grep -axE '[A-Za-z0-9_@:][A-Za-z0-9._@:-]{0,254}'
}

# Prints the words of KIND, which has CHOICES if it is choice, one a line. The rest are options that say which
# daemon is asked for names.
_xentracectl_words() { # KIND CHOICES OPTION...
    local kind=$1 choices=$2
    shift 2

    case $kind in
    choice) printf '%s\n' "${choices// /$'\n'}" ;;
    commands) xentracectl help --completion | sed -n 's/^command\t\([^\t]*\).*/\1/p' ;;
    captures) _xentracectl_ask "$@" list --names ;;
    # The flight recorder is neither ended by its name nor rotated.
    running) _xentracectl_ask "$@" list --names --running | grep -vx flight-recorder ;;
    session) _xentracectl_ask "$@" list --names --running ;;
    traces) _xentracectl_ask "$@" list --files --names ;;
    triggers) _xentracectl_ask "$@" list --triggers --names ;;
    events) xentracectl events --names ;;
    cpus) echo all ;;
    host) compgen -A hostname ;;
    esac 2>/dev/null
}

_xentracectl_word() { # KIND CHOICES CURRENT OPTION...
    local kind=$1 choices=$2 cur=$3 head=
    shift 3

    if [[ $kind == file || $kind == files ]]; then
        _xentracectl_files "$cur"
        return
    fi
    if [[ $kind == events ]]; then # the last item of a comma-separated list
        [[ $cur == *,* ]] && head=${cur%,*},
        compopt -o nospace 2>/dev/null
    fi
    _xentracectl_offer "${cur#"$head"}" "$head" < <(_xentracectl_words "$kind" "$choices" "$@")
}

# The command of `record -- COMMAND`, whose first word is the I-th: true if the cursor is in it.
_xentracectl_other_command() {
    local i=$1

    if ((i == COMP_CWORD)); then
        _xentracectl_offer "" < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
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
            options+=$name$'\n'
            ;;
        esac
    done < <(xentracectl help --completion "${command[@]}" 2>/dev/null)

    if [[ $cur == -* ]]; then
        _xentracectl_offer "$cur" <<<"$options"
    else
        _xentracectl_word "$words" "" "$cur" "${daemon[@]}"
    fi
}

complete -F _xentracectl xentracectl
