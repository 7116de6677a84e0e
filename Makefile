# SPDX-License-Identifier: MIT
#
# The short commands. CMake does the building (see CMakePresets.json), scripts/ the rest.

prefix ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)

ifneq ($(shell command -v ninja),)
export CMAKE_GENERATOR ?= Ninja
endif

.DEFAULT_GOAL := build
.PHONY: wasm site build run check test bench bench-mpi bench-peers soak fuzz coverage mutation format lint install uninstall amalgamation dist deb deb-test wheels conan clean help build-deps

build: ## build the program and the libraries in build/
	@test -f build/CMakeCache.txt || cmake --preset release
	@cmake --build build --parallel $(JOBS)

run: build-deps ## translate a few sentences, and draw what every head attends to
	@mkdir -p build
	@echo "Building, a minute or two; the log is build/build.log" >&2
	@$(MAKE) --no-print-directory build >build/build.log 2>&1 || { cat build/build.log; exit 1; }
	@scripts/run.sh build/mha

check: build-deps ## the tests for daily work: a few minutes
	@scripts/test.sh quick format rooms docs symbols cli

test: build-deps ## run all tests; the last line counts passed, failed and skipped
	@scripts/test.sh

wasm: ## build the modules of WebAssembly and the package for npm in build/wasm/
	@scripts/install-deps.sh wasm
	@test -f build/wasm/CMakeCache.txt || cmake --preset wasm
	@cmake --build --preset wasm --parallel $(JOBS) --target wasm_package mha_page_module

site: build wasm ## write the documentation, live pages and a reference of the headers to build/site/
	@scripts/install-deps.sh site
	@scripts/site.sh build/mha build/site

bench: build ## print the table of docs/benchmarks.md, measured here
	@scripts/install-deps.sh bench || echo "continuing without it"
	@build/mha bench --table

bench-mpi: build ## libmha_mpi over links of 1 and 10 Gb/s, between network namespaces; needs root
	@scripts/bench-mpi.sh

bench-peers: build-deps ## libmha beside PyTorch, ONNX Runtime, CTranslate2 and others
	@scripts/bench-peers.sh $(PEERS)

soak: build ## the long tests: a day, not minutes; PERCENT=1 for a hundredth of them
	@scripts/install-deps.sh test riscv64 s390x || echo "continuing without it"
	@scripts/soak.sh $(PERCENT)

fuzz: ## libFuzzer on every parser and on calls of the library, SECONDS=60 each
	@scripts/install-deps.sh build test
	@scripts/fuzz.sh $(or $(SECONDS),60)

coverage: ## which lines and branches the test programs run
	@scripts/install-deps.sh build test
	@scripts/coverage.py

mutation: ## change one place of the code at a time and see that a test fails; hours
	@scripts/install-deps.sh build test
	@python3 scripts/mutation

format: ## apply .clang-format to all C files
	@scripts/install-deps.sh lint
	@scripts/lint.sh --format

lint: ## clang-format, clang-tidy, cppcheck, gcc -fanalyzer
	@scripts/install-deps.sh build lint
	@scripts/lint.sh

install: build ## install below $(DESTDIR)$(prefix)
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(prefix)"

uninstall: ## remove what the last make install has written
	@DESTDIR="$(DESTDIR)" scripts/uninstall.sh build

amalgamation: ## the core as one file, build/amalgamation/mha.c and mha.h: cc -O2 -c mha.c
	@python3 scripts/amalgamate.py build/amalgamation

dist: ## the release of the last commit in build/dist: tarball, bill of materials, checksums
	@scripts/dist.sh

deb: ## the Debian packages of the last commit in build/deb, checked by lintian
	@scripts/install-deps.sh build deb
	@scripts/deb.sh

deb-test: deb ## install these packages in a new Debian, use them and remove them; needs root
	@scripts/install-deps.sh deb-test
	@tests/checks/check_deb.sh build/deb

wheels: ## the sdist and a wheel for any Linux that is not older, in build/python-dist
	@scripts/install-deps.sh build wheels
	@scripts/wheels.sh

conan: ## the package of Conan, made from this tree and tested
	@test -x build/conan/bin/conan || { python3 -m venv build/conan && build/conan/bin/pip install --quiet conan; }
	@CONAN_HOME=$(CURDIR)/build/conan/home build/conan/bin/conan profile detect --exist-ok
	@CONAN_HOME=$(CURDIR)/build/conan/home build/conan/bin/conan create packaging/conan

clean: ## remove everything that was built
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

build-deps:
	@scripts/install-deps.sh build
	@scripts/install-deps.sh extra || echo "continuing without it" >&2
