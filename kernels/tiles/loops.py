"""LLVM IR text with blocks, counted loops and address arithmetic."""
from ..expr.llvm import LLVM


class Loops(LLVM):
    """An emitter that can also branch and loop; addresses are opaque pointers, counts are i64."""

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

    def i64(self, instruction, a, b):
        """An operation on 64-bit integers."""
        return self.emit(f"{instruction} i64 {a}, {b}")

    def smin(self, a, b):
        """The lesser of two signed integers."""
        less = self.emit(f"icmp slt i64 {a}, {b}")
        return self.emit(f"select i1 {less}, i64 {a}, i64 {b}")

    def at(self, pointer, offset):
        """pointer + offset bytes."""
        return self.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def prefetch(self, pointer, nearness=3):
        """Ask for the line of memory at an address, to be read; there need not be any.  `nearness` 3 is the first
        cache, 2 the second."""
        self.declare("@llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {nearness}, i32 1)")

    def loop(self, count, body, carried=()):
        """``for i in range(count)``: body(i, [handle]) -> [handle]; `carried`: (type, start)."""
        top, head, turn, done = self.block, self.label("head"), self.label("turn"), self.label("done")
        self.jump(head)
        self.start(head)
        mark = len(self.lines)
        i, after = self.name(), self.name()
        names = [self.name() for _ in carried]
        more = self.emit(f"icmp slt i64 {i}, {count}")
        self.branch(more, turn, done)
        self.start(turn)
        new = body(i, names)
        self.lines.append(f"  {after} = add i64 {i}, 1")
        end = self.block
        self.jump(head)
        phis = [f"  {i} = phi i64 [ 0, %{top} ], [ {after}, %{end} ]"]
        phis += [f"  {n} = phi {t} [ {start}, %{top} ], [ {x}, %{end} ]"
                 for n, (t, start), x in zip(names, carried, new or [], strict=True)]
        self.lines[mark:mark] = phis
        self.start(done)
        return names

    def repeat(self, carried, more, body):
        """``while more([handle]): body([handle]) -> [handle]``; `carried`: (type, start)."""
        top, head, turn, done = self.block, self.label("head"), self.label("turn"), self.label("done")
        self.jump(head)
        self.start(head)
        mark, names = len(self.lines), [self.name() for _ in carried]
        self.branch(more(names), turn, done)
        self.start(turn)
        new = body(names)
        end = self.block
        self.jump(head)
        self.lines[mark:mark] = [f"  {n} = phi {t} [ {start}, %{top} ], [ {x}, %{end} ]"
                                 for n, (t, start), x in zip(names, carried, new, strict=True)]
        self.start(done)
        return names

    def when(self, condition, body):
        """``if condition: body()`` without results."""
        yes, join = self.label("yes"), self.label("join")
        self.branch(condition, yes, join)
        self.start(yes)
        body()
        self.jump(join)
        self.start(join)


def blocks(e, count, size, body):
    """``for start in range(0, count, size): body(start, min(size, count - start))``."""
    turns = e.i64("sdiv", e.i64("add", count, size - 1), size)

    def turn(i, _):
        start = e.i64("mul", i, size)
        body(start, e.smin(e.i64("sub", count, start), str(size)))
    e.loop(turns, turn)


def even_blocks(e, count, most, body, unit=1):
    """`blocks` of about one size: a multiple of `unit`, at most `most` times it."""
    units = e.i64("sdiv", e.i64("add", count, unit - 1), unit)
    turns = e.i64("sdiv", e.i64("add", units, e.i64("sub", most, 1)), most)
    none = e.emit(f"zext i1 {e.emit(f'icmp eq i64 {turns}, 0')} to i64")
    size = e.i64("sdiv", e.i64("add", units, e.i64("sub", turns, 1)), e.i64("add", turns, none))
    size = e.i64("mul", size, unit)

    def turn(i, _):
        start = e.i64("mul", i, size)
        body(start, e.smin(e.i64("sub", count, start), size))
    e.loop(turns, turn)


def transposed(e, vector, rows):
    """An L by L block transposed: bit k of row and column numbers is exchanged, for each k."""
    n, rows, step = len(rows), list(rows), 1
    while step < n:
        for i in range(n):
            if not i & step:
                a, b = rows[i], rows[i + step]
                low = [j if not j & step else n + j - step for j in range(n)]
                high = [n + j if j & step else j + step for j in range(n)]
                rows[i], rows[i + step] = (
                    e.emit(f"shufflevector {vector} {a}, {vector} {b}, <{n} x i32> <"
                           + ", ".join(f"i32 {j}" for j in picks) + ">") for picks in (low, high))
        step *= 2
    return rows
