"""Files: whole or not at all, described, with provenance, and never trusted blindly."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

from ggdln.core.errors import FileError
from ggdln.experiments import store
from ggdln.experiments.variables import described


@pytest.fixture
def dataset():
    values = np.random.default_rng(0).standard_normal((3, 500))
    return xr.Dataset(
        {"bias": (("draw", "M"), values), "dead": (("draw",), [1, 2, 3]), "fit_converged": (("draw",), [True, False, True])},
        coords={"draw": [0, 1, 2], "M": np.arange(500), "kind": "random"},
    )


@pytest.fixture
def path(tmp_path, dataset):
    store.write(dataset, tmp_path / "a.nc", provenance={"seed": 7, "data_source": "generated", "parameters": {"P": 3}})
    return tmp_path / "a.nc"


def test_what_is_read_is_what_was_written(path, dataset):
    back = store.read(path)
    assert back.drop_attrs().identical(dataset)


def test_variables_can_be_described(path, dataset, tmp_path):
    store.write(described(dataset), tmp_path / "described.nc", provenance={})
    back = store.read(tmp_path / "described.nc")
    assert back.bias.attrs["long_name"] == "bias"
    assert "mean over test inputs" in back.bias.attrs["equation"]
    assert back.M.attrs["long_name"] == "number of gates"
    # Words don't count as content.
    assert back.attrs["content_sha256"] == store.read(path).attrs["content_sha256"]


def test_files_tell_where_they_come_from(path):
    back = store.read(path)
    assert back.attrs["seed"] == 7
    assert back.attrs["data_source"] == "generated"
    assert json.loads(back.attrs["parameters"]) == {"P": 3}
    assert json.loads(back.attrs["packages"])["numpy"] == np.__version__
    assert back.attrs["code_version"].startswith("0.")


def test_groups_keep_several_datasets(tmp_path, dataset):
    store.write({"one/gp": dataset, "two/gp": dataset.isel(draw=[0])}, tmp_path / "g.nc", provenance={"seed": 1})
    groups = store.groups(tmp_path / "g.nc")
    assert list(groups) == ["one/gp", "two/gp"]
    assert groups["two/gp"].sizes["draw"] == 1


def test_the_same_content_gives_the_same_bytes(tmp_path, dataset):
    for name in "ab":
        store.write(dataset, tmp_path / name, provenance={"seed": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_truncated_files_are_named(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileError, match=r"a\.nc: "):
        store.read(path)


def test_flipped_bits_never_give_other_numbers(path, dataset):
    """Whatever bit flips, reading fails or gives the numbers that were written."""
    content = path.read_bytes()
    refused = 0
    for position in np.random.default_rng(1).integers(len(content), size=150):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        try:
            back = store.read(path)
        except FileError:
            refused += 1
        else:
            assert back.drop_attrs().identical(dataset)
    assert refused > 50


def test_foreign_files_are_named(tmp_path, dataset):
    (tmp_path / "page.nc").write_text("<html><body>404</body></html>")
    dataset.to_netcdf(tmp_path / "other.nc")
    with pytest.raises(FileError, match=r"page\.nc: truncated, damaged or not a NetCDF file"):
        store.read(tmp_path / "page.nc")
    with pytest.raises(FileError, match=r"other\.nc: not a file of this version of ggdln \(format None"):
        store.read(tmp_path / "other.nc")
    with pytest.raises(FileError, match="no such file"):
        store.read(tmp_path / "none.nc")


def test_a_failed_write_leaves_the_old_file_and_no_other(path, dataset):
    before = path.read_bytes()
    with pytest.raises(Exception, match=r".+"):
        store.write(dataset.assign(bad=("draw", [object()] * 3)), path, provenance={})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["a.nc"]


def test_a_writer_killed_at_any_moment_leaves_a_whole_file_or_none(tmp_path):
    program = (
        "import sys, numpy as np, xarray as xr\nfrom ggdln.experiments import store\n"
        "data = xr.Dataset({'x': ('train', np.random.default_rng(0).standard_normal(1_000_000))})\n"
        "print('ready', flush=True)\n"
        "while True: store.write(data, sys.argv[1], provenance={})\n"
    )
    path = tmp_path / "big.nc"
    for delay in (0.05, 0.2, 0.4):
        writer = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
        writer.stdout.readline()
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        if path.exists():
            assert store.read(path).sizes["train"] == 1_000_000
