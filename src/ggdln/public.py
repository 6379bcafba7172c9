"""What users of the library call: public name -> module that has it."""

NAMES = {
    "Runtime": "ggdln.networks.settings",
    "Sampling": "ggdln.networks.settings",
    "Solver": "ggdln.theory.solution",
    "Training": "ggdln.networks.settings",
    "capacity": "ggdln.theory.capacity",
    "ensemble_statistics": "ggdln.theory.ensemble",
    "fit_gates": "ggdln.gates",
    "gp_limit": "ggdln.theory.gp",
    "langevin": "ggdln.networks.langevin",
    "make_task": "ggdln.tasks",
    "predictor_statistics": "ggdln.theory.statistics",
    "sample_posterior": "ggdln.networks.gibbs",
    "solve": "ggdln.theory.solution",
    "solve_sweep": "ggdln.theory.solution",
    "train_ensemble": "ggdln.networks.training",
    "train_relu": "ggdln.networks.training",
}
