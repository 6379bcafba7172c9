# make figures          all figures at the paper's sizes      make figures/fig1.pdf   one of them, or its fig1.png
# make quick            all figures at a reduced size         make new NAME=mine      a file mine.yaml for a question of one's own
# make report           verdicts and figures on one page      make plan               what the figures will take, before anything runs
# make calibrate        open values, by what the paper says   make test-faults        faults and odd input, at length
# make test             the tests, but for slow ones          make test-all           the slow tests
# make test-long        those that take minutes each          make test-cluster       on SLURM and other engines, at length
# make lint             style, mended where it can be         make types              what annotations say, by mypy
# make docs             generated documents, and the site     make site               the site alone
# make bench            benchmarks, into docs/benchmarks      make dist               wheel, sdist and source archive, in dist
# make setup            the environment alone, in .venv       make lock               lock.toml, from pyproject.toml
# make check-gpu        GPUs against CPU: numbers, times      make linkcheck          links of the site to other sites
# make help             this
#
# CONFIG=mine.yaml adds to that of figures, report, calibrate and plan. If it has figures of its own, they are about these.
# CORES=4 limits the cores; PROFILE=slurm runs the jobs on a cluster (docs/cluster.md); OPTIONS=--dry-run hands options to
# Snakemake; PYTHON=python3.12 chooses the Python that .venv is made from.

PYTHON ?= python3
VENV := .venv
# A profile says itself how many cores it uses.
PROFILE ?=
PROFILES := $(patsubst workflow/profiles/%/config.yaml,%,$(wildcard workflow/profiles/*/config.yaml))
ifndef PROFILE
CORES ?= all
else ifeq ($(filter $(PROFILE),$(PROFILES)),)
$(error PROFILE=$(PROFILE) is not there; accepted: $(PROFILES))
endif
WHERE = $(if $(PROFILE),--workflow-profile workflow/profiles/$(PROFILE),$(MEMORY)) $(if $(CORES),--cores $(CORES))
# On one machine no more jobs at a time than fit in its memory.
MEMORY = --resources mem_mb=$$(python -c 'import psutil; print(psutil.virtual_memory().total // 2**20)')
CONFIG ?=
MORE = $(if $(CONFIG),--configfile $(CONFIG))
# Snakemake doesn't say where in a file a mistake is, so the file is read by the library first.
CHECK = $(if $(CONFIG),@$(VENV)/bin/python -m ggdln.workflow.config $(CONFIG))
# Commands that a profile puts before those of the cluster.
PATIENT = $(if $(PROFILE),$(if $(wildcard workflow/profiles/$(PROFILE)/patient),$(CURDIR)/workflow/profiles/$(PROFILE)/patient:))
SNAKEMAKE = export PATH="$(PATIENT)$(CURDIR)/$(VENV)/bin:$$PATH"; if [ -t 1 ]; then logger="--logger rich"; fi; snakemake $$logger $(WHERE) $(OPTIONS)
OPTIONS ?=

.PHONY: help setup new figures quick report calibrate plan test test-all test-long test-faults test-cluster lint types docs site linkcheck bench check-gpu dist lock clean FORCE
.DEFAULT_GOAL := figures

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

setup: $(VENV)/ready

# Running needs the first; tests and site bring what only they need, when they are first asked for.
# Modules are compiled when they are first imported: few of those that come along ever are.
INSTALL = $(VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or later is needed, $(PYTHON) is {v[0]}.{v[1]}; use make PYTHON=...")'
	@echo "Creating the environment in $(VENV) (a few minutes)"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[networks,workflow]'
	@touch $@

$(VENV)/ready-test: $(VENV)/ready
	$(INSTALL) -e '.[networks,workflow,test]'
	@touch $@

$(VENV)/ready-docs: $(VENV)/ready
	$(INSTALL) -e '.[networks,workflow,docs]'
	@touch $@

figures: setup
	$(CHECK)
	@$(SNAKEMAKE) $(MORE)

figures/%: setup FORCE
	$(CHECK)
	@$(SNAKEMAKE) $(MORE) -- $@

FORCE: ;

new: setup
	@$(VENV)/bin/python workflow/new.py "$(NAME)"

quick: setup
	@$(SNAKEMAKE) --configfile config/quick.yaml

report: setup
	$(CHECK)
	@$(SNAKEMAKE) $(MORE) -- report

calibrate: setup
	$(CHECK)
	@$(SNAKEMAKE) $(MORE) -- calibrate

plan: setup
	@$(VENV)/bin/python workflow/plan.py $(if $(PROFILE),--profile $(PROFILE)) $(if $(CORES),--cores $(CORES)) $(MORE)

test: $(VENV)/ready-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n 2 --dist loadfile -m "not slow and not long"

# Slow tests wait for other programs much of the time.
test-all: $(VENV)/ready-test $(VENV)/ready-docs
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n 3 --dist loadfile -m slow

# Before a release, and once a week.
test-long: $(VENV)/ready-test
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n 3 --dist loadfile -m long

test-faults: $(VENV)/ready-test
	FAULT_ROUNDS=50 FAULT_TABLE=faults.md FUZZ_EXAMPLES=1000 OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n 2 --dist loadfile tests/test_faults.py tests/test_surroundings.py tests/test_fuzz.py tests/test_store.py

# As root, where SLURM, its database and MariaDB are installed; it starts clusters of its own (tests/slurm/start).
test-cluster: $(VENV)/ready-test
	TEST_SLURM=all OMP_NUM_THREADS=1 $(VENV)/bin/pytest -rs -rP tests/test_slurm.py tests/test_cluster.py

# The hooks are those that `pre-commit install` runs at each commit.
lint: $(VENV)/ready-test
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/pre-commit run --all-files

types: $(VENV)/ready-test
	$(VENV)/bin/mypy

# What is generated and kept, and then the site. Copies of figures are renewed for those that have been made here.
docs: $(VENV)/ready-docs
	$(VENV)/bin/python docs/generate.py
	$(VENV)/bin/python docs/pictures.py
	@$(MAKE) --no-print-directory site

SITE := docs/_build/site

# Offline, and warnings are errors; a page that stays as it is isn't built again.
site: $(VENV)/ready-docs
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/sphinx-build -q -W --keep-going -j 2 -b dirhtml docs -d docs/_build/trees $(SITE)
	@echo "$(SITE)/index.html is made, $$(du -sh $(SITE) | cut -f1)"

# Needs a network. Tutorials aren't run for it.
linkcheck: $(VENV)/ready-docs
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/sphinx-build -q -b linkcheck -D nb_execution_mode=off -D suppress_warnings=myst-nb.lexer docs -d docs/_build/trees-of-links docs/_build/links

bench: $(VENV)/ready-test
	$(VENV)/bin/python benchmarks/theory.py
	$(VENV)/bin/python benchmarks/threads.py
	$(VENV)/bin/python benchmarks/many_samples.py
	$(VENV)/bin/python benchmarks/exact.py
	$(VENV)/bin/python benchmarks/dynamics.py
	$(VENV)/bin/python benchmarks/minima.py
	$(VENV)/bin/python benchmarks/install.py
	$(VENV)/bin/python benchmarks/compare.py
	$(VENV)/bin/python benchmarks/portability.py

check-gpu: setup
	@$(VENV)/bin/python benchmarks/gpu.py

# The archive is what git knows at this commit, for Zenodo and the like.
dist: $(VENV)/ready-test
	rm -rf dist
	$(VENV)/bin/python -m build --quiet
	git archive --format zip --prefix ggdln/ -o dist/ggdln-source.zip HEAD

lock: $(VENV)/ready-test
	$(VENV)/bin/python tools/lock.py

clean:
	rm -rf results figures/* logs .snakemake

.DEFAULT:
	@echo "There is no target $@. A figure is made by its file, as make figures/fig1.pdf; make help lists all targets." >&2; exit 2
