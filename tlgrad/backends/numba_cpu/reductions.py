"""Loop nests whose reductions keep one axis: along rows, and down columns.

Every result is combined in index order; many results are in flight side by side.
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu.combine import accumulate, identity
from tlgrad.backends.numba_cpu.nests import Lanes
from tlgrad.codegen.ir import SIZES
from tlgrad.kernels.tiles.loops import transposed


class Columns(Lanes):
    """A reduction over the rows: lanes side by side, every lane with its own accumulator."""

    def loops(self):
        k, e = self.kernel, self.e
        self.block_size = self.lanes * self.unroll
        self.reduced = [o for o in k.outputs if o.mode != "store"]
        self.buffers = {n: self.scratch(v.type, self.block_size) for n, v in self.streams()}
        results = [self.scratch(o.value.type, self.block_size) for o in self.reduced]
        count = self.e.i64("sub", "%hi", "%lo")
        blocks = self.e.i64("sdiv", self.e.i64("add", count, self.block_size - 1), self.block_size)

        def block(b, _):
            base = self.e.i64("add", "%lo", self.e.i64("mul", b, self.block_size))
            left = self.e.i64("sub", "%hi", base)
            full = e.emit(f"icmp sge i64 {left}, {self.block_size}")
            accs = self.down(base, left, full)
            self.finish_block(accs, results, base, left, full)
        self.e.loop(blocks, block)

    def down(self, base, left, full):
        """Combine all rows of one block of lanes; handles of the accumulators."""
        carried = [(self.e.type(o.value.type), identity(self.e, o.mode, o.value.type))
                   for o in self.reduced for _ in range(self.unroll)]
        keep = dict(self.body.env)

        def row(r, accs):
            pointers = self.row_pointers(r)
            self.read_rows(pointers)
            where = self.addresses(pointers, base, left, full)
            self.read(where)
            self.body.run(self.kernel.ops)
            self.write(where, pointers, base, left, full)
            terms = [x for o in self.reduced for x in self.body.env[o.value]]
            modes = [o for o in self.reduced for _ in range(self.unroll)]
            out = [accumulate(self.e, o.mode, o.value.type, a, x) for o, a, x in zip(modes, accs, terms)]
            self.body.env = dict(keep)
            return out
        return self.e.loop(self.words["size", 0], row, carried)

    def finish_block(self, accs, results, base, left, full):
        """Write the accumulators of one block."""
        k = self.kernel
        outs = [n for n, o in enumerate(k.outputs) if o.mode != "store"]
        for m, (n, buffer) in enumerate(zip(outs, results)):
            type = k.outputs[n].value.type
            step = self.lanes * SIZES[type]
            target = self.e.at(self.words["out", n], self.e.i64("mul", base, SIZES[type]))
            place = self.e.emit(f"select i1 {full}, ptr {target}, ptr {buffer}")
            for u in range(self.unroll):
                self.store_vector(accs[m * self.unroll + u], self.e.at(place, u * step), type)
            self.e.when(self.e.emit(f"xor i1 {full}, true"),
                      lambda: self.copy(buffer, target, left, type))


class Rows(Lanes):
    """A reduction along each row: L rows side by side, L terms of each transposed in registers."""

    def loops(self):
        k, e, n = self.kernel, self.e, self.lanes
        self.block_size = n
        self.reduced = [o for o in k.outputs if o.mode != "store"]
        self.buffers = {m: self.scratch(v.type, n) for m, v in self.streams()}
        results = [self.scratch(o.value.type, n) for o in self.reduced]
        count = self.e.i64("sub", "%hi", "%lo")
        bands = self.e.i64("sdiv", self.e.i64("add", count, n - 1), n)

        def band(b, _):
            first = self.e.i64("add", "%lo", self.e.i64("mul", b, n))
            left = self.e.i64("sub", "%hi", first)
            last = self.e.i64("sub", self.e.smin(left, n), "1")
            rows = [self.row_pointers(self.e.i64("add", first, self.e.smin(str(r), last))) for r in range(n)]
            accs = self.along(rows)
            full = e.emit(f"icmp sge i64 {left}, {n}")
            Columns.finish_block(self, accs, results, first, left, full)
        self.e.loop(bands, band)

    def along(self, rows):
        """Combine the terms of L rows, L at a time."""
        n = self.lanes
        terms = self.words["size", 1]
        blocks = self.e.i64("sdiv", self.e.i64("add", terms, n - 1), n)
        carried = [(self.e.type(o.value.type), identity(self.e, o.mode, o.value.type)) for o in self.reduced]

        def block(b, accs):
            base = self.e.i64("mul", b, n)
            left = self.e.i64("sub", terms, base)
            full = self.e.emit(f"icmp sge i64 {left}, {n}")
            lines = [self.line(pointers, base, left, full) for pointers in rows]
            return [self.combine(o, acc, [line[m] for line in lines], left, full)
                    for m, (o, acc) in enumerate(zip(self.reduced, accs))]
        return self.e.loop(blocks, block, carried)

    def line(self, pointers, base, left, full):
        """Compute L terms of one row; the vectors to reduce."""
        keep = dict(self.body.env)
        self.read_rows(pointers)
        where = self.addresses(pointers, base, left, full)
        self.read(where)
        self.body.run(self.kernel.ops)
        self.write(where, pointers, base, left, full)
        out = [self.body.env[o.value][0] for o in self.reduced]
        self.body.env = keep
        return out

    def combine(self, out, acc, lines, left, full):
        """Fold L columns of L rows into the accumulator; only the first `left` when not full."""
        e, type = self.e, out.value.type
        columns = transposed(e, e.type(type), lines)
        whole, part, join = e.label("whole"), e.label("tail"), e.label("folded")
        e.branch(full, whole, part)
        e.start(whole)
        a = acc
        for x in columns:
            a = accumulate(e, out.mode, type, a, x)
        e.jump(join)
        e.start(part)
        b = acc
        for j, x in enumerate(columns):
            live = e.emit(f"icmp sgt i64 {left}, {j}")
            new = accumulate(e, out.mode, type, b, x)
            b = e.emit(f"select i1 {live}, {e.type(type)} {new}, {e.type(type)} {b}")
        e.jump(join)
        e.start(join)
        return e.emit(f"phi {e.type(type)} [ {a}, %{whole} ], [ {b}, %{part} ]")
