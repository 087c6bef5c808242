"""Kernels of float16 and of bools, conversions, neighbours and winners have the words of the reference, by
both engines."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.njit import run_lowered
from tlgrad.core.primitive import PRIMITIVES
from tlgrad.kernels.elementary import FUNCTIONS

from beside_reference import compiled

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
RNG = np.random.default_rng(0)
SPECIALS = np.array([0.0, -0.0, 1, -1, np.nan, np.inf, -np.inf, 1e-310, -1e-40, 3e38, 65504, 65519.9, 65520, 1e-8,
                     6e-8, 3e-8, 2.0 ** 31, -2.0 ** 31, 2.0 ** 63, 2.0 ** 64, -5e9, 5e9, -3.7, 1e19, 1e300, 2049])
#: beside midpoints of binary16 numbers: rounding twice is wrong for some
MIDPOINTS = np.array([(1 + 2.0 ** -11) * s * (1 + d) for s in (1, 3, 2.0 ** -15, -2.0 ** -20)
                      for d in (0, 1e-16, -1e-16, 2.0 ** -40, -2.0 ** -30)])


def both_engines(f, *xs):
    """Compiled without host steps; every kernel that reads inputs also by the njit engine."""
    plan = compiled(f, *xs)
    assert "primitive" not in [work for work, _ in plan.work]
    inputs = dict(zip(plan.jaxpr.in_binders, xs))
    results = dict(zip([plan.grouping.view(a).root for a in plan.jaxpr.outs], plan.run(*xs)))
    for lowered, _ in plan.kernels:
        if all(o.root in inputs for o in lowered.inputs):
            for var, got in zip(lowered.outs, run_lowered(lowered, inputs), strict=True):
                assert var not in results or tl.same_bits(got.reshape(results[var].shape), results[var])


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n in PRIMITIVES])
def test_functions_of_all_float16_numbers(name):
    two = [RNG.permutation(HALVES)[:4000] for _ in range(2)]
    compiled(lambda *xs: PRIMITIVES[name](*xs), *([HALVES] if FUNCTIONS[name].arity == 1 else two))


def test_float16_functions_by_both_engines():
    both_engines(lambda x: tl.exp(x) * tl.tanh(x) + tl.log1p(x * x), HALVES)


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int64", "uint64"])
@pytest.mark.parametrize("target", ["float16", "float32", "float64", "int64", "uint32", "uint64"])
def test_conversions(source, target):
    x = np.concatenate([SPECIALS, MIDPOINTS, RNG.standard_normal(500) * 10.0 ** RNG.integers(-9, 20, 500)])
    with np.errstate(all="ignore"):
        x = x.astype(source)
    if target != source:
        (both_engines if source == "float64" else compiled)(lambda x: tl.convert(x, getattr(tl, target)), x)


#: words on every machine of these numbers
OUTSIDE = [-1.5, 300.75, 5e9, 2.0 ** 63, np.nan, np.inf, -1e30, 2.0 ** 32 + 7]
WORDS = {"int8": [-1, 44, 0, 0, 0, 0, 0, 0], "uint8": [255, 44, 0, 0, 0, 0, 0, 0],
         "int32": [-1, 300, *[-2 ** 31] * 6], "int64": [-1, 300, 5 * 10 ** 9, *[-2 ** 63] * 4, 2 ** 32 + 7],
         "uint32": [2 ** 32 - 1, 300, 5 * 10 ** 9 - 2 ** 32, 0, 0, 0, 0, 7],
         "uint64": [2 ** 64 - 1, 300, 5 * 10 ** 9, 2 ** 63, 2 ** 63, 0, 2 ** 63, 2 ** 32 + 7]}


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("target", WORDS)
def test_floats_out_of_range_have_integer_words(target, count):
    many = tl.tensor(np.tile(OUTSIDE, count))
    for convert in (tl.convert, tl.run(lambda x, dtype: tl.convert(x, dtype), static="dtype")):
        assert np.asarray(convert(many, dtype=getattr(tl, target))).tolist() == WORDS[target] * count


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "binary128"])
@pytest.mark.parametrize("count", [1, 40])
def test_every_nan_has_the_sign_of_one(dtype, count):
    def f(x, one):
        return tl.copysign(one, x - x), tl.copysign(-one, -(x - x)), tl.numpy.signbit(-(x - x))
    x, one = (tl.convert(tl.tensor(np.full(count, v)), getattr(tl, dtype)) for v in (np.inf, 1.0))
    for run in (f, tl.run(f), tl.run(f, device="reference")):
        first, second, signs = run(x, one)
        assert np.all(tl.convert(first, tl.float64).data == 1.0)
        assert np.all(tl.convert(second, tl.float64).data == 1.0) and not np.any(signs.data)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_neighbours(dtype):
    with np.errstate(all="ignore"):
        some = np.concatenate([SPECIALS, MIDPOINTS, RNG.standard_normal(40), [5e-324, 1e-45, 6e-8]]).astype(dtype)
    x, y = map(np.ravel, np.meshgrid(some, some))
    both_engines(lambda x, y: PRIMITIVES["nextafter"](x, y), x, y)


SHAPES = [(7,), (0,), (300,), (3, 5), (40, 33), (3, 4, 5), (1, 9), (9, 1), (2, 0), (0, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_of_bools_and_halves(shape):
    marks, halves = RNG.random(shape) < .5, RNG.choice(HALVES, shape)
    for axes in (None, *range(len(shape)), *([(0, 2)] if len(shape) == 3 else [])):
        for f in (tl.any, tl.all):
            for x in (marks, np.ones(shape, bool), np.zeros(shape, bool)):
                compiled(lambda x: f(x, axis=axes), x)
        empty = 0 in shape
        for f in (tl.sum, tl.prod) if empty else (tl.sum, tl.prod, tl.max, tl.min):
            for x in (halves, RNG.standard_normal(shape).astype(np.float16), np.full(shape, -0.0, np.float16)):
                compiled(lambda x: f(x, axis=axes), x)
        if not empty:
            compiled(lambda x: tl.max(x, axis=axes), marks)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_by_both_engines(axis):
    halves, marks = RNG.choice(HALVES, (40, 33)), RNG.random((40, 33)) < .5
    both_engines(lambda x, m: (tl.sum(x, axis=axis), tl.max(x, axis=axis), tl.min(m, axis=axis)), halves, marks)
    both_engines(lambda m: (tl.any(m, axis=axis), tl.all(m, axis=axis)), marks)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64", "int8", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(70, 40), (1, 3, 50), (3, 700), (2, 8, 16), (1, 40), (3, 5)], ids=str)
def test_winners_down_columns(shape, dtype):
    arrays = [RNG.integers(0, 3, shape).astype(dtype)]
    if dtype.startswith("float"):
        arrays.append(RNG.choice(np.array([0.0, -0.0, 1, np.nan, np.inf, -np.inf]), shape).astype(dtype))
    for x in arrays:
        for f in (tl.argmax, tl.argmin):
            for axis in range(len(shape)):
                compiled(lambda x: f(x, axis=axis), x)
