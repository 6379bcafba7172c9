"""Entries of a configuration that stand for several."""

import pytest

from ggdln.core.expand import expand


def test_lists_are_read_side_by_side():
    entries = {
        "a_{n}": {"for": {"n": [1, 2], "values": [[0.5], {"b": 3}]}, "n": "{n}", "x": ["{values}", "n is {n}"]},
        "b": {"n": "{n}"},
    }
    expected = {"a_1": {"n": 1, "x": [[0.5], "n is 1"]}, "a_2": {"n": 2, "x": [{"b": 3}, "n is 2"]}, "b": {"n": "{n}"}}
    assert expand(entries) == (expected, [])


def test_several_mappings_give_every_combination():
    entries = [{"for": [{"n": [1, 2]}, {"m": ["a", "b"]}], "x": "{n}{m}"}, {"x": "last"}]
    assert expand(entries) == ([{"x": "1a"}, {"x": "1b"}, {"x": "2a"}, {"x": "2b"}, {"x": "last"}], [])


def test_values_are_not_shared():
    found, _ = expand({"{n}": {"for": [{"n": ["a", "b"]}, {"v": [[1]]}], "x": "{v}"}})
    found["a"]["x"].append(2)
    assert found["b"]["x"] == [1]


@pytest.mark.parametrize(("entry", "message"), [
    ({"for": {"n": [1, 2]}, "x": "{m}"}, "here.a{n}.x = '{m}'; accepted: names under `for`, n"),
    ({"for": {"n": [1, 2], "m": [3]}, "x": "{m}"}, "here.a{n}.for = {'n': 2, 'm': 1}; accepted: lists of one length"),
    ({"for": {"n": [1, 2], "m": [3, 4]}}, "here.a{n}.for.m = [3, 4]; accepted: a name that stands elsewhere in quotes and braces"),
    ({"for": {"n": 3}}, "here.a{n}.for.n = 3; accepted: a list of values"),
    ({"for": []}, "here.a{n}.for = []; accepted: names, each with a list of values"),
    ({"for": {"n": [1, 1]}}, "here.a1 = '2 entries'; accepted: one; a `for` must put its values into the name"),
    ({"for": {"n": [1, 2]}, "x": {"n": None}}, "here.a{n}.x = {'n': None}; accepted: \"{n}\" in quotes"),
])  # fmt: skip
def test_mistakes_are_named(entry, message):
    (problem,) = expand({"a{n}": entry}, "here")[1]
    assert str(problem).startswith(message)
