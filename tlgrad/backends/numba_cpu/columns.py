"""Columns of a tile, as LLVM IR: one entry per lane, in the order of the lanes or packed.

Types narrower than four bytes are widened, so that a vector of any column can be packed in registers.
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu.emitter import REGISTER, SIGNED
from tlgrad.codegen.ir import SIZES


class Columns:
    """Memory of a tile for some values; the value None stands for the place of the lane (i32)."""

    def __init__(self, body, values, tile: int):
        self.body, self.e, self.values = body, body.e, list(values)
        self.lanes, self.unroll = body.e.lanes, body.unroll
        room = tile + self.lanes * self.unroll
        self.pointers = {}
        if self.values:
            base = body.memory.take(str(sum(self.size(self.of(v)) for v in self.values) * room))
            for v in self.values:
                self.pointers[v], base = base, self.e.at(base, self.size(self.of(v)) * room)

    @staticmethod
    def of(value) -> str:
        """The kernel type of a value."""
        return "i32" if value is None else value.type

    @staticmethod
    def size(type: str) -> int:
        """Bytes of an entry."""
        return max(SIZES[type], 4)

    def kind(self, type: str) -> str:
        """The LLVM type of an entry."""
        return "i32" if SIZES[type] < 4 and type != "f16" else REGISTER[type]

    def vector(self, type: str) -> str:
        return f"<{self.lanes} x {self.kind(type)}>"

    def widened(self, x: str, type: str) -> str:
        """A register as it lies in memory."""
        if self.kind(type) == REGISTER[type]:
            return x
        extend = "sext" if type in SIGNED else "zext"
        return self.e.emit(f"{extend} {self.e.type(type)} {x} to {self.vector(type)}")

    def narrowed(self, x: str, type: str) -> str:
        """The register of what lies in memory."""
        if self.kind(type) == REGISTER[type]:
            return x
        if type == "b1":
            return self.e.emit(f"icmp ne {self.vector(type)} {x}, zeroinitializer")
        return self.e.emit(f"trunc {self.vector(type)} {x} to {self.e.type(type)}")

    def place(self, value, lane: str, u: int) -> str:
        """The address of vector u of the block that starts at a lane."""
        size = self.size(self.of(value))
        return self.e.at(self.e.at(self.pointers[value], self.e.i64("mul", lane, size)), u * self.lanes * size)

    def load(self, value, lane: str) -> list[str]:
        """A block of entries."""
        type = self.of(value)
        return [self.narrowed(self.e.emit(f"load {self.vector(type)}, ptr {self.place(value, lane, u)}, align 4"),
                              type) for u in range(self.unroll)]

    def store(self, value, lane: str, handles):
        """Write a block of entries."""
        type = self.of(value)
        for u, x in enumerate(handles):
            self.e.lines.append(f"  store {self.vector(type)} {self.widened(x, type)}, "
                                f"ptr {self.place(value, lane, u)}, align 4")

    def scatter(self, value, places: str, x: str, mask: str):
        """Write the entries of a mask, each at its lane's place."""
        e, type, n = self.e, value.type, self.lanes
        kind, vector = self.kind(type), self.vector(type)
        name = f"@llvm.masked.scatter.v{n}{self.suffix(type)}.v{n}p0"
        e.declare(name, "void", [vector, f"<{n} x ptr>", "i32 immarg", f"<{n} x i1>"])
        to = e.emit(f"getelementptr {kind}, ptr {self.pointers[value]}, <{n} x i32> {places}")
        e.lines.append(f"  call void {name}({vector} {self.widened(x, type)}, <{n} x ptr> {to}, i32 4, "
                       f"<{n} x i1> {mask})")

    def suffix(self, type: str) -> str:
        return {"float": "f32", "double": "f64"}.get(self.kind(type), self.kind(type))

    def append(self, at: str, columns, masks) -> str:
        """Write the entries of the masks one after the other from `at`; where they end."""
        e, n = self.e, self.lanes
        count = f"@llvm.ctpop.i{n}"
        e.declare(count, f"i{n}", [f"i{n}"])
        for u, mask in enumerate(masks):
            for value, handles in zip(self.values, columns, strict=True):
                type = self.of(value)
                vector, name = self.vector(type), f"@llvm.experimental.vector.compress.v{n}{self.suffix(type)}"
                e.declare(name, vector, [vector, f"<{n} x i1>", vector])
                x = e.emit(f"call {vector} {name}({vector} {self.widened(handles[u], type)}, <{n} x i1> {mask}, "
                           f"{vector} poison)")
                e.lines.append(f"  store {vector} {x}, ptr {self.place(value, at, 0)}, align 4")
            word = e.emit(f"bitcast <{n} x i1> {mask} to i{n}")
            ones = e.emit(f"call i{n} {count}(i{n} {word})")
            wide = ones if n == 64 else e.emit(f"zext i{n} {ones} to i64")
            at = e.i64("add", at, wide)
        return at
