"""What transforms are given: methods, things that cannot be called, arguments named twice."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.errors import ArgumentError, ConcretizationError

TRANSFORMS = [tl.grad, tl.value_and_grad, tl.jacfwd, tl.jacrev, tl.hessian, tl.hvp, tl.vmap, tl.record, tl.run,
              tl.make_jaxpr, tl.checkpoint, tl.custom_jvp, tl.custom_vjp]
CALLS = {
    "jvp": lambda: tl.jvp(3.0, (1.0,), (1.0,)),
    "vjp": lambda: tl.vjp(3.0, 1.0),
    "linearize": lambda: tl.linearize(3.0, 1.0),
    "derivative": lambda: tl.derivative(3.0, [1.0]),
    "eval_shape": lambda: tl.eval_shape(3.0, 1.0),
    "cond": lambda: tl.cond(True, 3.0, lambda: 2.0),
    "cond_not_taken": lambda: tl.cond(True, lambda: 2.0, 3.0),
    "switch": lambda: tl.switch(0, [3.0]),
    "iterate": lambda: tl.iterate(3.0, 2, 1.0),
    "scan": lambda: tl.scan(3.0, 1.0, tl.ones(2)),
    "while_loop": lambda: tl.while_loop(lambda x: x < 2, 3.0, 1.0),
    "while_loop_test": lambda: tl.while_loop(True, lambda x: x, 1.0),
}


@pytest.mark.parametrize("call", [*(lambda t=t: t(3.0) for t in TRANSFORMS), *CALLS.values()],
                         ids=[*(t.__name__ for t in TRANSFORMS), *CALLS])
def test_what_cannot_be_called_is_named(call):
    with pytest.raises(ArgumentError, match="takes a callable, got (float|bool)"):
        call()


@pytest.mark.parametrize("transform", [tl.grad, tl.value_and_grad, tl.jacfwd, tl.jacrev, tl.hessian])
@pytest.mark.parametrize("argnums", [(0, 0), (0, "x"), (1, -1)], ids=str)
def test_an_argument_named_twice_is_an_error(transform, argnums):
    with pytest.raises(ArgumentError, match="name an argument twice"):
        transform(lambda x, y: x * y, argnums)(3.0, 4.0)


class Model:
    """No container: only its methods are transformed."""

    def __init__(self):
        self.k = 3.0

    def cube(self, x):
        return self.k * x ** 3

    gradient = tl.grad(cube)
    by_position = tl.grad(cube, 1)
    by_name = tl.grad(cube, "x")
    both = tl.value_and_grad(cube)
    forward, reverse = tl.jacfwd(cube), tl.jacrev(cube)
    second, product = tl.hessian(cube), tl.hvp(cube)
    lanes, recorded, text = tl.vmap(cube), tl.record(cube), tl.make_jaxpr(cube)
    pushed, pulled, linear = tl.jvp(cube), tl.vjp(cube), tl.linearize(cube)
    along = tl.derivative(cube, [1.0, 1.0])


METHODS = {
    "grad": lambda m: m.gradient(2.0), "grad(1)": lambda m: m.by_position(2.0),
    "grad('x')": lambda m: m.by_name(2.0), "value_and_grad": lambda m: m.both(2.0)[1],
    "jacfwd": lambda m: m.forward(2.0), "jacrev": lambda m: m.reverse(2.0),
    "hessian": lambda m: m.second(2.0), "hvp": lambda m: m.product((2.0,), 1.0),
    "derivative": lambda m: m.along(2.0), "record": lambda m: m.recorded(2.0).backward(),
    "jvp": lambda m: m.pushed((2.0,), (1.0,))[1], "vjp": lambda m: m.pulled(2.0)[1](1.0)[0],
    "linearize": lambda m: m.linear(2.0)[1](1.0), "vmap": lambda m: m.lanes(tl.tensor([2.0]))[0] * 1.5,
}


@pytest.mark.parametrize("name", METHODS)
def test_decorated_methods(name):
    model = Model()
    assert float(METHODS[name](model)) == 36.0
    model.k = 6.0
    assert float(METHODS[name](model)) == 72.0
    assert "integer_pow" in str(Model().text(2.0))


@pytest.mark.parametrize("transform", [tl.run, tl.grad, lambda f: tl.run(lambda x: tl.iterate(f, 2, x))],
                         ids=["run", "grad", "iterate"])
def test_an_entry_of_an_array_set_to_a_traced_value_says_so(transform):
    def fill(x):
        table = np.zeros(3)
        table[0] = x
        return np.sum(table)
    with pytest.raises(ConcretizationError, match="needs a number, but the value is traced"):
        transform(fill)(1.0)
