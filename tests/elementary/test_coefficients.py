"""The committed tables are what `coefficients.py` generates."""
import json

import pytest

from tlgrad.kernels.elementary import coefficients
from tlgrad.kernels.elementary.tables import numbers

SLOW = {"erfcx", "erfcx_narrow", "loggamma", "digamma", "erf_pieces"}         # seconds of mpmath
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
         for name in (*coefficients.NUMBERS, *coefficients.POLYNOMIALS)]


@pytest.mark.parametrize("name", NAMES)
def test_table_is_regenerated_exactly(name):
    for key, values in coefficients.generate(name).items():
        assert numbers(key) == tuple(values), key


def test_no_table_is_left_over():
    committed = set(json.loads(coefficients.PATH.read_text()))
    computed = {key for make in coefficients.NUMBERS.values() for key in make()}
    assert committed == computed | set(coefficients.POLYNOMIALS)
