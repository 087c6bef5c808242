"""Loop nests of kernels as LLVM IR text.

One function per kernel, ``void name(ptr slots, i64 lo, i64 hi)``.  In nest "lanes", blocks of
U * L lanes; a block that is not full, and every input with a stride, goes through a small aligned
buffer, so there is one copy of the body.  Idle lanes repeat the last one.
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu.behind import SumBehind, one_behind
from tlgrad.backends.numba_cpu.body import Body
from tlgrad.backends.numba_cpu.combine import accumulate, identity, neutral
from tlgrad.backends.numba_cpu.emitter import MEMORY, REGISTER, Emitter
from tlgrad.backends.numba_cpu.extremes import Extreme, lane_by_lane
from tlgrad.backends.numba_cpu.turnwise import place_arrays
from tlgrad.codegen.ir import COMBINES, SIZES, Kernel, Value, all_ops, slots_of, used_values

#: elements ahead that unit-stride streams are prefetched
AHEAD = 512


class Nest:
    """What the nests share: the words of the launch, loads, stores, address arithmetic."""

    def __init__(self, kernel: Kernel, lanes: int, unroll: int, avx512: bool = False):
        self.kernel, self.lanes, self.unroll = kernel, lanes, unroll
        self.e = Emitter(lanes, avx512=avx512)
        self.body = Body(self.e, unroll, used_values(kernel))
        for op in all_ops(kernel.ops):
            if "tape" in op.params:
                self.body.sweeps.setdefault(op.params["tape"], []).append(op)
            if op.name == "unfold_within":
                self.body.limits[op.params["tape"]] = op.args[-1]
        self.words: dict[tuple, str] = {}

    # -- entry

    def entry(self):
        """Read the words of the launch; bind what is uniform and emit uniform operations."""
        for k, slot in enumerate(slots_of(self.kernel)):
            where = self.e.emit(f"getelementptr i64, ptr %slots, i64 {k}")
            if slot[0] == "literal":
                value = self.kernel.literals[slot[1]]
                self.body.set(value, [self.load_splat(where, value.type)])
            else:
                kind = "ptr" if slot[0] in ("in", "out") else "i64"
                self.words[slot] = self.e.emit(f"load {kind}, ptr {where}, align 8")
        for k, entry in enumerate(self.kernel.inputs):
            if entry.value.uniform and entry.access != "turns":
                self.body.set(entry.value, [self.load_splat(self.words["in", k], entry.value.type)])
        if any(op.name == "faulted" for op in self.kernel.ops):
            self.body.faults = [self.scratch("u8", self.lanes) for _ in range(self.unroll)]
        for k, entry in enumerate(self.kernel.inputs):
            if entry.access == "table":
                extents = [self.words["extent", k, d] for d in range(entry.rank)]
                self.body.tables[entry.value] = self.words["in", k], extents
                self.body.set(entry.value, ["poison"])
        self.body.run([op for op in self.kernel.ops if op.uniform])
        for k, out in enumerate(self.kernel.outputs):
            if out.mode == "once":
                first = self.scalar_of(self.body.env[out.value][0], out.value.type, 0)
                self.store_one(first, self.words["out", k], out.value.type)

    def no_faults(self):
        """Nothing is noted of the lanes that come now."""
        for place in self.body.faults:
            self.e.lines.append(f"  store <{self.lanes} x i8> zeroinitializer, ptr {place}, align 1")

    def compute(self):
        """Emit the operations on the lanes of a block."""
        self.no_faults()
        self.body.run(self.kernel.ops)

    def scratch(self, type, count):
        """An aligned buffer on the stack."""
        return self.e.emit(f"alloca [{count * SIZES[type]} x i8], align 64")

    # -- values in memory

    def load_one(self, pointer, type):
        """One entry as a scalar register."""
        x = self.e.emit(f"load {MEMORY[type]}, ptr {pointer}, align {SIZES[type]}")
        if type == "b1":
            return self.e.emit(f"icmp ne i8 {x}, 0")
        return self.e.emit(f"fpext half {x} to float") if type == "f16" else x

    def scalar_of(self, x, type, lane):
        """One lane of a vector."""
        return self.e.emit(f"extractelement {self.e.type(type)} {x}, i64 {lane}")

    def load_splat(self, pointer, type):
        return self.body.splat(self.load_one(pointer, type), type)

    def load_vector(self, pointer, type):
        vector = f"<{self.lanes} x {MEMORY[type]}>"
        x = self.e.emit(f"load {vector}, ptr {pointer}, align {SIZES[type]}")
        if type == "b1":
            return self.e.emit(f"icmp ne {vector} {x}, zeroinitializer")
        if type == "f16":
            return self.e.emit(f"fpext {vector} {x} to {self.e.type('f32')}")
        return x

    def store_vector(self, x, pointer, type):
        vector = f"<{self.lanes} x {MEMORY[type]}>"
        if type == "b1":
            x = self.e.emit(f"zext {self.e.type('b1')} {x} to {vector}")
        elif type == "f16":
            x = self.e.emit(f"fptrunc {self.e.type('f32')} {x} to {vector}")
        self.e.lines.append(f"  store {vector} {x}, ptr {pointer}, align {SIZES[type]}")

    def store_one(self, x, pointer, type):
        """A scalar register to memory."""
        if type == "b1":
            x = self.e.emit(f"zext i1 {x} to i8")
        elif type == "f16":
            x = self.e.emit(f"fptrunc float {x} to half")
        self.e.lines.append(f"  store {MEMORY[type]} {x}, ptr {pointer}, align {SIZES[type]}")

    def row_pointers(self, row):
        """Operand -> address of its first entry in row number `row`."""
        k, pointers = self.kernel, {}
        index, rest = [], row
        for d in range(k.rank - 2, 0, -1):
            index.append(self.e.i64("urem", rest, self.words["size", d]))
            rest = self.e.i64("udiv", rest, self.words["size", d])
        index = [rest, *index[::-1]] if k.rank > 1 else []
        for slot in self.words:
            if slot[0] == "stride" and slot[2] < k.rank - 1:
                offset = self.e.i64("mul", index[slot[2]], self.words[slot])
                base = pointers.get(slot[1]) or self.words[self.operand(slot[1])]
                pointers[slot[1]] = self.e.at(base, offset)
        for operand in range(len(k.inputs) + len(k.outputs)):
            pointers.setdefault(operand, self.words[self.operand(operand)])
        return pointers

    def operand(self, number):
        n = len(self.kernel.inputs)
        return ("in", number) if number < n else ("out", number - n)

    def function(self, name: str) -> str:
        """The module text."""
        self.entry()
        self.loops()
        e = self.e
        self.body.memory.exit()
        e.lines.append("  ret void")
        text = [*e.declarations.values(),
                f"define void @{name}(ptr noalias %slots, i64 %lo, i64 %hi) nounwind {{", "entry:",
                *self.body.memory.entry, *e.lines, "}", ""]
        return "\n".join(text)


class Lanes(Nest):
    """Rows of lanes, blocks of U * L lanes; a reduction runs over the lanes of one row."""

    def loops(self):
        k = self.kernel
        self.block_size = self.lanes * self.unroll
        self.buffers = {n: self.scratch(v.type, self.block_size) for n, v in (*self.streams(), *self.turned())}
        self.reduced = [o for o in k.outputs if o.mode in COMBINES]
        carried = [(REGISTER[o.value.type], self.start_of(o)) for o in self.reduced]
        self.extremes = {o: Extreme(self, o) for o in self.reduced if lane_by_lane(k, o, self.unroll)}
        if type(self) is Lanes and one_behind(k):
            self.body.behind = SumBehind(self, self.reduced[0].value.type, self.block_size)
        if k.rank == 1:
            self.finish(self.blocks(self.row_pointers("0"), "%lo", "%hi", carried))
            return

        def one_row(r, accs):
            pointers = self.row_pointers(self.e.i64("add", r, "%lo"))
            now = [(t, acc) for (t, _), acc in zip(carried, accs)]
            return self.blocks(pointers, "0", self.words["size", k.rank - 1], now)
        self.finish(self.e.loop(self.e.i64("sub", "%hi", "%lo"), one_row, carried))

    def streams(self) -> list[tuple[int, Value]]:
        """Operands that hold one entry per lane: (operand, value)."""
        k = self.kernel
        ins = [(n, i.value) for n, i in enumerate(k.inputs) if i.access not in ("row", "table", "turns")]
        return ins + [(len(k.inputs) + n, o.value) for n, o in enumerate(k.outputs) if o.mode == "store"]

    def turned(self) -> list[tuple[int, Value]]:
        """Operands that loops read or write turn by turn: (operand, value)."""
        k = self.kernel
        return [*[(n, i.value) for n, i in enumerate(k.inputs) if i.access == "turns"],
                *[(len(k.inputs) + n, o.value) for n, o in enumerate(k.outputs) if o.mode == "turns"]]

    def blocks(self, pointers, first, limit, carried):
        """All lanes first <= i < limit of one row; returns the reduced scalars."""
        e = self.e
        self.read_rows(pointers)
        count = self.e.i64("sub", limit, first)
        blocks = self.e.i64("sdiv", self.e.i64("add", count, self.block_size - 1), self.block_size)
        keep = dict(self.body.env)

        def block(b, acc):
            base = self.e.i64("add", first, self.e.i64("mul", b, self.block_size))
            left = self.e.i64("sub", limit, base)
            full = e.emit(f"icmp sge i64 {left}, {self.block_size}")
            where = self.addresses(pointers, base, left, full)
            place_arrays(self, pointers, base, left, full)
            self.read(where)
            if self.body.behind:
                self.body.behind.start(acc[0])
            self.compute()
            self.write(where, pointers, base, left, full)
            acc = [self.reduce(o, a, left) for o, a in zip(self.reduced, acc)]
            self.body.env = dict(keep)
            return acc
        return self.e.loop(blocks, block, carried)

    def addresses(self, pointers, base, left, full):
        """Operand -> where this block reads or writes: memory, or the buffer of a part.

        `full` is an i1; None says that the block is whole.
        """
        direct = {}
        for n, value in self.streams():
            if not self.strided(n):
                direct[n] = self.e.at(pointers[n], self.e.i64("mul", base, SIZES[value.type]))
                self.prefetch(n, direct[n], value.type, base)
        where = direct if full is None else self.part(direct, left, full)
        for n, value in self.streams():
            if self.strided(n):
                step = self.words["stride", n, self.kernel.rank - 1]
                count = str(self.block_size) if left is None else left
                self.fill(n, value, self.e.at(pointers[n], self.e.i64("mul", base, step)), step, count)
                where[n] = self.buffers[n]
        return where

    def part(self, direct, left, full):
        """The buffers in place of memory where a block is not full."""
        e = self.e
        top, part, ready = e.block, e.label("part"), e.label("ready")
        e.branch(full, ready, part)
        e.start(part)
        for n, value in self.streams():
            if n < len(self.kernel.inputs) and not self.strided(n):
                self.fill(n, value, direct[n], str(SIZES[value.type]), left)
        end = e.block
        e.jump(ready)
        e.start(ready)
        return {n: e.emit(f"phi ptr [ {direct[n]}, %{top} ], [ {self.buffers[n]}, %{end} ]")
                for n in direct}

    def strided(self, n):
        return n < len(self.kernel.inputs) and self.kernel.inputs[n].access == "strided"

    def fill(self, n, value, source, step, left):
        """Copy the entries of this block into its buffer; the last one is repeated."""
        last = self.e.i64("sub", left, "1")
        size, memory = SIZES[value.type], MEMORY[value.type]

        def one(j, _):
            here = self.e.at(source, self.e.i64("mul", self.e.smin(j, last), step))
            x = self.e.emit(f"load {memory}, ptr {here}, align {size}")
            there = self.e.at(self.buffers[n], self.e.i64("mul", j, size))
            self.e.lines.append(f"  store {memory} {x}, ptr {there}, align {size}")
        self.e.loop(self.block_size, one)

    def prefetch(self, n, pointer, type, base):
        """Ask for the cache lines of a later block of operand n; this one starts at lane `base`."""
        for line in range(0, self.block_size * SIZES[type], 64):
            self.e.prefetch(self.e.at(pointer, AHEAD * SIZES[type] + line))

    def read_rows(self, pointers):
        """Bind the operands that have one entry per row."""
        for n, entry in enumerate(self.kernel.inputs):
            if entry.access == "row" and not entry.value.uniform:
                self.body.set(entry.value, [self.load_splat(pointers[n], entry.value.type)])

    def read(self, where):
        for n, value in self.streams():
            if n < len(self.kernel.inputs):
                step = self.lanes * SIZES[value.type]
                self.body.set(value, [self.load_vector(self.e.at(where[n], u * step), value.type)
                                      for u in range(self.unroll)])

    def write(self, where, pointers, base, left, full):
        k, e = self.kernel, self.e
        stores = [(len(k.inputs) + n, o.value) for n, o in enumerate(k.outputs) if o.mode == "store"]
        for n, value in stores:
            step = self.lanes * SIZES[value.type]
            for u, x in enumerate(self.body.env[value]):
                self.store_vector(x, self.e.at(where[n], u * step), value.type)

        def copy_out():
            for n, value in stores:
                target = self.e.at(pointers[n], self.e.i64("mul", base, SIZES[value.type]))
                self.copy(self.buffers[n], target, left, value.type)
        if stores and full is not None:
            self.e.when(e.emit(f"xor i1 {full}, true"), copy_out)

    def copy(self, source, target, count, type):
        """`count` entries from one place to another, one by one."""
        size, memory = SIZES[type], MEMORY[type]

        def one(j, _):
            offset = self.e.i64("mul", j, size)
            x = self.e.emit(f"load {memory}, ptr {self.e.at(source, offset)}, align {size}")
            self.e.lines.append(f"  store {memory} {x}, ptr {self.e.at(target, offset)}, align {size}")
        self.e.loop(count, one)

    # -- reductions over the lanes

    def start_of(self, out):
        """The scalar that a reduction continues from."""
        type = out.value.type
        if out.start is not None:
            return self.scalar_of(self.body.env[out.start][0], type, 0)
        return self.on_scalars(lambda: identity(self.e, out.mode, type))

    def on_scalars(self, make):
        """What `make` emits, on single numbers instead of vectors."""
        lanes, self.e.lanes = self.e.lanes, 1
        try:
            return make()
        finally:
            self.e.lanes = lanes

    def reduce(self, out, acc, left):
        """Combine the lanes of this block into `acc`, in order; idle lanes change nothing."""
        e, type, behind = self.e, out.value.type, self.body.behind
        limit, terms = self.body.splat(left, "i64"), []
        for u, x in enumerate(self.body.env[out.value]):
            lanes = ", ".join(f"i64 {u * self.lanes + j}" for j in range(self.lanes))
            live = e.emit(f"icmp slt <{self.lanes} x i64> <{lanes}>, {limit}")
            terms.append(e.choose(type, live, x, e.const(neutral(out.mode, type), type)))
        if out in self.extremes:
            self.extremes[out].step(terms)
            return acc
        if behind:
            acc = behind.finish()
            behind.put(terms)
            return acc
        for x in terms:
            acc = self.reduce_vector(out.mode, type, acc, x)
        return acc

    def reduce_vector(self, mode, type, acc, x):
        """acc combined with the lanes of x, first to last."""
        e, vector, scalar = self.e, self.e.type(type), REGISTER[type]
        if mode in ("max", "min") or type == "f16":
            for lane in range(self.lanes):
                one = self.scalar_of(x, type, lane)
                acc = self.on_scalars(lambda a=acc: accumulate(e, mode, type, a, one))
            return acc
        if type in ("f32", "f64"):
            symbol = f"@llvm.vector.reduce.f{mode}.v{self.lanes}{type}"
            e.declare(symbol, scalar, [scalar, vector])
            return e.emit(f"call {scalar} {symbol}({scalar} {acc}, {vector} {x})")
        symbol = f"@llvm.vector.reduce.{mode}.v{self.lanes}{scalar}"
        e.declare(symbol, scalar, [vector])
        part = e.emit(f"call {scalar} {symbol}({vector} {x})")
        return e.emit(f"{mode} {scalar} {acc}, {part}")

    def finish(self, accs):
        """Write the reduced scalars."""
        if self.body.behind:
            self.body.behind.start(accs[0])
            accs = [self.body.behind.finish()]
        outs = [n for n, o in enumerate(self.kernel.outputs) if o.mode in COMBINES]
        for n, acc in zip(outs, accs, strict=True):
            if (out := self.kernel.outputs[n]) in self.extremes:
                acc = self.extremes[out].finish(acc)
            self.store_one(acc, self.words["out", n], self.kernel.outputs[n].value.type)
