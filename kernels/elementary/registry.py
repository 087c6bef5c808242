"""`FUNCTIONS`: every elementary function by its primitive's name, and how a body becomes a rounded
result."""
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..expr import copysign, rare, select, to_odd
from . import errorfunction, exponential, gamma, inverse, logarithm, logsum, pairs, powers, trigonometric
from .exceptional import EXCEPTIONAL
from .tables import numbers
from .words import TINY, multiple

TIE = -(1 << 63)
AT_ZERO, SELF = "value at 0", "x"


@dataclass(frozen=True)
class Elementary:
    """A function: its two bodies and what is promised of them.

    `wide` is the body for binary64 arguments; `narrow` takes binary64 values that are exact
    binary32 (or narrower) numbers and returns a binary64 value to be rounded once. Both are
    functions of `Value`s. The error of the binary64 result is at most `ulps` units in the last place, plus
    `absolute` times the smaller argument in size (two arguments) or `absolute` where x < 0 (one); `rounded`
    says that the binary32 result is correctly rounded for every input. `tiny` is what the function is for
    |x| < `TINY`: its value at 0 (`AT_ZERO`), x itself (`SELF`), or x times the two-word constant of that name;
    None where the body sees to it. `pairs`, if any, takes a binary32 Value to (result, whether the narrow body
    has to decide).
    """

    name: str
    arity: int
    narrow: Callable
    wide: Callable
    ulps: float
    rounded: bool = True
    merges: bool = False                # the narrow body takes `Ties` and merges their branch
    absolute: float = 0.0
    tiny: str | None = None
    pairs: Callable | None = None

    @property
    def source(self):
        """Where the algorithm comes from: the docstring of the module of the body."""
        return sys.modules[self.wide.__module__].__doc__

    @property
    def exceptional(self):
        """{binary32 input word: result word} where one rounding of the body's value would be
        wrong."""
        return EXCEPTIONAL.get(self.name, {})


class Ties:
    """The exceptional inputs of a function at `x`: whether one may be there, and the value settled."""

    def __init__(self, x, cases):
        self.x, self.cases = x, cases

    def found(self, y):
        """Whether the binary64 `y` is a midpoint of two normal binary32 numbers."""
        return (y.bits() << 35).eq(TIE) if self.cases else y.ne(y)

    def settled(self, y):
        for word, result in self.cases.items():
            value = struct.unpack("<f", struct.pack("<I", result))[0]
            y = select(self.x.bits().eq(word), value, y)
        return y


def _narrow(function, ties, values):
    """The value of the narrow body, with the exceptional inputs settled."""
    if function.merges:
        return function.narrow(*values, ties)
    y = function.narrow(*values)
    return rare(ties.found(y), lambda: (ties.settled(y),), y) if ties.cases else y


def unrounded(name, *values):
    """The binary64 value of the function at f64 Values that hold binary32 or narrower numbers.

    Rounding it once to binary16 or bfloat16 gives the function's result in those formats.
    """
    return _narrow(FUNCTIONS[name], Ties(values[0], {}), values)


def _guarded(function, x):
    """The wide body, kept from tiny arguments: some processors need 150 cycles for a product of subnormals."""
    if function.tiny == AT_ZERO:
        return function.wide(x + TINY)          # far below the last place of the value at 0
    a = x.abs()
    tiny = a < TINY
    y = function.wide(select(tiny, 0.0, x))
    if function.tiny == SELF:
        return select(tiny, x, y)
    return rare(tiny, lambda: (copysign(multiple(a, *numbers(function.tiny)), x.sign()),), y)


def render(name, *values):
    """The function applied to Values of one type, f32 or f64; the result has that type.

    >>> import numpy as np
    >>> from tlgrad.kernels.expr import Numpy, Value
    >>> render("exp", Value(Numpy(), np.float64([0.0]), "f64")).handle
    array([1.])
    """
    function = FUNCTIONS[name]
    if values[0].type == "f64":
        return function.wide(*values) if function.tiny is None else _guarded(function, *values)
    if has_pairs(name, values[0].emitter):
        y, doubt = function.pairs(*values)
        return rare(doubt, partial(_narrow_words, name, *values), y)
    return rounded_once(name, *values)


def has_pairs(name, emitter):
    """Whether `render` takes the body in pairs for an f32 Value of this emitter."""
    return bool(FUNCTIONS[name].pairs and emitter.permutes)


def render_abreast(calls):
    """`render` of several (name, f32 Value) that have bodies in pairs, none the result of another: they take
    turns, and have one branch for what is rare."""
    emitter = calls[0][1].emitter
    found = emitter.abreast([partial(FUNCTIONS[name].pairs, value) for name, value in calls])
    return emitter.rares([(doubt, partial(_narrow_words, *call), y) for call, (y, doubt) in zip(calls, found)])


def _narrow_words(name, value):
    return (rounded_once(name, value),)


def rounded_once(name, *values):
    """The function at f32 Values: the narrow body, rounded once."""
    function = FUNCTIONS[name]
    ties = Ties(values[0], function.exceptional)
    return _narrow(function, ties, [v.f64() for v in values]).f32()


def render_half(name, *values):
    """The function applied to f32 Values that hold binary16 numbers: the f32 Value, rounded to odd, that
    the caller rounds to binary16."""
    return to_odd(unrounded(name, *[v.f64() for v in values]))


def _table(*rows):
    return {row[0]: Elementary(*row, tiny=_TINY.get(row[0]), pairs=pairs.BODIES.get(row[0])) for row in rows}


_TINY = {
    **dict.fromkeys("exp exp2 exp10 cos cospi cosh erfc logistic softplus".split(), AT_ZERO),
    **dict.fromkeys("expm1 tan atan sinh asinh atanh".split(), SELF),
    "sinpi": "pi", "gelu_erf": "half", "gelu_tanh": "half"}


E, L, T, A, P, R, G = (exponential, logarithm, trigonometric, inverse, powers, errorfunction,
                       gamma)
FUNCTIONS = _table(
    ("exp", 1, E.exp_narrow, E.exp_wide, 0.55),
    ("exp2", 1, E.exp2, E.exp2, 0.55),
    ("exp10", 1, E.exp10, E.exp10, 0.55),
    ("expm1", 1, E.expm1_narrow, E.expm1_wide, 0.55),
    ("log", 1, L.log_narrow, L.log_wide, 0.57, True, True),
    ("log2", 1, L.log2, L.log2, 0.51),
    ("log10", 1, L.log10, L.log10, 0.51),
    ("log1p", 1, L.log1p_narrow, L.log1p_wide, 0.57, True, True),
    ("sin", 1, T.sin_narrow, T.sin_wide, 0.72),
    ("cos", 1, T.cos_narrow, T.cos_wide, 0.72),
    ("tan", 1, T.tan, T.tan, 0.85),
    ("sinpi", 1, T.sinpi, T.sinpi, 0.75),
    ("cospi", 1, T.cospi, T.cospi, 0.75),
    ("asin", 1, A.asin, A.asin, 0.65),
    ("acos", 1, A.acos, A.acos, 0.65),
    ("atan", 1, A.atan_narrow, A.atan_wide, 0.51),
    ("atan2", 2, A.atan2, A.atan2, 0.51, False),
    ("sinh", 1, E.sinh, E.sinh, 0.60),
    ("cosh", 1, E.cosh, E.cosh, 0.60),
    ("tanh", 1, E.tanh_narrow, E.tanh_wide, 0.55),
    ("asinh", 1, L.asinh, L.asinh, 0.60),
    ("acosh", 1, L.acosh, L.acosh, 0.60),
    ("atanh", 1, L.atanh, L.atanh, 0.60),
    ("logistic", 1, E.logistic_narrow, E.logistic_wide, 0.60),
    ("softplus", 1, L.softplus_narrow, L.softplus, 0.60),
    ("logaddexp", 2, logsum.logaddexp, logsum.logaddexp, 0.60, False, False, 2.0 ** -100),
    ("pow", 2, L.power, L.power, 0.65, False),
    ("erf", 1, R.erf_narrow, R.erf_wide, 0.72),
    ("erfc", 1, R.erfc_narrow, R.erfc, 0.65),
    ("gelu_erf", 1, R.gelu_erf_narrow, R.gelu_erf, 0.70),
    ("gelu_tanh", 1, R.gelu_tanh_narrow, R.gelu_tanh, 0.60),
    ("lgamma", 1, G.lgamma, G.lgamma, 0.70, False, False, 2.0 ** -54),
    ("gamma", 1, G.gamma, G.gamma, 0.75, False),
    ("digamma", 1, G.digamma, G.digamma, 0.85, False, False, 2.0 ** -51),
    ("rsqrt", 1, P.rsqrt_narrow, P.rsqrt, 0.51),
    ("cbrt", 1, P.cbrt, P.cbrt, 0.51),
    ("hypot", 2, P.hypot_narrow, P.hypot_wide, 0.51),
)
