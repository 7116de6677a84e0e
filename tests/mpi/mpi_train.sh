#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# mpi_train.sh MHA PROGRAM MPI: "mha-mpi train" writes the model of "mha train", byte for byte, on any
# number of ranks, of the laboratory, pairs, pictures, and scenes with captions or boxes; also after it was
# stopped and resumed on another number. An error on one rank ends all with one code and one message.
set -u
mha=$(readlink -f "$1") program=$(readlink -f "$2") mpi=$3
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0
skipped=0
head -n 60 "$here/../data/everyday.tsv" >"$scratch/pairs.tsv"
head -n 8 "$here/../data/everyday.tsv" >"$scratch/valid.tsv"
cd "$scratch" || exit 1

# Small models; head dropout, replaced words and an average, since these have random numbers or state.
# A step has fewer pairs than micro-batches from time to time.
small=(--width 16 --heads 2 --ff 32 --layers 1 --threads 1 --evaluate 8 --head-dropout 0.1 --ema 0.9)
laboratory=("${small[@]}" --steps 8 --batch 12 --micro-batches 5)
pairs=("${small[@]}" --steps 8 --pairs pairs.tsv --valid valid.tsv --vocabulary 320 --batch-tokens 100
    --micro-batches 6 --translate 0)

ranks() { # COUNT ARGUMENT...: mha-mpi train on so many ranks
    local count=$1
    shift
    "$here/mpi_job.sh" "$mpi" "$count" 100 "$program" train "$@" >out 2>err
    status=$?
}

verdict() { # NAME: by the status of the command before
    if [ $? -eq 0 ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1: exit code $status"
        sed 's/^/    /' out err
        failed=$((failed + 1))
    fi
}

# stopped COUNT SIGNAL ARGUMENT...: training that a signal to one of the ranks ends
stopped() {
    local count=$1 signal=$2 job=0 n
    shift 2
    rm -f err
    "$here/mpi_job.sh" "$mpi" "$count" 100 "$program" train "$@" >out 2>err &
    job=$!
    for ((n = 0; n < 600; n++)); do
        grep -qs "^step" err && break
        sleep 0.1
    done
    pkill -"$signal" -n -f "^$program train .* -o $scratch/" || echo "no rank to stop" >>err
    wait $job
    status=$?
}

"$mha" train "${laboratory[@]}" -o one.safetensors >/dev/null 2>&1 &&
    "$mha" train "${pairs[@]}" -o one >/dev/null 2>&1
status=$?
[ $status -eq 0 ]
verdict "one process alone"
for count in 1 2 4; do
    ranks $count "${laboratory[@]}" -o some.safetensors --force
    [ $status -eq 0 ] && cmp one.safetensors some.safetensors && [ "$(grep -c '^step 8/8' err)" -eq 1 ]
    verdict "the same file from $count ranks"
done
ranks 3 "${pairs[@]}" -o some
[ $status -eq 0 ] && diff -r one some
verdict "the same folder from 3 ranks"
ranks 8 "${laboratory[@]}" -o some.safetensors --force
[ $status -eq 0 ] && cmp one.safetensors some.safetensors && grep -q "only 5 of 8 processes have work" err
verdict "more ranks than parts"

# Pictures: every choice that a step draws for them. Scenes are drawn anew for every step.
pictures=(--width 16 --heads 2 --ff 32 --layers 1 --threads 1 --evaluate 8 --steps 4 --batch 8 --micro-batches 3
    --patch 6 --head-dropout 0.1 --ema 0.9)
images=(--images idx "${pictures[@]}" --crop 1 --flip 0.5 --erase 0.3 --mix-up 0.5)
captions=(--scenes "${pictures[@]}")
boxes=(--scenes --detect --queries 4 "${pictures[@]}")
kinds=(images captions boxes)
if ! python3 "$here/../program/picture_sets.py"; then
    echo "skip a training on pictures: python3 does not make them"
    skipped=1
    kinds=(captions boxes)
fi
for kind in "${kinds[@]}"; do
    declare -n options=$kind
    "$mha" train "${options[@]}" -o "$kind" >/dev/null 2>&1
    for count in 1 2 3; do
        ranks $count "${options[@]}" -o "$kind-$count"
        [ $status -eq 0 ] && diff -r "$kind" "$kind-$count" && [ "$(grep -c '^step 4/4' err)" -eq 1 ]
        verdict "the same folder of $kind from $count ranks"
    done
done

# More steps, so that there is time to stop them. The settings are those of the whole training.
long=("${laboratory[@]}" --steps 800 --batch 5 --evaluate 1)
"$mha" train "${long[@]}" -o one.safetensors --force >/dev/null 2>&1
stopped 3 TERM "${long[@]}" -o "$scratch/long.safetensors"
[ $status -eq 143 ] && [ -f long.checkpoint.safetensors ] && [ ! -f long.safetensors ] &&
    [ "$(grep -c 'stopped after step' err)" -eq 1 ]
verdict "a signal to one rank stops all, with a checkpoint"
ranks 2 --resume -o "$scratch/long.safetensors" --threads 1 --evaluate 1
[ $status -eq 0 ] && cmp one.safetensors long.safetensors && [ ! -f long.checkpoint.safetensors ]
verdict "the same file after resuming on another number of ranks"

ranks 3 "${laboratory[@]}" -o one.safetensors
[ $status -eq 1 ] && [ "$(grep -c 'the model one.safetensors exists' err)" -eq 1 ]
verdict "an existing model is refused, once"
ranks 3 --width nonsense
[ $status -eq 2 ] && [ "$(grep -c 'not a valid value' err)" -eq 1 ]
verdict "a bad option is refused, once"
# What only one rank meets: its pairs are different ones, or not there.
cat >different.sh <<END
#!/bin/sh
case "\${OMPI_COMM_WORLD_RANK-}\${PMI_RANK-}" in
2) exec "$program" train "\$WHAT" "\$ODD" "\$@" ;;
*) exec "$program" train "\$WHAT" "\$EVEN" "\$@" ;;
esac
END
chmod +x different.sh
export WHAT=--pairs EVEN=pairs.tsv
rest=("${small[@]}" --steps 8 --valid valid.tsv --tokenizer one/tokenizer.json --batch-tokens 100 --micro-batches 6
    --translate 0 -o other)
ODD=nowhere.tsv "$here/mpi_job.sh" "$mpi" 3 100 ./different.sh "${rest[@]}" >out 2>err
status=$?
[ $status -eq 1 ] && [ "$(grep -c 'nowhere.tsv' err)" -eq 1 ]
verdict "an error on one rank ends all, and is told"
ODD=valid.tsv "$here/mpi_job.sh" "$mpi" 3 100 ./different.sh "${rest[@]}" >out 2>err
status=$?
[ $status -eq 1 ] && [ "$(grep -c 'do not have the same settings, files' err)" -eq 1 ]
verdict "ranks with different files are refused"
if [ $skipped -eq 0 ]; then
    python3 - <<'END'
from pathlib import Path
Path("odd").mkdir()
for file in Path("idx").iterdir():
    data = bytearray(file.read_bytes())
    if "train-images" in file.name:
        data[-1] ^= 1
    (Path("odd") / file.name).write_bytes(data)
END
    WHAT=--images EVEN=idx ODD=odd "$here/mpi_job.sh" "$mpi" 3 100 ./different.sh "${pictures[@]}" -o other >out 2>err
    status=$?
    [ $status -eq 1 ] && [ "$(grep -c 'do not have the same settings, files' err)" -eq 1 ]
    verdict "a set with one other pixel on one rank is refused"
fi
echo "mpi_train: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
