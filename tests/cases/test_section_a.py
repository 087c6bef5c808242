"""Derivative values at hard points: section A of the shared cases; ids name the case."""
import numpy as np
import pytest
from everywhere import gradient, slope

import tlgrad as tl
from tlgrad.core.jaxpr import count_eqns
from tlgrad.testing import ulp_distance

inf, nan = float("inf"), float("nan")


def second(f, x):
    """f''(x) in the four sequences of modes."""
    routes = {
        "fwd fwd": tl.derivative(f, [1.0, 1.0])(x), "rev rev": tl.grad(tl.grad(f))(x),
        "fwd rev": tl.jvp(tl.grad(f), (x,), (1.0,))[1],
        "rev fwd": tl.grad(lambda y: tl.jvp(f, (y,), (1.0,))[1])(x)}
    first = float(routes["fwd fwd"])
    for route, value in routes.items():
        np.testing.assert_allclose(float(value), first, rtol=1e-12, atol=1e-300, err_msg=route)
    return first


# ---- C001: the side that a select discards ----

@pytest.mark.parametrize("f, x, right", [
    (lambda x: tl.where(x >= 0, x, tl.sqrt(-x)), 1.0, 1.0),
    (lambda x: tl.where(x > 0, 0, x * inf), 1.0, 0.0),
    (lambda x: tl.where(x == 0, 0, x * tl.sqrt(x)), 0.0, 0.0),
    (lambda x: tl.where(x > 0, tl.log(x), 0.0), -1.0, 0.0),
    (lambda x: tl.where(x != 0, tl.sin(x) / x, 1.0), 0.0, 0.0),
    (lambda x: tl.where(x > 1, x, tl.where(x > 0, tl.exp(1e6 * x), x * x)), 2.0, 1.0),
], ids=["C001-sqrt", "C001-inf", "C001-power", "C001-log", "C001-sinc", "C001-nested"])
def test_discarded_side_is_zero(f, x, right):
    assert slope(f, x) == right


def test_c001_second_order():
    assert second(lambda x: tl.where(x >= 0, x * x, tl.sqrt(-x)), 1.0) == 2.0
    assert second(lambda x: tl.where(x > 0, 0 * x, tl.log(-x)), 1.0) == 0.0


def test_c001_entry_by_entry():
    assert gradient(lambda x: tl.sum(tl.where(x > 0, tl.log(x), 3 * x)), [2.0, 0.0, -0.0, 4.0]) \
        == [0.5, 3.0, 3.0, 0.25]


# ---- C003: norms at the origin ----

def test_c003_squared_norm():
    def f(x):
        return tl.norm(x) ** 2
    assert gradient(f, [0.0, 0.0]) == [0.0, 0.0]
    hessian = np.asarray(tl.hessian(f)(tl.zeros(2)))
    assert np.array_equal(hessian, 2 * np.eye(2)) or np.isnan(hessian).any(), "never silently 0"


def test_c003_scaled_zero_vector():
    assert slope(lambda a: tl.norm(a * tl.zeros(2)), 1.3) == 0.0


# ---- C004: powers with base 0 ----

@pytest.mark.parametrize("k", [np.arange(3), np.arange(3.0)], ids=["C004-integers", "C004-floats"])
def test_sum_of_powers_at_zero(k):
    assert slope(lambda x: tl.sum(x ** tl.tensor(k)), 0.0) == 1.0


@pytest.mark.parametrize("exponent, right", [(1.875, 0.0), (1.0, 1.0), (2.0, 0.0), (0.5, inf)])
def test_c004_partial_by_base(exponent, right):
    assert slope(lambda x: x ** tl.tensor(exponent), 0.0) == right


@pytest.mark.parametrize("exponent, right", [(1.0, 0.0), (2.0, 0.0), (0.5, 0.0)])
def test_c004_partial_by_exponent(exponent, right):
    assert slope(lambda y: tl.pow(tl.tensor(0.0), y), exponent) == right


# ---- C006: products with zeros ----

def test_c006_products():
    assert gradient(tl.prod, [0.0, 2.0]) == [2.0, 0.0]
    assert gradient(tl.prod, [0.0, 0.0, 3.0]) == [0.0, 0.0, 0.0]
    for hessian in (tl.hessian(tl.prod), tl.jacrev(tl.jacrev(tl.prod)), tl.jacfwd(tl.jacfwd(tl.prod)),
                    tl.jacrev(tl.jacfwd(tl.prod))):
        assert hessian(tl.tensor([0.0, 0.0, 3.0])).tolist() == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]


def test_c006_third_order_and_prefix_products():
    third = tl.jacfwd(tl.hessian(tl.prod))(tl.zeros(3))
    assert float(third[0, 1, 2]) == 1.0 and float(tl.sum(tl.abs(third))) == 6.0
    assert tl.jacrev(tl.cumprod)(tl.tensor([2.0, 0.0, 3.0])).tolist() == [[1, 0, 0], [0, 2, 0], [0, 6, 0]]


# ---- C008: ties ----

TIES = {
    "relu": tl.relu, "maximum": lambda x: tl.maximum(x, 0), "where": lambda x: tl.where(x > 0, x, 0 * x),
    "clip": lambda x: tl.clip(x, 0, None), "x * (x > 0)": lambda x: x * tl.convert(x > 0, tl.float64)}


@pytest.mark.parametrize("name", TIES, ids=lambda n: f"C008-{n}")
def test_every_spelling_of_relu_at_zero(name):
    assert slope(TIES[name], 0.0) == 0.0
    assert slope(TIES[name], -0.0) == 0.0


def test_c008_maximum_and_minimum_add_to_the_identity():
    for x in (0.0, -0.0, 1.0, -1.0):
        assert slope(lambda x: tl.maximum(x, 0) + tl.minimum(x, 0), x) == 1.0
        assert slope(lambda x: tl.maximum(0, x) + tl.minimum(0, x), x) == 1.0


@pytest.mark.parametrize("reduce, arg", [(tl.max, tl.argmax), (tl.min, tl.argmin)], ids=["C008-max", "C008-min"])
def test_the_first_winner_takes_all(reduce, arg):
    for x in ([2.0, 2.0, 1.0], [1.0, 2.0, 2.0], [3.0, 3.0, 3.0], [0.0, -0.0]):
        direct = gradient(reduce, x)
        assert direct == gradient(lambda v: v[arg(v)], x)
        assert sum(direct) == 1.0


def test_c008_clip_is_minimum_of_maximum():
    for x in (-1.0, 0.0, 0.5, 1.0, 2.0):
        assert slope(lambda x: tl.clip(x, 0, 1), x) == slope(lambda x: tl.minimum(tl.maximum(x, 0), 1), x)
    assert slope(lambda x: tl.clip(x, 0, 1), 0.0) == 0.0
    assert slope(lambda x: tl.clip(x, 0, 1), 1.0) == 1.0


@pytest.mark.parametrize("f", [tl.maximum, tl.minimum], ids=["C008-maximum", "C008-minimum"])
def test_a_tie_distributes_weight_one(f):
    weights = tl.grad(f, argnums=(0, 1))(2.0, 2.0)
    assert sum(map(float, weights)) == 1.0


def test_c008_rule_is_in_help():
    assert "tie" in tl.maximum.__doc__ and "tie" in tl.minimum.__doc__


# ---- C009: abs at 0 ----

@pytest.mark.parametrize("x", [0.0, -0.0], ids=["C009-zero", "C009-minus-zero"])
def test_abs_at_zero(x):
    assert slope(tl.abs, x) == 0.0


def test_c009_complex_zero_and_infinity():
    for dtype in (tl.complex64, tl.complex128):
        assert complex(tl.grad(tl.abs)(tl.tensor(0j, dtype))) == 0
    _, along = tl.jvp(tl.abs, (tl.tensor(complex(inf, 0)),), (tl.tensor(1 + 0j),))
    assert float(along) == 1.0


def test_c009_hessian_of_a_sum_of_sizes():
    def f(x):
        return (tl.abs(x[0]) + tl.abs(x[1])) ** 4 + tl.exp(x[1])
    assert tl.hessian(f)(tl.tensor([1.0, 0.0])).tolist() == [[12.0, 0.0], [0.0, 1.0]]


# ---- C010: logsumexp of -inf ----

def test_c010_logsumexp():
    def lse(x):
        return tl.logsumexp(tl.stack([tl.tensor(-inf), -inf + x]))
    assert float(lse(tl.tensor(1.0))) == -inf
    assert slope(lse, 1.0) == 0.0
    assert float(tl.logsumexp(tl.zeros((0,)))) == -inf
    assert gradient(tl.logsumexp, [-inf, -inf]) == [0.0, 0.0]
    assert gradient(tl.logsumexp, [0.0, 0.0]) == [0.5, 0.5]


@pytest.mark.parametrize("x, y, value, partials", [
    (-inf, -inf, -inf, [0.0, 0.0]), (-inf, 0.0, 0.0, [0.0, 1.0]), (0.0, 0.0, np.log(2), [0.5, 0.5])],
    ids=["C010-both", "C010-one", "C010-none"])
def test_logaddexp(x, y, value, partials):
    assert float(tl.logaddexp(x, y)) == value
    assert [float(g) for g in tl.grad(tl.logaddexp, argnums=(0, 1))(x, y)] == partials


# ---- C012: overflow ----

def test_c012_softplus():
    assert float(tl.softplus(1000.0)) == 1000.0
    assert slope(tl.softplus, 1000.0) == 1.0
    for order, right in enumerate([0.5, 0.25, 0.0, -0.125], start=1):
        assert float(tl.derivative(tl.softplus, [1.0] * order)(0.0)) == right
    assert float(tl.softplus(-1000.0)) == 0.0


def test_c012_naive_spellings():
    assert slope(lambda x: tl.logistic(x), -800.0) == 0.0
    assert abs(float(tl.numpy.log_cosh(800.0)) - 799.3068528194400547) < 1.2e-13
    assert slope(tl.numpy.log_cosh, 800.0) == 1.0


# ---- C013: relative accuracy in the tails ----

@pytest.mark.parametrize("f, x, dtype, right", [
    (tl.expm1, -40.0, tl.float64, 4.248354255291589e-18), (tl.asinh, 1e22, tl.float32, 1e-22),
    (tl.acosh, 1e22, tl.float32, 1e-22), (tl.tanh, 20.0, tl.float64, 1.6993417021166356e-17)],
    ids=["C013-expm1", "C013-asinh", "C013-acosh", "C013-tanh"])
def test_tail(f, x, dtype, right):
    x = tl.tensor(x, dtype)
    for found in (tl.grad(f)(x), tl.jvp(f, (x,), (tl.tensor(1.0, dtype),))[1], tl.run(tl.grad(f))(x)):
        assert float(np.max(ulp_distance(found, tl.tensor(right, dtype)))) <= 4, found


# ---- C016: standard deviation of a constant ----

def test_c016_deviation():
    ones = [1.0, 1.0, 1.0]
    assert gradient(tl.std, ones) == [0.0] * 3
    assert gradient(tl.var, ones) == [0.0] * 3
    assert gradient(lambda x: tl.std(x) ** 2, ones) == [0.0] * 3
    tenths = tl.tensor(np.full(7, 0.1, np.float32))
    assert float(tl.var(tenths)) >= 0


# ---- C017: x log y ----

def test_c017_x_times_log():
    def xlogy(x, y):
        return x * tl.log(y)
    assert [float(g) for g in tl.grad(xlogy, argnums=(0, 1))(0.0, 2.0)] == [0.6931471805599453, 0.0]


# ---- C020: higher derivatives ----

TANH = [.46211715726000976, .78644773296592741, -.72686198138358728, -.56520928825977036, 3.9522195637245831,
        -3.2666864719713927]


@pytest.mark.parametrize("n", range(6), ids=lambda n: f"C020-order-{n}")
def test_tanh_derivatives(n):
    assert float(tl.derivative(tl.tanh, [1.0] * n)(0.5)) == pytest.approx(TANH[n], rel=4e-15)
    f = tl.tanh
    for _ in range(n):
        f = tl.grad(f)
    assert float(f(0.5)) == pytest.approx(TANH[n], rel=4e-15)


@pytest.mark.parametrize("n, right", list(enumerate([0.0, 1.0, 0.0, -2.0, 0.0, 16.0])), ids=lambda n: f"C020-{n}")
def test_tanh_derivatives_at_0(n, right):
    assert float(tl.derivative(tl.tanh, [1.0] * n)(0.0)) == pytest.approx(right, abs=1e-13)


def test_c020_cost_is_not_exponential():
    sizes = [count_eqns(tl.make_jaxpr(tl.derivative(tl.tanh, [1.0] * n))(0.5).jaxpr) for n in (8, 16)]
    assert sizes[1] < 2 ** 4 * sizes[0], f"{sizes}: twice the order costs at most its fourth power"


# ---- C021: integers have no derivative ----

def test_c021_message_names_argument_and_type():
    with pytest.raises(tl.errors.DifferentiationError, match=r"argument 0.*int64.*Pass a float"):
        tl.grad(lambda x: x ** 2)(3)


def test_c021_tree():
    def f(p):
        return p["w"] ** 2 * p["step"]
    tree = {"w": 2.0, "step": 7}
    with pytest.raises(tl.errors.DifferentiationError, match=r"\['step'\]"):
        tl.grad(f)(tree)
    found = tl.grad(f, allow_int=True)(tree)
    assert float(found["w"]) == 28.0 and float(found["step"]) == 0
