"""A quantity above a bound."""

from pydantic import Field

from ggdln.study.conditions import Condition


class Exceeds(Condition):
    """Above the bound at every point."""

    meaning = "mean above the bound"

    bound: float = Field(ge=-1e9, description="Bound that is exceeded")

    def test(self, x, values, **_):
        return values.min() > self.bound, values.mean() - self.bound

    def words(self):
        return f"above {self.bound:g}"
