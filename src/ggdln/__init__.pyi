# The public names, each with the module that has it and what it is: `ggdln/__init__.py` reads them from here.

from ggdln.estimators.classifier import GGDLNClassifier as GGDLNClassifier  # classes in scikit-learn's manner
from ggdln.estimators.gates import LocalGates as LocalGates  # transformer: random gates with receptive fields
from ggdln.estimators.gates import OpenGates as OpenGates  # transformer: gates that are always open, a linear network
from ggdln.estimators.gates import RandomGates as RandomGates  # transformer: random half-spaces
from ggdln.estimators.gates import RectifiedGates as RectifiedGates  # transformer: random gates that grow with their input
from ggdln.estimators.gates import SoftKMeansGates as SoftKMeansGates  # transformer: gates from clusters of the inputs
from ggdln.estimators.regressor import GGDLNRegressor as GGDLNRegressor  # regression in scikit-learn's manner
from ggdln.gates import fit_gates as fit_gates  # gates of any kind, fitted to inputs
from ggdln.networks.gibbs import sample_posterior as sample_posterior  # networks from the posterior, by Gibbs sampling
from ggdln.networks.langevin import langevin as langevin  # networks from the posterior, by Langevin dynamics
from ggdln.networks.settings import Runtime as Runtime  # where simulations run: device, memory, checkpoints
from ggdln.networks.settings import Sampling as Sampling  # how samplers run: chains, draws, warm-up
from ggdln.networks.settings import Step as Step  # a step of Langevin dynamics: its size and its noise
from ggdln.networks.settings import Training as Training  # how networks are trained: integrator, stop rule
from ggdln.networks.training import train_ensemble as train_ensemble  # gated networks trained by gradient descent
from ggdln.networks.training import train_relu as train_relu  # ReLU networks trained by gradient descent
from ggdln.tasks import make_task as make_task  # inputs and labels of any kind of task
from ggdln.theory.capacity import capacity as capacity  # how many examples a network can fit
from ggdln.theory.ensemble import ensemble_statistics as ensemble_statistics  # bias, variance and errors from runs or chains
from ggdln.theory.exact import solve_exact as solve_exact  # the posterior at any width, without approximation
from ggdln.theory.gp import gp_limit as gp_limit  # the limit of infinite width
from ggdln.theory.saving import load as load  # a solution from a file that its `save` has written
from ggdln.theory.select import select as select  # width, prior, temperature and number of gates by evidence
from ggdln.theory.solution import Solver as Solver  # how a saddle point is searched: tolerance, starts
from ggdln.theory.solution import solve as solve  # the theory at finite width and any depth
from ggdln.theory.solution import solve_sweep as solve_sweep  # the theory along widths or priors
from ggdln.theory.statistics import predictor_statistics as predictor_statistics  # bias, variance and errors of a predictor

__version__: str
