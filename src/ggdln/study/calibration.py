"""Calibration: which value, of those that the paper leaves open, fits most of what it says?

A choice has options. Each gives some experiments other values, under names of their own, and the paper's claims about these
experiments are put to it: an option's score is the sum over claims of the share of draws that meet the condition. Claims that
are ours, and those that need a method which isn't run for the calibration, don't count.
"""

from ggdln.study.claims import compared, put_to_draws


def tests(option, claims, experiments):
    """The claims that an option bears on: name -> (condition, measured), both looking at the option's experiments.

    option: experiment -> the one that stands in for it; experiments: by name, with `methods`.
    """
    found = {}
    for name, claim in claims.items():
        if claim["source"] == "ours" or claim["measured"]["experiment"] not in option:
            continue
        condition, measured = dict(claim["condition"]), _instead(claim["measured"], option)
        condition |= {role: _instead(condition[role], option) for role in ("other", "reference") if role in condition}
        looked_at = compared(condition, measured).values()
        if all(look["method"] in experiments[look["experiment"]].methods for look in looked_at):
            found[name] = condition, measured
    return found


def curves(put):
    """(experiment, method) of all curves that tests look at."""
    looks = [look for condition, measured in put.values() for look in compared(condition, measured).values()]
    return list(dict.fromkeys((look["experiment"], look["method"]) for look in looks))


def weigh(choice, put, data, experiments):
    """A choice with, for each option, what becomes of each claim, how many hold, and the score.

    put: option -> tests; data: "experiment/method" -> dataset; experiments: name -> parameters. margin: by how much the score
    of the chosen option exceeds the best of the others; negative if one of them fits better.
    """
    options = []
    for name, about in put.items():
        found = {claim: put_to_draws(*test, data, experiments) for claim, test in about.items()}
        found = {claim: {key: result[key] for key in ("outcome", "holds", "draws")} for claim, result in found.items()}
        shares = [result["holds"] / result["draws"] for result in found.values() if result["draws"]]
        held = sum(result["outcome"] == "holds" for result in found.values())
        told = {"name": name, "values": choice["options"][name]["words"]}
        options.append(told | {"held": held, "score": round(sum(shares), 6), "claims": found})
    scores = {option["name"]: option["score"] for option in options}
    others = [score for name, score in scores.items() if name != choice["chosen"]]
    margin = round(scores[choice["chosen"]] - max(others), 6)
    return {key: choice[key] for key in ("question", "chosen")} | {"margin": margin, "options": options}


def tried(calibration, claim):
    """The options to which a claim was put: question, option, whether it is the chosen one, and what became of the claim."""
    return [
        {"question": choice["question"], "option": option["name"], "chosen": option["name"] == choice["chosen"]}
        | option["claims"][claim]
        for choice in calibration
        for option in choice["options"]
        if claim in option["claims"]
    ]


def _instead(look, option):
    name = look.get("experiment")
    return look | {"experiment": option[name]} if name in option else look
