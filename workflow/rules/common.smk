# Needs the configuration. Makes no files: it checks the configuration and says what each file is made from.

import sys
from dataclasses import asdict
from pathlib import Path

import psutil
import yaml
from snakemake.exceptions import WorkflowError

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from ggdln.workflow.config import read_config
from ggdln.workflow.costs import SECONDS
from ggdln.core.errors import ConfigError
from ggdln.core.imports import modules_of
from ggdln.workflow.jobs import CURVE_FILE, GATES_FILE, RUNS_FILE, TASK_FILE, Jobs, chunk_of

with open(ROOT / "workflow/schemas/config.schema.yaml") as file:
    SCHEMA = yaml.safe_load(file)
try:
    CONFIG = read_config(config, SCHEMA)
except ConfigError as error:
    sys.exit(str(error))

JOBS = Jobs(CONFIG)
CURVES, TASKS = JOBS.curves, JOBS.tasks


wildcard_constraints:
    figure="|".join(CONFIG.figures),
    claim="|".join(CONFIG.claims) or "none",
    method="[a-z]+",
    task="[a-z_]+-[0-9a-f]{10}",
    gating="[a-z_]+-[0-9a-f]{10}",
    curve="[a-z_]+-[0-9a-f]{10}",
    draws="[0-9]+-[0-9]+",
    points="[0-9]+-[0-9]+",
    runs="[0-9]+-[0-9]+",


RUN = f"{CONFIG.run}/" if CONFIG.run else ""
FIGURE_PDF = f"figures/{RUN}{{figure}}.pdf"
FIGURE_PNG = f"figures/{RUN}{{figure}}.png"
FIGURE_DATA = f"results/{RUN}{{figure}}.nc"
CLAIM = f"results/{RUN}claims/{{claim}}.json"
CLAIMS = f"results/{RUN}claims.json"
FINDINGS = {
    name: f"workflow/report/findings/{claim['finding']}.md" for name, claim in CONFIG.claims.items() if "finding" in claim
}


def code(script):
    """The script of a rule and the library modules it imports."""
    path = ROOT / "workflow/scripts" / f"{script}.py"
    return [str(p.relative_to(ROOT)) for p in modules_of(path, [ROOT / "src", path.parent])]


def gate_inputs(wildcards):
    """The tasks that gates are fitted to."""
    return JOBS.task_files(wildcards.gating, chunk_of(wildcards.draws, wildcards.points))


def curve_inputs(wildcards):
    """The tasks and gates that a curve is computed from."""
    gating = JOBS.gating_of(wildcards.curve)
    return {
        "tasks": JOBS.task_files(gating, chunk_of(wildcards.draws, wildcards.points)),
        "gates": GATES_FILE.format(gating=gating, draws=wildcards.draws, points=wildcards.points),
    }


def run_files(wildcards):
    """The blocks of runs that a curve averages."""
    single, blocks = JOBS.single[wildcards.curve], JOBS.run_blocks(wildcards.curve)
    return expand(RUNS_FILE, curve=single, draws=wildcards.draws, points=wildcards.points, runs=blocks)


def memory(rule):
    """Memory of a job of a rule, in MB; more at each attempt."""
    return lambda wildcards, attempt: JOBS.terms(rule, **wildcards).cost(rule).mem_mb(attempt)


def minutes(rule):
    """Time of a job of a rule; more at each attempt."""
    return lambda wildcards, attempt: JOBS.terms(rule, **wildcards).cost(rule).runtime(attempt)


def figure_files():
    return [FIGURE_PDF.format(figure=figure) for figure in CONFIG.figures]


def claimed_experiments(claim):
    """Parameters of the experiments that a claim looks at, and how they were varied."""
    found = CONFIG.experiments_of_claim(claim)
    return {e.name: asdict(e) | {"varied": CONFIG.varied.get(e.name, "")} for e in found}


def shown_experiments(figure):
    """Parameters of the experiments of a figure."""
    return {experiment.name: asdict(experiment) for experiment in CONFIG.experiments_of(figure)}


def refuse_what_does_not_fit():
    """End with a message, before anything runs, if a job is predicted to need more memory than this machine has."""
    available = CONFIG.machine.get("available_mb", psutil.virtual_memory().total // 2**20)
    needs = {}
    for job in workflow.dag.needrun_jobs():
        if job.rule.name in SECONDS:
            needs[job] = JOBS.terms(job.rule.name, **job.wildcards_dict).cost(job.rule.name).megabytes
    largest = max(needs, key=lambda job: (needs[job], job.output[0]), default=None)
    if largest is not None and needs[largest] > available:
        raise WorkflowError(
            f"{largest.rule.name} needs {needs[largest]:.0f} MB for {largest.output[0]}, this machine has {available} MB for jobs. "
            "Nothing was started; choose a smaller P, N or batch, or run it on a cluster (docs/cluster.md)."
        )


onstart:
    if workflow.local_exec:
        refuse_what_does_not_fit()


onsuccess:
    made = [path for path in figure_files() if Path(path).exists()]
    print("Figures:", *(f"  {path}" for path in made), sep="\n")
