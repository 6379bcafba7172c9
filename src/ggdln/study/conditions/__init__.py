"""Conditions of claims, put to one draw at a time. Each module without an underscore is one.

`condition: falls` in a claim, or `condition: {kind: falls, strength: 0.7}`, is the class `Falls` in `falls.py`.
"""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ggdln.core.kinds import Kind


class Comparison(BaseModel):
    """What a quantity is compared with, where that differs from the quantity itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    experiment: str | None = Field(None, description="Experiment that is shown")
    method: str | None = Field(None, description="Method that is shown")
    select: dict | None = Field(None, description="Value of each axis of the sweep that is held fixed")

    @model_validator(mode="after")
    def _differs(self):
        if self.experiment is self.method is self.select is None:
            raise ValueError("at least one of experiment, method and select")
        return self

    def words(self):
        """What it is compared with, in words."""
        held = [f"{axis} = {value}" for axis, value in (self.select or {}).items()]
        return " ".join([name for name in (self.experiment, self.method) if name] + held)


class Condition(Kind):
    """A kind of condition; fields are its parameters. Fields `other` and `reference` are `Comparison`s."""

    sort: ClassVar[str] = "condition"
    points: ClassVar[int] = 1
    """Least number of points of the sweep that a draw must have."""
    meaning: ClassVar[str] = ""
    """What the effect is, in words."""
    also: ClassVar[tuple] = ()
    """Further variables of what is measured that `test` gets, by name."""

    def test(self, x, values, *, experiment, **series):
        """Whether one draw meets the condition, and its effect.

        x, values: points of the axis and what is measured there. series: `error`, and `other`, `reference` and the variables
        in `also`, where there are such, at the same points. experiment: parameters of the experiment that is measured.
        """
        raise NotImplementedError

    def words(self):
        """The condition in words."""
        raise NotImplementedError
