"""exp10, sinpi, cospi, logaddexp and the two forms of gelu in software formats."""
import math

import mpmath
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.kernels.elementary import meaning
from tlgrad.softfloat import elementary
from tlgrad.softfloat.format import binary64

M = mpmath.MPContext()
M.dps = 50
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, 3.0, -3.0, 1e-300,
           -1e-300, 5e-324, 1e30, -1e30, 308.0, 309.0, -320.0, 1e308, 22.0, 40.0, -40.0, -38.0, -25.0]


def words(name, *columns):
    """The software function of binary64 on columns of floats."""
    rows = zip(*(c.view(np.uint64).tolist() for c in columns))
    found = [elementary.evaluate(name, binary64, *row) for row in rows]
    return np.array(found, np.uint64).view(np.float64)


@pytest.mark.parametrize("name", ["exp10", "sinpi", "cospi", "gelu_erf", "gelu_tanh", "logaddexp"])
def test_binary64_in_software_agrees_with_the_body(name):
    """Special values and exact results by words, all others to the last place."""
    rng = np.random.default_rng(0)
    if name == "logaddexp":
        columns = [np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))]
    else:
        columns = [np.concatenate([SPECIAL, rng.standard_normal(100) * 4])]
    ours, body = words(name, *columns), meaning(name, *columns)
    exact = (ours == 0) | np.isinf(ours) | np.isnan(ours)
    assert tl.same_bits(ours[exact], body[exact])
    assert (abs(ours.view(np.int64) - body.view(np.int64))[~exact] <= 1).all()


def _gelu_tanh(x):
    return x / (1 + M.exp(-M.sqrt(8 / M.pi) * (x + M.mpf(44715) / 10 ** 6 * x ** 3)))


CASES = {
    "exp10": (tl.special.exp10, lambda x: M.power(10, x), (0.5, -3.25)),
    "sinpi": (tl.special.sinpi, M.sinpi, (0.125, -2.875)), "cospi": (tl.special.cospi, M.cospi, (0.125, 7.375)),
    "logaddexp": (lambda x: tl.logaddexp(x, -1.5), lambda x: M.log(M.exp(x) + M.exp(-1.5)), (-40.0, 2.0)),
    "gelu_erf": (tl.gelu, lambda x: x * M.erfc(-x / M.sqrt(2)) / 2, (-9.0, 1.25)),
    "gelu_tanh": (lambda x: tl.gelu(x, True), _gelu_tanh, (-9.0, 1.25)),
}


@pytest.mark.parametrize("name", CASES)
def test_binary128_values_and_derivatives(name):
    f, reference, points = CASES[name]
    for at in points:
        x = tl.tensor(at, dtype=tl.binary128)
        run = tl.run(lambda v: f(v), dtype=tl.binary128)(x)
        for found, right in ((f(x), reference(M.mpf(at))), (run, reference(M.mpf(at))),
                             (tl.grad(f)(x), M.diff(reference, M.mpf(at)))):
            exact = found.item().to_fraction()
            assert abs(M.mpf(exact.numerator) / exact.denominator / right - 1) < M.mpf(2) ** -103, at


def test_logaddexp_pays_for_what_cancels():
    """exp(x) + exp(y) next to 1: as many bits as elsewhere."""
    x = -0.5
    y = math.log1p(-math.exp(x))
    right = M.log(M.exp(x) + M.exp(y))
    assert words("logaddexp", np.array([x]), np.array([y])).tolist() == [float(right)]
