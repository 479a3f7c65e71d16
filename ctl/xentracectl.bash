# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xentracectl(1)

# The last item of a comma-separated list, among the names of events.
_xentracectl_events() {
    local list=$1 head='' names

    [[ $list == *,* ]] && head=${list%,*},
    names=$(xentracectl events --names 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$names" -- "${list##*,}")
    compopt -o nospace 2>/dev/null
}

_xentracectl() {
    local commands="start record stop snapshot trigger rotate status list info events version help"
    local capture="--events --cpus --time --output --force --reserve --max-size --buffer-pages
        --poll --discard --keep-enabled --start-disabled --memory --max-age --segment-size
        --segment-time --keep-files --keep-size --on-reserve"
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command="" options="--socket --json --help" words="" i socket=()

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
            command=${COMP_WORDS[i]}
            break
            ;;
        esac
    done

    case $prev in
    --socket | --output | -o)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --events | -e)
        _xentracectl_events "$cur"
        return
        ;;
    --cpus | -c)
        mapfile -t COMPREPLY < <(compgen -W "all" -- "$cur")
        return
        ;;
    --on-reserve)
        mapfile -t COMPREPLY < <(compgen -W "stop rotate pause" -- "$cur")
        return
        ;;
    --session)
        words=$(xentracectl "${socket[@]}" list --names --running 2>/dev/null)
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
        return
        ;;
    --time | -T | --reserve | -r | --max-size | --buffer-pages | -S | --poll | -s | --memory | -M | \
        --max-age | --segment-size | --segment-time | --keep-files | --keep-size | --last | --label)
        return
        ;;
    esac

    case $command in
    "") words=$commands options+=" --version" ;;
    start) options+=" $capture" ;;
    record) options+=" $capture --quiet" ;;
    list) options+=" --names --running --triggers" ;;
    snapshot) options+=" --last --max-size --output --force --session --label" ;;
    trigger)
        [[ $cur == -* ]] || words=$(xentracectl "${socket[@]}" list --triggers --names 2>/dev/null)
        ;;
    events) options+=" --names" ;;
    help) words=$commands ;;
    rotate)
        [[ $cur == -* ]] || words=$(xentracectl "${socket[@]}" list --names --running 2>/dev/null)
        ;;
    stop)
        options+=" --all --abort"
        [[ $cur == -* ]] || words=$(xentracectl "${socket[@]}" list --names --running 2>/dev/null)
        ;;
    status)
        [[ $cur == -* ]] || words=$(xentracectl "${socket[@]}" list --names 2>/dev/null)
        ;;
    info)
        if [[ $cur != -* ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
        fi
        ;;
    esac
    [[ $cur == -* ]] && words=$options
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _xentracectl xentracectl
