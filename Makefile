# make demo and make test are all a newcomer needs; both set the checkout up first.

# The system's Python, so that cluster jobs of any user can run the environment made from it.
SYSTEM_PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)
SETUP = $(SYSTEM_PYTHON) -B -m tools.setup
IN_ENVIRONMENT = PATH="$(CURDIR)/.venv/bin:$$PATH"
UV = PATH="$(CURDIR)/.tools/uv/bin:$$PATH" uv
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --custom-compile-command "make lock"

# The directories of envs/ to set up: make test PARTS="montage ssh". Default: all of them, and for
# the demo those of its workloads and storages.
PARTS_OPTION = $(if $(filter undefined,$(origin PARTS)),,--parts "$(PARTS)")
demo: PARTS ?= gfarm montage pfs rust
ifndef CAMPAIGN
lab-demo: PARTS ?= gfarm lab montage pfs rust ssh
endif

# Tests wait more than they work, so two files of them run side by side: make test WORKERS=1, or 4.
WORKERS = 2
PYTEST = $(IN_ENVIRONMENT) python -m pytest -n $(WORKERS) --dist loadfile

# Cargo of the checks: a toolchain of rustup's may not be on PATH; burstio's crates from their lock.
CARGO = PATH="$$PATH:$$HOME/.cargo/bin" CARGO_TARGET_DIR="$(CURDIR)/.tools/cargo" cargo
CRATE = --locked --quiet --manifest-path crates/burstio/Cargo.toml

.PHONY: help setup demo lab-demo test test-quick test-rust fault-table lint lint-rust clean lock
.NOTPARALLEL:

help:
	@echo "make demo        set up, run the demo campaign on this machine, draw its report"
	@echo "make lab-demo    the same on the nodes of a Slurm cluster on this machine (root), in three ways;"
	@echo "                 CAMPAIGN=\"serizawa chainermn\": another experiment at one of its scales"
	@echo "make test        set up, check style and types, run all tests"
	@echo "make test-quick  set up, run the tests of the everyday loop (under two minutes)"
	@echo "make fault-table strike cells on a lab's nodes in every way (root), write docs/reliability.md"
	@echo "make setup       the environment, Debian packages (as root), links to the profiles"
	@echo "make test-rust   set up, run the tests of burstio"
	@echo "make lint        cargo fmt, clippy, ruff, mypy, snakefmt, snakemake --lint"
	@echo "make lock        resolve the Python dependencies anew and write their locks"
	@echo "make clean       remove what set-up made; results stay"
	@echo 'PARTS="NAME .."  only these directories of envs/ (docs/install.md)'

setup:
	@$(SETUP) $(PARTS_OPTION)

demo: setup
	@$(IN_ENVIRONMENT) snakemake --profile profiles/local demo report
	@echo "report: $(CURDIR)/results/report.html"

lab-demo: setup
	@$(IN_ENVIRONMENT) python -m lab.demo $(CAMPAIGN)

# Real daemons on a busy machine: a few tests that fail are tried once more, when nothing runs beside
# them, and told by name. The tests themselves wait for what they expect and never for a time.
test: lint test-rust
	@$(PYTEST) --cache-clear || { [ $$? -eq 1 ] && echo "make test: once more, alone, what failed:" && \
	$(IN_ENVIRONMENT) python -m pytest --last-failed --last-failed-no-failures none --maxfail 3 -rpfE; }

test-rust: setup
	@$(CARGO) test $(CRATE)

test-quick: setup
	@$(PYTEST) -q -m "not slow"

fault-table: setup
	@$(IN_ENVIRONMENT) python -m pytest -p no:cacheprovider tests/faults/test_table.py --write-table

lint: lint-rust
	@$(IN_ENVIRONMENT) ruff check .
	@$(IN_ENVIRONMENT) ruff format --check .
	@$(IN_ENVIRONMENT) mypy
	@$(IN_ENVIRONMENT) snakefmt --check Snakefile rules
	@$(IN_ENVIRONMENT) snakemake --profile profiles/local --lint

lint-rust: setup
	@$(CARGO) fmt --check --manifest-path crates/burstio/Cargo.toml
	@if $(CARGO) clippy --version >/dev/null 2>&1; then $(CARGO) clippy $(CRATE) --all-targets --features python -- --deny warnings; \
	else echo "lint: no clippy beside this cargo (Debian's has none; rustup component add clippy)"; fi

clean:
	@$(SETUP) clean

lock: setup
	@$(COMPILE) --upgrade envs/setup/requirements.in --output-file envs/setup/requirements.lock
	@$(COMPILE) --upgrade envs/burstlab/build.in --output-file envs/burstlab/build.lock
	@$(COMPILE) --upgrade pyproject.toml --group dev --output-file envs/burstlab/requirements.lock
	@$(COMPILE) --upgrade envs/chainer/build.in --output-file envs/chainer/build.lock
	@$(COMPILE) --upgrade --build-constraints envs/chainer/build.lock envs/chainer/requirements.in \
		--output-file envs/chainer/requirements.lock
	@$(COMPILE) --upgrade envs/torch/requirements.in --output-file envs/torch/requirements.lock
	@$(COMPILE) --upgrade envs/mxnet/build.in --output-file envs/mxnet/build.lock
	@$(COMPILE) --upgrade --build-constraints envs/mxnet/build.lock --no-emit-package horovod \
		envs/mxnet/build.in envs/mxnet/requirements.in --output-file envs/mxnet/requirements.lock
	@grep ^horovod envs/mxnet/requirements.in | $(COMPILE) --upgrade --no-deps - \
		--output-file envs/mxnet/horovod.lock
	@$(SYSTEM_PYTHON) -B -m tools.setup lock-crates
	@$(SYSTEM_PYTHON) -B -m tools.setup lock-jars
