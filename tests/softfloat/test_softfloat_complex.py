"""Complex numbers over software formats: stated order, derivatives of every kind, exact text."""
import pickle

import gmpy2
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.errors import DifferentiationError, DTypeError

C = tl.Complex(tl.binary128)


def gmpy(z):
    with gmpy2.context(precision=300):
        return gmpy2.mpc(gmpy2.mpfr(gmpy2.mpq(z.real.to_fraction())), gmpy2.mpfr(gmpy2.mpq(z.imag.to_fraction())))


def test_dtype():
    assert tl.Complex("float64") is tl.complex128 and repr(C) == "Complex(binary128)"
    z = tl.tensor([1 + 2j, -0.5j], C)
    assert tl.same_bits(pickle.loads(pickle.dumps(z)), z) and z.dtype.itemsize == 32
    assert repr(z) == "tensor([1.0+2.0j, -0.0-0.5j], Complex(binary128), shape (2,), cpu)"
    with pytest.raises(DTypeError, match="takes a real float dtype, got int32"):
        tl.Complex(tl.int32)


def test_text_is_read_part_by_part():
    third = "0." + "3" * 42
    z = tl.tensor([third + "+0j", "1e-3-2.5e+1j", "-j", "7"], C).tolist()
    assert z[0].real.hex() == "0x1.5555555555555555555555555555p-2"
    assert [str(v) for v in z[1:]] == ["0.001-25.0j", "0.0-1.0j", "7.0+0.0j"]


def test_arithmetic_follows_the_stated_order():
    a, b, c, d = (tl.tensor(x, tl.binary128) for x in ("0.1", "-0.7", "1.3", "0.9"))
    x, y = a + 1j * b, c + 1j * d
    product, quotient = x * y, x / y
    assert tl.same_bits(tl.real(product), a * c - b * d)
    assert tl.same_bits(tl.imag(product), a * d + b * c)
    ratio = d / c
    assert tl.same_bits(tl.real(quotient), (a + b * ratio) / (c + d * ratio))
    assert tl.same_bits(tl.imag(quotient), (b - a * ratio) / (c + d * ratio))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "log10",
                                  "asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_functions_against_mpc(name):
    z = tl.tensor(["0.3-1.7j", "-2.5+0.4j", "1+1e-20j", "2-0.5j", "-0.75-0.1j", "1e-20+1e-19j"], C)
    for got, x in zip(getattr(tl, name)(z).tolist(), z.tolist()):
        with gmpy2.context(precision=300):
            want = getattr(gmpy2, name)(gmpy(x))
            assert abs(gmpy(got) - want) <= 16 * gmpy2.mpfr(2) ** -113 * abs(want)


@pytest.mark.parametrize("name", ["expm1", "log1p", "log2", "exp2", "cbrt"])
def test_functions_that_mpc_has_not(name):
    """Against formulas in MPC at 300 bits, next to 0 and away from it."""
    z = tl.tensor(["0.3-1.7j", "-0.25+0.4j", "1e-20-3e-21j"], C)
    right = {"expm1": lambda w: gmpy2.exp(w) - 1, "log1p": lambda w: gmpy2.log(1 + w),
             "log2": lambda w: gmpy2.log(w) / gmpy2.log(gmpy2.mpc(2)), "exp2": lambda w: gmpy2.mpc(2) ** w,
             "cbrt": lambda w: gmpy2.exp(gmpy2.log(w) / 3)}[name]
    for got, x in zip(getattr(tl, name)(z).tolist(), z.tolist()):
        with gmpy2.context(precision=300):
            want = right(gmpy(x))
            assert abs(gmpy(got) - want) <= 16 * gmpy2.mpfr(2) ** -113 * abs(want)


def test_branch_cuts_and_far_values():
    """The sign of a zero says which side of a cut; sinh and cosh may overflow where their quotient does not."""
    sides = tl.tensor(["2+0j", "2-0.0j"], C)
    assert [str(w.real)[:6] for w in tl.acos(sides).tolist()] == ["0.0", "0.0"]
    assert [complex(w.item()).imag < 0 for w in (tl.acos(sides)[0], tl.acos(sides)[1])] == [True, False]
    assert [complex(w.item()).imag > 0 for w in (tl.atanh(sides)[0], tl.atanh(sides)[1])] == [True, False]
    far = tl.tanh(tl.tensor(["20000+1j", "-20000+1j"], C)).tolist()
    assert [complex(w).real for w in far] == [1.0, -1.0]
    assert complex(tl.tan(tl.tensor("1+20000j", C)).item()) == 1j


@pytest.mark.parametrize("name", ["asin", "acosh", "atanh", "log2"])
def test_derivatives_of_inverse_functions(name):
    z, f = tl.tensor("0.3-0.2j", C), getattr(tl, name)
    step = tl.tensor("1e-12", tl.binary128)
    slope = tl.grad(f, holomorphic=True)(z)
    rough = (f(z + step) - f(z - step)) / (2 * step)
    assert tl.abs(slope - rough).item() < 1e-18


def test_the_three_kinds_of_derivative():
    square = lambda z: z * z
    size = lambda z: tl.real(z) ** 2 + tl.imag(z) ** 2
    z = tl.tensor([1 + 1j, 3 + 4j, 2j], C)
    assert complex(tl.grad(square, holomorphic=True)(z[0]).item()) == 2 + 2j
    assert complex(tl.grad(size)(z[1]).item()) == 6 + 8j
    assert complex(tl.grad(lambda z: tl.imag(z) ** 2)(z[2]).item()) == 4j
    assert [complex(w.item()) for w in tl.wirtinger(size)(z[1])] == [3 - 4j, 3 + 4j]
    with pytest.raises(DifferentiationError, match="not holomorphic"):
        tl.grad(lambda z: tl.abs(z) ** 2 + 0j, holomorphic=True)(z[1])


def test_run_reductions_and_conversions():
    z = tl.tensor([1 + 1j, 3 + 4j, -0.5j], C)
    f = lambda a: tl.sum(tl.exp(a) * a)
    assert tl.same_bits(tl.run(f)(z), f(z))
    hardware = tl.tensor(np.array([1 + 1j, 3 + 4j, -0.5j]))
    assert tl.same_bits(tl.run(f, dtype=tl.binary128)(hardware), f(z))
    assert tl.same_bits(tl.convert(z, tl.complex128), hardware)
    assert (z @ tl.conj(z)).item().real == 27.25
    assert (z + tl.tensor("0.5", tl.binary128)).dtype is C


def test_scalars_are_read_back_and_printed():
    z = tl.tensor(["0.1-2j", "3+0.25j"], C)
    first = z[0].item()
    assert tl.same_bits(tl.tensor(z.tolist()), z) and tl.same_bits(tl.tensor(first), z[0])
    assert tl.same_bits(z + first, z + z[0]) and tl.tensor([], C).shape == (0,)
    assert f"{first:.3f}" == "0.100-2.000j" and f"{z[1]:+.1e}" == "+3.0e+00+2.5e-01j" and str(first) == "0.1-2.0j"


def test_factorisations_of_complex_matrices():
    rng = np.random.default_rng(0)
    a = tl.tensor(rng.standard_normal((5, 3)) + 1j * rng.standard_normal((5, 3)), C)
    q, r = tl.linalg.qr(a)

    def off(x, y):
        return float(tl.max(tl.abs(x - y)))

    h, eye = tl.conj(a).T @ a, tl.eye(3, dtype=tl.binary128) + 0j
    l, b = tl.linalg.cholesky(h), tl.tensor([1, 2j, 3], C)
    assert off(q @ r, a) < 1e-32 and off(tl.conj(q).T @ q, eye) < 1e-32 and off(l @ tl.conj(l).T, h) < 1e-31
    assert off(h @ tl.linalg.solve(h, b), b) < 1e-30
    assert all(r[i, j].item() == tl.tensor(0, C).item() for i in range(3) for j in range(i))
    theirs = np.linalg.cholesky(np.asarray(tl.convert(h, tl.complex128)))
    assert np.abs(np.asarray(tl.convert(l, tl.complex128)) - theirs).max() < 1e-14
