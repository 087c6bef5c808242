"""Formats, exact construction, printing, neighbours, rounding modes."""
import copy
import math
import pickle
import random
import struct
from decimal import Decimal
from fractions import Fraction

import gmpy2
import mpmath
import numpy as np
import pytest
import softfloat_mpfr as mpfr

from tlgrad.softfloat import arith, compare, convert, elementary, text
from tlgrad.softfloat import format as formats
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import Binary, binary16, binary32, binary64, binary128
from tlgrad.softfloat.value import Float

ALL = list(formats.NAMED.values())
LARGEST = {"float4_e2m1fn": 6, "float6_e2m3fn": 7.5, "float6_e3m2fn": 28, "float8_e4m3fn": 448,
           "float8_e4m3fnuz": 240, "float8_e5m2": 57344, "float8_e5m2fnuz": 57344,
           "binary16": 65504, "float8_e8m0fnu": 2.0 ** 127}


def word64(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def random_word(fmt, rng):
    """Structured words: exponent regimes, runs of ones and zeros, single bits."""
    code = rng.choice([rng.randrange(1 << fmt.E), fmt.bias + rng.randrange(-3, 4), rng.randrange(4),
                       (1 << fmt.E) - 1 - rng.randrange(3)])
    cut = rng.randrange(fmt.F + 1)
    fraction = rng.choice([rng.getrandbits(fmt.F), (1 << cut) - 1, ((1 << fmt.F) - 1) >> cut << cut,
                           1 << cut, 0, rng.getrandbits(fmt.F) >> cut << cut]) & (1 << fmt.F) - 1
    sign = rng.getrandbits(1) << fmt.E + fmt.F
    return sign | (max(0, min(code, (1 << fmt.E) - 1)) << fmt.F) | fraction


@pytest.mark.parametrize("fmt", ALL, ids=repr)
def test_interned_immutable_and_picklable(fmt):
    assert Binary(fmt.E, fmt.F, fmt.specials, fmt.bias) is fmt
    assert pickle.loads(pickle.dumps(fmt)) is fmt and copy.deepcopy(fmt) is fmt
    with pytest.raises(AttributeError):
        fmt.E = 3


@pytest.mark.parametrize("name", LARGEST)
def test_largest_finite(name):
    fmt = formats.NAMED[name]
    assert convert.to_fraction(fmt, fmt.max) == Fraction(LARGEST[name])


def test_bad_descriptions_are_named():
    for arguments, words in (((1, 5), "2..30 exponent"), ((8, 5000), "1..4096 fraction"),
                             ((8, 7, "posit"), "'ieee', 'fn'")):
        with pytest.raises(ValueError, match=words):
            Binary(*arguments)
    with pytest.raises(ValueError, match="already named 'binary128'"):
        Binary(15, 112, name="quad")


@pytest.mark.parametrize("source, value", [
    ("0.1", "0x1.999999999999999999999999999ap-4"),
    ("1.12345678901234567890", "0x1.1f9add3746f65f1c39c20a7c8256p+0"),
    (b"50000.012345678901234", "0x1.86a006522c3e416427949a25ce69p+15"),
    (Fraction(1, 3), "0x1.5555555555555555555555555555p-2"),
    (Decimal("0.1"), "0x1.999999999999999999999999999ap-4"),
    (0.1, "0x1.999999999999a000000000000000p-4"),
    ("0x1.8p-3", "0x1.8p-3"), (3, "0x1.8p+1"), ("-infinity", "-inf"), ("nan", "nan"),
    ("1e-4966", "0x0p+0"), ("-1e99999999", "-inf"), ("1_000", "0x1.f4p+9")],
    ids=str)
def test_exact_construction_in_binary128(source, value):
    assert Float(binary128, Float(binary128, source)).hex().rstrip("0") == value.replace(
        "a000000000000000p", "ap").rstrip("0")


def test_integers_of_any_size_come_back():
    assert int(Float(binary128, 12345678901234567890)) == 12345678901234567890
    with pytest.raises(ValueError, match="not a number"):
        Float(binary128, "0.1.2")
    with pytest.raises(TypeError, match="complex"):
        Float(binary128, 1j)


@pytest.mark.parametrize("value, fmt, expected", [
    (1 + 2.0 ** -8 + 2.0 ** -40, formats.bfloat16, 1.0078125),
    (1 + 2.0 ** -11 + 2.0 ** -40, binary16, 1.0009765625),
    (16973823, formats.bfloat16, 16908288), (-431.99999999999994, formats.float8_e4m3fn, -416)],
    ids=["bfloat16", "binary16", "int", "e4m3"])
def test_one_rounding_into_narrow_formats(value, fmt, expected):
    assert Float(fmt, value).to_fraction() == expected


def test_binary64_text_is_pythons():
    rng = random.Random(5)
    for _ in range(3000):
        word = random_word(binary64, rng)
        x = struct.unpack("<d", struct.pack("<Q", word))[0]
        if not math.isfinite(x) or x == 0:
            continue
        shown = text.to_repr(binary64, word)
        assert float(shown) == x and len(text.shortest(binary64, word)[0]) == len(
            repr(x).split("e")[0].replace(".", "").replace("-", "").strip("0"))
        assert float.fromhex(text.to_hex(binary64, word)) == x
        for spec in (".3e", ".17g", ".5f", "+.0f", "12.4g"):
            assert text.format_word(binary64, word, spec) == format(x, spec)


@pytest.mark.parametrize("fmt", [f for f in ALL if f.width > 4], ids=repr)
def test_text_round_trip(fmt):
    rng = random.Random(7)
    for _ in range(300):
        word = random_word(fmt, rng) & ((1 << fmt.width) - 1)
        if fmt.is_nan(word):
            continue
        assert text.parse(fmt, text.to_repr(fmt, word)) == word
        assert text.parse(fmt, text.to_hex(fmt, word)) == word


def test_exact_digits_beyond_pythons_integer_limit():
    shown = f"{Float(binary128, '1e4930'):.3000f}"
    assert len(shown) == 4931 + 1 + 3000 and Float(binary128, shown) == Float(binary128, "1e4930")
    assert f"{Float(binary128, '0.1'):.40f}" == "0.1000000000000000000000000000000000048148"


def test_one_plus_two_to_minus_100_squared():
    x = 1 + Float(binary128, 2) ** -100
    assert x * x == 1 + Float(binary128, 2) ** -99 and x != 1


def test_powers_of_scalars():
    quad = lambda x: Float(binary128, x)
    assert [str(quad(x) ** n) for x, n in (("-0.0", 3), ("-0.0", -3), ("-inf", -1), ("inf", 2),
                                           ("nan", 0), ("nan", 1), (0, 0), (3, -2))] == [
        "-0.0", "-inf", "-0.0", "inf", "1.0", "nan", "1.0", str(quad(Fraction(1, 9)))]
    with pytest.raises(ValueError, match="exact powers stop"):
        quad(2) ** (1 << 30)


@pytest.mark.parametrize("name, word", [("float8_e4m3fn", 0x7f), ("float8_e5m2", 0x7c),
                                        ("float8_e4m3fnuz", 0x80)])
def test_overflow_by_convention(name, word):
    fmt = formats.NAMED[name]
    largest = fmt.max
    assert arith.add(fmt, largest, largest, Environment()) == word
    assert arith.add(fmt, largest, largest, Environment(saturate=True)) == largest


def test_essay_words():
    assert convert.from_int(formats.float8_e4m3fn, 500) == 127
    assert convert.from_int(formats.float8_e4m3fn, 500, Environment(saturate=True)) == 126
    tenth, fifth, three = (convert.from_fraction(binary32, Fraction(k, 10)) for k in (1, 2, 3))
    total = arith.add(binary32, tenth, fifth, Environment())
    assert total == three and convert.to_fraction(binary32, three) == Fraction(5033165, 2 ** 24)
    one, two = binary32.one, binary32.power_of_two(1)
    assert elementary.evaluate("exp", binary32, one) == 1076754516
    assert elementary.evaluate("log", binary32, two) == 1060205080


@pytest.mark.parametrize("rounding", mpfr.ROUNDING)
@pytest.mark.parametrize("fmt", [binary128, binary16, Binary(19, 236), Binary(6, 70)], ids=repr)
def test_directed_roundings_against_mpfr(fmt, rounding):
    rng = random.Random(11)
    for name, (arity, peer) in mpfr.OPERATIONS.items():
        for _ in range(120):
            words = [random_word(fmt, rng) for _ in range(arity)]
            got = getattr(arith, name)(fmt, *words, Environment(rounding))
            values = [mpfr.value(fmt, w) for w in words]
            with mpfr.context(fmt, rounding):
                want = mpfr.word(fmt, peer(*values))
            assert got == want, (name, [hex(w) for w in words], hex(got), hex(want))


def test_odd_and_stochastic_rounding():
    exact = Fraction(1) + Fraction(3, 4) * Fraction(1, 2 ** 10)
    assert convert.from_fraction(binary16, exact, Environment("odd")) == binary16.one | 1
    assert convert.from_fraction(binary16, Fraction(1), Environment("odd")) == binary16.one
    env = Environment("stochastic", key=3)
    ups = sum(convert.from_fraction(binary16, exact, env) & 1 for _ in range(4000))
    assert abs(ups / 4000 - 0.75) < 0.03
    again = Environment("stochastic", key=3)
    assert ups == sum(convert.from_fraction(binary16, exact, again) & 1 for _ in range(4000))


def test_sticky_flags():
    env = Environment()
    arith.div(binary128, binary128.one, 0, env)
    assert env.raised == ("divide_by_zero",)
    arith.mul(binary128, binary128.max, binary128.max, env)
    assert env.raised == ("inexact", "overflow", "divide_by_zero")
    arith.sqrt(binary128, binary128.one | binary128.sign_bit, env)
    assert "invalid" in env.raised


def test_neighbours_and_total_order():
    one = Float(binary128, 1)
    assert one.next_up().to_fraction() - 1 == Fraction(1, 2 ** 112) == one.ulp().to_fraction()
    assert one.next_up().next_down().same_bits(one)
    assert compare.next_down(binary16, 0) == 0x8001 and compare.next_up(binary16, 0x8001) == 0x8000
    order = [0xfe00, 0xfc00, 0xbc00, 0x8000, 0x0000, 0x3c00, 0x7c00, 0x7e00]
    assert sorted(order, key=lambda w: compare.total_key(binary16, w)) == order


@pytest.mark.parametrize("name", ["exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin",
                                  "cos", "tan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
                                  "asin", "acos", "atan", "erf", "erfc", "cbrt", "lgamma", "digamma"])
@pytest.mark.parametrize("rounding", ["nearest", "up"])
def test_elementary_against_mpfr(name, rounding):
    fmt, rng = binary128, random.Random(name)
    peer = {"lgamma": lambda x: gmpy2.lgamma(x)[0]}.get(name) or getattr(gmpy2, name)
    for _ in range(40):
        word = random_word(fmt, rng)
        if name == "lgamma" and word >> 127:
            word ^= fmt.sign_bit
        got = elementary.evaluate(name, fmt, word, env=Environment(rounding))
        with mpfr.context(fmt, rounding):
            want = mpfr.word(fmt, peer(mpfr.value(fmt, word)))
        assert got == want, (hex(word), hex(got), hex(want))


@pytest.mark.parametrize("name, peer", [("pow", lambda a, b: a ** b), ("hypot", gmpy2.hypot),
                                        ("atan2", gmpy2.atan2)])
def test_two_argument_functions_against_mpfr(name, peer):
    fmt, rng = binary128, random.Random(3)
    for _ in range(250):
        words = [random_word(fmt, rng), random_word(fmt, rng)]
        got = elementary.evaluate(name, fmt, *words)
        with mpfr.context(fmt):
            want = mpfr.word(fmt, peer(*(mpfr.value(fmt, w) for w in words)))
        assert got == want, ([hex(w) for w in words], hex(got), hex(want))


@pytest.mark.parametrize("order", range(4))
def test_polygamma_against_mpmath(order):
    """Next to 0, to poles and to a zero of digamma, and far out."""
    quad = lambda x: Float(binary128, x)
    for x in ("0.7", "1e-9", "1.4616321449683623412626595423257213", "-2.75", "-3.00000000000000000000000001",
              "1e30"):
        got = Float.from_bits(binary128, elementary.evaluate(
            "polygamma", binary128, quad(order).bits, quad(x).bits)).to_fraction()
        with mpmath.workprec(400):
            exact = quad(x).to_fraction()
            want = mpmath.psi(order, mpmath.mpf(exact.numerator) / exact.denominator)
            assert abs(mpmath.mpf(got.numerator) / got.denominator / want - 1) <= mpmath.mpf(2) ** -113
    at = lambda n, x: str(Float.from_bits(binary128, elementary.evaluate(
        "polygamma", binary128, quad(n).bits, quad(x).bits)))
    assert [at(order, x) for x in ("0", "-1", "nan")] == [
        ["-inf", "inf"][order % 2], ["nan", "inf"][order % 2], "nan"]
    assert at(order, "1e-4930") == ("-1.0e+4930" if not order else ["-inf", "inf"][order % 2])
    assert at("0.5", 1) == at(-1, 1) == "nan"
    with pytest.raises(ValueError, match="orders n up to 1,000"):
        at(1001, 1)


def test_softplus_logistic_and_lgamma_of_a_negative():
    quad = lambda x: Float(binary128, x)
    value = Float.from_bits(binary128, elementary.evaluate("softplus", binary128, quad(-1000).bits))
    assert f"{value:.18e}" == "5.075958897549456765e-435"
    value = Float.from_bits(binary128, elementary.evaluate("logistic", binary128, quad(0).bits))
    assert value == 0.5
    value = Float.from_bits(binary128, elementary.evaluate("lgamma", binary128, quad(-1.5).bits))
    with gmpy2.context(precision=160):
        want = gmpy2.log(4 * gmpy2.sqrt(gmpy2.const_pi()) / 3)
    assert f"{value:.30f}" == f"{want:.30f}"


def test_numpy_numbers_enter_exactly():
    single, extended = np.float32(0.1), np.longdouble("0.1")
    assert binary128(single).to_fraction() == Fraction(*single.as_integer_ratio())
    assert binary128(extended).to_fraction() == Fraction(*extended.as_integer_ratio())
    assert [str(binary128(x)) for x in (np.float16("-inf"), np.float32("nan"), np.longdouble("-0"))] == [
        "-inf", "nan", "-0.0"]
    assert binary128(np.int64(-3)) == -3 and Binary(np.int64(15), 112) is binary128
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        Binary(4.5, 3)


def test_scalars_round_and_have_powers():
    assert [round(binary128(x)) for x in ("2.5", "-3.5", "1e30")] == [2, -4, 10 ** 30]
    assert round(binary128("2.567"), 2) == binary128("2.57") and 7 % binary128(4) == 3
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        round(binary128("2.5"), "2")
    root = binary128(2) ** 0.5
    assert root.same_bits(binary128(2).sqrt()) and (2 ** binary128("0.5")).same_bits(root)
    for integer in (int, round):
        with pytest.raises(OverflowError, match="cannot convert binary128"):
            integer(binary128("inf"))


@pytest.mark.parametrize("spec", ["", ".2f", "12.3f", "<12.3f", "*^+20.3e", "010.2f", "=+10.1f", ",.2f", "_.1f",
                                  " g", "+.3G", ".2E", "%", ">8"])
@pytest.mark.parametrize("number", [0.0, -1.5, 1234567.891, 0.0003, 2.0 ** 70])
def test_format_is_pythons(number, spec):
    assert format(binary64(number), spec) == format(number, spec)


def test_formats_that_are_not_ours_are_named():
    for spec in ("d", "012,.1f", ".f"):
        with pytest.raises(ValueError, match="expected for example '.40f'"):
            format(binary128(1), spec)
