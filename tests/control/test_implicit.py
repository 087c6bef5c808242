"""Fixed points, roots and minimisers: implicit derivatives of any order and mode (case C078)."""
import pytest

import tlgrad as tl
from tlgrad.errors import ArgumentError, CarryError, ConvergenceError, DTypeError, ShapeError, SingularMatrixError

SLOPE = -0.29747434150983226


def cosine(p):
    return tl.fixed_point(lambda z, p: tl.cos(p * z), 1.0, p)


WAYS = {
    "reverse": lambda: tl.grad(cosine)(1.0),
    "forward": lambda: tl.jvp(cosine, (1.0,), (1.0,))[1],
    "staged": lambda: tl.run(tl.grad(cosine))(1.0),
    "nested run": lambda: tl.grad(tl.run(cosine))(1.0),
    "lanes": lambda: tl.vmap(tl.grad(cosine))(tl.tensor([0.5, 1.0]))[1],
    "keyword": lambda: tl.grad(lambda p: tl.fixed_point(lambda z, p: tl.cos(p * z), 1.0, p=p))(1.0),
    "closure": lambda: tl.grad(lambda p: tl.fixed_point(lambda z: tl.cos(p * z), 1.0))(1.0),
    "in a loop": lambda: tl.grad(lambda p: tl.iterate(lambda q: q * 0 + cosine(p), 2, p))(1.0)}


@pytest.mark.parametrize("way", WAYS)
def test_fixed_point_of_cosine(way):
    assert abs(float(WAYS[way]()) - SLOPE) < 4e-15


def test_value_residual_and_steps_are_reported():
    z, report = tl.fixed_point(lambda z: tl.cos(z), 1.0, report=True)
    assert abs(float(z) - 0.73908513321516064) < 4e-15
    assert float(report.residual) <= 16 * 2.0 ** -52 and 60 < int(report.steps) < 120


def test_second_derivatives_in_all_mode_pairs():
    forward = lambda f: lambda x: tl.jvp(f, (x,), (1.0,))[1]
    values = [float(a(b(cosine))(1.0)) for a in (tl.grad, forward) for b in (tl.grad, forward)]
    step = 1e-5
    differences = (float(tl.grad(cosine)(1 + step)) - float(tl.grad(cosine)(1 - step))) / (2 * step)
    assert max(values) - min(values) < 1e-14 and abs(values[0] - differences) < 1e-8


def test_system_of_equations_as_a_pytree():
    def f(z, a):
        return {"x": 0.5 * tl.sin(z["y"]) + a, "y": 0.25 * z["x"] * z["y"] + a[0]}
    start = {"x": tl.zeros((2,)), "y": tl.ones((2,))}
    total = lambda a: tl.sum(tl.fixed_point(f, start, a)["y"])
    a, step = tl.tensor([0.3, 0.7]), 1e-6
    for k in range(2):
        e = tl.tensor([1.0, 0.0] if k == 0 else [0.0, 1.0]) * step
        differences = (float(total(a + e)) - float(total(a - e))) / (2 * step)
        assert abs(float(tl.grad(total)(a)[k]) - differences) < 1e-8


def test_root():
    f = lambda a: tl.root(lambda z, a: z * z - a, 1.0, a)
    assert abs(float(f(2.0)) - 2 ** 0.5) < 4e-16
    assert abs(float(tl.grad(f)(2.0)) - 0.5 / 2 ** 0.5) < 4e-16
    assert abs(float(tl.grad(tl.grad(f))(2.0)) + 0.25 * 2 ** -1.5) < 4e-16
    both = tl.root(lambda z: tl.stack([z[0] + z[1] - 3, z[0] * z[1] - 2]), tl.tensor([0.0, 5.0]))
    assert tl.allclose(both, tl.tensor([1.0, 2.0]))
    with pytest.raises(SingularMatrixError):
        tl.root(lambda z: tl.stack([z[0] + z[1], z[0] + z[1]]), tl.tensor([1.0, 2.0]))


@pytest.mark.parametrize("a, value, slope", [(0.5, 0.5, 1.0), (2.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (1.0, 1.0, 1.0)],
                         ids=["inside", "above", "below", "just reached: from inside"])
@pytest.mark.parametrize("way", [lambda f: f, tl.run], ids=["eager", "staged"])
def test_minimiser_within_bounds(a, value, slope, way):
    f = lambda a: tl.argmin(lambda x, a: (x - a) ** 2, 0.2, a, lower=0.0, upper=1.0)
    assert float(way(f)(a)) == value and float(way(tl.grad(f))(a)) == slope
    assert float(tl.jvp(f, (a,), (1.0,))[1]) == slope


def test_minimiser_that_is_held_follows_its_bound():
    f = lambda u: tl.argmin(lambda x: (x - 3) ** 2, 0.2, lower=0.0, upper=u)
    assert float(tl.grad(f)(1.5)) == 1.0 and float(tl.grad(f)(5.0)) == 0.0
    partly = lambda c: tl.argmin(lambda z: tl.sum((z - c) ** 2) + z[0] * z[1], tl.zeros((2,)),
                                 lower=tl.tensor([-1.0, 0.0]))
    assert tl.jacrev(partly)(tl.tensor([1.0, -4.0])).tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_minimiser_of_a_valley():
    def f(z, a):
        return (a - z["x"]) ** 2 + 100 * (z["y"] - z["x"] ** 2) ** 2
    best = lambda a: tl.argmin(f, {"x": -1.2, "y": 1.0}, a)
    z = best(1.0)
    assert abs(float(z["x"]) - 1) < 1e-12 and abs(float(z["y"]) - 1) < 1e-12
    assert abs(float(tl.grad(lambda a: best(a)["y"])(1.0)) - 2) < 1e-11


def test_argmin_of_an_array_is_still_numpys():
    assert int(tl.argmin(tl.tensor([3.0, 1.0, 2.0]))) == 1
    assert tl.argmin(tl.tensor([[3.0, 1.0], [0.0, 2.0]]), axis=1).tolist() == [1, 0]


def test_what_does_not_converge_is_an_error():
    with pytest.raises(ConvergenceError,
                       match=r"fixed_point of .*<lambda> .line .* did not converge: the residual is"):
        tl.fixed_point(lambda z: 2 * z + 1, 1.0)
    with pytest.raises(ConvergenceError, match="after 7 steps, the tolerance 1e-09"):
        tl.grad(lambda p: tl.fixed_point(lambda z: tl.cos(p * z), 1.0, tolerance=1e-9, max_steps=7))(1.0)
    with pytest.raises(ConvergenceError, match="in lane 1"):
        tl.vmap(lambda a: tl.fixed_point(lambda z: a * z + 1, 1.0, max_steps=99))(tl.tensor([0.5, 2.0]))
    with pytest.raises(ConvergenceError):
        tl.root(lambda z: z * z + 1, 0.5)


@pytest.mark.parametrize("call, error, text", [
    (lambda: tl.fixed_point(lambda z: tl.stack([z, z]), 1.0), CarryError, "structure and shapes of its first"),
    (lambda: tl.fixed_point(lambda z: z, tl.tensor(1)), DTypeError, "must be floats of one dtype"),
    (lambda: tl.argmin(lambda z: z, tl.ones((2,))), ShapeError, "must return one number"),
    (lambda: tl.root(3.0, 1.0), ArgumentError, "takes a callable first")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()
