"""How transforms are called: keywords, names, methods, decorators, pickling, mapped axes."""
import copy
import functools
import inspect
import pickle

import numpy as np
import pytest

import tlgrad as tl
from tlgrad import errors


def f(x, y=3.0, *, z=1.0):
    """Weighted square.

    More text.
    """
    return (x - y) ** 2 * z


# ---- C081: keywords, names, defaults ----

def test_c081_keywords():
    assert float(tl.grad(f)(x=1.0, y=2.0)) == -2.0
    assert float(tl.grad(f)(1.0, y=2.0)) == -2.0
    assert float(tl.grad(f)(1.0)) == -4.0
    assert float(tl.grad(f, "y")(1.0, 2.0)) == 2.0
    assert float(tl.grad(f, "y")(1.0)) == 4.0
    assert float(tl.grad(f, argnums=-1)(1.0, 2.0)) == 2.0
    assert [float(g) for g in tl.grad(f, ("x", "z"))(1.0, 2.0, z=5.0)] == [-10.0, 1.0]
    assert [float(g) for g in tl.grad(f, ("x", "z"))(x=1.0, y=2.0, z=5.0)] == [-10.0, 1.0]
    assert [float(g) for g in tl.grad(f, (0, "z"))(1.0, 2.0)] == [-2.0, 1.0]


def test_c081_star_arguments():
    def g(*args, **kwargs):
        return args[0] * args[1] * kwargs["k"]
    assert float(tl.grad(g, 1)(2.0, 3.0, k=5.0)) == 10.0
    assert float(tl.grad(g, "k")(2.0, 3.0, k=5.0)) == 6.0
    assert float(tl.run(g)(2.0, 3.0, k=5.0)) == 30.0


@pytest.mark.parametrize("transform", [tl.grad, tl.value_and_grad, tl.jacfwd, tl.jacrev, tl.hessian])
def test_c081_every_transform(transform):
    plain = transform(f)(1.0, 2.0, z=5.0)
    named = transform(f)(x=1.0, y=2.0, z=5.0)
    assert str(plain) == str(named)
    assert str(tl.run(transform(f))(1.0, y=2.0, z=5.0)) == str(plain)


@pytest.mark.parametrize("argnums, call, said", [
    ("w", (1.0,), "no argument 'w'; its parameters are x, y, z"), (7, (1.0,), "argnums=7"),
    ("x", (), "without its argument 'x'"), (True, (1.0,), "positions or names, got True"),
    (1.5, (1.0,), "got 1.5")], ids=str)
def test_a_wrong_argument_is_named(argnums, call, said):
    with pytest.raises((errors.ArgumentError, TypeError), match=said):
        tl.grad(f, argnums)(*call)


# ---- C082: metadata, methods, pickling ----

@pytest.mark.parametrize("transform, said", [(tl.grad, "Gradient of f"), (tl.run, ""), (tl.vmap, "f"),
                                             (tl.value_and_grad, "Value and gradient of f"),
                                             (tl.jacfwd, "Jacobian"),
                                             (tl.hessian, "Hessian of f"), (tl.record, "Record of f")])
def test_c082_signature_name_doc(transform, said):
    g = transform(f)
    assert g.__name__ == "f" and g.__wrapped__ is f
    assert inspect.signature(g) == inspect.signature(f)
    assert said in g.__doc__ and "Weighted square." in g.__doc__


class Model:
    def __init__(self, k):
        self.k = k

    @tl.run
    def loss(self, x):
        return self.k * x * x

    @tl.grad
    def not_a_method_of_x(x):
        return x * x

    @staticmethod
    @tl.run
    def twice(x):
        return 2 * x

    @classmethod
    def build(cls, x):
        return tl.run(lambda v: cls(3.0).k * v)(x)


def test_c082_methods():
    a, b = Model(2.0), Model(5.0)
    found = [float(y) for y in (a.loss(3.0), b.loss(3.0), Model.twice(2.0), Model.build(2.0))]
    assert found == [18, 45, 4, 6]
    assert float(tl.grad(a.loss)(3.0)) == 12.0 and float(tl.vmap(b.loss)(tl.ones(2))[0]) == 5.0
    a.k = 7.0
    assert float(a.loss(3.0)) == 63.0


@tl.run
def compiled(x):
    return x - 2 * x * x


module_grad = tl.grad(f)
module_nested = tl.run(tl.vmap(tl.grad(np.sin)))


def sin_like(x):
    return tl.sin(x)


@pytest.mark.parametrize("g, x", [(tl.grad(sin_like), 0.0), (tl.run(sin_like), 0.5), (compiled, 2.0),
                                  (tl.vmap(sin_like), np.ones(2)), (tl.run(tl.grad(sin_like)), 0.0),
                                  (tl.jacfwd(sin_like), 0.3), (tl.hessian(sin_like), 0.3),
                                  (tl.value_and_grad(sin_like), 0.3), (tl.record(sin_like), 0.3)],
                         ids=["grad", "run", "decorated run", "vmap", "run grad", "jacfwd", "hessian",
                              "value_and_grad", "record"])
def test_c082_transformed_functions_pickle_and_copy(g, x):
    again = pickle.loads(pickle.dumps(g))
    assert str(again(x)) == str(g(x)) == str(copy.deepcopy(g)(x))


def test_c082_wrapping_is_not_bypassed():
    inner = tl.run(lambda x, y: x - 2 * y)

    @functools.wraps(inner)
    def swapped(x, y):
        return inner(y, x)
    assert float(swapped(0.0, 1.0)) == 1.0
    assert float(tl.run(swapped)(0.0, 1.0)) == 1.0
    assert float(tl.record(swapped)(0.0, 1.0).value) == 1.0
    assert float(tl.make_jaxpr(swapped)(0.0, 1.0)(0.0, 1.0)[0]) == 1.0


def test_tensors_and_dtypes_pickle():
    for x in (tl.tensor([1.0, 2.0]), tl.tensor(2.5, tl.bfloat16), tl.tensor(1, tl.int8), tl.run(lambda x: x)(3.0)):
        again = pickle.loads(pickle.dumps(x))
        assert tl.same_bits(x, again) and again.aval is x.aval
    assert pickle.loads(pickle.dumps(tl.float32)) is tl.float32


# ---- decorators and calls ----

@pytest.mark.parametrize("transform, options", [
    (tl.run, dict(order="tree")), (tl.grad, dict(argnums="y")), (tl.vmap, dict(in_axes=(0, None))),
    (tl.value_and_grad, dict(argnums=1)), (tl.jacfwd, dict(argnums=1)), (tl.jacrev, dict(argnums=1)),
    (tl.hessian, dict(argnums=1)), (tl.record, {})])
def test_decorator_with_options_and_call(transform, options):
    @transform(**options)
    def g(x, y):
        return x * y * y
    args = (tl.ones(2), 3.0) if transform is tl.vmap else (2.0, 3.0)
    assert str(g(*args)) == str(transform(lambda x, y: x * y * y, **options)(*args))


CALLS = {
    "jvp": (tl.jvp, lambda g: g((3.0,), (1.0,))[1]), "vjp": (tl.vjp, lambda g: g(3.0)[1](1.0)[0]),
    "linearize": (tl.linearize, lambda g: g(3.0)[1](1.0)), "hvp": (tl.hvp, lambda g: g((3.0,), 1.0) * 3),
    "derivative": (tl.derivative(directions=[1.0]), lambda g: g(3.0)),
    "derivative_vjp": (tl.derivative_vjp(directions=[1.0]), lambda g: g(3.0, 3.0)),
    "linear_transpose": (tl.linear_transpose, lambda g: g(1.0)(3.0)[0] + 3),
    "checkpoint": (tl.checkpoint, lambda g: tl.grad(g)(3.0)),
    "make_jaxpr": (tl.make_jaxpr, lambda g: g(3.0)(3.0)[0] - 3),
    "eval_shape": (tl.eval_shape, lambda g: g(3.0).size * 6.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_bare_decorator(name):
    transform, use = CALLS[name]

    @transform
    def g(x):
        return x + 0.0 if name == "linear_transpose" else x * x
    assert float(use(g)) == 6.0


def test_has_aux():
    def g(x):
        return x * x, {"twice": 2 * x}
    gradient, aux = tl.grad(g, has_aux=True)(3.0)
    assert float(gradient) == 6.0 and float(aux["twice"]) == 6.0
    (value, aux), gradient = tl.value_and_grad(g, has_aux=True)(3.0)
    assert (float(value), float(gradient), float(aux["twice"])) == (9.0, 6.0, 6.0)
    assert float(tl.jvp(g, (3.0,), (1.0,), has_aux=True)[2]["twice"]) == 6.0
    with pytest.raises(errors.OutputError, match=r"has_aux=True the function returns \(result, aux\)"):
        tl.grad(lambda x: x, has_aux=True)(3.0)


# ---- C092: mapped axes ----

def test_c092_sizes_differ():
    with pytest.raises(errors.ShapeError, match="x axis 0 is 3, y axis 0 is 4"):
        tl.vmap(lambda x, y: x + y)(tl.ones((3, 2)), tl.ones((4, 2)))


def test_c092_no_lanes_and_names():
    assert tl.vmap(lambda x: x * 2)(tl.ones((0, 2))).shape == (0, 2)
    assert tl.vmap(tl.grad(lambda x: tl.sum(x * x)))(tl.ones((0, 2))).shape == (0, 2)
    out = tl.vmap(lambda x, y: x * y, in_axes={"x": 0, "y": None})(tl.ones(3), tl.tensor([1.0, 2.0]))
    assert out.shape == (3, 2)


@pytest.mark.parametrize("in_axes, out_axes, shape", [
    (0, 0, (3, 2, 4)), (1, 0, (2, 3, 4)), (-1, 0, (4, 3, 2)), (0, 1, (2, 3, 4)), (0, -1, (2, 4, 3)),
    (1, -1, (3, 4, 2))],
    ids=str)
def test_axes_in_and_out(in_axes, out_axes, shape):
    x = tl.tensor(np.random.default_rng(0).uniform(size=(3, 2, 4)))
    out = tl.vmap(lambda v: v * 2, in_axes=in_axes, out_axes=out_axes)(x)
    expected = np.moveaxis(np.moveaxis(np.asarray(x) * 2, in_axes, 0), 0, out_axes)
    assert out.shape == shape and tl.same_bits(out, np.ascontiguousarray(expected))


@pytest.mark.parametrize("call, said", [
    (lambda: tl.vmap(lambda x: x, in_axes=3)(tl.ones(2)), "no axis 3"),
    (lambda: tl.vmap(lambda x: x, in_axes=(0, 0))(tl.ones(2)), "2 entries"),
    (lambda: tl.vmap(lambda x: x, in_axes={"z": 0})(tl.ones(2)), "in_axes names 'z'"),
    (lambda: tl.vmap(lambda x: x, in_axes=None)(tl.ones(2)), "axis_size"),
    (lambda: tl.vmap(lambda x: x, out_axes=None)(tl.ones(2)), "out_axes is None"),
    (lambda: tl.vmap(lambda x: x, out_axes=2)(tl.ones(2)), "no axis 2"),
    (lambda: tl.vmap(lambda x: x)(1.0), "no axis 0")], ids=range(7))
def test_wrong_axes_are_explained(call, said):
    with pytest.raises((errors.ArgumentError, errors.ShapeError), match=said):
        call()


def test_vmap_of_a_constant_and_of_trees():
    assert tl.vmap(lambda x: 1.0)(tl.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert tl.vmap(lambda x: (x, 2), out_axes=(0, None))(tl.ones(3))[1].shape == ()
    out = tl.vmap(lambda t: {"s": t["a"] + t["b"]}, in_axes=({"a": 0, "b": None},))({"a": tl.ones(3), "b": 2.0})
    assert out["s"].tolist() == [3.0] * 3
