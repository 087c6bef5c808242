"""Software formats as dtypes: eager, run, derivatives, reductions, contractions, text, errors."""
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import gmpy2
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.errors import DTypeError
from tlgrad.ops import arithmetic, elementary, layout
from tlgrad.ops.contract import contract_axes
from tlgrad.softfloat import fast, format as formats
from tlgrad.softfloat.format import Binary, binary128
from tlgrad.softfloat.value import Float


@pytest.fixture(autouse=True, params=["reference", "kernels"])
def tier(request, monkeypatch):
    """Every test runs on the pure-Python reference and on compiled kernels."""
    monkeypatch.setattr(fast, "WARM", 0 if request.param == "kernels" else 1 << 60)


def quad(data):
    return tl.tensor(data, binary128)


def total(x):
    return layout.sum_axes(x, tuple(range(x.ndim)))


def dot(x, y):
    return contract_axes(x, y, ((x.ndim - 1,), (0,)))


def test_the_essays_square():
    x = quad(1) + quad(2) ** -100
    assert (x * x == quad(1) + quad(2) ** -99).item()
    assert not (tl.convert(x, tl.float64) != 1).item()


def test_text_fractions_and_integers_enter_exactly():
    x = quad(["0.1", Fraction(1, 10), Decimal("0.1"), binary128("0.1")])
    assert len(set(x.words()[:, 0])) == 1 and str(x.tolist()[0]) == "0.1"
    assert quad(12345678901234567890).item() == 12345678901234567890
    assert str(quad(0.1).item()) == "0.1000000000000000055511151231257827"
    with pytest.raises(DTypeError, match="not a number"):
        quad("0.1.2")


def test_dtype_is_interned_printed_and_pickled():
    x = quad([1.5, "1e-4950"])
    assert x.dtype == binary128 == Binary(15, 112) and repr(x.dtype) == "binary128"
    assert repr(x) == "tensor([1.5, 1.0e-4950], binary128, shape (2,), cpu)"
    assert tl.same_bits(pickle.loads(pickle.dumps(x)), x)
    y = tl.tensor([1.0], Binary(6, 9))
    assert pickle.loads(pickle.dumps(y)).dtype is y.dtype
    assert tl.tensor([1.0], Binary(11, 52)).dtype is tl.float64


def test_words_go_through_numpy_unharmed(tmp_path):
    x = quad(["0.1", "nan", "-0.0"])
    np.save(tmp_path / "x.npy", x)
    assert tl.same_bits(tl.tensor(np.load(tmp_path / "x.npy")), x)
    assert np.asarray(tl.tensor([1.5], formats.float8_e4m3fn)).tolist() == [1.5]


def test_saved_words_are_read_in_a_fresh_process(tmp_path):
    """Storage dtypes are understood before anything else has named their format."""
    x = tl.tensor(["0.1", "nan"], Binary(9, 50))
    np.save(tmp_path / "x.npy", x)
    code = f"import tlgrad as tl, numpy as np; print(tl.tensor(np.load(r'{tmp_path / 'x.npy'}')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(x)


def test_python_numbers_are_weak_and_hardware_formats_are_explicit():
    x = quad(["0.1"])
    assert (x * 2 + 1).dtype == binary128
    with pytest.raises(DTypeError, match="binary128 and float64 have no common dtype"):
        x + tl.tensor([1.0])
    assert tl.convert(x, tl.float32).dtype == tl.float32


FUNCTIONS = ["exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh",
             "cosh", "tanh", "asinh", "asin", "acos", "atan", "atanh", "erf", "erfc", "cbrt"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_to_the_last_places(name):
    """Against MPFR at 300 bits: values exact to half an ulp, derivatives to a few."""
    f, peer = getattr(elementary, name), getattr(gmpy2, name)
    x = quad("0.3")
    value, slope = f(x).item(), tl.grad(f)(x).item()
    step = Fraction(1, 2 ** 100)

    def exact(shift):
        at = x.item().to_fraction() + shift
        return peer(gmpy2.mpfr(at.numerator) / gmpy2.mpfr(at.denominator))

    with gmpy2.context(precision=400):
        truth, bend = exact(0), (exact(step) - exact(-step)) * 2 ** 99
        ulp = gmpy2.mpfr(2) ** -112
        error = abs(gmpy2.mpq(value.to_fraction()) - truth) / abs(truth)
        assert error <= ulp
        assert abs(gmpy2.mpq(slope.to_fraction()) - bend) <= 8 * ulp * abs(bend)


def test_tails_of_derivatives():
    shown = f"{tl.grad(elementary.erf)(quad(30)).item():.18e}"
    assert shown == "1.539647660409995945e-391"
    assert f"{elementary.softplus(quad(-1000)).item():.18e}" == "5.075958897549456765e-435"


def test_gamma_functions_have_derivatives_of_every_order():
    lgamma, x = tl.special.lgamma, quad("3.5")
    found = [f(x).item() for f in (lgamma, tl.grad(lgamma), tl.grad(tl.grad(lgamma)))]
    with gmpy2.context(precision=200):
        assert f"{found[1]:.30f}" == f"{gmpy2.digamma(3.5):.30f}"
    assert f"{found[0]:.30f}" == "1.200973602347074224816021881451"
    assert f"{found[2]:.30f}" == "0.330357756100234864972801055494"


def test_higher_derivatives_of_tanh():
    right = [".46211715726000976", ".78644773296592741", "-.72686198138358728",
             "-.56520928825977036", "3.9522195637245831", "-3.2666864719713927"]
    f = elementary.tanh
    for n, digits in enumerate(right):
        value = f(quad("0.5")).item()
        assert abs(value - Float(binary128, digits)) <= Float(binary128, "1e-15"), n
        f = tl.grad(f)


def test_run_grad_vmap_and_directional_derivatives_agree_in_words():
    x = quad(["0.1", "0.7", "-1.3"])
    f = lambda v: total(elementary.sin(v) * v)
    eager = tl.grad(f)(x)
    assert tl.same_bits(tl.run(tl.grad(f))(x), eager)
    one = lambda v: elementary.sin(v) * v
    assert tl.same_bits(tl.vmap(tl.grad(one))(x), eager)
    _, tangent = tl.jvp(one, (x[1],), (quad(1),))
    assert tl.same_bits(tangent, eager[1])
    assert tl.same_bits(tl.derivative(one, [quad(1)])(x[1]), eager[1])


def test_reductions_and_contractions_run_in_order():
    rng = np.random.default_rng(0)
    a, b = quad(rng.standard_normal((3, 200))), quad(rng.standard_normal((200, 5)))
    got = dot(a, b)
    numbers = [[x.to_fraction() for x in row] for row in (*a.tolist(), *b.tolist())]
    acc = Float(binary128, 0)
    for k in range(200):
        acc = acc + Float(binary128, numbers[1][k]) * Float(binary128, numbers[3 + k][2])
    assert got[1, 2].item().same_bits(acc)
    acc = Float(binary128, 0)
    for k in range(200):
        acc = acc + Float(binary128, numbers[2][k])
    assert layout.sum_axes(a, (1,))[2].item().same_bits(acc)


def test_training_stays_exact():
    """Gradient descent on dyadic data: every step is exact, so it equals rational arithmetic."""
    data = [Fraction(k, 8) for k in range(-3, 4)]
    x, y = quad(data), quad([3 * d - Fraction(1, 4) for d in data])
    loss = lambda w: total((w[0] * x + w[1] - y) * (w[0] * x + w[1] - y))
    w, exact = quad([0, 0]), [Fraction(0), Fraction(0)]
    for _ in range(4):
        w = w - tl.grad(loss)(w) * 2 ** -6
        rest = [exact[0] * d + exact[1] - (3 * d - Fraction(1, 4)) for d in data]
        slope = [sum(2 * r * d for r, d in zip(rest, data)), sum(2 * r for r in rest)]
        exact = [e - s / 64 for e, s in zip(exact, slope)]
        assert [v.to_fraction() for v in w.tolist()] == exact


def test_one_rounding_into_narrow_formats():
    cases = [(1 + 2.0 ** -8 + 2.0 ** -40, tl.bfloat16, 1.0078125), (16973823, tl.bfloat16, 16908288),
             (-431.99999999999994, formats.float8_e4m3fn, -416.0)]
    for value, dtype, expected in cases:
        assert tl.tensor(value, dtype).item() == expected
    x = quad(1 + Fraction(1, 2 ** 8) + Fraction(1, 2 ** 90))
    assert tl.convert(x, tl.bfloat16).item() == 1.0078125
    assert tl.convert(quad(1 + Fraction(1, 2 ** 53) + Fraction(1, 2 ** 110)), tl.float64).item() > 1


@pytest.mark.parametrize("fmt", [formats.float8_e4m3fn, formats.float8_e5m2, formats.tf32,
                                 formats.binary256, Binary(6, 40)], ids=repr)
def test_every_format_has_gradients(fmt):
    x = tl.tensor([1.5, -0.5, 4], fmt)
    assert tl.grad(lambda v: total(v * v))(x).tolist() == [3.0, -1.0, 8.0]
    assert (arithmetic.floor(x).tolist(), (x > 0).tolist()) == ([1.0, -1.0, 4.0], [True, False, True])


def test_narrow_sums_accumulate_in_float32():
    x = tl.tensor([60.0] * 4096, formats.float8_e4m3fn)
    assert tl.grad(lambda s: total(x * s) / 4096)(tl.tensor(1.0, formats.float8_e4m3fn)).dtype == x.dtype
    assert layout.sum_axes(tl.tensor([16.0] * 20, formats.float8_e4m3fn), (0,)).item() == 320.0


def test_the_same_function_in_another_precision():
    f = lambda x: (1 - tl.cos(x)) / (x * x)
    x = tl.tensor(1e-8)
    assert [tl.run(f, dtype=d)(x).item() for d in (tl.float32, tl.float64)] == [0.0, 0.0]
    assert f"{tl.run(f, dtype=tl.binary128)(x).item():.21f}" == "0.499999999999999995589"
    found = tl.compare_precision(f, tl.binary128)(x)
    assert str(found) == "float64 against binary128: absolute 0.5, relative 1"
    with pytest.raises(DTypeError, match="takes a float format, got int32"):
        tl.run(f, dtype=tl.int32)


def test_dtype_of_run_reaches_captures_loops_branches_and_derivatives():
    w = tl.tensor([0.1, 0.2])
    f = lambda x: tl.sum(tl.iterate(lambda y: y * y + w, 5, x))
    g = lambda x: tl.cond(f(x) > 0, lambda y: tl.sin(y), lambda y: y, f(x))
    x = tl.tensor([1.0, 0.5])
    wide = tl.run(tl.grad(g), dtype=tl.binary128)(x)
    assert tl.grad(tl.run(f, dtype=tl.binary128))(x).dtype == x.dtype
    w = tl.convert(w, tl.binary128)
    assert tl.same_bits(wide, tl.grad(g)(tl.convert(x, tl.binary128)))


def test_limits():
    info = tl.finfo(tl.binary128)
    assert (info.bits, info.precision) == (128, 33)
    assert info.eps.to_fraction() == Fraction(1, 2 ** 112)
    assert tl.finfo(tl.float32) == tl.finfo("float32") and tl.finfo(tl.float32).max == 3.4028234663852886e+38
    assert tl.nan_to_num(quad(["inf", "nan"])).tolist() == [info.max, 0]


def test_environment_of_tensor_operations():
    with tl.float_environment("up") as env:
        up = quad(1) / quad(3)
    assert env.raised == ("inexact",) and (up > quad(1) / quad(3)).item()


def test_hilbert_systems_in_our_own_algorithms():
    """solve, cholesky and qr of the 12 x 12 Hilbert matrix, whose condition number is 1.7e16."""
    h = quad([[Fraction(1, i + j + 1) for j in range(12)] for i in range(12)])
    x = tl.linalg.solve(h, tl.sum(h, axis=1))
    assert tl.max(tl.abs(x - 1)).item() < 1e-17
    low, (q, r) = tl.linalg.cholesky(h), tl.linalg.qr(h)
    for product in (low @ low.T, q @ r):
        assert tl.max(tl.abs(product - h)).item() < 1e-33


def test_scalar_functions_run_on_every_entry():
    """Branches, recursion and loops of a scalar function, in binary128."""
    def evolve(x, n):
        if n == 0:
            return x
        previous = evolve(x, n - 1)
        return previous * previous + 1

    x = quad(["0.1", "-2"])
    leaky = tl.map(lambda v: v if v > 0 else 0.25 * v)
    assert str(leaky(x)) == "[0.1, -0.5]"
    assert str(tl.grad(lambda v: tl.sum(leaky(v) * v))(x)) == "[0.2, -1.0]"
    exact = Fraction(-2)
    for _ in range(3):
        exact = exact * exact + 1
    assert tl.map(lambda v: evolve(v, 3))(x)[1].item().to_fraction() == exact


def test_scalars_of_a_format_beside_tensors():
    x, tenth = tl.tensor(["0.1", 2], binary128), binary128("0.1")
    assert tl.same_bits(x + tenth, x + x[0]) and tl.same_bits(tenth - x, x[0] - x)
    assert (x == tenth).tolist() == [True, False] and (tenth < x).tolist() == [False, True]
    assert tl.same_bits(tl.run(lambda v: v * tenth)(x), x * x[0])
    assert tl.same_bits(tl.tensor([[tenth, 1], [0.5, 2]]), tl.tensor([["0.1", 1], [0.5, 2]], binary128))
    with pytest.raises(DTypeError, match="no common dtype"):
        x + formats.bfloat16(1)
    with pytest.raises(DTypeError, match="not numbers of one format, got Float; give a dtype"):
        tl.tensor([tenth, formats.tf32(1)])


def test_long_doubles_and_ragged_lists():
    array = np.array(["0.1", "-1e30"], np.longdouble)
    read = tl.tensor(array, binary128).tolist()
    assert [v.to_fraction() for v in read] == [Fraction(*v.as_integer_ratio()) for v in array]
    with pytest.raises(DTypeError, match="lists are ragged"):
        tl.tensor([[1, 2], [3]], binary128)
