#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The heat maps: on every kind of terminal, of every width, for any text.
. "$(dirname "$0")/harness.bash"
escape=$(printf '\033')

# The numbers are the same on every machine to all digits shown, so the picture is too.
export COLUMNS=80 MHA_ISA=c
exits 0 demo
golden demo
says "demo: what to type next, as the program was called" "$out" "  $mha demo --causal  "
silent "demo: nothing on stderr" "$err"
exits 0 demo --causal --heads 4
golden demo_causal
LC_ALL=C exits 0 demo --heads 2
golden demo_ascii
unset MHA_ISA
export LC_ALL=C.UTF-8

case $("$mha" demo) in
*"$escape"*) bad "no colours in a pipe" ;;
*) ok "no colours in a pipe" ;;
esac
export CLICOLOR_FORCE=1
says "256 colours" "$("$mha" demo)" "${escape}[48;5;"
says "true colour" "$(COLORTERM=truecolor "$mha" demo)" "${escape}[48;2;"
says "16 colours" "$(TERM=xterm "$mha" demo)" "${escape}[4"
for setting in NO_COLOR=1 TERM=dumb CLICOLOR_FORCE=0; do
    case $(env "$setting" "$mha" demo) in
    *"$escape"*) bad "no colours with $setting" ;;
    *) ok "no colours with $setting" ;;
    esac
done
unset CLICOLOR_FORCE

# widest FILE: columns of the widest line (all characters here are one column wide).
widest() {
    awk '{ if (length($0) > w) w = length($0) } END { print w }' "$1"
}
for width in 40 60 80 100 160 200; do
    COLUMNS=$width LC_ALL=C run demo
    sed '/^Multi-head/,/^$/d; /words at a time/,$d' "$scratch/out" >"$scratch/maps"
    if [ "$(widest "$scratch/maps")" -le $width ]; then
        ok "maps fit in $width columns"
    else
        bad "maps take $(widest "$scratch/maps") of $width columns"
    fi
done

COLUMNS=80
exits 0 demo --sentence "ein Wort"
exits 0 demo --sentence "eins"
exits 0 demo --sentence "Übergrößenträger naïve 東京 مرحبا"
says "text in other scripts" "$out" "東京"
exits 0 demo --sentence "$(printf 'bad \033[31m bytes \377\376 \302 here')"
case $out in
*"$escape"*) bad "control characters stay out" ;;
*) ok "control characters stay out" ;;
esac
exits 0 demo --heads 64 --seed 0xffffffffffffffff
exits 0 demo --sentence "$(printf 'word%d ' $(seq 64))"

exits 0 demo --svg "$scratch/heads.svg" --sentence 'a <b> & "c"'
silent "svg: nothing on stdout" "$out"
says "svg: is one" "$(cat "$scratch/heads.svg")" "<svg xmlns="
says "svg: words are escaped" "$(cat "$scratch/heads.svg")" "&lt;b&gt;"
if command -v python3 >/dev/null; then
    if python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' "$scratch/heads.svg"; then
        ok "svg: well formed"
    else
        bad "svg: well formed"
    fi
else
    skip "svg: well formed" "no python3"
fi

finish
