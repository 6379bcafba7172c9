# Needs the configuration. Makes no files: it checks the configuration and lays out the stages of the workflow.

import sys
from pathlib import Path

import psutil
from snakemake.exceptions import WorkflowError

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from ggdln.core.errors import ConfigError
from ggdln.workflow.config import default_files, load, read_config
from ggdln.workflow.stages import WILDCARDS, Stages

try:
    CONFIG = read_config(load(default_files(ROOT), config))
except ConfigError as error:
    sys.exit(str(error))

config.update(run=CONFIG.run, seed=CONFIG.seed)  # for the first page of Snakemake's own report
STAGES = Stages(CONFIG, ROOT)


wildcard_constraints:
    **WILDCARDS | {"figure": "|".join(CONFIG.figures), "claim": "|".join(CONFIG.claims) or "none"},


def figure_files():
    return [STAGES.figure_file(figure) for figure in CONFIG.figures]


class Asked:
    """A stage as Snakemake asks for it: functions of wildcards, and of the number of the attempt."""

    def __init__(self, stage):
        self.stage = stage

    def inputs(self, wildcards):
        return {role: files for role, files in self.stage.inputs(**wildcards).items() if files}

    def spec(self, wildcards):
        return self.stage.spec(**wildcards)

    def code(self, wildcards):
        return STAGES.code(self.stage, dict(wildcards))

    def memory(self, wildcards, attempt):
        return self.stage.cost(**wildcards).mem_mb(attempt)

    def minutes(self, wildcards, attempt):
        return self.stage.cost(**wildcards).runtime(attempt)

    def output(self):
        """Its files, those that belong into Snakemake's own report marked as such."""
        marks = self.stage.report or {}
        return {role: self.marked(path, **marks[role]) if role in marks else path for role, path in self.stage.output.items()}

    def marked(self, path, caption, **more):
        return report(path, caption=str(ROOT / f"workflow/report/{caption}.rst"), **more)


def refuse_what_does_not_fit():
    """End with a message, before anything runs, if a job is predicted to need more memory than this machine has."""
    available = CONFIG.machine.available_mb or psutil.virtual_memory().total // 2**20
    needs = {}
    for job in workflow.dag.needrun_jobs():
        if job.rule.name in STAGES.table:
            needs[job] = STAGES.table[job.rule.name].cost(**job.wildcards_dict).megabytes
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
