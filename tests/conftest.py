"""What several tests share."""

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def schema():
    return yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())


@pytest.fixture
def raw():
    """The configuration at the paper's sizes, as nested dictionaries."""
    return yaml.safe_load((ROOT / "config/config.yaml").read_text()) | yaml.safe_load(
        (ROOT / "config/figures.yaml").read_text()
    )
