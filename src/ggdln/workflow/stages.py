"""The workflow as one table: for each stage what it makes, from what, by which code, and what that costs.

The rules of Snakemake and the plan of a run are both made from it. Files of data, gates and curves are named by hashes of what
determines them and hold a block of draws each. Which blocks there are depends on what is on the disk: blocks that exist are
used as they are, and only the draws that they leave open are cut into new ones, so another draw computes just that.
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path

from ggdln.core.code import of_job
from ggdln.core.identity import identifier
from ggdln.core.kinds import REGISTRIES, Terms
from ggdln.study import calibration
from ggdln.workflow import costs

WILDCARDS = {
    "task": r"[a-z0-9_]+-[0-9a-f]{10}",
    "gating": r"[a-z0-9_]+-[0-9a-f]{10}",
    "piece": r"[a-z0-9_]+-[0-9a-f]{10}",
    "draws": r"[0-9]+-[0-9]+",
    "runs": r"[0-9]+-[0-9]+",
    "experiment": r"[a-zA-Z0-9_]+",
    "method": r"[a-z0-9_]+",
    "figure": r"[a-zA-Z0-9_]+",
    "claim": r"[a-zA-Z0-9_]+",
}


@dataclass(frozen=True)
class Stage:
    """A rule. All functions take wildcards by name.

    output: role -> path with wildcards; inputs: role -> paths; spec: what determines the output besides its inputs, in plain
    values; cost: a `Cost`; kinds: (sort, name) of the kinds that it runs, and files of the user's that these run; words:
    whether what it makes contains their words.
    """

    name: str
    output: dict[str, str]
    inputs: Callable
    spec: Callable
    cost: Callable
    kinds: Callable = lambda **wildcards: []
    script: str = ""
    words: bool = False
    report: dict | None = None

    @property
    def main(self):
        """Its first output, which stands for all of them."""
        return next(iter(self.output.values()))

    def note(self, folder, suffix):
        """Path of the log or benchmark file that belongs to an output, as a pattern with wildcards."""
        return str(Path(folder, self.name, *Path(self.main).parts[1:]).with_suffix(suffix))

    def match(self, path):
        """The wildcards of a path that this stage makes, None if it makes no such file."""
        return next((found for pattern in self.output.values() if (found := matched(pattern, path)) is not None), None)


@dataclass(frozen=True)
class Job:
    """One job of a stage: the first of the files it makes, and those that it needs from other jobs."""

    stage: Stage
    wildcards: dict
    inputs: tuple

    @property
    def output(self):
        return self.stage.main.format(**self.wildcards)

    @property
    def benchmark(self):
        return self.stage.note("benchmarks", ".tsv").format(**self.wildcards)

    @cached_property
    def cost(self):
        return self.stage.cost(**self.wildcards)


class Stages:
    """The stages of a configuration, for a project in the folder `root`."""

    def __init__(self, config, root):
        self.config, self.root = config, Path(root).absolute()
        self._libraries = [self.root / "src", self.root / "workflow/scripts"]
        self.run = f"{config.run}/" if config.run else ""
        self.curves = {
            (name, method): experiment.curve(method)
            for name, experiment in config.experiments.items()
            for method in experiment.methods
        }
        self.tasks, self.gatings, self.pieces, self._blocks = {}, {}, {}, {}
        self._ids, self._gating_of, self._tasks_of, self._single = {}, {}, {}, {}
        for curve in self.curves.values():
            self._ids[curve.experiment, curve.method] = [self._add(curve, piece) for piece in curve.pieces]
        # Verdicts and page are about the chosen figures.
        self._claims = {name: claim for name, claim in config.claims.items() if claim["figure"] in config.chosen}
        self._agreement = [entry for entry in config.agreement if entry["figure"] in config.chosen]
        self._tests = {
            name: {
                option: calibration.tests(found["experiments"], config.claims, config.experiments)
                for option, found in choice["options"].items()
            }
            for name, choice in config.calibration.items()
        }
        self.table = {stage.name: stage for stage in self._table()}

    def _add(self, curve, piece):
        """Take up a piece, its data and its gates, and how many draws and runs are wanted of each: its identifier."""
        name = piece.id  # a hash of all its points, so taken once
        self.pieces[name] = piece
        self._want(f"results/{piece.method}/{name}", curve)
        method = REGISTRIES["method"].get(piece.method)
        if method.split:
            single = piece.of_runs()
            self._single[name] = single.id
            self.pieces[single.id] = single
            self._want(f"results/runs/{piece.method}/{single.id}", curve)
        tasks = []
        for point in piece.points:
            task = identifier(point["task"]["kind"], piece.seed, point["task"])
            self.tasks[task] = point["task"]
            self._want(f"results/data/{task}", curve)
            tasks.append(task)
        gating = piece.gating
        if gating:
            self.gatings[gating] = piece
            self._want(f"results/gates/{gating}", curve)
        for known in {name, self._single.get(name, name)}:
            self._gating_of[known], self._tasks_of[known] = gating, tasks
        if gating:
            self._tasks_of[gating] = tasks
        return name

    def _want(self, folder, curve):
        wanted, block, runs = self._blocks.get(folder, (0, curve.draws_per_job, curve.runs_per_job))
        self._blocks[folder] = max(wanted, curve.draws), block, runs

    def files(self, folder, draws):
        """The files of a folder that hold the draws in a range."""
        return [f"{folder}/draws_{first}-{last}.nc" for first, last in self._overlapping(folder, draws)]

    @cache  # noqa: B019 - there is one of these in a process
    def blocks(self, folder):
        """The blocks of draws of a folder, as (first, last): those on the disk, and new ones for what they leave open."""
        wanted, block, _ = self._blocks[folder]
        names = [re.match(r"draws_(\d+)-(\d+)", path.name) for path in Path(folder).glob("draws_*.nc")]
        return cover(wanted, block, {(int(name[1]), int(name[2])) for name in names if name})

    def run_files(self, name, draws):
        """The files with the single runs that a piece averages, for a block of draws."""
        single, piece = self._single[name], self.pieces[name]
        folder, total = f"results/runs/{piece.method}/{single}", piece.settings[REGISTRIES["method"].get(piece.method).split]
        found = []
        for first, last in self._overlapping(folder, draws):
            stem = f"draws_{first}-{last}_runs"
            names = [re.fullmatch(rf"{stem}_(\d+)-(\d+)", path.stem) for path in Path(folder).glob(f"{stem}_*.nc")]
            existing = {(int(n[1]), int(n[2])) for n in names if n}
            found += [f"{folder}/{stem}_{a}-{b}.nc" for a, b in cover(total, self._blocks[folder][2], existing)]
        return found

    def _overlapping(self, folder, draws):
        """The blocks of a folder that hold draws in a range."""
        return [block for block in self.blocks(folder) if block[0] < draws.stop and block[1] > draws.start]

    def sample_files(self, name, draws):
        """The data and gates of a piece or gating, for a block of draws."""
        folders = dict.fromkeys(f"results/data/{task}" for task in self._tasks_of[name])
        found = {"tasks": [file for folder in folders for file in self.files(folder, draws)]}
        gating = self._gating_of.get(name)
        return found | {"gates": self.files(f"results/gates/{gating}", draws) if gating else []}

    def curve_file(self, experiment, method):
        return f"results/{self.run}curves/{experiment}/{method}.nc"

    def figure_file(self, figure, suffix="pdf"):
        return f"figures/{self.run}{figure}.{suffix}"

    def code(self, stage, wildcards):
        """What a job runs: the programs, whether their words count, and a fingerprint of them and all that they import."""
        used = list(dict.fromkeys(stage.kinds(**wildcards)))
        own = [path for path in used if isinstance(path, Path)]
        kinds = [REGISTRIES[sort].file(name) for sort, name in (kind for kind in used if kind not in own)]
        programs = [self.root / "workflow/scripts" / f"{stage.script or stage.name}.py", *kinds]
        added = {path for registry in REGISTRIES.values() for _, path in registry.added.values()}

        def within(path):
            return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)

        return {
            "programs": [within(path) for path in programs],
            "own": [within(path) for path in own],
            "kinds": [within(path) for path in kinds if path in added],
            "words": stage.words,
            "fingerprint": of_job(programs, self._libraries, own=own, words=stage.words),
        }

    def jobs(self, *targets):
        """All jobs that the targets need: output -> Job, each after those it needs."""
        found, seen = {}, set()
        queue = [(target, False) for target in reversed(targets)]
        while queue:
            path, ready = queue.pop()
            if ready or path not in seen:
                seen.add(path)
                stage, wildcards = self.maker(path)
                if stage is None:
                    continue
                inputs = tuple(file for files in stage.inputs(**wildcards).values() for file in files)
                job = Job(stage, wildcards, inputs)
                if ready:
                    found[job.output] = job
                else:
                    queue += [(path, True), *((file, False) for file in reversed(inputs))]
        return found

    def maker(self, path):
        """The stage that makes a file, and the wildcards."""
        for stage in self.table.values():
            wildcards = stage.match(path)
            if wildcards is not None:
                return stage, wildcards
        return None, {}

    def unknown_figures(self):
        """A pattern of all files under figures/ that no stage makes."""
        names = "|".join(map(re.escape, self.config.figures))
        return rf"(?!{re.escape(self.run)}(?:report\.html|(?:{names})\.(?:pdf|png))$).+"

    def unknown_target(self, target):
        """That there is no such figure, and those that there are, the closest first."""
        there = [self.figure_file(figure) for figure in self.config.figures]
        close = difflib.get_close_matches(target, there, n=3, cutoff=0.75)
        meant = f" Did you mean {close[0]}?" if close else ""
        return f"There is no figure {target}.{meant} Figures: {', '.join(dict.fromkeys([*close, *there]))}"

    def calibration_file(self):
        return f"results/{self.run}calibration.json"

    def claims_file(self):
        return f"results/{self.run}claims.json"

    # ---- The table

    def _table(self):
        """Stages in the order of the data: task -> gates -> methods -> curve -> figure -> claim -> page."""
        yield Stage(
            "prepare_task",
            {"data": "results/data/{task}/draws_{draws}.nc"},
            inputs=lambda task, draws: {},
            spec=lambda task, draws: self._task_spec(self.tasks[task]),
            cost=lambda task, draws: self._task_cost(self.tasks[task], len(span(draws))),
            kinds=lambda task, draws: [("task", self.tasks[task]["kind"])],
        )
        yield Stage(
            "fit_gates",
            {"gates": "results/gates/{gating}/draws_{draws}.nc"},
            inputs=lambda gating, draws: {"tasks": self.sample_files(gating, span(draws))["tasks"]},
            spec=lambda gating, draws: self._gates_spec(gating),
            cost=lambda gating, draws: self._gates_cost(self.gatings[gating], len(span(draws))),
            kinds=lambda gating, draws: self._gates_code(self.gatings[gating]),
        )
        for name in REGISTRIES["method"].names():
            yield from self._method_stages(name, REGISTRIES["method"].get(name))
        yield Stage(
            "assemble_curve",
            {"curve": f"results/{self.run}curves/{{experiment}}/{{method}}.nc"},
            inputs=lambda experiment, method: {"pieces": self._piece_files(experiment, method)},
            spec=lambda experiment, method: self._curve_spec(experiment, method),
            cost=lambda experiment, method: costs.of_files(len(self._piece_files(experiment, method)), costs.READING),
        )
        yield Stage(
            "collect_figure",
            {"data": f"results/{self.run}{{figure}}.nc"},
            inputs=lambda figure: {"curves": [self.curve_file(*name) for name in self.config.curves_of(figure)]},
            spec=lambda figure: {"curves": ["/".join(name) for name in self.config.curves_of(figure)]},
            cost=lambda figure: costs.of_files(self._file_count(self.config.curves_of(figure)), costs.READING),
            kinds=lambda figure: self._measuring(self.config.curves_of(figure)),
            words=True,
        )
        yield Stage(
            "draw_figure",
            {"pdf": self.figure_file("{figure}"), "png": self.figure_file("{figure}", "png")},
            inputs=lambda figure: {"data": [f"results/{self.run}{figure}.nc"]},
            spec=lambda figure: self._figure_spec(figure),
            cost=lambda figure: costs.of_files(self._file_count(self.config.curves_of(figure)), costs.DRAWING),
            kinds=lambda figure: self._drawing(figure),
            words=True,
            report={"png": {"caption": "figure", "category": "Figures", "labels": {"figure": "{figure}"}}},
        )
        yield Stage(
            "judge_claim",
            {"verdict": f"results/{self.run}claims/{{claim}}.json"},
            inputs=lambda claim: {"curves": [self.curve_file(*name) for name in self.config.curves_of_claim(claim)]},
            spec=lambda claim: self._claim_spec(claim),
            cost=lambda claim: costs.of_files(len(self.config.curves_of_claim(claim)), costs.JUDGING),
            kinds=lambda claim: [("condition", self.config.claims[claim]["condition"]["kind"])],
        )
        yield Stage(
            "weigh_choices",
            {"table": self.calibration_file()},
            inputs=lambda: {"curves": [self.curve_file(*name) for name in self._tested()]},
            spec=lambda: self._choices_spec(),
            cost=lambda: costs.of_files(len(self._tested()), costs.JUDGING),
            kinds=lambda: [("condition", condition["kind"]) for condition, _ in self._each_test()],
        )
        yield Stage(
            "collect_claims",
            {"claims": self.claims_file()},
            inputs=lambda: self._all_verdicts(),
            spec=lambda: {"run": self.config.run, "agreement": self._agreement, "findings": self._findings()},
            cost=lambda: costs.of_files(len(self._claims), costs.JUDGING),
            report={"claims": {"caption": "claims", "category": "Report", "labels": {"page": "verdicts as JSON"}}},
        )
        yield Stage(
            "make_report",
            {"page": f"figures/{self.run}report.html"},
            inputs=lambda: self._report_inputs(),
            spec=lambda: self._report_spec(),
            cost=lambda: costs.of_files(len(self.config.chosen), costs.REPORTING),
            kinds=lambda: self._reporting(),
            words=True,
            report={"page": {"caption": "page", "category": "Report", "labels": {"page": "verdicts and figures"}}},
        )

    def _method_stages(self, name, method):
        """One stage, or two where independent runs are split over jobs and then put together."""
        whole = {"curve": f"results/{name}/{{piece}}/draws_{{draws}}.nc"}
        if not method.split:
            yield Stage(
                f"run_{name}",
                whole,
                inputs=lambda piece, draws: self.sample_files(piece, span(draws)),
                spec=lambda piece, draws: self._piece_spec(piece, method),
                cost=lambda piece, draws: self._piece_cost(piece, method, len(span(draws))),
                kinds=lambda piece, draws: self._running(piece, observing=True),
                script="run_method",
            )
            return
        yield Stage(
            f"run_{name}",
            {"runs": f"results/runs/{name}/{{piece}}/draws_{{draws}}_runs_{{runs}}.nc"},
            inputs=lambda piece, draws, runs: self.sample_files(piece, span(draws)),
            spec=lambda piece, draws, runs: self._piece_spec(piece, method),
            cost=lambda piece, draws, runs: self._piece_cost(piece, method, len(span(draws)), len(span(runs))),
            kinds=lambda piece, draws, runs: self._running(piece, observing=False),
            script="run_method",
        )
        yield Stage(
            f"combine_{name}",
            whole,
            inputs=lambda piece, draws: self.sample_files(piece, span(draws)) | {"runs": self.run_files(piece, span(draws))},
            spec=lambda piece, draws: self._piece_spec(piece, method),
            cost=lambda piece, draws: self._combine_cost(piece, method, len(span(draws))),
            kinds=lambda piece, draws: self._running(piece, observing=True),
            script="combine_runs",
        )

    # ---- What the stages take

    def _task_spec(self, task):
        digits = self.config.digits.model_dump(exclude={"source"}) if "digits" in task else {}
        return {"task": task, "seed": self.config.seed, "digits": digits}

    def _gates_spec(self, gating):
        piece = self.gatings[gating]
        return {"points": piece.points, "tasks": self._tasks_of[gating], "seed": piece.seed}

    def _piece_spec(self, name, method):
        spec = {"piece": asdict(self.pieces[name]), "tasks": self._tasks_of[name]}
        if method.simulates:
            spec["machine"] = self.config.machine.model_dump(exclude={"available_mb"})
        return spec

    def _curve_spec(self, experiment, method):
        curve = self.curves[experiment, method]
        return {
            "axes": curve.axes,
            "draws": curve.draws,
            "seed": self.config.seed,
            "pieces": self._ids[experiment, method],
        }

    def _figure_spec(self, figure):
        layout = self.config.figures[figure]
        names = dict.fromkeys(experiment for experiment, _ in self.config.curves_of(figure))
        return {
            "figure": layout.spec(),
            "experiments": {name: self.config.experiments[name].parameters() for name in names},
        }

    def _claim_spec(self, claim):
        names = dict.fromkeys(experiment for experiment, _ in self.config.curves_of_claim(claim))
        experiments = {name: self.config.experiments[name].parameters() for name in names}
        return {"id": claim, "claim": self.config.claims[claim], "experiments": experiments}

    def _each_test(self):
        return [test for options in self._tests.values() for put in options.values() for test in put.values()]

    def _tested(self):
        """The curves that the calibration looks at."""
        puts = [put for options in self._tests.values() for put in options.values()]
        return list(dict.fromkeys(curve for put in puts for curve in calibration.curves(put)))

    def _choices_spec(self):
        names = dict.fromkeys(experiment for experiment, _ in self._tested())
        return {
            "choices": self.config.calibration,
            "tests": self._tests,
            "experiments": {name: self.config.experiments[name].parameters() for name in names},
        }

    def _all_verdicts(self):
        compared = [(entry["experiment"], entry["method"]) for entry in self._agreement]
        for entry in self._agreement:
            reference = entry | entry["reference"]
            compared.append((reference["experiment"], reference["method"]))
        return {
            "claims": [f"results/{self.run}claims/{claim}.json" for claim in self._claims],
            "curves": [self.curve_file(*name) for name in dict.fromkeys(compared)],
            "findings": list(dict.fromkeys(self._findings().values())),
            # Calibrating takes long and is a question of its own; its answer is told where there is one.
            "calibration": [file for file in [self.calibration_file()] if self._claims and Path(file).exists()],
        }

    def _findings(self):
        """The text that goes with a claim, where there is one."""
        folder = self._of_project("workflow/report/findings")
        return {name: f"{folder}/{claim['finding']}.md" for name, claim in self._claims.items() if claim.get("finding")}

    def _report_inputs(self):
        folder = self._of_project("src/ggdln/study/report/templates")
        return {
            "claims": [self.claims_file()],
            "numbers": [f"results/{self.run}{figure}.nc" for figure in self.config.chosen],
            "pictures": [self.figure_file(figure, "png") for figure in self.config.chosen],
            "templates": sorted(map(str, folder.iterdir())),
        }

    def _of_project(self, path):
        """A path of the project as jobs see it, who may run in a folder of the user's."""
        return Path(path) if Path(path).exists() else self.root / path

    def _report_spec(self):
        from ggdln.workflow.overview import parameter_tables

        return {
            "run": self.config.run,
            "figures": {name: self._figure_spec(name) for name in self.config.chosen},
            "parameters": {name: parameter_tables(self.config, name) for name in self.config.chosen},
            "benchmarks": {name: self._benchmarks(name) for name in self.config.chosen},
        }

    def _benchmarks(self, figure):
        """(benchmark file, predicted seconds) of all jobs of a figure."""
        return [(job.benchmark, round(job.cost.seconds, 1)) for job in self.jobs(self.figure_file(figure)).values()]

    def _piece_files(self, experiment, method):
        draws = range(self.curves[experiment, method].draws)
        return [file for name in self._ids[experiment, method] for file in self.files(f"results/{method}/{name}", draws)]

    def _file_count(self, curves):
        return sum(len(self._piece_files(*name)) for name in curves)

    # ---- Kinds that a job runs

    def _running(self, name, observing):
        piece = self.pieces[name]
        kinds = [("method", piece.method)]
        if "gates" in piece.points[0]:
            kinds += self._gates_code(piece)
        return kinds + ([("observable", observable) for observable in piece.observables] if observing else [])

    def _gates_code(self, piece):
        """The kind of its gates, and files of the user's that these run."""
        gates = [point["gates"] for point in piece.points]
        kind = gates[0]["kind"]
        programs = [path for spec in gates for path in _kind("gates", spec).programs()] if _reads_files("gates", kind) else []
        return [("gates", kind), *programs]

    def _measuring(self, curves):
        kinds = [("method", method) for _, method in curves]
        observed = [name for experiment, _ in curves for name in self.config.experiments[experiment].observables]
        return kinds + [("observable", name) for name in observed]

    def _drawing(self, figure):
        """Panels ask the task for its sizes, which tell its capacity."""
        panels, curves = self.config.figures[figure].panels.values(), self.config.curves_of(figure)
        tasks = [("task", self.config.experiments[experiment].task["kind"]) for experiment, _ in curves]
        return [("panel", panel.kind_name()) for panel in panels] + tasks + self._measuring(curves)

    def _reporting(self):
        """The page puts conditions into words."""
        kinds = [kind for figure in self.config.chosen for kind in self._drawing(figure)]
        for name, claim in self._claims.items():
            kinds += [("condition", claim["condition"]["kind"]), *self._measuring(self.config.curves_of_claim(name))]
        return kinds

    # ---- What jobs cost

    def _task_cost(self, spec, draws):
        task = _kind("task", spec)
        return costs.Cost(task.terms(draws), task.costs)

    def _gates_cost(self, piece, draws):
        sizes = [_sizes(point["task"]) for point in piece.points]
        kinds = [_kind("gates", point["gates"]) for point in piece.points]
        terms = [gates.terms(size) for gates, size in zip(kinds, sizes, strict=True)]
        return costs.of_points(draws, sizes, terms, kinds[0].costs)

    def _piece_cost(self, name, method, draws, runs=0):
        piece, memory = self.pieces[name], self.config.machine.memory_mb
        settings = piece.settings if not method.split else {method.split: max(runs, 2)} | piece.settings
        kind, sizes, terms = method(**settings), [], []
        for point in piece.points:
            size, M = _sizes(point["task"]), point.get("gates", {}).get("M", 1)
            sizes.append(size)
            terms += [kind.terms(size, M, network, runs=runs, memory_mb=memory) for network in piece.networks]
        return costs.of_points(draws, sizes, terms, method.costs, len(piece.networks))

    def _combine_cost(self, name, method, draws):
        piece = self.pieces[name]
        sizes = [_sizes(point["task"]) for point in piece.points]
        runs, networks = piece.settings[method.split], len(piece.networks)
        terms = [Terms({}, {"predictions": 8 * runs * size.P_t * size.C * networks / 1e6}) for size in sizes]
        return costs.of_points(draws, sizes, terms, costs.COMBINING, networks)


def cover(wanted, block, existing=()):
    """(first, last) of blocks that hold 0 ... wanted - 1: existing ones where they begin, new ones of a size in between."""
    found, position = [], 0
    while position < wanted:
        longest = max((last for first, last in existing if first == position < last), default=0)
        if not longest:
            following = min((first for first, _ in existing if first > position), default=wanted)
            longest = min(position + block, following, wanted)
        found.append((position, longest))
        position = longest
    return found


def span(text):
    """The range that a wildcard such as 0-5 stands for."""
    return range(*map(int, text.split("-")))


def matched(pattern, path):
    """The wildcards of a path that fits a pattern, None if it doesn't."""
    found = _regex(pattern).fullmatch(path)
    return found and found.groupdict()


@cache
def _regex(pattern):
    parts = re.split(r"\{(\w+)\}", pattern)
    return re.compile("".join(f"(?P<{part}>{WILDCARDS[part]})" if i % 2 else re.escape(part) for i, part in enumerate(parts)))


def _kind(sort, spec):
    return _made(sort, repr(sorted(spec.items())), lambda: REGISTRIES[sort].make(spec))


_known = {}


def _made(sort, key, make):
    """Kinds are checked when they are made, and a sweep has many points with the same task."""
    if (sort, key) not in _known:
        _known[sort, key] = make()
    return _known[sort, key]


def _reads_files(sort, name):
    return REGISTRIES[sort].get(name).from_file


def _sizes(spec):
    return _kind("task", spec).sizes()
