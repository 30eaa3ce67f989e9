# SPDX-License-Identifier: Apache-2.0
# What these commands need is set up on the way: tools in .venv, all that is built in build/.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)

LIBRARY := build/libpyrometer.so
WHEEL := build/wheel/.ready
INSTALLED := $(VENV)/.installed
PACKAGE := pyproject.toml hatch_build.py README.md LICENSE $(wildcard licenses/*) \
  $(wildcard python/*.pth python/*.start python/pyrometer/*.* python/pyrometer/VERSION python/pyrometer/*/*.py)
C_FILES = $(wildcard include/*.h src/*/*.[ch] tests/c/*.[ch] tests/gates/*.[ch] bench/*.[ch] bench/*/*.[ch])
PYTHON_FILES = python hatch_build.py tests examples $(wildcard bench)

.PHONY: help demo test test-long interpreters sanitize tsan oracle bench bench-quick lint format build gate wheel install venv system \
  clean FORCE

help:
	@echo 'make demo      profile a real program and say where the report is'
	@echo 'make test      build and run all tests, on the interpreters that are there'
	@echo 'make interpreters  bring 3.13t, 3.14 and 3.15 to test on as well (a few minutes, once)'
	@echo 'make test-long storms and long runs'
	@echo 'make sanitize  the C tests under ASan and UBSan'
	@echo 'make tsan      those with threads under TSan'
	@echo 'make oracle    10 million events, the shadow stack compared with the frames (PYROMETER_ORACLE_EVENTS)'
	@echo 'make bench     all that is measured: a sample in the handler, stacks, and the cost beside the peers'
	@echo 'make bench-quick  the cost beside the floor and cProfile, under 3 minutes; fails on gross regressions'
	@echo 'make lint      formatting, types and warnings (make format: apply the formatting)'
	@echo 'make wheel     build/wheel/pyrometer-*.whl'
	@echo 'make clean     remove all that was built, and .venv'

DEMO := build/demo/pygments
demo: install
	@mkdir -p $(dir $(DEMO))
	$(VENV)/bin/pyrometer run -o $(DEMO).sparkprofile -o $(DEMO).pb.gz -o $(DEMO).collapsed \
	  -o $(DEMO).json examples/demo.py
	@echo
	@echo 'The report is $(DEMO).sparkprofile, for the Spark viewer;'
	@echo 'the same for pprof: go tool pprof -top $(DEMO).pb.gz'

# pytest comes last: its closing lines count the tests.
test: build gate wheel
	meson test -C build --no-rebuild --print-errorlogs
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

# Storms and long runs, on every interpreter that is there.
test-long: build gate wheel
	$(BIN)/python -m pytest -m long $(PYTEST_FLAGS)

interpreters:
	@scripts/interpreters

sanitize: build-sanitize/build.ninja
	ninja -C build-sanitize --quiet
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  meson test -C build-sanitize --no-rebuild --print-errorlogs

tsan: build-tsan/build.ninja
	ninja -C build-tsan --quiet
	TSAN_OPTIONS=halt_on_error=1 \
	  meson test -C build-tsan --no-rebuild --print-errorlogs --suite threads

oracle: wheel
	PYROMETER_ORACLE_EVENTS=$(or $(PYROMETER_ORACLE_EVENTS),1e7) \
	  $(BIN)/python -m pytest -m long -s tests/python/test_oracle.py

bench: wheel
	PYTHON=$(BIN)/python bench/handler/run.sh build/bench
	bench/chains/run.sh 10
	bench/cost/run.sh

bench-quick: wheel
	bench/cost/run.sh quick

lint: venv
	ruff check $(PYTHON_FILES)
	ruff format --check $(PYTHON_FILES)
	mypy
	@clang-format --dry-run --Werror $(C_FILES)

format: venv
	ruff format $(PYTHON_FILES)
	@clang-format -i $(C_FILES)

build: $(LIBRARY)
$(LIBRARY): build/build.ninja FORCE
	@ninja -C build --quiet

# The library with its handler marked for the run gate.
gate: build/gate/build.ninja
	@ninja -C build/gate --quiet

wheel: $(WHEEL)
$(WHEEL): $(LIBRARY) $(PACKAGE)
	rm -rf build/wheel
	PYROMETER_LIBRARY=$(CURDIR)/$(LIBRARY) $(BIN)/python -m hatchling build -t wheel -d build/wheel
	touch $@

install: $(INSTALLED)
$(INSTALLED): $(WHEEL)
	$(BIN)/python -m pip install --quiet --no-deps --force-reinstall build/wheel/*.whl
	touch $@

# ninja itself sets up again when a meson file has changed.
SETUP = [ -e $@ ] || meson setup $(dir $@) $(if $(CI),-Dwerror=true) $(SETUP_FLAGS)
build/build.ninja: | venv system
	@$(SETUP)
build/gate/build.ninja: SETUP_FLAGS = -Dgate=true -Dtests=false
build/gate/build.ninja: | venv system
	@$(SETUP)
build-sanitize/build.ninja: SETUP_FLAGS = -Db_sanitize=address,undefined -Db_lundef=false
build-sanitize/build.ninja: | venv system
	@$(SETUP)

build-tsan/build.ninja: SETUP_FLAGS = -Db_sanitize=thread -Db_lundef=false -Dc_args=-Wno-tsan
build-tsan/build.ninja: | venv system
	@$(SETUP)

venv: $(VENV)/.ready
$(VENV)/.ready: requirements-dev.txt tests/python/requirements.txt
	python=$$(scripts/find-python) && "$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

system:
	@scripts/system-packages --tests

clean:
	rm -rf build build-sanitize build-tsan $(VENV)

FORCE:
