"""A primitive is one expression: nothing else has to be written for any transform or device."""
import math

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.core.aval import make_aval
from tlgrad.core.primitive import PRIMITIVES, Primitive
from tlgrad.ops import meaning
from tlgrad.ops.arithmetic import neg, sub
from tlgrad.ops.define import elementwise, linear, mul

X = tl.tensor([0.3, -0.2, 1.7])


@pytest.fixture
def forget():
    before = set(PRIMITIVES)
    yield
    for name in set(PRIMITIVES) - before:
        del PRIMITIVES[name]
        meaning.INTRINSICS.pop(name, None)


def _everywhere(f, x, expected):
    """Values and derivatives of every kind, eager, compiled, mapped, recorded."""
    np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=1e-15)
    assert tl.same_bits(tl.run(f)(x), f(x))
    tl.testing.check_grads(f, (x,), order=3)
    stacked = tl.stack([x, x * 2])
    assert tl.same_bits(tl.vmap(f)(stacked)[1], f(x * 2))
    assert tl.same_bits(tl.run(tl.vmap(f))(stacked)[1], f(x * 2))
    total = tl.grad(lambda v: tl.sum(f(v)))
    assert tl.same_bits(tl.run(total)(x), total(x))
    assert tl.same_bits(tl.record(lambda v: tl.sum(f(v)))(x).backward(), total(x))


def test_an_elementwise_function(forget):
    sinpi_like = elementwise("sine_of_pi", "sin(pi x).", [lambda y, x: mul(math.pi, sinpi_like(sub(0.5, x)))],
                             impl=lambda x: np.sin(math.pi * x).astype(x.dtype))
    _everywhere(sinpi_like, X, np.sin(math.pi * np.asarray(X)))
    assert sinpi_like(tl.tensor([0.5], tl.bfloat16)).dtype is tl.bfloat16
    assert sinpi_like(tl.tensor([0.5], tl.float32)).dtype is tl.float32
    assert "sin(pi x)" in sinpi_like.__doc__ and float(sinpi_like(0.5)) == 1.0


def test_a_linear_function(forget):
    shifted = linear("shift_by_one", "x, moved on by one place, 0 first.",
                     impl=lambda x, *, back: np.concatenate([x[1:], 0 * x[:1]] if back else [0 * x[:1], x[:-1]]),
                     abstract=lambda x, *, back: x,
                     transpose=lambda ct, x, *, back: [shifted.bind(ct, back=not back)],
                     batch=lambda args, axes, size, *, back: (tl.stack(
                         [shifted.bind(tl.take(args[0], k, axis=axes[0]), back=back) for k in range(size)]), 0))
    _everywhere(lambda x: shifted.bind(x, back=False) * x, X, [0, 0.3 * -0.2, -0.2 * 1.7])


def test_a_primitive_from_its_slots(forget):
    def jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return mirrored.bind(x), neg(x_dot)
    mirrored = Primitive("mirrored", impl=np.negative, jvp=jvp,
                         abstract=lambda x: make_aval(x.shape, x.dtype, x.weak), batch=lambda args, axes, size:
                         (mirrored.bind(*args), axes[0]), kind="elementwise")
    _everywhere(lambda x: mirrored.bind(x) * x, X, -np.asarray(X) ** 2)
