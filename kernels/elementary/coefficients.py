"""Regenerates `tables.json`: ``python3 -m tlgrad.kernels.elementary.coefficients [NAME ...]``.

`POLYNOMIALS` are fitted (see `fit`), `NUMBERS` computed; both with 220 bits of mpmath or more. The
file holds hexadecimal floats, so that a table is exactly what was generated; a test generates them
again.
"""
import json
import pathlib
import struct
import sys

from tqdm import tqdm

from . import pair_tables
from .fit import MP, fit

PATH = pathlib.Path(__file__).with_name("tables.json")
LN2 = MP.log(2)
HALF = LN2 / 2 * MP.mpf("1.00001")
LOG_BINS = 16


def rounded(x, lsb):
    """`x` rounded to a multiple of 2**lsb."""
    return MP.ldexp(MP.nint(MP.ldexp(x, -lsb)), lsb)


def words(x, count):
    """`x` as `count` floats whose sum has about 53 * count bits."""
    out = []
    for _ in range(count):
        out.append(float(x))
        x -= MP.mpf(out[-1])
    return out


def _reduction_steps():
    """pi/2 in words of 53, 27 and 53 bits: products of the second with integers below 2**26 are exact."""
    first = MP.mpf(float(MP.pi / 2))
    second = rounded(MP.pi / 2 - first, -80)
    return [float(first), float(second), float(MP.pi / 2 - first - second)]


def _few_bits_first(x, lsb):
    """`x` in three words, the first a multiple of 2**lsb."""
    return [float(rounded(x, lsb)), *words(x - rounded(x, lsb), 2)]


# ---------------------------------------------------------------- the logarithm's 16 bins

def _log_bins(offset):
    """Per bin of 1/16 of an octave from the word `offset` up: c near 1/z, z * c - 1 exact."""
    reciprocals, reach = [], 0
    for i in range(LOG_BINS):
        low, high = (MP.mpf(struct.unpack("<d", struct.pack("<q", offset + (j << 48)))[0])
                     for j in (i, i + 1))
        steps = 32 if high <= 1 else 64
        c = MP.mpf(1) if low < 1 < high else MP.nint(2 / (low + high) * steps) / steps
        reciprocals.append(c)
        reach = max(reach, abs(low * c - 1), abs(high * c - 1))
    return reciprocals, reach


LOG_OFFSET = min((0x3fe6000000000000 + (j << 43) for j in range(32)), key=lambda o: _log_bins(o)[1])
LOG_C, LOG_REACH = _log_bins(LOG_OFFSET)


def _log_table():
    high = [rounded(-MP.log(c), -42) for c in LOG_C]
    return {"log_c": [float(c) for c in LOG_C], "log_high": [float(h) for h in high],
            "log_low": [float(-MP.log(c) - h) for c, h in zip(LOG_C, high)],
            "log_one": [float(-MP.log(c)) for c in LOG_C],
            "log_bits": [float(LOG_OFFSET >> 32)]}


# ---------------------------------------------------------------- polynomials

def _over(function):
    """function(sqrt z) / sqrt z: the even part of an odd function, as a function of z."""
    return lambda z: function(MP.sqrt(z)) / MP.sqrt(z)


def _expm1_over(r):
    return MP.expm1(r) / r if r else MP.mpf(1)


def _log1p_over(r):
    return MP.log1p(r) / r if r else MP.mpf(1)


def _scaled_erfcx(t):
    """(1 + 2x) exp(x**2) erfc(x) at x = 4 (1 + t) / (1 - t)."""
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * MP.exp(x * x) * MP.erfc(x)


def _loggamma_over(e):
    """lgamma(2 + e) / e."""
    return MP.loggamma(2 + e) / e if e else 1 - MP.euler


DIGAMMA_ROOT = MP.findroot(lambda x: MP.psi(0, x), 1.46)


def _digamma_over(e):
    """digamma(x) / (x - root) at x = 1.5 + e."""
    return MP.psi(0, 1.5 + e) / (1.5 + e - DIGAMMA_ROOT)


def _head(x):
    """`x` to 106 bits: a leading coefficient that a body holds in two words."""
    return MP.fsum(map(MP.mpf, words(x, 2)))


TINY = MP.mpf(2) ** -60
QUARTER_PI = MP.pi / 4 * MP.mpf("1.0001")
POLYNOMIALS = {
    "exp_narrow": (MP.exp, -HALF, HALF, 11, None, ()),
    "expm1_narrow": (_expm1_over, -HALF, HALF, 11, None, (1,)),
    "expm1_eighth": (_expm1_over, -HALF / 8, HALF / 8, 7, None, (1,)),
    "expm1_sixteenth": (_expm1_over, -HALF / 16, HALF / 16, 7, None, (1, 0.5)),
    "expm1_wide": (_expm1_over, -HALF, HALF, 13, None, (1, 0.5)),
    "log_narrow": (_log1p_over, -LOG_REACH, LOG_REACH, 9, None, (1,)),
    "log_wide": (_log1p_over, -LOG_REACH, LOG_REACH, 12, None, (1, -0.5)),
    "log_word": (_log1p_over, -LOG_REACH, LOG_REACH, 10, None, (1, -0.5)),
    "sin": (_over(MP.sin), TINY, QUARTER_PI ** 2, 8, lambda z: MP.mpf(1), (1,)),
    "cos": (lambda z: MP.cos(MP.sqrt(z)), TINY, QUARTER_PI ** 2, 9, lambda z: MP.mpf(1), (1, -0.5)),
    "sin_sixteenth": (_over(MP.sin), TINY, (QUARTER_PI / 4) ** 2, 5, lambda z: MP.mpf(1), (1,)),
    "cos_sixteenth": (lambda z: MP.cos(MP.sqrt(z)), TINY, (QUARTER_PI / 4) ** 2, 6, lambda z: MP.mpf(1),
                      (1, -0.5)),
    "atan": (_over(MP.atan), TINY, MP.mpf("0.0626") ** 2, 7, None, (1,)),
    "asin": (_over(MP.asin), TINY, MP.mpf("0.2501"), 15, None, (1,)),
    "erfcx": (_scaled_erfcx, -MP.mpf("0.52"), MP.mpf("0.747"), 23, None,
              (_head(_scaled_erfcx(MP.mpf(0))),)),
    "erfcx_narrow": (_scaled_erfcx, -1, MP.mpf("0.441"), 21, None, ()),
    "loggamma": (_loggamma_over, -0.5, 0.5, 20, None,
                  (_head(1 - MP.euler), _head((MP.zeta(2) - 1) / 2))),
    "digamma": (_digamma_over, -0.5, 0.5, 24, None, (_head(_digamma_over(MP.mpf(0))),)),
    "cbrt": (lambda z: z ** (-MP.mpf(1) / 3), 1, 2, 6, None, ()),
    **pair_tables.POLYNOMIALS,
}


# ---------------------------------------------------------------- numbers

def _payne_hanek():
    """2/pi * 2**e mod 4 in four words of 53 bits, for the binary64 exponents from 2**19 up."""
    table = {f"two_over_pi_{j}": [] for j in range(4)}
    with MP.workprec(1400):
        for e in range(1042, 2047):
            y = 2 / MP.pi * MP.mpf(2) ** (e - 1075)
            y -= 4 * MP.floor(y / 4)
            for j in range(4):
                word = MP.ldexp(MP.floor(MP.ldexp(y, 50 + 53 * j)), -(50 + 53 * j))
                table[f"two_over_pi_{j}"].append(float(word))
                y -= word
    return table


def _powers(count):
    pairs = [words(MP.mpf(2) ** (MP.mpf(i) / count), 2) for i in range(count)]
    return {f"exp2_{count}_high": [p[0] for p in pairs], f"exp2_{count}_low": [p[1] for p in pairs]}


def _powers_by_word():
    """2**(i/16) less i in bit 48 of its word, to which k is added there; the rest relative to it."""
    pairs = [words(MP.mpf(2) ** (MP.mpf(i) / 16), 2) for i in range(16)]
    bits = [struct.unpack("<q", struct.pack("<d", high))[0] - (i << 48) for i, (high, _) in enumerate(pairs)]
    return {"exp2_16_word": [struct.unpack("<d", struct.pack("<q", w))[0] for w in bits],
            "exp2_16_rest": [low / high for high, low in pairs]}


def _erf_grid():
    points = [MP.mpf(k) / 128 for k in range(6 * 128 + 1)]
    pairs = [words(MP.erf(c), 2) for c in points]
    slopes = [words(2 / MP.sqrt(MP.pi) * MP.exp(-c * c), 2) for c in points]
    rest = [0.0] * (1024 - len(points))              # a NaN may index anything
    return {"erf_high": [p[0] for p in pairs] + rest, "erf_low": [p[1] for p in pairs] + rest,
            "erf_slope": [s[0] for s in slopes] + rest,
            "erf_slope_low": [s[1] for s in slopes] + rest}


def _erf_pieces():
    """erf(x) / x on two and erf(x) on fourteen intervals of 3/8: tables of coefficients of x less the middle.

    High powers need few bits: coefficients 9 and 11 are the last bits of 10 and 12, the constant's second word
    those of 8.
    """
    half, pieces = MP.mpf(3) / 16, []
    for i in range(16):
        middle = half * (2 * i + 1)

        def near(t):
            return MP.erf(middle + t) / (middle + t if i < 2 else 1)
        head = words(near(MP.mpf(0)), 2)
        known = {0: MP.fsum(map(MP.mpf, head))}

        def rest(t):
            return near(t) - MP.fsum(c * t ** k for k, c in known.items())

        def last(count):
            return fit(rest, -half, half, count, lambda t: 1 / near(t), (0,), 0)[0]
        for k in (12, 10):
            *_, below, above = last(k + 1)
            known[k], known[k - 1] = map(MP.mpf, _packed(above, below, 32))
        known[8] = MP.mpf(_packed(last(9)[8], head[1], 22)[0])
        low = fit(rest, -half, half, 8, lambda t: 1 / near(t), (0,), 2)[0]
        pieces.append([head[0], *low[1:], *(float(known[k]) for k in (8, 10, 12))])
    return dict(zip((f"erf_piece_{k}" for k in (*range(9), 10, 12)), map(list, zip(*pieces)), strict=True))


def _packed(upper, lower, bits):
    """(x, y): y is `lower` to `bits` bits of its word; x ends with them, and is the nearest such to `upper`."""
    above, below = struct.unpack("<2Q", struct.pack("<2d", upper, lower))
    kept = (below >> 63 - bits) + 1 >> 1
    word = above - ((above - kept + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
    return struct.unpack("<2d", struct.pack("<2Q", word, kept << 64 - bits))


def _atan_grid():
    pairs = [words(MP.atan(MP.mpf(k) / 8), 2) for k in range(9)] + [[0.0, 0.0]] * 7
    return {"atan_high": [p[0] for p in pairs], "atan_low": [p[1] for p in pairs]}


def _circle():
    pairs = [words(MP.sinpi(MP.mpf(k) / 8), 2) for k in range(16)]
    return {"sin_16_high": [p[0] for p in pairs], "sin_16_low": [p[1] for p in pairs]}


def _bernoulli():
    """The asymptotic series of lgamma and digamma, in powers of 1 / x**2."""
    return {"stirling": [float(MP.bernoulli(2 * k) / (2 * k * (2 * k - 1))) for k in range(1, 13)],
            "digamma_tail": [float(-MP.bernoulli(2 * k) / (2 * k)) for k in range(1, 13)]}


def _constants():
    root_8_pi, root_half = MP.sqrt(8 / MP.pi), MP.sqrt(MP.mpf(1) / 2)
    return {
        "gelu": [*words(root_8_pi, 2), *words(root_8_pi * MP.mpf("0.044715"), 2)],
        "root_half": words(root_half, 2), "log_root_2pi": words(MP.log(2 * MP.pi) / 2, 2),
        "log_pi": words(MP.log(MP.pi), 2), "digamma_root": words(DIGAMMA_ROOT, 3),
        "erfcx_head": words(_scaled_erfcx(MP.mpf(0)), 2), "loggamma_head": words(1 - MP.euler, 2),
        "loggamma_second": words((MP.zeta(2) - 1) / 2, 2),
        "digamma_head": words(_digamma_over(MP.mpf(0)), 2),
        "ln2": [float(rounded(LN2, -42)), float(LN2 - rounded(LN2, -42))],
        "ln2_words": words(LN2, 2),
        "ln2_eighth": words(LN2 / 8, 2),
        "ln2_sixteenth": [float(rounded(LN2 / 16, -46)), float(LN2 / 16 - rounded(LN2 / 16, -46))],
        "ln2_sixteenth_words": _few_bits_first(LN2 / 16, -46),
        "inverse_factorials": [w for n in range(2, 15) for w in words(1 / MP.factorial(n), 2)],
        "log2_e": words(1 / LN2, 2), "log10_e": words(1 / MP.log(10), 2),
        "ln10": words(MP.log(10), 2),
        "log2_10": words(MP.log(10) / LN2, 1),
        "log10_2_sixteenth": [float(rounded(LN2 / MP.log(10) / 16, -48)),
                              float(LN2 / MP.log(10) / 16 - rounded(LN2 / MP.log(10) / 16, -48))],
        "half": [0.5, 0.0],
        "half_pi": words(MP.pi / 2, 3), "half_pi_steps": _reduction_steps(),
        "pi": words(MP.pi, 2), "two_over_pi": words(2 / MP.pi, 1),
        "two_over_root_pi": words(2 / MP.sqrt(MP.pi), 2),
        "cbrt_of_power_high": [words(2 ** (MP.mpf(j) / 3), 2)[0] for j in (0, 1, 2, 0)],
        "cbrt_of_power_low": [words(2 ** (MP.mpf(j) / 3), 2)[1] for j in (0, 1, 2, 0)],
    }


NUMBERS = {
    "constants": _constants, "log": _log_table, "payne_hanek": _payne_hanek,
    "bernoulli": _bernoulli, "erf": _erf_grid, "erf_pieces": _erf_pieces, "circle": _circle,
    "atan_grid": _atan_grid, "exp2_16": lambda: _powers(16), "exp2_8": lambda: _powers(8),
    "exp2_16_word": _powers_by_word, **pair_tables.NUMBERS}


def generate(name):
    """{table name: floats} of one entry of `POLYNOMIALS` or `NUMBERS`."""
    if name in NUMBERS:
        return NUMBERS[name]()
    bits = 24 if name in pair_tables.POLYNOMIALS else 53
    function, low, high, count, weight, fixed = POLYNOMIALS[name]
    return {name: fit(function, low, high, count, weight, fixed, bits=bits)[0]}


def main(names):
    tables = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name in tqdm(names or [*NUMBERS, *POLYNOMIALS]):
        tables |= {key: [x.hex() for x in values] for key, values in generate(name).items()}
    lines = [f'"{key}": {json.dumps(tables[key])}' for key in sorted(tables)]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
