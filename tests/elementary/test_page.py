"""``docs/elementary.md`` is what the committed tables say, and its bounds hold in them."""
import json

import pytest

from benchmarks import elementary_exhaustive, elementary_page, elementary_timing, elementary_ulps
from tlgrad.kernels.elementary import FUNCTIONS

ULPS = json.loads(elementary_ulps.TABLE.read_text())
LIMITS = {**dict.fromkeys(["exp", "log", "log1p", "expm1", "tanh"], 0.60),
          **dict.fromkeys(["sin", "cos", "erf"], 0.72)}
EXHAUSTIVE = json.loads(elementary_exhaustive.TABLE.read_text())


def test_the_page_is_current():
    assert elementary_page.PAGE.read_text() == elementary_page.text()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bound_was_measured(name):
    bound = FUNCTIONS[name].ulps
    assert ULPS[name]["specials"] == 0
    assert ULPS[name]["normal"] <= bound <= LIMITS.get(name, 1.0)
    assert ULPS[name]["subnormal"] <= 1
    assert ULPS[name]["count"] >= 10 ** 7


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_no_binary32_input_is_wrong(name):
    row = EXHAUSTIVE[name]
    assert row["wrong"] == 0 and row["exceptional"] == len(FUNCTIONS[name].exceptional)


def test_every_one_argument_function_was_checked_exhaustively():
    assert set(EXHAUSTIVE) == set(elementary_exhaustive.NAMES)


def test_the_bodies_in_pairs_have_the_words_of_the_narrow_ones():
    pairs = {name: row["pairs"] for name, row in EXHAUSTIVE.items() if "pairs" in row}
    assert pairs == {name: 0 for name, function in FUNCTIONS.items() if function.pairs}


def test_no_path_is_slower_than_eight_times_the_fast_one():
    """As measured on the machine of the committed table."""
    assert max(json.loads(elementary_timing.PATHS_TABLE.read_text()).values()) <= 8
