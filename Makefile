# Everything from a bare Debian 12 or 13: `make demo`, `make test`. See README.md.
#   make demo [SIZE=1024] [SEED=0]   listing 1 compiled, run on the simulated MI300X, compared with torch (or NumPy)
#   make test | lint | bench | build | sanitize | tsan-test
#   make hosts-test                  Triton, IREE and hip-python, unchanged, on the simulator (a venv of its own)
#   make core | llvm | sim | tools | testlib       one part of the native build (developers)
# Variables: PYTHON=python3  TORCH=torch==2.13.0 (another requirement, or none)  LLVM_CONFIG=...  PYTEST_ARGS=...
SHELL := /bin/bash
PYTHON ?= python3
TORCH ?= torch==2.13.0
SIZE ?= 1024
SEED ?= 0
PYTEST_ARGS ?=
SANITIZE_TESTS ?= tests --ignore=tests/build
VENV := .venv
PY := $(VENV)/bin/python
APT_PACKAGES := llvm-22-dev liblld-22-dev zlib1g-dev libzstd-dev
APT_TEST_PACKAGES := llvm-22 clang-format-22
APT_HOSTS_PACKAGES := clang-22 lld-22
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
export TILELANG_JOBS ?= $(shell nproc)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

TORCH_STAMP := $(VENV)/.stamp-torch-$(subst /,_,$(subst =,_,$(TORCH)))
PARTS := core llvm sim tools testlib

.PHONY: all build demo test hosts-test lint format bench sanitize sanitize-test tsan-test system-packages $(PARTS) clean
all: build

# ---- set-up: Debian packages, the virtual environment, Python packages ------------------------------------------

# Asks for nothing when all is there (a machine without apt then only needs the tools themselves).
$(VENV)/.stamp-apt: Makefile
	@tools/setup-debian.sh "$(PYTHON)" $(APT_PACKAGES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "tilelang needs Python 3.10 or newer"; exit 1; }
	@[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.stamp-apt-test: Makefile $(VENV)/.stamp-apt
	@tools/setup-debian.sh "$(PYTHON)" $(APT_TEST_PACKAGES)
	@touch $@

$(TORCH_STAMP): $(VENV)/.stamp-apt
ifneq ($(TORCH),none)
	$(PY) -m pip install -q "$(TORCH)"
endif
	@touch $@

# setuptools, ninja and NumPy first: the package itself then builds in the environment that it will run in.
$(VENV)/.stamp-pip: pyproject.toml setup.py $(TORCH_STAMP)
	$(PY) -m pip install -q 'setuptools>=77' wheel 'ninja>=1.11' 'numpy>=2.0'
	$(PY) -m pip install -q --no-build-isolation -e '.[tools]'
	@touch $@

$(VENV)/.stamp-bench: pyproject.toml $(VENV)/.stamp-pip
	$(PY) -m pip install -q --no-build-isolation -e '.[bench]'
	@touch $@

# ---- build -------------------------------------------------------------------------------------------------------

build: $(VENV)/.stamp-pip
	@$(PY) setup.py -q build_ninja

$(PARTS): $(VENV)/.stamp-apt
	@$(PY) -c 'import ninja, numpy, setuptools' 2>/dev/null || $(PY) -m pip install -q 'setuptools>=77' wheel 'ninja>=1.11' 'numpy>=2.0'
	@$(PY) setup.py -q build_ninja --only $@

# ---- what a person runs ------------------------------------------------------------------------------------------

demo: $(VENV)/.stamp-pip
	@$(PY) setup.py -q build_ninja --only core,llvm,sim
	@$(PY) -m tilelang.demo --size $(SIZE) --seed $(SEED)

# tests/build times rebuilds and touches sources, so it runs alone, and first.
test: build lint
	$(PY) -m pytest -q $(PYTEST_ARGS) tests/build || [ $$? = 5 ]
	$(PY) -m pytest -q -n 2 --dist loadfile $(PYTEST_ARGS) tests --ignore=tests/build || [ $$? = 5 ]

C_SOURCES = $(shell git ls-files 'csrc/*.c' 'csrc/*.h' 'csrc/*.cc' 'tests/*.c' 'tools/*.cpp')
lint: $(VENV)/.stamp-apt-test $(VENV)/.stamp-pip
	clang-format-22 --dry-run -Werror $(C_SOURCES)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

format: $(VENV)/.stamp-apt-test $(VENV)/.stamp-pip
	clang-format-22 -i $(C_SOURCES)
	$(VENV)/bin/ruff check -q --fix . ; $(VENV)/bin/ruff format -q .

# Other hosts live in .venv-hosts, laid over .venv (its packages are seen there); here a missing one is a failure, no skip.
HOSTS := .venv-hosts
HOSTS_TESTS := triton iree hip_python hip_c hip_fat services device_math
$(HOSTS)/.stamp: Makefile pyproject.toml $(VENV)/.stamp-apt-test $(VENV)/.stamp-pip
	@rm -rf $(HOSTS)
	@tools/setup-debian.sh "$(PYTHON)" $(APT_HOSTS_PACKAGES)
	$(PY) -m venv $(HOSTS)
	@$(PY) -c 'import site; print(*site.getsitepackages(), sep="\n")' > "$$($(HOSTS)/bin/python -c 'import site; print(site.getsitepackages()[0])')/tilelang-venv.pth"
	$(HOSTS)/bin/python -m pip install -q $$($(PY) -c 'from importlib.metadata import requires; print(*[r.split(";")[0].strip() for r in requires("tilelang") if "hosts" in r.partition(";")[2]])')
	@touch $@

hosts-test: build $(HOSTS)/.stamp
	TILELANG_HOSTS=1 $(HOSTS)/bin/python -m pytest -q -p no:cacheprovider $(PYTEST_ARGS) $(HOSTS_TESTS:%=tests/sim/test_sim_%.py)

bench: build $(VENV)/.stamp-bench
	$(PY) benchmarks/run.py

# The same tests on binaries with AddressSanitizer and UndefinedBehaviorSanitizer (build-asan/).
sanitize: $(VENV)/.stamp-pip
	@TILELANG_SANITIZE=address,undefined $(PY) setup.py -q build_ninja

sanitize-test: sanitize
	@tools/sanitized.sh $(VENV)/bin/pytest -q -n 2 --dist loadfile -p no:cacheprovider -p no:faulthandler $(PYTEST_ARGS) $(SANITIZE_TESTS)

# Several host threads in the simulator, under ThreadSanitizer (build-tsan/); with the packages of other hosts where
# `make hosts-test` has brought them.
TSAN_TESTS ?= $(addprefix tests/sim/test_sim_,threads.py sync.py sync_programs.py services.py hip_c.py)
tsan-test: $(VENV)/.stamp-pip
	@TILELANG_SANITIZE=thread $(PY) setup.py -q build_ninja --only core,sim
	@$(if $(wildcard $(HOSTS)/.stamp),TILELANG_HOSTS=1) tools/tsan.sh $(if $(wildcard $(HOSTS)/.stamp),$(HOSTS)/bin/python,$(PY)) -m pytest -q -n 2 -p no:cacheprovider -p no:faulthandler -k 'not each_wait' $(PYTEST_ARGS) $(TSAN_TESTS)

clean:
	rm -rf build build-asan build-tsan tilelang/*.so tilelang/lib
