"""Sums of products of strided operands, as LLVM IR text: y[kept] = sum over terms of ((x0 x1) x2) ...

One nest serves reductions of one operand along any axes, contractions of any number of operands, and
running sums.  Lanes go along one kept axis; the accumulators of a chunk of lanes stay in the first
cache while the terms pass by, in order, `together` terms at a time, which keeps as many streams
of memory open.  An operand is, along the lanes,

    dense     vectors are loaded
    same      one entry for all lanes
    turned    strided, and dense along the innermost sum: L terms of L lanes are transposed in registers
    strided   entry by entry

Lanes that fill no vector are computed one by one.  Sizes and strides are words of the launch: `words_of`
names them; after them come rows (size, strides of the operands, stride of the result) of the other kept axes
and then of the other axes of the sum, the fastest first.
"""
from __future__ import annotations

from dataclasses import dataclass

from tlgrad.backends.numba_cpu.combine import accumulate, identity
from tlgrad.backends.numba_cpu.emitter import MEMORY, REGISTER, Emitter
from tlgrad.backends.numba_cpu.scalars import SCALARS
from tlgrad.codegen.ir import SIZES
from tlgrad.kernels.tiles.loops import transposed

#: bytes of accumulators in a chunk
CHUNK_BYTES = 16384
#: terms whose products are added to an accumulator between its load and its store
TOGETHER = 4
#: bytes ahead that dense operands are asked for
AHEAD = 2048


@dataclass(frozen=True)
class Fold:
    """What is in the text: entry type, combination, classes of the operands and of the result.

    `running`: the result has the axes of the sum, and every partial sum is stored.
    """

    type: str
    mode: str
    fused: bool
    operands: tuple[str, ...]
    result: str
    running: bool

    @property
    def turned(self) -> bool:
        """Some operand, or the result, is transposed in registers."""
        return "turned" in (*self.operands, self.result)

    def name(self) -> str:
        """A name for the kernel."""
        kinds = "_".join((*self.operands, self.result))
        return f"fold_{self.type}_{self.mode}_{'fused_' * self.fused}{'running_' * self.running}{kinds}"

    def chunk(self, lanes: int) -> int:
        """Lanes of a chunk, for vectors of `lanes`."""
        return lanes if self.turned else CHUNK_BYTES // SIZES[self.type]


def words_of(count: int) -> list:
    """The words of a launch with `count` operands; operand number `count` is the result."""
    return [*[("place", k) for k in range(count + 1)], "lanes", "chunk", "inner", "terms", "leaf", "result_leaf",
            "outer", "fresh", *[("lane", k) for k in range(count + 1)], *[("step", k) for k in range(count + 1)],
            "outer_rank", "summed_rank"]


class Strided:
    """The emitter of one kernel."""

    def __init__(self, fold: Fold, vector_bytes: int, avx512: bool):
        self.fold, self.size = fold, SIZES[fold.type]
        self.lanes = vector_bytes // self.size
        self.e = Emitter(self.lanes, avx512=avx512)
        self.count = len(fold.operands)
        self.together = self.lanes if fold.turned else TOGETHER

    def function(self, name: str) -> str:
        """The module text: ``void name(ptr slots, i64 lo, i64 hi)`` over leaves, outer entries and chunks."""
        e, self.w = self.e, {}
        names = words_of(self.count)
        for k, word in enumerate(names):
            where = e.emit(f"getelementptr i64, ptr %slots, i64 {k}")
            kind = "ptr" if word[0] == "place" else "i64"
            self.w[word] = e.emit(f"load {kind}, ptr {where}, align 8")
        self.rows = e.at("%slots", str(8 * len(names)))
        self.row_bytes = 8 * (self.count + 2)
        self.far = e.at(self.rows, e.i64("mul", self.w["outer_rank"], self.row_bytes))
        self.steps = [[e.i64("mul", self.w["step", k], r) for r in range(self.together)]
                      for k in range(self.count + 1)]
        self.acc = e.emit(f"alloca [{self.fold.chunk(self.lanes) * self.size} x i8], align 64")
        chunks = e.i64("add", self.w["lanes"], e.i64("sub", self.w["chunk"], 1))
        self.chunks = e.i64("udiv", chunks, self.w["chunk"])
        e.loop(e.i64("sub", "%hi", "%lo"), lambda i, _: self.item(e.i64("add", i, "%lo")))
        return "\n".join([*e.declarations.values(), f"define void @{name}(ptr noalias %slots, i64 %lo, i64 %hi) "
                          "nounwind {", "entry:", *e.lines, "  ret void", "}", ""])

    # -- the loops around the terms

    def walk(self, rows, rank, number, places):
        """The addresses at entry `number` of the axes in a table."""
        def axis(k, state):
            left, *now = state
            row = self.e.at(rows, self.e.i64("mul", k, self.row_bytes))
            n, *strides = [self.e.emit(f"load i64, ptr {self.e.at(row, 8 * j)}, align 8")
                           for j in range(self.count + 2)]
            index = self.e.i64("urem", left, n)
            return [self.e.i64("udiv", left, n), *self.moved(now, index, strides)]
        return self.e.loop(rank, axis, [("i64", number), *[("ptr", p) for p in places]])[1:]

    def moved(self, places, index, strides):
        """The addresses `index` strides further on."""
        return [self.e.at(p, self.e.i64("mul", index, s)) for p, s in zip(places, strides, strict=True)]

    def along(self, word):
        """The strides of all operands and the result along the lanes or the innermost sum."""
        return [self.w[word, k] for k in range(self.count + 1)]

    def item(self, index):
        """One chunk of lanes of one outer entry, for one leaf of the terms."""
        e, w = self.e, self.w
        rest = e.i64("udiv", index, self.chunks)
        leaf = e.i64("udiv", rest, w["outer"])
        places = [w["place", k] for k in range(self.count + 1)]
        places = self.walk(self.rows, w["outer_rank"], e.i64("urem", rest, w["outer"]), places)
        first = e.i64("mul", e.i64("urem", index, self.chunks), w["chunk"])
        *places, out = self.moved(places, first, self.along("lane"))
        out = e.at(out, e.i64("mul", leaf, w["result_leaf"]))
        width = e.smin(e.i64("sub", w["lanes"], first), w["chunk"])
        self.start(out, width)
        start = e.i64("mul", leaf, w["leaf"])
        stop = e.smin(e.i64("add", start, w["leaf"]), w["terms"])
        last = e.i64("udiv", e.i64("sub", stop, 1), w["inner"])
        turns = e.i64("add", e.i64("sub", last, e.i64("udiv", start, w["inner"])), 1)

        def run(_, state):
            t = state[0]
            here = self.walk(self.far, w["summed_rank"], e.i64("udiv", t, w["inner"]), [*places, out])
            at = e.i64("urem", t, w["inner"])
            count = e.smin(e.i64("sub", w["inner"], at), e.i64("sub", stop, t))
            self.terms(self.moved(here, at, self.along("step")), count, width)
            return [e.i64("add", t, count)]
        e.loop(turns, run, [("i64", start)])
        if not self.fold.running:
            self.each_lane(width, out, lambda acc, there: self.copy(acc, there))

    def start(self, out, width):
        """The accumulators: the identity, or what the result holds."""
        e, type = self.e, self.fold.type
        vectors = e.i64("udiv", e.i64("add", width, self.lanes - 1), self.lanes)

        def clear(v, _):
            self.store(identity(e, self.fold.mode, type), e.at(self.acc, e.i64("mul", v, self.lanes * self.size)))
        e.loop(vectors, clear)
        again = e.emit(f"icmp eq i64 {self.w['fresh']}, 0")
        e.when(again, lambda: self.each_lane(width, out, lambda acc, there: self.copy(there, acc)))

    def each_lane(self, width, out, body):
        """body(address of the accumulator, address in the result) for each lane."""
        def lane(j, _):
            body(self.e.at(self.acc, self.e.i64("mul", j, self.size)),
                 self.e.at(out, self.e.i64("mul", j, self.w["lane", self.count])))
        self.e.loop(width, lane)

    def copy(self, source, target):
        """One entry."""
        kind = MEMORY[self.fold.type]
        x = self.e.emit(f"load {kind}, ptr {source}, align {self.size}")
        self.e.lines.append(f"  store {kind} {x}, ptr {target}, align {self.size}")

    # -- terms

    def terms(self, places, count, width):
        """`count` terms of all lanes: several at a time, then one by one."""
        e = self.e
        groups = e.i64("udiv", count, self.together)
        done = e.i64("mul", groups, self.together)

        def group(g, _):
            first = e.i64("mul", g, self.together)
            self.group(self.moved(places, first, self.along("step")), self.together, width)

        def single(i, _):
            self.group(self.moved(places, e.i64("add", done, i), self.along("step")), 1, width)
        e.loop(groups, group)
        e.loop(e.i64("sub", count, done), single)

    def group(self, places, together, width):
        """`together` terms: whole vectors of lanes, then the other lanes one by one."""
        e = self.e
        splats = {k: [self.splat(self.load_one(e.at(places[k], self.steps[k][r]))) for r in range(together)]
                  for k, kind in enumerate(self.fold.operands) if kind == "same"}
        whole = e.i64("udiv", width, self.lanes)
        done = e.i64("mul", whole, self.lanes)
        e.loop(whole, lambda v, _: self.block(places, e.i64("mul", v, self.lanes), together, splats))
        lanes, e.lanes = e.lanes, 1
        e.loop(e.i64("sub", width, done), lambda j, _: self.block(places, e.i64("add", done, j), together, None))
        e.lanes = lanes

    def block(self, places, lane, together, splats):
        """The lanes from `lane` on: a vector, or a single one."""
        e = self.e
        here = self.moved(places, lane, self.along("lane"))
        place = e.at(self.acc, e.i64("mul", lane, self.size))
        acc, partial = self.load(place), []
        columns = [self.entries(k, here[k], together, splats) for k in range(self.count)]
        for factors in zip(*columns):
            acc = self.step(acc, factors)
            partial.append(acc)
        self.store(acc, place)
        if self.fold.running:
            self.put(here[-1], partial)

    def step(self, acc, factors):
        """One more term."""
        e, type = self.e, self.fold.type
        fused = self.fold.fused and len(factors) > 1
        product = factors[0]
        for x in factors[1:-1 if fused else None]:
            product = SCALARS["mul"](e, type, [product, x], type, {})
        if fused:
            return e.call_float("fma", type, product, factors[-1], acc)
        return accumulate(e, self.fold.mode, type, acc, product)

    def entries(self, k, here, together, splats):
        """The entries of operand k in `together` terms."""
        e, kind = self.e, self.fold.operands[k]
        if e.lanes > 1 and kind == "same":
            return splats[k]
        if e.lanes > 1 and kind == "turned" and together == e.lanes:
            lines = [self.load(e.at(here, e.i64("mul", self.w["lane", k], j))) for j in range(e.lanes)]
            return transposed(e, e.type(self.fold.type), lines)
        found = []
        for r in range(together):
            there = e.at(here, self.steps[k][r])
            if e.lanes == 1 or kind == "dense":
                if e.lanes > 1:
                    e.prefetch(e.at(there, AHEAD))
                found.append(self.load(there))
            else:
                found.append(self.gathered(there, self.w["lane", k]))
        return found

    def gathered(self, here, stride):
        """A vector of entries `stride` bytes apart."""
        e, vector = self.e, "poison"
        for j in range(e.lanes):
            x = self.load_one(e.at(here, e.i64("mul", stride, j)))
            vector = e.emit(f"insertelement {e.type(self.fold.type)} {vector}, {REGISTER[self.fold.type]} {x}, "
                            f"i64 {j}")
        return vector

    def put(self, here, partial):
        """Store partial sums."""
        e, kind = self.e, self.fold.result
        if e.lanes > 1 and kind == "turned" and len(partial) == e.lanes:
            for j, line in enumerate(transposed(e, e.type(self.fold.type), partial)):
                self.store(line, e.at(here, e.i64("mul", self.w["lane", self.count], j)))
            return
        for r, x in enumerate(partial):
            there = e.at(here, self.steps[self.count][r])
            if e.lanes == 1 or kind == "dense":
                self.store(x, there)
                continue
            for j in range(e.lanes):
                one = e.emit(f"extractelement {e.type(self.fold.type)} {x}, i64 {j}")
                place = e.at(there, e.i64("mul", self.w["lane", self.count], j))
                e.lines.append(f"  store {MEMORY[self.fold.type]} {one}, ptr {place}, align {self.size}")

    # -- values in memory

    def load_one(self, place):
        return self.e.emit(f"load {MEMORY[self.fold.type]}, ptr {place}, align {self.size}")

    def load(self, place):
        return self.e.emit(f"load {self.e.type(self.fold.type)}, ptr {place}, align {self.size}")

    def store(self, x, place):
        self.e.lines.append(f"  store {self.e.type(self.fold.type)} {x}, ptr {place}, align {self.size}")

    def splat(self, x):
        e, vector = self.e, self.e.type(self.fold.type)
        first = e.emit(f"insertelement {vector} poison, {REGISTER[self.fold.type]} {x}, i64 0")
        return e.emit(f"shufflevector {vector} {first}, {vector} poison, <{e.lanes} x i32> zeroinitializer")
