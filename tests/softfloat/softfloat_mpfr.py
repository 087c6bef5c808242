"""Fuzzing against MPFR, by gmpy2: arithmetic in any format with infinities, functions of binary128.

    python tests/softfloat/softfloat_mpfr.py 100000

runs that many structured cases per operation and format, and a tenth per function, on the kernels, and
names the first mismatches.
"""
import sys

import gmpy2
from softfloat_operands import operands

from tlgrad.softfloat import arith, array, fast
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import Binary, bfloat16, binary128, binary256, float8_e5m2, tf32
from tlgrad.softfloat.storage import to_integers

ROUNDING = {"nearest": gmpy2.RoundToNearest, "zero": gmpy2.RoundToZero, "up": gmpy2.RoundUp,
            "down": gmpy2.RoundDown}
OPERATIONS = {"add": (2, lambda a, b: a + b), "sub": (2, lambda a, b: a - b), "mul": (2, lambda a, b: a * b),
              "div": (2, lambda a, b: a / b), "sqrt": (1, gmpy2.sqrt), "fma": (3, gmpy2.fma)}
FORMATS = [binary128, binary256, Binary(6, 70), Binary(10, 40), tf32, bfloat16, float8_e5m2]
FUNCTIONS = {name: getattr(gmpy2, name) for name in (
    "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "asin", "acos", "atan", "erf", "erfc", "cbrt", "digamma")} | {
    "rsqrt": lambda x: gmpy2.rec_sqrt(x) if x else 1 / x, "lgamma": lambda x: gmpy2.lgamma(x)[0],
    "pow": lambda a, b: a ** b, "hypot": gmpy2.hypot, "atan2": gmpy2.atan2}
TWO = ("pow", "hypot", "atan2")


def context(fmt, rounding="nearest"):
    """A gmpy2 context that rounds like the format."""
    return gmpy2.context(precision=fmt.precision, emin=fmt.emin - fmt.F + 1, emax=fmt.emax + 1,
                         subnormalize=True, round=ROUNDING[rounding])


def value(fmt, word):
    """The mpfr number of a word."""
    kind, sign, sig, exponent = fmt.unpack(word)
    with gmpy2.context(precision=max(fmt.precision, 2), emin=-10 ** 7, emax=10 ** 7):
        number = gmpy2.mpfr({"nan": "nan", "infinite": "inf"}.get(kind, sig)) * gmpy2.exp2(exponent)
        return -number if sign else number


def word(fmt, number):
    """The word of an mpfr number that the format has."""
    if gmpy2.is_nan(number):
        return fmt.nan
    sign = int(gmpy2.is_signed(number))
    if gmpy2.is_infinite(number):
        return fmt.infinity(sign)
    if number == 0:
        return fmt.zero(sign)
    sig, exponent = number.as_mantissa_exp()
    found = arith.round_pack(fmt, sign, abs(int(sig)), int(exponent), env := Environment())
    assert not env.flags
    return found


def mismatches(name, fmt, count, seed):
    """Operands and results, as hexadecimal words, of the cases where ours differs."""
    arity, peer = OPERATIONS.get(name) or (2 if name in TWO else 1, FUNCTIONS[name])
    arguments = operands(fmt, count, arity, seed)
    if name == "lgamma":                      # far below zero it needs thousands of bits of its argument
        arguments = [array.evaluate("abs", fmt, arguments[0])]
    got = to_integers(array.evaluate(name, fmt, *arguments))
    bad = []
    for words, ours in zip(zip(*map(to_integers, arguments)), got):
        numbers = [value(fmt, w) for w in words]
        with context(fmt):
            right = word(fmt, peer(*numbers))
        if ours != right:
            bad.append([f"{w:x}" for w in (*words, ours, right)])
    return bad


def main(count):
    """Run everything; the exit status says whether all agree."""
    fast.WARM, failed = 0, 0
    cases = [(name, fmt, count) for fmt in FORMATS for name in OPERATIONS]
    cases += [(name, binary128, max(count // 10, 1)) for name in FUNCTIONS]
    for name, fmt, number in cases:
        wrong = [bad for start in range(0, number, 10000)
                 for bad in mismatches(name, fmt, min(10000, number - start), f"{name} {start}")]
        print(f"{fmt!r:12} {name:7} {number} cases, {len(wrong)} mismatches", *wrong[:3], flush=True)
        failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
