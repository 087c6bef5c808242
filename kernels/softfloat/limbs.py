"""C++ and CUDA text of the bodies of this folder: integers wider than 64 bits become 64-bit limbs.

A handle of a wide integer is a tuple of 64-bit handles, low first. So every body that the LLVM emitter
`Words` renders has a text that g++ and nvcc compile; the words are the same.
"""
from tlgrad.kernels.expr.ctext import PREAMBLE, CText
from tlgrad.kernels.expr.value import Value
from tlgrad.kernels.softfloat.words import width

WIDE_PREAMBLE = PREAMBLE + """typedef unsigned long long limb;
#ifdef __CUDACC__
#define ENTRY extern "C" __global__ void
#define EACH(n) long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i < n)
FN long long clz64(long long x) { return __clzll(x); }
FN long long mulh64(long long a, long long b) { return (long long)__umul64hi((limb)a, (limb)b); }
#else
#define ENTRY extern "C" void
#define EACH(n) for (long i = 0; i < n; i++)
FN long long clz64(long long x) { return x ? __builtin_clzll((limb)x) : 64; }
FN long long mulh64(long long a, long long b) {
  return (long long)(limb)(((unsigned __int128)(limb)a * (limb)b) >> 64); }
#endif
FN long long shl64(long long x, long long n) { return (long long)((limb)x << (n & 63)); }
FN long long shr64(long long x, long long n) { return (long long)((limb)x >> (n & 63)); }
FN long long fshl64(long long h, long long l, long long n) {
  return n & 63 ? (long long)(((limb)h << (n & 63)) | ((limb)l >> (64 - (n & 63)))) : h; }
FN long long fshr64(long long h, long long l, long long n) {
  return n & 63 ? (long long)(((limb)l >> (n & 63)) | ((limb)h << (64 - (n & 63)))) : l; }
FN long long low52(long long a, long long b) {
  return (long long)((limb)a * (limb)b) & 0xfffffffffffffLL; }
FN long long high52(long long a, long long b) {
  a &= 0xfffffffffffffLL; b &= 0xfffffffffffffLL;
  return (mulh64(a, b) << 12) | (long long)(((limb)a * (limb)b) >> 52); }
FN long long below64(long long a, long long b) { return (limb)a < (limb)b; }
"""


class Constant(tuple):
    """The limbs of a constant, whose number a shift by it needs."""

    number = 0


class Limbs(CText):
    """The C text emitter with integers of any width."""

    def const(self, number, type):
        if type in ("f64", "f32", "b"):
            return super().const(number, type)
        if width(type) <= 64:
            return super().const(int(number) % (1 << 64), "i64")
        number = int(number) % (1 << width(type))
        out = Constant(super(Limbs, self).const(number >> 64 * k & (1 << 64) - 1, "i64")
                       for k in range(width(type) // 64))
        out.number = number
        return out

    @property
    def zero(self):
        """The handle of a limb that is known to be 0."""
        return super().const(0, "i64")

    def word(self, expression):
        """A new 64-bit limb."""
        return self.emit(expression, "i64")

    def op(self, name, type, *values):
        first = values[0]
        if name == "held":
            return first.handle
        if any(_is_wide(v.type) for v in values) or _is_wide(type):
            return self._wide(name, type, *values)
        if first.type not in ("f64", "f32", "b") and name in _WORD:
            return self.word(_WORD[name].format(*(v.handle for v in values)))
        if name in ("zext", "trunc"):
            return self.word(f"(long long){first.handle}") if first.type == "b" else first.handle
        return super().op(name, type, *values)

    def _wide(self, name, type, *values):
        if name == "select":
            mask, a, b = values
            return tuple(x if x == y else self.word(f"{mask.handle} ? {x} : {y}")
                         for x, y in zip(a.handle, b.handle))
        if name in ("shl", "lshr", "ashr"):
            return self._shift(name, *values)
        limbs = [v.handle if isinstance(v.handle, tuple) else (v.handle,) for v in values]
        return getattr(self, "_" + name)(type, *limbs)

    # ---- conversions

    def _zext(self, type, a):
        if isinstance(a[0], str) and len(a) == 1:
            a = (self.word(f"(long long){a[0]}"),)
        return a + (self.zero,) * (width(type) // 64 - len(a))

    def _sext(self, type, a):
        return a + (self.word(f"{a[-1]} >> 63"),) * (width(type) // 64 - len(a))

    def _trunc(self, type, a):
        return a[:width(type) // 64] if _is_wide(type) else a[0]

    # ---- bits

    def _each(self, symbol, a, b):
        out = []
        for x, y in zip(a, b):
            if symbol in "|^" and self.zero in (x, y):
                out.append(y if x == self.zero else x)
            elif symbol == "&" and self.zero in (x, y):
                out.append(self.zero)
            else:
                out.append(self.word(f"{x} {symbol} {y}"))
        return tuple(out)

    def _and(self, type, a, b):
        return self._each("&", a, b)

    def _or(self, type, a, b):
        return self._each("|", a, b)

    def _xor(self, type, a, b):
        return self._each("^", a, b)

    def _not(self, type, a):
        return tuple(self.word(f"~{x}") for x in a)

    def _shift(self, name, x, count):
        if isinstance(count.handle, Constant):
            return self._fixed_shift(name, x.handle, count.handle.number)
        words, amount = list(x.handle), count.handle[0]
        step = 1 << max(len(words) - 1, 1).bit_length() - 1
        while step:
            far = self.emit(f"({amount} & {64 * step}) != 0", "b")
            moved = ([self.zero] * step + words[:-step] if name == "shl"
                     else words[step:] + [self.zero] * step)
            words = [self.word(f"{far} ? {m} : {w}") for m, w in zip(moved, words)]
            step //= 2
        return self._within(name, words, amount)

    def _fixed_shift(self, name, limbs, count):
        move, rest = divmod(count, 64)
        fill = self.word(f"{limbs[-1]} >> 63") if name == "ashr" else self.zero
        pad = (fill,) * min(move, len(limbs))
        words = pad + limbs[:len(limbs) - len(pad)] if name == "shl" else limbs[move:] + pad
        return self._within(name, list(words), rest, fill) if rest else tuple(words)

    def _within(self, name, words, rest, fill=None):
        fill = self.zero if fill is None else fill
        if name == "shl":
            return tuple(self.word(f"fshl64({h}, {l}, {rest})")
                         for h, l in zip(words, [self.zero] + words[:-1]))
        return tuple(self.word(f"fshr64({h}, {l}, {rest})")
                     for h, l in zip(words[1:] + [fill], words))

    def _clz(self, type, a):
        total = self.word(f"clz64({a[0]})")
        for k, limb in enumerate(a[1:], 1):
            total = self.word(f"{limb} ? clz64({limb}) : {total} + 64")
        return (total,) + (self.zero,) * (len(a) - 1)

    # ---- arithmetic

    def _add(self, type, a, b):
        out, carry = [], self.zero
        for x, y in zip(a, b):
            part = self.word(f"(long long)((limb){x} + (limb){y})")
            total = self.word(f"(long long)((limb){part} + (limb){carry})")
            carry = self.word(f"below64({part}, {x}) | below64({total}, {part})")
            out.append(total)
        return tuple(out)

    def _sub(self, type, a, b):
        out, borrow = [], self.zero
        for x, y in zip(a, b):
            part = self.word(f"(long long)((limb){x} - (limb){y})")
            total = self.word(f"(long long)((limb){part} - (limb){borrow})")
            borrow = self.word(f"below64({x}, {y}) | below64({part}, {borrow})")
            out.append(total)
        return tuple(out)

    def _neg(self, type, a):
        return self._sub(type, (self.zero,) * len(a), a)

    def _mul(self, type, a, b):
        out = [self.zero] * len(a)
        for i, x in enumerate(a):
            carry = self.zero
            for j, y in enumerate(b[:len(a) - i]):
                if self.zero in (x, y) and carry == self.zero:
                    continue
                low = self.word(f"(long long)((limb){x} * (limb){y})")
                high = self.word(f"mulh64({x}, {y})")
                part = self.word(f"(long long)((limb){low} + (limb){out[i + j]})")
                total = self.word(f"(long long)((limb){part} + (limb){carry})")
                carry = self.word(f"(long long)((limb){high} + (limb)(below64({part}, {low}) + "
                                  f"below64({total}, {part})))")
                out[i + j] = total
        return tuple(out)

    # ---- comparisons

    def _eq(self, type, a, b):
        return self.emit(" && ".join(f"{x} == {y}" for x, y in zip(a, b)), "b")

    def _ne(self, type, a, b):
        return self.emit(" || ".join(f"{x} != {y}" for x, y in zip(a, b)), "b")

    def _ult(self, type, a, b):
        less = self.emit(f"below64({a[0]}, {b[0]})", "b")
        for x, y in zip(a[1:], b[1:]):
            less = self.emit(f"below64({x}, {y}) || ({x} == {y} && {less})", "b")
        return less

    def _lt(self, type, a, b):
        less = self._ult(type, a[:-1], b[:-1])
        return self.emit(f"{a[-1]} < {b[-1]} || ({a[-1]} == {b[-1]} && {less})", "b")

    def _gt(self, type, a, b):
        return self._lt(type, b, a)

    def _umin(self, type, a, b):
        return self._pick(self._ult(type, a, b), a, b)

    def _umax(self, type, a, b):
        return self._pick(self._ult(type, a, b), b, a)

    def _pick(self, mask, a, b):
        return tuple(self.word(f"{mask} ? {x} : {y}") for x, y in zip(a, b))

    # ---- tables, branches

    def integer_table(self, name, type, numbers, index):
        """``numbers[index]`` from a constant array of limbs in the module."""
        self.tables[name] = numbers, type
        count = max(1, width(type) // 64)
        limbs = tuple(self.word(f"tlgrad_{name}[{index.handle} * {count} + {k}]") for k in range(count))
        return limbs if _is_wide(type) else limbs[0]

    def table_text(self):
        """The definitions of the tables."""
        out = []
        for name, (numbers, type) in self.tables.items():
            limbs = [x for n in numbers for x in _limbs_of(self.const(n, type))]
            out.append(f"TABLE long long tlgrad_{name}[{len(limbs)}] = {{{', '.join(limbs)}}};\n")
        return "".join(out)

    def rare(self, mask, slow, values):
        kept = [_limbs_of(v.handle) for v in values]
        names = [[self.emit(h, "i64" if v.type != "b" else "b") for h in limbs]
                 for limbs, v in zip(kept, values)]
        self.lines.append(f"{self.indent}if ({mask.handle}) {{")
        self.indent += "  "
        for limbs, new in zip(names, slow()):
            self.lines += [f"{self.indent}{n} = {h};" for n, h in zip(limbs, _limbs_of(new.handle))]
        self.indent = self.indent[2:]
        self.lines.append(f"{self.indent}}}")
        return [Value(self, tuple(limbs) if _is_wide(v.type) else limbs[0], v.type)
                for limbs, v in zip(names, values)]

    vote = rare

    def loop(self, more, step, values):
        names = [[self.emit(h, "i64") for h in _limbs_of(v.handle)] for v in values]
        now = [Value(self, tuple(n) if _is_wide(v.type) else n[0], v.type) for n, v in zip(names, values)]
        self.lines.append(f"{self.indent}for (;;) {{")
        self.indent += "  "
        self.lines.append(f"{self.indent}if (!({more(*now).handle})) break;")
        new = [[self.emit(h, "i64") for h in _limbs_of(v.handle)] for v in step(*now)]
        self.lines += [f"{self.indent}{old} = {found};" for olds, founds in zip(names, new)
                       for old, found in zip(olds, founds)]
        self.indent = self.indent[2:]
        self.lines.append(f"{self.indent}}}")
        return now


_WORD = {"shl": "shl64({}, {})", "lshr": "shr64({}, {})", "clz": "clz64({})",
         "fshl": "fshl64({}, {}, {})", "fshr": "fshr64({}, {}, {})",
         "umin": "below64({0}, {1}) ? {0} : {1}", "umax": "below64({0}, {1}) ? {1} : {0}",
         "mul": "(long long)((limb){} * (limb){})", "madlo": "{} + low52({}, {})",
         "madhi": "{} + high52({}, {})"}


def _is_wide(type):
    return type not in ("f64", "f32", "b") and width(type) > 64


def _limbs_of(handle):
    return handle if isinstance(handle, tuple) else (handle,)


def function(name, body, inputs):
    """Text of ``void name(long n, const limb *a0, ..., limb *out, limb *flags)`` on binary128 words:
    a loop for g++, a kernel of one thread per element for nvcc.

    `body` takes and returns i128 values; a body that returns a mask as well writes it to `flags`.
    """
    emitter = Limbs()
    values = [Value(emitter, tuple(emitter.word(f"(long long)a{k}[2 * i + {j}]") for j in (0, 1)),
                    "i128") for k in range(inputs)]
    result = body(*values)
    word, *mask = result if isinstance(result, (tuple, list)) else (result,)
    lines = emitter.lines + [f"  out[2 * i + {j}] = (limb){h};" for j, h in enumerate(word.handle)]
    lines += [f"  flags[i] = {m.handle};" for m in mask]
    pointers = ", ".join(f"const limb *a{k}" for k in range(inputs))
    return (f"{emitter.table_text()}ENTRY {name}(long n, {pointers}, limb *out, limb *flags) {{\n"
            f" EACH(n) {{\n" + "\n".join(lines) + "\n }\n}\n")
