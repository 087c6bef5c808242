"""A strided array made row-major: words moved in whole cache lines.

Axes that are walked as one are joined first.  Where the last axis is dense in the source, runs of
bytes are copied.  Where another axis is, squares of one cache line by one cache line are transposed
in registers and put together in a small buffer, and then written line by line; what is left at the
edges goes word by word.  Large results are written past the caches, which saves reading them first.
"""
from dataclasses import dataclass
from math import prod

from .loops import Loops, blocks, transposed

#: the words of a launch: two addresses, then sizes in words and strides in bytes; after them
#: (size, source stride, target stride) of `rank` more axes, the fastest first
WORDS = ("source", "target", "past", "p", "p_source", "p_target", "q", "q_source", "q_target",
         "n", "n_source", "m", "m_target", "rank")
LINE = 64
#: bytes of a word: lanes of the vectors that are transposed
LANES = {1: 16, 2: 8, 4: 8, 8: 4, 16: 2}
#: bytes from which results are written past the caches
PAST = 1 << 23
#: cache lines that are written side by side in the target before the next line of the source is read
TOGETHER = 4
#: bytes from which runs are taken in the order of the source, as are those written past the caches
LONG = 256


@dataclass(frozen=True)
class Move:
    """A copy: `kind` is "run" or "square"; `words` of a launch after its addresses, and its `turns`."""

    kind: str
    size: int
    words: tuple[int, ...]
    turns: int


def joined(shape, strides):
    """(size, stride) of the axes, without those of length 1, neighbours walked as one joined."""
    axes = []
    for n, s in zip(shape, strides):
        if n == 1:
            continue
        if axes and axes[-1][1] == n * s:
            axes[-1] = (axes[-1][0] * n, s)
        else:
            axes.append((n, s))
    return axes


def stays_view(shape, strides, new):
    """True when an array of this shape and strides, reshaped to `new`, needs no copy."""
    def ends(sizes):
        return {prod(sizes[:k]) for k in range(1, len(sizes) + 1)}
    return 0 in shape or ends([n for n, _ in joined(shape, strides)]) <= ends(new) | {1}


def widest(count):
    """The widest word of which `count` bytes are a multiple."""
    return next(w for w in (16, 8, 4, 2, 1) if count % w == 0)


def move_of(shape, strides, itemsize):
    """The Move that makes an array row-major, or None where no axis is dense in the source."""
    size = widest(itemsize)
    if itemsize != size:
        shape, strides = (*shape, itemsize // size), (*strides, size)
    axes = joined(shape, strides)
    if not axes or 0 in shape:
        return None
    steps = [prod(n for n, _ in axes[k + 1:]) * size for k in range(len(axes))]
    *rest, last = [(n, s, d) for (n, s), d in zip(axes, steps)]
    past = axes[0][0] * steps[0] >= PAST and not any(d % LINE for d in steps[:-1])
    across = (1, size, 0)
    kind = "run" if last[1] == size else "square"
    if kind == "square":
        dense = [a for a in rest if a[1] == size]
        if not dense:
            return None
        across = dense[-1]
        rest.remove(across)
    if kind == "run":
        count = last[0] * size
        size = widest(count)
        last, across = (count // size, size, size), (1, size, 0)
        if past or count >= LONG:
            rest.sort(key=lambda axis: -abs(axis[1]))
    inner = [*reversed(rest), *[(1, 0, 0)] * 2]
    p, q, outer = inner[1], inner[0], inner[2:len(rest)]
    words = (int(past), *p, *q, *last[:2], across[0], across[2], len(outer),
             *[x for axis in outer for x in axis])
    return Move(kind, size, words, prod(n for n, _, _ in outer))


def module(kind, size, name):
    """The text of a module with ``void name(ptr slots, i64 lo, i64 hi)`` over the further axes."""
    leaf = Square(size).text() if kind == "square" else run(size)
    return "\n".join([leaf, driver(kind, name), ""])


def driver(kind, name):
    """The kernel: the axes around the leaf."""
    e, w = Loops(), {}
    for k, word in enumerate(WORDS):
        where = e.emit(f"getelementptr i64, ptr %slots, i64 {k}")
        w[word] = e.emit(f"load {'ptr' if k < 2 else 'i64'}, ptr {where}, align 8")
    past = e.emit(f"icmp ne i64 {w['past']}, 0")

    def turn(number, _):
        source, target = _further(e, w, e.i64("add", number, "%lo"))

        def inner(q, p):
            here = _moved(e, w, _moved(e, w, (source, target), "p", p), "q", q)
            e.lines.append(f"  call void @{kind}(ptr {here[0]}, ptr {here[1]}, i64 {w['n']}, "
                           f"i64 {w['n_source']}, i64 {w['m']}, i64 {w['m_target']}, i1 {past})")
        e.loop(w["p"], lambda p, _: e.loop(w["q"], lambda q, _: inner(q, p)) and None)
    e.loop(e.i64("sub", "%hi", "%lo"), turn)
    e.lines.append("  fence seq_cst")
    return "\n".join([f"define void @{name}(ptr noalias %slots, i64 %lo, i64 %hi) nounwind {{", "entry:",
                      *e.lines, "  ret void", "}"])


def _moved(e, w, places, axis, k):
    return [e.at(place, e.i64("mul", k, w[f"{axis}_{side}"]))
            for place, side in zip(places, ("source", "target"))]


def _further(e, w, number):
    """The addresses of one turn over the further axes."""
    def axis(k, state):
        left, *places = state
        row = e.emit(f"getelementptr [3 x i64], ptr %slots, i64 {k}")
        n, *steps = [e.emit(f"load i64, ptr {e.at(row, 8 * (len(WORDS) + j))}, align 8") for j in range(3)]
        at = e.i64("urem", left, n)
        return [e.i64("udiv", left, n), *[e.at(p, e.i64("mul", at, s)) for p, s in zip(places, steps)]]
    starts = [("i64", number), ("ptr", w["source"]), ("ptr", w["target"])]
    return e.loop(w["rank"], axis, starts)[1:]


HEAD = ("(ptr noalias %source, ptr noalias %target, i64 %n, i64 %n_source, i64 %m, i64 %m_target, "
        "i1 %past) nounwind")


def run(size):
    """``void @run``: n words side by side."""
    e = Loops()
    total = e.i64("mul", "%n", size)
    lines = e.i64("sdiv", total, LINE)
    _either(e, lambda past: e.loop(lines, lambda k, _: _line(e, *_both(e, e.i64("mul", k, LINE)), past)))
    done = e.i64("mul", lines, LINE)

    def word(k, _):
        here, there = _both(e, e.i64("add", done, e.i64("mul", k, size)))
        _word(e, size, here, there)
    e.loop(e.i64("sdiv", e.i64("sub", total, done), size), word)
    return "\n".join([f"define internal void @run{HEAD} alwaysinline {{", "entry:", *e.lines, "  ret void", "}"])


def _both(e, offset):
    return e.at("%source", offset), e.at("%target", offset)


def _word(e, size, source, target):
    """One word, at any address."""
    x = e.emit(f"load i{8 * size}, ptr {source}, align 1")
    e.lines.append(f"  store i{8 * size} {x}, ptr {target}, align 1")


def _line(e, source, target, past):
    """One cache line, past the caches or not."""
    parts = [e.emit(f"load <8 x i32>, ptr {e.at(source, k)}, align 1") for k in (0, 32)]
    ending = "align 32, !nontemporal !{i32 1}" if past else "align 1"
    for k, x in zip((0, 32), parts):
        e.lines.append(f"  store <8 x i32> {x}, ptr {e.at(target, k)}, {ending}")


def _either(e, body):
    """body(True) where %past holds, else body(False)."""
    yes, no, join = e.label("past"), e.label("kept"), e.label("join")
    e.branch("%past", yes, no)
    for label, past in ((yes, True), (no, False)):
        e.start(label)
        body(past)
        e.jump(join)
    e.start(join)


class Square:
    """``void @square``: n words dense in the target by m words dense in the source."""

    def __init__(self, size):
        self.size, self.lanes, self.side = size, LANES[size], LINE // size
        self.vector = f"<{self.lanes} x i{8 * size}>"
        self.e = Loops()

    def text(self):
        """The function."""
        e, side, size = self.e, self.side, self.size
        self.rows = [e.i64("mul", "%n_source", k) for k in range(side)]
        self.lines = [e.i64("mul", "%m_target", k) for k in range(self.lanes)]

        def tile(i, n, j, m):
            source = e.at(e.at("%source", e.i64("mul", i, "%n_source")), e.i64("mul", j, size))
            target = e.at(e.at("%target", e.i64("mul", j, "%m_target")), e.i64("mul", i, size))
            full, part, join = e.label("full"), e.label("part"), e.label("join")
            both = e.emit(f"icmp eq i64 {e.i64('add', n, m)}, {2 * side}")
            e.branch(both, full, part)
            e.start(full)
            _either(e, lambda past: self.turn(source, target, past))
            e.jump(join)
            e.start(part)
            self.words(source, target, n, m)
            e.jump(join)
            e.start(join)

        def band(first, height):
            """`height` words of the target's lines."""
            blocks(e, "%m", side, lambda j, m: blocks(e, height, side, lambda i, n: tile(
                e.i64("add", first, i), n, j, m)))
        blocks(e, "%n", TOGETHER * side, band)
        return "\n".join([f"define internal void @square{HEAD} noinline {{", "entry:", *e.lines,
                          "  ret void", "}"])

    def turn(self, source, target, past):
        """A square of one line by one line, transposed."""
        e, lanes, size = self.e, self.lanes, self.size
        ending = f"align {size * lanes}, !nontemporal !{{i32 1}}" if past else "align 1"

        def band(j, _):
            here = e.at(source, e.i64("mul", j, lanes * size))
            there = e.at(target, e.i64("mul", e.i64("mul", j, lanes), "%m_target"))
            loaded = [e.emit(f"load {self.vector}, ptr {e.at(here, row)}, align 1") for row in self.rows]
            turned = [transposed(e, self.vector, loaded[k:k + lanes]) for k in range(0, self.side, lanes)]
            for k, line in enumerate(self.lines):
                place = e.at(there, line)
                for i, block in enumerate(turned):
                    e.lines.append(f"  store {self.vector} {block[k]}, ptr {e.at(place, i * lanes * size)}, "
                                   f"{ending}")
        e.loop(str(self.side // lanes), band)

    def words(self, source, target, n, m):
        """n by m words, one by one."""
        e, size = self.e, self.size

        def row(j, _):
            here, there = e.at(source, e.i64("mul", j, size)), e.at(target, e.i64("mul", j, "%m_target"))
            e.loop(n, lambda i, _: _word(e, size, e.at(here, e.i64("mul", i, "%n_source")),
                                         e.at(there, e.i64("mul", i, size))))
        e.loop(m, row)
