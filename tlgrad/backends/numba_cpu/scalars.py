"""Every scalar intrinsic as LLVM IR: the table intrinsic -> text of the direct engine.

A 16-bit float lives in a register as the binary32 number it is; each arithmetic result is
rounded to 16 bits, which is what NumPy does and is exact rounding (24 >= 2 * 11 + 2 bits).
No fast-math flag, no contraction.
"""
from __future__ import annotations

from typing import Callable

from tlgrad.backends.numba_cpu.emitter import FLOATS, REGISTER, SIGNED
from tlgrad.codegen.ir import SIZES
from tlgrad.kernels.elementary import FUNCTIONS, render, render_half
from tlgrad.kernels.expr import to_odd

#: intrinsic -> function of (emitter, operand type, handles, result type, params) giving a handle
SCALARS: dict[str, Callable] = {}


def scalar(*names):
    """Register the text of intrinsics."""
    def keep(f):
        SCALARS.update(dict.fromkeys(names, f))
        return f
    return keep


def _arithmetic(floats, whole, logic):
    def text(e, t, x, out, params):
        if t in FLOATS:
            return e.rounded(t, e.two(floats, t, *x))
        return e.two(logic if t == "b1" else whole, t, *x)
    return text


SCALARS["add"] = _arithmetic("fadd", "add", "or")
SCALARS["sub"] = _arithmetic("fsub", "sub", "xor")
SCALARS["mul"] = _arithmetic("fmul", "mul", "and")


def _quotient(e, t, a, b):
    """a / b of floats, before rounding to the type.  The fence keeps LLVM 22 from moving the division
    behind a selection: where it finds a and b to be constants it makes 0.0 of select(c, 0.0, 0.0 / 0.0)."""
    return e.call_float("arithmetic.fence", t, e.two("fdiv", t, a, b))


@scalar("div")
def _div(e, t, x, out, params):
    if t in FLOATS:
        return e.rounded(t, _quotient(e, t, *x))
    return e.two("and" if t == "b1" else "sdiv", t, *x)


@scalar("neg")
def _neg(e, t, x, out, params):
    if t in FLOATS:
        return e.emit(f"fneg {e.type(t)} {x[0]}")
    return e.two("sub", t, e.const(0, t), x[0])


@scalar("abs")
def _abs(e, t, x, out, params):
    if t in FLOATS:
        return e.call_float("fabs", t, x[0])
    if t not in SIGNED:
        return x[0]
    return e.choose(t, compare(e, "lt", t, x[0], e.const(0, t)), _neg(e, t, x, out, params), x[0])


def _rounding(name):
    return lambda e, t, x, out, params: e.rounded(t, e.call_float(name, t, x[0]))


for _name, _llvm in {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven",
                     "sqrt": "sqrt"}.items():
    SCALARS[_name] = _rounding(_llvm)


@scalar("fma")
def _fma(e, t, x, out, params):
    return e.call_float("fma", t, *x)


@scalar("copysign")
def _copysign(e, t, x, out, params):
    numbered = e.emit(f"fcmp ord {e.type(t)} {x[1]}, {x[1]}")
    return e.call_float("copysign", t, x[0], e.choose(t, numbered, x[1], e.const(1.0, t)))


@scalar("nextafter")
def _nextafter(e, t, x, out, params):
    """The next number from a towards b: a word that is one more away from zero, one less towards it."""
    a, b = x
    zero, whole = e.const(0.0, t), {"f16": "i16", "f32": "i32", "f64": "i64"}[t]
    word, other = (_word(e, t, v) for v in x)
    away = e.two("xor", "b1", compare(e, "lt", t, a, b), compare(e, "lt", t, a, zero))
    step = e.choose(whole, away, e.const(1, whole), e.const(-1, whole))
    least = e.two("or", whole, e.two("and", whole, other, e.const(-1 << SIZES[t] * 8 - 1, whole)),
                  e.const(1, whole))
    moved = e.choose(whole, compare(e, "eq", t, a, zero), least, e.two("add", whole, word, step))
    equal = a if t == "f16" else b                       # which zero of two: as NumPy has it
    found = e.choose(t, compare(e, "eq", t, a, b), equal, _float_of(e, t, moved))
    return e.choose(t, e.emit(f"fcmp uno {e.type(t)} {a}, {b}"), e.const(float("nan"), t), found)


def _half(e):
    return "half" if e.lanes == 1 else f"<{e.lanes} x half>"


def _word(e, t, x):
    """The word of a float as an integer of its width."""
    if t != "f16":
        return e.cast("bitcast", x, t, "i32" if t == "f32" else "i64")
    half = e.emit(f"fptrunc {e.type('f32')} {x} to {_half(e)}")
    return e.emit(f"bitcast {_half(e)} {half} to {e.type('i16')}")


def _float_of(e, t, word):
    """The float of a word."""
    if t != "f16":
        return e.cast("bitcast", word, "i32" if t == "f32" else "i64", t)
    half = e.emit(f"bitcast {e.type('i16')} {word} to {_half(e)}")
    return e.emit(f"fpext {_half(e)} {half} to {e.type('f32')}")


@scalar("real", "conj")
def _same(e, t, x, out, params):
    return x[0]


_ORDERED = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def compare(e, name, t, a, b):
    """A comparison of NumPy's meaning: only `ne` holds for NaN; integers by their sign."""
    if t in FLOATS:
        return e.emit(f"fcmp {_ORDERED[name]} {e.type(t)} {a}, {b}")
    sign = "" if name in ("eq", "ne") else "s" if t in SIGNED else "u"
    return e.emit(f"icmp {sign}{name} {e.type(t)} {a}, {b}")


for _name in _ORDERED:
    SCALARS[_name] = lambda e, t, x, out, params, name=_name: compare(e, name, t, *x)


def unordered(e, t, a):
    """Where a is NaN."""
    return e.emit(f"fcmp uno {e.type(t)} {a}, {a}")


@scalar("is_nan")
def _is_nan(e, t, x, out, params):
    return unordered(e, t, x[0]) if t in FLOATS else e.const(0, "b1")


@scalar("is_finite")
def _is_finite(e, t, x, out, params):
    if t not in FLOATS:
        return e.const(1, "b1")
    return compare(e, "lt", t, _abs(e, t, x, out, params), e.const(float("inf"), t))


@scalar("max")
def _max(e, t, x, out, params):
    first = compare(e, "gt", t, *x)
    if t in FLOATS:
        first = e.two("or", "b1", first, unordered(e, t, x[0]))
    return e.choose(t, first, *x)


@scalar("min")
def _min(e, t, x, out, params):
    second = compare(e, "lt", t, x[1], x[0])
    if t in FLOATS:
        second = e.two("or", "b1", second, unordered(e, t, x[1]))
    return e.choose(t, second, x[1], x[0])


@scalar("sign")
def _sign(e, t, x, out, params):
    zero, one = e.const(0, t), e.const(1, t)
    positive = e.choose(t, compare(e, "gt", t, x[0], zero), one, zero)
    if t in FLOATS:
        negative = e.choose(t, compare(e, "lt", t, x[0], zero), e.const(-1.0, t), positive)
        return e.choose(t, unordered(e, t, x[0]), x[0], negative)
    if t not in SIGNED:
        return positive
    return e.choose(t, compare(e, "lt", t, x[0], zero), e.const(-1, t), positive)


@scalar("select")
def _select(e, t, x, out, params):
    return e.choose(out, *x)


def _bits(instruction):
    return lambda e, t, x, out, params: e.two(instruction, t, *x)


for _name in ("and", "or", "xor"):
    SCALARS[_name] = _bits(_name)


@scalar("not")
def _not(e, t, x, out, params):
    return e.two("xor", t, x[0], e.const(1 if t == "b1" else -1, t))


def _shift_amount(e, t, y):
    bits = SIZES[t] * 8
    inside = e.emit(f"icmp ult {e.type(t)} {y}, {e.const(bits, t)}")
    return inside, e.choose(t, inside, y, e.const(bits - 1, t))


@scalar("shift_left")
def _shift_left(e, t, x, out, params):
    inside, amount = _shift_amount(e, t, x[1])
    return e.choose(t, inside, e.two("shl", t, x[0], amount), e.const(0, t))


@scalar("shift_right")
def _shift_right(e, t, x, out, params):
    inside, amount = _shift_amount(e, t, x[1])
    if t in SIGNED:
        return e.two("ashr", t, x[0], amount)
    return e.choose(t, inside, e.two("lshr", t, x[0], amount), e.const(0, t))


@scalar("floor_divide")
def _floor_divide(e, t, x, out, params):
    if t in FLOATS:
        return _float_quotient(e, t, *x)
    quotient, rest, opposite = _divided(e, t, *x)
    if opposite is None:
        return quotient
    adjust = e.two("and", "b1", opposite, compare(e, "ne", t, rest, e.const(0, t)))
    lower = e.choose(t, adjust, e.two("sub", t, quotient, e.const(1, t)), quotient)
    minus = compare(e, "eq", t, x[1], e.const(-1, t))
    return e.choose(t, minus, e.two("sub", t, e.const(0, t), x[0]), lower)


@scalar("remainder")
def _remainder(e, t, x, out, params):
    if t in FLOATS:
        return e.rounded(t, _float_remainder(e, t, *x)[0])
    quotient, rest, opposite = _divided(e, t, *x)
    if opposite is None:
        return rest
    adjust = e.two("and", "b1", opposite, compare(e, "ne", t, rest, e.const(0, t)))
    upper = e.choose(t, adjust, e.two("add", t, rest, x[1]), rest)
    return e.choose(t, compare(e, "eq", t, x[1], e.const(-1, t)), e.const(0, t), upper)


def _float_remainder(e, t, a, b):
    """NumPy's remainder, before rounding to 16 bits: that of truncated division, which is exact, brought to
    the sign of b; also that exact one, and where the sign was changed."""
    rest, zero = e.two("frem", t, a, b), e.const(0.0, t)
    some = e.emit(f"fcmp une {e.type(t)} {rest}, {zero}")
    unlike = e.two("xor", "b1", compare(e, "lt", t, b, zero), compare(e, "lt", t, rest, zero))
    changed = e.two("and", "b1", some, unlike)
    moved = e.choose(t, changed, e.two("fadd", t, rest, b), rest)
    found = e.choose(t, some, moved, e.call_float("copysign", t, zero, b))
    return e.choose(t, compare(e, "eq", t, b, zero), rest, found), rest, changed


def _float_quotient(e, t, a, b):
    """NumPy's floor division: (a - remainder) / b is nearly an integer, and is rounded to it."""
    _, rest, changed = _float_remainder(e, t, a, b)
    zero, plain = e.const(0.0, t), _quotient(e, t, a, b)
    near = _quotient(e, t, e.two("fsub", t, a, rest), b)
    near = e.choose(t, changed, e.two("fsub", t, near, e.const(1.0, t)), near)
    floor = e.call_float("floor", t, near)
    above = compare(e, "gt", t, e.two("fsub", t, near, floor), e.const(0.5, t))
    whole = e.choose(t, above, e.two("fadd", t, floor, e.const(1.0, t)), floor)
    none = compare(e, "eq", t, near, zero)
    found = e.choose(t, none, e.call_float("copysign", t, zero, plain), whole)
    return e.rounded(t, e.choose(t, compare(e, "eq", t, b, zero), plain, found))


def _divided(e, t, a, b):
    """Quotient toward zero, remainder, and whether the signs differ (None for unsigned); a divisor
    that would trap is replaced by 1."""
    bad = compare(e, "eq", t, b, e.const(0, t))
    signed = t in SIGNED
    if signed:
        bad = e.two("or", "b1", bad, compare(e, "eq", t, b, e.const(-1, t)))
    safe = e.choose(t, bad, e.const(1, t), b)
    quotient = e.two("sdiv" if signed else "udiv", t, a, safe)
    rest = e.two("sub", t, a, e.two("mul", t, quotient, safe))
    opposite = compare(e, "lt", t, e.two("xor", t, a, b), e.const(0, t)) if signed else None
    return quotient, rest, opposite


@scalar("integer_pow")
def _integer_pow(e, t, x, out, params):
    n, result, power = params["n"], None, x[0]
    m = abs(n)
    while m:
        if m & 1:
            result = power if result is None else SCALARS["mul"](e, t, [result, power], t, {})
        m >>= 1
        if m:
            power = SCALARS["mul"](e, t, [power, power], t, {})
    if result is None:
        return e.const(1, t)
    return result if n > 0 else SCALARS["div"](e, t, [e.const(1.0, t), result], t, {})


@scalar("direction")
def _direction(e, t, x, out, params):
    """x / r; 0 at r = 0; at an infinite r the finite parts are 0 and infinite ones +-1."""
    v, r = x
    zero, one, inf = e.const(0.0, t), e.const(1.0, t), e.const(float("inf"), t)
    at_zero = compare(e, "eq", t, r, zero)
    at_inf = compare(e, "eq", t, _abs(e, t, [r], t, {}), inf)
    safe = e.choose(t, e.two("or", "b1", at_zero, at_inf), one, r)
    quotient = e.rounded(t, _quotient(e, t, v, safe))
    limit = e.choose(t, compare(e, "eq", t, _abs(e, t, [v], t, {}), inf),
                     e.call_float("copysign", t, one, v), zero)
    return e.choose(t, at_inf, limit, e.choose(t, at_zero, zero, quotient))


@scalar("bitcast")
def _bitcast(e, t, x, out, params):
    return x[0] if REGISTER[t] == REGISTER[out] else e.cast("bitcast", x[0], t, out)


@scalar("convert")
def _convert(e, t, x, out, params):
    if out == t:
        return x[0]
    if out == "b1":
        return compare(e, "ne", t, x[0], e.const(0, t))
    if t in FLOATS:
        return _from_float(e, t, x[0], out)
    if out in FLOATS:
        signed = "sitofp" if t in SIGNED else "uitofp"
        return e.rounded(out, e.cast(signed, x[0], t, out))
    if SIZES[out] < SIZES[t]:
        return e.cast("trunc", x[0], t, out)
    if SIZES[out] == SIZES[t] and t != "b1":
        return x[0]
    return e.cast("sext" if t in SIGNED else "zext", x[0], t, out)


def _from_float(e, t, x, out):
    if out in FLOATS:
        if REGISTER[t] == REGISTER[out]:
            return e.rounded(out, x)
        if out == "f16":
            return e.rounded(out, to_odd(e.value(x, "f64")).handle)
        return e.cast("fpext" if out == "f64" else "fptrunc", x, t, out)
    if out == "u64":
        high = compare(e, "ge", t, x, e.const(2.0 ** 63, t))
        rest = _from_float(e, t, e.choose(t, high, e.two("fsub", t, x, e.const(2.0 ** 63, t)), x), "i64")
        return e.two("xor", "i64", rest, e.choose("i64", high, e.const(-1 << 63, "i64"), e.const(0, "i64")))
    if out == "u32" and t == "f64":
        return e.cast("trunc", _from_float(e, t, x, "u64"), "u64", out)
    wide = {"i32": "i32", "i64": "i64", "u32": "i64"}.get(out, "i32")
    limit = 2.0 ** (8 * SIZES[wide] - 1)
    # below the limit: -limit - 1 rounds to -limit or is itself out of range
    inside = e.two("and", "b1", compare(e, "lt", t, x, e.const(limit, t)),
                   compare(e, "ge", t, x, e.const(-limit, t)) if t != "f64" or wide == "i64" else
                   compare(e, "gt", t, x, e.const(-limit - 1, t)))
    safe = e.choose(t, inside, x, e.const(0.0, t))
    whole = e.choose(wide, inside, e.cast("fptosi", safe, t, wide), e.const(-int(limit), wide))
    return whole if wide == out else e.cast("trunc", whole, wide, out)


def elementary(e, name, types, handles):
    """The body of an elementary function from `tlgrad.kernels`."""
    if types[0] == "f16":
        return e.rounded("f16", render_half(name, *(e.value(h, "f32") for h in handles)).handle)
    return render(name, *(e.value(h, t) for h, t in zip(handles, types))).handle


def apply(e, name, types, handles, out, params):
    """The text of one operation; returns the handle of its result."""
    if name in FUNCTIONS:
        return elementary(e, name, types, handles)
    return SCALARS[name](e, types[0], handles, out, params)
