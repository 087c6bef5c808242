"""Bad input gives a clear error or the right value, and leaves nothing behind; the text is asserted."""
import re

import numpy as np
import pytest

import tlgrad as tl
from tlgrad import errors

inf, nan = float("inf"), float("nan")
X = tl.ones(3)


def loss(w, x):
    return tl.sum(w * x)


def returns_none(x):
    tl.sin(x)


def endless(x):
    return endless(x) + 1


def endless_pair(x):
    return other(x)


def other(x):
    return endless_pair(x * 2)


EXPLAINED = [
    # shapes
    ("add shapes", lambda: tl.ones((2, 3)) + tl.ones((2,)), errors.ShapeError,
     r"add: the shapes \(2, 3\) and \(2,\) do not broadcast.*axis -1 has sizes 3 and 2.*test_bad_input\.py"),
    ("matmul shapes", lambda: tl.ones((2, 3)) @ tl.ones((4, 5)), errors.ShapeError, r"3.*4"),
    ("reshape", lambda: tl.reshape(tl.ones(6), (4, 2)), errors.ShapeError, r"6.*\(4, 2\)"),
    ("axis", lambda: tl.sum(tl.ones((2, 3)), axis=2), errors.ShapeError, r"axis 2 .* 2 axes"),
    ("concatenate", lambda: tl.concatenate([tl.ones((2, 3)), tl.ones((2, 4))], 0), errors.ShapeError,
     r"operand 1 is float64\[2,4\], operand 0 is float64\[2,3\]"),
    ("max of nothing", lambda: tl.max(tl.ones((0,))), errors.ShapeError, "empty.*no identity"),
    ("negative size", lambda: tl.zeros((-1,)), errors.ShapeError, "negative"),
    ("init", lambda: tl.ops.layout.reduce_sum.bind(X, tl.ones(2), axes=(0,), order="ordered"),
     errors.ShapeError,
     r"init= must be float64\[\], got float64\[2\]"),
    # dtypes
    ("text", lambda: tl.tensor("text"), errors.DTypeError, "not numbers of a known dtype"),
    ("ragged", lambda: tl.tensor([[1.0], [1.0, 2.0]]), errors.DTypeError, "ragged"),
    ("objects", lambda: tl.tensor([1.0, None]), errors.DTypeError, "not numbers"),
    ("operand", lambda: tl.sin("x"), errors.ArgumentError, "argument 0 of sin must be a tensor.*got str"),
    ("unknown dtype", lambda: tl.zeros(2, "float99"), errors.DTypeError, "'float99' is not a dtype"),
    ("bits of floats", lambda: tl.ones(2) & 1, errors.DTypeError, "and is not defined for float64"),
    ("condition", lambda: tl.where(tl.ones(2), 1.0, 2.0), errors.DTypeError, r"must be bool.*x != 0"),
    ("order of complex", lambda: tl.tensor(1j) < 2, errors.DTypeError, "lt is not defined for complex128"),
    ("bitcast", lambda: tl.bitcast(tl.ones(2), tl.int32), errors.DTypeError, "64 bits, int32 has 32"),
    ("negative power", lambda: tl.tensor([2, 3]) ** -1,
     (errors.DTypeError, ValueError), "negative integer powers"),
    # integers
    ("zero divisor", lambda: tl.tensor([5, 7]) // tl.tensor([1, 0]), errors.ZeroDivision,
     r"integer division by zero at entry \(1,\)"),
    ("zero modulus", lambda: tl.tensor([5, 7]) % 0,
     errors.ZeroDivision, "remainder: integer division by zero"),
    ("zero divisor in run", lambda: tl.run(lambda x, y: x // y)(tl.tensor([5]), 0),
     errors.ZeroDivision, "zero"),
    ("line of a compiled program", lambda: tl.run(lambda x, y: x // y)(tl.tensor([5]), 0),
     errors.ZeroDivision, r"\[test_bad_input\.py:\d+ \(<lambda>\): .*x // y"),
    ("place outside in run", lambda: tl.run(lambda x, k: x[k])(X, tl.tensor([0, 3])), errors.OutOfBoundsError,
     r"index 3 is out of bounds .*\[test_bad_input\.py:\d+ \(<lambda>\): .*x\[k\]"),
    ("negative power in run", lambda: tl.run(lambda x, y: x ** y)(tl.tensor([2, 3]), tl.tensor([1, -2])),
     errors.RangeError, r"negative integer powers.*tl\.convert\(x.*got -2 at entry \(1,\) \[test_bad_input"),
    ("quantile in run", lambda: tl.run(lambda x, q: tl.numpy.quantile(x, q))(X, 1.5),
     errors.RangeError, r"quantiles lie in 0\.\.1; got 1\.5 at"),
    ("derivative of a product outside", lambda: tl.run(tl.grad(lambda x, k: tl.sum(x.at[k].mul(2.0))))(
        X, tl.tensor([1, 3])), errors.OutOfBoundsError, "index 3 is out of bounds for axis 0 of size 3"),
    # differentiation
    ("integer", lambda: tl.grad(lambda x: x * x)(3),
     errors.DifferentiationError, r"argument 0 \('x'\) is int64"),
    ("vector result", lambda: tl.grad(lambda x: x * x)(X), errors.DifferentiationError,
     r"must have shape \(\), got float64\[3\].*tl\.sum.*tl\.jacrev"),
    ("two results", lambda: tl.grad(lambda x: (x, x))(1.0),
     errors.DifferentiationError, "one value, got 2.*has_aux"),
    ("integer result", lambda: tl.grad(lambda x: tl.argmax(x))(X),
     errors.DifferentiationError, "int64.* no derivative"),
    ("tangent shape", lambda: tl.jvp(loss, (X, X), (X, tl.ones(2))), errors.ShapeError,
     r"the tangent of argument 1 must have shape \(3,\), got \(2,\)"),
    ("tangent dtype", lambda: tl.jvp(loss, (X, X), (X, tl.ones(3, tl.float32))), errors.DTypeError,
     r"must be float64, got float32; write tl\.convert\(t, tl\.float64\)"),
    ("tangent count", lambda: tl.jvp(loss, (X, X), (X,)),
     errors.TreeError, r"expected entries \[0\], \[1\], got \[0\]"),
    ("tangents alone", lambda: tl.jvp(loss, X, X), errors.DTypeError, "primals and tangents are tuples"),
    ("seed shape", lambda: tl.vjp(loss, X, X)[1](X), errors.ShapeError, r"must have shape \(\), got \(3,\)"),
    ("seed tree", lambda: tl.vjp(loss, X, X)[1]((1.0,)),
     errors.TreeError, "cotangent differs from the result"),
    ("jacobian of integers", lambda: tl.jacfwd(lambda x: x)(tl.tensor([1])),
     errors.DifferentiationError, "pass floats"),
    # arguments
    ("static", lambda: tl.run(lambda x, n: x, static="n")(1.0, [1]), errors.ArgumentError,
     r"static argument 'n' must be hashable, got list: \[1\].*pass a tuple"),
    ("device", lambda: tl.run(loss, device="tpu"), errors.UnsupportedError, "device 'tpu' is not available"),
    ("order", lambda: tl.run(loss, order="random"),
     errors.ArgumentError, "one of ordered, fused, tree, free"),
    ("not callable", lambda: tl.run(3), errors.ArgumentError, "run takes a callable, got int"),
    # results
    ("None", lambda: tl.run(returns_none)(1.0),
     errors.OutputError, "returns_none.* returned None.*return statement"),
    ("None under grad", lambda: tl.grad(returns_none)(1.0), errors.OutputError, "lost its return statement"),
    ("None under vmap", lambda: tl.vmap(returns_none)(X), errors.OutputError, "lost its return statement"),
    ("a string", lambda: tl.run(lambda x: {"a": x, "b": "text"})(1.0),
     errors.OutputError, r"at \['b'\].*str"),
    ("a function", lambda: tl.grad(lambda x: abs)(1.0), errors.OutputError, "builtin_function|function"),
    # recursion
    ("endless", lambda: tl.run(endless)(1.0), errors.RecursionBudgetError, r"endless .*tl\.iterate.*tl\.map"),
    ("endless pair", lambda: tl.make_jaxpr(endless_pair)(1.0),
     errors.RecursionBudgetError, "recursed without end"),
    # tensors
    ("assignment", lambda: X.__setitem__(0, 1.0), errors.MutationError, r"x = x\.at\[0\]\.set\(v\)"),
    ("hash", lambda: {X: 1}, errors.MutationError, "not hashable"),
    ("truth", lambda: bool(X), errors.ConcretizationError, r"one entry.*shape \(3,\).*tl\.all"),
    ("length", lambda: len(tl.tensor(1.0)), errors.ConcretizationError, r"shape \(\) has no length"),
    ("iteration", lambda: list(tl.tensor(1.0)), errors.ConcretizationError, "cannot be iterated"),
    ("list of traced", lambda: tl.run(lambda x: tl.tensor([x, x]))(1.0),
     errors.ConcretizationError, r"tl\.stack"),
    ("attribute", lambda: tl.nonsense, AttributeError, "nonsense"),
]


@pytest.mark.parametrize("case", EXPLAINED, ids=lambda c: c[0])
def test_the_error_says_what_is_wrong(case):
    _, call, error, said = case
    with pytest.raises(error) as caught:
        call()
    assert re.search(said, str(caught.value), re.S), str(caught.value)


def test_endless_recursion_leaves_the_stack_usable():
    for _ in range(3):
        for transform in (tl.run, tl.grad, tl.vmap, tl.make_jaxpr):
            with pytest.raises(errors.RecursionBudgetError, match="endless"):
                transform(endless)(X if transform is tl.vmap else 1.0)
    assert float(tl.grad(lambda x: x * x)(3.0)) == 6.0


# ---- NaN and infinity propagate by IEEE ----

@pytest.mark.parametrize("x", [nan, inf, -inf, 0.0, -0.0], ids=str)
@pytest.mark.parametrize("name", ["sin", "exp", "log", "sqrt", "tanh", "logistic", "softplus", "asin", "acosh",
                                  "cbrt", "log1p", "expm1", "floor", "abs", "sign", "relu", "square",
                                  "reciprocal"])
def test_special_values_never_raise(name, x):
    f = getattr(tl, name)
    value = f(x)
    assert value.shape == () and tl.same_bits(tl.run(f)(x), value)
    for derivative in (tl.grad(lambda v: f(v) * 1.0), tl.run(tl.grad(lambda v: f(v) * 1.0))):
        assert derivative(x).shape == ()
    if x != x:
        assert np.isnan(float(value))


def test_nan_in_reductions_and_comparisons():
    x = tl.tensor([1.0, nan, -inf])
    assert np.isnan(float(tl.sum(x))) and np.isnan(float(tl.max(x))) and np.isnan(float(tl.min(x)))
    assert (x == x).tolist() == [True, False, True] and (x < 0).tolist() == [False, False, True]
    assert tl.sort(x).tolist()[:2] == [-inf, 1.0]
    assert int(tl.argmax(x)) == 1


# ---- nothing, and shapes of size 0 and () ----

@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)], ids=str)
def test_empty_arrays(shape):
    x = tl.zeros(shape)
    for f in (lambda x: tl.sum(tl.sin(x) * x), lambda x: tl.sum(tl.exp(x), axis=-1), tl.prod,
              lambda x: tl.cumsum(x, axis=0), lambda x: x @ tl.ones((shape[-1], 2)), lambda x: x.T * 2,
              lambda x: tl.reshape(x, (0, 1)), lambda x: tl.concatenate([x, x]),
              lambda x: tl.flip(x), lambda x: x[..., ::-1], lambda x: tl.sort(x), lambda x: x.at[...].add(1.0)):
        plain = f(x)
        assert tl.same_bits(tl.run(f)(x), plain)
        y, pull = tl.vjp(f, x)
        assert pull(tl.ones(y.shape))[0].shape == shape
        assert tl.jvp(f, (x,), (x,))[1].shape == plain.shape
    assert float(tl.sum(x)) == 0.0 and float(tl.prod(x)) == 1.0
    assert tl.vmap(lambda v: tl.sum(v))(x).shape == shape[:1]
    assert tl.grad(lambda x: tl.sum(x))(x).shape == shape


def test_scalars_of_shape_nothing():
    x = tl.tensor(2.0)
    assert tl.sum(x).shape == () and float(tl.sum(x)) == 2.0 and x[...].shape == () and x[None].shape == (1,)
    assert tl.jacfwd(lambda v: v * v)(x).shape == () and tl.hessian(lambda v: v ** 3)(x).shape == ()
    assert tl.vmap(lambda v: v)(x[None]).shape == (1,)
    assert float(np.asarray(x)) == 2.0 and x.item() == 2.0 and int(tl.tensor(3)) == 3


# ---- shapes that do not fit in memory ----

def test_huge_shapes_in_eval_shape():
    def model(x, w):
        return tl.sum(tl.tanh(x @ w), axis=0), tl.transpose(x)[:2], tl.grad(lambda v: tl.sum(v * v))(x)
    s, t, g = tl.eval_shape(model, tl.aval((2 ** 31, 64), tl.float32), tl.aval((64, 3), tl.float32))
    assert (s.shape, t.shape, g.shape) == ((3,), (2, 2 ** 31), (2 ** 31, 64)) and s.dtype is tl.float32
    big = tl.eval_shape(lambda x: tl.broadcast_to(x, (2 ** 20, 2 ** 20)) + 1, tl.aval((), tl.float64))
    assert big.size == 2 ** 40
    assert tl.make_jaxpr(lambda x: x + x)(tl.aval((2 ** 31,), tl.int8)).out_avals[0].size == 2 ** 31


# ---- integers follow NumPy (C056) ----

def test_c056_integers():
    i16, i32 = (lambda v: tl.tensor(v, tl.int16)), (lambda v: tl.tensor(v, tl.int32))
    assert int(i16(222) * i16(222)) == -16252
    assert int(i32(-2 ** 31) // i32(-1)) == -2 ** 31 and int(i32(-2 ** 31) % i32(-1)) == 0
    assert int(tl.tensor(-7) // 2) == -4 and int(tl.tensor(-7) % 3) == 2
    assert int(tl.tensor(0) ** tl.tensor(0)) == 1
    for f in (lambda x, y: x * y, lambda x, y: x // y, lambda x, y: x % y):
        assert tl.same_bits(tl.run(f)(i16(222), i16(-7)), f(i16(222), i16(-7)))


# ---- the order of sums (C055), precision follows the inputs (C058), narrow accumulation (C060) ----

def test_c055_sums_run_in_index_order():
    x = tl.tensor([1, 1e100, 1, -1e100])
    for total in (tl.sum, tl.run(tl.sum)):
        assert float(total(x)) == 0.0 and float(total(x[::-1])) == 1.0


def test_c058_dtypes_follow_the_inputs():
    assert tl.ones(2, tl.float64).dtype is tl.float64 and tl.mean(tl.ones(2)).dtype is tl.float64
    assert tl.mean(tl.ones(2, tl.float32)).dtype is tl.float32

    def f(x):
        return (1 - tl.cos(x)) / x ** 2
    assert float(f(tl.tensor(1e-8))) == 0.0 and float(f(tl.tensor(1e-8, tl.float32))) == 0.0


def test_c060_narrow_means():
    assert float(tl.mean(tl.tensor(np.full(4096, 60.0, np.float16)))) == 60.0
    assert float(tl.mean(tl.tensor(np.full(3, 60000.0, np.float16)))) == 60000.0
    assert int(tl.sum(tl.tensor([65535, 1], tl.uint16))) == 65536


def test_c053_no_contraction():
    a, b, x = (tl.tensor(np.float32(v)) for v in (1e20, -1e20, 1e10))
    assert float(tl.run(lambda a, b, x: a * x + b * x)(a, b, x)) == 0.0
    assert float(tl.run(lambda a, b: a * b - a * b)(0.1, 0.3)) == 0.0
    assert float(tl.run(lambda a, b: tl.fma(a, b, -(a * b)))(0.1, 0.3)) == 1.6653345369377347e-18
    assert float(tl.run(lambda a, b: tl.fma(a, b, -(a * b)))(0.1, 0.1)) == -8.326672684688674e-19
