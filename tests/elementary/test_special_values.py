"""Signed zeros, infinities, NaN, thresholds and exact cases, in both formats."""
import math

import numpy as np
import pytest

from tlgrad.kernels.elementary import FUNCTIONS, evaluate

INF, NAN = math.inf, math.nan
DTYPES = [np.float32, np.float64]
PI = math.pi
# name: [(argument, result)]; results are exact or correctly rounded by NumPy's conversion
ONE = {
    "exp": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0)],
    "exp2": [(-INF, 0.0), (INF, INF), (10.0, 1024.0)],
    "exp10": [(-INF, 0.0), (INF, INF), (3.0, 1000.0), (10.0, 1e10)],
    "expm1": [(-INF, -1.0), (INF, INF), (-0.0, -0.0)],
    "log": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (1.0, 0.0), (-INF, NAN)],
    "log2": [(0.0, -INF), (-1.0, NAN), (INF, INF), (8.0, 3.0), (0.125, -3.0)],
    "log10": [(0.0, -INF), (-1.0, NAN), (INF, INF), (1000.0, 3.0), (1.0, 0.0)],
    "log1p": [(-1.0, -INF), (-2.0, NAN), (INF, INF), (0.0, 0.0), (-0.0, -0.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN)],
    "sinpi": [(0.0, 0.0), (-0.0, -0.0), (1.0, 0.0), (-1.0, -0.0), (0.5, 1.0), (1.5, -1.0),
        (1e30, 0.0), (-1e30, -0.0), (INF, NAN)],
    "cospi": [(0.0, 1.0), (0.5, 0.0), (-1.5, 0.0), (1.0, -1.0), (1e30, 1.0), (INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0, PI / 2), (-1.0, -PI / 2), (1.5, NAN), (INF, NAN)],
    "acos": [(1.0, 0.0), (0.0, PI / 2), (-1.0, PI), (1.5, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2), (1.0, PI / 4)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "cosh": [(0.0, 1.0), (INF, INF), (-INF, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (INF, INF), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN)],
    "logistic": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5)],
    "softplus": [(-INF, 0.0), (INF, INF)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0)],
    "gelu_erf": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -0.0)],
    "gelu_tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -0.0)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (4.0, 0.5), (-1.0, NAN), (INF, 0.0)],
    "cbrt": [(27.0, 3.0), (-8.0, -2.0), (-0.0, -0.0), (INF, INF)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF)],
    "gamma": [(0.0, INF), (-0.0, -INF), (1.0, 1.0), (5.0, 24.0), (23.0, 1.1240007277776077e21), (-1.0, NAN),
              (172.0, INF), (-200.5, -0.0), (INF, INF), (-INF, NAN)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-2.0, NAN), (INF, INF), (-INF, NAN)],
}
TWO = {
    "pow": [((0.0, 0.0), 1.0), ((NAN, 0.0), 1.0), ((1.0, NAN), 1.0), ((-1.0, INF), 1.0),
        ((0.0, -1.0), INF), ((-0.0, -3.0), -INF), ((-0.0, 3.0), -0.0), ((-0.0, 2.0), 0.0),
        ((-2.0, 3.0), -8.0), ((-2.0, 0.5), NAN), ((2.0, INF), INF), ((0.5, INF), 0.0),
        ((0.5, -INF), INF), ((INF, -1.0), 0.0), ((-INF, 3.0), -INF), ((-INF, -3.0), -0.0),
        ((-INF, 0.5), INF), ((3.0, 5.0), 243.0), ((10.0, 3.0), 1000.0), ((2.0, -1.0), 0.5),
        ((NAN, 1.0), NAN), ((2.0, NAN), NAN)],
    "atan2": [((0.0, 1.0), 0.0), ((-0.0, 1.0), -0.0), ((0.0, -1.0), PI), ((-0.0, -1.0), -PI),
        ((0.0, 0.0), 0.0), ((-0.0, -0.0), -PI), ((1.0, 0.0), PI / 2), ((-1.0, 0.0), -PI / 2),
        ((INF, INF), PI / 4), ((INF, -INF), 3 * PI / 4), ((1.0, INF), 0.0), ((1.0, -INF), PI),
        ((INF, 1.0), PI / 2), ((NAN, 1.0), NAN), ((1.0, NAN), NAN)],
    "hypot": [((3.0, 4.0), 5.0), ((INF, NAN), INF), ((NAN, -INF), INF), ((0.0, -0.0), 0.0),
        ((1.0, NAN), NAN), ((5e-324, 0.0), 5e-324)],
    "logaddexp": [((-INF, -INF), -INF), ((INF, INF), INF), ((INF, -INF), INF), ((-INF, 3.0), 3.0),
        ((-0.0, -INF), 0.0), ((1.0, NAN), NAN), ((NAN, INF), NAN)],
}
CASES = [(name, (x,), y) for name, row in ONE.items() for x, y in row]
CASES += [(name, x, y) for name, row in TWO.items() for x, y in row]
# the last finite or nonzero result and the first beyond, per format
THRESHOLDS = {
    ("exp", np.float32): (88.72283, -103.97208), ("exp", np.float64): (709.782712893384, -745.1332191019411),
    ("exp2", np.float32): (127.99999, -149.9), ("exp2", np.float64): (1023.9999999999999, -1074.5),
    ("sinh", np.float64): (710.4758600739439, None), ("cosh", np.float64): (710.4758600739439, None),
    ("expm1", np.float64): (709.782712893384, None)}


def test_every_function_has_cases():
    assert set(ONE) | set(TWO) == set(FUNCTIONS)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name, x, want", CASES, ids=lambda v: str(v))
def test_value(name, x, want, dtype):
    with np.errstate(all="ignore"):
        got, want = evaluate(name, *(dtype(v) for v in x))[()], dtype(want)
    assert (np.isnan(got) and np.isnan(want)) or (got == want and np.signbit(got) == np.signbit(want))


@pytest.mark.parametrize("name, dtype", THRESHOLDS, ids=str)
def test_threshold(name, dtype):
    top, bottom = THRESHOLDS[name, dtype]
    top = dtype(top)
    assert np.isfinite(evaluate(name, top))
    assert np.isinf(evaluate(name, np.nextafter(top, dtype(INF))))
    if bottom is not None:
        assert evaluate(name, dtype(bottom)) > 0 and evaluate(name, dtype(bottom) * dtype(1.001)) == 0


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_exact_cases(dtype):
    info = np.finfo(dtype)
    k = np.arange(info.minexp - info.nmant, info.maxexp).astype(dtype)
    powers = np.ldexp(dtype(1), k.astype(int))
    np.testing.assert_array_equal(evaluate("exp2", k), powers)
    np.testing.assert_array_equal(evaluate("log2", powers), k)
    n = np.arange(-200, 201).astype(dtype)
    np.testing.assert_array_equal(evaluate("cbrt", n * n * n), n)
    np.testing.assert_array_equal(evaluate("pow", n, dtype(2)), n * n)
    np.testing.assert_array_equal(evaluate("pow", n, dtype(3)), n * n * n)
    tens = dtype(10) ** np.arange(0, 11 if dtype == np.float32 else 23)
    np.testing.assert_array_equal(evaluate("log10", tens.astype(dtype)), np.arange(len(tens)))
    np.testing.assert_array_equal(evaluate("pow", k, dtype(0)), np.ones_like(k))
