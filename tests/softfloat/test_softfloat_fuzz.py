"""2**20 structured cases per operation of the binary128 kernels."""
import numpy as np
import pytest
import softfloat_fuzz as fuzz
import softfloat_mpfr as mpfr

from tlgrad.softfloat import array, fast, reference
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import binary128
from tlgrad.softfloat.storage import of_integers, to_integers

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


@pytest.mark.parametrize("name", mpfr.FUNCTIONS)
def test_functions_against_mpfr(name, monkeypatch):
    monkeypatch.setattr(fast, "WARM", 0)
    assert mpfr.mismatches(name, binary128, 300, name) == []


@pytest.mark.parametrize("name, words, right", [
    ("erf", [0x3f68000000001fffffffffffffffffff], 0x3f6820dd75044dd27fbb68dfef223472),
    ("erf", [0x3f710000000000000000000000010000], 0x3f7120dd750429b6d11ae3a914fff8db),
    ("pow", [0x3ffd0000000000000000000000020000, 0x7ffe22ca20588f800000000000000000], 0),
    ("pow", [0x3ffd0000000000000000000000002000, 0xfffdfffffffffffffffc000000000000], binary128.inf)])
def test_what_fuzzing_found(name, words, right, monkeypatch):
    """A shift that wrapped below 2**-132; mpmath's logarithm next to 1/4."""
    monkeypatch.setattr(fast, "WARM", 0)
    arguments = [of_integers([w], binary128, (1,)) for w in words]
    assert to_integers(array.evaluate(name, binary128, *arguments)) == [right]
