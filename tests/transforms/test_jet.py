"""Power series: the same derivatives as nested duals, at a cost that grows polynomially."""
import mpmath
import pytest

import tlgrad as tl
from tlgrad.core.jaxpr import count_eqns
from tlgrad.testing import ulp_distance

FUNCTIONS = {
    "tanh": (tl.tanh, mpmath.tanh), "exp": (tl.exp, mpmath.exp), "sin": (tl.sin, mpmath.sin),
    "log1p": (tl.log1p, mpmath.log1p), "atan": (tl.atan, mpmath.atan), "erf": (tl.erf, mpmath.erf),
    "asinh": (tl.asinh, mpmath.asinh), "sqrt": (tl.sqrt, mpmath.sqrt),
    "logistic": (tl.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x))),
    "softplus": (tl.softplus, lambda x: mpmath.log1p(mpmath.exp(x))),
    "pow": (lambda x: x ** 2.5, lambda x: x ** mpmath.mpf(2.5)),
    "quotient": (lambda x: tl.exp(tl.sin(x)) * tl.log(x) / (1 + x * x),
                 lambda x: mpmath.exp(mpmath.sin(x)) * mpmath.log(x) / (1 + x * x)),
    "fma, abs, hypot": (lambda x: tl.fma(x, x, tl.abs(tl.hypot(x, 1.0))),
                        lambda x: x * x + mpmath.sqrt(1 + x * x)),
}


def nested(f, order):
    """Derivative of the given order by nested duals."""
    for _ in range(order):
        f = (lambda f: lambda x: tl.jvp(f, (x,), (1.0,))[1])(f)
    return f


def size(f, order):
    """Number of equations of the derivative of the given order."""
    return count_eqns(tl.make_jaxpr(tl.derivative(f, [1.0] * order))(0.5).jaxpr)


@pytest.mark.parametrize("order", [3, 4, 5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_series_agree_with_exact_derivatives(name, order):
    f, exact = FUNCTIONS[name]
    with mpmath.workdps(60):
        expected = mpmath.diff(exact, mpmath.mpf(0.7), order)
        scale = max(1, *(abs(mpmath.diff(exact, mpmath.mpf(0.7), k)) for k in range(order)))
    found = tl.derivative(f, [1.0] * order)(0.7).item()
    assert abs(found - float(expected)) <= 2e-14 * float(scale) + 200 * abs(float(expected)) * 2.0 ** -52


@pytest.mark.parametrize("name", ["tanh", "quotient", "pow", "asinh", "erf"])
def test_series_agree_with_nested_duals(name):
    f, _ = FUNCTIONS[name]
    assert ulp_distance(tl.derivative(f, [1.0] * 3)(0.7), nested(f, 3)(0.7)) <= 64


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cost_grows_polynomially(name):
    f, _ = FUNCTIONS[name]
    assert size(f, 16) < 2 ** 4 * size(f, 8)             # at most like n^4; nested duals: 2^8 times


def test_mixed_directions_nest_series():
    def f(p):
        return p[0] ** 3 * tl.exp(p[1])
    ex, ey = tl.tensor([1.0, 0.0]), tl.tensor([0.0, 1.0])
    found = tl.derivative(f, [ex, ey, ex, ex, ey, ey])(tl.tensor([2.0, 0.0]))
    assert found.item() == 6.0


def test_primitive_without_series_falls_back_to_nested_duals():
    assert tl.derivative(lambda x: tl.max(tl.stack([x ** 3, x])), [1.0] * 3)(2.0).item() == 6.0
