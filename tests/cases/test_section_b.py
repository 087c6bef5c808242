"""Nesting, complex numbers, control flow, mutation: section B of the shared cases; ids name the case."""
import itertools
import math

import numpy as np
import pytest
from everywhere import gradient

import tlgrad as tl
from tlgrad import errors


# ---- C023: perturbation confusion, in all four mode pairs ----

def forward(f):
    return lambda x: tl.jvp(f, (x,), (1.0,))[1]


MODES = {"fwd": forward, "rev": tl.grad, "lin": lambda f: lambda x: tl.linearize(f, x)[1](1.0)}
PAIRS = list(itertools.product(MODES, MODES))
CONFUSING = {
    "sum": (lambda outer, inner: outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0), 1.0),
    "product": (lambda outer, inner: outer(lambda x: x * inner(lambda y: x * y)(1.0))(4.0), 8.0),
    "second": (lambda outer, inner: outer(inner(lambda x: x ** 3))(2.0), 12.0),
    "point": (lambda outer, inner: outer(lambda x: x * inner(lambda y: y ** 2)(x))(1.0), 4.0),
    "closure": (lambda outer, inner: outer(lambda x: inner(lambda y: x * y * y)(x) * x)(3.0), 54.0),
    "inner discards": (lambda outer, inner: outer(lambda x: inner(lambda y: x * x)(2.0) + x)(3.0), 1.0),
}


@pytest.mark.parametrize("name", CONFUSING, ids=lambda n: f"C023-{n}")
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: " over ".join(p))
def test_perturbations_stay_apart(pair, name):
    program, right = CONFUSING[name]
    outer, inner = (MODES[m] for m in pair)
    assert float(program(outer, inner)) == right
    assert float(program(lambda f: outer(tl.run(f)), inner)) == right
    assert float(program(outer, lambda f: inner(tl.run(f)))) == right


def test_c023_three_levels():
    for a, b, c in itertools.product(MODES.values(), repeat=3):
        assert float(a(lambda x: b(lambda y: c(lambda z: x * y * z)(x) * y)(x))(2.0)) == 8.0
        assert float(a(b(c(lambda x: x ** 4)))(2.0)) == 48.0


# ---- C025: complex derivatives ----

def test_c025_holomorphic_derivative():
    assert complex(tl.grad(lambda z: z * z, holomorphic=True)(1 + 1j)) == 2 + 2j


def test_c025_descent_gradient():
    def squared_size(z):
        return tl.real(z * tl.conj(z))
    assert complex(tl.grad(squared_size)(3 + 4j)) == 6 + 8j
    assert complex(tl.grad(lambda z: tl.imag(z) ** 2)(2j)) == 4j
    assert complex(tl.record(squared_size)(3 + 4j).backward()) == 6 + 8j


def test_c025_wirtinger_parts():
    by_z, by_conjugate = tl.wirtinger(lambda z: z * tl.conj(z))(3 + 4j)
    assert (complex(by_z), complex(by_conjugate)) == (3 - 4j, 3 + 4j)


def test_c025_not_holomorphic_is_an_error():
    with pytest.raises(errors.DifferentiationError, match="not holomorphic here"):
        tl.grad(lambda z: tl.conj(z) * z, holomorphic=True)(1 + 1j)
    with pytest.raises(errors.DifferentiationError, match="holomorphic=True"):
        tl.grad(lambda z: z * z)(1 + 1j)


# ---- C026: Python `if` on a traced value ----

def _first_of(x):
    return x or 1.0


def _smaller(x):
    return min(x, 2.0)


def _chained(x):
    return x * 2 if 0 < x < 3 else x


def _asserted(x):
    assert x > 0
    return x


def _branch(size):
    if size > 1:
        return size * 2
    return size


@pytest.mark.parametrize("f", [_first_of, _smaller, _chained, _asserted, _branch],
                         ids=lambda f: f"C026{f.__name__}")
def test_message_for_a_python_condition(f):
    with pytest.raises(errors.ConcretizationError) as caught:
        tl.run(f)(1.5)
    text = str(caught.value)
    for part in ("tl.where", "tl.cond", "tl.map", "static", "test_section_b.py", f.__name__):
        assert part in text, f"{part!r} is not in {text!r}"


@pytest.mark.parametrize("use, instead", [
    (lambda x: math.sin(x), "tl.sin"), (lambda x: float(x), "tl.sin"), (lambda x: int(x), "tl.convert"),
    (lambda x: list(range(x)), "tl.iterate"), (lambda x: np.asarray(x), "stop_gradient"),
    (lambda x: x.item(), "tl.sin"), (lambda x: f"{x:.3f}", "repr"), (lambda x: x.tolist(), "tl.")],
    ids=["math", "float", "int", "range", "asarray", "item", "format", "tolist"])
def test_c026_hidden_uses(use, instead):
    def f(x):
        use(x)
        return x
    x = 3 if instead == "tl.iterate" else 1.5
    with pytest.raises(errors.ConcretizationError, match=instead):
        tl.run(f)(x)


def test_c026_escape_time_by_where_and_while():
    def escape(c):
        def go_on(state):
            k, z = state
            return (k < 10) & (tl.real(z * tl.conj(z)) <= 4)

        def step(state):
            k, z = state
            return k + 1, z * z + c
        k, z = tl.while_loop(go_on, step, (0, c * 0))
        return tl.where(tl.real(z * tl.conj(z)) > 4, k - 1, k)
    points = tl.tensor([-0.75 + 0.1j, 1 + 0j])
    assert [int(escape(c)) for c in points] == [10, 2]
    assert tl.vmap(escape)(points).tolist() == [10, 2]
    assert tl.run(tl.vmap(escape))(points).tolist() == [10, 2]


# ---- C028: reverse mode through run-time loops ----

def newton_root(a):
    return tl.while_loop(lambda y: tl.abs(y * y - a) > 1e-12, lambda y: (y + a / y) / 2, a)


def test_c028_while():
    for found in (tl.grad(newton_root)(2.0), tl.run(tl.grad(newton_root))(2.0), forward(newton_root)(2.0)):
        assert float(found) == pytest.approx(.35355339059327, rel=1e-13)


def test_c028_run_time_count_equals_the_unrolled_program():
    def looped(x, n):
        return tl.iterate(lambda y: y * tl.sin(y), n, x)

    def unrolled(x, n):
        for _ in range(n):
            x = x * tl.sin(x)
        return x
    for n in (0, 1, 5):
        assert tl.same_bits(tl.run(looped)(0.7, n), unrolled(tl.tensor(0.7), n))
        assert tl.same_bits(tl.grad(looped)(0.7, n), tl.grad(unrolled)(0.7, n))
        assert tl.same_bits(tl.run(tl.grad(looped))(0.7, n), tl.grad(unrolled)(0.7, n))


# ---- C029: a value used before and after a loop ----

@pytest.mark.parametrize("n, dx, ds", [(3, 42, [9, 9, 9]), (1, 6, [9, 0, 0]), (0, 0, [0, 0, 0])],
                         ids=["C029-three", "C029-one", "C029-none"])
def test_value_used_around_a_loop(n, dx, ds):
    def f(x, s, n):
        g = x * x
        total, _ = tl.iterate(lambda state: (state[0] + s[state[1]], state[1] + 1), n, (0.0 * x, 0))
        return g * total
    for grad in (tl.grad(f, (0, 1)), tl.run(tl.grad(f, (0, 1)))):
        got_x, got_s = grad(3.0, tl.tensor([1.0, 2.0, 4.0]), n)
        assert (float(got_x), got_s.tolist()) == (dx, ds)


# ---- C031: in-place writes ----

def test_c031_functional_writes():
    def blocks(a):
        b = tl.zeros((4, 4)).at[:2, :2].set(a)
        return tl.sum(b * b)

    def entries(b):
        c = tl.zeros(2)
        c = c.at[0].set(b[0] * b[0])
        return c.at[1].set(b[1] * b[0] + b[2])
    assert gradient(blocks, [[1.0, 2.0], [3.0, 4.0]]) == [[2.0, 4.0], [6.0, 8.0]]
    for jacobian in (tl.jacfwd, tl.jacrev):
        assert jacobian(entries)(tl.tensor([1.0, 2.0, 2.0])).tolist() == [[2, 0, 0], [2, 1, 1]]


def _writes(a):
    b = tl.zeros((4, 4))
    b[:2, :2] = a
    return tl.sum(b * b)


def _writes_into_the_argument(a):
    a[0] = 1.0
    return tl.sum(a)


def _writes_into_an_array(a):
    c = np.zeros(2)
    c[0] = a[0] * a[0]
    return tl.sum(c)


@pytest.mark.parametrize("f, said", [
    (_writes, r"x\.at\[:2, :2\]\.set"), (_writes_into_the_argument, r"\.at\["),
    (_writes_into_an_array, "number")], ids=["C031-tensor", "C031-argument", "C031-numpy"])
def test_a_write_is_an_error_that_says_what_to_write(f, said):
    with pytest.raises((errors.MutationError, errors.ConcretizationError), match=said) as caught:
        tl.grad(f)(tl.ones((2, 2)) if f is _writes else tl.ones(2))
    assert f is _writes or f.__name__ in str(caught.value)


# ---- C033: escaped traced values ----

@pytest.mark.parametrize("transform", [
    lambda f: tl.grad(f)(1.0), lambda f: tl.run(f)(1.0), lambda f: tl.vmap(f)(tl.ones(3)),
    lambda f: tl.jvp(f, (1.0,), (1.0,)), lambda f: tl.make_jaxpr(f)(1.0)],
    ids=["C033-grad", "C033-run", "C033-vmap", "C033-jvp", "C033-make_jaxpr"])
def test_an_escaped_value_names_both_places(transform):
    store = []

    def f(x):
        store.append(x * 2)                                  # made here
        return x
    transform(f)
    with pytest.raises(errors.LeakedTracerError) as caught:
        store[0] + 1                                         # used here
    text = str(caught.value)
    assert "store.append(x * 2)" in text and "store[0] + 1" in text and "has_aux" in text


def test_c033_the_plain_call_stores_a_number():
    store = []

    def f(x):
        store.append(x * 2)
        return x
    f(1.0)
    assert store == [2.0]


def test_c033_a_leak_into_another_transform():
    store = []
    tl.grad(lambda x: (store.append(x), x)[1])(1.0)
    for use in (lambda: tl.grad(lambda y: y * store[0])(2.0), lambda: tl.run(lambda y: y * store[0])(2.0)):
        with pytest.raises(errors.LeakedTracerError, match="after that transform had ended"):
            use()


# ---- C037: a cotangent has the shape of its input ----

def test_c037_shapes():
    x = tl.tensor(np.arange(36.0).reshape(3, 2, 3, 2))
    assert tl.grad(lambda x: tl.sum(tl.einsum("abcd->bd", x) ** 2))(x).shape == (3, 2, 3, 2)
    value, grads = tl.value_and_grad(lambda x, y: tl.einsum("i,i->", x, y), (0, 1))(
        tl.tensor([2.0, 2.0]), tl.tensor([2.0]))
    assert float(value) == 8.0 and [g.tolist() for g in grads] == [[2.0, 2.0], [4.0]]


@pytest.mark.parametrize("shapes", [((3, 1), (4,)), ((), (2, 3)), ((1,), (5, 1)), ((0,), (1,)), ((2, 3), (2, 3))],
                         ids=str)
def test_c037_broadcasting(shapes):
    x, y = (tl.tensor(np.ones(s)) for s in shapes)
    for f in (tl.add, tl.multiply, tl.maximum, tl.divide, tl.hypot):
        _, pull = tl.vjp(f, x, y)
        ct = tl.ones(np.broadcast_shapes(*shapes))
        assert [g.shape for g in pull(ct)] == list(shapes)
