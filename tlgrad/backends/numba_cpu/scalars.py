"""Every scalar intrinsic as LLVM IR: the table intrinsic -> text of the direct engine.

A 16-bit float lives in a register as the binary32 number it is; each arithmetic result is
rounded to 16 bits, which is what NumPy does and is exact rounding (24 >= 2 * 11 + 2 bits).
No fast-math flag, no contraction.
"""
from __future__ import annotations

from typing import Callable

from tlgrad.codegen.ir import SIZES
from tlgrad.kernels.elementary import FUNCTIONS, render
from tlgrad.kernels.expr.llvm import LLVM, literal

#: kernel type -> LLVM type of a register
REGISTER = {"b1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8", "u16": "i16",
            "u32": "i32", "u64": "i64", "f16": "float", "f32": "float", "f64": "double",
            "b": "i1"}
#: kernel type -> LLVM type in memory
MEMORY = {**REGISTER, "b1": "i8", "f16": "half"}
#: kernel type -> how LLVM names it in an intrinsic
SUFFIX = {"f16": "f32", "f32": "f32", "f64": "f64"}
FLOATS = ("f16", "f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")


class Emitter(LLVM):
    """LLVM IR text of one kernel; shares names, lines and declarations with the bodies of
    `tlgrad.kernels.elementary`."""

    def type(self, type):
        return REGISTER[type] if self.lanes == 1 else f"<{self.lanes} x {REGISTER[type]}>"

    def const(self, number, type):
        if type in ("f16", "f32", "f64"):
            text = literal(number, "f64" if type == "f64" else "f32")
        elif type in ("b1", "b"):
            text = "true" if number else "false"
        else:
            bits = SIZES[type] * 8
            text = str((int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
        return text if self.lanes == 1 else f"splat ({REGISTER[type]} {text})"

    def two(self, instruction, type, a, b):
        """``instruction type a, b``."""
        return self.emit(f"{instruction} {self.type(type)} {a}, {b}")

    def choose(self, type, mask, a, b):
        """a where mask, else b."""
        t, m = self.type(type), self.type("b1")
        return self.emit(f"select {m} {mask}, {t} {a}, {t} {b}")

    def cast(self, instruction, a, source, target):
        """``instruction a to target``."""
        return self.emit(f"{instruction} {self.type(source)} {a} to {self.type(target)}")

    def call_float(self, name, type, *args):
        """A floating-point intrinsic of LLVM."""
        t = self.type(type)
        suffix = SUFFIX[type] if self.lanes == 1 else f"v{self.lanes}{SUFFIX[type]}"
        self.declare(f"@llvm.{name}.{suffix}", t, [t] * len(args))
        return self.emit(f"call {t} @llvm.{name}.{suffix}({', '.join(f'{t} {a}' for a in args)})")

    def rounded(self, type, a):
        """`a` rounded to the type: only a 16-bit float held in 32 bits needs it."""
        if type != "f16":
            return a
        half = "half" if self.lanes == 1 else f"<{self.lanes} x half>"
        h = self.emit(f"fptrunc {self.type('f32')} {a} to {half}")
        return self.emit(f"fpext {half} {h} to {self.type('f32')}")

    def label(self, stem):
        """A fresh block name."""
        return f"{stem}{next(self.names)}"

    def start(self, label):
        """Following lines belong to block `label`."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label):
        """End the block with a jump."""
        self.lines.append(f"  br label %{label}")

    def branch(self, condition, yes, no):
        """End the block with a branch on an i1."""
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def any_lane(self, masks):
        """An i1: some lane of some mask is set."""
        mask = masks[0]
        for other in masks[1:]:
            mask = self.two("or", "b1", mask, other)
        if self.lanes == 1:
            return mask
        word = self.emit(f"bitcast {self.type('b1')} {mask} to i{self.lanes}")
        return self.emit(f"icmp ne i{self.lanes} {word}, 0")


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
SCALARS["div"] = _arithmetic("fdiv", "sdiv", "and")


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
    return e.call_float("copysign", t, *x)


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


def _unordered(e, t, a):
    return e.emit(f"fcmp uno {e.type(t)} {a}, {a}")


@scalar("is_nan")
def _is_nan(e, t, x, out, params):
    return _unordered(e, t, x[0]) if t in FLOATS else e.const(0, "b1")


@scalar("is_finite")
def _is_finite(e, t, x, out, params):
    if t not in FLOATS:
        return e.const(1, "b1")
    return compare(e, "lt", t, _abs(e, t, x, out, params), e.const(float("inf"), t))


@scalar("max")
def _max(e, t, x, out, params):
    first = compare(e, "gt", t, *x)
    if t in FLOATS:
        first = e.two("or", "b1", first, _unordered(e, t, x[0]))
    return e.choose(t, first, *x)


@scalar("min")
def _min(e, t, x, out, params):
    second = compare(e, "lt", t, x[1], x[0])
    if t in FLOATS:
        second = e.two("or", "b1", second, _unordered(e, t, x[1]))
    return e.choose(t, second, x[1], x[0])


@scalar("sign")
def _sign(e, t, x, out, params):
    zero, one = e.const(0, t), e.const(1, t)
    positive = e.choose(t, compare(e, "gt", t, x[0], zero), one, zero)
    if t in FLOATS:
        negative = e.choose(t, compare(e, "lt", t, x[0], zero), e.const(-1.0, t), positive)
        return e.choose(t, _unordered(e, t, x[0]), x[0], negative)
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
    quotient = e.rounded(t, e.two("fdiv", t, v, safe))
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
        return e.cast("fpext" if out == "f64" else "fptrunc", x, t, out)
    wide = out if out in ("i32", "i64") else "i32"
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
    return render(name, *(e.value(h, t) for h, t in zip(handles, types))).handle


def apply(e, name, types, handles, out, params):
    """The text of one operation; returns the handle of its result."""
    if name in FUNCTIONS:
        return elementary(e, name, types, handles)
    return SCALARS[name](e, types[0], handles, out, params)
