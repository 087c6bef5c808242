"""Loops that end lane by lane, as LLVM IR: lanes of a tile that are done leave, the others are packed.

A kernel with such loops runs tile by tile of lanes, and each tile in phases:

    block by block   the operations before the loop; lanes that enter it are packed into columns
    pass by pass     blocks of packed lanes make up to TURNS turns; those that end write their
                     results, those that go on are packed again, until none is left
    block by block   the operations after the loop (and before the next one), results

Every vector is full of lanes at work but for the last of a pass, whatever the order of the lanes.
A loop inside another region masks its lanes instead (`regions`).
"""
from __future__ import annotations

from dataclasses import dataclass

from tlgrad.backends.numba_cpu.columns import Columns
from tlgrad.backends.numba_cpu.nests import Lanes
from tlgrad.backends.numba_cpu.regions import one_turn
from tlgrad.backends.numba_cpu.towers import at_work, carried, flat, split
from tlgrad.backends.numba_cpu.turnwise import place_arrays
from tlgrad.codegen.ir import Op, Value, free_values

#: turns between two packings
TURNS = 32
#: bytes of columns in a tile, and lanes at most
ROOM, MOST = 64 << 10, 4096


@dataclass
class Phase:
    """Operations on blocks of lanes, then a loop (None: the results).  `reads` are inputs and earlier
    values that it uses, `keeps` its own values that later phases use, `caught` those that its loop reads."""

    ops: list[Op]
    loop: Op | None
    reads: set[Value]
    keeps: list[Value]
    caught: list[Value]


class Tiles(Lanes):
    """Nest "lanes" of a kernel with loops that end lane by lane."""

    def loops(self):
        self.phase: Phase | None = None
        self.divide()
        lane = sum(Columns.size(v.type) for phase in self.phases for v in phase.keeps)
        lane += max(sum(Columns.size(v.type) for v in self.packed(phase)) for phase in self.phases[:-1]) + 4
        block = self.lanes * self.unroll
        self.tile = max(min(ROOM // lane, MOST) // block, 4) * block
        self.kept = Columns(self.body, [v for phase in self.phases for v in phase.keeps], self.tile)
        super().loops()

    def divide(self):
        """The phases of the kernel."""
        order = [i.value for i in self.kernel.inputs if i.access in ("lanes", "strided") and not i.value.uniform]
        order += [v for op in self.kernel.ops if not op.uniform for v in op.outs]
        lanes = set(order)
        parts: list[tuple[list[Op], Op | None]] = [([], None)]
        for op in self.kernel.ops:
            if op.name == "loop":
                parts[-1] = parts[-1][0], op
                parts.append(([], None))
            elif not op.uniform:
                parts[-1][0].append(op)
        parts = [([*self.made_again(ops), *ops], loop) for ops, loop in parts]
        results = {v for o in self.kernel.outputs if o.mode != "once" for v in (o.value, o.start) if v is not None}
        needs = [self.needed(ops, loop) & lanes for ops, loop in parts]
        needs[-1] |= results & lanes
        made = [[v for op in ops for v in op.outs] for ops, _ in parts]
        reads = [n.difference(m) for n, m in zip(needs, made)]
        self.phases, kept = [], set()
        for k, (ops, loop) in enumerate(parts):
            after = [v for v in (*made[k], *(loop.outs if loop else ()))
                     if v not in kept and any(v in r for r in reads[k + 1:])]
            kept.update(after)
            free = set().union(*map(free_values, loop.regions)) if loop else ()
            self.phases.append(Phase(ops, loop, reads[k], after, [v for v in order if v in free]))

    def made_again(self, ops) -> list[Op]:
        """Sweeps of earlier phases that those of this one visit: the states on a tape are those of one block."""
        visited = set()
        for op in ops:
            tower = self.body.sweeps.get(op.params.get("tape"), [op])
            visited.update(tower[:tower.index(op)])
        return [op for op in self.kernel.ops if op in visited and not op.uniform and op not in ops]

    @staticmethod
    def needed(ops, loop) -> set[Value]:
        """Values that operations and the loop behind them read."""
        found = set()
        for op in (*ops, *([loop] if loop else [])):
            found.update(op.args)
            for region in op.regions:
                found |= free_values(region)
        return found

    @staticmethod
    def true_flags(loop: Op) -> set[Value]:
        """Carries (as results) and values from outside that hold in every lane that goes on."""
        test = loop.regions[0]
        made = {v: op for op in test.ops for v in op.outs}
        place = dict(zip(test.params, loop.outs))
        found, rest = set(), [test.results[0]]
        while rest:
            v = rest.pop()
            if v not in made:
                found.add(place.get(v, v))
            elif made[v].name == "and" and v.type == "b1":
                rest += made[v].args
        return found

    def packed(self, phase) -> list[Value]:
        """What a lane takes along in the loop: carries, then values that the loop reads."""
        flags = self.true_flags(phase.loop)
        return [v for v in (*phase.loop.outs[1:], *phase.caught) if v not in flags]

    # -- tiles

    def streams(self):
        phase = self.phase
        return [(n, v) for n, v in super().streams() if phase is None
                or (v in phase.reads if n < len(self.kernel.inputs) else phase.loop is None)]

    def blocks(self, pointers, first, limit, carried):
        e = self.e
        self.read_rows(pointers)
        count = e.i64("sub", limit, first)
        tiles = e.i64("sdiv", e.i64("add", count, self.tile - 1), self.tile)
        types = [t for t, _ in carried]

        def tile(t, accs):
            base = e.i64("add", first, e.i64("mul", t, self.tile))
            end = e.smin(e.i64("add", base, self.tile), limit)
            self.no_faults()                  # later blocks keep what earlier ones note: all are run again
            for self.phase in self.phases[:-1]:
                self.pack = Columns(self.body, [*self.packed(self.phase), None], self.tile)
                entered, = self.each_block(pointers, base, end, [("i64", "0")], self.enter)
                self.passes(entered)
            self.phase = self.phases[-1]
            return self.each_block(pointers, base, end, list(zip(types, accs)), self.leave)
        return e.loop(tiles, tile, carried)

    def each_block(self, pointers, base, end, carried, finish):
        """The operations of a phase on each block, then ``finish(block, carried)``."""
        e, size = self.e, self.block_size
        count = e.i64("sub", end, base)
        keep = dict(self.body.env)

        def block(b, accs):
            off = e.i64("mul", b, size)
            here = e.i64("add", base, off)
            left = e.i64("sub", end, here)
            full = e.emit(f"icmp sge i64 {left}, {size}")
            where = self.addresses(pointers, here, left, full)
            place_arrays(self, pointers, here, left, full)
            self.read(where)
            for v in self.kept.values:
                if v in self.phase.reads:
                    self.body.set(v, self.kept.load(v, off))
            self.body.run(self.phase.ops)
            new = finish((pointers, where, here, left, full, off), accs)
            self.body.env = dict(keep)
            return new
        return e.loop(e.i64("sdiv", e.i64("add", count, size - 1), size), block, carried)

    def leave(self, block, accs):
        """The last phase: results of a block."""
        pointers, where, here, left, full, _ = block
        self.write(where, pointers, here, left, full)
        return [self.reduce(o, a, left) for o, a in zip(self.reduced, accs)]

    def enter(self, block, carried):
        """Before a loop: keep what later phases read, pack the lanes that make a turn."""
        e, body, loop, off = self.e, self.body, self.phase.loop, block[-1]
        inits = [body.env[a] for a in loop.args]
        none = [e.const(0, "i64")] * self.unroll
        starts = dict(zip(loop.outs, [none, *inits]))
        for v in self.phase.keeps:
            self.kept.store(v, off, starts[v] if v in starts else body.env[v])
        valid = self.below(block[3])
        with at_work(body, valid):
            live = body.region(loop.regions[0], [none, *inits])[0]
        live = [e.two("and", "b1", x, m) for x, m in zip(live, valid)]
        places = [e.two("add", "i32", self.iota(u), body.splat(e.emit(f"trunc i64 {off} to i32"), "i32"))
                  for u in range(self.unroll)]
        columns = [starts[v] if v in starts else places if v is None else body.env[v] for v in self.pack.values]
        return [self.pack.append(carried[0], columns, live)]

    def iota(self, u):
        """The numbers of the lanes of vector u in its block."""
        return "<" + ", ".join(f"i32 {u * self.lanes + j}" for j in range(self.lanes)) + ">"

    def below(self, limit):
        """Masks of the lanes of a block whose number is less than an i64."""
        limit = self.body.splat(self.e.emit(f"trunc i64 {limit} to i32"), "i32")
        return [self.e.emit(f"icmp slt {self.e.type('i32')} {self.iota(u)}, {limit}") for u in range(self.unroll)]

    # -- passes

    def passes(self, entered):
        """Passes over the packed lanes until all have ended."""
        e = self.e

        def one(handles):
            left, turn = handles
            limit = e.i64("add", turn, TURNS)
            groups = e.i64("sdiv", e.i64("add", left, self.block_size - 1), self.block_size)
            still, = e.loop(groups, lambda g, at: [self.group(g, at[0], left, turn, limit)], [("i64", "0")])
            return still, limit
        e.repeat([("i64", entered), ("i64", "0")], lambda h: e.emit(f"icmp sgt i64 {h[0]}, 0"), one)

    def group(self, g, at, left, turn, limit):
        """One block of packed lanes: turns, results of those that end, the others packed from `at`."""
        e, body, loop = self.e, self.body, self.phase.loop
        off = e.i64("mul", g, self.block_size)
        valid = self.below(e.i64("sub", left, off))
        columns = {v: self.pack.load(v, off) for v in self.pack.values}
        columns.update({v: [e.const(1, "b1")] * self.unroll for v in self.true_flags(loop)})
        keep = dict(body.env)
        body.env.update({v: columns[v] for v in self.phase.caught})
        starts = [columns[v] for v in loop.outs[1:]]
        turns, ends, live = self.turns(loop, turn, limit, starts, valid)
        ends = dict(zip(loop.outs, [turns, *ends]))
        gone = [e.two("and", "b1", m, e.two("xor", "b1", x, e.const(1, "b1"))) for m, x in zip(valid, live)]
        results = [v for v in loop.outs if v in self.phase.keeps]

        def put():
            for u in range(self.unroll):
                for v in results:
                    self.kept.scatter(v, columns[None][u], ends[v][u], gone[u])
        if results:
            e.when(e.any_lane(gone), put)
        body.env = keep
        return self.pack.append(at, [ends.get(v) or columns[v] for v in self.pack.values], live)

    def turns(self, loop, turn, limit, starts, valid):
        """Turns of a block from `turn` until `limit`, or all have ended: turns by lane, carries, who goes on."""
        e, body, counts = self.e, self.body, loop.outs[0] in self.body.used
        zero = [e.const(0, "i32")] * self.unroll
        types = [("i64", turn), *carried(body, loop.outs[1:], starts), *[(e.type("b1"), x) for x in valid],
                 *[(e.type("i32"), x) for x in zero]]
        top, run, done = e.block, e.label("turn"), e.label("done")
        e.jump(run)
        e.start(run)
        mark, names = len(e.lines), [e.name() for _ in types]
        masks, made = names[-2 * self.unroll:-self.unroll], names[-self.unroll:]
        old = split(names[1:-2 * self.unroll], self.unroll)
        after, new, still = one_turn(body, loop, names[0], old, masks)
        more = zero
        if counts:
            more = [e.two("add", "i32", n, e.cast("zext", m, "b1", "i32")) for n, m in zip(made, masks)]
        go = e.emit(f"and i1 {e.any_lane(still)}, {e.emit(f'icmp slt i64 {after}, {limit}')}")
        end = e.block
        e.lines[mark:mark] = [f"  {n} = phi {t} [ {x}, %{top} ], [ {y}, %{end} ]"
                              for n, (t, x), y in zip(names, types, [after, *flat(new), *still, *more])]
        e.branch(go, run, done)
        e.start(done)
        total = [e.two("add", "i64", e.cast("zext", n, "i32", "i64"), body.splat(turn, "i64")) for n in more]
        return total, new, still
