"""Fixtures that several tests share."""

import pytest
from helpers import ROOT, raw_configuration


@pytest.fixture
def root():
    return ROOT


@pytest.fixture(scope="session")
def default_configuration():
    return raw_configuration()


@pytest.fixture
def raw(default_configuration):
    """The configuration at the paper's sizes, as nested dictionaries; `changed` gives a copy with another value."""
    return default_configuration
