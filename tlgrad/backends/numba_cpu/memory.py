"""Memory of one launch, as LLVM IR: pieces on the heap that grow and are freed at the end.

A piece that was freed and taken again for every block would be given back to the system and come
back as fresh pages (measured: twice the time of a gradient).
"""
from __future__ import annotations


class Memory:
    """Pieces of memory.  `entry` are the lines at the start of the function, `exit()` those at its end."""

    def __init__(self, emitter):
        self.e, self.pieces = emitter, 0

    @property
    def entry(self) -> list[str]:
        """An address and a size for each piece: none yet."""
        return [line for k in range(self.pieces) for line in (
            f"  %piece{k} = alloca ptr", f"  %room{k} = alloca i64",
            f"  store ptr null, ptr %piece{k}", f"  store i64 0, ptr %room{k}")]

    def take(self, size: str) -> str:
        """The address of a new piece of at least `size` bytes, aligned to 64; what it held may be lost."""
        e, k = self.e, self.pieces
        self.pieces += 1
        e.declare("@malloc", "ptr", ["i64"])
        e.declare("@free", "void", ["ptr"])
        room = e.emit(f"load i64, ptr %room{k}")

        def grow():
            e.lines.append(f"  call void @free(ptr {e.emit(f'load ptr, ptr %piece{k}')})")
            raw = e.emit(f"call ptr @malloc(i64 {e.i64('add', size, '64')})")
            e.lines.append(f"  store ptr {raw}, ptr %piece{k}")
            e.lines.append(f"  store i64 {size}, ptr %room{k}")
        missing = e.emit(f"icmp slt i64 {room}, {size}")
        none = e.emit(f"icmp eq ptr {e.emit(f'load ptr, ptr %piece{k}')}, null")
        e.when(e.emit(f"or i1 {missing}, {none}"), grow)
        address = e.emit(f"ptrtoint ptr {e.emit(f'load ptr, ptr %piece{k}')} to i64")
        aligned = e.i64("and", e.i64("add", address, "63"), "-64")
        return e.emit(f"inttoptr i64 {aligned} to ptr")

    def exit(self):
        """Free the pieces."""
        for k in range(self.pieces):
            self.e.lines.append(f"  call void @free(ptr {self.e.emit(f'load ptr, ptr %piece{k}')})")
