"""Bodies over `expr` as Python statements that `numba.njit` compiles, and the few intrinsics they need."""
import functools
import itertools

import numpy as np

from ..elementary import render, render_half
from ..expr import Value, to_odd

CAST = {"f64": "np.float64", "f32": "np.float32", "i64": "np.int64", "i32": "np.int32", "b": "np.bool_"}
BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "shl": "<<",
          "ashr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
UNSIGNED = {"i64": "np.uint64", "i32": "np.uint32"}


class PythonLines:
    """An emitter: every operation is one assignment; `tables` are the arrays that lines index."""

    permutes = False

    def __init__(self):
        self.lines, self.tables, self.names, self.depth = [], {}, itertools.count(), 1

    def assign(self, text):
        """A fresh name for an expression."""
        name = f"e{next(self.names)}"
        self.lines.append("    " * self.depth + f"{name} = {text}")
        return name

    def const(self, number, type):
        """A typed constant; floats by their exact decimal expansion."""
        if type in ("i64", "i32"):
            bits = 64 if type == "i64" else 32
            number = (int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
            return f"{CAST[type]}({number})"
        if type == "b":
            return str(bool(number))
        number = float(np.float32(number)) if type == "f32" else float(number)
        text = repr(number) if np.isfinite(number) else f"float('{number}')"
        return f"{CAST[type]}({text})"

    def op(self, name, type, *values):
        """One operation."""
        first, x = values[0].type, [v.handle for v in values]
        if name == "select":
            return self.assign(f"{x[1]} if {x[0]} else {x[2]}")
        if name in ("fma", "bitcast"):
            return self.assign(f"{name}_{first}({', '.join(x)})")
        if name in ("sqrt", "rint"):
            return self.assign(f"np.{name}({x[0]})")
        if name == "ult":
            return self.assign(f"{UNSIGNED[first]}({x[0]}) < {UNSIGNED[first]}({x[1]})")
        if name == "exponent":
            return self.assign(f"np.float64({x[0]} & np.int64({-1 << 52}))")
        if name == "lshr":
            u = UNSIGNED[first]
            return self.assign(f"{CAST[type]}({u}({x[0]}) >> {u}({x[1]}))")
        if name == "zext":
            return self.assign(f"{CAST[type]}({UNSIGNED.get(first, 'np.int64')}({x[0]}))")
        if name == "neg":
            return self.assign(f"-{x[0]}")
        if name == "not":
            return self.assign(f"not {x[0]}" if first == "b" else f"{CAST[type]}(~{x[0]})")
        if name not in BINARY:
            return self.assign(f"{CAST[type]}({x[0]})")
        text = f"{x[0]} {BINARY[name]} {x[1]}"
        plain = name in COMPARISONS or first in ("f64", "f32", "b")
        return self.assign(text if plain else f"{CAST[type]}({text})")

    def lookup(self, tables, index):
        """One entry of each table."""
        self.tables.update({f"table_{t.name}": t for t in tables})
        mask = tables[0].mask
        i = index.handle if mask is None else f"{index.handle} & {mask}"
        return [self.assign(f"table_{t.name}[{i}]") for t in tables]

    def rare(self, mask, slow, values):
        """A branch: the values change where the mask holds."""
        names = [self.assign(v.handle) for v in values]
        self.lines.append("    " * self.depth + f"if {mask.handle}:")
        self.depth += 1
        for name, v in zip(names, slow(), strict=True):
            self.lines.append("    " * self.depth + f"{name} = {v.handle}")
        self.depth -= 1
        return [Value(self, n, v.type) for n, v in zip(names, values)]

    vote = rare


def elementary_source(name, type, arity):
    """(source of ``def <name>_<type>(x0, ...)``, its tables)."""
    lines = PythonLines()
    args = [f"x{k}" for k in range(arity)]
    if type == "f16":                     # arguments and result are binary32 numbers, the result rounded to odd
        result = render_half(name, *(Value(lines, a, "f32") for a in args))
    else:
        result = render(name, *(Value(lines, a, type) for a in args))
    head = f"def {name}_{type}({', '.join(args)}):"
    return "\n".join([head, *lines.lines, f"    return {result.handle}", ""]), lines.tables


@functools.cache
def intrinsics():
    """Numba intrinsics: fma with one rounding, and words read as another type."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic
    kinds = {"f64": (types.float64, ir.DoubleType()), "f32": (types.float32, ir.FloatType()),
             "i64": (types.int64, ir.IntType(64)), "i32": (types.int32, ir.IntType(32))}

    def make_fma(kind):
        @intrinsic
        def fused(context, a, b, c):
            return kind(kind, kind, kind), lambda ctx, builder, sig, args: builder.fma(*args)
        return fused

    def make_bitcast(source, target):
        @intrinsic
        def bits(context, x):
            return (kinds[target][0](kinds[source][0]),
                    lambda ctx, builder, sig, args: builder.bitcast(args[0], kinds[target][1]))
        return bits

    def make_half(source, target, steps):
        @intrinsic
        def through(context, x):

            def text(ctx, builder, sig, args):
                y = args[0]
                for step, kind in steps:
                    y = getattr(builder, step)(y, kind)
                return y
            return target(source), text
        return through

    half, word, single = ir.HalfType(), ir.IntType(16), ir.FloatType()
    widen, narrow = [("bitcast", half), ("fpext", single)], [("fptrunc", half), ("bitcast", word)]
    pairs = (("f64", "i64"), ("i64", "f64"), ("f32", "i32"), ("i32", "f32"))
    found = {f"fma_{t}": make_fma(kinds[t][0]) for t in ("f64", "f32")}
    found |= {"half_of": make_half(types.uint16, types.float32, widen),
              "words_of": make_half(types.float32, types.uint16, narrow),
              "half": make_half(types.float32, types.float32, [("fptrunc", half), ("fpext", single)])}
    found |= {f"bitcast_{a}": make_bitcast(a, b) for a, b in pairs}
    return found | {f"bits_{a}_{b}": make_bitcast(a, b) for a, b in pairs}


@functools.cache
def modulo(type):
    """NumPy's remainder and floor division of floats, by the steps that every engine takes."""
    import numba
    kind = np.float32 if type == "f32" else np.float64
    zero, half, one = kind(0.0), kind(0.5), kind(1.0)

    @numba.njit(error_model="numpy")
    def remainder(a, b):
        rest = np.fmod(a, b)
        if b == zero:
            return rest
        if rest == zero:
            return np.copysign(zero, b)
        return rest + b if (b < zero) != (rest < zero) else rest

    @numba.njit(error_model="numpy")
    def floor_divide(a, b):
        if b == zero:
            return a / b
        rest = np.fmod(a, b)
        near = (a - rest) / b
        if rest != zero and (b < zero) != (rest < zero):
            near = near - one
        if near == zero:
            return np.copysign(zero, a / b)
        floor = np.floor(near)
        return floor + one if near - floor > half else floor
    return {f"remainder_{type}": remainder, f"floor_divide_{type}": floor_divide}


@functools.cache
def elementary_function(name, type, arity):
    """The body as a compiled Numba function that other njit code can call."""
    import numba
    source, tables = elementary_source(name, type, arity)
    scope = {"np": np, **intrinsics(), **{k: np.array(t.numbers) for k, t in tables.items()}}
    exec(compile(source, f"<tlgrad {name}_{type}>", "exec"), scope)
    return numba.njit(scope[f"{name}_{type}"], error_model="numpy")


@functools.cache
def odd_rounding():
    """Binary64 rounded to odd in binary32."""
    import numba
    lines = PythonLines()
    result = to_odd(Value(lines, "x", "f64"))
    source = "\n".join(["def to_odd(x):", *lines.lines, f"    return {result.handle}", ""])
    scope = {"np": np, **intrinsics()}
    exec(compile(source, "<tlgrad to_odd>", "exec"), scope)
    return numba.njit(scope["to_odd"], error_model="numpy")


@functools.cache
def next_half():
    """The binary16 number next to a towards b; both are binary32."""
    import numba
    half_of, words_of = intrinsics()["half_of"], intrinsics()["words_of"]

    @numba.njit(error_model="numpy")
    def next_half(a, b):
        if a != a or b != b:
            return np.float32(np.nan)
        if a == b:
            return a
        word = words_of(a)
        if a == np.float32(0.0):
            word = np.uint16(words_of(b) & np.uint16(0x8000)) | np.uint16(1)
        elif (a < b) != (a < np.float32(0.0)):
            word = word + np.uint16(1)
        else:
            word = word - np.uint16(1)
        return half_of(np.uint16(word))
    return next_half


#: functions that a kernel's Python text may call, beside the elementary ones
PARTS = {"to_odd": odd_rounding, "next_half": next_half}
