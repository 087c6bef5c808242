"""Loop nests whose reductions keep one axis: along rows, and down columns.

Every result is combined in index order; many results are in flight side by side.
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu.combine import accumulate, accumulate_all, identity, neutral
from tlgrad.backends.numba_cpu.nests import Lanes
from tlgrad.codegen.intrinsics import cost
from tlgrad.codegen.ir import COMBINES, SIZES
from tlgrad.kernels.tiles.loops import transposed

#: instructions of a body that is written out for each of the rows side by side
WRITTEN_OUT = 24
#: bytes of accumulators that are kept while the rows pass by
CHUNK_BYTES = 16384
#: blocks that the second half of the rows side by side is behind the first, and as many rows as need no halves
BEHIND, FEW = 8, 8
#: bytes of a row between the terms that are combined and those that are asked for, and of memory in short rows
FAR, LEAST = 4096, 32768
#: how intrinsics name the types of lanes that are loaded and stored under a mask
CODE = {"f32": "f32", "f64": "f64", "i32": "i32", "u32": "i32", "i64": "i64", "u64": "i64"}


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
    """A reduction along each row: L rows side by side (a band), L terms of each transposed in registers.

    A short body is written out for every row; a longer one is a loop over the rows.

    Rows are often a multiple of 4 KiB apart; then the lines of all rows at one place share one set of the first
    cache, and a set holds 8 lines (Zen) or 12 (Intel).  So in long rows the second half of the band is `behind`
    blocks behind the first, which goes on with the next band while the second ends.  A band takes two steps:
    `behind` blocks, after which the second half of the band before is done, and the other blocks.
    """

    def loops(self):
        k, e, n = self.kernel, self.e, self.lanes
        self.looped = sum(cost(op.name) for op in k.ops if not op.uniform) > WRITTEN_OUT
        self.block_size = n
        self.reduced = [o for o in k.outputs if o.mode in COMBINES]
        self.starts = [identity(e, o.mode, o.value.type) for o in self.reduced]
        self.vectors = [e.type(o.value.type) for o in self.reduced]
        self.buffers = {m: self.scratch(v.type, n) for m, v in self.streams()}
        self.results = [self.scratch(o.value.type, n) for o in self.reduced]
        self.squares = [self.scratch(o.value.type, n * n) for o in self.reduced] if self.looped else []
        self.masks = e.avx512 and all(v.type in CODE for _, v in self.streams())
        self.terms, self.last = self.words["size", 1], e.i64("sub", "%hi", 1)
        self.whole = e.i64("sdiv", self.terms, n)
        self.bands = e.i64("sdiv", e.i64("add", e.i64("sub", "%hi", "%lo"), n - 1), n)
        self.behind = self.blocks_behind()
        e.loop(e.i64("add", e.i64("mul", self.bands, 2), 1), self.step,
               list(zip(self.vectors * 2, self.starts * 2)))

    def blocks_behind(self):
        """How far the second half is behind: nothing where the blocks on the way in and out would not pay."""
        e = self.e
        if self.lanes <= FEW or self.looped:
            return "0"
        blocks = e.i64("mul", e.smin(self.bands, "8"), self.whole)
        return self.pick(e.emit(f"icmp sge i64 {blocks}, {16 * BEHIND}"), BEHIND, "0")

    def pick(self, condition, a, b):
        """One of two integers."""
        return self.e.emit(f"select i1 {condition}, i64 {a}, i64 {b}")

    def step(self, number, state):
        """The blocks of a step; the accumulators, and those of the last band whose first half is done."""
        e, n, count = self.e, self.lanes, len(self.reduced)
        accs, done = state[:count], state[count:]
        band, odd = e.i64("sdiv", number, 2), e.emit(f"trunc i64 {number} to i1")
        later = e.emit(f"icmp sgt i64 {band}, 0")
        before = self.pick(later, e.i64("sub", band, 1), "0")
        bands = e.smin(band, e.i64("sub", self.bands, 1)), self.pick(odd, band, before)
        others = e.i64("sub", self.whole, self.behind)
        starts = ["0"] if self.behind == "0" else [self.pick(odd, self.behind, "0"), self.pick(odd, "0", others)]
        first, second = [e.i64("add", "%lo", e.i64("mul", b, n)) for b in bands]
        rows = [] if self.looped else self.rows_of(first)[:n // 2] + self.rows_of(second)[n // 2:]

        def block(b, accs):
            return self.block(first, rows, [e.i64("mul", e.i64("add", start, b), n) for start in starts], accs)
        accs = e.loop(self.pick(odd, others, self.behind), block, list(zip(self.vectors, accs)))
        whole = [self.halves(v, a, b) for v, a, b in zip(self.vectors, done, accs)]
        e.when(e.emit(f"select i1 {odd}, i1 false, i1 {later}"), lambda: self.end_band(second, whole))
        fresh = [(self.halves(v, start, acc), self.halves(v, acc, start))
                 for v, start, acc in zip(self.vectors, self.starts, accs)]
        return [e.emit(f"select i1 {odd}, {v} {a}, {v} {b}")
                for v, (a, b) in zip(self.vectors * 2, [*fresh, *zip(accs, done)])]

    def halves(self, vector, a, b):
        """The first half of a and the second half of b."""
        n = self.lanes
        picks = ", ".join(f"i32 {j if j < n // 2 else n + j}" for j in range(n))
        return self.e.emit(f"shufflevector {vector} {a}, {vector} {b}, <{n} x i32> <{picks}>")

    def rows_of(self, first):
        """The addresses in the rows of a band; the last row stands for those that are missing."""
        return [self.row_pointers(self.e.smin(self.e.i64("add", first, r), self.last)) for r in range(self.lanes)]

    def end_band(self, first, accs):
        """Combine what is left of the rows of a band, and write their results."""
        e = self.e
        base = e.i64("mul", self.whole, self.lanes)
        left = e.i64("sub", self.terms, base)
        ragged = e.emit(f"zext i1 {e.emit(f'icmp sgt i64 {left}, 0')} to i64")
        rows = [] if self.looped else self.rows_of(first)
        accs = e.loop(ragged, lambda _, now: self.block(first, rows, [base], now, self.live_of(left)),
                      list(zip(self.vectors, accs)))
        count = e.i64("sub", "%hi", first)
        full = e.emit(f"icmp sge i64 {count}, {self.lanes}")
        outs = [m for m, o in enumerate(self.kernel.outputs) if o.mode in COMBINES]
        for m, acc, buffer in zip(outs, accs, self.results):
            type = self.kernel.outputs[m].value.type
            target = e.at(self.words["out", m], e.i64("mul", first, SIZES[type]))
            self.store_vector(acc, e.emit(f"select i1 {full}, ptr {target}, ptr {buffer}"), type)
            e.when(e.emit(f"xor i1 {full}, true"), lambda: self.copy(buffer, target, count, type))

    def live_of(self, left):
        """The lanes of a block of `left` terms: (their number, their mask)."""
        e, n = self.e, self.lanes
        places = ", ".join(f"i32 {j}" for j in range(n))
        limit = self.body.splat(e.emit(f"trunc i64 {left} to i32"), "i32")
        return left, e.emit(f"icmp slt <{n} x i32> <{places}>, {limit}")

    def block(self, first, rows, bases, accs, live=None):
        """L terms of L rows, or those that are `live`; `bases`: where they start, in the halves of the rows."""
        self.ahead = {(n, base): self.distance(n, value.type, base)
                      for n, value in self.streams() for base in bases if not self.strided(n)}
        if self.looped:
            squares = self.lines_in_turn(first, bases[0], live)
        else:
            squares = zip(*[self.line(pointers, bases[r * len(bases) // self.lanes], live)
                            for r, pointers in enumerate(rows)])
        return [accumulate_all(self.e, o.mode, o.value.type, acc, transposed(self.e, vector, lines))
                for o, vector, acc, lines in zip(self.reduced, self.vectors, accs, squares)]

    def lines_in_turn(self, first, base, live):
        """The lines of a block by reduction, made by a loop over the rows; they pass through memory."""
        e, n = self.e, self.lanes
        types = [o.value.type for o in self.reduced]
        moving = sorted({slot[1] for slot in self.words if slot[0] == "stride" and slot[2] < self.kernel.rank - 1})
        start = self.row_pointers(first)

        def row(r, places):
            if self.kernel.rank == 2:
                pointers = {**start, **dict(zip(moving, places))}
                places = [e.at(p, self.words["stride", m, 0]) for m, p in zip(moving, places)]
            else:
                pointers = self.row_pointers(e.i64("add", first, r))
            for x, type, square in zip(self.line(pointers, base, live), types, self.squares):
                self.store_vector(x, e.at(square, e.i64("mul", r, n * SIZES[type])), type)
            return places
        e.loop(e.smin(e.i64("sub", "%hi", first), n), row, [("ptr", start[m]) for m in moving])
        return [[self.load_vector(e.at(square, r * n * SIZES[type]), type) for r in range(n)]
                for type, square in zip(types, self.squares)]

    def distance(self, n, type, base):
        """Bytes from the terms of a block to those that are asked for."""
        e, stride, size = self.e, self.words.get(("stride", n, self.kernel.rank - 2)), SIZES[type]
        if stride is None:
            return str(FAR)
        ahead = e.smin(self.terms, str(FAR // size))
        inside = e.emit(f"icmp slt i64 {e.i64('add', base, ahead)}, {self.terms}")
        band = e.i64("mul", stride, self.lanes)
        band = self.pick(e.emit(f"icmp ult i64 {band}, {LEAST}"), LEAST, band)
        offset = e.i64("mul", ahead, size)
        beyond = e.i64("sub", e.i64("add", offset, band), e.i64("mul", self.terms, size))
        return self.pick(inside, offset, beyond)

    def prefetch(self, n, pointer, type, base):
        """Ask for terms further on: in this row, or, beyond its end, in that of the next band.

        Into the second cache: a line that the first one waits for takes one of its few places for misses (24 in
        Zen 4, which halves what a core reads), and would be gone from it before its turn comes.
        """
        for line in range(0, self.lanes * SIZES[type], 64):
            self.e.prefetch(self.e.at(self.e.at(pointer, self.ahead[n, base]), line), nearness=2)

    def line(self, pointers, base, live):
        """Compute L terms of one row; the vectors to reduce."""
        e, keep = self.e, dict(self.body.env)
        left, mask = live or (None, None)
        full = "false" if live and not self.masks else None
        self.read_rows(pointers)
        where = self.addresses(pointers, base, left, full)
        if live and self.masks:
            self.read_live(where, left, mask)
        else:
            self.read(where)
        self.compute()
        if live and self.masks:
            self.write_live(where, mask)
        else:
            self.write(where, pointers, base, left, full)
        out = [self.body.env[o.value][0] for o in self.reduced]
        if live:
            out = [e.choose(o.value.type, mask, x, e.const(neutral(o.mode, o.value.type), o.value.type))
                   for o, x in zip(self.reduced, out)]
        self.body.env = keep
        return out

    def read_live(self, where, left, mask):
        """Bind the live lanes of what is read; the others hold the last of them."""
        e, n = self.e, self.lanes
        for m, value in self.streams():
            if m < len(self.kernel.inputs):
                type, size = value.type, SIZES[value.type]
                vector, name = e.type(type), f"@llvm.masked.load.v{n}{CODE[type]}.p0"
                last = e.at(where[m], e.i64("mul", e.i64("sub", left, 1), size))
                e.declare(name, vector, ["ptr", "i32 immarg", f"<{n} x i1>", vector])
                x = e.emit(f"call {vector} {name}(ptr {where[m]}, i32 {size}, <{n} x i1> {mask}, "
                           f"{vector} {self.load_splat(last, type)})")
                self.body.set(value, [x])

    def write_live(self, where, mask):
        """Store the live lanes of what is written."""
        e, n, first = self.e, self.lanes, len(self.kernel.inputs)
        for m, value in self.streams():
            if m >= first:
                vector, name = e.type(value.type), f"@llvm.masked.store.v{n}{CODE[value.type]}.p0"
                e.declare(name, "void", [vector, "ptr", "i32 immarg", f"<{n} x i1>"])
                e.lines.append(f"  call void {name}({vector} {self.body.env[value][0]}, ptr {where[m]}, "
                               f"i32 {SIZES[value.type]}, <{n} x i1> {mask})")
