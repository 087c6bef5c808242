"""Integer words for float kernels: what the expression class needs beyond 64-bit arithmetic.

`Words` is the LLVM emitter with integers of any width (``i113``, ``i256``: LLVM splits them into machine
words) for scalar bodies, and with the few instructions that make 64-bit lanes enough for vector ones.
Shifts whose count may reach the width are written `shl0` and `shr0`: 0 there, as the vector
instructions of x86 and the shifts of PTX have it, so that the select folds away.
"""
from tlgrad.kernels.expr.llvm import LLVM, TYPE
from tlgrad.kernels.expr.value import Value, select


def width(type):
    """The bits of an integer type name."""
    return int(type[1:])


class Words(LLVM):
    """The LLVM emitter with integer types of any width, leading-zero count, funnel shifts, and the
    two halves of a 52-bit product added to a lane (AVX-512 IFMA). Rare branches are as wide as the rest."""

    groups = False

    def type(self, type):
        scalar = TYPE.get(type, type)
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    def const(self, number, type):
        if type in ("f64", "f32", "b"):
            return super().const(number, type)
        bits = width(type)
        number = (int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        return str(number) if self.lanes == 1 else f"splat ({type} {number})"

    def op(self, name, type, *values):
        if name == "clz":
            symbol = self._symbol("ctlz", type)
            self.declare(symbol, self.type(type), [self.type(type), "i1 immarg"])
            return self.emit(f"call {self.type(type)} {symbol}({self.typed(values[0])}, i1 false)")
        if name == "held":
            if self.lanes < 8:
                return values[0].handle
            word = self.value(self.emit(f"bitcast {self.typed(values[0])} to {self.type('f64')}"), "f64")
            fenced = self.intrinsic("arithmetic.fence", "f64", [word])
            return self.emit(f"bitcast {self.type('f64')} {fenced} to {self.type(type)}")
        if name in ("fshl", "fshr", "umin", "umax"):
            return self.intrinsic(name, type, values)
        if name in ("madlo", "madhi"):
            symbol = f"@llvm.x86.avx512.vpmadd52{name[3]}.uq.{64 * self.lanes}"
            self.declare(symbol, self.type(type), [self.type(type)] * 3)
            return self.emit(f"call {self.type(type)} {symbol}({', '.join(map(self.typed, values))})")
        return super().op(name, type, *values)

    def beside(self, lanes):
        """An emitter of vectors of other lengths that writes the same lines."""
        other = Words(lanes, lines=self.lines, block=self.block, names=self.names)
        other.declarations = self.declarations
        return other

    def integer_table(self, name, type, numbers, index):
        """``numbers[index]`` from a constant array of integers in the module; scalar only."""
        symbol, array = f"@{name}", f"[{len(numbers)} x {type}]"
        if symbol not in self.declarations:
            cells = ", ".join(f"{type} {self.const(n, type)}" for n in numbers)
            self.declarations[symbol] = f"{symbol} = internal constant {array} [{cells}], align 64"
        cell = self.emit(f"getelementptr {array}, ptr {symbol}, i64 0, i64 {index.handle}")
        return self.emit(f"load {type}, ptr {cell}, align {min(16, width(type) // 8)}")

    def loop(self, more, step, values):
        """See `loop`; scalar only."""
        number, here, lines = self.name()[1:], self.block, self.lines
        head, turn, after = (f"{word}{number}" for word in ("head", "turn", "after"))
        now = [Value(self, self.name(), v.type) for v in values]
        self.lines, self.block = [], head
        going, test = more(*now), self.lines
        self.lines, self.block = [], turn
        new, body, end = step(*now), self.lines, self.block
        phis = [f"  {n.handle} = phi {self.type(n.type)} [ {v.handle}, %{here} ], [ {w.handle}, %{end} ]"
                for n, v, w in zip(now, values, new)]
        lines += [f"  br label %{head}", f"{head}:", *phis, *test,
                  f"  br i1 {going.handle}, label %{turn}, label %{after}", f"{turn}:", *body,
                  f"  br label %{head}", f"{after}:"]
        self.lines, self.block = lines, after
        return now

    def _symbol(self, name, type):
        return f"@llvm.{name}.{type}" if self.lanes == 1 else f"@llvm.{name}.v{self.lanes}{type}"


def held(x):
    """x as a number that LLVM knows nothing about: so ``select(mask, y + held(1), y)`` is one masked instruction,
    where the mask would become numbers that are added."""
    return x.make("held", x.type, x)


def clz(x):
    """Leading zeros; the width for 0."""
    return x.make("clz", x.type, x)


def fshl(high, low, count):
    """The high word of ``(high:low) << count``, count below the width."""
    return high.make("fshl", high.type, high, low, high.like(count))


def fshr(high, low, count):
    """The low word of ``(high:low) >> count``, count below the width."""
    return high.make("fshr", high.type, high, low, high.like(count))


def umin(a, b):
    """The smaller unsigned integer."""
    return a.make("umin", a.type, a, a.like(b))


def umax(a, b):
    """The larger unsigned integer."""
    return a.make("umax", a.type, a, a.like(b))


def shl0(x, count):
    """``x << count``, 0 where the count reaches the width."""
    return select(count.ult(width(x.type)), x << count, 0)


def shr0(x, count):
    """``x >> count`` unsigned, 0 where the count reaches the width."""
    return select(count.ult(width(x.type)), x.lshr(count), 0)


def resize(x, type):
    """The unsigned integer x in another width: zero-extended or truncated."""
    if x.type == type:
        return x
    return x.make("zext" if width(type) > width(x.type) else "trunc", type, x)


def regrouped(x, type, emitter):
    """The same bits as the lanes of another emitter, `type` each."""
    return Value(emitter, emitter.emit(f"bitcast {x.emitter.typed(x)} to {emitter.type(type)}"), type)


def truth(mask, type):
    """1 where the mask holds, else 0."""
    return mask.make("zext", type, mask)


def loop(more, step, *values):
    """What ``values = step(*values)`` makes of integers while the mask ``more(*values)`` holds; scalar code."""
    return values[0].emitter.loop(more, step, values)


def sticky_shift(x, count):
    """``x >> count`` with the last bit set if a set bit was shifted out; any unsigned count."""
    if width(x.type) <= 128:
        kept = shr0(x, count)
        return kept | truth(shl0(kept, count).ne(x), x.type)
    words = split_words(x)
    reach = 64 * _steps(len(words)) * 2 - 1
    words, lost = right_words(words, umin(resize(count, "i64"), reach))
    words[0] = words[0] | truth(lost.ne(0), "i64")
    return joined(words, x.type)


def split_words(x):
    """An integer as 64-bit words, low first."""
    return [resize(x.lshr(64 * k), "i64") for k in range(width(x.type) // 64)]


def joined(words, type):
    """64-bit words, low first, as one integer."""
    total = resize(words[0], type)
    for k, word in enumerate(words[1:], 1):
        total = total | (resize(word, type) << 64 * k)
    return total


def _steps(count):
    """The largest power of two below a number of words."""
    return 1 << max(count - 1, 1).bit_length() - 1


def right_words(words, down):
    """Words shifted right by `down` bits, and a word that is 0 if no set bit was lost.

    `down` is below twice the largest power of two below the count of words, in bits.
    """
    zero = words[0] & 0
    lost, step = zero, _steps(len(words))
    while step:
        far = (down & (64 * step)).ne(0)
        lost = select(far, _any(words[:step]) | lost, lost)
        moved = words[step:] + [zero] * step
        words = [select(far, m, w) for m, w in zip(moved, words)]
        step //= 2
    rest = down & 63
    lost = lost | shl0(words[0], -rest + 64)
    return [fshr(h, w, rest) for w, h in zip(words, words[1:] + [zero])], lost


def _any(words):
    total = words[0]
    for word in words[1:]:
        total = total | word
    return total


def left_words(words):
    """``(leading zeros, words shifted up by them)``, 64 bits at a time by choice."""
    zero, up, step = words[0] & 0, words[0] & 0, _steps(len(words))
    while step:
        empty = _any(words[-step:]).eq(0)
        moved = [zero] * step + words[:-step]
        words = [select(empty, m, w) for m, w in zip(moved, words)]
        up = up + select(empty, zero + 64 * step, zero)
        step //= 2
    rest = clz(words[-1]) & 63
    return up + rest, [fshl(w, below, rest) for w, below in zip(words, [zero] + words[:-1])]


def normalised(total):
    """``(leading zeros as i64, total shifted up by them)``."""
    up, words = left_words(split_words(total))
    return up, joined(words, total.type)


def signed(x):
    """The binary64 value of a signed integer, rounded to nearest."""
    return x.make("sitofp", "f64", x)


def product32(a, b):
    """a * b of two signed integers of 32 bits in 64-bit lanes: one vector instruction, once the shifts
    have told the compiler so."""
    return ((a << 32).ashr(32)) * ((b << 32).ashr(32))


MAGIC, MAGIC_WORD = 6755399441055744.0, 0x4338000000000000      # 1.5 * 2**52


def small(x):
    """The binary64 value of a signed integer below 2**51 in size, exactly, in two vector steps."""
    return (x + MAGIC_WORD).as_float() - MAGIC


def nearest(x):
    """The integer nearest to a binary64 below 2**51 in size, ties to even."""
    return (x + MAGIC).bits() - MAGIC_WORD


__all__ = ["Value", "Words", "clz", "fshl", "fshr", "held", "joined", "left_words", "loop", "nearest",
           "normalised", "product32", "regrouped", "resize", "right_words", "select", "shl0", "shr0", "signed",
           "small",
           "split_words", "sticky_shift", "truth", "umax", "umin", "width"]
