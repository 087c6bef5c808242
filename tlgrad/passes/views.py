"""Views: structural equations that only change how entries are addressed need no work.

A `View` says where entry i of a value lies in the row-major storage of its `root`:
offset + sum of i_k * strides_k, in entries.
"""
from __future__ import annotations

import functools
from math import prod
from typing import Any, NamedTuple

from tlgrad.core.jaxpr import Eqn


class View(NamedTuple):
    """Entries of `root` (a Var or Literal) as a value of `shape`."""

    root: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def contiguous(self) -> bool:
        """The entries are those of row-major storage, from the offset on."""
        steps = row_major(self.shape)
        return self.strides == steps or all(s == c or n == 1 for n, s, c in zip(self.shape, self.strides, steps))

    @property
    def whole(self) -> bool:
        """All entries of the root in order."""
        return self.offset == 0 and self.contiguous and prod(self.shape) == self.root.aval.size

    def on_space(self) -> tuple[int, ...]:
        """Strides along the axes of the index space."""
        return tuple(s for n, s in zip(self.shape, self.strides) if n != 1) or self.strides[:1]


@functools.lru_cache(4096)
def row_major(shape) -> tuple[int, ...]:
    """Strides, in entries, of row-major storage."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def view_of(atom) -> View:
    """A value as a view of itself."""
    return View(atom, atom.aval.shape, row_major(atom.aval.shape))


@functools.lru_cache(4096)
def squeezed(shape) -> tuple[int, ...]:
    """The shape without axes of size 1: the index space of a value.

    One entry lies on one axis, as several do, so that lengths share a kernel; a number lies on none.
    """
    return tuple(n for n in shape if n != 1) or shape[:1]


def follow(eqn: Eqn, x: View) -> View | None:
    """The result of a structural equation as a view of the root of its operand, if it is one."""
    rule = _RULES.get(eqn.prim.name)
    return rule(x, **eqn.params) if rule else None


def _broadcast(x, *, shape, axes):
    strides = [0] * len(shape)
    for k, axis in enumerate(axes):
        strides[axis] = x.strides[k] if x.shape[k] == shape[axis] else 0
    return View(x.root, shape, tuple(strides), x.offset)


def _transpose(x, *, perm):
    return View(x.root, tuple(x.shape[p] for p in perm), tuple(x.strides[p] for p in perm), x.offset)


def _slice(x, *, starts, limits, strides):
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides))
    offset = x.offset + sum(a * s for a, s in zip(starts, x.strides))
    return View(x.root, shape, tuple(a * b for a, b in zip(x.strides, strides)),
                offset if 0 not in shape else 0)


def _reverse(x, *, axes):
    strides, offset = list(x.strides), x.offset
    for axis in axes:
        offset += max(x.shape[axis] - 1, 0) * strides[axis]
        strides[axis] = -strides[axis]
    return View(x.root, x.shape, tuple(strides), offset)


def _reshape(x, *, shape):
    if 0 in shape:
        return View(x.root, shape, row_major(shape))
    merged = _merge_axes([(n, s) for n, s in zip(x.shape, x.strides) if n != 1])
    strides: list[int] = []
    rest = [n for n in shape]
    for size, step in merged:
        taken, group = 1, []
        while taken < size:
            if not rest:
                return None
            group.append(rest.pop(0))
            taken *= group[-1]
        if taken != size:
            return None
        strides += [step * s for s in row_major(tuple(group))]
    return View(x.root, shape, (*strides, *[0] * len(rest)), x.offset)


def _merge_axes(axes):
    """Neighbouring (size, stride) pairs joined where they are one run of equal steps."""
    merged: list[tuple[int, int]] = []
    for n, s in axes:
        if merged and merged[-1][1] == n * s:
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    return merged


_RULES = {"broadcast": _broadcast, "transpose": _transpose, "slice": _slice, "reverse": _reverse,
          "reshape": _reshape}
