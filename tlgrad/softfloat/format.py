"""Binary formats: how a word of bits stands for a number.

A word is ``sign | exponent code | fraction``. With ``E`` exponent bits, ``F`` fraction bits and
a bias, a normal word has the value ``(-1)**sign * (1 + fraction/2**F) * 2**(code - bias)`` and a
word of exponent code 0 is subnormal, ``(-1)**sign * fraction * 2**(1 - bias - F)``. What the
largest codes mean is the ``specials`` convention (IEEE 754-2019, section 3.4; OCP 8-bit and
microscaling specifications):

========== ============================ ================== ==================== =================
specials   exponent all ones            NaN                overflow to nearest  invalid operation
========== ============================ ================== ==================== =================
"ieee"     infinity and NaN             quiet, sign 0      infinity             NaN
"fn"       finite, but for all ones     all ones           NaN                  NaN
"fnuz"     finite                       the word of -0     NaN                  NaN
"finite"   finite                       none               largest finite       +0
"scale"    finite (unsigned, no zero)   all ones           NaN                  NaN
========== ============================ ================== ==================== =================
"""
from __future__ import annotations

from operator import index
from typing import NamedTuple

SPECIALS = ("ieee", "fn", "fnuz", "finite", "scale")
FINITE, INFINITE, NAN = "finite", "infinite", "nan"


class Parts(NamedTuple):
    """A decoded word of value ``(-1)**sign * sig * 2**exponent``, if ``kind`` is FINITE."""

    kind: str
    sign: int
    sig: int
    exponent: int


class Binary:
    """A binary floating-point format; equal descriptions are one object.

    ``exponent_bits`` is 2..30 and ``fraction_bits`` 1..4096; ``bias`` defaults to ``2**(E-1) - 1``
    (one more for "fnuz"). Raises ValueError for a description that no word can follow.

    >>> Binary(15, 112) is binary128
    True
    >>> Binary(4, 3, specials="fn")
    float8_e4m3fn
    >>> Binary(6, 9)
    Binary(6, 9)
    """

    __slots__ = ("E", "F", "specials", "bias", "name", "width", "precision", "emin", "emax",
                 "sign_bit", "inf", "nan", "max", "min_normal", "min_subnormal", "__weakref__")
    _interned: dict = {}

    def __new__(cls, exponent_bits, fraction_bits, specials="ieee", bias=None, name=None):
        E, F = index(exponent_bits), index(fraction_bits)
        _check(E, F, specials)
        bias = (1 << (E - 1)) - 1 + (specials == "fnuz") if bias is None else index(bias)
        key = (E, F, specials, bias)
        known = cls._interned.get(key)
        if known is None:
            known = cls._interned.setdefault(key, cls._make(E, F, specials, bias, name))
        elif name not in (None, known.name):
            raise ValueError(f"Binary({E}, {F}, {specials!r}) is already named {known.name!r}; "
                             f"leave out name={name!r}")
        return known

    @classmethod
    def _make(cls, E, F, specials, bias, name):
        self = object.__new__(cls)
        signed = specials != "scale"
        magnitude = (1 << (E + F)) - 1
        self.E, self.F, self.specials, self.bias, self.name = E, F, specials, bias, name
        self.width, self.precision = signed + E + F, F + 1
        self.sign_bit = (1 << (E + F)) if signed else 0
        self.emin = 1 - bias if signed else -bias
        self.inf = ((1 << E) - 1) << F if specials == "ieee" else None
        self.nan = {"ieee": (self.inf or 0) | (1 << F >> 1), "fn": magnitude, "fnuz": self.sign_bit,
                    "finite": None, "scale": magnitude}[specials]
        self.max = {"ieee": (self.inf or 0) - 1, "fn": magnitude - 1, "scale": magnitude - 1}.get(
            specials, magnitude)
        self.min_normal = 1 << F if signed else 0
        self.min_subnormal = 1 if signed else 0
        self.emax = (self.max >> F) - bias
        return self

    def __reduce__(self):
        return Binary, (self.E, self.F, self.specials, self.bias)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        del memo
        return self

    def __setattr__(self, name, value):
        if hasattr(self, name):
            raise AttributeError(f"a format is immutable: {self!r}.{name}")
        object.__setattr__(self, name, value)

    def __repr__(self):
        if self.name:
            return self.name
        extra = "" if self.specials == "ieee" else f", specials={self.specials!r}"
        if self.bias != (1 << (self.E - 1)) - 1 + (self.specials == "fnuz"):
            extra += f", bias={self.bias}"
        return f"Binary({self.E}, {self.F}{extra})"

    # ---- words

    @property
    def signed(self):
        """Whether words carry a sign."""
        return self.sign_bit != 0

    @property
    def has_negative_zero(self):
        """Whether -0 is a word of its own."""
        return self.signed and self.specials != "fnuz"

    @property
    def itemsize(self):
        """Bytes of a stored word: 1, 2, 4 or 8, then whole 64-bit words."""
        if self.width > 64:
            return 8 * -(-self.width // 64)
        return 1 << max(0, (self.width - 1).bit_length() - 3)

    @property
    def eps(self):
        """The word of the gap between 1 and the next larger number."""
        return self.power_of_two(-self.F)

    @property
    def one(self):
        """The word of 1."""
        return self.power_of_two(0)

    @property
    def digits10(self):
        """Decimal digits that every number of the format carries (binary32 6, binary128 33)."""
        return self.F * 30103 // 100000

    @property
    def max_digits10(self):
        """Decimal digits that always read back the same (binary32 9, binary128 36)."""
        return 2 + self.precision * 30103 // 100000

    def power_of_two(self, exponent):
        """The word of ``2**exponent``, which must be representable.

        >>> hex(binary32.power_of_two(-1))
        '0x3f000000'
        """
        if not self.signed:
            return exponent - self.emin
        if exponent >= self.emin:
            return (exponent - self.emin + 1) << self.F
        return 1 << (exponent - self.emin + self.F)

    def zero(self, sign=0):
        """The word of zero; "scale" formats have none and give NaN."""
        if not self.signed:
            return self.nan
        return self.sign_bit if sign and self.has_negative_zero else 0

    def infinity(self, sign=0):
        """What an infinite value becomes: infinity, NaN, or the largest number ("finite")."""
        if self.inf is None:
            return self.nan if self.nan is not None else self.max | (sign and self.sign_bit)
        return self.inf | (sign and self.sign_bit)

    def largest(self, sign=0):
        """The largest finite number with this sign."""
        if sign and not self.signed:
            return self.nan
        return self.max | (sign and self.sign_bit)

    def invalid(self):
        """The canonical result of an invalid operation."""
        return 0 if self.nan is None else self.nan

    def is_nan(self, word):
        """Whether the word is a NaN, of any payload and sign."""
        magnitude = word & ~self.sign_bit
        if self.specials == "ieee":
            return magnitude > self.inf
        if self.specials == "fnuz":
            return word == self.nan
        return self.nan is not None and magnitude == self.nan

    def is_signalling(self, word):
        """Whether the word is a signalling NaN (top fraction bit clear; "ieee" only)."""
        return self.specials == "ieee" and self.is_nan(word) and not word >> (self.F - 1) & 1

    def unpack(self, word):
        """Decode a word.

        >>> binary16.unpack(0x3c00)
        Parts(kind='finite', sign=0, sig=1024, exponent=-10)
        """
        if self.is_nan(word):
            return Parts(NAN, 0, 0, 0)
        if not self.signed:
            return Parts(FINITE, 0, 1, word - self.bias)
        sign = word >> (self.E + self.F) & 1
        magnitude = word & (self.sign_bit - 1)
        if magnitude == self.inf:
            return Parts(INFINITE, sign, 0, 0)
        code, sig = magnitude >> self.F, magnitude & ((1 << self.F) - 1)
        if code:
            sig |= 1 << self.F
        return Parts(FINITE, sign, sig, max(code, 1) - self.bias - self.F)

    def classify(self, word):
        """One of "nan", "infinite", "zero", "subnormal", "normal"."""
        kind, _, sig, _ = self.unpack(word)
        if kind != FINITE:
            return kind
        if sig == 0:
            return "zero"
        return "normal" if sig >> self.F else "subnormal"


def _check(E, F, specials):
    if specials not in SPECIALS:
        raise ValueError(f"specials={specials!r}; expected one of {', '.join(map(repr, SPECIALS))}")
    low = 0 if specials == "scale" else 1
    if not 2 <= E <= 30 or not low <= F <= 4096:
        raise ValueError(f"Binary({E}, {F}): expected 2..30 exponent bits and "
                         f"{low}..4096 fraction bits")
    if specials == "scale" and F:
        raise ValueError(f"Binary({E}, {F}, 'scale'): a scale has no fraction bits; "
                         f"write Binary({E}, 0, 'scale')")


binary16 = Binary(5, 10, name="binary16")
bfloat16 = Binary(8, 7, name="bfloat16")
tf32 = Binary(8, 10, name="tf32")
binary32 = Binary(8, 23, name="binary32")
binary64 = Binary(11, 52, name="binary64")
binary128 = Binary(15, 112, name="binary128")
binary256 = Binary(19, 236, name="binary256")
float8_e4m3fn = Binary(4, 3, "fn", name="float8_e4m3fn")
float8_e5m2 = Binary(5, 2, name="float8_e5m2")
float8_e4m3fnuz = Binary(4, 3, "fnuz", name="float8_e4m3fnuz")
float8_e5m2fnuz = Binary(5, 2, "fnuz", name="float8_e5m2fnuz")
float8_e3m4 = Binary(3, 4, name="float8_e3m4")
float6_e2m3fn = Binary(2, 3, "finite", name="float6_e2m3fn")
float6_e3m2fn = Binary(3, 2, "finite", name="float6_e3m2fn")
float4_e2m1fn = Binary(2, 1, "finite", name="float4_e2m1fn")
float8_e8m0fnu = Binary(8, 0, "scale", name="float8_e8m0fnu")

NAMED = {f.name: f for f in (
    binary16, bfloat16, tf32, binary32, binary64, binary128, binary256, float8_e4m3fn, float8_e5m2,
    float8_e4m3fnuz, float8_e5m2fnuz, float8_e3m4, float6_e2m3fn, float6_e3m2fn, float4_e2m1fn,
    float8_e8m0fnu)}
