"""Transforms inside one another at the edges: no lanes, long derivatives of programs, integers."""
import pytest

import tlgrad as tl
from tlgrad.errors import DTypeError

PROGRAMS = {
    "run": tl.run(lambda x: x ** 6),
    "run_of_run": tl.run(lambda x: tl.run(lambda y: y * y)(x) ** 3),
    "checkpoint": tl.checkpoint(lambda x: x ** 6),
    "vmap": lambda x: tl.sum(tl.vmap(lambda y: y ** 6)(tl.expand_dims(x, 0))),
    "map": lambda x: tl.map(lambda y: y ** 6)(x),
    "iterate": lambda x: tl.iterate(lambda h: h * x, 6, 0 * x + 1),
    "scan": lambda x: tl.scan(lambda h, _: (h * x, None), 0 * x + 1, None, length=6)[0],
    "cond": lambda x: tl.run(lambda y: tl.cond(y > 0, lambda a: a ** 6, lambda a: a, y))(x),
    "while_loop": lambda x: tl.while_loop(lambda s: s[1] < 6, lambda s: (s[0] * x, s[1] + 1), (0 * x + 1, 0))[0],
}


@pytest.mark.parametrize("order, expected", [(1, 192.0), (3, 960.0), (5, 1440.0)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_long_derivatives_of_programs(name, order, expected):
    assert float(tl.derivative(PROGRAMS[name], [1.0] * order)(2.0)) == expected


LANES = {
    "cond": lambda x: tl.cond(x > 0, lambda a: a * a, lambda a: -a, x),
    "switch": lambda x: tl.switch(tl.convert(x, tl.int64), [lambda a: a, lambda a: a * a], x),
    "while_loop": lambda x: tl.while_loop(lambda a: a < 3, lambda a: a + x, x),
    "iterate": lambda x: tl.iterate(lambda a: a * x, tl.convert(x, tl.int64), x),
    "scan": lambda x: tl.scan(lambda c, _: (c * x, c), x, None, length=3)[0],
    "map": lambda x: tl.map(lambda a: a if a > 0 else -a)(x),
}


@pytest.mark.parametrize("wrap", [lambda f: f, tl.grad, tl.run, lambda f: tl.run(tl.grad(f))],
                         ids=["value", "grad", "run", "run(grad)"])
@pytest.mark.parametrize("name", LANES)
def test_control_flow_over_no_lanes(name, wrap):
    out = tl.vmap(wrap(LANES[name]))(tl.zeros((0,)))
    assert out.shape == (0,) and out.dtype == tl.float64


@pytest.mark.parametrize("call", [lambda: tl.jvp(lambda x: x * x, (3,), (1.0,)),
                                  lambda: tl.linearize(lambda x: x * x, 3)[1](1.0),
                                  lambda: tl.derivative(lambda x: x * x, [1.0])(3),
                                  lambda: tl.derivative(lambda x: x * x, [1] * 4)(3)],
                         ids=["jvp", "linearize", "derivative", "taylor"])
def test_an_integer_has_no_direction(call):
    with pytest.raises(DTypeError, match="has no derivative; its (tangent|direction) is None or 0"):
        call()
