"""Rows of the primitives that move, compare, choose and reduce: compared by words.

References are plain loops, or NumPy operations whose result is exact.
"""
import math

import numpy as np

from opspec import Calls, Words

import tlgrad as tl
from tlgrad.control.call import call
from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.tensor import tensor
from tlgrad.ops.arithmetic import mul
from tlgrad.ops.elementary import sin
from tlgrad.transforms.stage import Constant, stage

inf, nan = math.inf, math.nan


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape)


A, B, C = numbers(3, 4), numbers(3, 4, seed=1), numbers(2, 3, 4, seed=2)
V = numbers(5, seed=3)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, inf, -inf, nan])
LEFT, RIGHT = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
INTS = np.array([0, 1, -1, 5, -7, 127, -128], np.int8)
INT_X, INT_Y = (x.ravel() for x in np.meshgrid(INTS, INTS))
BOOL_X, BOOL_Y = np.array([True, True, False, False]), np.array([True, False, True, False])
COMPLEX = np.array([1 + 2j, -0.5j, 3.0, -1 - 1j])


def left_to_right(x, axes=(0,), start=0.0, combine=lambda a, t: a + t):
    """A fold over `axes` in row-major order, one NumPy scalar after the other."""
    rest = [k for k in range(x.ndim) if k not in axes]
    moved = np.transpose(x, (*rest, *axes))
    out = np.empty([x.shape[k] for k in rest], x.dtype)
    for place in np.ndindex(out.shape):
        acc = x.dtype.type(start)
        for term in moved[place].ravel():
            acc = combine(acc, term)
        out[place] = acc
    return out


def prefixes(x, axis, combine, start):
    out = x.copy()
    for place in np.ndindex(*[1 if k == axis else n for k, n in enumerate(x.shape)]):
        acc = start
        for i in range(x.shape[axis]):
            where = (*place[:axis], i, *place[axis + 1:])
            acc = out[where] = combine(acc, x[where])
    return out


def fused(x, y):
    """fma from the left, exactly rounded by Fractions."""
    from fractions import Fraction
    out = np.zeros((x.shape[0], y.shape[1]))
    for i, j in np.ndindex(out.shape):
        acc = 0.0
        for k in range(x.shape[1]):
            acc = float(Fraction(float(x[i, k])) * Fraction(float(y[k, j])) + Fraction(acc))
        out[i, j] = acc
    return out


def tree_sum(x):
    """Leaves of 128 terms from the left, then neighbours pairwise."""
    level = [float(left_to_right(x[k:k + 128])) for k in range(0, len(x), 128)]
    while len(level) > 1:
        pairs = [a + b for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[len(level) // 2 * 2:]
    return np.float64(level[0])


def product_loop(x, y, start=0.0):
    out = np.empty((x.shape[0], y.shape[1]))
    for i, j in np.ndindex(out.shape):
        acc = start if np.isscalar(start) else start[i, j]
        for k in range(x.shape[1]):
            acc = acc + x[i, k] * y[k, j]
        out[i, j] = acc
    return out


def one_by_one(x, places, updates, combine):
    out = x.copy()
    for p, u in zip(places, updates):
        out[tuple(p)] = combine(out[tuple(p)], u)
    return out


def _compare(name, f):
    return Words(name, (((LEFT, RIGHT), {}, f), ((INT_X, INT_Y), {}, f), ((BOOL_X, BOOL_Y), {}, f)), 0)


def _bits(name, f):
    return Words(name, (((INT_X, INT_Y), {}, f), ((BOOL_X, BOOL_Y), {}, f)), 0)


def _shift(x, n, left):
    """By Python integers, wrapped to int8."""
    def one(a, k):
        k = k % 256                                     # the amount is unsigned
        full = int(a) << k if left else int(a) >> k
        return (full + 128) % 256 - 128
    return np.array([one(int(a), int(k)) for a, k in zip(x, n)], np.int8)


P_MATMUL = dict(contract=((1,), (0,)), batch=((), ()))
INDEX = np.array([[0, 1], [2, 3], [0, 1]])
BOUNDS = np.array([[2], [0]])

COMPARISONS = [
    _compare("eq", np.equal), _compare("ne", np.not_equal), _compare("lt", np.less),
    _compare("le", np.less_equal), _compare("gt", np.greater), _compare("ge", np.greater_equal),
    Words("is_finite", (((SPECIAL,), {}, lambda x: np.abs(x) < inf),), 0),
    Words("is_nan", (((SPECIAL,), {}, lambda x: x != x),), 0),
    _bits("and", np.bitwise_and), _bits("or", np.bitwise_or), _bits("xor", np.bitwise_xor),
    Words("not", (((INTS,), {}, np.invert), ((BOOL_X,), {}, np.invert)), 0),
    Words("shift_left", (((INT_X, INT_Y), {}, lambda x, n: _shift(x, n, True)),), 0),
    Words("shift_right", (((INT_X, INT_Y), {}, lambda x, n: _shift(x, n, False)),), 0),
    Words("nextafter", (((f := numbers(6), f + 1), {},
                         lambda x, y: np.array([math.nextafter(a, b) for a, b in zip(x, y)])),), 0),
    Words("select", (((A > 0, A, B), {}, np.where),
                     ((np.array(True), A, B), {}, lambda w, x, y: x),
                     ((A > 0, np.array(2.0), B), {}, np.where))),
]

COMPLEX_PARTS = [
    Words("real", (((COMPLEX,), {}, lambda z: z.real.copy()), ((A,), {}, lambda x: x))),
    Words("imag", (((COMPLEX,), {}, lambda z: z.imag.copy()), ((A,), {}, lambda x: np.zeros_like(x)))),
    Words("conj", (((COMPLEX,), {}, np.conjugate), ((A,), {}, lambda x: x))),
    Words("complex", (((A, B), {}, lambda x, y: x + 1j * y),)),
    Words("direction", (((A, np.array(2.0)), {}, lambda x, r: x / r),
                        ((COMPLEX, np.abs(COMPLEX)), {}, lambda x, r: x / r))),
]

SHAPES = [
    Words("broadcast", (((A,), dict(shape=(2, 3, 4), axes=(1, 2)), lambda x: np.stack([x, x])),
                        ((V[:1],), dict(shape=(3, 2), axes=(0,)), lambda x: np.full((3, 2), x[0])),
                        ((np.array(2.5),), dict(shape=(0, 2), axes=()), lambda x: np.zeros((0, 2))))),
    Words("reshape", (((C,), dict(shape=(4, 6)), lambda x: x.reshape(4, 6)),)),
    Words("transpose", (((C,), dict(perm=(2, 0, 1)), lambda x: np.transpose(x, (2, 0, 1))),)),
    Words("reverse", (((C,), dict(axes=(0, 2)), lambda x: x[::-1, :, ::-1]),)),
    Words("slice", (((C,), dict(starts=(0, 1, 0), limits=(2, 3, 4), strides=(1, 1, 3)), lambda x: x[:, 1:3, ::3]),
                    ((A,), dict(starts=(1, 2), limits=(1, 4), strides=(1, 1)), lambda x: x[1:1, 2:4]))),
    Words("pad", (((V, np.array(9.0)), dict(low=(1,), high=(2,), interior=(1,)),
                   lambda x, v: np.array([9, x[0], 9, x[1], 9, x[2], 9, x[3], 9, x[4], 9, 9])),
                  ((A, np.array(0.0)), dict(low=(0, 1), high=(1, 0), interior=(0, 0)),
                   lambda x, v: np.pad(x, ((0, 1), (1, 0)))))),
    Words("concatenate", (((A, B, A[:, :1]), dict(axis=1), lambda *xs: np.concatenate(xs, 1)),)),
    Words("iota", (((), dict(shape=(2, 3), axis=1, dtype=dtypes.float32),
                    lambda: np.float32([[0, 1, 2], [0, 1, 2]])),), 0),
    Words("convert", (((A,), dict(dtype=dtypes.float32, weak=False), lambda x: x.astype(np.float32)),
                      ((A.astype(np.float32),), dict(dtype=dtypes.float64, weak=False), np.float64),
                      ((COMPLEX,), dict(dtype=dtypes.complex64, weak=False), lambda x: x.astype(np.complex64)),
                      ((A,), dict(dtype=dtypes.complex128, weak=False), lambda x: x.astype(np.complex128))), 1),
    Words("bitcast", (((A,), dict(dtype=dtypes.uint64), lambda x: x.view(np.uint64)),
                      ((INTS,), dict(dtype=dtypes.uint8), lambda x: x.view(np.uint8))), 0),
]

PLACES = [
    Words("gather", (((A, INDEX), dict(axes=(0, 1)), lambda x, i: x[i[:, 0], i[:, 1]]),
                     ((C, BOUNDS), dict(axes=(1,)), lambda x, i: np.stack([x[:, 2], x[:, 0]])))),
    Words("scatter", (((A, INDEX, V[:3]), dict(axes=(0, 1), mode="set"),
                       lambda x, i, u: one_by_one(x, i, u, lambda old, new: new)),
                      ((A, INDEX, V[:3]), dict(axes=(0, 1), mode="add"),
                       lambda x, i, u: one_by_one(x, i, u, lambda old, new: old + new)),
                      ((A, INDEX[:2], V[:2]), dict(axes=(0, 1), mode="mul"),
                       lambda x, i, u: one_by_one(x, i, u, lambda old, new: old * new)),
                      ((A, INDEX[:2], V[:2]), dict(axes=(0, 1), mode="min"),
                       lambda x, i, u: one_by_one(x, i, u, min)),
                      ((A, INDEX[:2], V[:2]), dict(axes=(0, 1), mode="max"),
                       lambda x, i, u: one_by_one(x, i, u, max)))),
    Words("distinct", (((INDEX[:2],), dict(shape=(3, 4)), lambda i: i),), 0),
    Words("dynamic_slice", (((A, np.array(1), np.array(2)), dict(sizes=(2, 2)), lambda x, i, j: x[1:3, 2:4]),)),
    Words("dynamic_update_slice", (((A, B[:2, :2], np.array(1), np.array(0)), {},
                                    lambda x, u, i, j: np.vstack([x[:1], np.hstack([u, x[1:, 2:]])])),)),
    Words("argsort", (((np.array([2.0, nan, -0.0, 0.0, -1.0, 2.0, -inf]),), dict(axis=0),
                       lambda x: np.array([6, 4, 2, 3, 0, 5, 1])),
                      ((A,), dict(axis=1), lambda x: np.argsort(x, 1, kind="stable"))), 0),
    Words("argmax", (((np.array([1.0, 3.0, 3.0, 2.0]),), dict(axis=0), lambda x: np.int64(1)),
                     ((np.array([1.0, nan, 3.0]),), dict(axis=0), lambda x: np.int64(1)),
                     ((A,), dict(axis=1), lambda x: np.argmax(x, 1))), 0),
    Words("argmin", (((np.array([1.0, 0.0, -0.0, 2.0]),), dict(axis=0), lambda x: np.int64(1)),
                     ((A,), dict(axis=0), lambda x: np.argmin(x, 0))), 0),
]

LONG = numbers(300, seed=7) * 10.0 ** np.arange(-3, 3, 0.02)

REDUCTIONS = [
    Words("reduce_sum", (((C,), dict(axes=(0, 2), order="ordered"), lambda x: left_to_right(x, (0, 2))),
                         ((LONG,), dict(axes=(0,), order="ordered"), left_to_right),
                         ((LONG,), dict(axes=(0,), order="fused"), left_to_right),
                         ((LONG,), dict(axes=(0,), order="tree"), tree_sum),
                         ((LONG, np.array(0.1)), dict(axes=(0,), order="ordered"),
                          lambda x, init: left_to_right(x, start=0.1)),
                         ((np.array([-0.0, -0.0]),), dict(axes=(0,), order="ordered"), lambda x: np.float64(0.0)),
                         ((np.zeros((2, 0)),), dict(axes=(1,), order="ordered"), lambda x: np.zeros(2)))),
    Words("reduce_prod", (((C,), dict(axes=(0, 2)), lambda x: left_to_right(x, (0, 2), 1.0, lambda a, t: a * t)),
                          ((np.array([0.0, 2.0, 0.0]),), dict(axes=(0,)), lambda x: np.float64(0.0)),
                          ((np.zeros((2, 0)),), dict(axes=(1,)), lambda x: np.ones(2)))),
    Words("reduce_max", (((C,), dict(axes=(0, 2)), lambda x: np.max(x, (0, 2))),)),
    Words("reduce_min", (((C,), dict(axes=(0, 2)), lambda x: np.min(x, (0, 2))),)),
    Words("reduce_any", (((A > 1,), dict(axes=(1,)), lambda x: np.any(x, 1)),
                         ((np.zeros((2, 0), bool),), dict(axes=(1,)), lambda x: np.zeros(2, bool))), 0),
    Words("reduce_all", (((A > -1,), dict(axes=(0,)), lambda x: np.all(x, 0)),
                         ((np.zeros((2, 0), bool),), dict(axes=(1,)), lambda x: np.ones(2, bool))), 0),
    Words("cumsum", (((C,), dict(axis=1, reverse=False), lambda x: prefixes(x, 1, lambda a, t: a + t, 0.0)),
                     ((V,), dict(axis=0, reverse=True),
                      lambda x: prefixes(x[::-1], 0, lambda a, t: a + t, 0.0)[::-1]))),
    Words("cumprod", (((C,), dict(axis=1), lambda x: prefixes(x, 1, lambda a, t: a * t, 1.0)),
                      ((np.array([2.0, 0.0, 3.0, 0.0]),), dict(axis=0), lambda x: np.array([2.0, 0, 0, 0])))),
    Words("dot_general", (((A, B.T.copy()), dict(order="ordered", **P_MATMUL), product_loop),
                          ((A, B.T.copy()), dict(order="fused", **P_MATMUL), fused),
                          ((A, B.T.copy()), dict(order="tree", **P_MATMUL), product_loop),
                          ((A, B.T.copy(), numbers(3, 3)), dict(order="ordered", **P_MATMUL), product_loop),
                          ((C, C), dict(order="ordered", contract=((2, 1), (2, 1)), batch=((0,), (0,))),
                           lambda x, y: left_to_right(np.transpose(x * y, (0, 2, 1)), (1, 2))))),
]

_square_and_sine, _ = stage(lambda x, y: [mul(x, y), sin(x)], [make_aval((3,), dtypes.float64)] * 2)
_MATMUL = dict(labels=((0, 1), (1, 2)), out=(0, 2), summed=(1,), order="ordered")
_THREE = dict(labels=((0,), (0, 1), (1,)), out=(), summed=(0, 1), order="ordered")


def _three_loop(x, m, y):
    acc = 0.0
    for i, j in np.ndindex(m.shape):
        acc = acc + x[i] * m[i, j] * y[j]
    return np.float64(acc)


def _norm_loop(x):
    return np.sqrt(left_to_right(x * x, (0, 1)))


MORE_REDUCTIONS = [
    Words("contract", (((A, B.T.copy()), _MATMUL, product_loop), ((V[:3], A, V[1:]), _THREE, _three_loop))),
    Words("norm", (((A,), dict(axes=(0, 1), divisor=1.0, order="ordered"), _norm_loop),
                   ((A,), dict(axes=(0, 1), divisor=12.0, order="ordered"),
                    lambda x: np.sqrt(left_to_right(x * x, (0, 1)) / 12.0)))),
    Words("stop_gradient", (((A,), {}, lambda x: x),), 0),
    Words("within", (((abs(A),), dict(low=0.0, high=100.0, what="sizes are small"), lambda x: x),), 2),
]


def _cube_or_sine(x):
    return tl.cond(x > 0, lambda v: v * v * v, lambda v: tl.sin(v) * 3, x)


def _fold(x, y):
    return tl.iterate(lambda s: s * x + y, 4, x)


def _running(x):
    last, each = tl.scan(lambda c, v: (c * v + 1, c * c), x[0], x)
    return last, each


def _until_large(x):
    return tl.while_loop(lambda s: s < 50, lambda s: s * s + x, x)


def _fold_loop(x, y):
    s = x
    for _ in range(4):
        s = s * x + y
    return s


def _running_loop(x):
    c, each = x[0], []
    for v in x:
        each.append(c * c)
        c = c * v + 1
    return [c, np.array(each)]


def _until_large_loop(x):
    s = x
    while s < 50:
        s = s * s + x
    return np.float64(s)


@tl.custom_jvp
def _rounded(x):
    return x * x


@_rounded.defjvp
def _rounded_rule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return _rounded(x), 2 * x * x_dot


@tl.custom_vjp
def _scaled(x):
    return x * x * 3


_scaled.defvjp(lambda x: (_scaled(x), x), lambda x, ct: (6 * x * ct,))


def _sine_squared(x):
    y = tl.sin(x)
    return y * y


def _sine_squared_loop(x):
    y = np.float64(sin(x))
    return y * y


PROGRAMS = [
    Words("checked", (((V, np.float64(1e-9), np.int64(3)), dict(tolerance=1e9, what="f"), lambda z, r, n: z),)),
    Calls("checkpoint", ((tl.run(tl.checkpoint(_sine_squared)), (np.float64(0.7),), _sine_squared_loop),)),
    Calls("custom", ((tl.run(_rounded), (V,), lambda x: x * x), (tl.run(_scaled), (V,), lambda x: x * x * 3))),
    Calls("pullback", ((tl.run(lambda x, v: tl.jvp(_scaled, (x,), (v,))[1]), (V, V[::-1].copy()),
                        lambda x, v: 6 * x * v),), 1),
    Words("constant", (((), dict(value=Constant(tensor(V))), lambda: V),), 0),
    Calls("call", ((lambda x, y: call.bind(x, y, jaxpr=_square_and_sine, name="f", order="ordered", device="cpu"),
                    (V[:3], V[2:]), lambda x, y: [x * y, np.array([float(sin(v)) for v in x])]),)),
    Calls("cond", ((tl.run(_cube_or_sine), (np.float64(1.5),), lambda x: x * x * x),
                   (tl.run(_cube_or_sine), (np.float64(-0.5),), lambda x: np.float64(sin(x)) * 3))),
    Calls("sweeps", ((tl.run(_fold), (np.float64(0.7), np.float64(0.3)), _fold_loop),
                     (tl.run(_running), (V,), _running_loop))),
    Calls("while", ((tl.run(_until_large), (np.float64(1.3),), _until_large_loop),)),
]

ROWS = [*COMPARISONS, *COMPLEX_PARTS, *SHAPES, *PLACES, *REDUCTIONS, *MORE_REDUCTIONS, *PROGRAMS]
