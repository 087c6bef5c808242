"""Ordered products of binary128 matrices whose numbers keep to the normal range, as LLVM text (AVX-512 IFMA).

`extremes` finds the exponents of an array. Where those of both matrices and of the start leave every product
and every sum in the normal range (`within`), `contraction` looks for no other case; the words are those of
`folds.contraction`. Between steps a sum is

    low, high   a signed integer of 128 bits, a multiple of 2**12, its size from 2**124 to 2**125
    code        the exponent of bit 124, coded as in a word, plus `BASE`

and a product is twice as large, a multiple of 2**13. A zero is a number so small (`TINY`) that it never reaches
the rounding of a sum with one that is not; what is so small at the end is 0.
"""
from tlgrad.kernels.expr.value import rare, select
from tlgrad.kernels.softfloat.drivers import by_rows, module, section, splat, unzip
from tlgrad.kernels.softfloat.quad import (
    FRACTION, HIDDEN, MAGNITUDE, SIGN, columns_ifma, limbs_ifma, shifted_ifma)
from tlgrad.kernels.softfloat.words import Words, clz, fshl, fshr, held, umax, umin

BIAS, TOP, DIGITS = 16383, 0x7fff, 112
#: added to exponent codes, so that they are positive: a half of it to those of a and b
BASE = 1 << 26
#: the exponent code of a zero; below `SMALL` there are only sums of products with a zero
TINY, SMALL = -(1 << 20), -(1 << 19)
#: rows whose sums are in flight together, columns side by side, words of an entry in the panel
ROWS, LANES, WORDS = 4, 8, 5

EXTREMES = """define void @k(i64 %na, i64 %nb, i64 %nc, ptr %a, ptr %b, ptr %c, ptr %found) {{
  %second = getelementptr i64, ptr %found, i64 3
  %third = getelementptr i64, ptr %found, i64 6
  call void @one(i64 %na, ptr %a, ptr %found)
  call void @one(i64 %nb, ptr %b, ptr %second)
  call void @one(i64 %nc, ptr %c, ptr %third)
  ret void
}}
define internal void @one(i64 %n, ptr %words, ptr %found) noinline {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %least = phi i64 [ {top}, %entry ], [ {least}, %head ]
  %most = phi i64 [ 0, %entry ], [ {most}, %head ]
  %minus = phi i64 [ 0, %entry ], [ {minus}, %head ]
{lines}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  %most_at = getelementptr i64, ptr %found, i64 1
  %minus_at = getelementptr i64, ptr %found, i64 2
  store i64 {least}, ptr %found, align 8
  store i64 {most}, ptr %most_at, align 8
  store i64 {minus}, ptr %minus_at, align 8
  ret void
}}
"""

TILE = """define internal void @rows{count}(i64 %terms, i64 %rows, i64 %cols, i64 %i, ptr %a, ptr %b, ptr %out,
    ptr %panel) noinline {{
entry:
  br label %pack
pack:
  %p = phi i64 [ 0, %entry ], [ %p1, %pack ]
  %from = phi i64 [ %i, %entry ], [ %from1, %pack ]
{pack}
  %from1 = add i64 %from, %rows
  %p1 = add i64 %p, 1
  %packs = icmp slt i64 %p1, %terms
  br i1 %packs, label %pack, label %block
block:
  %j = phi i64 [ 0, %pack ], [ %j1, %close ]
{start}
  br label %head
head:
  %t = phi i64 [ 0, %block ], [ %next, %{last} ]
  %bj = phi i64 [ %j, %block ], [ %bj1, %{last} ]
{phis}
{lines}
  %bj1 = add i64 %bj, %cols
  %next = add i64 %t, 1
  %more = icmp slt i64 %next, %terms
  br i1 %more, label %head, label %close
close:
{finish}
  %j1 = add i64 %j, {lanes}
  %again = icmp slt i64 %j1, %cols
  br i1 %again, label %block, label %done
done:
  ret void
}}
"""


def within(a, b, start):
    """Whether all products and sums stay in the normal range, from what `extremes` found in each array.

    A sum is below 2**64 times the largest product, and a multiple of the last place of the smallest.
    """
    (alow, ahigh, _), (blow, bhigh, _), (low, high, minus) = a, b, start
    finite = max(ahigh, bhigh, max(ahigh + bhigh - BIAS + 1, high) + 64) < TOP
    return finite and min(alow, blow, min(alow + blow - BIAS, low) - DIGITS) > 0 and not minus


def extremes():
    """The module text of ``k(counts, arrays, found)`` of three arrays, none empty: found are, of each, the least
    exponent code of a number that is not 0, the largest code, and 1 if there is a -0."""
    e = Words(block="head")
    place = e.emit("getelementptr i128, ptr %words, i64 %i")
    low, high = _halves(e, place)
    least, most, minus = (e.value(f"%{name}", "i64") for name in ("least", "most", "minus"))
    code, zero = (high & MAGNITUDE).lshr(48), _zero(low, high)
    least = umin(least, select(zero, TOP, code))
    minus = select(zero, minus | high.lshr(63), minus)
    most = umax(most, code)
    return module(e.declarations, EXTREMES.format(
        top=TOP, lines="\n".join(e.lines), least=least.handle, most=most.handle, minus=minus.handle))


def contraction():
    """The module text of ``k(terms, rows, columns, a, b, out, panel)``.

    ``out[i, j] = (out[i, j] + a[0, i] b[0, j]) + ...``; all counts are positive, and `panel` has room for
    terms * ROWS * WORDS words of 64 bits.
    """
    text, declarations = "", {}
    for count in (1, ROWS):
        emitter = Words(LANES, block="head")
        text += _tile(emitter, count)
        declarations |= emitter.declarations
    return module(declarations, text + by_rows(ROWS, ", ptr %panel"))


def _tile(emitter, count):
    """The function that computes `count` rows at once: it packs their numbers of a, then goes over the columns."""
    rows = range(count)
    scalar = Words(names=emitter.names)
    _, pack = section(scalar, lambda: [_pack(scalar, count, r) for r in rows])
    starts, start = section(emitter, lambda: _starts(emitter, rows))
    sums = [[emitter.value(f"%{part}{r}", "i64") for part in ("low", "high", "code")] for r in rows]
    totals, lines = section(emitter, lambda: _step(emitter, count, sums))
    last = emitter.block
    _, finish = section(emitter, lambda: [_store(emitter, r, _packed(*totals[r])) for r in rows])
    phis = "\n".join(f"  {now.handle} = phi <{LANES} x i64> [ {first.handle}, %block ], [ {new.handle}, %{last} ]"
                     for r in rows for now, first, new in zip(sums[r], starts[r], totals[r]))
    return TILE.format(count=count, lanes=LANES, pack=pack, start=start, phis=phis, lines=lines, finish=finish,
                       last=last)


# ---- numbers taken apart and put together

def _code(high, zero, base):
    """``(the exponent code plus base, all ones for a negative number)``."""
    code = (high & MAGNITUDE).lshr(48) + base
    return select(zero, base + TINY, code), high.ashr(63)


def _zero(low, high):
    return ((high & MAGNITUDE) | low).eq(0)


def _pack(e, count, row):
    """Store what a step needs of ``a[p, i + row]``."""
    place = e.emit("getelementptr i128, ptr %a, i64 %from")
    low, high = _halves(e, e.emit(f"getelementptr i128, ptr {place}, i64 {row}"))
    words = *limbs_ifma(low, high), *_code(high, _zero(low, high), BASE // 2 - BIAS)
    for place, word in zip(_cells(e, "%p", count, row), words):
        e.lines.append(f"  store i64 {word.handle}, ptr {place}, align 8")


def _cells(e, term, count, row):
    """The places of the words of an entry in the panel."""
    first = e.emit(f"mul i64 {term}, {WORDS * count}")
    for k in range(WORDS):
        at = e.emit(f"add i64 {first}, {WORDS * row + k}")
        yield e.emit(f"getelementptr i64, ptr %panel, i64 {at}")


def _halves(e, place):
    """The low and the high word of a number in memory, in scalar code."""
    above = e.emit(f"getelementptr i64, ptr {place}, i64 1")
    return [e.value(e.emit(f"load i64, ptr {p}, align 8"), "i64") for p in (place, above)]


def _starts(e, rows):
    """The sums at the beginning; also the masks of the words that are there, and where the rows are in `out`."""
    left = e.emit("sub i64 %cols, %j")
    words = splat(e, e.emit(f"shl i64 {left}, 1"))
    lanes = ", ".join(f"i64 {k}" for k in range(LANES))
    for half in (0, 1):
        index = e.emit(f"add <{LANES} x i64> <{lanes}>, splat (i64 {LANES * half})")
        e.lines.append(f"  %there{half} = icmp slt <{LANES} x i64> {index}, {words.handle}")
    found = []
    for r in rows:
        e.lines += [f"  %row{r} = add i64 %i, {r}", f"  %base{r} = mul i64 %row{r}, %cols",
                    f"  %cell{r} = add i64 %base{r}, %j"]
        found.append(_unpacked(*_load(e, "%out", f"%cell{r}")))
    return found


def _unpacked(low, high):
    """A word as a sum."""
    code, sign = _code(high, _zero(low, high), BASE)
    sig = (high & FRACTION) | HIDDEN
    low, high = (low << 12) ^ sign, fshl(sig, low, 12) ^ sign
    total = low - sign
    return total, select(total.eq(0), high - sign, high), code


def _packed(low, high, code):
    """A sum as a word: one that was rounded up to 2**125 carries into the exponent."""
    sign = high.ashr(63)
    low, high = low ^ sign, high ^ sign
    total = low - sign
    high = select(total.eq(0), high - sign, high)
    low, high = fshr(high, total, 12), high.lshr(12) + ((code - (BASE + 1)) << 48)
    zero = code.ult(BASE + SMALL)
    return select(zero, 0, low), select(zero, 0, high | (sign & SIGN))


def _load(e, pointer, index):
    """`load_group` of the columns that are there; the others are 0."""
    vector, name = f"<{LANES} x i64>", f"@llvm.masked.load.v{LANES}i64.p0"
    e.declare(name, vector, ["ptr", "i32 immarg", f"<{LANES} x i1>", vector])
    places = _places(e, pointer, index)
    halves = [e.emit(f"call {vector} {name}(ptr {place}, i32 8, <{LANES} x i1> %there{half}, "
                     f"{vector} zeroinitializer)") for half, place in enumerate(places)]
    return unzip(e, *halves)


def _store(e, row, words):
    """`store_group` of the columns that are there."""
    vector, name = f"<{LANES} x i64>", f"@llvm.masked.store.v{LANES}i64.p0"
    e.declare(name, "void", [vector, "ptr", "i32 immarg", f"<{LANES} x i1>"])
    places = _places(e, "%out", f"%cell{row}")
    for half, (part, place) in enumerate(zip(unzip(e, *(w.handle for w in words)), places)):
        e.lines.append(f"  call void {name}({e.typed(part)}, ptr {place}, i32 8, <{LANES} x i1> %there{half})")


def _places(e, pointer, index):
    first = e.emit(f"getelementptr i128, ptr {pointer}, i64 {index}")
    return first, e.emit(f"getelementptr i64, ptr {first}, i64 {LANES}")


# ---- a step

def _step(e, count, sums):
    """The sums after a term."""
    low, high = _load(e, "%b", "%bj")
    b = *shifted_ifma(low, high), *_code(high, _zero(low, high), BASE // 2)
    return [_add(*total, *_product(_entry(e, count, row), b)) for row, total in enumerate(sums)]


def _entry(e, count, row):
    """What `_pack` stored, in all lanes."""
    return [splat(e, e.emit(f"load i64, ptr {place}, align 8")) for place in _cells(e, "%t", count, row)]


def _product(a, b):
    """a * b, rounded; the columns are those of bits 52 k, the last place kept is bit 0 of the fourth or bit 1."""
    (*a, acode, asign), (*b, bcode, bsign) = a, b
    c0, c1, c2, c3, c4, c5 = columns_ifma(a, b)
    one, limb = held(c0.like(1)), (1 << 52) - 1
    low, high = fshl(c3, c2 << 12, 12), (c5 << 52) | (c4 & limb)
    low = select(((c0 | c1 | (c2 << 12)) & limb).ne(0), low | one, low)
    short, code = high.ult(1 << 61), acode + bcode
    low, high = select(short, low + held(low), low), select(short, fshl(high, low, 1), high)
    code, sign = select(short, code - one, code), asign ^ bsign
    low, high = _nearest(low, high, 13)
    low, high = (low ^ sign) - sign, high ^ sign
    return low, select(low.eq(0), high - sign, high), code


def _nearest(low, high, drop):
    """(high:low) rounded to a multiple of ``2**drop``, ties to even."""
    total = (low + ((1 << drop - 1) - 1)) + (low.lshr(drop) & 1)
    return total & -(1 << drop), select(total.ult(low), high + held(high.like(1)), high)


def _add(al, ah, acode, bl, bh, bcode):
    """The sum of a sum and a product, rounded.

    Where bits are shifted out, the sum has at most one leading bit less than the larger number: the last bit
    can stand for them (`_shifted`).
    """
    less, code = acode.ult(bcode), umax(acode, bcode)
    xl, xh = select(less, bl, al), select(less, bh, ah)
    yl, yh = _shifted(select(less, al, bl), select(less, ah, bh), umin(code - umin(acode, bcode), 127))
    low, high = xl + yl, xh + yh
    high = select(low.ult(xl), high + held(high.like(1)), high)
    low, high, code = rare(_redundant(high).ult(2), lambda: _raised(low, high, code), low, high, code)
    up = clz(_redundant(high))                      # bit 126 becomes the first that differs from the sign
    high, low = fshl(high, low, up), fshl(low, low.like(0), up)
    sign = high.ashr(63)
    low, high = _nearest(low, high, 14)             # 2**127 would look negative: the sign is shifted in
    return fshr(high, low, 2), fshr(sign, high, 2), code - up + 2


def _redundant(high):
    """A word with as many leading zeros as there are bits below the first that are equal to it, at most 63."""
    return high ^ (high << 1)


def _raised(low, high, code):
    """A sum whose high word is all sign, higher up; a zero is made tiny."""
    high, low = fshl(high, low, 63), low << 63
    return low, high, select((low | high).eq(0), BASE + TINY, code - 63)


def _shifted(low, high, count):
    """``(low, high) >> count``, signed, with a sticky last bit, for a count below 128."""
    far = ~count.ult(64)
    lost = select(far, low, 0)
    low, high = select(far, high, low), select(far, high.ashr(63), high)
    lost = lost | fshr(low, low.like(0), count)
    return fshr(high, low, count) | umin(lost, held(lost.like(1))), high.ashr(count & 63)
