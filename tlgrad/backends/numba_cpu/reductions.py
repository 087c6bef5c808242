"""Loop nests whose reductions keep one axis: along rows, and down columns.

Every result is combined in index order; many results are in flight side by side.
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu.combine import accumulate, identity
from tlgrad.backends.numba_cpu.nests import AHEAD, Lanes
from tlgrad.codegen.intrinsics import cost
from tlgrad.codegen.ir import COMBINES, SIZES
from tlgrad.kernels.tiles.loops import transposed

#: instructions of a body that is written out for each of the rows side by side
WRITTEN_OUT = 24
#: bytes of accumulators that are kept while the rows pass by
CHUNK_BYTES = 16384


class Columns(Lanes):
    """A reduction over the rows: chunks of lanes, whose accumulators stay in the cache while all rows
    pass by."""

    def loops(self):
        k, e = self.kernel, self.e
        self.block_size = self.lanes * self.unroll
        self.reduced = [o for o in k.outputs if o.mode in COMBINES]
        self.buffers = {n: self.scratch(v.type, self.block_size) for n, v in self.streams()}
        widest = max(SIZES[o.value.type] for o in self.reduced)
        self.chunk = CHUNK_BYTES // widest // self.block_size * self.block_size
        self.accs = [self.scratch(o.value.type, self.chunk) for o in self.reduced]
        count = e.i64("sub", "%hi", "%lo")

        def chunk(c, _):
            first = e.i64("add", "%lo", e.i64("mul", c, self.chunk))
            left = e.smin(e.i64("sub", "%hi", first), str(self.chunk))
            blocks = e.i64("sdiv", e.i64("add", left, self.block_size - 1), self.block_size)
            e.loop(blocks, lambda b, _: self.clear(b))
            e.loop(self.words["size", 0], lambda r, _: self.row(r, first, left, blocks))
            for acc, n in zip(self.accs, self.result_numbers()):
                type = k.outputs[n].value.type
                target = e.at(self.words["out", n], e.i64("mul", first, SIZES[type]))
                self.copy_bytes(acc, target, e.i64("mul", left, SIZES[type]))
        e.loop(e.i64("sdiv", e.i64("add", count, self.chunk - 1), self.chunk), chunk)

    def result_numbers(self):
        """Numbers of the outputs that are reductions."""
        return [n for n, o in enumerate(self.kernel.outputs) if o.mode in COMBINES]

    def places(self, acc, b, type):
        """Addresses of the accumulators of block b."""
        base = self.e.at(acc, self.e.i64("mul", b, self.block_size * SIZES[type]))
        return [self.e.at(base, u * self.lanes * SIZES[type]) for u in range(self.unroll)]

    def clear(self, b):
        """The accumulators of one block start."""
        for o, acc in zip(self.reduced, self.accs):
            for place in self.places(acc, b, o.value.type):
                self.store_vector(identity(self.e, o.mode, o.value.type), place, o.value.type)

    def row(self, r, first, left, blocks):
        """Combine one row into the accumulators."""
        e = self.e
        pointers = self.row_pointers(r)
        self.read_rows(pointers)
        keep = dict(self.body.env)

        def block(b, _):
            at = e.i64("mul", b, self.block_size)
            rest = e.i64("sub", left, at)
            full = e.emit(f"icmp sge i64 {rest}, {self.block_size}")
            base = e.i64("add", first, at)
            where = self.addresses(pointers, base, rest, full)
            self.read(where)
            self.compute()
            self.write(where, pointers, base, rest, full)
            for o, acc in zip(self.reduced, self.accs):
                type = o.value.type
                for place, x in zip(self.places(acc, b, type), self.body.env[o.value]):
                    old = self.load_vector(place, type)
                    self.store_vector(accumulate(e, o.mode, type, old, x), place, type)
            self.body.env = dict(keep)
        e.loop(blocks, block)

    def copy_bytes(self, source, target, count):
        """Copy `count` bytes."""
        self.e.declarations["memcpy"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        self.e.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, "
                            "i1 false)")


class Rows(Lanes):
    """A reduction along each row: L rows side by side, L terms of each transposed in registers.

    A short body is written out for every row; a longer one is a loop over the rows.
    """

    def loops(self):
        k, e, n = self.kernel, self.e, self.lanes
        self.looped = sum(cost(op.name) for op in k.ops if not op.uniform) > WRITTEN_OUT
        self.block_size = n
        self.reduced = [o for o in k.outputs if o.mode in COMBINES]
        self.buffers = {m: self.scratch(v.type, n) for m, v in self.streams()}
        results = [self.scratch(o.value.type, n) for o in self.reduced]
        self.squares = [self.scratch(o.value.type, n * n) for o in self.reduced] if self.looped else []
        count = e.i64("sub", "%hi", "%lo")

        def band(b, _):
            first = e.i64("add", "%lo", e.i64("mul", b, n))
            left = e.i64("sub", "%hi", first)
            last = e.i64("sub", e.smin(left, str(n)), "1")
            self.band = first, last
            rows = [] if self.looped else [self.row_of(str(r)) for r in range(n)]
            accs = self.along(rows)
            full = e.emit(f"icmp sge i64 {left}, {n}")
            self.finish_block(accs, results, first, left, full)
        e.loop(e.i64("sdiv", e.i64("add", count, n - 1), n), band)

    def row_of(self, number):
        """The addresses in a row of the band; the last one stands for those that are missing."""
        first, last = self.band
        return self.row_pointers(self.e.i64("add", first, self.e.smin(number, last)))

    def finish_block(self, accs, results, base, left, full):
        """Write the accumulators of a band."""
        k = self.kernel
        outs = [n for n, o in enumerate(k.outputs) if o.mode in COMBINES]
        for m, (n, buffer) in enumerate(zip(outs, results)):
            type = k.outputs[n].value.type
            target = self.e.at(self.words["out", n], self.e.i64("mul", base, SIZES[type]))
            place = self.e.emit(f"select i1 {full}, ptr {target}, ptr {buffer}")
            self.store_vector(accs[m], place, type)
            self.e.when(self.e.emit(f"xor i1 {full}, true"), lambda: self.copy(buffer, target, left, type))

    def along(self, rows):
        """Combine the terms of L rows: whole blocks of L terms, then the rest."""
        e, n = self.e, self.lanes
        terms = self.words["size", 1]
        whole = e.i64("sdiv", terms, n)
        carried = [(e.type(o.value.type), identity(e, o.mode, o.value.type)) for o in self.reduced]

        def block(b, accs):
            return self.block(rows, e.i64("mul", b, n), accs, None)
        accs = e.loop(whole, block, carried)
        done = e.i64("mul", whole, n)
        left = e.i64("sub", terms, done)
        ragged = e.emit(f"zext i1 {e.emit(f'icmp sgt i64 {left}, 0')} to i64")
        rest = [(t, x) for (t, _), x in zip(carried, accs)]
        return e.loop(ragged, lambda _, now: self.block(rows, done, now, left), rest)

    def block(self, rows, base, accs, left):
        """L terms of L rows, or `left` of them."""
        if self.looped:
            lines = self.lines_in_turn(base, left)
        else:
            lines = [self.line(pointers, base, left) for pointers in rows]
        return [self.combine(o, acc, [line[m] for line in lines], left)
                for m, (o, acc) in enumerate(zip(self.reduced, accs))]

    def lines_in_turn(self, base, left):
        """L terms of each row, by a loop over the rows; they pass through memory."""
        e, n = self.e, self.lanes
        types = [o.value.type for o in self.reduced]

        def row(r, _):
            for x, type, square in zip(self.line(self.row_of(r), base, left), types, self.squares):
                self.store_vector(x, e.at(square, e.i64("mul", r, n * SIZES[type])), type)
        e.loop(str(n), row)
        return [[self.load_vector(e.at(square, r * n * SIZES[type]), type)
                 for type, square in zip(types, self.squares)] for r in range(n)]

    def prefetch(self, n, pointer, type, base):
        """Ask for terms further on: in this row, or, beyond its end, in that of the next band."""
        e, stride, size = self.e, self.words.get(("stride", n, 0)), SIZES[type]
        if stride is None:
            e.prefetch(e.at(pointer, str(AHEAD * size)))
            return
        terms = self.words["size", 1]
        ahead = e.smin(terms, str(AHEAD))
        inside = e.emit(f"icmp slt i64 {e.i64('add', base, ahead)}, {terms}")
        beyond = e.i64("sub", e.i64("mul", stride, self.lanes), e.i64("mul", terms, size))
        offset = e.i64("mul", ahead, size)
        further = e.i64("add", offset, beyond)
        e.prefetch(e.at(pointer, e.emit(f"select i1 {inside}, i64 {offset}, i64 {further}")))

    def line(self, pointers, base, left):
        """Compute L terms of one row; the vectors to reduce."""
        keep = dict(self.body.env)
        self.read_rows(pointers)
        full = "false" if left is not None else None
        where = self.addresses(pointers, base, left, full)
        self.read(where)
        self.compute()
        self.write(where, pointers, base, left, full)
        out = [self.body.env[o.value][0] for o in self.reduced]
        self.body.env = keep
        return out

    def combine(self, out, acc, lines, left):
        """Fold L columns of L rows into the accumulator; only the first `left` of them if given."""
        e, type = self.e, out.value.type
        for j, x in enumerate(transposed(e, e.type(type), lines)):
            new = accumulate(e, out.mode, type, acc, x)
            if left is not None:
                live = e.emit(f"icmp sgt i64 {left}, {j}")
                new = e.emit(f"select i1 {live}, {e.type(type)} {new}, {e.type(type)} {acc}")
            acc = new
        return acc
