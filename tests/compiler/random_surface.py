"""Programs of the whole surface: contractions, places, sorts, maps, and transforms inside of programs."""
from __future__ import annotations

from math import prod

import numpy as np
from random_programs import DTYPES, ELEMENTARY, LaterMaker, WEIGHTS, numbers

import tlgrad as tl
from tlgrad.core.primitive import PRIMITIVES
from tlgrad.core.tensor import Tensor
from tlgrad.errors import TlgradError
from tlgrad.ops.layout import reduce_sum

#: lengths of an axis that is longer than the others
LONG = (130, 257, 1000, 2049)
#: entries of an operand of a contraction, and products in one
ENTRIES, PRODUCTS = 5000, 300_000
#: arrays whose words an array of another dtype has
SAME_WORDS = {"float32": tl.int32, "int32": tl.float32, "float64": tl.uint64, "uint64": tl.float64,
              "int64": tl.float64, "float16": tl.uint16, "uint16": tl.float16, "uint32": tl.float32}
ORDERS = ("ordered", "fused", "tree")
TABLE = tl.tensor(np.linspace(-2, 3, 11))


# ---- scalar functions ----

def bent(x):
    if x > 0.5:
        return x * 2 + TABLE[3]
    if x < -1:
        return -x
    return x / 3


def halved(x):
    n, y = 0, x
    while y > -1.0 and n < 20:
        y, n = y * 0.75 - 0.25, n + 1
    return y * n


def added(x):
    total = x * 0.0
    for k in range(5):
        if total > 3.0:
            return total + k
        total = total + TABLE[k] * x
    return total


def chosen(x, y):
    return tl.sin(x) - y if x < y else x * y + y


def evolved(x, n):
    if n == 0:
        return x
    return evolved(x, n - 1) * 0.5 + 1.0


def pick(rng, items):
    """One of them."""
    return items[rng.integers(len(items))]


def some_axes(rng, ndim) -> tuple[int, ...]:
    """One axis or more, in increasing order."""
    return tuple(sorted(int(a) for a in rng.choice(ndim, int(rng.integers(1, ndim + 1)), replace=False)))


class SurfaceMaker(LaterMaker):
    """Makes a program whose steps may also be those of `KINDS`."""

    def __init__(self, seed: int):
        super().__init__(seed)
        rng = self.rng
        if rng.random() < .2:
            n, short = int(pick(rng, LONG)), int(rng.integers(1, 5))
            self.shape = pick(rng, [(n,), (n,), (short, n), (n, short)])
            shapes = [self.shape] * 3 + [(), tuple(1 if rng.random() < .5 else n for n in self.shape)]
            self.arrays = [numbers(rng, pick(rng, shapes), DTYPES[rng.choice(len(DTYPES), p=WEIGHTS)])
                           for _ in range(rng.integers(1, 4))]
        self.steps, self.depth = int(rng.integers(1, 14)), 0

    def one(self, rng, pool):
        if rng.random() < .55:
            return super().one(rng, pool)
        x = pick(rng, pool) if rng.random() < .5 else pool[-1]
        return pick(rng, KINDS)(self, rng, pool, x)

    def like(self, rng, pool, shape, dtype):
        """A value of this shape and dtype, or a constant."""
        same = [v for v in pool if v.dtype is dtype and v.shape == shape]
        return pick(rng, same) if same and rng.random() < .7 else Tensor.own(numbers(rng, shape, dtype.storage))

    def count(self, rng, pool, most):
        """A number from 0 to most - 1, perhaps one that is computed."""
        whole = [v for v in pool if v.dtype.kind in "iu" and not v.ndim]
        if whole and rng.random() < .5:
            return tl.remainder(tl.convert(whole[0], tl.int64), most)
        return Tensor.own(np.array(int(rng.integers(most))))

    # -- sums and products --

    def contraction(self, rng, pool, x):
        """x times something, summed over axes that they share."""
        x = tl.convert(x, tl.float32) if x.dtype.kind == "b" else x
        if not x.ndim or x.size > ENTRIES:
            return x
        axes = tuple(int(a) for a in rng.permutation(x.ndim)[:rng.integers(1, x.ndim + 1)])
        cut = int(rng.integers(len(axes) + 1)) if rng.random() < .5 else 0
        more = rng.choice([0, 1, 2, 3, 5, 8, 17, 40], int(rng.integers(3)), p=[.02, .1, .18, .2, .2, .1, .1, .1])
        roles = [*axes, *[-1] * len(more)]
        sizes = [*[x.shape[a] for a in axes], *[int(n) for n in more]]
        turn = [int(k) for k in rng.permutation(len(roles))]
        shape = tuple(sizes[k] for k in turn)
        if prod(shape) * x.size > PRODUCTS or len(shape) > 5:
            return x
        mine = axes[cut:], axes[:cut]
        theirs = tuple(tuple(turn.index(axes.index(a)) for a in part) for part in mine)
        contract, batch = zip(mine, theirs)
        args = [x, self.like(rng, pool, shape, x.dtype)]
        params = dict(contract=contract, batch=batch, order=pick(rng, ORDERS))
        out = PRIMITIVES["dot_general"].bind(*args, **params)
        if rng.random() < .75:
            return out
        return PRIMITIVES["dot_general"].bind(*args, self.like(rng, pool, out.shape, x.dtype), **params)

    def three(self, rng, pool, x):
        """Products of three operands with one label in common."""
        if not x.ndim or x.size > ENTRIES or x.dtype.kind == "b":
            return x
        letters = "abcd"[:x.ndim]
        y, z = (self.like(rng, pool, (x.shape[-1], n), x.dtype) for n in (3, 2))
        summed = letters[-1]
        return tl.einsum(f"{letters},{summed}u,{summed}v->{letters[:-1]}uv", x, y, z, order=pick(rng, ORDERS))

    def continued(self, rng, pool, x):
        """A sum that goes on from a start."""
        if not x.ndim or x.dtype.kind == "b":
            return x
        axes, order = some_axes(rng, x.ndim), pick(rng, ORDERS)
        start = self.like(rng, pool, tuple(n for k, n in enumerate(x.shape) if k not in axes), x.dtype)
        return reduce_sum.bind(x, start, axes=axes, order=order)

    def running(self, rng, pool, x):
        """Running sums or products."""
        if not x.ndim or x.dtype.kind == "b":
            return x
        axis = int(rng.integers(x.ndim))
        if rng.random() < .6 or x.shape[axis] > 40:
            return PRIMITIVES["cumsum"].bind(x, axis=axis, reverse=bool(rng.integers(2)))
        return PRIMITIVES["cumprod"].bind(x, axis=axis)

    # -- places --

    def places(self, rng, pool, x):
        """Axes of x and places along them, now and then one outside."""
        axes = some_axes(rng, x.ndim) if rng.random() < .7 else tuple(range(int(rng.integers(1, x.ndim + 1))))
        whole = [v for v in pool if v.dtype.kind in "iu" and 0 < v.ndim < 3 and v.size]
        if whole and len(axes) == 1 and x.shape[axes[0]] and rng.random() < .4:
            v = tl.remainder(tl.convert(pick(rng, whole), tl.int64), x.shape[axes[0]])
            return axes, tl.reshape(v, (*v.shape, 1))
        lead = tuple(int(k) for k in rng.choice([0, 1, 3, 6, 20], int(rng.integers(3)), p=[.03, .2, .3, .3, .17]))
        lead = (0,) if any(x.shape[a] == 0 for a in axes) else lead
        found = np.stack([rng.integers(0, max(x.shape[a], 1), lead) for a in axes], -1)
        if found.size and rng.random() < .1:
            found.flat[rng.integers(found.size)] = pick(rng, [-1, 99999])
        return axes, Tensor.own(found.astype(pick(rng, [np.int64, np.int32])))

    def gathered(self, rng, pool, x):
        """Entries of x, or x with some of them changed."""
        if not x.ndim:
            return x
        axes, at = self.places(rng, pool, x)
        if prod(at.shape[:-1]) * x.size > PRODUCTS:
            return x
        if rng.random() < .5:
            return PRIMITIVES["gather"].bind(x, at, axes=axes)
        rest = tuple(n for k, n in enumerate(x.shape) if k not in axes)
        updates = self.like(rng, pool, (*at.shape[:-1], *rest), x.dtype)
        mode = pick(rng, ["set", "add", "add", "mul", "min", "max"])
        return PRIMITIVES["scatter"].bind(x, at, updates, axes=axes, mode=mode)

    def block(self, rng, pool, x):
        """A block of x, or x with a block replaced."""
        if not x.ndim or 0 in x.shape:
            return x
        sizes = tuple(int(rng.integers(rng.random() > .05, n + 1)) for n in x.shape)
        starts = [self.count(rng, pool, n - m + 1) for n, m in zip(x.shape, sizes)]
        if rng.random() < .5:
            return PRIMITIVES["dynamic_slice"].bind(x, *starts, sizes=sizes)
        return PRIMITIVES["dynamic_update_slice"].bind(x, self.like(rng, pool, sizes, x.dtype), *starts)

    def ordered(self, rng, pool, x):
        """x sorted, or the places of its order, or its norm."""
        if not x.ndim:
            return x
        axis, roll = int(rng.integers(x.ndim)), rng.random()
        if roll < .4:
            return PRIMITIVES["argsort"].bind(x, axis=axis)
        return tl.sort(x, axis=axis) if roll < .8 or x.dtype.kind != "f" else tl.norm(x, axis=axis)

    # -- numbers --

    def bits(self, rng, pool, x):
        """The words of x as another dtype; all NaNs are one."""
        if x.dtype.name not in SAME_WORDS:
            return x
        plain = tl.where(tl.isnan(x), tl.zeros_like(x), x) if x.dtype.kind == "f" else x
        return tl.bitcast(plain, SAME_WORDS[x.dtype.name])

    def numbered(self, rng, pool, x):
        """x beside the numbers of its entries."""
        if not x.ndim:
            return x
        dtype = tl.int64 if x.dtype.kind == "b" else x.dtype
        places = PRIMITIVES["iota"].bind(shape=x.shape, axis=int(rng.integers(x.ndim)), dtype=dtype)
        return PRIMITIVES[pick(rng, ["add", "mul", "max", "lt"])](places if x.dtype.kind == "b" else x, places)

    def other_kinds(self, rng, pool, x):
        """bfloat16, complex numbers, functions of SciPy."""
        if x.dtype.name not in ("float32", "float64"):
            return tl.convert(x, tl.float64) if x.dtype.kind == "f" else x
        roll = rng.integers(4)
        if roll == 0:
            return tl.convert(x, tl.bfloat16)
        if roll == 1:
            name = pick(rng, ["erfcx", "j0", "i0e", "gammainc", "zeta"])
            partner = [self.partner(rng, pool, x)] if name in ("gammainc", "zeta") else []
            return getattr(tl.special, name)(x, *partner)
        if roll == 2:
            return tl.stop_gradient(x)
        y = PRIMITIVES["complex"](x, self.partner(rng, pool, x))
        return pick(rng, [tl.real, tl.imag, tl.abs])(y * y + x if rng.random() < .5 else tl.exp(y))

    # -- programs in programs --

    def part(self, rng, steps, step=None):
        """A function of `steps` steps: the same ones whenever it is traced."""
        seed, depth, step = int(rng.integers(1 << 40)), self.depth + 1, step or self.one

        def f(*xs):
            mine, pool, before = np.random.default_rng(seed), list(xs), self.depth
            self.depth = depth
            try:
                for _ in range(steps):
                    try:
                        pool.append(step(mine, pool))
                    except TlgradError:
                        continue
            finally:
                self.depth = before
            return pool[-1]
        return f

    def turn(self, rng, pool):
        """One more value like the last one."""
        x = pool[-1]
        if rng.random() < .35:
            name = pick(rng, list(ELEMENTARY))
            return PRIMITIVES[name](x, *[self.partner(rng, pool, x) for _ in range(ELEMENTARY[name] - 1)])
        name = pick(rng, ["add", "sub", "mul", "max", "min", "fma", "select", "sum"])
        if name == "select":
            return PRIMITIVES[name](PRIMITIVES["gt"](x, self.literal(rng, x.dtype)), x * 0.5,
                                    self.partner(rng, pool, x))
        if name == "sum":
            return x - tl.sum(x) if rng.random() < .3 else x * x
        return PRIMITIVES[name](x, *[self.partner(rng, pool, x) for _ in range(2 if name == "fma" else 1)])

    def inside(self, rng, pool, x):
        """A part under a transform."""
        if self.depth > 1:
            return x
        f, rows = self.part(rng, int(rng.integers(1, 6))), x.ndim > 0 and x.shape[0] > 0
        real = x.dtype.kind == "f" and not x.dtype.software
        kind = pick(rng, ["run", "order", "checkpoint", *["vmap", "pairs"] * rows, *["grad", "jvp"] * real])
        if kind == "grad":
            return tl.grad(lambda v: tl.sum(y) if (y := f(v)).dtype is v.dtype else tl.sum(v * v))(x)
        if kind == "jvp":
            return tl.jvp(f, (x,), (self.like(rng, pool, x.shape, x.dtype),))[1]
        if kind == "pairs":
            axes = pick(rng, [(0, 0), (0, None), (None, 0)])

            def pair(a, b):
                a = f(a)
                return a * b if a.shape in ((), b.shape) and a.dtype is b.dtype else b + b
            return tl.vmap(pair, in_axes=axes)(x, self.like(rng, pool, x.shape, x.dtype))
        return {"run": tl.run, "checkpoint": tl.checkpoint, "vmap": tl.vmap,
                "order": lambda g: tl.run(g, order=pick(rng, ORDERS))}[kind](f)(x)

    def mapped(self, rng, pool, x):
        """A scalar function of every entry."""
        if x.dtype.name not in ("float32", "float64"):
            return x
        f = pick(rng, [bent, halved, added, chosen, evolved])
        if f is evolved:
            n = int(rng.integers(4))
            return tl.map(lambda v: evolved(v, n))(x)
        return tl.map(f)(*[x, self.like(rng, pool, x.shape, x.dtype)][:2 if f is chosen else 1])

    def looped(self, rng, pool, x):
        """A loop or a branch whose bodies are parts."""
        if x.dtype.name not in ("float32", "float64") or self.depth > 1:
            return x
        f, g = (self.part(rng, int(rng.integers(1, 4)), self.turn) for _ in range(2))
        memory, n, limit = pick(rng, [None, None, 2, 3]), self.count(rng, pool, 5), self.literal(rng, x.dtype)
        kind = rng.integers(5)
        if kind == 0:
            out = tl.iterate(lambda k, s: (f(s[0]), s[1] + k), n, (x, 0), memory=memory)
            return out[rng.random() > .8]
        if kind == 1:
            return tl.cond(PRIMITIVES["gt"](tl.sum(x), limit), f, g, x)
        if kind == 2:
            return tl.switch(self.count(rng, pool, 3), [f, g, lambda v: v * 2.0], x)
        if kind == 3 and x.ndim and x.shape[0]:
            start = self.like(rng, pool, x.shape[1:], x.dtype)
            return tl.scan(lambda s, r: (f(s), g(s) * r), start, x, reverse=bool(rng.integers(2)),
                           memory=memory)[rng.random() < .6]

        def goes_on(s):
            return PRIMITIVES["and"](PRIMITIVES["lt"](s[1], n), PRIMITIVES["not"](tl.sum(s[0]) > limit))
        return tl.while_loop(goes_on, lambda s: (f(s[0]), s[1] + 1), (x, 0), memory=memory)[0]


#: what a step may be, beside those of `LaterMaker`
KINDS = [SurfaceMaker.contraction, SurfaceMaker.contraction, SurfaceMaker.three, SurfaceMaker.continued,
         SurfaceMaker.running, SurfaceMaker.gathered, SurfaceMaker.gathered, SurfaceMaker.block,
         SurfaceMaker.ordered, SurfaceMaker.bits, SurfaceMaker.numbered, SurfaceMaker.other_kinds,
         SurfaceMaker.inside, SurfaceMaker.inside, SurfaceMaker.inside, SurfaceMaker.mapped, SurfaceMaker.looped]
