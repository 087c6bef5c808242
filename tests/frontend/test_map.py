"""tl.map and tl.zip: worked values, shapes, trees, captures, derivatives, errors."""
import math
import pickle
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import tlgrad as tl

X = tl.tensor([-2.0, 1.0, 3.0])


def values(t):
    return np.asarray(t).tolist()


def total(f):
    """The sum over the entries of a mapped function."""
    return lambda *args: tl.sum(tl.map(f)(*args))


def leaky(x):
    return x if x > 0 else 0.25 * x


def square_above(x):
    return 0 if x < 0 else x * x


def blend(left, right):
    return 0.75 * left + 0.25 * right


# ---- the essay's values ----

@pytest.mark.parametrize("f, expected, gradient", [
    (leaky, [-0.5, 1.0, 3.0], [0.25, 1.0, 1.0]),
    (square_above, [0.0, 1.0, 9.0], [0.0, 2.0, 6.0])], ids=["leaky", "square above 0"])
def test_worked_values(f, expected, gradient):
    assert values(tl.map(f)(X)) == expected
    assert values(tl.grad(total(f))(X)) == gradient
    assert values(tl.record(tl.map(f))(X).backward()) == gradient


@pytest.mark.parametrize("left, right, w, expected", [
    ([0.0, 4.0, 8.0], [8.0, 4.0, 0.0], 0.25, [2.0, 4.0, 6.0])])
def test_blend(left, right, w, expected):
    assert values(tl.zip(blend)(tl.tensor(left), tl.tensor(right))) == expected


def test_guide_blend():
    w = 0.25
    found = tl.zip(lambda x, y: w * x + (1 - w) * y)(tl.tensor([1.0, 2.0, 3.0]), tl.tensor([-2.0, 1.0, 3.0]))
    assert values(found) == [-1.25, 1.25, 3.0]


# ---- shapes, formats, trees ----

@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)], ids=str)
def test_shapes_are_kept(shape):
    x = tl.tensor(np.linspace(-1, 1, math.prod(shape)).reshape(shape))
    out = tl.map(leaky)(x)
    assert out.shape == shape
    assert values(out) == np.where(np.asarray(x) > 0, x, 0.25 * np.asarray(x)).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_floats_keep_their_format(dtype):
    x = tl.tensor([-2.0, 0.5], dtype)
    assert tl.map(leaky)(x).dtype == dtype
    assert tl.map(lambda v: 1.0 if v > 0 else 0.0)(x).dtype == dtype
    assert tl.map(lambda v: 1 if v > 0 else 0)(x).dtype == tl.int64


def test_integers_and_complex_numbers():
    assert values(tl.map(lambda n: n // 2 if n % 2 == 0 else 3 * n + 1)(tl.tensor([6, 7]))) == [3, 22]
    assert values(tl.map(lambda z: z * z if abs(z) > 1 else z)(tl.tensor([1j, 2j]))) == [1j, -4 + 0j]


def test_inputs_of_different_shapes_are_an_error():
    with pytest.raises(tl.errors.ShapeError, match=r"\(3,\).*\(2, 1\).*not broadcast"):
        tl.zip(blend)(X, tl.ones((2, 1)))
    with pytest.raises(tl.errors.ShapeError, match=r"\(3,\).*\(\)"):
        tl.map(blend)(X, 1.0)
    with pytest.raises(tl.errors.ArgumentError, match="two|2 or more"):
        tl.zip(leaky)(X)


class Point(NamedTuple):
    a: object
    b: object


def test_trees_in_and_out():
    def f(p, k):
        return {"sum": p.a + p.b, "pair": [k["w"] * p.a, (p.b,)]}
    out = tl.map(f)(Point(X, 2 * X), k={"w": X})
    assert values(out["sum"]) == [-6.0, 3.0, 9.0]
    assert values(out["pair"][0]) == [4.0, 1.0, 9.0] and values(out["pair"][1][0]) == [-4.0, 2.0, 6.0]
    swapped = tl.map(lambda p: Point(p.b, p.a))(Point(X, 2 * X))
    assert values(swapped.a) == [-4.0, 2.0, 6.0]


class Complex:
    """A user's number class with operators."""

    def __init__(self, r, i):
        self.r, self.i = r, i

    def __add__(self, o):
        return Complex(self.r + o.r, self.i + o.i)

    def __mul__(self, o):
        return Complex(self.r * o.r - self.i * o.i, self.r * o.i + self.i * o.r)


def test_a_class_of_the_user_comes_back():
    out = tl.map(lambda x: Complex(x, 1.0) * Complex(x, 1.0) + Complex(0.0, x))(X)
    assert values(out.r) == [3.0, 0.0, 8.0] and values(out.i) == [-6.0, 3.0, 9.0]


# ---- captures ----

WEIGHT = 2.0
TABLE = np.array([1.0, 2.0, 4.0])


def test_captured_values_are_current():
    global WEIGHT
    box = {"w": 1.0}
    m, by_cell = tl.map(lambda x: WEIGHT * x if x > 0 else x), tl.map(lambda x: box["w"] * x if x > 0 else x)
    WEIGHT = 2.0
    assert values(m(X)) == [-2.0, 2.0, 6.0] and values(by_cell(X)) == [-2.0, 1.0, 3.0]
    WEIGHT, box["w"] = 3.0, 5.0
    assert values(m(X)) == [-2.0, 3.0, 9.0] and values(by_cell(X)) == [-2.0, 5.0, 15.0]


def test_captured_floats_are_operands_of_the_program():
    rate = 0.5
    m = tl.map(lambda x: rate * x if x > rate else x)
    jaxpr = tl.make_jaxpr(m)(X)
    text = repr(jaxpr)
    assert "0.5" not in text.split("branches")[-1]


def test_captured_arrays_are_read_by_index():
    def f(n):
        return TABLE[n] + TABLE[-1] if n < 3 else TABLE[0] * len(TABLE)
    assert values(tl.map(f)(tl.tensor([0, 2, 7]))) == [5.0, 8.0, 3.0]
    square = tl.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert values(tl.map(lambda i, j: square[i, j] * 10 + square[j][i])(tl.tensor([0, 1]), tl.tensor([1, 1]))) \
        == [23.0, 44.0]


def test_a_read_outside_names_the_lowest_entry():
    with pytest.raises(IndexError, match=r"index 5 .* size 3 .* entry 1"):
        tl.map(lambda n: TABLE[n] if n > 0 else 0.0)(tl.tensor([0, 5, 9]))


def test_derivative_in_captured_values():
    def f(w, v):
        return tl.sum(tl.map(lambda n: w * v[n] if n > 0 else v[0] * v[0])(tl.tensor([0, 1, 1, 2])))
    w, v = tl.tensor(3.0), tl.tensor([5.0, 7.0, 11.0])
    assert float(tl.grad(f)(w, v)) == 25.0
    assert values(tl.grad(f, argnums=1)(w, v)) == [10.0, 6.0, 3.0]


# ---- derivatives ----

CASES_C001 = {
    "root": (lambda x: x if x >= 0 else math.sqrt(-x), 1.0, 1.0),
    "times inf": (lambda x: 0.0 if x > 0 else x * math.inf, 1.0, 0.0),
    "x ** 1.5": (lambda x: 0.0 if x == 0 else x * math.sqrt(x), 0.0, 0.0)}


@pytest.mark.parametrize("name", CASES_C001)
def test_the_discarded_branch_contributes_exactly_zero(name):
    """Case C001, in every mode and at any order."""
    f, at, right = CASES_C001[name]
    x = tl.tensor([at, at])
    assert values(tl.grad(total(f))(x)) == [right, right]
    assert values(tl.jvp(tl.map(f), (x,), (tl.ones((2,)),))[1]) == [right, right]
    assert values(tl.run(tl.grad(total(f)))(x)) == [right, right]
    assert values(tl.vmap(tl.grad(total(f)))(tl.tensor([[at], [at]]))) == [[right], [right]]
    assert np.isfinite(np.asarray(tl.hessian(total(f))(x))).all()


def cubic(x):
    if x > 1:
        return x * x * x
    return x * x


@pytest.mark.parametrize("modes", [(tl.jacfwd, tl.jacfwd), (tl.jacfwd, tl.jacrev), (tl.jacrev, tl.jacfwd),
                                   (tl.jacrev, tl.jacrev)], ids=["ff", "fr", "rf", "rr"])
def test_second_order_in_mixed_modes(modes):
    outer, inner = modes
    assert values(outer(inner(total(cubic)))(tl.tensor([2.0, 0.5]))) == [[12.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize("f, at, right", [
    (lambda x: x * tl.grad(lambda y: x + y)(1.0), 1.0, 1.0),
    (lambda x: x * tl.grad(lambda y: x * y)(1.0), 4.0, 8.0),
    (lambda x: x * tl.grad(lambda y: y * y)(x), 1.0, 4.0)], ids=["sum", "product", "square"])
@pytest.mark.parametrize("branch", [False, True], ids=["straight", "branching"])
def test_perturbations_stay_distinct_inside_a_map(f, at, right, branch):
    """Case C023 with the outer derivative through the map, the inner one in it."""
    g = (lambda x: f(x) if x > 0 else x) if branch else f
    assert values(tl.grad(total(g))(tl.tensor([at, at]))) == [right, right]
    assert values(tl.jvp(tl.map(g), (tl.tensor([at]),), (tl.ones((1,)),))[1]) == [right]


def escape(cr, ci):
    zr = zi = 0.0
    for k in range(1, 11):
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        if zr * zr + zi * zi > 4:
            return k
    return 10


def complex_escape(c):
    z = 0
    for k in range(10):
        z = z * z + c
        if abs(z) > 2:
            return k
    return 10


@pytest.mark.parametrize("run", [lambda f: f, tl.run], ids=["eager", "run"])
def test_escape_times(run):
    """Case C026: what plain Python returns, for a batch."""
    cr, ci = [-0.75, 1.0, 0.0, 0.3], [0.1, 0.0, 0.0, 0.5]
    assert values(run(tl.map(escape))(tl.tensor(cr), tl.tensor(ci))) == [escape(a, b) for a, b in zip(cr, ci)]
    c = [complex(a, b) for a, b in zip(cr, ci)]
    assert values(run(tl.map(complex_escape))(tl.tensor(c))) == [complex_escape(z) for z in c]
    assert complex_escape(-0.75 + 0.1j) == 10 and complex_escape(1 + 0j) == 2


def smooth_escape(cr, ci):
    zr = zi = 0.0
    for k in range(50):
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        if zr * zr + zi * zi > 100:
            return k + 1 - math.log(math.log(zr * zr + zi * zi))
    return 50.0


def test_derivative_of_a_smooth_output_of_a_loop_that_is_left_early():
    h, (cr, ci) = 1e-6, (0.5, 0.6)
    by_difference = [(smooth_escape(cr + h, ci) - smooth_escape(cr - h, ci)) / (2 * h),
                     (smooth_escape(cr, ci + h) - smooth_escape(cr, ci - h)) / (2 * h)]
    found = tl.grad(total(smooth_escape), argnums=(0, 1))(tl.tensor([cr]), tl.tensor([ci]))
    np.testing.assert_allclose([float(g[0]) for g in found], by_difference, rtol=1e-7)


def newton(a):
    y = a
    while abs(y * y - a) > 1e-12:
        y = (y + a / y) / 2
    return y


def sines(x, n):
    for _ in range(n):
        x = x * math.sin(x)
    return x


def test_reverse_mode_through_loops_of_run_time_length():
    """Case C028, equal to the unrolled program in words."""
    np.testing.assert_allclose(float(tl.grad(total(newton))(tl.tensor([2.0]))[0]), 0.35355339059327, rtol=1e-13)

    def unrolled(x):
        for _ in range(5):
            x = x * tl.sin(x)
        return tl.sum(x)
    x, n = tl.tensor([0.7]), tl.tensor([5])
    assert tl.same_bits(tl.map(sines)(x, n)[0], unrolled(x))
    assert tl.same_bits(tl.grad(total(sines))(x, n), tl.grad(unrolled)(x))


@pytest.mark.parametrize("n, by_x, by_s", [(3, 42.0, [9.0, 9.0, 9.0]), (1, 6.0, [9.0, 0.0, 0.0]),
                                           (0, 0.0, [0.0] * 3)])
def test_a_value_used_before_and_after_a_loop(n, by_x, by_s):
    """Case C029."""
    def f(x, s):
        def body(x, n):
            g = x * x
            acc = 0
            for k in range(n):
                acc += s[k]
            return g * acc
        return tl.sum(tl.map(body)(x, tl.tensor([n])))
    x, s = tl.tensor([3.0]), tl.tensor([1.0, 2.0, 4.0])
    assert values(tl.grad(f)(x, s)) == [by_x]
    assert values(tl.grad(f, argnums=1)(x, s)) == by_s


# ---- errors per entry ----

def positive(x):
    assert x > 0, f"not positive: {x}"
    if x > 100:
        raise OverflowError(f"too large: {x:.1f}")
    return math.sqrt(x)


@pytest.mark.parametrize("data, error, text, entry", [
    ([1.0, -2.0, -3.0], AssertionError, "not positive: -2.0", "entry 1"),
    ([1.0, 200.0, -3.0], OverflowError, "too large: 200.0", "entry 1")], ids=["assert", "raise"])
def test_the_lowest_failing_entry_raises(data, error, text, entry):
    with pytest.raises(error, match=text) as caught:
        tl.map(positive)(tl.tensor(data))
    assert any(entry in note for note in caught.value.__notes__)
    with pytest.raises(error, match=text):
        tl.run(tl.map(positive))(tl.tensor(data))


def test_an_error_in_a_matrix_names_row_and_column():
    with pytest.raises(ZeroDivisionError) as caught:
        tl.map(lambda a, b: a // b)(tl.tensor([[4, 4], [4, 4]]), tl.tensor([[1, 2], [0, 0]]))
    assert "(1, 0)" in caught.value.__notes__[0]


def test_a_branch_that_is_not_taken_cannot_raise():
    assert values(tl.map(lambda a, b: a // b if b != 0 else -1)(tl.tensor([7, 7]), tl.tensor([2, 0]))) == [3, -1]


# ---- transforms ----

def test_vmap_of_a_map():
    x = tl.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert values(tl.vmap(tl.map(leaky))(x)) == [[1.0, -0.5], [3.0, 4.0]]

    def scaled(w, x):
        return tl.map(lambda v: w * v if v > 0 else v)(x)
    assert values(tl.vmap(scaled)(tl.tensor([2.0, 3.0]), x)) == [[2.0, -2.0], [9.0, 12.0]]

    def pick(table, n):
        return tl.map(lambda k: table[k] if k > 0 else table[0] * 10)(n)
    assert values(tl.vmap(pick, in_axes=(0, None))(x, tl.tensor([0, 1]))) == [[10.0, -2.0], [30.0, 4.0]]


def test_straight_functions_do_not_import_numba():
    program = ("import sys, tlgrad as tl; w = 2.0; tl.grad(lambda x: tl.sum(tl.map(lambda v: w * v + v * v)(x)))"
               "(tl.tensor([1.0, 2.0])); assert 'numba' not in sys.modules, 'numba was imported'")
    subprocess.run([sys.executable, "-c", program], check=True)


@tl.recurrence
def summed(x, n):
    return x if n == 0 else summed(x, n - 1) + n


def test_module_level_functions_pickle():
    for f, args in ((tl.map(leaky), (X,)), (summed, (X, 3))):
        again = pickle.loads(pickle.dumps(f))
        assert values(again(*args)) == values(f(*args))


def test_a_loop_has_one_size_for_any_bound():
    def loop(n):
        def f(x):
            for _ in range(n):
                x = x * x - 0.5
                if x > 4:
                    return x
            return x
        return repr(tl.make_jaxpr(tl.map(f))(X)).count("\n")
    assert loop(50) == loop(100_000)


def test_gamma_functions_of_math():
    x = tl.tensor([0.5, -1.5, 3.0, 30.25])
    both = tl.map(lambda v: math.lgamma(v) - math.gamma(v) if v > 1 else math.gamma(v))
    right = [math.lgamma(v) - math.gamma(v) if v > 1 else math.gamma(v) for v in x.tolist()]
    np.testing.assert_allclose(np.asarray(both(x)), right, rtol=1e-15)
    assert tl.same_bits(tl.run(lambda x: both(x))(x), both(x))
