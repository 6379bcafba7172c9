"""What users of the library call: public name -> module that has it."""

NAMES = {
    "capacity": "ggdln.theory.capacity",
    "ensemble_statistics": "ggdln.dynamics.ensemble",
    "fit_gates": "ggdln.gates",
    "gp_limit": "ggdln.theory.gp",
    "langevin": "ggdln.dynamics.langevin",
    "make_task": "ggdln.tasks.make",
    "predictor_statistics": "ggdln.statistics",
    "sample_posterior": "ggdln.dynamics.gibbs",
    "solve": "ggdln.theory.solution",
    "solve_sweep": "ggdln.theory.solution",
    "train_ensemble": "ggdln.dynamics.training",
    "train_relu": "ggdln.dynamics.training",
}
