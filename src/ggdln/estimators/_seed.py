"""Seeds from what scikit-learn accepts as random_state."""

from numbers import Integral
from typing import Any

from sklearn.utils import check_random_state


def seed_of(random_state: Any) -> int:
    """A whole number as it is; another one at each call for None or a generator."""
    return int(random_state) if isinstance(random_state, Integral) else int(check_random_state(random_state).randint(2**31 - 1))
