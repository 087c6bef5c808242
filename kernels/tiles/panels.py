"""What matrix products put side by side in memory before their tiles read it."""
from ..expr.llvm import TYPE, literal
from .loops import Loops, blocks, transposed


def copy_band(tile):
    """``void @copy_band(source, source_k, target, depth)``: the rows of a band, side by side in memory, term
    by term."""
    e, vector = Loops(), f"<{tile.rows} x {TYPE[tile.type]}>"

    def term(k, _):
        x = e.emit(f"load {vector}, ptr {e.at('%source', e.i64('mul', k, '%source_k'))}, align {tile.size}")
        there = e.at("%target", e.i64("mul", k, tile.rows * tile.size))
        e.lines.append(f"  store {vector} {x}, ptr {there}, align {tile.size}")
    e.loop("%depth", term)
    head = ("define internal void @copy_band(ptr %source, i64 %source_k, ptr %target, i64 %depth) "
            "nounwind noinline {")
    return "\n".join([head, "entry:", *e.lines, "  ret void", "}"])


def copy_rows(tile):
    """``void @copy_rows(source, source_m, target, target_m, rows, wide)``."""
    e, kind = Loops(), TYPE[tile.type]

    def row(r, _):
        one, other = e.at("%source", e.i64("mul", "%source_m", r)), e.at("%target", e.i64("mul", "%target_m", r))

        def entry(j, _):
            offset = e.i64("mul", j, tile.size)
            x = e.emit(f"load {kind}, ptr {e.at(one, offset)}, align {tile.size}")
            e.lines.append(f"  store {kind} {x}, ptr {e.at(other, offset)}, align {tile.size}")
        e.loop("%wide", entry)
    e.loop("%rows", row)
    head = ("define internal void @copy_rows(ptr %source, i64 %source_m, ptr %target, i64 %target_m, i64 %rows, "
            "i64 %wide) nounwind noinline {")
    return "\n".join([head, "entry:", *e.lines, "  ret void", "}"])


class Packer:
    """``void @pack(b, b_k, b_n, packed, depth, width)``: panels of B, for each term one tile's width of
    entries side by side; +0 beyond the edge."""

    def __init__(self, tile):
        self.tile, self.e = tile, Loops(tile.lanes)

    def text(self):
        """The function."""
        e, t = self.e, self.tile
        b, depth, width = "%b", "%depth", "%width"
        turned = e.emit(f"icmp eq i64 %b_k, {t.size}")
        panel_bytes = e.i64("mul", depth, t.width * t.size)

        def panel(n0, wide):
            target = e.at("%packed", e.i64("mul", e.i64("sdiv", n0, t.width), panel_bytes))
            source = e.at(b, e.i64("mul", n0, "%b_n"))
            full = e.emit(f"icmp eq i64 {wide}, {t.width}")
            by_turns, by_one, join = map(e.label, ("turned", "single", "join"))
            e.branch(e.emit(f"and i1 {full}, {turned}"), by_turns, by_one)
            e.start(by_turns)
            self.turn(source, target, depth)
            e.jump(join)
            e.start(by_one)
            self.pack_entries(source, target, "0", depth, wide)
            e.jump(join)
            e.start(join)
        blocks(e, width, t.width, panel)
        head = "define internal void @pack(ptr %b, i64 %b_k, i64 %b_n, ptr %packed, i64 %depth, i64 %width) {"
        return "\n".join([head, "entry:", *e.lines, "  ret void", "}"])

    def turn(self, source, target, depth):
        """Blocks of L terms and L columns transposed in registers; the last terms one by one."""
        e, t, vector = self.e, self.tile, self.e.type(self.tile.type)
        whole = e.i64("sdiv", depth, t.lanes)

        def square(i, _):
            k0 = e.i64("mul", i, t.lanes)
            here = e.at(source, e.i64("mul", k0, t.size))
            there = e.at(target, e.i64("mul", k0, t.width * t.size))

            def columns(v, _):
                first = e.i64("mul", v, t.lanes)
                source, target = e.at(here, e.i64("mul", "%b_n", first)), e.at(there, e.i64("mul", first, t.size))
                lines = [e.at(source, e.i64("mul", "%b_n", j)) for j in range(t.lanes)]
                rows = [e.emit(f"load {vector}, ptr {p}, align {t.size}") for p in lines]
                for j, x in enumerate(transposed(e, vector, rows)):
                    place = e.at(target, j * t.width * t.size)
                    e.lines.append(f"  store {vector} {x}, ptr {place}, align 32")
            e.loop(str(t.vectors), columns)
        e.loop(whole, square)
        self.pack_entries(source, target, e.i64("mul", whole, t.lanes), depth, str(t.width))

    def pack_entries(self, source, target, first, depth, wide):
        """Terms first..depth-1 entry by entry."""
        e, t = self.e, self.tile
        kind, zero = TYPE[t.type], literal(0, t.type)

        def term(i, _):
            k = e.i64("add", i, first)
            here, there = e.at(source, e.i64("mul", k, "%b_k")), e.at(target, e.i64("mul", k, t.width * t.size))

            def entry(j, _):
                inside = e.emit(f"icmp slt i64 {j}, {wide}")
                column = e.emit(f"select i1 {inside}, i64 {j}, i64 0")
                x = e.emit(f"load {kind}, ptr {e.at(here, e.i64('mul', column, '%b_n'))}, align {t.size}")
                x = e.emit(f"select i1 {inside}, {kind} {x}, {kind} {zero}")
                e.lines.append(f"  store {kind} {x}, ptr {e.at(there, e.i64('mul', j, t.size))}, align {t.size}")
            e.loop(str(t.width), entry)
        e.loop(e.i64("sub", depth, first), term)
