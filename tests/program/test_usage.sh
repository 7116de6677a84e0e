#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Help, exit codes and messages of every command.
. "$(dirname "$0")/harness.bash"

exits 0 --help
golden help
exits 0 help
golden help
exits 0 -h
golden help
exits 0 help words
golden help_words
exits 0 words
golden help_words
for command in bleu demo verify bench explain prove conv tensors corpus scenes train see sweep translate version; do
    exits 0 help $command
    golden help_$command
    exits 0 $command --help
    golden help_$command
    silent "help of $command says nothing on stderr" "$err"
done

# Completions know every command and its options; bash's can be asked.
completions=$here/../../completions
# shellcheck source=/dev/null
. "$completions/mha.bash"
# offered WORD...: what bash offers for the last of these words.
offered() {
    COMP_WORDS=(mha "$@") COMP_CWORD=$# COMP_LINE="mha $*" COMP_POINT=0
    COMP_POINT=${#COMP_LINE}
    _mha 2>/dev/null
    printf ' %s' "${COMPREPLY[@]}" ''
}
names=$("$mha" help | sed -n 's/^  \([a-z]\{3,9\}\)  .*/\1/p')
for command in $names; do
    says "bash completes $command" "$(offered "")" " $command "
    grep -q "^        ['\"]$command:" "$completions/_mha" || bad "zsh completes $command"
    grep -q -- "-a $command -d" "$completions/mha.fish" || bad "fish completes $command"
    missing=
    for option in $("$mha" help "$command" | sed -n 's/^  \(--\{0,1\}[a-z][a-z-]*\) .*/\1/p'); do
        [ "$option" != --help ] || continue
        case $option in --*) fish="-l ${option#--}" ;; *) fish="-s ${option#-}" ;; esac
        case "$(offered "$command" -)" in *" $option "*) ;; *) missing+=" bash:$option" ;; esac
        sed -n "/^    $command)/,/;;/p" "$completions/_mha" | grep -q -- "['\"]$option" ||
            missing+=" zsh:$option"
        grep -q -- "subcommand_from[a-z ]* $command[ \"].* $fish " "$completions/mha.fish" ||
            missing+=" fish:$option"
    done
    case $command in words | help) missing= ;; esac
    silent "completions know the options of $command" "$missing"
done

exits 2
silent "no command: nothing on stdout" "$out"
says "no command: the help on stderr" "$err" "Usage: mha COMMAND"
exits 2 verfy
says "unknown command: a suggestion" "$err" 'did you mean "verify"?'
silent "unknown command: nothing on stdout" "$out"
exits 2 xyzzy
says "unknown command: the way to help" "$err" 'see "mha --help"'
exits 0 help help
golden help
exits 2 hepl
says "unknown command: a topic of the help" "$err" 'did you mean "help"?'
exits 2 help bnech
says "unknown topic: a suggestion" "$err" 'did you mean "bench"?'
exits 2 --nonsense
exits 2 verify --cofnigs 3
says "unknown option: a suggestion" "$err" "did you mean --configs?"
exits 2 verify -x
exits 2 verify --configs
says "option without value" "$err" "--configs needs a value: --configs N"
exits 2 verify --configs many
says "option with a wrong value" "$err" "not a number from 1 to"
exits 2 verify --configs 0
exits 2 verify --configs=99999999999999999999
exits 2 verify --seed -1
exits 2 verify --json=yes
says "flag with a value" "$err" "--json takes no value"
exits 2 verify extra
says "a word too many" "$err" "one word too many"
exits 2 verify --threads 0
exits 2 verify --case 1:x
exits 2 verify --case l4d4:causla
says "wrong word: a suggestion" "$err" 'did you mean "causal"?'
exits 2 verify --case l4d4 --configs 3
says "an option that would do nothing" "$err" "--configs goes with a series; --case is one problem"
exits 2 verify --case 1:2 --seed 3
says "a seed that would do nothing" "$err" "--seed goes with a series"
exits 0 verify --case l4d4 --seed 3
exits 2 bench
says "bench without words" "$err" "nothing to measure; give a WORD"
exits 2 bench --table l4d4
says "a section that is none: those there are" "$err" "there are operator, gradients, linear, layer and model"
exits 2 bench --table layers
says "a section that is none: a suggestion" "$err" 'did you mean "layer"?'
exits 2 bench --preset
exits 2 bench --preset gpt-3
says "unknown preset: a suggestion" "$err" 'no preset "gpt-3"; did you mean "gpt3"?'
exits 2 bench --preset gpt3 l4d4
says "preset and word" "$err" "--preset has its own words; leave out l4d4"
exits 2 bench --preset gpt3 --table
exits 2 bench liner:m1n1k1
says "bench: a kind of word that is none" "$err" 'did you mean "linear"?'
exits 2 bench layer:bert:l4
says "bench: a preset that is none" "$err" 'did you mean "bert-base"?'
exits 2 verify --case layer:bert-base:l4
says "verify: a layer word" "$err" "layer words are for bench and explain"
exits 2 verify --case l4d4:grad
says "verify: a backward pass" "$err" "grad is for bench and explain"
exits 2 verify --case l4d4:dropout=0.5
says "verify: dropout" "$err" "dropout is for bench and explain"
exits 2 bench l4d4:f64:grad
says "bench: a backward pass in f64" "$err" "grad is for f32, f16 and bf16"
exits 2 bench --rounds 3 l4d4
says "too few rounds" "$err" "not a number from 15"
exits 2 bench l4d4x
says "bench: wrong word" "$err" "'x' is none of the extents"
exits 2 bench l99999999999d4
says "an extent too large: which" "$err" "'l' is at most"
exits 2 bench l4d2000
says "a head too wide: which" "$err" "'d': a head is at most"
exits 2 bench l4d4:window=3:window=4
says "a suffix twice" "$err" "window was given before"
exits 2 bench l4d4:mask=add:mask=add
says "a mask twice" "$err" "given before"
exits 2 explain
says "a word that is missing: which" "$err" "explain: WORD is missing; usage: mha explain"
exits 2 show
says "a sentence that is missing" "$err" "show: TEXT is missing"
exits 2 tensors
says "a file that is missing" "$err" "tensors: FILE is missing"
exits 2 conv
says "a picture that is missing" "$err" "conv: IN.png is missing"
exits 2 explain l4d4 l4d4
exits 2 explain l4s5d4:causal
says "explain: what is missing" "$err" "add br"
exits 2 demo --heads 3
exits 2 demo --sentence " "
exits 2 demo --sentence "$(printf 'word %.0s' $(seq 65))"
exits 1 demo --svg /nonexistent/heads.svg
exits 0 explain -- l4d4
exits 2 explain --json -- --json

export MHA_NUM_THREADS=many
exits 2 verify --configs 1
says "MHA_NUM_THREADS that is no number" "$err" "MHA_NUM_THREADS=many is not a number of threads"
unset MHA_NUM_THREADS
export OMP_NUM_THREADS=2,1
exits 0 verify --configs 1
says "OMP_NUM_THREADS counts" "$out" "2 threads"
export MHA_NUM_THREADS=1
exits 0 verify --configs 1
says "MHA_NUM_THREADS counts before it" "$out" "1 thread,"
exits 0 verify --configs 1 --threads 3
says "--threads counts before both" "$out" "3 threads"
unset OMP_NUM_THREADS MHA_NUM_THREADS

export MHA_ISA=pdp11
for arguments in version "verify --configs 1" "bench l4d4" "bench --table" "explain l4d4" demo \
    "bench --preset gpt3" "explain layer:gpt3:l4"; do
    # shellcheck disable=SC2086
    exits 1 $arguments
    says "MHA_ISA that cannot run: a message" "$err" "MHA_ISA=pdp11"
    silent "MHA_ISA that cannot run: nothing on stdout" "$out"
done
exits 0 --help
export MHA_ISA=c
exits 0 version
says "MHA_ISA=c" "$out" "isa       c"
unset MHA_ISA

# A reader that goes away ends the program quietly; a full disk is an error.
"$mha" demo 2>"$scratch/err" | head -n 1 >/dev/null
silent "closed pipe: no complaint" "$(cat "$scratch/err")"
if [ -w /dev/full ]; then
    "$mha" version >/dev/full 2>"$scratch/err"
    code=$?
    if [ $code -eq 1 ]; then ok "full disk: exit code 1"; else bad "full disk: exit code $code"; fi
    says "full disk: a message" "$(cat "$scratch/err")" "cannot write"
else
    skip "full disk" "no /dev/full"
fi

# An interrupt ends it as a shell expects: 128 + 2. Only with job control does a shell start
# background jobs that listen to it.
set -m
"$mha" verify --configs 1000000 >/dev/null 2>&1 &
job=$!
while kill -INT $job 2>/dev/null; do # the first may come before the program has started
    sleep 0.1
done
wait $job 2>/dev/null
code=$?
set +m
if [ $code -eq 130 ]; then ok "interrupt: exit code 130"; else bad "interrupt: exit code $code"; fi

finish
