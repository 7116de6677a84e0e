#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# until_stalled.sh SECONDS COMMAND...: run a command, and kill it with all its children if for so long
# none of them has used a second of CPU time, begun or ended. A program that waits for something that
# will not happen is ended so; one that is slow, or that has little of a busy machine, is not. Exits
# with the status of the command, or with 124.
set -u
limit=$1
shift
interval=$((limit < 50 ? 1 : 10))

# tree PROCESS: its number, those of its descendants, and their CPU times in seconds.
tree() {
    ps -e -o pid=,ppid=,cputimes= | awk -v root="$1" '
        { parent[$1] = $2; time[$1] = $3 }
        function below(pid,   depth) {
            for (depth = 0; pid != root && depth < 100; depth++)
                pid = parent[pid] + 0
            return pid == root
        }
        END { for (pid in time) if (below(pid)) print pid, time[pid] }' | sort -n
}

watch() {
    local seen=$(tree "$1") now still=0
    while [ -n "$seen" ]; do
        sleep $interval
        now=$(tree "$1")
        still=$((still + interval))
        [ "$now" = "$seen" ] || still=0
        seen=$now
        if [ $still -ge "$limit" ]; then
            echo "until_stalled: no progress in $limit seconds; its processes: $(cut -d ' ' -f 1 <<<"$seen" | paste -sd ' ')"
            : >"$2"
            kill -KILL $(cut -d ' ' -f 1 <<<"$seen") 2>/dev/null
            return
        fi
    done
}

stalled=$(mktemp -u)
# In the background a shell lets commands ignore an interrupt, which some tests send.
env --default-signal=INT,QUIT "$@" &
command=$!
watch $command "$stalled" &
watcher=$!
trap 'kill -TERM $command 2>/dev/null' TERM INT HUP
wait $command
status=$?
# A watcher that is ending the processes must come to the last of them.
[ -e "$stalled" ] || kill $watcher 2>/dev/null
wait $watcher 2>/dev/null
if [ -e "$stalled" ]; then
    rm -f "$stalled"
    status=124
fi
exit $status
