"""LLVM IR text: one line per operation, on scalars or on explicit vectors; no fast-math flags.

`LLVM` can be used on its own or share the state of a kernel compiler: pass the
list that lines go to, the label of the block they go to, and a counter for names. After a body,
`block` is the label of the current block (a branch splits it), `declarations` the
module-level lines, and `externals` the big tables and the branches that are external symbols
(`link` gives them addresses). Small tables are permuted in registers where AVX-512 has the instruction, loaded
elsewhere.

Needs LLVM 19 or newer (``splat`` constants, opaque pointers).
"""
import functools
import itertools
import operator
import struct

import numpy as np

from ..machine import add_symbols, host
from .branches import REGISTER, Branch, ByGroups, Whole, called
from .value import Table, Value, WIDTH

TYPE = {"f64": "double", "f32": "float", "i64": "i64", "i32": "i32", "b": "i1"}
INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor",
           "shl": "shl", "lshr": "lshr", "ashr": "ashr", "lt": "icmp slt", "le": "icmp sle",
           "gt": "icmp sgt", "ge": "icmp sge", "eq": "icmp eq", "ne": "icmp ne", "ult": "icmp ult"}
FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "lt": "fcmp olt",
         "le": "fcmp ole", "gt": "fcmp ogt", "ge": "fcmp oge", "eq": "fcmp oeq", "ne": "fcmp une"}
INTRINSIC = {"fma": "fma", "sqrt": "sqrt", "rint": "roundeven"}
SMALL = 64                              # doubles
COLD = '!{!"branch_weights", i32 1, i32 4000}'


def literal(number, type):
    """The text of a constant; floats as the bits of the binary64 value, as LLVM wants them."""
    if type == "b":
        return "true" if number else "false"
    if type in ("i64", "i32"):
        width = WIDTH[type]
        return str((int(number) + (1 << width - 1)) % (1 << width) - (1 << width - 1))
    number = float(np.float32(number)) if type == "f32" else float(number)
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016x}"


@functools.cache
def _registers(table, size, type):
    """The numbers of a table as constants of `size` lanes, at least one full."""
    numbers = table.numbers * max(size // len(table), 1)
    texts = [f"{TYPE[type]} {literal(x, type)}" for x in numbers]
    return [f"<{size} x {TYPE[type]}> <{', '.join(texts[i:i + size])}>" for i in range(0, len(texts), size)]


@functools.cache
def _interleaved(tables, stride):
    """The tables as the columns of one of `stride`, the rest zero."""
    columns = np.zeros((len(tables[0]), stride))
    for j, table in enumerate(tables):
        columns[:, j] = table.numbers
    return Table(".".join(t.name for t in tables), tuple(columns.ravel().tolist()))


class LLVM:
    """The emitter of LLVM IR; `lanes` is 1 for scalar code, `avx512` permits its permutations."""

    groups = True                       # branches of wide vectors are functions of their own

    def __init__(self, lanes=1, *, avx512=False, lines=None, block="entry", names=None):
        self.lanes, self.avx512, self.block = lanes, avx512, block
        self.lines = [] if lines is None else lines
        self.names = itertools.count() if names is None else names
        self.declarations, self.externals, self.parts = {}, {}, None
        self.depth = 0                  # of branches that are functions, around what is emitted now

    @property
    def permutes(self):
        """Whether tables of 32 numbers of binary32 can be permuted in registers."""
        return self.avx512 and self.lanes % 16 == 0

    def type(self, type):
        return TYPE[type] if self.lanes == 1 else f"<{self.lanes} x {TYPE[type]}>"

    def scalar(self, type):
        return TYPE[type]

    def name(self):
        return f"%e{next(self.names)}"

    def emit(self, text):
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        if self.parts:
            self.parts.made.add(name)
        return name

    def here(self, values):
        """The values as they are in this block: in a loop over groups of lanes, those of the group."""
        return [self.parts.inside(v) for v in values] if self.parts else values

    def value(self, handle, type):
        """A Value of this emitter for an operand that something else has emitted."""
        return Value(self, handle, type)

    def const(self, number, type):
        text = literal(number, type)
        return text if self.lanes == 1 else f"splat ({TYPE[type]} {text})"

    def typed(self, value):
        return f"{self.type(value.type)} {value.handle}"

    def op(self, name, type, *values):
        values = self.here(values)
        first = values[0]
        floating = first.type in ("f64", "f32")
        if name == "exponent":
            return self._exponent(first)
        if name in INTRINSIC:
            return self.intrinsic(INTRINSIC[name], type, values)
        if name == "select":
            return self.emit("select " + ", ".join(map(self.typed, values)))
        if name == "neg":
            instruction = "fneg" if floating else f"sub {self.type(type)} {self.const(0, type)},"
            return self.emit(f"{instruction} {self.typed(first) if floating else first.handle}")
        if name == "not":
            return self.emit(f"xor {self.typed(first)}, {self.const(-1, type)}")
        if len(values) == 1:
            return self.emit(f"{name} {self.typed(first)} to {self.type(type)}")
        instruction = (FLOAT if floating else INTEGER)[name]
        result = self.emit(f"{instruction} {self.typed(first)}, {values[1].handle}")
        return self.intrinsic("arithmetic.fence", type, [self.value(result, type)]) if name == "div" else result

    def _exponent(self, word):
        """By the conversion of AVX-512 or of scalars; elsewhere from the bits of 2**104 + 2**62 + the number."""
        if self.avx512 or self.lanes == 1:
            return (word & (-1 << 52)).f64().handle
        biased = (word + (1024 << 52)).lshr(52) | 0x4670000000000000
        return (biased.as_float() - (2.0 ** 104 + 2.0 ** 62)).handle

    def intrinsic(self, name, type, values):
        suffix = type if self.lanes == 1 else f"v{self.lanes}{type}"
        symbol = f"@llvm.{name}.{suffix}"
        self.declare(symbol, self.type(type), [self.type(v.type) for v in values])
        return self.emit(f"call {self.type(type)} {symbol}({', '.join(map(self.typed, values))})")

    def declare(self, symbol, result, arguments):
        if symbol not in self.declarations:
            self.declarations[symbol] = f"declare {result} {symbol}({', '.join(arguments)})"

    def global_of(self, table):
        symbol = f"@tlgrad.{table.name}"
        if symbol not in self.declarations:
            array = f"[{len(table)} x double]"
            if len(table) > SMALL:
                self.externals[symbol[1:]] = table
                self.declarations[symbol] = f"{symbol} = external constant {array}"
            else:
                numbers = ", ".join(f"double {literal(x, 'f64')}" for x in table.numbers)
                self.declarations[symbol] = (f"{symbol} = internal constant {array} [{numbers}], "
                                             "align 64")
        return symbol

    def lookup(self, tables, index):
        index, = self.here([index])
        if index.type == "i32":
            return self._singles(tables, index)
        mask = tables[0].mask
        by_eight = self.avx512 and self.lanes % 8 == 0
        if by_eight and len(tables[0]) in (4, 8, 16):
            return self._by_eight(self._permute, tables, index)
        index = index if mask is None else index & mask
        if len(tables) > 1 and self.lanes % 4 == 0:
            return [column for first in range(0, len(tables), 4)
                    for column in self._rows(tables[first:first + 4], index)]
        if by_eight:
            return self._by_eight(self._gather, tables, index)
        return [self._load_lanes(t, index) for t in tables]

    def _by_eight(self, take, tables, index):
        parts = [self._part(index, i, 8) for i in range(0, self.lanes, 8)]
        return [self.joined([take(table, part) for part in parts], 8) for table in tables]

    def _singles(self, tables, index):
        """Tables of 32 numbers of binary32, permuted in registers of AVX-512 by the low bits of the index."""
        parts = [self._part(index, i, 16) for i in range(0, self.lanes, 16)]
        return [self.joined([self._permute_singles(table, part) for part in parts], 16, "float")
                for table in tables]

    def _permute_singles(self, table, index):
        vector, symbol = "<16 x float>", "@llvm.x86.avx512.vpermi2var.ps.512"
        first, second = _registers(table, 16, "f32")
        self.declare(symbol, vector, [vector, "<16 x i32>", vector])
        return self.emit(f"call {vector} {symbol}({first}, {index}, {second})")

    def _at(self, symbol, index, stride=1):
        """The address of row `index` (an i64 operand)."""
        row = "double" if stride == 1 else f"[{stride} x double]"
        return self.emit(f"getelementptr inbounds {row}, ptr {symbol}, i64 {index}")

    def _load_lanes(self, table, index):
        """One load per lane: faster than a gather instruction except on AVX-512."""
        n, symbol, out = self.lanes, self.global_of(table), "poison"
        if n == 1:
            return self.emit(f"load double, ptr {self._at(symbol, index.handle)}, align 8")
        for lane in range(n):
            i = self.emit(f"extractelement {self.typed(index)}, i64 {lane}")
            x = self.emit(f"load double, ptr {self._at(symbol, i)}, align 8")
            out = self.emit(f"insertelement <{n} x double> {out}, double {x}, i64 {lane}")
        return out

    def _part(self, index, first, size):
        """`size` lanes of an integer operand, with their type: a register of AVX-512."""
        if self.lanes == size:
            return self.typed(index)
        lanes = ", ".join(f"i32 {first + i}" for i in range(size))
        return f"<{size} x {index.type}> " + self.emit(
            f"shufflevector {self.typed(index)}, {self.type(index.type)} poison, <{size} x i32> <{lanes}>")

    def _gather(self, table, index):
        n, symbol = 8, self.global_of(table)
        place = f"getelementptr inbounds double, ptr {symbol}, {index}"
        types = f"<{n} x ptr>", "i32", f"<{n} x i1>", f"<{n} x double>"
        name = f"@llvm.masked.gather.v{n}f64.v{n}p0"
        self.declare(name, types[3], [types[0], "i32 immarg", *types[2:]])
        values = self.emit(place), "8", "splat (i1 true)", "poison"
        arguments = ", ".join(f"{t} {v}" for t, v in zip(types, values))
        return self.emit(f"call {types[3]} {name}({arguments})")

    def _rows(self, tables, index):
        """Up to four tables as one with rows of 2 or 4: one vector load per lane, then transposes.

        A gather instruction takes 6 to 22 cycles for eight lanes, this some 25 for four tables.
        """
        stride = 2 if len(tables) <= 2 else 4
        symbol = self.global_of(_interleaved(tables, stride))
        quads = []
        for first in range(0, self.lanes, 4):
            rows = []
            for lane in range(first, first + 4):
                i = self.emit(f"extractelement {self.typed(index)}, i64 {lane}")
                place = self._at(symbol, i, stride)
                rows.append(self.emit(f"load <{stride} x double>, ptr {place}, align 8"))
            quads.append(self._transposed(rows, stride))
        return [self.joined(column) for column in list(zip(*quads))[:len(tables)]]

    def _shuffle(self, a, b, size, lanes, element="double"):
        mask = ", ".join(f"i32 {i}" for i in lanes)
        return self.emit(f"shufflevector <{size} x {element}> {a}, <{size} x {element}> {b}, "
                         f"<{len(lanes)} x i32> <{mask}>")

    def _transposed(self, rows, stride):
        """The columns of four rows of `stride`, as <4 x double>."""
        even, odd, low, high = (0, 4, 2, 6), (1, 5, 3, 7), (0, 1, 4, 5), (2, 3, 6, 7)
        if stride == 2:
            p, q = (self._shuffle(rows[i], rows[i + 2], 2, range(4)) for i in range(2))
            return [self._shuffle(p, q, 4, m) for m in (even, odd)]
        pairs = [[self._shuffle(*rows[i:i + 2], 4, m) for m in (even, odd)] for i in (0, 2)]
        return [self._shuffle(pairs[0][j], pairs[1][j], 4, m) for m in (low, high) for j in range(2)]

    def joined(self, parts, size=4, element="double"):
        """The vectors of `size` lanes in `parts` as one."""
        while len(parts) > 1:
            parts = [self._shuffle(*parts[i:i + 2], size, range(2 * size), element)
                     for i in range(0, len(parts), 2)]
            size *= 2
        return parts[0]

    def _permute(self, table, index):
        """A table of 4, 8 or 16 numbers, permuted in registers by the low bits of the index."""
        first, *second = _registers(table, 8, "f64")
        if not second:
            symbol = "@llvm.x86.avx512.permvar.df.512"
            self.declare(symbol, "<8 x double>", ["<8 x double>", "<8 x i64>"])
            return self.emit(f"call <8 x double> {symbol}({first}, {index})")
        symbol = "@llvm.x86.avx512.vpermi2var.pd.512"
        self.declare(symbol, "<8 x double>", ["<8 x double>", "<8 x i64>", "<8 x double>"])
        return self.emit(f"call <8 x double> {symbol}({first}, {index}, {second[0]})")

    def abreast(self, parts):
        """What each of the functions `parts` gives.  Their lines, which may not branch, take turns: each is a long
        chain, and the window of a processor holds some of all of them."""
        lines, found, places = self.lines, [], []
        for number, part in enumerate(parts):
            self.lines = []
            found.append(part())
            places += [((i + 0.5) / len(self.lines), number, line) for i, line in enumerate(self.lines)]
        self.lines = lines
        self.lines += [line for *_, line in sorted(places)]
        return found

    def any(self, mask):
        """An i1: whether any lane of `mask` is set."""
        if self.lanes == 1:
            return mask.handle
        word = self.emit(f"bitcast {self.typed(mask)} to i{self.lanes}")
        return self.emit(f"icmp ne i{self.lanes} {word}, 0")

    def rare(self, mask, slow, values):
        return self._branch(mask, slow, values, ByGroups, True)

    def rares(self, cases):
        """`rare` of several (mask, slow, value), all behind one branch."""
        masks, _, values = zip(*cases)
        total = functools.reduce(operator.or_, masks)
        return self._where(total, lambda: [self.rare(mask, slow, [value])[0] for mask, slow, value in cases],
                           values, True)

    def vote(self, mask, some, values):
        return self._branch(mask, some, values, Whole)

    def _branch(self, mask, some, values, form, cold=False):
        """A branch that wide lanes take in a function of its own, see `branches`."""
        mask, *values = self.here([mask, *values])

        def taken():
            new = None
            if self.groups and self.lanes > REGISTER and self.lanes % REGISTER == 0:
                new = called(self, form, mask, some, values)
            return self.selected(mask, some, values) if new is None else new
        return self._where(mask, taken, values, cold)

    def _where(self, mask, make, values, cold):
        """The `values`, or those that ``make()`` gives if a lane has the mask, which is rare if `cold`."""
        taken, weights = self.any(mask), ""
        if cold:
            self.declarations["!900"], weights = f"!900 = {COLD}", ", !prof !900"
        branch, join, here = (f"branch{self.name()[1:]}", f"join{self.name()[1:]}", self.block)
        self.lines += [f"  br i1 {taken}, label %{branch}, label %{join}{weights}", f"{branch}:"]
        self.block = branch
        new = make()
        end, self.block = self.block, join
        self.lines += [f"  br label %{join}", f"{join}:"]
        return [Value(self, self.emit(f"phi {self.type(old.type)} [ {old.handle}, %{here} ], "
                                      f"[ {v.handle}, %{end} ]"), old.type)
                for v, old in zip(new, values)]

    def selected(self, mask, slow, values):
        return [Value(self, self.op("select", old.type, mask, v, old), old.type)
                for v, old in zip(slow(), values, strict=True)]


def module(function_lines, emitter):
    """The text of a module: the declarations that a body needed, then the function."""
    return "\n".join([*emitter.declarations.values(), *function_lines, ""])


def link(externals):
    """Give the external symbols of a module their addresses; call it before the object is loaded."""
    for symbol, external in externals.items():
        if symbol not in _LINKED:
            if isinstance(external, Branch):
                link(external.externals)
                kept = address = host().function(external.text, "branch")
            else:
                kept = np.array(external.numbers)
                address = kept.ctypes.data
            add_symbols({symbol: address})
            _LINKED[symbol] = kept


_LINKED = {}
