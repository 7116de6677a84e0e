#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_teach.sh MHA TOOLS BROWSER: the views that explain, in a browser. TOOLS is the folder whose
# node_modules has playwright-core and axe-core.
set -u
mha=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait; rm -rf "$scratch"' EXIT
export MHA_MODEL=$scratch/dull.safetensors

give_up() {
    echo "FAIL $1"
    echo "test_teach: 0 passed, 1 failed, 0 skipped"
    exit 1
}

"$mha" train -o "$MHA_MODEL" --width 16 --heads 4 --ff 24 --layers 2 --steps 2 --warm-up 1 \
    --batch 2 --evaluate 1 --quiet >"$scratch/log" 2>&1 || give_up "no model: $(cat "$scratch/log")"
cd "$scratch" || exit 1
text="our aunt will be lazy tomorrow"
hostile='</script><script>window.broken=1</script><img src=x onerror="window.broken=1">'
{
    printf '# %s\n## %s\n@ view=model\n%s\n' "$hostile" "$hostile" "$hostile"
    printf '## Long\n@ view=compute&step=%s&heads=%s\n' "$hostile" "$hostile"
    head -c 3000 /dev/zero | tr '\0' 'x'
    printf '\n## Impossible\n@ view=constructor&layer=99999999999&kind=__proto__\n'
} >lecture.txt
{
    "$mha" view -o page.html --to "notre tante sera paresseuse demain" "$text" &&
        "$mha" view -o second.html --layer 2 --study 0 "$text" "our black cat will be lazy" &&
        "$mha" view -o fox.html --study 0 "The quick brown fox jumps" &&
        "$mha" view --model lab -o lab.html --study 0 "The quick brown fox jumps" &&
        "$mha" view -o without.html --layer 0 --study 0 "$text" &&
        "$mha" view -o hostile.html --study 0 --lecture lecture.txt "$text" &&
        "$mha" view -o unknown.html --study 0 "our aunt will be zyx" &&
        "$mha" show --json --study 0 --to "notre tante sera paresseuse demain" "$text" >show.json
} >log 2>&1 || give_up "no page: $(cat log)"
"$mha" serve >address 2>serve.log &
server=$!
while [ ! -s address ] && kill -0 $server 2>/dev/null; do
    sleep 0.1
done
grep -q "built without libmicrohttpd" serve.log || [ -s address ] ||
    give_up "no server: $(cat serve.log)"
node "$here/test_compute.mjs" "$2" "$3" page.html second.html without.html fox.html \
    lab.html show.json "$(cat address)"
status=$?
node "$here/test_teach.mjs" "$2" "$3" "$here/../../src/page/web" page.html hostile.html \
    unknown.html "$(cat address)" || status=1
exit $status
