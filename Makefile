# make figures          all figures at the paper's sizes      make figures/fig1.pdf   one of them
# make quick            all figures at a reduced size         make test               the tests, but for slow ones
# make docs             what the documentation generates      make setup              the environment alone, in .venv
# make bench            benchmarks, into docs/benchmarks      make plan               what the figures will take, before anything runs
# make report           verdicts and figures on one page      make test-all           the slow tests
#                                                             make test-faults        faults and odd input, at length
#
# CONFIG=mine.yaml adds to the configuration of figures, report and plan.
# CORES=4 limits the cores; PROFILE=slurm runs the jobs on a cluster (docs/cluster.md); PYTHON=python3.12 chooses the Python that
# .venv is made from.

PYTHON ?= python3
VENV := .venv
# A profile says itself how many cores it uses.
PROFILE ?=
ifndef PROFILE
CORES ?= all
endif
WHERE = $(if $(PROFILE),--workflow-profile workflow/profiles/$(PROFILE),$(MEMORY)) $(if $(CORES),--cores $(CORES))
# On one machine no more jobs at a time than fit in its memory.
MEMORY = --resources mem_mb=$$(python -c 'import psutil; print(psutil.virtual_memory().total // 2**20)')
CONFIG ?=
MORE = $(if $(CONFIG),--configfile $(CONFIG))
# Snakemake doesn't say where in a file a mistake is, so the file is read by the library first.
CHECK = $(if $(CONFIG),@$(VENV)/bin/python -m ggdln.workflow.config $(CONFIG))
SNAKEMAKE = export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"; if [ -t 1 ]; then logger="--logger rich"; fi; snakemake $$logger $(WHERE)

.PHONY: setup figures quick report plan test test-all test-faults docs bench clean FORCE
.DEFAULT_GOAL := figures

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or later is needed, $(PYTHON) is {v[0]}.{v[1]}; use make PYTHON=...")'
	@echo "Creating the environment in $(VENV) (a few minutes)"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[networks,workflow,test]'
	@touch $@

figures: setup
	$(CHECK)
	@$(SNAKEMAKE) $(MORE)

figures/%.pdf: setup FORCE
	$(CHECK)
	@$(SNAKEMAKE) $(MORE) -- $@

quick: setup
	@$(SNAKEMAKE) --configfile config/quick.yaml

report: setup
	$(CHECK)
	@$(SNAKEMAKE) $(MORE) -- report

plan: setup
	@$(VENV)/bin/python workflow/plan.py $(if $(PROFILE),--profile $(PROFILE)) $(if $(CORES),--cores $(CORES)) $(MORE)

test: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n 2 --dist loadfile -m "not slow"

test-all: setup
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n 2 --dist loadfile -m slow

test-faults: setup
	FAULT_ROUNDS=50 FAULT_TABLE=faults.md FUZZ_EXAMPLES=1000 OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n 2 --dist loadfile tests/test_faults.py tests/test_fuzz.py tests/test_store.py

docs: setup
	$(VENV)/bin/python docs/generate.py

bench: setup
	$(VENV)/bin/python benchmarks/theory.py
	$(VENV)/bin/python benchmarks/dynamics.py

clean:
	rm -rf results figures/* logs .snakemake
