"""A sum in order that several threads make tile by tile.

One kernel writes the terms of a tile, one goes on with the sum by terms, and one does both.  It is a task
of a team: a thread takes the next tile.  Where all tiles before it are summed it does both; otherwise it writes
the terms into a ring, and then sums what is next in order, if those terms are there and no other thread is
summing.  So the result does not depend on how many threads there are, on when they start, or on whether one of
them is held up; and one thread alone does what it would do without a ring.
"""
from .bands import Program
from .loops import Loops
from .team import OWN

#: the function's words of the state, each counter in a line of the cache of its own.  PIECE, RING: bytes of terms
#: of a tile, and tiles in the ring; TAKEN: tiles that threads took; DONE: tiles that are summed; BUSY: 1 while a
#: thread sums; from READY on, for each place in the ring, the number after that of the tile whose terms are there
PIECE, RING, TAKEN, DONE, BUSY, READY = OWN, OWN + 1, 8, 16, 24, 32
#: looks at a counter before another thread may have the processor
LOOKS = 64
#: no value of BUSY
NEVER = 2


def module(name):
    """The text of a module with ``void name(ptr slots, i64 lo, i64 hi)`` over rows, for each thread.  Slot 0
    is the state; slot 1 a program of three kernels as in `bands`, whose bands are the tiles: terms, sum, both;
    slot 2 the ring."""
    relay = Relay()
    relay.run()
    return "\n".join(["declare i32 @sched_yield()",
                      f"define void @{name}(ptr %slots, i64 %lo, i64 %hi) nounwind {{", "entry:",
                      *relay.e.lines, "  ret void", "}", ""])


class Relay:
    """The emitter."""

    def __init__(self):
        e = self.e = Loops()
        self.program = Program(e, 1)
        self.state = e.emit("load ptr, ptr %slots, align 8")
        self.place = e.at("%slots", 16)
        self.ring = e.emit(f"load ptr, ptr {self.place}, align 8")
        self.terms = self.program.first
        self.sum = self.program.after(self.terms)
        self.both = self.program.after(self.sum)
        self.piece, self.pieces = (e.emit(f"load i64, ptr {self.word(k)}, align 8") for k in (PIECE, RING))

    def run(self):
        """Tiles, until none is left."""
        e = self.e
        e.repeat([("i64", self.take())], lambda state: e.emit(f"icmp slt i64 {self.first(state[0])}, %hi"),
                 lambda state: self.tile(state[0]))

    def tile(self, number):
        """A tile, as soon as there is room for its terms; the next tile."""
        e = self.e
        last = e.i64("sub", number, self.pieces)

        def look(state):
            self.combine()
            looks = e.i64("add", state[0], 1)
            e.when(e.emit(f"icmp eq i64 {e.i64('and', looks, LOOKS - 1)}, 0"),
                   lambda: e.lines.append("  call i32 @sched_yield()"))
            return [looks]
        e.repeat([("i64", "0")], lambda _: e.emit(f"icmp sle i64 {self.load(self.word(DONE))}, {last}"), look)
        both, terms, join = e.label("both"), e.label("terms"), e.label("join")
        is_next = e.emit(f"icmp eq i64 {self.load(self.word(DONE))}, {number}")
        e.branch(self.enter(e.emit(f"select i1 {is_next}, i64 0, i64 {NEVER}")), both, terms)
        e.start(both)
        self.next(self.both)
        self.leave()
        e.jump(join)
        e.start(terms)
        self.on(number, self.terms)
        e.emit(f"atomicrmw xchg ptr {self.ready(number)}, i64 {e.i64('add', number, 1)} seq_cst, align 8")
        e.jump(join)
        e.start(join)
        self.combine()
        return [self.take()]

    def enter(self, expected):
        """An i1: this thread sums now; nobody did, if `expected` is 0."""
        found = self.e.emit(f"cmpxchg ptr {self.word(BUSY)}, i64 {expected}, i64 1 seq_cst seq_cst, align 8")
        return self.e.emit(f"extractvalue {{ i64, i1 }} {found}, 1")

    def leave(self):
        """This thread no longer sums."""
        self.e.emit(f"atomicrmw xchg ptr {self.word(BUSY)}, i64 0 seq_cst, align 8")

    def combine(self):
        """Sum what is next in order.  Who finds another thread at it may go on: that one looks again after it
        has left."""
        e = self.e

        def drain():
            e.repeat([], lambda _: self.waiting(), lambda _: self.next(self.sum))
            self.leave()

        def once(_):
            mine = self.enter(0)
            e.when(mine, drain)
            return [mine]
        e.repeat([("i1", "true")], lambda state: e.emit(f"and i1 {state[0]}, {self.waiting()}"), once)

    def waiting(self):
        """An i1: the terms that come next are there."""
        done = self.load(self.word(DONE))
        return self.e.emit(f"icmp sgt i64 {self.load(self.ready(done))}, {done}")

    def next(self, kernel):
        """Go on with the sum by one tile."""
        e, done = self.e, self.load(self.word(DONE))
        self.on(done, kernel)
        e.lines.append(f"  store atomic i64 {e.i64('add', done, 1)}, ptr {self.word(DONE)} seq_cst, align 8")
        return []

    def on(self, number, kernel):
        """Run a kernel on a tile."""
        e, start = self.e, self.first(number)
        where = e.at(self.ring, e.i64("mul", e.i64("urem", number, self.pieces), self.piece))
        e.lines.append(f"  store ptr {where}, ptr {self.place}, align 8")
        self.program.run(kernel, start, e.smin(e.i64("add", start, self.program.height), "%hi"))

    def take(self):
        """The number of the next tile."""
        return self.e.emit(f"atomicrmw add ptr {self.word(TAKEN)}, i64 1 monotonic, align 8")

    def first(self, number):
        """The first row of a tile."""
        return self.e.i64("add", "%lo", self.e.i64("mul", number, self.program.height))

    def ready(self, number):
        """Where a tile is said to be ready."""
        place = self.e.i64("urem", number, self.pieces)
        return self.e.at(self.word(READY), self.e.i64("mul", place, 8))

    def word(self, number):
        """The address of a word of the state."""
        return self.e.at(self.state, 8 * number)

    def load(self, place):
        """A word that other threads write."""
        return self.e.emit(f"load atomic i64, ptr {place} seq_cst, align 8")
