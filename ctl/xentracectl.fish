# SPDX-License-Identifier: GPL-2.0-or-later
# fish completion for xentracectl(1). xentracectl itself knows its commands and options, and the kinds of
# their arguments: see `xentracectl help --completion` and ctl/completion-data.h.

# Asks a daemon for names. What is no valid name is left out here too: the daemon may be another host's.
function __xentracectl_ask
    xentracectl $argv 2>/dev/null | head -c 1000000 |
        LC_ALL=C grep -axE '[A-Za-z0-9_@:][A-Za-z0-9._@:-]{0,254}'
end

function __xentracectl_word -a kind choices
    set -l daemon $argv[3..]
    switch $kind
        case choice
            string split ' ' -- $choices
        case commands
            xentracectl help --completion 2>/dev/null | string replace -fr '^command\t' ''
        case captures
            __xentracectl_ask $daemon list --names
        case running
            __xentracectl_ask $daemon list --names --running | string match -v flight-recorder
        case session
            __xentracectl_ask $daemon list --names --running
        case traces
            __xentracectl_ask $daemon list --files --names
        case triggers
            __xentracectl_ask $daemon list --triggers --names
        case cpus
            echo all
        case events
            set -l head (string match -r '.*,' -- (commandline -ct))
            for name in (xentracectl events --names 2>/dev/null)
                echo $head$name
            end
        case host
            __fish_print_hostnames
        case file files
            __fish_complete_path (commandline -ct)
    end
end

function __xentracectl_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l command
    set -l daemon
    set -l words commands
    set -l options
    set -l i 2

    while test $i -le (count $before)
        switch $before[$i]
            case -- # record -- COMMAND
                __fish_complete_subcommand --fcs-skip=$i
                return
            case --socket --host -H
                set -l next (math $i + 1)
                set -a daemon $before[$i] $before[$next]
                set i $next
            case '--socket=*' '--host=*'
                set -a daemon $before[$i]
            case '-*'
            case '*'
                test -n "$command"; or set command $before[$i]
        end
        set i (math $i + 1)
    end

    set -l previous $before[-1]
    set -l head
    if string match -qr '^--[a-z-]+=' -- $current
        set previous (string replace -r '=.*' '' -- $current)
        set head $previous=
    end
    for line in (xentracectl help --completion $command 2>/dev/null)
        set -l field (string split \t -- $line)
        switch $field[1]
            case words
                set words $field[2]
            case option
                if test $field[4] != flag; and contains -- $previous $field[2..3]
                    __xentracectl_word $field[4] $field[6] $daemon | string replace -r '^' -- "$head"
                    return
                end
                set -a options $field[2]\t$field[7]
                test $field[3] = -; or set -a options $field[3]\t$field[7]
        end
    end
    if string match -q -- '-*' $current
        printf '%s\n' $options
    else
        __xentracectl_word $words '' $daemon
    end
end

complete -c xentracectl -f -a '(__xentracectl_complete)'
