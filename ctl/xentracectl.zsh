#compdef xentracectl
# SPDX-License-Identifier: GPL-2.0-or-later
# zsh completion for xentracectl(1). xentracectl itself knows its commands and options, and the kinds of
# their arguments: see `xentracectl help --completion` and ctl/completion-data.h.

# Names from the daemon that the command line names. What is no valid name is left out here too: the daemon may
# be another host's.
_xentracectl_names() { # DESCRIPTION ARGUMENT...
    local description=$1
    local -a names
    shift

    names=(${(f)"$(_call_program names xentracectl ${(q)daemon} ${(q)@} 2>/dev/null | head -c 1000000 |
        LC_ALL=C grep -axE '[A-Za-z0-9_@:][A-Za-z0-9._@:-]{0,254}')"})
    [[ $kind == running ]] && names=(${names:#flight-recorder})
    compadd -X "$description" -a names
}

_xentracectl_word() { # KIND CHOICES
    local kind=$1 choices=$2 line what name summary
    local -a items

    case $kind in
    choice) compadd -- ${=choices} ;;
    commands)
        while IFS=$'\t' read -r what name summary; do
            [[ $what == command ]] && items+=("$name:$summary")
        done < <(xentracectl help --completion 2>/dev/null)
        _describe -t commands command items
        ;;
    captures) _xentracectl_names capture list --names ;;
    running | session) _xentracectl_names capture list --names --running ;;
    traces) _xentracectl_names trace list --files --names ;;
    triggers) _xentracectl_names trigger list --triggers --names ;;
    cpus) compadd all ;;
    events)
        items=(${(f)"$(xentracectl events --names 2>/dev/null)"})
        compset -P '*,'
        compadd -S '' -a items
        ;;
    host) _hosts ;;
    file | files) _files ;;
    *) _message "$kind" ;;
    esac
}

_xentracectl() {
    local what name letter kind argument choices help kind_of_words=commands previous
    local -a command options daemon
    integer i

    for ((i = 2; i < CURRENT; i++)); do
        case $words[i] in
        --) # record -- COMMAND
            shift $i words
            ((CURRENT -= i))
            _normal
            return
            ;;
        --socket | --host | -H)
            daemon+=($words[i] "$words[i+1]")
            ((i++))
            ;;
        --socket=* | --host=*) daemon+=($words[i]) ;;
        -*) ;;
        *) ((${#command})) || command=($words[i]) ;;
        esac
    done

    previous=$words[CURRENT-1]
    if compset -P '(#b)(--[a-z-]##)='; then
        previous=$match[1]
    fi
    while IFS=$'\t' read -r what name letter kind argument choices help; do
        case $what in
        words) kind_of_words=$name ;;
        option)
            if [[ $kind != flag && ($previous == $name || $previous == $letter) ]]; then
                _xentracectl_word $kind "$choices"
                return
            fi
            options+=("$name:$help")
            [[ $letter == - ]] || options+=("$letter:$help")
            ;;
        esac
    done < <(xentracectl help --completion $command 2>/dev/null)

    if [[ $PREFIX == -* ]]; then
        _describe -o -t options option options
    else
        _xentracectl_word $kind_of_words ""
    fi
}

setopt localoptions extendedglob
_xentracectl "$@"
