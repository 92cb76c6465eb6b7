# From nothing but git, make, Python and Rust: `make run`, `make test`. Everything stays inside this
# folder.

UV_VERSION := 0.13.9
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/.venv
export UV_PYTHON_DOWNLOADS := never

PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$p && break; done)
UV := $(or $(shell command -v uv 2>/dev/null),build/uv/bin/uv)
BIN := .venv/bin
# What the agent for the kernel's flows is made of.
AGENT := Cargo.toml Cargo.lock $(wildcard models/*/* crates/kernel/bpf/*.h crates/kernel/bpf/objects/*) \
	$(shell find crates/headwayd crates/kernel crates/fixed crates/policy crates/cc -name '*.rs' -o -name 'Cargo.toml' -o -name '*.c')
# What the compiled core is made of: when any of it changes, it is built again.
CORE := pyproject.toml Cargo.toml Cargo.lock split.toml $(wildcard scenarios/*.toml models/*/* crates/kernel/bpf/*.h) \
	$(shell find crates -name '*.rs' -o -name 'Cargo.toml' -o -name '*.c' -not -name '*.bpf.c')

# How the core and headwayd are compiled: `release` for use, `gate` (faster to compile) where only
# tests use them.
PROFILE ?= release
# Its tests' build makes headwayd too, with the features that they have: it need not compile twice.
ifeq ($(PROFILE),gate)
BUILD_HEADWAYD = $(BIN)/python scripts/cargo_tests.py
else
BUILD_HEADWAYD = cargo build --locked --quiet --profile $(PROFILE) -p headwayd
endif

.DEFAULT_GOAL := help
.PHONY: FORCE help run test test-rust test-python test-train test-train-if-changed test-ray test-system test-live test-wheel \
	test-kernels build-tests lint bench bench-kernel docs site fuzz wheel tools libraries archives headwayd

help: ## say what there is
	@echo "usage: make TARGET"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .venv/core.stamp ## compare congestion controllers on LTE links and show the result
	@$(BIN)/python scripts/run_demo.py

# Side by side: the compiler has one part of the machine to do while tests of the other wait.
test: .venv/core.stamp .venv/dev.stamp ## run the tests of the Rust crates and of the Python package
	@$(MAKE) --no-print-directory -j2 test-rust test-python

test-rust: .venv/dev.stamp
	@echo "make: testing the Rust crates"
	@$(BIN)/python scripts/rust_tests.py

test-python: .venv/core.stamp .venv/dev.stamp
	@echo "make: testing the Python package, and its stub against the compiled core"
	@mkdir -p build
	@status=0; $(BIN)/python -m mypy.stubtest headway._native >build/stubtest.log 2>&1 || { cat build/stubtest.log; status=1; }; \
		$(BIN)/python scripts/python_tests.py && exit $$status

headwayd: .venv/headwayd.stamp ## build the agent for the kernel's flows, .venv/bin/headwayd (needs libelf)

# PyTorch has an environment of its own, which finds the package where maturin has built it.
test-train: .venv/core.stamp build/train.stamp ## run the tests that need PyTorch
	@echo "make: testing what needs PyTorch"
	@PYTHONPATH="$(CURDIR)/python" build/train/bin/python scripts/train_tests.py $(ONLY)

# PyTorch is 3 GB: the gate brings it only where what these tests cover has changed since they
# passed.
test-train-if-changed: .venv/dev.stamp
	@if $(BIN)/python scripts/train_tests.py --have-passed; then \
		echo "make: what the tests of training cover is as it was when they passed (tests/train/passed.txt)"; \
	else $(MAKE) --no-print-directory test-train; fi

# So has Ray.
test-ray: .venv/core.stamp build/ray.stamp ## run the tests that need Ray, on a cluster of two nodes (root or user namespaces)
	@echo "make: testing --ray on a cluster of two nodes"
	@PYTHONPATH="$(CURDIR)/python" HEADWAY_REQUIRE=ray build/ray/bin/python scripts/python_tests.py tests/ray_on_two_nodes.py

HEADWAYD_IF_POSSIBLE = if pkg-config --exists $(LIBRARIES) 2>/dev/null; then $(MAKE) --no-print-directory headwayd; \
	else echo "make: no headwayd, and no tests of it: pkg-config, libelf or zlib is missing; install them: $(LIBRARIES_APT)"; fi

test-system: .venv/core.stamp .venv/dev.stamp ## run the tests that need root or user namespaces; ONLY="word ..." for some
	@$(HEADWAYD_IF_POSSIBLE)
	@echo "make: testing with network namespaces"
	@$(BIN)/python scripts/system_tests.py $(ONLY)

test-live: .venv/core.stamp .venv/dev.stamp ## judge rates, delays and durations in real time (root); ONLY="word ...", RESUME=1, STRICT=1
	@$(HEADWAYD_IF_POSSIBLE)
	@RESUME="$(RESUME)" STRICT="$(STRICT)" $(BIN)/python scripts/live_tests.py $(ONLY)

test-wheel: .venv/core.stamp .venv/dev.stamp ## build the wheel and test it as a stranger installs it
	@$(BIN)/python scripts/python_tests.py -m wheel

build-tests: .venv/core.stamp .venv/dev.stamp
	@$(HEADWAYD_IF_POSSIBLE)
	@$(BIN)/python scripts/cargo_tests.py

test-kernels: .venv/headwayd.stamp ## try the controllers on Debian's kernels in virtual machines; KERNELS="FILE ..." for more
	@$(BIN)/python scripts/kernels.py $(KERNELS)

lint: .venv/dev.stamp ## check format, lints, types, and the words of documents
	@echo "make: checking format, lints, types and documents"
	@# All of them run, whichever fails.
	@# cargo fmt does not find the modules that the list of schemes declares.
	@failed=; check() { "$$@" || failed=1; }; \
	files=$$(git ls-files '*.rs'); check test -n "$$files"; check rustfmt --check --edition 2024 $$files; \
	if pkg-config --exists $(LIBRARIES) 2>/dev/null; then all=--workspace; \
	else echo "make: headwayd is not checked: pkg-config, libelf or zlib is missing; install them: $(LIBRARIES_APT)"; fi; \
	check cargo clippy --locked --quiet --profile gate $$all --all-targets -- -D warnings; \
	check $(BIN)/ruff check --quiet --no-cache .; \
	check $(BIN)/ruff format --quiet --check .; \
	check $(BIN)/mypy --no-error-summary; \
	check $(BIN)/python scripts/lint_docs.py; \
	check $(BIN)/codespell $$(git ls-files --cached --others --exclude-standard); \
	test -z "$$failed"

bench: .venv/core.stamp .venv/dev.stamp ## measure accuracy and speed against the outside world
	@PATH="$(CURDIR)/$(BIN):$$PATH" benches/run
	@$(BIN)/python benches/environments.py
	@$(MAKE) --no-print-directory bench-kernel

# Without headwayd it says so, in one line.
bench-kernel: .venv/core.stamp .venv/dev.stamp ## measure what the kernel's flows cost (root); OPTIONS="--quick ..." for less
	@if pkg-config --exists $(LIBRARIES) 2>/dev/null; then $(MAKE) --no-print-directory headwayd; fi
	@PYTHONPATH=scripts $(BIN)/python benches/kernel.py $(OPTIONS)

# maturin takes what is in this folder along. It is there only meanwhile: `maturin develop` would
# install it too.
ALONG := headway._native.data
WHEEL_OUT ?= build/wheel
wheel: .venv/deps.stamp archives ## build what pip installs, with headwayd in it: build/wheel/*.whl (needs libelf)
	@echo "make: building headwayd, which needs nothing but the C library (1 of 2: some minutes)"
	@LIBBPF_SYS_LIBRARY_PATH=$(LIBELF):$(LIBZ) cargo build --locked --quiet --release -p headwayd --features static
	@echo "make: building the wheel (2 of 2: some minutes)"
	@trap 'rm -rf $(ALONG)' EXIT; mkdir -p $(ALONG)/scripts && strip -g -o $(ALONG)/scripts/headwayd target/release/headwayd \
	&& $(BIN)/maturin build --quiet --locked --release --out $(WHEEL_OUT)

docs: .venv/core.stamp ## write the generated pages: docs/{schemes,features,cli,columns}.md
	@$(BIN)/python scripts/make_docs.py

# The theme's support ends in May 2027; its successor, Zensical, reads mkdocs.yml too. The variable
# hides that notice.
site: build/site-tools.stamp ## make a site of the documents, build/site/index.html
	@NO_MKDOCS_2_WARNING=1 build/site-tools/bin/mkdocs build --quiet
	@echo "make: open build/site/index.html; for its search: python3 -m http.server -b 127.0.0.1 -d build/site"

# What is found lands in fuzz/artifacts; an input that was fixed moves to fuzz/regressions/TARGET.
FUZZ_SECONDS ?= 30
FUZZ_ROUNDS ?= 10
FUZZ_PYTHON := tests/test_stats.py tests/test_traces_random.py tests/test_tune_messages.py
fuzz: .venv/core.stamp .venv/dev.stamp ## property tests with new inputs, then each fuzz target for FUZZ_SECONDS, 30 unless told (needs nightly Rust and cargo-fuzz)
	@for round in $$(seq $(FUZZ_ROUNDS)); do \
		echo "make: property tests with new inputs, round $$round of $(FUZZ_ROUNDS)"; \
		HEADWAY_RANDOM_TESTS=1 $(BIN)/python scripts/rust_tests.py || exit 1; \
		HEADWAY_RANDOM_TESTS=1 $(BIN)/python scripts/python_tests.py $(FUZZ_PYTHON) || exit 1; \
	done
	@cargo +nightly --version >/dev/null 2>&1 \
	|| { echo "make: nightly Rust is missing; install it: rustup toolchain install nightly" >&2; exit 1; }
	@command -v cargo-fuzz >/dev/null \
	|| { echo "make: cargo-fuzz is missing; install it: cargo install cargo-fuzz --locked" >&2; exit 1; }
	@for target in $$(cargo +nightly fuzz list); do \
		echo "make: fuzzing $$target for $(FUZZ_SECONDS) s"; \
		mkdir -p fuzz/corpus/$$target; \
		seeds=fuzz/seeds/$$target; [ $$target != scenario ] || seeds="$$seeds scenarios"; \
		cargo +nightly fuzz run --sanitizer none $$target fuzz/corpus/$$target $$seeds \
			-- -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 || exit 1; \
	done

# The tools that the system has to have, each with the command that installs it.
APT := sudo apt-get install -y
tools:
	@$(call need,git,$(APT) git)
	@$(call need,cargo,curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y)
	@$(call need,cc,$(APT) build-essential)
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer with venv is missing; install it: $(APT) python3 python3-venv" >&2; exit 1; }
	@cargo --version | awk '{ split($$2, v, "."); exit !(v[1] > 1 || v[2] >= 89) }' \
	|| { echo "make: Rust 1.89 or newer is missing; install it: rustup update stable && rustup default stable" >&2; exit 1; }
need = command -v $(1) >/dev/null || { echo "make: $(1) is missing; install it: $(2)" >&2; exit 1; }

# libbpf comes along; what it stands on is the system's.
LIBRARIES := libelf zlib
LIBRARIES_APT := $(APT) pkg-config libelf-dev zlib1g-dev
libraries:
	@pkg-config --exists $(LIBRARIES) 2>/dev/null \
	|| { echo "make: pkg-config, libelf or zlib is missing; install them: $(LIBRARIES_APT)" >&2; exit 1; }

# The same for the wheel's, which links them in.
LIBELF = $(shell pkg-config --variable=libdir libelf)
LIBZ = $(shell pkg-config --variable=libdir zlib)
archives: | tools libraries
	@test -e $(LIBELF)/libelf.a && test -e $(LIBZ)/libz.a \
	|| { echo "make: libelf.a or libz.a is missing; install them: $(LIBRARIES_APT)" >&2; exit 1; }

build/uv/bin/uv: | tools
	@echo "make: installing uv $(UV_VERSION) into build/uv"
	@$(PYTHON) -m venv build/uv
	@build/uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/deps.stamp: pyproject.toml uv.lock | tools $(UV)
	@echo "make: installing the locked Python dependencies into .venv"
	@$(UV) sync --quiet --locked --no-install-project --inexact --no-default-groups --group build \
		$(if $(wildcard .venv/bin/python),,--python "$(PYTHON)")
	@touch $@

.venv/dev.stamp: .venv/deps.stamp
	@echo "make: installing the locked development tools into .venv"
	@$(UV) sync --quiet --locked --no-install-project --inexact
	@touch $@

build/train.stamp: pyproject.toml uv.lock | tools $(UV)
	@echo "make: installing the locked dependencies with PyTorch into build/train (3 GB on Linux, some minutes)"
	@UV_PROJECT_ENVIRONMENT="$(CURDIR)/build/train" $(UV) sync --quiet --locked --no-install-project --group train \
		--python "$(PYTHON)"
	@touch $@

build/ray.stamp: pyproject.toml uv.lock | tools $(UV)
	@echo "make: installing the locked dependencies with Ray into build/ray (1.3 GB, some minutes)"
	@UV_PROJECT_ENVIRONMENT="$(CURDIR)/build/ray" $(UV) sync --quiet --locked --no-install-project --extra ray \
		--python "$(PYTHON)"
	@touch $@

build/site-tools.stamp: pyproject.toml uv.lock | tools $(UV)
	@echo "make: installing the locked tools for the site into build/site-tools"
	@UV_PROJECT_ENVIRONMENT="$(CURDIR)/build/site-tools" $(UV) sync --quiet --locked --no-install-project \
		--only-group site --python "$(PYTHON)"
	@touch $@

# Holds the profile that the core and headwayd were built with last: another one builds them again.
build/profile: FORCE
	@mkdir -p build; echo $(PROFILE) | cmp -s - $@ || echo $(PROFILE) >$@
FORCE:

.venv/headwayd.stamp: $(AGENT) build/profile | tools libraries .venv/deps.stamp
	@echo "make: building headwayd"
	@$(BUILD_HEADWAYD)
	@# One that serves keeps its own file.
	@cp target/$(PROFILE)/headwayd $(BIN)/headwayd.new && mv $(BIN)/headwayd.new $(BIN)/headwayd
	@touch $@

.venv/core.stamp: $(CORE) build/profile .venv/deps.stamp
	@echo "make: building the core with profile $(PROFILE) (some minutes the first time)"
	@PATH="$(dir $(abspath $(UV))):$$PATH" VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/maturin develop --uv --group build \
		--profile $(PROFILE) --locked
	@touch $@
