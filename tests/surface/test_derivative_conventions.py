"""Derivatives at ties, kinks, zeros and infinities: section A of the case table."""
import math

import numpy as np
import pytest

import tlgrad as tl
import tlgrad.numpy as tn

inf = math.inf


def test_norm_at_the_origin_has_subgradient_zero():
    assert tl.grad(lambda x: tn.norm(x)**2)(tn.zeros(2)).tolist() == [0, 0]
    assert tl.grad(lambda a: tn.norm(a * tn.zeros(2)))(1.3).item() == 0


def test_norm_at_the_origin_has_no_hessian_and_says_nan():
    assert np.isnan(tl.hessian(lambda x: tn.norm(x)**2)(tn.zeros(2))).all()


def test_product_with_zeros():
    assert tl.grad(tn.prod)(tl.tensor([0.0, 2.0])).tolist() == [2, 0]
    x = tl.tensor([0.0, 0.0, 3.0])
    assert tl.grad(tn.prod)(x).tolist() == [0, 0, 0]
    assert tl.hessian(tn.prod)(x).tolist() == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("f", [
    lambda x: tn.maximum(x, 0), tn.relu, lambda x: tn.where(x > 0, x, 0), lambda x: tn.clip(x, 0, 1),
], ids=["maximum", "relu", "where", "clip"])
def test_every_spelling_of_relu_has_derivative_zero_at_zero(f):
    assert tl.grad(f)(0.0).item() == 0


def test_the_weight_of_a_tie_is_one():
    assert tl.grad(lambda x: tn.maximum(x, 0) + tn.minimum(x, 0))(0.0).item() == 1
    assert tl.grad(tn.max)(tl.tensor([1.0, 1.0, 0.0])).tolist() == [1, 0, 0]
    assert tl.grad(lambda x: x[tn.argmax(x)])(tl.tensor([1.0, 1.0, 0.0])).tolist() == [1, 0, 0]
    assert tl.grad(lambda x: tn.clip(x, 0, 1))(1.0).item() == 1


def test_absolute_value_at_zero():
    assert [tl.grad(tn.abs)(v).item() for v in (0.0, -0.0)] == [0, 0]

    def f(x):
        return (tn.abs(x[0]) + tn.abs(x[1]))**4 + tn.exp(x[1])
    assert tl.hessian(f)(tl.tensor([1.0, 0.0])).tolist() == [[12, 0], [0, 1]]


def test_logsumexp_of_minus_infinities():
    y, g = tl.value_and_grad(lambda x: tn.logsumexp(tn.stack([-inf, -inf + x])))(1.0)
    assert (y.item(), g.item()) == (-inf, 0)
    assert tn.logsumexp([]).item() == -inf
    mixed = tl.grad(tn.logsumexp)(tl.tensor([0.0, -inf, 0.0]))
    assert mixed.tolist() == [0.5, 0, 0.5]


@pytest.mark.parametrize("x, y, value, slopes", [(-inf, -inf, -inf, (0, 0)), (-inf, 0.0, 0.0, (0, 1)),
                                                 (inf, inf, inf, (0, 0))])
def test_logaddexp_at_infinities(x, y, value, slopes):
    out, grads = tl.value_and_grad(tn.logaddexp, argnums=(0, 1))(x, y)
    assert out.item() == value and tuple(g.item() for g in grads) == slopes


@pytest.mark.parametrize("f", [tn.gelu, lambda x: tn.gelu(x, True), lambda x: tn.logaddexp(x, 0.3)],
                         ids=["gelu", "gelu-tanh", "logaddexp"])
def test_slopes_far_out_and_their_slopes_are_the_limits(f):
    for x in (inf, 1e200, -1e200, -inf):
        assert tl.grad(f)(x).item() == (x > 0) and tl.grad(tl.grad(f))(x).item() == 0


def test_complex_arguments_of_gelu_and_exp10():
    z = 1 + 2j
    inner = np.sqrt(2 / np.pi) * (z + 0.044715 * z ** 3)
    np.testing.assert_allclose(complex(tn.gelu(tl.tensor(z), True).item()), 0.5 * z * (1 + np.tanh(inner)), 1e-14)
    np.testing.assert_allclose(complex(tl.special.exp10(tl.tensor(z)).item()), 10.0 ** z, 1e-14)


def test_spread_of_constant_data():
    x = tl.tensor([1.0, 1.0, 1.0])
    for f in (tn.std, tn.var, lambda x: tn.std(x)**2):
        assert tl.grad(f)(x).tolist() == [0, 0, 0]


def test_variance_is_never_negative():
    x = np.full(100, 1e8) + np.linspace(0, 1e-7, 100)
    assert tn.var(x).item() >= 0 and tn.var(np.full(7, 0.1, np.float32)).item() >= 0


@pytest.mark.parametrize("data, dtype, function, value, result", [
    ([60000.0] * 3, "float16", "mean", 60000.0, "float16"), ([60.0] * 4096, "float16", "mean", 60.0, "float16"),
    ([65535, 1], "uint16", "sum", 65536, "uint64"), ([200] * 300, "int16", "sum", 60000, "int64"),
    ([1.0] * 70000, "float16", "sum", inf, "float16"), ([0, 1, 2], "int64", "mean", 1.0, "float64"),
    ([True, True], "bool", "sum", 2, "int64")],
    ids=["mean-60000", "mean-60", "uint16", "int16", "binary16-overflow", "mean-int", "bool"])
def test_accumulation_is_wide(data, dtype, function, value, result):
    out = getattr(tn, function)(tl.tensor(data, dtype))
    assert out.item() == value and out.dtype == result


def test_a_narrow_accumulator_only_by_request():
    x = tl.tensor([60000.0] * 3, "float16")
    assert tn.mean(x).item() == 60000 and tn.sum(x, dtype=tl.float16).item() == inf


def test_unselected_branches_contribute_exactly_zero():
    assert tl.grad(lambda x: tn.where(x >= 0, x, tn.sqrt(-x)))(1.0).item() == 1
    assert tl.grad(lambda x: tn.where(x > 0, 0, x * inf))(1.0).item() == 0
    assert tl.grad(lambda x: tn.where(x == 0, 0, x * tn.sqrt(x)))(0.0).item() == 0


def test_sinc_is_smooth_at_zero():
    d1, d2 = tl.grad(tn.sinc), tl.grad(tl.grad(tn.sinc))
    assert d1(0.0).item() == 0 and d2(0.0).item() == pytest.approx(-math.pi**2 / 3, rel=1e-15)


def test_overflow_of_softplus_and_its_kin():
    assert tl.value_and_grad(tn.softplus)(1000.0)[0].item() == 1000
    y, g = tl.value_and_grad(tn.log_cosh)(800.0)
    assert (y.item(), g.item()) == (799.3068528194400547, 1)
