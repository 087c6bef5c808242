"""dot_general on the tiles of `tlgrad.kernels.tiles.contraction`."""
from __future__ import annotations

import functools
from dataclasses import dataclass
from math import prod

from tlgrad.backends.numba_cpu.facts import INSTRUCTIONS
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.shares import Shares
from tlgrad.codegen.ir import SIZES
from tlgrad.core.jaxpr import Eqn
from tlgrad.kernels.machine import host
from tlgrad.kernels.tiles.contraction import WORDS, module, tile_for
from tlgrad.kernels.tiles.copy import PAST
from tlgrad.ops.orders import LEAF
from tlgrad.passes.groups import Grouping, Step
from tlgrad.passes.views import View

#: kernel types by dtype name; integers wrap around, whatever their sign
TYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64"}
#: where the words of a launch say its rows
ROWS_AT = WORDS.index("m_first") - 3


@dataclass(slots=True)
class Side:
    """One operand: sizes and strides (in entries) of its batch, free and contracted axes; `perm` is
    the copy (batch, free, contracted) that it needs first, if any."""

    perm: tuple[int, ...] | None
    offset: int
    batch: int
    free: int
    terms: int


@dataclass(slots=True)
class Product:
    """A contraction as C[b, m, n] = sum over k of A[b, m, k] B[b, k, n]; bytes in `words`."""

    a: Side
    b: Side
    sizes: tuple[int, int, int, int]
    type: str
    order: str
    #: the operands have changed places, and the result its two last axes
    swapped: bool = False

    @property
    def leaves(self) -> int:
        """Leaves of the order "tree"; 1 for the other orders."""
        return -(-self.sizes[3] // LEAF) if self.order == "tree" else 1

    @property
    def time(self) -> float:
        """About how many nanoseconds it takes on one thread."""
        lanes = host().vector_bytes / SIZES[self.type]
        return 2 * prod(self.sizes) / (INSTRUCTIONS * lanes)

    def shares(self, kernel: int, terms: int | None = None) -> Shares:
        """A launch by rows of C, of the first `terms`: a thread packs its own blocks of B, once."""
        _, m, _, k = self.sizes
        rows = tile_for(self.type, host(), self.order == "fused").rows
        return Shares(kernel, m, self.time * (k if terms is None else terms) / max(k, 1), rows, 1)

    def words(self, fresh: bool, terms: int | None = None) -> list[int]:
        """The words of a launch over rows of C and the first `terms`, after its three addresses; the rows are
        words number `ROWS_AT` and the next."""
        batch, m, n, k = self.sizes
        k = k if terms is None else terms
        size = SIZES[self.type]
        values = dict(m_first=0, m_limit=m, n=n, k=k, fresh=int(fresh),
                      past=int(fresh and batch * m * n * size >= PAST), packed=0, ready=0)
        for name, side, free in (("a", self.a, "m"), ("b", self.b, "n")):
            values |= {f"{name}_batch": side.batch * size, f"{name}_{free}": side.free * size,
                       f"{name}_k": side.terms * size}
        values |= dict(c_batch=m * n * size, c_m=n * size)
        return [values[w] for w in WORDS[3:]]


def banded_product(grouping: Grouping, step: Step) -> Product | None:
    """The product of a step whose rows can be had band by band, from one packed block of B; else None."""
    eqn = step.eqns[0]
    if step.kind != "host" or len(eqn.ins) != 2 or not can_contract(eqn):
        return None
    product = product_of(eqn, *[grouping.view(a) for a in eqn.ins])
    batch, m, n, k = product.sizes
    tile = tile_for(product.type, host(), product.order == "fused")
    whole = batch == product.leaves == 1 and not product.swapped
    return product if whole and m > 1 and tile.one_block(n, k) else None


def can_contract(eqn: Eqn) -> bool:
    """True when tiles compute this contraction in its order, and both operands have axes of their own:
    otherwise it reads every entry once, and nothing is to be kept in registers."""
    if eqn.prim.name != "dot_general" or eqn.ins[0].aval.size == 0:
        return False
    if _free_size(eqn, 0) == 1 or _free_size(eqn, 1) == 1:
        return False
    return (eqn.ins[0].aval.dtype.name in TYPES and eqn.params["order"] != "free"
            and eqn.outs[0].aval.size > 0)


def _free_size(eqn: Eqn, side: int) -> int:
    """Entries along the axes that one operand alone has in the result."""
    shape, p = eqn.ins[side].aval.shape, eqn.params
    return prod(n for k, n in enumerate(shape) if k not in p["contract"][side] and k not in p["batch"][side])


def product_of(eqn: Eqn, x: View, y: View) -> Product:
    """How the operands are read."""
    contract, batch = eqn.params["contract"], eqn.params["batch"]
    sides = [_side(v, c, b) for v, c, b in zip((x, y), contract, batch)]
    sizes = (prod(x.shape[a] for a in batch[0]), prod(x.shape[a] for a in _free(x, contract[0], batch[0])),
             prod(y.shape[a] for a in _free(y, contract[1], batch[1])), prod(x.shape[a] for a in contract[0]))
    type = TYPES[eqn.ins[0].aval.dtype.name]
    product = Product(*sides, sizes, type, eqn.params["order"] if type in ("f32", "f64") else "ordered")
    return _swapped(product) if len(eqn.ins) == 2 else product


def _swapped(product: Product) -> Product:
    """Where C has few columns and more rows, C transposed: a tile's width of columns is filled.  Factors
    commute, to the bit."""
    batch, m, n, k = product.sizes
    width = tile_for(product.type, host(), False).width
    if product.leaves > 1 or 2 * n > width or m <= n:
        return product
    return Product(product.b, product.a, (batch, n, m, k), product.type, product.order, True)


def _free(view, contract, batch):
    return tuple(k for k in range(len(view.shape)) if k not in contract and k not in batch)


def _side(view: View, contract, batch) -> Side:
    groups = (batch, _free(view, contract, batch), contract)
    steps = [_one_step([(view.shape[a], view.strides[a]) for a in axes]) for axes in groups]
    if None not in steps:
        return Side(None, view.offset, *steps)
    sizes = [prod(view.shape[a] for a in axes) for axes in groups]
    return Side(tuple(a for axes in groups for a in axes), 0, sizes[1] * sizes[2], sizes[2], 1)


def _one_step(axes) -> int | None:
    """The stride of several axes walked as one, or None when there is none."""
    step = size = None
    for n, s in reversed([(n, s) for n, s in axes if n != 1]):
        if step is None:
            step, size = s, n
        elif s != step * size:
            return None
        else:
            size *= n
    return 0 if step is None else step


def packed_bytes(product: Product) -> int:
    """Bytes of the memory for a packed block of B."""
    return tile_for(product.type, host(), product.order == "fused").room


@functools.cache
def tile_kernel(type: str, order: str) -> int:
    """The address of the kernel for a type and an order."""
    order = "ordered" if order == "tree" else order        # within a leaf
    name = f"contract_{type}_{order}"
    return build(module(tile_for(type, host(), order == "fused"), name), name)
