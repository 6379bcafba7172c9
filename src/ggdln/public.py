"""What users of the library call: public name -> module that has it."""

NAMES = {
    "capacity": "ggdln.theory.capacity",
    "ensemble_statistics": "ggdln.networks.ensemble",
    "fit_gates": "ggdln.gates",
    "gp_limit": "ggdln.theory.gp",
    "langevin": "ggdln.networks.langevin",
    "make_task": "ggdln.tasks.make",
    "predictor_statistics": "ggdln.theory.statistics",
    "sample_posterior": "ggdln.networks.gibbs",
    "solve": "ggdln.theory.solution",
    "solve_sweep": "ggdln.theory.solution",
    "train_ensemble": "ggdln.networks.training",
    "train_relu": "ggdln.networks.training",
}
