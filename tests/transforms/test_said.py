"""Refusals speak of the user's function, and nothing is dropped in silence."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.errors import (ArgumentError, DifferentiationError, DTypeError, LeakedTracerError,
                           ShapeError)


def energy(x):
    return tl.sum(x * x)


@pytest.mark.parametrize("call", [lambda: tl.hvp(energy)((tl.ones(3),), tl.ones(2)),
                                  lambda: tl.derivative(energy, [tl.ones(2)])(tl.ones(3)),
                                  lambda: tl.derivative(energy, [tl.ones(3), tl.ones(2)])(tl.ones(3)),
                                  lambda: tl.derivative(energy, [tl.ones(2)] * 4)(tl.ones(3))],
                         ids=["hvp", "derivative", "mixed", "taylor"])
def test_a_direction_of_another_shape_names_the_function(call):
    with pytest.raises(ShapeError, match=r"energy .line .* must have shape \(3,\), got \(2,\)"):
        call()


@pytest.mark.parametrize("f", [lambda x: x * x, lambda x: 1 / x, lambda x: tl.matmul(x, x),
                               lambda x: tl.where(x > 0, x, 0.0), tl.sin],
                         ids=["mul", "div", "matmul", "where", "sin"])
def test_the_transpose_of_what_is_not_linear(f):
    y = f(tl.ones(3))
    with pytest.raises(DifferentiationError, match="is not linear"):
        tl.linear_transpose(f, tl.ones(3))(y)


def test_a_static_name_that_is_no_argument():
    with pytest.raises(ArgumentError, match="static='m': .* has no such argument; its arguments are x, n"):
        tl.run(lambda x, n: x * n, static="m")
    assert float(tl.run(lambda x, **more: x * more["m"], static="m")(2.0, m=3)) == 6.0


def test_masked_entries_are_not_taken_for_numbers():
    with pytest.raises(DTypeError, match="no masked entries"):
        tl.tensor(np.ma.array([1.0, 2.0], mask=[False, True]))
    assert tl.tensor(np.ma.array([1.0, 2.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("use", [float, np.asarray, lambda x: x.item()], ids=["float", "asarray", "item"])
@pytest.mark.parametrize("transform", [tl.grad, tl.run, lambda f: tl.run(tl.vmap(f))], ids=["grad", "run", "vmap"])
def test_the_number_of_an_escaped_value(transform, use):
    kept = []
    transform(lambda x: kept.append(x) or x * 2)(tl.ones(2) if transform not in (tl.grad, tl.run) else 1.0)
    with pytest.raises(LeakedTracerError, match="after that transform had ended"):
        use(kept[0])
