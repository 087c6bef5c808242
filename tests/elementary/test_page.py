"""``docs/elementary.md`` is what the committed tables say, and its bounds hold in them."""
import json

import pytest

from benchmarks import elementary_exhaustive, elementary_page, elementary_ulps
from tlgrad.kernels.elementary import FUNCTIONS

ULPS = json.loads(elementary_ulps.TABLE.read_text())
EXHAUSTIVE = json.loads(elementary_exhaustive.TABLE.read_text())


def test_the_page_is_current():
    assert elementary_page.PAGE.read_text() == elementary_page.text()


@pytest.mark.parametrize("name", ULPS)
def test_the_bound_was_measured(name):
    bound = FUNCTIONS[name].ulps
    assert ULPS[name]["specials"] == 0
    assert bound is None or ULPS[name]["normal"] <= bound
    assert ULPS[name]["subnormal"] <= 1


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_no_binary32_input_is_wrong(name):
    row = EXHAUSTIVE[name]
    assert row["wrong"] == 0 and row["exceptional"] == len(FUNCTIONS[name].exceptional)
