"""2**20 structured cases per operation of the binary128 kernels."""
import numpy as np
import pytest
import softfloat_fuzz as fuzz
import softfloat_mpfr as mpfr

from tlgrad.softfloat import array, fast, reference
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import binary128

LIBRARY = fuzz.compiled()


@pytest.mark.parametrize("name", fuzz.ARITY)
def test_against_the_c_compiler(name, monkeypatch):
    """Without a compiler: fewer cases, against the pure-Python reference."""
    monkeypatch.setattr(fast, "WARM", 0)
    rng = np.random.default_rng(7)
    if LIBRARY is not None:
        assert fuzz.mismatches(name, LIBRARY, 1 << 20, rng) == []
        return
    arguments = fuzz.operands(20000, rng)[:fuzz.ARITY[name]]
    got = array.evaluate(name, binary128, *arguments)
    assert np.all(got == reference.evaluate(name, binary128, arguments, got.shape, Environment()))


@pytest.mark.parametrize("fmt", mpfr.FORMATS, ids=repr)
def test_against_mpfr(fmt, monkeypatch):
    """A sample of the run that `softfloat_mpfr` makes as a command."""
    monkeypatch.setattr(fast, "WARM", 0)
    for name in mpfr.OPERATIONS:
        assert mpfr.mismatches(name, fmt, 1000, 5) == []
