"""The innermost loops of matrix products: one tile of C in registers."""
from ..expr.llvm import TYPE
from .loops import Loops

LINE = 64
#: terms ahead that a tile which packs asks for, in the second cache: rows of B that lie a power of two apart share
#: a few sets of the first
AHEAD = 16


class Micro:
    """One tile: `rows` rows of A times one panel of B, over `count` terms.  One that `packs` reads B itself and
    makes the panel."""

    def __init__(self, tile, rows, packs=False):
        self.tile, self.rows, self.packs = tile, rows, packs
        self.e = Loops(tile.lanes)

    def text(self):
        """``void @tile<rows>(a, a_m, a_k, next, next_k, b, b_k, panel, c, c_m, count, fresh, past)``, or
        ``@packing<rows>``; `b` is the panel's place in B; others will read what is at `next` + k `next_k`."""
        e, t = self.e, self.tile
        vector = e.type(t.type)
        old, go = "old", "go"
        offsets = [e.i64("mul", "%a_m", r) for r in range(self.rows)]
        places = [e.at(e.at("%c", e.i64("mul", "%c_m", r)), v * t.lanes * t.size)
                  for r in range(self.rows) for v in range(t.vectors)]
        e.branch("%fresh", go, old)
        e.start(old)
        loaded = [e.emit(f"load {vector}, ptr {p}, align {t.size}") for p in places]
        e.jump(go)
        e.start(go)
        starts = [e.emit(f"phi {vector} [ zeroinitializer, %entry ], [ {x}, %{old} ]") for x in loaded]

        def term(k, accs):
            a = e.at("%a", e.i64("mul", k, "%a_k"))
            b = e.at("%b", e.i64("mul", k, "%b_k")), e.at("%panel", e.i64("mul", k, t.width * t.size))
            if self.packs:
                self.ask(b[0])
            else:
                e.prefetch(e.at("%next", e.i64("mul", k, "%next_k")))
            return self.term(a, b, offsets, accs)
        accs = e.loop("%count", term, [(vector, x) for x in starts])
        self.store(accs, places)
        name = f"{'packing' if self.packs else 'tile'}{self.rows}"
        head = (f"define internal void @{name}(ptr %a, i64 %a_m, i64 %a_k, ptr %next, i64 %next_k, ptr %b, "
                "i64 %b_k, ptr %panel, ptr %c, i64 %c_m, i64 %count, i1 %fresh, i1 %past) nounwind noinline {")
        return "\n".join([head, "entry:", *e.lines, "  ret void", "}"])

    def ask(self, b):
        """Ask for all lines of a later term of B, which need not start where a line does."""
        e, t = self.e, self.tile
        later = e.at(b, e.i64("mul", "%b_k", AHEAD))
        for byte in [*range(0, t.width * t.size, LINE), t.width * t.size - 1]:
            e.prefetch(e.at(later, byte), 2)

    def store(self, accs, places):
        """The accumulators to C, past the caches or not."""
        e, t = self.e, self.tile
        beyond, kept, end = map(e.label, ("beyond", "kept", "end"))
        e.branch("%past", beyond, kept)
        for label, ending in ((beyond, f"align {t.lanes * t.size}, !nontemporal !{{i32 1}}"),
                              (kept, f"align {t.size}")):
            e.start(label)
            for x, p in zip(accs, places):
                e.lines.append(f"  store {e.type(t.type)} {x}, ptr {p}, {ending}")
            e.jump(end)
        e.start(end)

    def term(self, a, b, offsets, accs):
        """One more term in every accumulator, row by row."""
        if self.tile.embedded:
            return self.term_by_columns(a, b, offsets, accs)
        out, bs = [], [self.part(*b, v) for v in range(self.tile.vectors)]
        for r, offset in enumerate(offsets):
            x = self.entry(a, offset)
            out += [self.step(accs[r * self.tile.vectors + v], x, b) for v, b in enumerate(bs)]
        return out

    def term_by_columns(self, a, b, offsets, accs):
        """The same column by column.  After a fence an entry of A is another load, which becomes the operand of
        its product; without, LLVM would load it once, into a register."""
        out = list(accs)
        for v in range(self.tile.vectors):
            factor = self.part(*b, v)
            for k, offset in zip(range(v, len(accs), self.tile.vectors), offsets):
                out[k] = self.step(accs[k], self.entry(a, offset), factor)
            self.e.lines.append('  fence syncscope("singlethread") acq_rel')
        return out

    def part(self, b, panel, v):
        """One vector of B's term."""
        e, t = self.e, self.tile
        vector, place = e.type(t.type), v * t.lanes * t.size
        if not self.packs:
            return e.emit(f"load {vector}, ptr {e.at(panel, place)}, align 32")
        x = e.emit(f"load {vector}, ptr {e.at(b, place)}, align {t.size}")
        e.lines.append(f"  store {vector} {x}, ptr {e.at(panel, place)}, align 32")
        return x

    def entry(self, a, offset):
        """An entry of A in every lane."""
        e, t = self.e, self.tile
        return splat(e, t, e.emit(f"load {TYPE[t.type]}, ptr {e.at(a, offset)}, align {t.size}"))

    def step(self, acc, x, b):
        e, vector = self.e, self.e.type(self.tile.type)
        if not self.tile.fused:
            letter = "f" if self.tile.type in ("f32", "f64") else ""
            return e.emit(f"{letter}add {vector} {acc}, {e.emit(f'{letter}mul {vector} {x}, {b}')}")
        symbol = f"@llvm.fma.v{e.lanes}{self.tile.type}"
        e.declare(symbol, vector, [vector] * 3)
        return e.emit(f"call {vector} {symbol}({vector} {x}, {vector} {b}, {vector} {acc})")


def splat(e, tile, x):
    """A scalar in every lane."""
    vector = e.type(tile.type)
    one = e.emit(f"insertelement {vector} poison, {TYPE[tile.type]} {x}, i64 0")
    return e.emit(f"shufflevector {vector} {one}, {vector} poison, <{e.lanes} x i32> zeroinitializer")
