"""Matrix products in a stated order: C[b, m, n] = C0 + sum over k of A[b, m, k] B[b, k, n].

Every entry of C is one chain over k, left to right: ``acc = acc + a * b`` ("ordered") or
``acc = fma(a, b, acc)`` ("fused").  Speed comes from many chains side by side: a tile of
`rows` times `vectors` accumulators in registers.  B is packed once per block into panels of one
tile's width: by the first band of tiles while they compute, where its rows are dense in memory, else
beforehand (`panels`).  A is read in place, entry by entry, with any strides; in order "fused" a
band of rows that lie side by side in memory (A transposed) is copied first, term by term, since its
lines would leave the first cache before the next panel reads them again (measured 1.2x).  Blocks
over k write their accumulators to C and read them again, which keeps the order.

Blocking after Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008.
"""
from dataclasses import dataclass

from .loops import Loops, blocks, even_blocks
from .micro import LINE, Micro
from .panels import Packer, copy_band, copy_rows

#: the words of a launch, in order: three addresses, sizes, then strides in bytes; `fresh`: C0 is 0;
#: `past`: C is large, and written past the caches where one block holds all terms; `packed`: memory for the
#: block of B, or 0; `ready`: it holds the only block already
WORDS = ("a", "b", "c", "m_first", "m_limit", "n", "k", "fresh", "past", "packed", "ready",
         "a_batch", "a_m", "a_k", "b_batch", "b_k", "b_n", "c_batch", "c_m")
#: bytes of the next product's B that are asked for while this one is computed
NEXT_BYTES = 1 << 17
#: by processor: whether products of the order "ordered" read an operand from memory, and the bytes of a packed
#: block of B.  Zen 4 does a product and a sum of 512 bits in every cycle only so: a term of a tile of 6 by 4 in
#: the first cache takes 23.8 cycles, 29.8 by registers, 24 by its ports.  Its second cache has 1 MB: 1.02x at
#: 1024 cubed
PROCESSORS = {"znver4": (True, 1 << 19)}
OTHERS = (False, 3 << 18)


@dataclass(frozen=True)
class Tile:
    """A kernel's parameters: entry type (f32, f64, or i32, i64, which wrap around), vector lanes, rows and
    vectors of the tile, the order; bytes of a packed block of B; `embedded`: every product reads its entry of A
    from memory again."""

    type: str
    lanes: int
    rows: int
    vectors: int
    fused: bool
    block: int
    embedded: bool

    @property
    def size(self):
        """Bytes of an entry."""
        return 4 if self.type in ("f32", "i32") else 8

    @property
    def width(self):
        """Columns of a tile."""
        return self.lanes * self.vectors

    @property
    def depth(self):
        """The most terms in a block."""
        return 384 if self.lanes * self.size == 64 else 256

    @property
    def room(self):
        """Bytes of a packed block."""
        return max(self.block, self.depth * self.width * self.size)

    def one_block(self, n, k):
        """True when n columns of k terms are a single block."""
        return k <= self.depth and -(-n // self.width) * self.width * k * self.size <= self.block


def tile_for(type, machine, fused):
    """The tile for a machine: accumulators fill three quarters of the registers."""
    lanes = machine.vector_bytes // (4 if type in ("f32", "i32") else 8)
    rows, vectors = {64: (6, 4), 32: (6, 2)}.get(machine.vector_bytes, (4, 2))
    from_memory, block = PROCESSORS.get(machine.cpu, OTHERS)
    return Tile(type, lanes, rows, vectors, fused, block, from_memory and type in ("f32", "f64") and not fused)


def module(tile, name):
    """The text of a module with ``void name(ptr slots, i64 lo, i64 hi)`` over batches lo..hi-1."""
    heights = sorted({tile.rows, 4, 2, 1} & set(range(1, tile.rows + 1)), reverse=True)
    micros = [Micro(tile, rows, packs) for packs in (False, True) for rows in heights]
    driver = Driver(tile, heights)
    packer = Packer(tile)
    functions = [*[m.text() for m in micros], copy_rows(tile), *[copy_band(tile)] * tile.fused, packer.text(),
                 driver.text(name)]
    declarations = {k: v for part in [*micros, packer, driver] for k, v in part.e.declarations.items()}
    return "\n".join([*declarations.values(), *functions, ""])


@dataclass(frozen=True)
class Block:
    """Operands of LLVM for a block of B: its place in B, terms, columns; i1s: C starts at 0, the first band of
    tiles packs it; where the B of the next product is, and how many bytes of it each row of A asks for."""

    place: str
    depth: str
    width: str
    fresh: str
    by_tiles: str
    next: str
    share: str


class Driver:
    """The loops around the tiles: batches, column blocks, term blocks, rows, panels."""

    def __init__(self, tile, heights):
        self.tile, self.heights = tile, heights
        self.e = Loops(tile.lanes)

    def text(self, name):
        """The kernel."""
        e = self.e
        self.w = {}
        for k, word in enumerate(WORDS):
            where = e.emit(f"getelementptr i64, ptr %slots, i64 {k}")
            self.w[word] = e.emit(f"load {'ptr' if k < 3 else 'i64'}, ptr {where}, align 8")
        e.declare("@malloc", "ptr", ["i64"])
        e.declare("@free", "void", ["ptr"])
        t = self.tile
        self.corner = e.emit(f"alloca [{t.rows * t.width * t.size} x i8], align {LINE}")
        self.band = e.emit(f"alloca [{t.rows * t.depth * t.size} x i8], align {LINE}") if t.fused else ""
        given = e.emit(f"icmp ne i64 {self.w['packed']}, 0")
        raw = e.emit(f"call ptr @malloc(i64 {e.emit(f'select i1 {given}, i64 1, i64 {t.room + LINE}')})")
        whole = e.i64("and", e.i64("add", e.emit(f"ptrtoint ptr {raw} to i64"), LINE - 1), -LINE)
        place = e.emit(f"select i1 {given}, i64 {self.w['packed']}, i64 {whole}")
        self.packed = e.emit(f"inttoptr i64 {place} to ptr")
        self.past, self.share = self.may_go_past(), self.share_of_rows()
        e.loop(e.i64("sub", "%hi", "%lo"), lambda b, _: self.batch(e.i64("add", b, "%lo")))
        e.lines += [f"  call void @free(ptr {raw})", "  fence seq_cst"]
        return "\n".join([f"define void @{name}(ptr noalias %slots, i64 %lo, i64 %hi) nounwind {{", "entry:",
                          *e.lines, "  ret void", "}"])

    def may_go_past(self):
        """C is to be written past the caches, one block holds all terms, and its lines start where tiles do."""
        e, w = self.e, self.w
        places = e.i64("or", e.emit(f"ptrtoint ptr {w['c']} to i64"), e.i64("or", w["c_m"], w["c_batch"]))
        aligned = e.emit(f"icmp eq i64 {e.i64('and', places, LINE - 1)}, 0")
        short = e.emit(f"icmp sle i64 {w['k']}, {self.tile.depth}")
        asked = e.emit(f"icmp ne i64 {w['past']}, 0")
        return e.emit(f"and i1 {e.emit(f'and i1 {aligned}, {short}')}, {asked}")

    def batch(self, b):
        """One product."""
        e, w = self.e, self.w
        a, bb, c = (e.at(w[x], e.i64("mul", b, w[f"{x}_batch"])) for x in "abc")
        follows = e.emit(f"icmp slt i64 {e.i64('add', b, 1)}, %hi")
        next, share = e.at(bb, w["b_batch"]), e.emit(f"select i1 {follows}, i64 {self.share}, i64 0")

        def columns(n0, width):
            def terms(k0, depth):
                here = e.at(e.at(bb, e.i64("mul", k0, w["b_k"])), e.i64("mul", n0, w["b_n"]))
                by_tiles = self.pack(here, depth, width)
                first = e.emit(f"icmp eq i64 {k0}, 0")
                asked = e.emit(f"icmp ne i64 {w['fresh']}, 0")
                fresh = e.emit(f"and i1 {first}, {asked}")
                start = e.at(a, e.i64("mul", k0, w["a_k"]))
                self.rows(start, e.at(c, e.i64("mul", n0, self.tile.size)),
                          Block(here, depth, width, fresh, by_tiles, next, share))
            even_blocks(e, w["k"], self.tile.depth, terms)
        even_blocks(e, w["n"], self.panels_in_a_block(), columns, self.tile.width)

    def share_of_rows(self):
        """`Block.share` where a product follows: 0 if A is not dense or B not small."""
        e, w, t = self.e, self.w, self.tile
        row = e.i64("mul", w["k"], t.size)
        gaps = e.i64("or", e.i64("xor", w["a_m"], row), e.i64("xor", w["a_k"], t.size))
        together = e.emit(f"icmp eq i64 {gaps}, 0")
        small = e.emit(f"icmp ule i64 {w['b_batch']}, {NEXT_BYTES}")
        asks = e.emit(f"and i1 {together}, {small}")
        rows = e.i64("add", e.i64("sub", w["m_limit"], w["m_first"]), 1)
        return e.emit(f"select i1 {asks}, i64 {e.i64('udiv', w['b_batch'], rows)}, i64 0")

    def panels_in_a_block(self):
        """As many panels as fit, at least one."""
        e, t = self.e, self.tile
        panel = e.i64("mul", e.smin(self.w["k"], str(t.depth)), t.width * t.size)
        fit = e.i64("sdiv", t.block, panel)
        return e.i64("add", fit, e.emit(f"zext i1 {e.emit(f'icmp eq i64 {fit}, 0')} to i64"))

    def pack(self, b, depth, width):
        """Pack a block of B, but for the full panels that the first band of tiles packs; an i1: it does."""
        e, w, t = self.e, self.w, self.tile
        new = e.emit(f"icmp eq i64 {w['ready']}, 0")
        dense = e.emit(f"icmp eq i64 {w['b_n']}, {t.size}")
        by_tiles = e.emit(f"and i1 {new}, {dense}")
        left = e.emit(f"select i1 {by_tiles}, i64 {e.i64('sdiv', width, t.width)}, i64 0")
        first = e.i64("mul", left, t.width)
        more = e.emit(f"icmp slt i64 {first}, {width}")
        source = e.at(b, e.i64("mul", first, w["b_n"]))
        target = e.at(self.packed, e.i64("mul", e.i64("mul", first, t.size), depth))
        rest = e.i64("sub", width, first)
        arguments = f"ptr {source}, i64 {w['b_k']}, i64 {w['b_n']}, ptr {target}, i64 {depth}, i64 {rest}"
        e.when(e.emit(f"and i1 {new}, {more}"), lambda: e.lines.append(f"  call void @pack({arguments})"))
        return by_tiles

    def rows(self, a, c, block):
        """All rows m_first..m_limit: full tiles, then tiles of 4, 2 and 1 rows."""
        e, w, rows = self.e, self.w, self.tile.rows
        count = e.i64("sub", w["m_limit"], w["m_first"])
        e.declare("@llvm.ctpop.i64", "i64", ["i64"])
        rest = e.emit(f"call i64 @llvm.ctpop.i64(i64 {e.i64('urem', count, rows)})")

        def band(_, state):
            m = state[0]
            left = e.i64("sub", w["m_limit"], m)
            height, tile, packing = (f"{name}{self.heights[-1]}" for name in ("", "@tile", "@packing"))
            for h in self.heights[-2::-1]:
                fits = e.emit(f"icmp sge i64 {left}, {h}")
                height = e.emit(f"select i1 {fits}, i64 {h}, i64 {height}")
                tile = e.emit(f"select i1 {fits}, ptr @tile{h}, ptr {tile}")
                packing = e.emit(f"select i1 {fits}, ptr @packing{h}, ptr {packing}")
            first = e.emit(f"icmp eq i64 {m}, {w['m_first']}")
            packs = e.emit(f"and i1 {first}, {block.by_tiles}")
            tiles = e.emit(f"select i1 {packs}, ptr {packing}, ptr {tile}"), tile
            band = self.near(e.at(a, e.i64("mul", m, w["a_m"])), block, height)
            next = e.at(block.next, e.i64("mul", e.i64("sub", m, w["m_first"]), block.share))
            self.panels(*band, next, e.at(c, e.i64("mul", m, w["c_m"])), block, height, tiles)
            return [e.i64("add", m, height)]
        e.loop(e.i64("add", e.i64("udiv", count, rows), rest), band, [("i64", w["m_first"])])

    def near(self, a, block, height):
        """(address, bytes from term to term) of a band of A, copied where that pays."""
        e, w, t = self.e, self.w, self.tile
        if not t.fused:
            return a, w["a_k"]
        side_by_side = e.emit(f"icmp eq i64 {w['a_m']}, {t.size}")
        whole = e.emit(f"icmp eq i64 {height}, {t.rows}")
        again = e.emit(f"icmp sgt i64 {block.width}, {t.width}")
        copied = e.emit(f"and i1 {e.emit(f'and i1 {side_by_side}, {whole}')}, {again}")
        e.when(copied, lambda: e.lines.append(
            f"  call void @copy_band(ptr {a}, i64 {w['a_k']}, ptr {self.band}, i64 {block.depth})"))
        return (e.emit(f"select i1 {copied}, ptr {self.band}, ptr {a}"),
                e.emit(f"select i1 {copied}, i64 {t.rows * t.size}, i64 {w['a_k']}"))

    def panels(self, a, a_k, next, c, block, height, tiles):
        """One band of rows times all panels, by the first of two tiles; a panel that is not full goes through
        `corner`, by the second."""
        e, t = self.e, self.tile
        panel_bytes = e.i64("mul", block.depth, t.width * t.size)

        def one(n0, wide):
            number = e.i64("sdiv", n0, t.width)
            panel = e.at(self.packed, e.i64("mul", number, panel_bytes))
            columns = e.at(block.place, e.i64("mul", n0, self.w["b_n"]))
            operands = a, a_k, *self.asked(a, a_k, next, number, block, height), columns, panel
            target = e.at(c, e.i64("mul", n0, t.size))
            full = e.emit(f"icmp eq i64 {wide}, {t.width}")
            whole, part, join = e.label("whole"), e.label("part"), e.label("join")
            e.branch(full, whole, part)
            e.start(whole)
            self.call(tiles[0], operands, target, self.w["c_m"], block, self.past)
            e.jump(join)
            e.start(part)
            self.corner_rows(height, target, self.w["c_m"], self.corner, t.width * t.size, wide)
            self.call(tiles[1], operands, self.corner, t.width * t.size, block, "false")
            self.corner_rows(height, self.corner, t.width * t.size, target, self.w["c_m"], wide)
            e.jump(join)
            e.start(join)
        blocks(e, block.width, t.width, one)

    def asked(self, a, a_k, next, number, block, height):
        """(address, bytes from term to term) of what the tile of a panel asks for: a row of the next band; or,
        line by line, the next band and then the next product's B from `next` on."""
        e, w = self.e, self.w
        lines = e.emit(f"icmp ne i64 {block.share}, 0")
        first = e.emit(f"icmp eq i64 {number}, 0")
        row = e.emit(f"select i1 {lines}, i64 0, i64 {number}")
        row = e.at(a, e.i64("mul", e.i64("add", row, height), w["a_m"]))
        line = e.at(next, e.i64("mul", e.i64("sub", number, 1), e.i64("mul", block.depth, LINE)))
        other = e.emit(f"select i1 {first}, ptr {row}, ptr {line}")
        return (e.emit(f"select i1 {lines}, ptr {other}, ptr {row}"),
                e.emit(f"select i1 {lines}, i64 {LINE}, i64 {a_k}"))

    def call(self, tile, operands, c, c_m, block, past):
        a, a_k, next, next_k, b, panel = operands
        rows, columns = f"ptr {a}, i64 {self.w['a_m']}, i64 {a_k}", f"ptr {b}, i64 {self.w['b_k']}, ptr {panel}"
        self.e.lines.append(f"  call void {tile}({rows}, ptr {next}, i64 {next_k}, {columns}, ptr {c}, i64 {c_m}, "
                            f"i64 {block.depth}, i1 {block.fresh}, i1 {past})")

    def corner_rows(self, height, source, source_m, target, target_m, wide):
        """Copy `height` rows of `wide` entries."""
        self.e.lines.append(f"  call void @copy_rows(ptr {source}, i64 {source_m}, ptr {target}, i64 {target_m}, "
                            f"i64 {height}, i64 {wide})")
