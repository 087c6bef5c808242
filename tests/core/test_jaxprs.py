"""Jaxprs: golden texts, the type checker, and rules that are wrong on purpose."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad import errors
from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.jaxpr import (Eqn, Jaxpr, Literal, Var, check_jaxpr, count_eqns, dce, eval_jaxpr, evaluate_arrays,
                               inline_eqns)
from tlgrad.core.primitive import PRIMITIVES, Primitive
from tlgrad.ops.arithmetic import add, mul
from tlgrad.transforms.partial_eval import linearize_flat
from tlgrad.transforms.stage import stage

F3 = make_aval((3,), dtypes.float64)
X = tl.tensor([1.0, 2.0, 3.0])
W = tl.tensor([[0.5, 0.25, 0.125]])


def square(x):
    return x * x + 1


def sine_squared(x):
    s = tl.sin(x)
    return s * s


def blend(left, right):
    quarter = 0.25
    return left * (1 - quarter) + right * quarter


def affine(x):
    return W @ x + 1.0


def branch(x):
    return tl.cond(x > 0, lambda v: v * 2, lambda v: -v, x)


def fold(x, n):
    return tl.iterate(lambda s: s * s + x, n, x)


GOLDEN = {
    "square": (square, (2.0,)), "sine_squared": (sine_squared, (X,)), "blend": (blend, (X, X)),
    "captured": (affine, (X,)), "grad_square": (tl.grad(square), (2.0,)), "cond": (branch, (2.0,)),
    "iterate": (fold, (2.0, 3)), "nested_run": (lambda x: tl.run(square)(x) * 2, (X,)),
    "vmap": (tl.vmap(sine_squared), (W,)), "jvp": (lambda x: tl.jvp(sine_squared, (x,), (x,)), (X,)),
    "indexing": (lambda x: x.at[1:].add(x[0])[::-1], (X,)), "mixed_dtypes": (lambda x, n: x * n, (X, 2))}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_text(name, golden):
    f, args = GOLDEN[name]
    text = str(tl.make_jaxpr(f)(*args))
    assert text == str(tl.make_jaxpr(f)(*args)), "the text is deterministic"
    golden("jaxpr_" + name, text)


def test_c087_the_user_names_are_kept():
    text = str(tl.make_jaxpr(sine_squared)(X))
    assert "s:float64[3] = sin x" in text and "mul s s" in text


@pytest.mark.parametrize("name", GOLDEN)
def test_evaluating_the_jaxpr_gives_the_words(name):
    f, args = GOLDEN[name]
    closed = tl.make_jaxpr(f)(*args)
    expected = map(tl.tensor, tl.tree.leaves(f(*args)))
    assert all(tl.same_bits(tl.convert(a, e.dtype), e) for a, e in zip(closed(*args), expected))


# ---- the type checker ----

def _jaxpr(eqns, ins, outs):
    return Jaxpr(ins, eqns, outs)


def _bad_programs():
    x, y, z = Var(F3, "x"), Var(F3, "y"), Var(F3)
    scalar, ints = Var(make_aval((), dtypes.float64)), Var(make_aval((3,), dtypes.int64))
    two = Literal(tl.tensor(2.0))
    return {
        "unbound": (_jaxpr([Eqn(mul, [x, y], {}, [z])], [x], [z]), "used in mul before"),
        "bound twice": (_jaxpr([Eqn(mul, [x, x], {}, [y]), Eqn(add, [x, y], {}, [y])], [x], [y]),
                        "is bound twice"),
        "input twice": (_jaxpr([], [x, x], [x]), "is bound twice"),
        "wrong shape": (_jaxpr([Eqn(mul, [x, two], {}, [scalar])], [x], [scalar]), "mul has results"),
        "wrong dtype": (_jaxpr([Eqn(mul, [x, x], {}, [ints])], [x], [ints]), "mul has results"),
        "unbound result": (_jaxpr([], [x], [y]), "used in the results before it is bound"),
        "not an atom": (_jaxpr([Eqn(mul, [x, 3.0], {}, [y])], [x], [y]), "is not an atom")}


@pytest.mark.parametrize("name", _bad_programs())
def test_ill_typed_programs_are_refused(name):
    jaxpr, said = _bad_programs()[name]
    with pytest.raises(errors.JaxprTypeError, match=f"a pass produced an ill-typed jaxpr.*{said}"):
        check_jaxpr(jaxpr, "a pass")


@pytest.fixture
def broken():
    """A way to define primitives with a wrong rule; they are forgotten afterwards."""
    made = []

    def make(name, **rules):
        prim = Primitive(name, **{"impl": lambda x: x * 2, "abstract": lambda x: x, **rules})
        made.append(name)
        return prim
    yield make
    for name in made:
        del PRIMITIVES[name]


def _linear(prim):
    return lambda primals, tangents: (prim.bind(*primals), prim.bind(*tangents))


def test_a_wrong_transpose_shape_is_caught(broken):
    p = broken("double_sum", transpose=lambda ct, x: [tl.sum(ct)])
    p.jvp = _linear(p)
    said = r"a transpose rule gave a cotangent float64\[\].* for float64\[3\]"
    with pytest.raises(errors.JaxprTypeError, match=said):
        tl.grad(lambda x: tl.sum(p.bind(x)))(X)


def test_a_wrong_jvp_is_caught_by_check_grads(broken):
    p = broken("double_wrong", transpose=lambda ct, x: [p.bind(ct)])
    p.jvp = lambda primals, tangents: (p.bind(*primals), tangents[0] * 3)
    with pytest.raises(errors.GradientError, match="forward derivative of result 0"):
        tl.testing.check_grads(lambda x: p.bind(x), (X,), order=1)


def test_a_wrong_transpose_is_caught_by_check_grads(broken):
    p = broken("double_backwards", transpose=lambda ct, x: [ct])
    p.jvp = _linear(p)
    with pytest.raises(errors.GradientError, match=r"<c, J v> is"):
        tl.testing.check_grads(lambda x: p.bind(x), (X,), order=1)


def test_a_wrong_second_derivative_is_caught(broken):
    p = broken("square_frozen", impl=lambda x: x * x)
    p.jvp = lambda primals, tangents: (p.bind(*primals), tl.stop_gradient(2 * primals[0]) * tangents[0])
    tl.testing.check_grads(lambda x: p.bind(x), (X,), order=1)
    with pytest.raises(errors.GradientError, match="jvp of"):
        tl.testing.check_grads(lambda x: p.bind(x), (X,), order=2)


def test_missing_rules_are_explained(broken):
    p = broken("bare")
    with pytest.raises(errors.DifferentiationError, match="bare has no derivative: no rule is defined"):
        tl.grad(lambda x: tl.sum(p.bind(x)))(X)
    with pytest.raises(errors.UnsupportedError, match="bare has no batching rule"):
        tl.vmap(lambda x: p.bind(x))(X)
    p.nondiff = "it is a table look-up"
    with pytest.raises(errors.DifferentiationError, match="bare has no derivative: it is a table look-up"):
        tl.jvp(lambda x: p.bind(x), (X,), (X,))
    p.jvp = _linear(p)
    with pytest.raises(errors.DifferentiationError, match="bare is not linear, so it has no transpose"):
        tl.grad(lambda x: tl.sum(p.bind(x)))(X)


def test_a_name_is_used_once():
    with pytest.raises(ValueError, match="primitive mul is defined twice"):
        Primitive("mul", impl=None, abstract=None)


# ---- rewrites ----

def test_dce_keeps_what_is_needed():
    jaxpr, _ = stage(lambda x, y: [x * y, tl.sin(x), tl.exp(y)], [F3, F3])
    smaller, used = dce(jaxpr, [False, True, False])
    assert [e.prim.name for e in smaller.eqns] == ["sin"] and used == [True, False]
    assert tl.same_bits(eval_jaxpr(check_jaxpr(smaller), [X])[0], tl.sin(X))


def test_inlining_renames():
    jaxpr, _ = stage(lambda x: [tl.sin(x) * 2], [F3])
    x = Var(F3)
    once, (a,) = inline_eqns(jaxpr, [x])
    twice, (b,) = inline_eqns(jaxpr, [a])
    whole = check_jaxpr(Jaxpr([x], [*once, *twice], [b]))
    assert tl.same_bits(evaluate_arrays(whole, [X.data])[0], tl.sin(tl.sin(X) * 2) * 2)
    assert count_eqns(whole) == 4


def test_a_linear_program_is_linear():
    """What linearize stages has no equation that multiplies two of its unknowns."""
    (y,), lin = linearize_flat(lambda x: [tl.sum(tl.sin(x) * x * x)], [X])
    v, w = tl.tensor([1.0, 0.0, 2.0]), tl.tensor([0.5, 3.0, 1.0])
    sum_of = lin(v + w)[0]
    np.testing.assert_allclose(float(sum_of), float(lin(v)[0]) + float(lin(w)[0]), rtol=1e-14)
    assert float(lin(v * 2)[0]) == 2 * float(lin(v)[0])


def test_captured_arrays_are_inputs_not_text():
    big = tl.tensor(np.random.default_rng(0).uniform(size=(100, 100)))
    closed = tl.make_jaxpr(lambda x: tl.sum(big @ x))(tl.ones(100))
    assert len(closed.consts) == 1 and closed.consts[0] is big
    assert len(str(closed)) < 1000


def test_weak_numbers_do_not_recompile_or_widen():
    f = tl.run(lambda x, k: x * k)
    assert f(tl.ones(2, tl.float32), 2.5).dtype is tl.float32
    before = tl.cache_info().traces
    f(tl.ones(2, tl.float32), 7.5)
    assert tl.cache_info().traces == before
