# Needs the configuration. Makes no files: it checks the configuration, lays out the stages of the workflow, and says how a run
# goes.

import logging
import sys
import time
from functools import cache
from pathlib import Path

import psutil
from snakemake.logging import logger

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from ggdln.core import code
from ggdln.core.errors import ConfigError
from ggdln.core.identity import identifier
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load
from ggdln.workflow.progress import CLUSTER_SECONDS, LOCAL_SECONDS, Progress, priorities
from ggdln.workflow.stages import WILDCARDS, Stages

try:
    CONFIG = read_config(load(default_files(ROOT), config), own=config.get("figures"))
except ConfigError as error:
    sys.exit(str(error))

config.update(run=CONFIG.run, seed=CONFIG.seed)  # for the first page of Snakemake's own report
STAGES = Stages(CONFIG, ROOT)
code.recall(code.RECORD)


wildcard_constraints:
    **WILDCARDS | {"figure": "|".join(CONFIG.figures), "claim": "|".join(CONFIG.claims) or "none"},


def figure_files():
    """The figures that are made if no target is named."""
    return [STAGES.figure_file(figure) for figure in CONFIG.chosen]


class Told(dict):
    """Parameters that Snakemake knows, and prints, by their hash; a job gets them as a plain dictionary."""

    def __repr__(self):
        return identifier("parameters", self)

    def __reduce__(self):
        return dict, (dict(self),)


class Asked:
    """A stage as Snakemake asks for it: functions of wildcards, and of the number of the attempt."""

    def __init__(self, stage):
        self.stage = stage

    def inputs(self, wildcards):
        return {role: files for role, files in self.stage.inputs(**wildcards).items() if files}

    def spec(self, wildcards):
        return Told(self.stage.spec(**wildcards))

    def code(self, wildcards):
        return STAGES.code(self.stage, dict(wildcards))["fingerprint"]

    def programs(self, wildcards):
        code = STAGES.code(self.stage, dict(wildcards))
        return Told({key: value for key, value in code.items() if key != "fingerprint"})

    def memory(self, wildcards, attempt):
        return self.stage.cost(**wildcards).mem_mb(attempt)

    def minutes(self, wildcards, attempt):
        return self.stage.cost(**wildcards).runtime(attempt)

    def priority(self, wildcards):
        return order_of_jobs().get(self.stage.main.format(**wildcards), 0)

    def output(self):
        """Its files, those that belong into Snakemake's own report marked as such."""
        marks = self.stage.report or {}
        return {role: self.marked(path, **marks[role]) if role in marks else path for role, path in self.stage.output.items()}

    def marked(self, path, caption, **more):
        return report(path, caption=str(ROOT / f"workflow/report/{caption}.rst"), **more)


def pending():
    """The jobs that this run has to do: output -> Job, each after those it needs."""
    wanted = {job.output[0] for job in workflow.dag.needrun_jobs() if job.rule.name in STAGES.table}
    return {output: job for output, job in STAGES.jobs(*wanted).items() if output in wanted}


@cache
def order_of_jobs():
    """The priority of each job. Snakemake asks for it once it knows what has to be run, in a dry-run too."""
    jobs = pending()
    if workflow.executor_plugin is not None and workflow.is_main_process and not on_cluster():
        refuse_what_does_not_fit(jobs)
    figures = [job.output for job in jobs.values() if job.stage.name == "draw_figure"]
    return priorities({figure: list(STAGES.jobs(figure)) for figure in figures}, jobs)


def on_cluster():
    """Whether jobs are sent elsewhere; in a dry-run, whether they would be."""
    # Of the executor that a dry-run stands for Snakemake keeps only that it would watch its jobs in threads.
    return not workflow.local_exec or (workflow.dryrun and workflow.execution_settings.use_threads)


def refuse_what_does_not_fit(jobs):
    """End with a message, before anything runs, if a job is predicted to need more memory than this machine has."""
    available = CONFIG.machine.available_mb or psutil.virtual_memory().total // 2**20
    largest = max(jobs.values(), key=lambda job: (job.cost.megabytes, job.output), default=None)
    if largest is not None and largest.cost.megabytes > available:
        sys.exit(
            f"{largest.stage.name} needs {largest.cost.megabytes:.0f} MB for {largest.output}, this machine has {available} MB "
            "for jobs. Nothing was started; choose a smaller P, N or batch, or run it on a cluster (docs/cluster.md)."
        )


def refuse_unknown(wildcards):
    """End with a message that names the figures there are, the closest first."""
    sys.exit(STAGES.unknown_target(f"figures/{wildcards.wanted}"))


class TimeLeft(logging.Handler):
    """Says after finished jobs how much time is left; Snakemake logs each of them."""

    def __init__(self):
        super().__init__()
        jobs = pending()
        if on_cluster():
            slots, overhead = workflow.nodes, CLUSTER_SECONDS
            where = f"{slots} cluster jobs at a time, without waiting in the queue"
        else:
            slots, overhead = workflow.cores, LOCAL_SECONDS
            where = f"{slots} core{'s' if slots > 1 else ''}"
        self.outputs = {job.jobid: job.output[0] for job in workflow.dag.needrun_jobs() if job.output}
        self.progress = Progress(jobs, slots, where=where, overhead=overhead, start=time.monotonic())
        shown = [*map(STAGES.figure_file, CONFIG.figures), STAGES.table["make_report"].main, STAGES.calibration_file()]
        logger.info(self.progress.announcement([file for file in shown if file in jobs]))

    def emit(self, record):
        if getattr(record, "event", None) == "job_finished" and record.job_id in self.outputs:
            line = self.progress.finished(self.outputs[record.job_id], time.monotonic())
            if line:
                logger.info(line)


onstart:
    code.record(code.RECORD)
    logger.addHandler(TimeLeft())


onsuccess:
    # Files that were asked for by name, and what the rules that were asked for are about.
    asked = {*workflow.dag.targetfiles, *(file for job in workflow.dag.targetjobs if not job.output for file in job.input)}
    if asked:
        print("Made:", *(f"  {path}" for path in sorted(map(str, asked))), sep="\n")
