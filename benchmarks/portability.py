"""How far numbers differ between numbers of threads, instruction sets, BLAS libraries and Pythons, for the same data and seeds.

    python benchmarks/portability.py [--other NAME=PYTHON ...]

Each column is a process of its own, whose environment says what OpenBLAS (numpy, scipy), MKL and torch may use. PYTHON is an
interpreter of another version, or one whose numpy and scipy have another BLAS, such as Debian's; what it lacks is taken
from here, and only the theory is compared. Writes docs/benchmarks/portability.md.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "benchmarks"


def environment(core, mkl, aten, threads=1):
    """What tells the libraries which instructions to use."""
    chosen = {"OPENBLAS_CORETYPE": core, "MKL_CBWR": mkl, "ATEN_CPU_CAPABILITY": aten}
    return chosen | {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}


REFERENCE = "AVX2"
COLUMNS = {
    "AVX2": environment("Haswell", "AVX2", "avx2"),
    "again": environment("Haswell", "AVX2", "avx2"),
    "2 threads": environment("Haswell", "AVX2", "avx2", threads=2),
    "AVX-512": environment("SkylakeX", "AVX512", "avx512"),
    "AVX": environment("Sandybridge", "AVX", "default"),
    "SSE4.2": environment("Nehalem", "SSE4_2", "default"),
    "SSE3": environment("Prescott", "COMPATIBLE", "default"),
}

TOLD = f"""\
Largest difference of the numbers of a row from those of {REFERENCE} with one thread, relative to the largest of them; 0 stands
for the same bits. Each column is a process of its own on the same data. Columns are instruction sets, by OPENBLAS_CORETYPE
for numpy and scipy, MKL_CBWR and ATEN_CPU_CAPABILITY for torch:
"""

VERDICTS = """\
Simulations in single precision differ by its rounding, all else by less. The verdict on a claim moves only if its effect in a
draw is as close as that to the threshold of its condition. This is an argument, not a measurement: verdicts have not been
judged anew under each column.
"""


def data():
    """Inputs, gates and labels to learn and to test, of a noisy teacher: they are made once and handed to every process."""
    import numpy as np

    rng = np.random.default_rng(2022)
    x = rng.standard_normal((2000, 50))
    gates = (x @ rng.standard_normal((50, 6)) > 0).astype(float)
    y = np.sign(np.maximum(x @ rng.standard_normal((50, 20)), 0) @ rng.standard_normal(20) + rng.standard_normal(2000))
    return {"x": x, "gates": gates, "y": y}


def theory(known):
    """Means and variances at test inputs, and what else the theory says: name to numbers."""
    import numpy as np

    from ggdln.theory.exact import solve_exact
    from ggdln.theory.gp import gp_limit
    from ggdln.theory.solution import Solver, solve
    from ggdln.theory.statistics import predictor_statistics

    def learnt(count):
        return known["x"][:count], known["gates"][:count], known["y"][:count]

    test = known["x"][-100:], known["gates"][-100:]

    def predicted(solution):
        return np.concatenate(solution.predict(*test))

    few, network = learnt(150), {"width": 100.0, "sigma": 1.0}
    solutions = {
        f"theory, L = {depth}, T = {temperature:g}": solve(*few, depth=depth, temperature=temperature, **network)
        for depth in (1, 3)
        for temperature in (0.0, 0.1)
    }
    cold, warm = (solutions[f"theory, L = 1, T = {temperature:g}"] for temperature in (0.0, 0.1))
    features = solve(*learnt(800), temperature=0.1, solver=Solver(form="features"), **network)
    large = solve(*learnt(1600), temperature=0.1, solver=Solver(form="kernel"), **network)
    sampled = solve_exact(*few, width=20, temperature=0.1, draws=30, chains=2, seed=1)
    return {
        "GP limit, T = 0": predicted(gp_limit(*few, sigma=1.0)),
        "GP limit, T = 0.1": predicted(gp_limit(*few, sigma=1.0, temperature=0.1)),
        **{name: predicted(solution) for name, solution in solutions.items()},
        "theory, 1600 samples": predicted(large),
        "theory, 800 samples as features": predicted(features),
        "order parameter U": np.concatenate([cold.order_parameters[0].ravel(), warm.order_parameters[0].ravel()]),
        "one loop": predicted(solve(*few, temperature=0.1, loops=1, **network)),
        "log evidence": np.array([warm.log_evidence, features.log_evidence]),
        "error rate": np.array(
            [predictor_statistics(*s.predict(*test), known["y"][-100:])["error_rate"] for s in (cold, warm)]
        ),
        "exact, 60 samples": predicted(sampled),
    }


def simulations(known):
    """Test predictions of networks after some steps."""
    from ggdln.networks.gibbs import sample_posterior
    from ggdln.networks.langevin import langevin
    from ggdln.networks.settings import Sampling, Training
    from ggdln.networks.training import train_ensemble

    arrays = [known[name][part] for part in (slice(150), slice(-100, None)) for name in ("x", "gates", "y")][:5]
    network, some = {"width": 50, "sigma": 0.5, "seed": 1}, Sampling(chains=2, draws=10, warmup=10, thin=1)

    def trained(how, steps):
        return train_ensemble(*arrays, runs=2, training=Training(how, max_steps=steps), **network).prediction

    return {
        "gradient descent, 30 steps (float32)": trained("descent", 30),
        "gradient flow, 3 steps (float32)": trained("flow", 3),
        "Langevin dynamics, 20 steps (float32)": langevin(*arrays, temperature=0.01, sampling=some, **network).prediction,
        "Gibbs sampling, 20 sweeps": sample_posterior(*arrays, temperature=0.01, sampling=some, **network).prediction,
    }


def here(path, parts):
    """All numbers in this process, and the libraries that made them."""
    import warnings

    import numpy as np
    import scipy
    from threadpoolctl import threadpool_info

    warnings.simplefilter("ignore")  # of training that ends before it has converged
    known, found = dict(np.load(path)), {}
    for part in parts:
        found |= {name: np.asarray(values, dtype=float).ravel().tolist() for name, values in part(known).items()}
    cores = sorted({library.get("architecture", "") for library in threadpool_info() if library["user_api"] == "blas"})
    mapped = sorted(set(re.findall(r"/(lib[^/ ]*(?:blas|lapack)[^/ ]*)$", Path("/proc/self/maps").read_text(), re.M)))
    python = ".".join(map(str, sys.version_info[:3]))
    told = {"cores": cores, "libraries": mapped, "python": python, "numpy": np.__version__, "scipy": scipy.__version__}
    return {"numbers": found, "told": told}


def apart(command, **variables):
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def difference(numbers, others):
    """The largest one, relative to the largest number."""
    largest = max(map(abs, numbers))
    return max(abs(a - b) for a, b in zip(numbers, others, strict=True)) / largest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", metavar="NAME=PYTHON", nargs="+", default=[], help="other interpreters")
    parser.add_argument("--here", metavar="FILE", help="compute in this process, from these data, and print it")
    parser.add_argument("--only-theory", action="store_true", help="without simulations, which need torch")
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(here(arguments.here, [theory] if arguments.only_theory else [theory, simulations])))
        return

    import numpy as np

    columns, told = {}, []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data.npz"
        np.savez(path, **data())
        for name, variables in COLUMNS.items():
            columns[name] = apart([sys.executable, __file__, "--here", path], **variables)
            cores = ", ".join(columns[name]["told"]["cores"])
            told.append(
                f"- {name}: OpenBLAS says {cores}; MKL_CBWR={variables['MKL_CBWR']}, {variables['ATEN_CPU_CAPABILITY']}"
            )
            print(told[-1], flush=True)
        for name, _, python in (other.partition("=") for other in arguments.other):
            columns[name] = elsewhere(python, path)
            found = columns[name]["told"]
            versions = f"Python {found['python']}, numpy {found['numpy']}, scipy {found['scipy']}"
            told.append(f"- {name}: {versions}, {', '.join(found['libraries'])}")
            print(told[-1], flush=True)
    reference = columns.pop(REFERENCE)["numbers"]
    rows = []
    for name, numbers in reference.items():
        found = [column["numbers"].get(name) for column in columns.values()]
        cells = ["" if other is None else f"{difference(numbers, other):.0e}".replace("0e+00", "0") for other in found]
        rows.append(f"| {name} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    text = ["# The same numbers everywhere", "", TOLD, *told, ""]
    text += [f"| quantity | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}", *rows, ""]
    text += [VERDICTS]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "portability.md").write_text("\n".join(text))


def elsewhere(python, path):
    """The theory by another interpreter, which finds this library and, after its own packages, those of this environment."""
    import numpy

    packages = str(Path(numpy.__file__).parents[1])
    program = f"import sys, runpy; sys.path += [{str(ROOT / 'src')!r}, {packages!r}]; sys.argv = sys.argv[1:]; "
    program += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [python, "-c", program, __file__, "--here", path, "--only-theory"]
    return apart(command, **COLUMNS[REFERENCE])


if __name__ == "__main__":
    main()
