"""Every function of `math` and `cmath`, every ufunc of NumPy, in a scalar function: it works or is refused."""
import cmath
import math

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.frontend.library import REFUSED

from frontend.same_as_python import plain

#: arguments of one call each
REAL = [(x,) for x in (-2.5, -1.0, -0.5, -0.0, 0.25, 1.0, 1.5, 3.0, 10.5)]
POSITIVE = [(x,) for x in (0.25, 1.0, 1.5, 3.0, 10.5)]
UNIT = [(x,) for x in (-1.0, -0.5, -0.0, 0.25, 1.0)]
INNER = [(x,) for x in (-0.5, -0.0, 0.25)]
FROM_ONE = [(x,) for x in (1.0, 1.5, 3.0, 10.5)]
NATURAL = [(n,) for n in (0, 1, 2, 5, 12, 20)]
PAIRS = [(x, y) for x in (-2.5, -0.0, 0.25, 3.0, 7.5) for y in (-2.0, 0.5, 3.0)]
BASES = [(x, y) for x in (0.25, 1.0, 3.0) for y in (-2.0, 0.0, 0.5, 3.0)]
WHOLE = [(m, n) for m in (-12, 0, 1, 7, 30, 2**40) for n in (-4, 1, 6, 35)]
COUNTS = [(n, k) for n in (0, 1, 5, 20, 30) for k in (0, 1, 3, 7)]
SCALED = [(x, n) for x in (-2.5, 0.0, 0.75) for n in (-3, 0, 4)]
HALVES = [(x, y) for x in (5.0, -5.0, 2.5, 3.5, 7.0, 1e300, 0.1) for y in (2.0, -2.0, 1.0, 0.3)]
COMPLEX = [(z,) for z in (1 + 2j, -0.5 + 0.25j, 3 - 1j)]

MATH = {
    **dict.fromkeys("atan ceil cos cosh degrees erf erfc exp exp2 expm1 fabs floor frexp isfinite isinf "
                    "isnan modf radians sin sinh tan tanh trunc ulp cbrt asinh".split(), REAL),
    **dict.fromkeys("gamma lgamma log log10 log2 sqrt".split(), POSITIVE), "log1p": POSITIVE, "acosh": FROM_ONE,
    **dict.fromkeys(["acos", "asin"], UNIT), "atanh": INNER, **dict.fromkeys(["factorial", "isqrt"], NATURAL),
    **dict.fromkeys("atan2 copysign fmod hypot isclose nextafter".split(), PAIRS), "remainder": HALVES,
    "pow": BASES, "gcd": WHOLE, "lcm": WHOLE, "comb": COUNTS, "perm": COUNTS, "ldexp": SCALED}
#: called in another way than on numbers
WRAPPED = {
    "dist": (lambda x, y: math.dist((x, 1.0), (y, -2.0)), PAIRS),
    "prod": (lambda x, y: math.prod([x, y, 2]), PAIRS),
    "hypot of three": (lambda x, y: math.hypot(x, y, 2.0), PAIRS),
    "log in a base": (lambda x: math.log(x, 10), POSITIVE),
    "isclose, tolerance": (lambda x, y: math.isclose(x, y, rel_tol=0.5, abs_tol=0.1), PAIRS),
    "gcd of three": (lambda m, n: math.gcd(m, n, 9), WHOLE), "perm of one": (lambda n: math.perm(n), NATURAL),
    "isqrt, large": (lambda n: math.isqrt(n), [(2**62,), (2**63 - 1,), (10**18 - 1,), (99**8 - 1,)])}
#: C libraries differ in the last places of these; ulps
ULPS = {"gamma": 8, "lgamma": 16}


def close(name, a, b):
    """The same number: equal, or within the bound of the function."""
    if isinstance(a, tuple):
        return all(close(name, p, q) for p, q in zip(a, b, strict=True))
    if isinstance(a, complex):
        return abs(a - b) <= 4e-16 * abs(a)
    return a == b or abs(a - b) <= ULPS.get(name, 2) * math.ulp(a) or a != a and b != b


def entry(y):
    """One entry as Python numbers."""
    return tuple(map(entry, y)) if isinstance(y, tuple) else y.tolist()


def check(name, f, inputs):
    m = tl.map(lambda *xs: f(*xs))
    for xs in inputs:
        expected, found = plain(f, xs), plain(m, [tl.tensor(x) for x in xs])
        if isinstance(expected, type):
            assert isinstance(found, type) and issubclass(found, expected), (name, xs, expected, found)
        else:
            found = entry(found)
            assert close(name, expected, found), (name, xs, expected, found)
            assert type(found) is type(expected) or isinstance(expected, (bool, int)), (name, found, expected)


@pytest.mark.parametrize("name", [n for n, f in vars(math).items() if callable(f) and n[0] != "_"])
def test_math(name):
    f = getattr(math, name)
    if f in REFUSED:
        with pytest.raises(tl.errors.ScalarFunctionError, match=REFUSED[f][:20].replace("(", r"\(")):
            tl.map(lambda x: f([x, 1.0]))(tl.tensor(1.0))
    elif name not in ("dist", "prod"):
        check(name, f, MATH[name])


@pytest.mark.parametrize("name", WRAPPED)
def test_math_in_other_ways(name):
    check(name, *WRAPPED[name])


@pytest.mark.parametrize("name", [n for n, f in vars(cmath).items() if callable(f) and n[0] != "_"])
def test_cmath(name):
    if name == "isclose":
        f, inputs = cmath.isclose, [(a, b) for (a,) in COMPLEX for b in (a, a * (1 + 1e-12), a + 1)]
    elif name == "rect":
        f, inputs = cmath.rect, BASES
    else:
        f, inputs = getattr(cmath, name), COMPLEX
    check(name, f, inputs)


@pytest.mark.parametrize("f, xs, message", [
    (math.factorial, [3, 21], "does not fit"), (math.factorial, [-1], "negative"),
    (math.isqrt, [-4], "nonnegative"),
    (lambda n: math.perm(n, 15), [20, 40], "does not fit"), (lambda n: math.comb(n, 30), [100], "does not fit"),
    (lambda x: math.remainder(x, 0.0), [1.0], "domain")], ids=lambda v: getattr(v, "__name__", ""))
def test_what_python_or_64_bits_refuse_is_an_error_of_the_entry(f, xs, message):
    with pytest.raises((ValueError, OverflowError), match=message):
        tl.map(f)(tl.tensor(xs))


#: ufuncs of arrays or dates, which have no meaning on numbers
NOT_SCALAR = {"isnat", "matmul", "matvec", "vecdot", "vecmat"}
UFUNCS = sorted(n for n, f in vars(np).items() if isinstance(f, np.ufunc))
_BITS = ("bitwise_count", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_invert", "invert",
         "left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm")
_DOMAINS = {"arccos": UNIT, "acos": UNIT, "arcsin": UNIT, "asin": UNIT, "arctanh": INNER, "atanh": INNER,
            "arccosh": FROM_ONE, "acosh": FROM_ONE, "ldexp": SCALED,
            **dict.fromkeys(["sqrt", "log", "log2", "log10", "log1p", "reciprocal"], POSITIVE),
            **dict.fromkeys(["power", "pow", "float_power"], BASES)}


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_of_numpy(name):
    f = getattr(np, name)
    if name in NOT_SCALAR:
        with pytest.raises((tl.errors.TlgradError, IndexError)):
            tl.map(lambda x: f(x, x) if f.nin == 2 else f(x))(tl.tensor(1.0))
        return
    inputs = _DOMAINS.get(name) or (REAL if f.nin == 1 else PAIRS)
    if name in _BITS:
        inputs = [(n,) for n in (-5, 0, 7)] if f.nin == 1 else [(m, n) for m in (-12, 1, 30) for n in (1, 3, 6)]
    m = tl.map(lambda *xs: f(*xs))
    for xs in inputs:
        with np.errstate(all="ignore"):
            expected = f(*[np.asarray(x)[()] for x in xs])
        expected = tuple(e.item() for e in expected) if isinstance(expected, tuple) else expected.item()
        assert close(name, expected, entry(m(*[tl.tensor(x) for x in xs]))), (name, xs)


@pytest.mark.parametrize("f", [
    lambda x: np.clip(x, -1.0, 1.0), lambda x: np.sinc(x), lambda x: np.where(x > 0, x, -x),
    lambda x: np.nan_to_num(x), lambda x: np.heaviside(x, 0.5), lambda x: np.round(x),
    lambda x: np.isclose(x, 1.0)])
def test_other_functions_of_numpy(f):
    xs = [x for (x,) in REAL]
    np.testing.assert_allclose(tl.map(lambda x: f(x))(tl.tensor(xs)), [f(np.float64(x)) for x in xs], rtol=1e-15)


def test_what_numpy_has_and_tlgrad_lacks_names_the_line():
    with pytest.raises(tl.errors.ScalarFunctionError, match=r"`numpy\.busday_count`.*is not known"):
        tl.map(lambda x: np.busday_count(x, 3) if x > 0 else x)(tl.tensor([1.0]))
