"""Fixtures that several tests share."""

import shutil

import pytest
from helpers import ROOT, raw_configuration

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    """A real browser, if there is one."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


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
