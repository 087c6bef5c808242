"""Directed rounding, saturation and flags of small formats on arrays: those of the specification."""
import numpy as np
import pytest
from softfloat_operands import operands, random_numbers

import tlgrad as tl
from tlgrad.softfloat import array, convert, directed, reference, storage
from tlgrad.softfloat import format as formats
from tlgrad.softfloat.arith import ROUNDINGS, Environment
from tlgrad.softfloat.format import Binary, binary16, binary32, binary64

FORMATS = [formats.float8_e4m3fn, formats.float8_e5m2, formats.float8_e4m3fnuz, formats.float4_e2m1fn,
           formats.bfloat16, formats.tf32, Binary(9, 24), Binary(4, 11)]


def same(found, right):
    """Equal words; a NaN of a hardware dtype counts as one."""
    return np.all((storage.as_words(found) == storage.as_words(right)) | (
        np.isnan(found) & np.isnan(right) if found.dtype.kind == "f" else False))


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("fmt", FORMATS, ids=repr)
def test_arithmetic(fmt, rounding, saturate):
    for name in directed.OPERATIONS:
        arguments = operands(fmt, 300, 1 if name == "sqrt" else 2, 3)
        found, right = Environment(rounding, saturate, 7), Environment(rounding, saturate, 7)
        got = directed.evaluate(name, fmt, arguments, found)
        if got is None:
            assert rounding == "stochastic" and name != "mul" and found == right
            continue
        assert same(got, reference.evaluate(name, fmt, arguments, got.shape, right)), name
        assert (found.flags, found.counter) == (right.flags, right.counter), name


@pytest.mark.parametrize("name", list(directed.OPERATIONS))
@pytest.mark.parametrize("fmt", [formats.float8_e5m2, formats.tf32], ids=repr)
def test_flags_of_each_result(fmt, name):
    """One pair at a time, so that no flag hides behind another."""
    columns = operands(fmt, 400, 1 if name == "sqrt" else 2, 5)
    for k in range(400):
        one = [x[k:k + 1] for x in columns]
        for rounding in ("nearest", "down"):
            found, right = Environment(rounding), Environment(rounding)
            directed.evaluate(name, fmt, one, found)
            reference.evaluate(name, fmt, one, (1,), right)
            assert found.flags == right.flags, (one, found.raised, right.raised)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("target", FORMATS, ids=repr)
@pytest.mark.parametrize("source", [binary64, binary32, binary16, formats.tf32, formats.float8_e4m3fn], ids=repr)
def test_conversions(source, target, rounding):
    values = np.concatenate([operands(source, 200, 1, 1)[0], random_numbers((100,), source)])
    found, right = Environment(rounding, key=3), Environment(rounding, key=3)
    got = directed.convert(values, target, found)
    words = [convert.convert(source, target, w, right) for w in storage.to_integers(values)]
    assert same(got, storage.of_integers(words, target, values.shape))
    assert (found.flags, found.counter) == (right.flags, right.counter)


@pytest.mark.parametrize("run", [lambda f: f, tl.run], ids=["eager", "run"])
def test_bfloat16_is_rounded_as_asked(run):
    third = run(lambda x: x / 3 + 0)
    one = tl.ones(20, tl.bfloat16)
    with tl.float_environment("down") as env:
        below = third(one)
    with tl.float_environment("up"):
        above = third(one)
    assert np.all(storage.as_words(below.data) + 1 == storage.as_words(above.data)) and env.raised == ("inexact",)
    narrow = run(lambda x: tl.convert(x, tl.bfloat16))
    with tl.float_environment("up"):
        assert float(narrow(tl.tensor(1 + 2.0 ** -40))) == 1 + 2.0 ** -7


def test_blocks_take_the_quick_way(monkeypatch):
    """A stochastic rounding of weights to 8 bits, and a saturated one, without the reference."""
    monkeypatch.setattr(reference, "evaluate", None)
    w = tl.tensor(np.random.default_rng(0).standard_normal(4000) * 300)
    with tl.float_environment("stochastic", key=1) as env:
        low = tl.convert(w, tl.float8_e5m2) * tl.convert(w, tl.float8_e5m2)
    with tl.float_environment(saturate=True):
        high = tl.convert(w, tl.float8_e4m3fn)
    assert low.dtype == "float8_e5m2" and "inexact" in env.raised and env.counter > 4000
    assert float(tl.convert(tl.max(tl.abs(high)), tl.float64)) == 448.0
    assert not array.evaluate("is_nan", formats.float8_e4m3fn, high.data).any()
