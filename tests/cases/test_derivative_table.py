"""The table of `docs/derivatives.md`, row by row, by every route."""
import pathlib
import re

import pytest
from everywhere import slope

import tlgrad as tl

TABLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "derivatives.md"
ROWS = re.findall(r"^\| *(\S*) *\| `(.+?)` \| `(.+?)` \|", TABLE.read_text(), re.M)


def test_the_table_was_read():
    assert len(ROWS) == sum(line.startswith("|") for line in TABLE.read_text().splitlines()) - 2 > 30


@pytest.mark.parametrize("case, expression, value", ROWS,
                         ids=[f"{case or 'row'}-{k}" for k, (case, *_) in enumerate(ROWS)])
def test_row(case, expression, value):
    names = {"tl": tl, "d": slope, "inf": float("inf"), "nan": float("nan")}
    assert eval(expression, names) == eval(value, names)
