#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha train: what it refuses, what it leaves behind, and that stopping it loses nothing.
. "$(dirname "$0")/harness.bash"
cd "$scratch" || exit 1

small=(--width 16 --heads 2 --ff 16 --layers 1 --batch 4 --evaluate 20)

# there FILE..., gone FILE...
there() {
    local file
    for file; do
        if [ -s "$file" ]; then ok "there is $file"; else bad "there is no $file"; fi
    done
}
gone() {
    local file
    for file; do
        if [ -e "$file" ]; then bad "there is $file"; else ok "there is no $file"; fi
    done
}

# same_files NAME FILE FILE: to the bit.
same_files() {
    if cmp "$2" "$3" >difference 2>&1; then ok "$1"; else bad "$1" "$(cat difference)"; fi
}

# interrupted SIGNAL ARGUMENT...: run the program until its log is there, then send the signal;
# afterwards $code and $err are what came of it. Only with job control does a shell start background
# jobs that listen to it.
interrupted() {
    local signal=$1 job
    shift
    rm -f watched.csv
    set -m
    "$mha" "$@" --log watched.csv >out 2>err </dev/null &
    job=$!
    await watched.csv $job
    kill -"$signal" $job
    wait $job 2>/dev/null
    code=$?
    set +m
    err=$(cat err)
}

# ------------------------------------------------------------ what is refused

exits 2 train --widht 16
says "an unknown option: a suggestion" "$err" "did you mean --width?"
exits 2 train -x
exits 2 train -o
says "no model" "$err" "-o needs a value: -o FILE"
exits 2 train extra
exits 2 train --width many
says "a width that is no number" "$err" "--width many: not a valid value"
exits 2 train --heads 7
says "heads that do not divide the width" "$err" "multiple"
exits 2 train --steps 0
says "no steps" "$err" "train: --steps 0: a training must have from 1 to"
exits 2 train --batch 0
says "no pairs" "$err" "train: --batch 0: a step must have from 1 to"
exits 2 train --warm-up 20000
says "too long a warm-up" "$err" "warm-up 20000"
exits 2 train --dropout 1
says "a dropout that drops all" "$err" "dropout 1"
exits 2 train --lr -1
exits 2 train --layers 2 --encoder-layers 3
says "layers twice" "$err" "leave out --encoder-layers"
exits 2 train --layers 17
exits 2 train --type i8
says "a type that is none" "$err" "f16 or f32"
for every in 0 -1 x 5x 1.5 m; do
    exits 2 train --checkpoint-every "$every"
done
says "a time that is none" "$err" "give minutes as in 5m, or steps as in 500"
exits 2 train -o a --checkpoint a
says "two files in one place" "$err" "a is given for two different files"
exits 1 train
says "no folder for the model" "$err" "models/lab-en-fr.safetensors: there is no such folder"
exits 1 train -o .
exits 1 train -o model --curve nowhere/curve.svg
says "no folder for the curve" "$err" "nowhere/curve.svg: there is no such folder"
exits 1 train -o model --resume
says "no checkpoint" "$err" "there is no checkpoint model.checkpoint.safetensors to resume from"
export MHA_ISA=pdp11
exits 1 train -o model
says "MHA_ISA that cannot run" "$err" "MHA_ISA=pdp11"
unset MHA_ISA
if [ -z "$(ls -A | grep -vE '^(out|err|diff)$')" ]; then
    ok "nothing was left behind"
else
    bad "something was left behind" "$(ls -A)"
fi

# -------------------------------------------------------- what is left behind

exits 0 train -o one.safetensors "${small[@]}" --steps 20 --curve curve.svg --log log.csv --threads 1
there one.safetensors curve.svg log.csv
gone one.checkpoint.safetensors
says "a report" "$out" "one.safetensors: "
says "how many sentences are right" "$out" "of 20 of the validation set"
says "what to try next" "$out" "translate --model one.safetensors"
says "progress" "$err" "step 20/20  loss "
says "progress: words right" "$err" "words right"
says "a line for every step" "$(wc -l <log.csv)" "21"
says "the log" "$(head -n 1 log.csv)" "step,learning_rate,loss,valid_loss,valid_words_right"
if command -v python3 >/dev/null; then
    says "the curve is XML" "$(python3 -c '
import xml.dom.minidom
lines = xml.dom.minidom.parse("curve.svg").getElementsByTagName("polyline")
print(*(len(line.getAttribute("points").split()) for line in lines))' 2>&1)" "20 20"
fi
for threads in 2 3; do
    exits 0 train --force -o two.safetensors "${small[@]}" --steps 20 --quiet --threads $threads
    silent "quiet: nothing on stderr" "$err"
    same_files "the same model with $threads threads" one.safetensors two.safetensors
done
exits 2 train -o x.safetensors --checkpoint ./x.safetensors "${small[@]}" --steps 3
says "two files in one place" "$err" "is given for two different files"
mkfifo pipe
ln -s one.safetensors link
for other in pipe link; do
    exits 1 train --force -o $other "${small[@]}" --steps 3
    says "no file: $other" "$err" "only regular files are replaced"
done
if [ -p pipe ] && [ -L link ]; then ok "pipes and links stay"; else bad "pipes and links are gone"; fi
exits 2 train -o x.safetensors "${small[@]}" --dropout 0.999999
says "too much dropout" "$err" "dropout 0.999999: it must be from 0 to 0.999"
exits 2 train -o x.safetensors "${small[@]}" --seed " 5"
exits 1 train -o two.safetensors "${small[@]}" --steps 20 --seed 2 --quiet
says "a model that is there" "$err" "the model two.safetensors exists. Write another with -o FILE"
same_files "a model that is there stays" one.safetensors two.safetensors
exits 1 train -o two.safetensors --resume
says "a training that is done" "$err" "there is no checkpoint two.checkpoint.safetensors"
exits 0 train --force -o two.safetensors "${small[@]}" --steps 20 --seed 2 --quiet
if cmp -s one.safetensors two.safetensors; then bad "another seed"; else ok "another seed"; fi
exits 0 train --force -o two.safetensors "${small[@]}" --steps 20 --type f32 --quiet
exits 0 tensors two.safetensors
says "a model of f32" "$out" "F32          [432,16]"
says "a model says what it was trained with" "$out" "training.steps = 20"
exits 1 train -o three.safetensors "${small[@]}" --steps 20 --lr 1e30 --clip 0 --quiet
says "a training that diverges" "$err" "diverged: the loss of step 2 is not a number"
says "a training that diverges: what to do" "$err" "a lower --lr (it was 1e+30)"
gone three.safetensors three.checkpoint.safetensors
exits 1 train -o three.safetensors "${small[@]}" --steps 20 --lr 1e30 --clip 0 --quiet \
    --checkpoint-every 1
says "a training that diverges: its checkpoint" "$err" "--resume would diverge at the same step: delete it"
rm three.checkpoint.safetensors

# Numbers that f16 does not have.
large=("${small[@]}" --steps 3 --lr 3e5 --warm-up 0 --weight-decay 0 --quiet)
exits 1 train -o large.safetensors "${large[@]}"
says "too large for f16: where" "$err" 'of "encoder.embed_tokens.weight" is 300000: not a finite F16'
says "too large for f16: what to do" "$err" '"--resume --type f32" writes the model as it is'
there large.checkpoint.safetensors
exits 1 train -o large.safetensors --evaluate 20 --resume --quiet
says "too large for f16: once more" "$err" "the largest f16 value is 65504"
exits 0 train -o large.safetensors --evaluate 20 --resume --type f32 --quiet
there large.safetensors
gone large.checkpoint.safetensors
exits 1 train -o larger.safetensors "${small[@]}" --steps 1 --lr 1e300 --warm-up 0 --type f32 --quiet
says "too large for f32" "$err" "start again with a lower --lr"
rm larger.checkpoint.safetensors

# -------------------------------------------------------------------- stopped

long=("${small[@]}" --steps 3000)
exits 0 train -o whole.safetensors "${long[@]}" --quiet --log whole.csv
interrupted INT train -o stopped.safetensors "${long[@]}"
if [ "$code" -eq 130 ]; then ok "interrupt: exit code 130"; else bad "interrupt: exit code $code"; fi
says "interrupt: what became of it" "$err" "of 3000, saved in stopped.checkpoint.safetensors"
says "interrupt: how to go on" "$err" "$mha train -o stopped.safetensors"
says "interrupt: with --resume" "$err" "--log watched.csv --resume"
there stopped.checkpoint.safetensors
gone stopped.safetensors
exits 1 train -o stopped.safetensors "${long[@]}"
says "a checkpoint is not overwritten" "$err" "Continue with --resume"
exits 2 train -o stopped.safetensors --lr 1 --resume
says "other settings than the checkpoint's" "$err" "--lr 1: the checkpoint was made with 0.0"
exits 2 train -o stopped.safetensors --layers 2 --resume
says "other layers than the checkpoint's" "$err" "--encoder-layers 2: the checkpoint was made with 1"

cp stopped.checkpoint.safetensors sound
head -c 100000 sound >stopped.checkpoint.safetensors
exits 1 train -o stopped.safetensors --resume
says "a checkpoint that was cut off" "$err" "stopped.checkpoint.safetensors: MetadataIncompleteBuffer"
cp one.safetensors stopped.checkpoint.safetensors
exits 1 train -o stopped.safetensors --resume
says "a checkpoint that is none" "$err" "not a checkpoint of a training"
cp sound stopped.checkpoint.safetensors

interrupted TERM train -o stopped.safetensors "${long[@]}" --resume --checkpoint-every 7
if [ "$code" -eq 143 ]; then ok "SIGTERM: exit code 143"; else bad "SIGTERM: exit code $code" "$err"; fi
says "resumed: where" "$err" "resumed from stopped.checkpoint.safetensors after step"
exits 0 train -o stopped.safetensors --evaluate 20 --resume --log resumed.csv --threads 2
same_files "stopped twice, and yet the same model" whole.safetensors stopped.safetensors
same_files "the same losses" whole.csv resumed.csv
gone stopped.checkpoint.safetensors

# Another instruction set goes on, and says what that means.
interrupted INT train -o other.safetensors "${long[@]}"
exits 0 tensors other.checkpoint.safetensors
# The bits of a training depend on the base of the instruction set: its name without an extension.
isa=$("$mha" version | sed -nE 's/^isa *(avx512|avx2|neon|c).*/\1/p')
says "a checkpoint says what made it" "$out" "isa = $isa"
exits 1 translate --model other.checkpoint.safetensors "he sleeps"
says "a checkpoint is no model" "$err" 'a checkpoint, not a model: "mha train --resume" makes a model from it'
cp other.checkpoint.safetensors kept
exits 0 train -o other.safetensors --evaluate 20 --resume --quiet
silent "resumed on the same instruction set: nothing to say" "$err"
if [ "$isa" = c ]; then
    skip "another instruction set" "there is only one"
else
    export MHA_ISA=c
    exits 0 train -o c.safetensors --checkpoint kept --evaluate 20 --resume --quiet
    unset MHA_ISA
    says "another instruction set" "$err" "the checkpoint was made with $isa, but this is c"
fi
rm -f kept

# Two at once; and a lock that someone left who was killed.
set -m
"$mha" train -o busy.safetensors "${small[@]}" --steps 1000000 --log busy.csv >out 2>err </dev/null &
job=$!
await busy.csv $job
for arguments in "-o busy.safetensors" "-o ./busy.safetensors --checkpoint free --force" \
    "-o free.safetensors --checkpoint busy.checkpoint.safetensors" "-o busy.safetensors --resume"; do
    # shellcheck disable=SC2086
    exits 1 train $arguments "${small[@]}" --steps 3
    says "two at once: $arguments" "$err" "another training, process $job, is going to write"
done
kill -KILL $job
wait $job 2>/dev/null
set +m
there busy.safetensors.lock
gone free.safetensors free free.lock free.safetensors.lock
for file in busy.safetensors.12-0.tmp busy.checkpoint.safetensors.345678-3.tmp busy.safetensors.my.tmp; do
    echo unfinished >$file
done
exits 0 train -o busy.safetensors "${small[@]}" --steps 3 --quiet
silent "a stale lock" "$err"
gone busy.safetensors.lock busy.checkpoint.safetensors.lock
gone busy.safetensors.12-0.tmp busy.checkpoint.safetensors.345678-3.tmp
there busy.safetensors.my.tmp
rm -f *.lock
ln -s one.safetensors locked.safetensors.lock
exits 1 train -o locked.safetensors "${small[@]}" --steps 3
says "a lock that is a link" "$err" "cannot lock locked.safetensors.lock"
there one.safetensors

# The folder of the model is gone when it is to be written.
mkdir folder
set -m
"$mha" train -o folder/model "${long[@]}" --checkpoint kept --log begun.csv >out 2>err </dev/null &
job=$!
await begun.csv $job
rm -r folder
wait $job 2>/dev/null
code=$?
set +m
if [ $code -eq 1 ]; then ok "no place for the model: exit code 1"; else bad "exit code $code"; fi
says "no place for the model: told" "$(cat err)" "--resume tries to write the model again"
there kept
mkdir folder
exits 0 train -o folder/model --checkpoint kept --resume --evaluate 20 --quiet
same_files "written after all" folder/model whole.safetensors
gone kept

finish
