"""Directional derivatives of any order: values of the feature inventory, rows 51 and 52."""
import itertools

import numpy as np
import pytest

import tlgrad as tl

X = tl.tensor([1.0, 2.0])
EX, EY = tl.tensor([1.0, 0.0]), tl.tensor([0.0, 1.0])


def cubed(x):
    return (2 * x[0] + 3 * x[1] + 1) ** 3


@pytest.mark.parametrize("directions, right", [
    ([], 729), ([EX], 486), ([EX, EY], 324), ([EX, EX, EY], 72), ([EY, EX, EX], 72), ([EX, EY, EX], 72)],
    ids=["value", "x", "xy", "xxy", "yxx", "xyx"])
def test_row_51(directions, right):
    assert float(tl.derivative(cubed, directions)(X)) == right
    assert float(tl.run(tl.derivative(cubed, directions))(X)) == right


def test_row_51_every_fourth_derivative_vanishes():
    for directions in itertools.combinations_with_replacement([EX, EY], 4):
        assert float(tl.derivative(cubed, list(directions))(X)) == 0


def test_row_51_any_direction():
    v = tl.tensor([2.0, -1.0])
    assert float(tl.derivative(cubed, [v, v])(X)) == 54


def test_row_51_tanh():
    def f(x):
        return tl.tanh(x[0] + x[1])

    def separate(x):
        return tl.tanh(x[0]) * tl.tanh(x[1]) * 0 + tl.tanh(x[0]) + tl.tanh(x[1])
    origin = tl.zeros(2)
    assert float(tl.derivative(separate, [EX, EY])(origin)) == 0
    assert float(tl.derivative(f, [EX, EX, EX])(origin)) == -2


def field(inputs):
    w, b, x = inputs["w"], inputs["b"], inputs["x"]
    return (tl.sum(w * x) + b) ** 3


STATE = {"w": tl.tensor([2.0, 3.0]), "b": tl.tensor(1.0), "x": X}


def along(v):
    return {"w": tl.zeros(2), "b": tl.tensor(0.0), "x": v}


@pytest.mark.parametrize("directions, dw, db, dx", [
    ([EX, EY], [198, 180], 36, [72, 108]), ([EX, EX, EY], [72, 24], 0, [0, 0])], ids=["xy", "xxy"])
def test_row_52(directions, dw, db, dx):
    pulled = tl.derivative_vjp(field, [along(v) for v in directions])(STATE, 1.0)
    found = {name: np.asarray(v).tolist() for name, v in pulled.items()}
    if directions == [EX, EX, EY]:
        # d/dw of 6 w_x^2 w_y, d/db and d/dx of a third derivative of a cube
        assert found == {"w": [12 * 2 * 3, 6 * 4], "b": 0, "x": [0, 0]}
    assert found == {"w": dw, "b": db, "x": dx}


def test_row_52_without_directions_is_the_pullback():
    pulled = tl.derivative_vjp(field, [])(STATE, 1.0)
    plain = tl.vjp(field, STATE)[1](1.0)[0]
    assert all(tl.same_bits(pulled[k], plain[k]) for k in STATE)


@pytest.mark.parametrize("f", [tl.exp, tl.sin, tl.tanh, tl.logistic, lambda x: x ** 5, lambda x: 1 / (1 + x * x),
                               lambda x: tl.where(x > 0, x * x * x, 0.0), lambda x: tl.sqrt(1 + x),
                               lambda x: tl.log(2 + tl.cos(x))],
                         ids=["exp", "sin", "tanh", "logistic", "power", "quotient", "select", "sqrt", "log"])
def test_series_and_nested_duals_agree(f):
    """From three equal directions on, a power series is carried; nested jvp is the other way."""
    nested = f
    for n in range(1, 7):
        nested = (lambda g: lambda x: tl.jvp(g, (x,), (1.0,))[1])(nested)
        assert float(tl.derivative(f, [1.0] * n)(0.4)) == pytest.approx(float(nested(0.4)), rel=1e-12, abs=1e-12)


def test_directions_that_do_not_fit_are_explained():
    with pytest.raises(tl.errors.ShapeError, match=r"must have shape \(2,\), got \(3,\)"):
        tl.derivative(cubed, [tl.ones(3)])(X)
    with pytest.raises(tl.errors.TreeError, match="directions is a list"):
        tl.derivative(cubed, 1.0)(X)
