"""One row per primitive: what its value and its derivatives are compared with.

    Scalar  an elementwise function of real numbers: reference in mpmath at 60 digits, bounds in ulps
    Words   any primitive: example calls, with a plain NumPy or Python reference, compared by words
    Calls   a primitive that carries a program: callables that bind it

`all_rows()` also reads ``tests/*/opspec_*.py``: each area adds rows of its own (a list ROWS).
"""
from __future__ import annotations

import importlib
import importlib.util
import pathlib
from dataclasses import dataclass, field
from typing import Any, Callable

import mpmath
import numpy as np

import tlgrad

M = mpmath.MPContext()
M.dps = 60
inf, nan = float("inf"), float("nan")


@dataclass(frozen=True)
class Scalar:
    """reference: exact operands -> exact value.  domain: a range for each operand.

    ulps: bound on the error of float64 values; narrow: of float32, bfloat16 and float16 (0.5 is
    correct rounding).  slope, curve: bounds in ulps on first and second partials (float64; None:
    not asked).  special: (operands, value), compared by words, in float64 and float32.
    singular: (operands, partials) at points where the derivative is a limit or a convention.
    complex_at: points at which a complex argument is compared with the same reference.
    """
    name: str
    reference: Callable
    domain: tuple
    ulps: float = 0.5
    narrow: float = 0.5
    slope: float | None = None
    curve: float | None = None
    special: tuple = ()
    singular: tuple = ()
    complex_at: tuple = ()
    params: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Words:
    """calls: (operands, params, reference(*operands) -> array or list of arrays)...

    order: how many derivatives `check_grads` compares (0 for integers and steps).
    """
    name: str
    calls: tuple
    order: int = 2


@dataclass(frozen=True)
class Calls:
    """calls: (callable, arguments, expected)...; each binds the primitive."""
    name: str
    calls: tuple
    order: int = 2


def f64(*values):
    return np.array(values, np.float64)


def _exp2(x):
    return M.power(2, x)


def _cbrt(x):
    return M.sign(x) * M.cbrt(abs(x)) if not isinstance(x, M.mpc) else M.power(x, M.mpf(1) / 3)


def _logistic(x):
    return 1 / (1 + M.exp(-x))


def _softplus(x):
    return M.log1p(M.exp(x))


def _logaddexp(x, y):
    return M.log(M.exp(x) + M.exp(y))


def _gelu_erf(x):
    return x * M.erfc(-x / M.sqrt(2)) / 2


def _gelu_tanh(x):
    return x * _logistic(M.sqrt(8 / M.pi) * (x + M.mpf(44715) / 1000000 * x ** 3))


def _round_even(x):
    low = M.floor(x)
    gap = x - low
    return low if gap < 0.5 or gap == 0.5 and int(low) % 2 == 0 else low + 1


def _remainder(x, y):
    return x - M.floor(x / y) * y


def _copysign(x, y):
    return abs(x) if y >= 0 else -abs(x)


Z = (0.3 + 0.4j, -1.2 + 0.7j, 0.5 - 1.5j, 1.1 + 0.05j)     # off every branch cut

ARITHMETIC = [
    Scalar("add", lambda x, y: x + y, ((-1e3, 1e3),) * 2, slope=0, curve=0, complex_at=Z,
           special=(((0.0, -0.0), 0.0), ((-0.0, -0.0), -0.0), ((inf, -inf), nan), ((1e308, 1e308), inf))),
    Scalar("sub", lambda x, y: x - y, ((-1e3, 1e3),) * 2, slope=0, curve=0, complex_at=Z,
           special=(((0.0, 0.0), 0.0), ((-0.0, 0.0), -0.0), ((inf, inf), nan))),
    Scalar("mul", lambda x, y: x * y, ((-1e2, 1e2),) * 2, slope=0, curve=0, complex_at=Z,
           special=(((0.0, -1.0), -0.0), ((inf, 0.0), nan), ((-inf, 2.0), -inf))),
    Scalar("div", lambda x, y: x / y, ((-1e2, 1e2), (0.01, 1e2)), slope=1.5, curve=4, complex_at=Z,
           special=(((1.0, 0.0), inf), ((1.0, -0.0), -inf), ((0.0, 0.0), nan), ((-0.0, 5.0), -0.0))),
    Scalar("neg", lambda x: -x, ((-1e3, 1e3),), slope=0, curve=0, complex_at=Z,
           special=(((0.0,), -0.0), ((-inf,), inf))),
    Scalar("sqrt", M.sqrt, ((0, 1e4),), slope=1, curve=4, complex_at=Z,
           special=(((-0.0,), -0.0), ((-1.0,), nan), ((inf,), inf)),
           singular=(((0.0,), (inf,)), ((inf,), (0.0,)))),
    Scalar("fma", lambda x, y, z: x * y + z, ((-1e2, 1e2),) * 3, slope=0, curve=0,
           special=(((inf, 0.0, 1.0), nan), ((1.0, -0.0, -0.0), -0.0), ((1e308, 10.0, -inf), -inf))),
    Scalar("sign", lambda x: M.sign(x), ((-1e3, 1e3),),
           special=(((0.0,), 0.0), ((-inf,), -1.0), ((nan,), nan))),
    Scalar("abs", abs, ((-1e3, 1e3),), slope=0, curve=0, special=(((-0.0,), 0.0), ((-inf,), inf)),
           singular=(((0.0,), (0.0,)), ((-0.0,), (0.0,)))),
    Scalar("floor", M.floor, ((-1e3, 1e3),),
           special=(((-0.0,), -0.0), ((-0.5,), -1.0), ((inf,), inf))),
    Scalar("ceil", M.ceil, ((-1e3, 1e3),), special=(((-0.5,), -0.0), ((0.5,), 1.0))),
    Scalar("trunc", lambda x: M.sign(x) * M.floor(abs(x)), ((-1e3, 1e3),),
           special=(((-0.5,), -0.0), ((2.7,), 2.0))),
    Scalar("round", _round_even, ((-1e3, 1e3),),
           special=(((0.5,), 0.0), ((1.5,), 2.0), ((2.5,), 2.0), ((-0.5,), -0.0), ((-1.5,), -2.0))),
    Scalar("floor_divide", lambda x, y: M.floor(x / y), ((-50, 50), (0.5, 7)),
           special=(((-7.0, 2.0), -4.0), ((7.0, -2.0), -4.0))),
    Scalar("remainder", _remainder, ((-50, 50), (0.5, 7)), ulps=0.5, slope=0, curve=0,
           special=(((-7.0, 3.0), 2.0), ((7.0, -3.0), -2.0), ((-6.0, 3.0), 0.0), ((6.0, -3.0), -0.0))),
    Scalar("copysign", _copysign, ((-9, 9),) * 2, slope=0, curve=0,
           special=(((1.0, -0.0), -1.0), ((-0.0, 1.0), 0.0), ((inf, -1.0), -inf))),
    Scalar("max", lambda x, y: max(x, y), ((-9, 9),) * 2, slope=0, curve=0,
           special=(((nan, 1.0), nan), ((1.0, nan), nan), ((0.0, -0.0), -0.0), ((-0.0, 0.0), 0.0)),
           singular=(((2.0, 2.0), (0.0, 1.0)), ((0.0, -0.0), (0.0, 1.0)))),
    Scalar("min", lambda x, y: min(x, y), ((-9, 9),) * 2, slope=0, curve=0,
           special=(((nan, 1.0), nan), ((1.0, nan), nan), ((0.0, -0.0), 0.0), ((-0.0, 0.0), -0.0)),
           singular=(((2.0, 2.0), (1.0, 0.0)),)),
    Scalar("integer_pow", lambda x: x ** 5, ((-9, 9),), ulps=2, narrow=2, slope=4, curve=4, params={"n": 5},
           special=(((0.0,), 0.0), ((-0.0,), -0.0)), singular=(((0.0,), (0.0,)),), complex_at=Z),
]

ELEMENTARY = [
    Scalar("exp", M.exp, ((-40, 40),), 0.55, slope=0.55, curve=0.55, complex_at=Z,
           special=(((-inf,), 0.0), ((0.0,), 1.0), ((1e4,), inf)), singular=(((-inf,), (0.0,)),)),
    Scalar("expm1", M.expm1, ((-40, 40),), 0.6, slope=0.55, curve=0.55, complex_at=Z,
           special=(((-0.0,), -0.0), ((-inf,), -1.0))),
    Scalar("exp2", _exp2, ((-40, 40),), 0.55, slope=1.6, curve=2.7, complex_at=Z,
           special=(((10.0,), 1024.0), ((-inf,), 0.0), ((-1.0,), 0.5))),
    Scalar("exp10", lambda x: M.power(10, x), ((-15, 15),), 0.55, slope=1.6, curve=2.7,
           special=(((3.0,), 1000.0), ((-inf,), 0.0), ((inf,), inf)), singular=(((-inf,), (0.0,)),)),
    Scalar("log", M.log, ((1e-6, 1e6),), 0.57, slope=0.5, curve=2, complex_at=Z,
           special=(((0.0,), -inf), ((-0.0,), -inf), ((1.0,), 0.0), ((-1.0,), nan), ((inf,), inf)),
           singular=(((0.0,), (inf,)),)),
    Scalar("log1p", M.log1p, ((-0.99, 1e4),), 0.57, slope=1.5, curve=4, complex_at=Z,
           special=(((-0.0,), -0.0), ((-1.0,), -inf), ((-2.0,), nan)), singular=(((-1.0,), (inf,)),)),
    Scalar("log2", lambda x: M.log(x, 2), ((1e-6, 1e6),), 0.55, slope=1.2, curve=3, complex_at=Z,
           special=(((8.0,), 3.0), ((0.0,), -inf))),
    Scalar("log10", lambda x: M.log10(x), ((1e-6, 1e6),), 0.55, slope=1.2, curve=3, complex_at=Z,
           special=(((1000.0,), 3.0), ((0.0,), -inf))),
    Scalar("logistic", _logistic, ((-40, 40),), 0.6, slope=2, curve=None, complex_at=Z,
           special=(((0.0,), 0.5), ((inf,), 1.0), ((-inf,), 0.0)),
           singular=(((-inf,), (0.0,)), ((inf,), (0.0,)))),
    Scalar("softplus", _softplus, ((-40, 40),), 0.6, slope=0.6, curve=2, complex_at=Z,
           special=(((-inf,), 0.0), ((inf,), inf), ((1e4,), 1e4)), singular=(((inf,), (1.0,)),)),
    Scalar("logaddexp", _logaddexp, ((-30, 30),) * 2, 0.6, narrow=0.51, slope=2, curve=4,
           special=(((-inf, -inf), -inf), ((inf, inf), inf), ((inf, -inf), inf), ((-inf, 3.0), 3.0)),
           singular=(((-inf, -inf), (0.0, 0.0)), ((inf, inf), (0.0, 0.0)), ((-inf, 0.0), (0.0, 1.0)),
                     ((inf, -inf), (1.0, 0.0)), ((0.0, 0.0), (0.5, 0.5)))),
    Scalar("rsqrt", lambda x: 1 / M.sqrt(x), ((1e-6, 1e6),), 0.55, slope=2, curve=5, complex_at=Z,
           special=(((0.0,), inf), ((-1.0,), nan), ((inf,), 0.0))),
    Scalar("cbrt", _cbrt, ((-1e4, 1e4),), 0.55, slope=4, curve=9,
           special=(((-27.0,), -3.0), ((-0.0,), -0.0)), singular=(((0.0,), (inf,)),)),
    Scalar("pow", lambda x, y: M.power(x, y), ((0.05, 20), (-6, 6)), 1.0, narrow=0.51, slope=9, curve=None,
           special=(((0.0, 0.0), 1.0), ((nan, 0.0), 1.0), ((-2.0, 3.0), -8.0), ((-2.0, 0.5), nan),
                    ((0.0, -1.0), inf), ((-0.0, 3.0), -0.0), ((-0.0, -3.0), -inf)),
           singular=(((0.0, 1.0), (1.0, 0.0)), ((0.0, 2.0), (0.0, 0.0)), ((0.0, 0.5), (inf, 0.0)),
                     ((0.0, 0.0), (0.0, -inf)))),
    Scalar("sin", M.sin, ((-30, 30),), 0.72, slope=0.72, curve=0.72, complex_at=Z,
           special=(((-0.0,), -0.0), ((inf,), nan))),
    Scalar("cos", M.cos, ((-30, 30),), 0.72, slope=0.72, curve=0.72, complex_at=Z,
           special=(((0.0,), 1.0), ((inf,), nan))),
    Scalar("tan", M.tan, ((-1.5, 1.5),), 0.6, slope=3, curve=6, complex_at=Z,
           special=(((-0.0,), -0.0),)),
    Scalar("sinpi", M.sinpi, ((-30, 30),), 0.75, slope=2, curve=3,
           special=(((-0.0,), -0.0), ((-1.0,), -0.0), ((1.5,), -1.0), ((inf,), nan))),
    Scalar("cospi", M.cospi, ((-30, 30),), 0.75, slope=2, curve=3,
           special=(((0.5,), 0.0), ((-1.5,), 0.0), ((1.0,), -1.0), ((inf,), nan))),
    Scalar("asin", M.asin, ((-0.99, 0.99),), 0.8, slope=2, curve=9, complex_at=Z[:3],
           special=(((-0.0,), -0.0), ((2.0,), nan)), singular=(((1.0,), (inf,)), ((-1.0,), (inf,)))),
    Scalar("acos", M.acos, ((-0.99, 0.99),), 0.8, slope=2, curve=9, complex_at=Z[:3],
           special=(((1.0,), 0.0), ((2.0,), nan)), singular=(((1.0,), (-inf,)),)),
    Scalar("atan", M.atan, ((-1e3, 1e3),), 0.6, slope=3, curve=9, complex_at=Z,
           special=(((-0.0,), -0.0),), singular=(((inf,), (0.0,)), ((1.0,), (0.5,)))),
    Scalar("atan2", lambda y, x: M.atan2(y, x), ((-9, 9),) * 2, 0.6, narrow=0.51, slope=4, curve=None,
           special=(((0.0, 0.0), 0.0), ((-0.0, 0.0), -0.0)),
           singular=(((0.0, 0.0), (0.0, 0.0)), ((0.0, -0.0), (0.0, 0.0)))),
    Scalar("hypot", lambda x, y: M.sqrt(x * x + y * y), ((-9, 9),) * 2, 0.55, narrow=0.51, slope=2, curve=None,
           special=(((3.0, 4.0), 5.0), ((-0.0, 0.0), 0.0), ((-inf, 1.0), inf)),
           singular=(((0.0, 0.0), (0.0, 0.0)), ((inf, 1.0), (1.0, 0.0)))),
    Scalar("sinh", M.sinh, ((-30, 30),), 0.6, slope=0.6, curve=0.6, complex_at=Z,
           special=(((-0.0,), -0.0),)),
    Scalar("cosh", M.cosh, ((-30, 30),), 0.6, slope=0.6, curve=0.6, complex_at=Z,
           special=(((-inf,), inf),)),
    Scalar("tanh", M.tanh, ((-20, 20),), 0.6, slope=4, curve=None, complex_at=Z,
           special=(((-0.0,), -0.0), ((inf,), 1.0), ((-inf,), -1.0)), singular=(((inf,), (0.0,)),)),
    Scalar("asinh", M.asinh, ((-1e6, 1e6),), 0.6, slope=2, curve=None, complex_at=Z[:2],
           special=(((-0.0,), -0.0),)),
    Scalar("acosh", M.acosh, ((1.001, 1e6),), 0.6, slope=3, curve=None, complex_at=Z[:2],
           special=(((1.0,), 0.0), ((0.5,), nan)), singular=(((1.0,), (inf,)),)),
    Scalar("atanh", M.atanh, ((-0.99, 0.99),), 0.6, slope=3, curve=None, complex_at=Z,
           special=(((-0.0,), -0.0), ((1.0,), inf), ((2.0,), nan)), singular=(((1.0,), (inf,)),)),
    Scalar("erf", M.erf, ((-5, 5),), 0.72, slope=4, curve=None,
           special=(((-0.0,), -0.0), ((inf,), 1.0)), singular=(((inf,), (0.0,)),)),
    Scalar("erfc", M.erfc, ((-5, 5),), 4, narrow=0.51, slope=4, curve=None,
           special=(((inf,), 0.0), ((-inf,), 2.0))),
    Scalar("gelu_erf", _gelu_erf, ((-12, 6),), 0.7, slope=4, curve=None,
           special=(((-0.0,), -0.0), ((inf,), inf), ((-inf,), -0.0)),
           singular=(((inf,), (1.0,)), ((-inf,), (0.0,)), ((0.0,), (0.5,)))),
    Scalar("gelu_tanh", _gelu_tanh, ((-12, 6),), 0.6, slope=4, curve=None,
           special=(((-0.0,), -0.0), ((inf,), inf), ((-inf,), -0.0)),
           singular=(((inf,), (1.0,)), ((-inf,), (0.0,)), ((0.0,), (0.5,)))),
]


def _own_rows():
    from opspec_words import ROWS as words
    return [*ARITHMETIC, *ELEMENTARY, *words]


def load_everything():
    """Import every module of the package that defines a primitive."""
    root = pathlib.Path(tlgrad.__file__).parent
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        if "Primitive(" in text or "elementwise(" in text:
            importlib.import_module("tlgrad." + ".".join(path.relative_to(root).with_suffix("").parts))


def all_rows() -> dict[str, Any]:
    """Every row by primitive, those of other areas included."""
    load_everything()
    rows: dict[str, Any] = {}
    found = list(_own_rows())
    for path in sorted(pathlib.Path(__file__).parent.glob("*/opspec_*.py")):
        found += _load(path).ROWS
    for row in found:
        assert row.name not in rows, f"two rows for {row.name}"
        rows[row.name] = row
    return rows


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
