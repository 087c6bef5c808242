"""C++ and CUDA text: scalar, one line per operation; the same text for g++ and nvcc.

Compile with ``-ffp-contract=off`` (g++) or ``--fmad=false`` (nvcc): both fuse by default.
"""
import math

import numpy as np

from .value import Value, WIDTH

TYPE = {"f64": "double", "f32": "float", "i64": "long long", "i32": "int", "b": "bool"}
UNSIGNED = {"i64": "unsigned long long", "i32": "unsigned"}
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
         "shl": "<<", "lshr": ">>"}
COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
PREAMBLE = """#ifdef __CUDACC__
#define FN __device__ __forceinline__
#define TABLE __device__ const
FN long long f64_bits(double x) { return __double_as_longlong(x); }
FN double bits_f64(long long x) { return __longlong_as_double(x); }
FN int f32_bits(float x) { return __float_as_int(x); }
FN float bits_f32(int x) { return __int_as_float(x); }
#else
#include <cmath>
#include <cstring>
#define FN static inline
#define TABLE static const
FN long long f64_bits(double x) { long long r; memcpy(&r, &x, 8); return r; }
FN double bits_f64(long long x) { double r; memcpy(&r, &x, 8); return r; }
FN int f32_bits(float x) { int r; memcpy(&r, &x, 4); return r; }
FN float bits_f32(int x) { float r; memcpy(&r, &x, 4); return r; }
#endif
"""
BITCAST = {"i64": "f64_bits", "f64": "bits_f64", "i32": "f32_bits", "f32": "bits_f32"}


def literal(number, type):
    """The text of a constant, floats in hexadecimal."""
    if type == "b":
        return "true" if number else "false"
    if type in UNSIGNED:
        width = WIDTH[type]
        return f"({TYPE[type]})0x{int(number) % (1 << width):x}{'ull' if width == 64 else 'u'}"
    number = float(np.float32(number)) if type == "f32" else float(number)
    if math.isnan(number):
        return "NAN" if type == "f32" else "(double)NAN"
    if math.isinf(number):
        return ("-" if number < 0 else "") + ("INFINITY" if type == "f32" else "(double)INFINITY")
    return number.hex() + ("f" if type == "f32" else "")


class CText:
    """The emitter of C++ and CUDA text; `lines` are statements, `tables` the arrays they index."""

    permutes = False

    def __init__(self, lines=None):
        self.lines = [] if lines is None else lines
        self.tables, self.count, self.indent = {}, 0, "  "

    def emit(self, expression, type):
        self.count += 1
        self.lines.append(f"{self.indent}{TYPE[type]} t{self.count} = {expression};")
        return f"t{self.count}"

    def const(self, number, type):
        return literal(number, type)

    def op(self, name, type, *values):
        return self.emit(self._expression(name, type, values, [v.handle for v in values]), type)

    def _expression(self, name, type, values, h):
        unsigned = UNSIGNED.get(values[0].type)
        if name in INFIX and unsigned:
            return f"({TYPE[type]})(({unsigned}){h[0]} {INFIX[name]} ({unsigned}){h[1]})"
        if name in INFIX or name in COMPARE:
            return f"{h[0]} {INFIX.get(name) or COMPARE[name]} {h[1]}"
        if name in ("fma", "sqrt", "rint"):
            return f"{name}{'f' if type == 'f32' else ''}({', '.join(h)})"
        if name == "exponent":
            return f"(double)({h[0]} & {literal(-1 << 52, 'i64')})"
        if name == "select":
            return f"{h[0]} ? {h[1]} : {h[2]}"
        if name == "bitcast":
            return f"{BITCAST[type]}({h[0]})"
        if name == "zext":
            return f"({TYPE[type]})({unsigned}){h[0]}"
        if name in ("neg", "not"):
            return {"neg": "-", "not": "!" if type == "b" else "~"}[name] + h[0]
        if name == "ult":
            return f"({unsigned}){h[0]} < ({unsigned}){h[1]}"
        return f"{h[0]} >> {h[1]}" if name == "ashr" else f"({TYPE[type]}){h[0]}"

    def lookup(self, tables, index):
        self.tables |= {table.name: table for table in tables}
        mask = tables[0].mask
        i = index.handle if mask is None else f"{index.handle} & {mask}"
        return [self.emit(f"tlgrad_{table.name}[{i}]", "f64") for table in tables]

    def rare(self, mask, slow, values):
        names = [self.emit(v.handle, v.type) for v in values]
        self.lines.append(f"{self.indent}if ({mask.handle}) {{")
        self.indent += "  "
        self.lines += [f"{self.indent}{name} = {new.handle};" for name, new in zip(names, slow())]
        self.indent = self.indent[2:]
        self.lines.append(f"{self.indent}}}")
        return [Value(self, name, v.type) for name, v in zip(names, values)]

    vote = rare

    def table_text(self):
        """The definitions of the tables."""
        return "".join(f"TABLE double tlgrad_{t.name}[{len(t)}] = "
                       f"{{{', '.join(literal(x, 'f64') for x in t.numbers)}}};\n"
                       for t in self.tables.values())
