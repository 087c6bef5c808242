"""The tables of `pairs`, of 32 entries in binary32: `POLYNOMIALS` for `fit`, `NUMBERS` computed."""
import struct
from fractions import Fraction

from .fit import MP, few_bits

LN2 = MP.log(2)
ENTRIES = range(32)
REACH_EXP = LN2 / 64 * MP.mpf("1.0001")
REACH_SIN = MP.pi / 64 * MP.mpf("1.0001")


def singles(x, count, bits=24):
    """`x` as `count` numbers of binary32 whose sum has about 24 * count bits; the first has `bits`."""
    out = []
    for j in range(count):
        out.append(float(few_bits(x, 24 if j else bits)))
        x -= MP.mpf(out[-1])
    return out


def _columns(name, values, bits=24):
    """The table of `values` in two words, the first of `bits` bits."""
    pairs = [singles(v, 2, bits) for v in values]
    return {f"pair_{name}_high": [p[0] for p in pairs], f"pair_{name}_low": [p[1] for p in pairs]}


def _short(x, lsb):
    """`x` rounded to a multiple of 2**lsb, and the rest as one number of binary32."""
    high = MP.ldexp(MP.nint(MP.ldexp(x, -lsb)), lsb)
    return float(high), float(few_bits(x - high, 24))


# ---------------------------------------------------------------- the logarithm's 32 bins

def _number(word):
    return Fraction(struct.unpack("<f", struct.pack("<I", word))[0])


def _reciprocal(low, high):
    """(reach, c): the c near 1/z for z in [low, high] with least |z c - 1|, z c - 1 exact in binary32."""
    if low <= 1 <= high:
        return max(1 - low, high - 1), Fraction(1)
    found = []
    for steps, limit in ((64, Fraction(1, 64)), (32, Fraction(1, 32))):
        steps *= 2 if low >= 1 else 1
        c = Fraction(round(2 / (low + high) * steps), steps)
        reach = max(abs(low * c - 1), abs(high * c - 1))
        if reach <= limit:
            found.append((reach, c))
    return min(found)


LOG_OFFSET = 0x3f323800                 # the bins from here have the least reach of all
LOG_BINS = [_reciprocal(_number(LOG_OFFSET + (i << 18)), _number(LOG_OFFSET + (i + 1 << 18) - 1)) for i in ENTRIES]
REACH_LOG = MP.mpf(float(max(reach for reach, _ in LOG_BINS)))


def _log():
    c = [float(c) for _, c in LOG_BINS]
    pairs = [_short(-MP.log(v), -16) for v in c]
    return {"pair_log_c": c, "pair_log_high": [p[0] for p in pairs], "pair_log_low": [p[1] for p in pairs],
            "pair_log_bits": [float(LOG_OFFSET)], "pair_ln2": list(_short(LN2, -16))}


# ---------------------------------------------------------------- values and slopes on a grid

def _exp():
    """2**(i/32): S + 1 and S - 1 are exact for S = 2**k high, k = 0 to 22; low is never zero, so that an
    exponent can be added to its word."""
    columns = _columns("exp2", [MP.mpf(2) ** (MP.mpf(i) / 32) for i in ENTRIES], 23)
    columns["pair_exp2_low"][0] = 2.0 ** -90
    return {"pair_ln2_32": singles(LN2 / 32, 2), **columns}


def _sin():
    angles = [MP.pi * i / 32 for i in ENTRIES]
    return {"pair_pi_32": singles(MP.pi / 32, 3),
            **_columns("sin", [MP.sin(a) if a else MP.mpf(0) for a in angles]),
            **_columns("cos", [MP.cos(a) if i != 16 else MP.mpf(0) for i, a in enumerate(angles)])}


def _series(name, function, points, terms):
    """The Taylor series at the points: value, slope and second term in two words, `terms` more in one."""
    rows = [MP.taylor(function, MP.mpf(c), terms + 2) for c in points]
    columns = [[row[j] for row in rows] for j in range(terms + 3)]
    out = {f"pair_{name}_{j}": [float(few_bits(v, 24)) if v else 0.0 for v in columns[j]]
           for j in range(3, terms + 3)}
    for word, column in zip(("value", "slope", "bend"), columns):
        out |= _columns(f"{name}_{word}", column)
    return out


def _atan():
    points = [float(few_bits(MP.mpf(i) / 31, 12)) if i else 0.0 for i in ENTRIES]
    return {"pair_atan_point": points, **_series("atan", MP.atan, points, 3)}


def _exp_rest(r):
    return (MP.expm1(r) - r) / r ** 2 if r else MP.mpf(0.5)


def _log_rest(r):
    return (MP.log1p(r) - r + r ** 2 / 2) / r ** 3 if r else MP.mpf(1) / 3


def _sin_rest(z):
    r = MP.sqrt(z)
    return (MP.sin(r) / r - 1) / z


def _cos_rest(z):
    return (MP.cos(MP.sqrt(z)) - 1 + z / 2) / z ** 2


TINY = MP.mpf(2) ** -40
POLYNOMIALS = {
    "pair_exp": (_exp_rest, -REACH_EXP, REACH_EXP, 3, None, ()),
    "pair_log": (_log_rest, -REACH_LOG, REACH_LOG, 3, None, ()),
    "pair_sin": (_sin_rest, TINY, REACH_SIN ** 2, 2, None, ()),
    "pair_cos": (_cos_rest, TINY, REACH_SIN ** 2, 2, None, ()),
}
NUMBERS = {
    "pair_exp_table": _exp, "pair_log_table": _log, "pair_sin_table": _sin,
    "pair_erf_table": lambda: _series("erf", MP.erf, [i / 8 for i in ENTRIES], 6),
    "pair_atan_table": _atan}
