#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every command that writes a file, on a disk that is full, fails or loses names, and killed while it writes:
# what is there is the old output or the new one, never half of it; the error is told; and the next start of
# the same command removes what a killed one has left. The system calls are made to fail by strace. Not here:
# "mha prove --svg", which computes for long and writes as the others do.
#
#      test_broken_disk.sh PROGRAM [PATTERN]       PATTERN: only commands with such a name
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL
only=${2:-*}
pictures=$(realpath "$here/../../docs/images")
cd "$scratch" || exit 1

if ! command -v strace >/dev/null; then
    skip "all of it" "no strace"
    finish
    exit
elif ! strace -f -qq -e trace=write -e inject=write:error=ENOSPC:when=100 -o trace true 2>err; then
    skip "all of it" "strace may not trace here: $(head -n 1 err)"
    finish
    exit
fi

names=rename,renameat,renameat2

# begin: the folder "out" as it was before the command.
begin() {
    rm -rf out
    cp -r old out
}

# traced CALLS INJECTION ARGUMENT...: the program in "out", with system calls that fail. Signals are delivered
# only if strace stops the program at all of its calls.
traced() {
    local calls=$1 inject=$2 filter=--seccomp-bpf
    shift 2
    [[ $inject == *signal=* ]] && filter=
    (cd out && exec strace -f $filter -qq -e trace="$calls" ${inject:+-e inject="$inject"} -o ../trace \
        "$mha" "$@") >out.txt 2>err.txt </dev/null
    code=$?
    err=$(cat err.txt)
}

# is_complete FILE: a picture or table to its end, as a training writes them again and again.
is_complete() {
    case $1 in
    *.svg) [ "$(tail -n 1 "$1")" = "</svg>" ] ;;
    *.csv) awk -F , 'NR == 1 { columns = NF } NF != columns { exit 1 } END { exit NR < 2 }' "$1" &&
        [ -z "$(tail -c 1 "$1")" ] ;;
    esac
}

# whole WHAT: every output is the old one or the new one.
whole() {
    local unit
    for unit in "${units[@]}"; do
        diff -rq "out/$unit" "old/$unit" >diff 2>&1 || diff -rq "out/$unit" "new/$unit" >>diff 2>&1 ||
            { [[ " $growing " == *" $unit "* ]] && is_complete "out/$unit"; } ||
            { bad "$1: $unit is neither old nor new" "$(cat diff)" && return 1; }
    done
}

# finished: every output is the new one.
finished() {
    local unit
    for unit in "${units[@]}"; do
        diff -rq "out/$unit" "new/$unit" >diff 2>&1 || return 1
    done
}

# temporary: the number of files and folders under temporary names.
temporary() {
    find out -name '*.tmp' | wc -l
}

# fails WHAT CALLS ERROR N TEXT ARGUMENT...: the N-th of these calls fails. The command says so and leaves
# whole outputs and nothing else; or it has written all of them nevertheless, as a training does whose curve
# is drawn again later.
fails() {
    local what=$1 calls=$2 error=$3 n=$4 text=$5
    shift 5
    begin
    traced "$calls" "$calls:error=$error:when=$n" "$@"
    whole "$what" || return
    if [ "$(temporary)" -ne 0 ]; then
        bad "$what: something is left" "$(find out -name '*.tmp')"
    elif [ $code -eq 1 ] && [[ $err == *"$text"* || $err == *"standard output does not take it"* ]]; then
        stopped=$((stopped + 1))
        ok "$what"
    elif [ $code -eq 0 ] && finished && ! grep -qE '^[0-9]+ +write\(1,.*INJECTED' trace; then
        ok "$what, but all was written"
    else
        bad "$what: exit code $code" "wanted: $text" "got: $err"
    fi
}

# some COUNT: 1, 2, one in the middle, the last two
some() {
    printf '%s\n' 1 2 $(($1 / 2)) $(($1 - 1)) "$1" | awk -v count="$1" '$1 > 0 && $1 <= count' | sort -nu
}

# trial NAME ARGUMENT...: everything that can happen to a command, whose outputs are "units".
trial() {
    local name=$1 writes syncs call renames n left stopped=0
    shift
    # shellcheck disable=SC2053
    [[ $name == $only ]] || return
    begin
    traced "write,fsync,$names" "" "$@"
    rm -rf new
    cp -r out new
    writes=$(grep -c ' write(' trace) syncs=$(grep -c ' fsync(' trace)
    # Each of these calls is counted on its own: "rename:1", "rename:2", "renameat2:1".
    renames=$(for call in ${names//,/ }; do some "$(grep -c " $call(" trace)" | sed "s/^/$call:/"; done)
    if [ $code -ne 0 ] || [ "$syncs" -eq 0 ] || [ -z "$renames" ] || [ "$(temporary)" -ne 0 ]; then
        bad "$name: without a fault" "exit code $code, $writes writes, $syncs fsync; $renames" "$err"
        return
    fi
    for n in $(some "$writes"); do
        fails "$name: no space at write $n of $writes" write ENOSPC "$n" "No space left on device" "$@"
    done
    for n in 1 "$syncs"; do
        fails "$name: an error of fsync $n of $syncs" fsync EIO "$n" "Input/output error" "$@"
    done
    for n in $renames; do
        fails "$name: no new name by $n" "${n%:*}" EACCES "${n#*:}" "Permission denied" "$@"
    done
    [ $stopped -ge 3 ] && ok "$name: $stopped faults stopped it" || bad "$name: only $stopped faults stopped it"

    begin
    left=0
    for n in $(some "$writes" | sed 's/^/write:/') "fsync:$syncs" $renames; do
        traced "${n%:*}" "${n%:*}:signal=KILL:when=${n#*:}" "$@"
        [ $code -eq 137 ] || bad "$name: not killed at $n" "exit code $code" "$err"
        whole "$name: killed at $n" || return
        [ "$(temporary)" -gt 0 ] && left=$((left + 1))
        rm -f out/*.checkpoint.safetensors # which a training would not replace without being told to
    done
    (cd out && "$mha" "$@") >out.txt 2>err.txt </dev/null
    same "$name: after it was killed ($left times leaving something) the next one" "0 0" "$? $(temporary)"
    [ $left -gt 0 ] || bad "$name: no kill left anything, which proves nothing"
    diff -rq new out >diff && ok "$name: its files are those of the first" ||
        bad "$name: other files than at first" "$(cat diff)"
}

# ------------------------------------------------------------------ commands -----

# of UNIT...: the outputs of the next command, which are there already.
of() {
    units=("$@")
    growing=
    rm -rf old
    mkdir old
    for unit in "${units[@]}"; do
        mkdir -p "old/$(dirname "$unit")"
        echo old >"old/$unit"
    done
}

train_dull
model=(--model ../dull.safetensors)
small=(--width 16 --heads 2 --ff 16 --layers 2 --warm-up 1 --batch 2 --evaluate 1 --threads 1 --quiet)

of model.safetensors log.csv curve.svg
growing="log.csv curve.svg"
trial train train -o model.safetensors "${small[@]}" --steps 4 --checkpoint-every 2 --log log.csv --curve curve.svg \
    --force
of a.svg
trial demo demo --svg a.svg
trial translate translate "${model[@]}" --svg a.svg "the cat sleeps"
of a.html
trial view view "${model[@]}" -o a.html "the cat sleeps"
of a.svg a.tex
trial show show "${model[@]}" --svg a.svg --tikz a.tex "the cat sleeps"
of a.svg
trial ablate ablate "${model[@]}" --sentences 1 --threads 1 --svg a.svg
of a.safetensors a.svg
trial prune prune "${model[@]}" --keep 10 --sentences 1 --threads 1 -o a.safetensors --curve a.svg

of table.csv a.svg a.csv
growing=table.csv
trial sweep sweep --heads 1,2 --width 16 --seeds 1 --data 8 --steps 2 --evaluate 2 --threads 1 -o table.csv \
    --svg a.svg --log a.csv --force

of a.svg
if "$mha" conv "$pictures/cat.png" --kernel edge --figure first.svg >out.txt 2>err.txt; then
    of a.png a.svg
    trial conv conv "$pictures/cat.png" --kernel edge -o a.png --figure a.svg
    of s/truth.json s/test-000000.png s/test-000001.png s/test-000001-shapes.png
    trial scenes scenes --split test --count 2 -o s
    of m/config.json m/model.safetensors m/preprocessor_config.json
    seer=(--scenes --detect --width 32 --heads 2 --ff 32 --layers 1 --patch 10 --batch 8 --queries 4 --evaluate 2)
    trial "train --scenes" train "${seer[@]}" --steps 2 --quiet --threads 1 -o m --force
    "$mha" train "${seer[@]}" --steps 2 --quiet -o seer >out.txt
    "$mha" scenes --count 1 -o scenes >out.txt
    of boxes.png heads.svg
    trial see see ../scenes/train-000000.png --model ../seer --least 0 --boxes boxes.png --heads heads.svg
else
    skip "pictures" "$(head -n 1 err.txt)"
fi

if command -v python3 >/dev/null && python3 "$here/tiny_models.py"; then
    printf 'the cat sleeps\nthe dog\n' >texts.txt
    of a.npy
    trial embed embed --model ../bert --threads 1 --npy a.npy "the cat sleeps"
    of small/config.json small/other.txt
    units=(small)
    trial "prune of a folder" prune --model ../bert --texts ../texts.txt --keep 3 --threads 1 -o small --replace
else
    skip "models of other programs" "no python3"
fi

finish
