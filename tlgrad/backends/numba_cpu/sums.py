"""Reductions of one operand, contractions of any number, and running sums, on the nest of `strided`.

Every axis has a label, as in `tlgrad.ops.contract_many`.  Neighbouring axes that all operands walk in
one run are joined; one kept axis becomes the lanes.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from math import prod

from tlgrad.backends.numba_cpu.facts import BYTES
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.strided import Fold, Strided, words_of
from tlgrad.backends.numba_cpu.threads import thread_count
from tlgrad.codegen.intrinsics import type_of
from tlgrad.codegen.ir import SIZES
from tlgrad.core.jaxpr import Eqn
from tlgrad.kernels.machine import host
from tlgrad.ops.contract_many import label_sizes
from tlgrad.ops.orders import LEAF
from tlgrad.passes.views import View, row_major

TYPES = ("f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
REDUCTIONS = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
RUNNING = {"cumsum": "add", "cumprod": "mul"}
NAMES = {*REDUCTIONS, *RUNNING, "contract", "dot_general"}


@dataclass(slots=True)
class Sum:
    """A launch: the kernel's text, the words after the addresses, and the items that it runs over.

    In the order "tree" the result has a first axis of `leaves`.
    """

    fold: Fold
    words: list[int]
    items: int
    leaves: int
    work: int
    #: nanoseconds on one thread
    time: float
    #: where the operands and the result start, in bytes
    offsets: list[int]

    def words_from(self, fresh: bool) -> list[int]:
        """The words of a launch that starts from the identity, or from what the result holds."""
        words = list(self.words)
        words[words_of(len(self.fold.operands)).index("fresh") - len(self.offsets)] = int(fresh)
        return words


def can_sum(eqn: Eqn) -> bool:
    """True when `sum_of` computes this equation in its order."""
    name, p = eqn.prim.name, eqn.params
    if name not in NAMES:
        return False
    x = eqn.ins[0].aval
    if type_of(x.dtype) not in TYPES or not all(a.aval.size for a in eqn.ins) or not eqn.outs[0].aval.size:
        return False
    if name in REDUCTIONS:
        exact = x.dtype.kind in "iu"
        return p.get("order", "ordered") in ("ordered", "fused") or exact
    if name == "dot_general":
        return p["order"] != "free"
    return True


@dataclass(slots=True)
class Axis:
    """A joined axis: its size, and strides in entries of the operands and the result."""

    size: int
    strides: tuple[int, ...]


def _axes(names, sizes, all_strides) -> list[Axis]:
    """Axes with neighbours joined, those of length 1 left out."""
    found: list[Axis] = []
    for name in names:
        n, strides = sizes[name], tuple(s.get(name, 0) for s in all_strides)
        if n == 1:
            continue
        if found and all(a == n * b for a, b in zip(found[-1].strides, strides)):
            found[-1] = Axis(found[-1].size * n, strides)
        else:
            found.append(Axis(n, strides))
    return found


def labelled(eqn: Eqn):
    """(labels of the operands, labels of the result, labels summed over) of an equation."""
    p, ins = eqn.params, eqn.ins
    if eqn.prim.name == "contract":
        return p["labels"], p["out"], p["summed"]
    names = tuple(range(ins[0].aval.ndim))
    if eqn.prim.name in RUNNING:
        return (names,), names, (p["axis"],)
    if eqn.prim.name in REDUCTIONS:
        return (names,), tuple(k for k in names if k not in p["axes"]), p["axes"]
    (x_sum, y_sum), (x_batch, y_batch) = p["contract"], p["batch"]
    other = {**dict(zip(y_sum, x_sum)), **dict(zip(y_batch, x_batch))}
    y_names = tuple(other.get(k, len(names) + k) for k in range(ins[1].aval.ndim))
    rest = [k for k in names if k not in x_sum and k not in x_batch]
    return (names, y_names), (*x_batch, *rest, *[k for k in y_names if k >= len(names)]), x_sum


def sum_of(eqn: Eqn, views: list[View]) -> Sum:
    """How an equation on these operands runs."""
    labels, out, summed = labelled(eqn)
    sizes = label_sizes([v.shape for v in views], labels)
    type, order = type_of(eqn.ins[0].aval.dtype), eqn.params.get("order", "ordered")
    running = eqn.prim.name in RUNNING
    strides = [dict(zip(names, v.strides)) for names, v in zip(labels, views)]
    strides.append(dict(zip(out, row_major(tuple(sizes[k] for k in out)))))
    offsets = [*[v.offset for v in views], 0]
    if eqn.params.get("reverse"):
        axis, = summed
        offsets = [o + (sizes[axis] - 1) * of[axis] for o, of in zip(offsets, strides)]
        strides = [{**of, axis: -of[axis]} for of in strides]
    kept = _axes([k for k in out if not (running and k in summed)], sizes, strides)
    terms = _axes(summed, sizes, strides) or [Axis(1, (0,) * len(strides))]
    lane = _lane_axis(kept, terms[-1], views)
    outer = [a for a in kept if a is not lane]
    lane = lane or Axis(1, (0,) * len(strides))
    kinds = tuple(_kind(s, step, lane.size) for s, step in zip(lane.strides, terms[-1].strides))
    mode = RUNNING.get(eqn.prim.name) or (eqn.prim.lower[1] if eqn.prim.name in REDUCTIONS else "add")
    real = type in ("f32", "f64")
    fold = Fold(type, mode, order == "fused" and real, kinds[:-1], kinds[-1] if running else "", running)
    found = _launch(fold, lane, outer, terms, order == "tree" and real and not running)
    found.offsets = [o * SIZES[type] for o in offsets]
    return found


def _kind(stride, step, lanes) -> str:
    if stride == 0 and lanes > 1:
        return "same"
    return "dense" if stride == 1 else "turned" if step == 1 else "strided"


def _lane_axis(kept: list[Axis], inner: Axis, views) -> Axis | None:
    """The kept axis along which the most entries are read in vectors."""
    weights = [v.root.aval.size for v in views]

    def score(axis):
        dense = sum(w * (s == 1) for w, s in zip(weights, axis.strides))
        turned = sum(w * (s != 0 and step == 1) for w, s, step in zip(weights, axis.strides, inner.strides))
        return 2 * dense + turned, sum(s != 0 for s in axis.strides), axis.size
    return max(kept, key=score, default=None)


def _launch(fold, lane, outer, terms, tree) -> Sum:
    size = SIZES[fold.type]
    machine = host()
    total, entries = prod(a.size for a in terms), lane.size * prod(a.size for a in outer)
    leaves = -(-total // LEAF) if tree else 1
    vectors = machine.vector_bytes // size
    chunk = fold.chunk(vectors)
    if not outer and leaves == 1 and lane.size < chunk * thread_count():     # a share for every thread
        chunk = min(chunk, max(-(-lane.size // (thread_count() * vectors)), 4) * vectors)
    inner, rows = terms[-1], [*reversed(outer), *reversed(terms[:-1])]
    count = len(fold.operands)
    values = {"lanes": lane.size, "chunk": chunk, "inner": inner.size, "terms": total,
              "leaf": LEAF if tree else total, "result_leaf": entries * size, "outer": prod(a.size for a in outer),
              "fresh": 1, "outer_rank": len(outer), "summed_rank": len(terms) - 1}
    for k in range(count + 1):
        values["lane", k], values["step", k] = lane.strides[k] * size, inner.strides[k] * size
    words = [values[w] for w in words_of(count)[count + 1:]]
    for axis in rows:
        words += [axis.size, *[s * size for s in axis.strides]]
    items = leaves * values["outer"] * -(-lane.size // chunk)
    return Sum(fold, words, items, leaves, entries * total * count,
               entries * total * count * size / BYTES, [])


@functools.cache
def fold_kernel(fold: Fold) -> int:
    """The address of a kernel."""
    machine = host()
    name = fold.name()
    return build(Strided(fold, machine.vector_bytes, machine.avx512).function(name), name)
