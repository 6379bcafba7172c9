"""Verdicts in Markdown: docs/verdicts.md, docs/agreement.md and a few lines of README.md, from what results/claims.json holds."""

from ggdln.study import words

BEGIN, END = "<!-- verdicts: written by `make docs` -->", "<!-- end of verdicts -->"
COLUMNS = {"holds": "holds", "partly": "holds in some draws", "fails": "doesn't hold", "untestable": "not testable here"}
WORDS = {"holds": "hold", "partly": "hold in some draws", "fails": "don't hold", "untestable": "can't be tested here"}
MADE = "The numbers of the figures were put together at commit"
HEAD = ["panel", "claim", ">effect", ">draws", "verdict", "control"]
CHANGED = [
    "Conditions were written down before they were put to all draws and variants. Some were changed after a first look:",
    "",
    "- Divergence at capacity is measured against the least values on either side; a large bias at M = 1 had hidden it.",
    "- Inputs that open no gate are left out of ranks, and training errors up to 0.5 % of the largest count as zero.",
    "- Fig. 2d: amplified means a ratio above 1, not above 1.05.",
    "- Fig. S1: variances up to 5 %, not 2 %, of the largest count as zero, since the temperature is not zero. Theory and",
    "  limit are compared over the whole sweep, not only beyond capacity.",
    "- Fig. S2: the exact posterior is compared from N = 200 on; how it approaches the theory is in the last table.",
    "- Fig. 2 and S2: sigma was 0.5 and is 0.25; Fig. 6: T was 1e-7 and is 1e-5, with P samples of each permutation, and for a",
    "  while P counted all of them, at T = 0; the thresholds of Fig. 6e went up to 1 and go to 2.5. These values the paper leaves",
    "  open (config/calibration.yaml).",
    "- Fig. S2: the temperatures were 0.01 and 0.001, where Langevin dynamics didn't mix, and are 0.1 and 0.01.",
]
COMPARED = {
    "teacher_regular": "regular inputs, theory at T = 0",
    "teacher_preferred": "preferred inputs, theory at T = 0",
    "posterior_regular": "regular inputs, all at T = 0.1",
    "posterior_preferred": "preferred inputs, all at T = 0.01",
}


def table(head, rows):
    """A Markdown table; columns whose name has > before it are set to the right."""
    lines = [f"| {' | '.join(name.removeprefix('>') for name in head)} |"]
    lines.append("|" + "|".join("--:" if name.startswith(">") else "---" for name in head) + "|")
    return lines + [f"| {' | '.join(map(str, row))} |" for row in rows]


def row(claim):
    """A claim with its effect, its verdict and its control."""
    told = [words.effect(claim["effect"]), words.draws(claim), words.verdict(claim), words.control(claim)]
    return [words.place(claim), claim["statement"], *told]


def overview(claims):
    """How many of the paper's statements have which outcome, and where those are that don't hold, in a few lines."""
    papers = [claim for claim in claims if claim["source"] != "ours"]
    found = {outcome: [claim for claim in papers if claim["outcome"] == outcome] for outcome in COLUMNS}
    told = [f"{len(found[outcome])} {WORDS[outcome]}" for outcome in COLUMNS if found[outcome]]
    lines = [f"Of {len(papers)} statements that the paper makes about its figures, {', '.join(told)}."]
    for outcome in ("partly", "fails"):
        panels = dict.fromkeys(words.place(claim) for claim in found[outcome])
        lines += (
            [
                *([""] if outcome == "partly" or not found["partly"] else []),
                f"- {COLUMNS[outcome].capitalize()}: {', '.join(panels)}.",
            ]
            if panels
            else []
        )
    return lines


def summary(claims):
    """How many claims on each figure have which outcome, and those that don't hold throughout."""
    papers = [claim for claim in claims if claim["source"] != "ours"]
    figures = {claim["figure"]: [c for c in papers if c["figure"] == claim["figure"]] for claim in papers}
    rows = [
        [name.removeprefix("fig"), len(chosen), *(sum(c["outcome"] == outcome for c in chosen) for outcome in COLUMNS)]
        for name, chosen in (figures | {"all": papers}).items()
    ]
    open_ones = [row(claim) for claim in papers if claim["outcome"] != "holds"]
    lines = table(["figure", ">claims", *(f">{name}" for name in COLUMNS.values())], rows)
    return [*lines, "", "Those that don't hold in all draws:", "", *table(HEAD, open_ones)]


def origin(commits):
    """Of which commits the numbers are, in a paragraph; commits: how many figures were put together at each."""
    if not commits:
        return []
    told = ", ".join(f"`{commit}` ({count} figure{'s' if count > 1 else ''})" for commit, count in commits.items())
    return [
        "",
        f"{MADE} {told}.",
        "A number is computed again when an edit concerns it, and only then, so single curves may be of earlier commits.",
    ]


def verdicts(content, commits=None):
    """The page with all verdicts, variants, findings and distances from the theory."""
    claims = content["claims"]
    lines = ["# Verdicts", "", "Written by `make docs` from results/claims.json. Conditions: config/claims.", *origin(commits)]
    lines += ["", *summary(claims), "", *CHANGED]
    for title, ours in (("What the paper says", False), ("What we add", True)):
        lines += ["", f"## {title}", "", *table(HEAD, [row(c) for c in claims if (c["source"] == "ours") is ours])]
    variants = [
        [claim["id"], variant["varied"], words.effect(variant["effect"]), words.draws(variant), words.verdict(variant)]
        for claim in claims
        for variant in claim["sensitivity"]
    ]
    lines += ["", "## Variants", "", *table(["claim", "varied", ">effect", ">draws", "verdict"], variants)]
    lines += ["", "## Findings"]
    for finding in dict.fromkeys(claim["finding"] for claim in claims if claim["finding"]):
        lines += ["", finding.strip().replace("# ", "### ", 1)]
    lines += ["", "## Distance of simulations from the theory", ""]
    lines += ["Relative differences with standard errors; the power is that of N with which they fall.", ""]
    return lines + table(
        ["figure", "experiment", "method", "quantity", "differences", ">power"], map(distance, content["agreement"])
    )


def calibration(choices):
    """The page that says which of the values that the paper leaves open were tried, and what each wins and loses."""
    lines = [
        "# Values that were tried against what the paper says",
        "",
        "Written by `make docs` from results/claims.json, once `make calibrate` and `make report` have been run. The options are",
        "declared in config/calibration.yaml. The statements of the paper about the experiments that an option changes are put to",
        "it, but for those that need a method which isn't run here, mostly trained networks. The score is the sum over statements",
        "of the share of draws in which they hold. Won and lost are beside the chosen option, whose values the configuration has",
        "under `assumed`. Choices are tried one at a time, from the chosen values.",
    ]
    for choice in choices:
        lines += ["", f"## {choice['name'].replace('_', ' ').capitalize()}", "", choice["question"], ""]
        lines += table(["option", "values", ">hold", ">score", "won", "lost"], words.options(choice))
        lines += ["", words.margin(choice)]
    return lines


def distance(entry):
    """All differences of a simulation from the theory, and their power of the width."""
    found = [f"{entry['axis']} = {r['x']:g}: {difference(r)}" for r in entry["rows"]]
    names = [entry["figure"].removeprefix("fig"), entry["experiment"], entry["method"], entry["quantity"].replace("_", " ")]
    return [*names, "; ".join(found), words.effect(entry["exponent"]) if entry["exponent"] else ""]


def difference(point):
    return words.with_error(point["difference"], point["error"], percent=True)


def agreement(entries):
    """The page that has simulations beside the theory, a table for each experiment."""
    lines = [
        "# Simulations beside the theory",
        "",
        "Written by `make docs` from results/claims.json. Errors are standard errors over independent draws of data and gates;",
        "the difference is that of simulation and theory in the same draw, relative to the theory, and its error at least that",
        "over runs.",
    ]
    experiments = {}
    for entry in entries:
        experiments.setdefault((entry["figure"], entry["experiment"]), []).append(entry)
    for (figure, experiment), chosen in experiments.items():
        lines += ["", f"## {words.figure(figure)}, {COMPARED.get(experiment, experiment)}", "", *beside(chosen), ""]
        lines += [f"- {simulation(entry)}." for entry in {entry["method"]: entry for entry in chosen}.values()]
    return lines


def beside(entries):
    """Reference and simulations at each point, for each quantity."""
    methods = list(dict.fromkeys(entry["method"] for entry in entries))
    head = [entries[0]["axis"], "quantity"]
    for method in methods:
        draws = max(r["draws"] for entry in entries if entry["method"] == method for r in entry["rows"])
        head += [f"theory ({draws} draws)", words.method(method), "difference"]
    rows = {}
    for entry in entries:
        for point in entry["rows"]:
            cells = rows.setdefault((entry["quantity"], point["x"]), {})
            both = (words.effect(point[name]) for name in ("reference", "simulation"))
            cells[entry["method"]] = [*both, difference(point)]
    missing = ["–"] * 3
    return table(head, [
        [f"{x:g}", quantity.replace("_", " "), *(cell for method in methods for cell in cells.get(method, missing))]
        for (quantity, x), cells in rows.items()
    ])  # fmt: skip


def simulation(entry):
    """How many runs there were, how many failed, and how well chains have mixed."""
    text = f"{words.method(entry['method'])}: {entry['runs']} runs or chains a point, {entry['failed']} failed"
    if entry["largest_rhat"] is not None:
        text += f"; largest R-hat {entry['largest_rhat']:.2f}, least effective sample size {entry['least_ess']:.0f}"
    return text


def documents(content, readme, commits=None):
    """Path -> text of the pages, and of the README with its lines renewed; commits: those of the figures' numbers, with counts."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    pages = {"docs/verdicts.md": verdicts(content, commits), "docs/agreement.md": agreement(content["agreement"])}
    if content.get("calibration"):
        pages["docs/calibration.md"] = calibration(content["calibration"])
    renewed = "\n".join([before + BEGIN, *overview(content["claims"]), END]) + after
    return {path: "\n".join(lines) + "\n" for path, lines in pages.items()} | {"README.md": renewed}
