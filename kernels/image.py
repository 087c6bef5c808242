"""Object code (ELF, x86-64) made executable without LLVM: what a process with a warm disk cache needs.

The objects of `Machine` are position independent up to 64-bit words: sections are copied into one block of
memory, and each relocation is a word S + A, or S + A - P from the place of the word (System V ABI, AMD64
supplement, table 4.9).  An object that has anything else is not taken, and LLVM loads it.
"""
import ctypes
import mmap
import platform
import struct
import sys
from typing import Callable

PAGE = mmap.PAGESIZE if hasattr(mmap, "PAGESIZE") else 4096
#: sections that are loaded (SHF_ALLOC) and have contents (SHT_PROGBITS), and tables of relocations (SHT_RELA)
ALLOC, PROGBITS, RELA = 2, 1, 4
#: words of relocation types R_X86_64_64 and R_X86_64_PC64
ABSOLUTE, RELATIVE = 1, 24
#: blocks of code live as long as the process
_blocks: list[mmap.mmap] = []


class NotTaken(Exception):
    """Raised for an object that needs a full linker."""


def supported() -> bool:
    """True where objects are ELF for x86-64 and memory can be made executable."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and hasattr(mmap, "PROT_EXEC")


class Object:
    """A relocatable object: sections as (name, type, flags, offset, size, link, info, align), symbols."""

    def __init__(self, code: bytes):
        if code[:5] != b"\x7fELF\x02" or struct.unpack_from("<HH", code, 16) != (1, 62):
            raise NotTaken("not a relocatable object for x86-64")
        self.code = code
        table, = struct.unpack_from("<Q", code, 40)
        size, count, strings = struct.unpack_from("<HHH", code, 58)
        raw = [struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
        names = raw[strings][4]
        self.sections = [(self.text(names + s[0]), s[1], s[2], *s[4:9]) for s in raw]
        _, _, _, offset, size, link, *_ = next(s for s in self.sections if s[0] == ".symtab")
        strings = self.sections[link][3]
        self.symbols = [(self.text(strings + name), section, value) for name, _, section, value, _ in
                        struct.iter_unpack("<IBxHQQ", code[offset:offset + size])]

    def text(self, start: int) -> str:
        """The string that begins at a place."""
        return self.code[start:self.code.index(b"\0", start)].decode()

    def loaded(self) -> dict[int, tuple]:
        """The sections with code and constants by number; tables for unwinding are left out."""
        kept = {k: s for k, s in enumerate(self.sections) if s[2] & ALLOC and s[0] != ".eh_frame"}
        if any(s[1] != PROGBITS for s in kept.values()):
            raise NotTaken("a section without contents")
        return kept


def load(code: bytes, name: str, external: Callable[[str], int | None]) -> int:
    """The address of `name` in an object; ``external(symbol)`` gives addresses outside of it, or None.

    Raises NotTaken for an object that needs more than this.
    """
    if not supported():
        raise NotTaken("another machine")
    found = Object(code)
    kept, starts, size = found.loaded(), {}, 0
    for k, section in kept.items():
        align = max(section[7], 1)
        starts[k] = size = -(-size // align) * align
        size += section[4]
    block = mmap.mmap(-1, max(-(-size // PAGE), 1) * PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(block))
    for k, section in kept.items():
        block[starts[k]:starts[k] + section[4]] = code[section[3]:section[3] + section[4]]

    def address(number: int) -> int:
        symbol, section, value = found.symbols[number]
        place = base + starts[section] + value if section in starts else external(symbol) if section == 0 else None
        if place is None:
            raise NotTaken(f"the symbol {symbol}")
        return place
    for _, type, _, offset, length, _, target, _ in found.sections:
        if type == RELA and target in starts:
            for place, info, addend in struct.iter_unpack("<QQq", code[offset:offset + length]):
                _relocate(block, base, starts[target] + place, info & 0xffffffff, address(info >> 32) + addend)
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(base), len(block), 5):       # read, execute
        raise NotTaken("memory that may not be executed")
    _blocks.append(block)
    return address(next(k for k, s in enumerate(found.symbols) if s[0] == name))


def _relocate(block, base: int, place: int, kind: int, value: int):
    """Write the word of a relocation."""
    if kind not in (ABSOLUTE, RELATIVE):
        raise NotTaken(f"a relocation of type {kind}")
    word = value if kind == ABSOLUTE else value - base - place
    struct.pack_into("<Q", block, place, word & (1 << 64) - 1)
