"""Makers of random programs: a seed decides every step."""
from __future__ import annotations

import numpy as np

from tlgrad.control.cond import cond
from tlgrad.control.loops import iterate, scan
from tlgrad.control.while_loop import while_loop
from tlgrad.core.dtypes import of_storage
from tlgrad.core.primitive import PRIMITIVES
from tlgrad.core.tensor import Tensor
from tlgrad.errors import TlgradError
from tlgrad.kernels.elementary import FUNCTIONS
from tlgrad.ops.layout import broadcast, reduce_sum, reshape, transpose
from tlgrad.ops.shape import reverse, slice_

DTYPES = [np.dtype(t) for t in "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split()]
WEIGHTS = np.array([3, 1, 1, 4, 4, 1, 1, 2, 2, 2, 10, 10]) / 41
ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "neg": 1, "abs": 1, "sign": 1, "sqrt": 1, "floor": 1,
         "ceil": 1, "trunc": 1, "round": 1, "fma": 3, "copysign": 2, "max": 2, "min": 2, "eq": 2,
         "ne": 2, "lt": 2, "le": 2, "gt": 2, "ge": 2, "is_nan": 1, "is_finite": 1, "and": 2, "or": 2,
         "xor": 2, "not": 1, "shift_left": 2, "shift_right": 2, "direction": 2, "conj": 1, "real": 1,
         "nextafter": 2, "floor_divide": 2, "remainder": 2}
ELEMENTARY = {n: f.arity for n, f in FUNCTIONS.items() if n in PRIMITIVES}
SPECIALS = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-310, -1e-40, 1e300, 3e38, 0.5, 2.5, 1e10]


def numbers(rng, shape, dtype) -> np.ndarray:
    """An array with special values among ordinary ones; sometimes not contiguous."""
    if dtype.kind == "b":
        out = rng.random(shape) < 0.5
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        out = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        out = np.where(rng.random(shape) < 0.7, rng.integers(0, 7, shape).astype(dtype), out)
    else:
        out = rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3)
        out = np.where(rng.random(shape) < 0.15, rng.choice(SPECIALS, shape), out)
    with np.errstate(all="ignore"):
        out = np.array(out, dtype)
    if out.ndim and rng.random() < 0.2:
        out = np.array(out.T, order="C").T
    return out


class Maker:
    """Makes one random program; `rng` decides everything."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        rank = int(self.rng.integers(0, 5))
        self.shape = tuple(int(n) for n in self.rng.choice([0, 1, 2, 3, 5, 7, 16, 33], rank,
                                                           p=[.03, .12, .15, .2, .15, .15, .1, .1]))
        shapes = [self.shape] * 3 + [()] + [tuple(1 if self.rng.random() < .5 else n for n in self.shape)]
        self.arrays = [numbers(self.rng, shapes[self.rng.integers(len(shapes))],
                               DTYPES[self.rng.choice(len(DTYPES), p=WEIGHTS)])
                       for _ in range(self.rng.integers(1, 5))]
        self.steps = int(self.rng.integers(1, 25))

    def body(self, *values):
        """The program on traced values."""
        rng = self.rng
        pool = list(values)
        for _ in range(self.steps):
            try:
                pool.append(self.one(rng, pool))
            except TlgradError:
                continue
        count = int(rng.integers(1, 4))
        return [pool[-1], *[pool[rng.integers(len(pool))] for _ in range(count)]]

    def one(self, rng, pool):
        """One more value."""
        x = pool[rng.integers(len(pool))] if rng.random() < .5 else pool[-1]
        roll = rng.random()
        if roll < .12:
            return self.restructure(rng, x)
        if roll < .2 and x.ndim:
            return self.reduction(rng, x)
        if roll < .27:
            target = DTYPES[rng.choice(len(DTYPES), p=WEIGHTS)]
            return PRIMITIVES["convert"].bind(x, dtype=of_storage(target), weak=False)
        if roll < .31 and x.dtype.kind == "f" and x.dtype.storage.itemsize > 2:
            return self.control(rng, pool, x)
        if roll < .34:
            low = -3 if x.dtype.kind == "f" else 0
            return PRIMITIVES["integer_pow"].bind(x, n=int(rng.integers(low, 6)))
        if roll < .39:
            which = PRIMITIVES["gt"](x, self.literal(rng, x.dtype))
            return PRIMITIVES["select"](which, x, self.partner(rng, pool, x))
        table = ELEMENTARY if roll < .53 else ARITY
        name = list(table)[rng.integers(len(table))]
        args = [x, *[self.partner(rng, pool, x) for _ in range(table[name] - 1)]]
        return PRIMITIVES[name](*args)

    def control(self, rng, pool, x):
        """A fold, a loop on one number, or a branch."""
        a, b = self.literal(rng, x.dtype), self.partner(rng, pool, x)
        kind, n = rng.integers(3), int(rng.integers(0, 6))
        if kind == 0:
            return iterate(lambda v: v * a + b * v if b.shape in ((), v.shape) else v * a, n, x)
        if kind == 1 and not x.ndim:
            return while_loop(lambda s: PRIMITIVES["lt"](s[1], n), lambda s: (s[0] * a, s[1] + 1), (x, 0))[0]
        which = PRIMITIVES["gt"](a, 0.25) if x.ndim else PRIMITIVES["gt"](x, a)
        return cond(which, lambda v: PRIMITIVES["sin"](v) * a, lambda v: v - a, x)

    def partner(self, rng, pool, x):
        """Another operand for x: a value of its dtype and shape, or a number."""
        same = [v for v in pool if v.dtype is x.dtype and v.shape in (x.shape, ())]
        if rng.random() < .3 or not same:
            return self.literal(rng, x.dtype)
        return same[rng.integers(len(same))]

    def literal(self, rng, dtype):
        """A constant of shape ()."""
        value = numbers(rng, (), dtype.storage)
        return Tensor.own(value)

    def restructure(self, rng, x):
        """A view of x: broadcast, transpose, reverse, slice or reshape."""
        kind = rng.integers(5)
        if kind == 0 and x.ndim < 4:
            return broadcast.bind(x, shape=(int(rng.integers(1, 5)), *x.shape),
                                  axes=tuple(range(1, x.ndim + 1)))
        if kind == 1:
            return transpose.bind(x, perm=tuple(int(i) for i in rng.permutation(x.ndim)))
        if kind == 2 and x.ndim:
            return reverse.bind(x, axes=(int(rng.integers(x.ndim)),))
        if kind == 3 and x.ndim:
            cuts = [sorted(rng.integers(0, n + 1, 2)) for n in x.shape]
            return slice_.bind(x, starts=tuple(int(c[0]) for c in cuts), limits=tuple(int(c[1]) for c in cuts),
                               strides=tuple(int(rng.integers(1, 3)) for _ in cuts))
        size = int(np.prod(x.shape, dtype=int))
        return reshape.bind(x, shape=[(size,), (1, size), (size, 1), x.shape[::-1]][rng.integers(4)])

    def reduction(self, rng, x):
        """A reduction of x over some axes, or a row subtracted from it."""
        count = int(rng.integers(1, x.ndim + 1))
        axes = tuple(sorted(int(a) for a in rng.choice(x.ndim, count, replace=False)))
        if rng.random() < .5:
            axes = tuple(range(x.ndim - count, x.ndim)) if rng.random() < .6 else tuple(range(count))
        name = ["reduce_sum", "reduce_sum", "reduce_max", "reduce_min", "reduce_prod"][rng.integers(5)]
        if name == "reduce_sum":
            order = ["ordered", "fused", "tree"][rng.integers(3)]
            return reduce_sum.bind(x, axes=axes, order=order)
        return PRIMITIVES[name].bind(x, axes=axes)


class LaterMaker(Maker):
    """Makes a program with further kinds of steps: winners, any and all, joined and padded arrays, scans."""

    def one(self, rng, pool):
        x = pool[rng.integers(len(pool))] if rng.random() < .5 else pool[-1]
        roll = rng.random()
        if roll < .06 and x.ndim:
            name = ["argmax", "argmin"][rng.integers(2)]
            return PRIMITIVES[name].bind(x, axis=int(rng.integers(x.ndim)))
        if roll < .11 and x.ndim:
            count = int(rng.integers(1, x.ndim + 1))
            axes = tuple(sorted(int(a) for a in rng.choice(x.ndim, count, replace=False)))
            marks = PRIMITIVES["gt"](x, self.partner(rng, pool, x))
            return PRIMITIVES[["reduce_any", "reduce_all"][rng.integers(2)]].bind(marks, axes=axes)
        if roll < .16 and x.ndim:
            return self.joined(rng, pool, x)
        if roll < .26 and x.dtype.kind == "f" and x.dtype.storage.itemsize > 2:
            return self.loop(rng, pool, x)
        return super().one(rng, pool)

    def joined(self, rng, pool, x):
        """x beside another array, or with a border."""
        axis = int(rng.integers(x.ndim))
        if rng.random() < .5:
            same = [v for v in pool if v.dtype is x.dtype and v.shape == x.shape]
            return PRIMITIVES["concatenate"].bind(x, same[rng.integers(len(same))], axis=axis)
        low, high, interior = (tuple(int(n) for n in rng.integers(0, most, x.ndim)) for most in (3, 3, 2))
        return PRIMITIVES["pad"].bind(x, self.literal(rng, x.dtype), low=low, high=high, interior=interior)

    def loop(self, rng, pool, x):
        """A loop whose derivatives of every order are towers, perhaps one with a row for each turn."""
        a, b, n = self.literal(rng, x.dtype), self.partner(rng, pool, x), int(rng.integers(0, 5))
        memory = [None, None, 2][rng.integers(3)]

        def turn(v):
            return v * v * a + PRIMITIVES["sin"](v) * b if b.shape in ((), v.shape) else v * v * a
        if rng.random() < .5 or not x.ndim or not x.shape[0]:
            return iterate(turn, n, x, memory=memory)
        rows = x[0]
        carry, outs = scan(lambda c, r: (c * a + r, PRIMITIVES["tanh"](c) * r), rows, x,
                           reverse=bool(rng.integers(2)), memory=memory)
        return outs if rng.random() < .6 else carry
