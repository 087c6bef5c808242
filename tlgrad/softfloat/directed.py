"""Small formats under an environment: every rounding, saturation and the five flags, on arrays.

The words, flags and random draws are those of `arith`, operation by operation; binary64 carries the values.
Where one of its operations is inexact its result is rounded to odd (Boldo and Melquiond, "Emulation of FMA
and correctly rounded sums", 2008): the sign of what it lost is known exactly, and with 28 and more bits to
spare any second rounding is then that of the exact result.
"""
from __future__ import annotations

import numpy as np

from tlgrad.softfloat import bits, small
from tlgrad.softfloat.arith import DIVIDE_BY_ZERO, INEXACT, INVALID, OVERFLOW, UNDERFLOW
from tlgrad.softfloat.format import binary64
from tlgrad.softfloat.storage import as_words, dtype_of, format_of

_U = np.uint64


def _odd(value, lost):
    """A binary64 result rounded to odd; `lost` has the sign of what the exact one is above it."""
    words = value.view(np.int64)
    toward = np.where((lost > 0) == (value > 0), 1, -1)
    fix = (lost != 0) & np.isfinite(value) & (value != 0) & (words & 1 == 0)
    return np.where(fix, words + toward, words).view(np.float64)


def _halves(value):
    """A binary64 number as one of 26 bits and the rest."""
    high = (value.view(np.uint64) & ~_U((1 << 27) - 1)).view(np.float64)
    return high, value - high


def _add(a, b):
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _mul(a, b):
    return a * b, np.zeros(a.shape)                                   # exact: at most 50 bits


def _div(a, b):
    quotient = a / b
    high, low = _halves(quotient)
    rest = (a - high * b) - low * b
    return quotient, np.where(b < 0, -rest, rest)


def _sqrt(a):
    root = np.sqrt(a)
    high, low = _halves(root)
    return root, ((a - high * high) - 2 * high * low) - low * low


#: operation -> function of binary64 arrays: the result, and a number with the sign of what it lost
OPERATIONS = {"add": _add, "sub": lambda a, b: _add(a, -b), "mul": _mul, "div": _div, "sqrt": _sqrt}


def evaluate(name, fmt, arrays, env):
    """One of `OPERATIONS` on words; raises flags in `env` and takes its random numbers.

    None where a stochastic rounding would need more of the exact result than its neighbour in binary64.
    """
    values = [small.decode(a, fmt) for a in arrays]
    with np.errstate(all="ignore"):
        out, lost = OPERATIONS[name](*values)
    if env.rounding == "stochastic" and np.any((lost != 0) & np.isfinite(out)):
        return None
    out = _odd(out, lost)
    nan = np.logical_or.reduce([np.isnan(v) for v in values])
    invalid = np.isnan(out) & ~nan
    if name == "div":
        poles = np.isinf(out) & (values[1] == 0) & np.isfinite(values[0])
        env.flags |= DIVIDE_BY_ZERO * bool(poles.any())
    if invalid.any() or any(_signalling(a, fmt) for a in arrays):
        env.flags |= INVALID
    if name in ("add", "sub"):
        out = np.where((out == 0) & (env.rounding == "down"), _zero_down(*values, name == "sub"), out)
    return words(out, fmt, env)


def _zero_down(a, b, minus):
    """The zero of a sum that is exactly 0, rounded down: -0, but for +0 + +0."""
    both = ~np.signbit(a) & (np.signbit(b) if minus else ~np.signbit(b))
    return np.where(both, 0.0, -0.0)


def _signalling(array, fmt):
    if fmt.specials != "ieee":
        return False
    quiet = (as_words(array) >> (fmt.F - 1)) & 1
    return bool(np.any(bits.is_nan(array, fmt) & (quiet == 0)))


def covers(source, target):
    """Whether `convert` has both formats."""
    return (source is binary64 or small.fits(source)) and small.fits(target) and target.signed


def convert(array, target, env):
    """Words of a small format or a NumPy float dtype in a small format."""
    source = format_of(array.dtype)
    if _signalling(array, source):
        env.flags |= INVALID
    with np.errstate(invalid="ignore"):
        value = array.astype(np.float64) if array.dtype.kind == "f" else small.decode(array, source)
    return words(value, target, env)


def words(value, fmt, env):
    """Binary64 values, exact or rounded to odd, in the format: one rounding of the environment, with flags."""
    value = np.ascontiguousarray(value, np.float64)
    negative, size = np.signbit(value), np.abs(value)
    finite = np.isfinite(size)
    size = np.where(finite, size, 0.0)
    top = np.frexp(size)[1].astype(np.int64) - 1
    exponent = np.where(size > 0, np.maximum(top, fmt.emin), fmt.emin)
    kept, rest = _split(size, fmt.F - exponent)
    inexact = rest > 0
    draws = _draws(inexact, env) if env.rounding == "stochastic" else None
    up = inexact & _rounds_up(env.rounding, negative, kept, rest, draws)
    if inexact.any():
        env.flags |= INEXACT | UNDERFLOW * bool((inexact & _tiny(size, top, fmt, env, negative, draws)).any())
    word = ((exponent - fmt.emin) << fmt.F) + kept + up
    over = word > fmt.max
    if over.any():
        env.flags |= OVERFLOW | INEXACT
    inward = env.saturate | np.isin(env.rounding, ("zero", "odd")) | (
        negative & (env.rounding == "up")) | (~negative & (env.rounding == "down"))
    word = np.where(over, np.where(inward, fmt.max, fmt.infinity()), word)
    word = np.where(np.isinf(value), fmt.infinity(), word)
    signs = negative & ((word != 0) | fmt.has_negative_zero) & (fmt.nan is None or word != fmt.nan)
    word = np.where(signs, word | fmt.sign_bit, word)
    word = np.where(np.isnan(value), fmt.invalid(), word)
    return word.astype(f"<u{fmt.itemsize}").view(dtype_of(fmt))


def _split(size, shift):
    """``(whole, fraction)`` of ``size * 2**shift``; both exact."""
    scaled = np.ldexp(size, shift)
    kept = np.floor(scaled)
    return kept.astype(np.int64), scaled - kept


def _rounds_up(mode, negative, kept, rest, draws):
    odd = kept & 1 == 1
    if mode == "nearest":
        return (rest > 0.5) | ((rest == 0.5) & odd)
    if mode == "away":
        return rest >= 0.5
    if mode == "stochastic":
        return _above(rest, draws)
    return {"odd": ~odd, "up": ~negative, "down": negative, "zero": np.zeros_like(odd)}[mode]


def _above(rest, draws):
    """rest * 2**64 > draws, exactly, for 0 <= rest < 1."""
    scaled = np.ceil(np.ldexp(rest, 64))
    full = scaled >= 2.0 ** 64
    return full | (np.where(full, 0.0, scaled).astype(np.uint64) > draws)


def _tiny(size, top, fmt, env, negative, draws):
    """Below the least normal number, also when rounded with an unbounded exponent."""
    below = top < fmt.emin
    near = top == fmt.emin - 1
    kept, rest = _split(np.where(near, size, 0.0), fmt.F - fmt.emin + 1)
    carries = (rest > 0) & _rounds_up(env.rounding, negative, kept, rest, draws)
    return below & ~(near & (kept + carries == 1 << fmt.precision))


def _draws(inexact, env):
    """Random numbers for the inexact results, in order: those of `Environment.draw`."""
    count = int(inexact.sum())
    numbers = np.zeros(inexact.shape, np.uint64)
    mask = (1 << 64) - 1
    counter = np.arange(1, count + 1, dtype=np.uint64) + _U(env.counter & mask)
    z = _U(env.key * 0xD1342543DE82EF95 & mask) + counter * _U(0x9E3779B97F4A7C15)
    z = (z ^ z >> _U(30)) * _U(0xBF58476D1CE4E5B9)
    z = (z ^ z >> _U(27)) * _U(0x94D049BB133111EB)
    numbers[inexact] = z ^ z >> _U(31)
    env.counter += count
    return numbers
