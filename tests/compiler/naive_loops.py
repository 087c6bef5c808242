"""Contractions and sums beside the loops that define them, written out: shapes 0..70, odd strides.

``python3 naive_loops.py``: prints how many results were compared; TLGRAD_CPU restricts the machine.
"""
import numpy as np

import tlgrad as tl
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.kernels.expr import fma

RNG = np.random.default_rng(3)


def product(a, b, order):
    """((0 + a0 b0) + a1 b1) + ..., every step rounded; with "fused", fma(a, b, sum)."""
    acc = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        x, y = a[:, k, None], b[None, k]
        acc = fma(*np.broadcast_arrays(x, y, acc)) if order == "fused" else acc + x * y
    return acc


def total(x, axes):
    """((0 + t0) + t1) + ... along the axes, row-major."""
    moved = np.moveaxis(x, axes, range(len(axes)))
    acc = np.zeros(moved.shape[len(axes):], x.dtype)
    for term in moved.reshape(-1, *acc.shape) if acc.size else ():
        acc = acc + term
    return acc


def strided(shape, dtype):
    """(an array, a function that takes a view of the shape from it): steps of -3 to 3 along permuted axes."""
    steps = RNG.choice([-3, -2, -1, 1, 1, 2, 3], len(shape))
    perm = [int(k) for k in RNG.permutation(len(shape))]
    sizes = [max(n * abs(s), 1) + int(RNG.integers(3)) for n, s in zip(shape, steps)]
    base = RNG.standard_normal([sizes[k] for k in perm]) * 2.0 ** RNG.integers(-20, 20, [sizes[k] for k in perm])
    back = tuple(int(k) for k in np.argsort(perm))

    def view(x):
        x = x.transpose(back)
        for axis, (n, s) in enumerate(zip(shape, steps)):
            start = 0 if s > 0 else n * -s
            x = x[(slice(None),) * axis + (slice(start, None, int(s)),)][(slice(None),) * axis + (slice(0, n),)]
        return x
    return base.astype(dtype), view


def lengths(count):
    """Small and not so small lengths, 0 and 1 among them."""
    return [int(RNG.choice([0, 1, 2, 15, 16, 17, RNG.integers(71), RNG.integers(71)])) for _ in range(count)]


def same(f, arrays, want):
    """Compiled words of f against a loop."""
    values = [tl.tensor(a) for a in arrays]
    program = tl.make_jaxpr(f)(*values)
    operands = [*[c.data for c in program.consts], *[v.data for v in values]]
    got, = Plan(program.jaxpr).run(*operands)
    assert tl.same_bits(got, want), (program.jaxpr, got, want)


def main(rounds):
    """Compare; returns the number of results."""
    count = 0
    for _ in range(rounds):
        for dtype in ("float32", "float64"):
            m, k, n = lengths(3)
            (a, left), (b, right) = strided((m, k), dtype), strided((k, n), dtype)
            for order in ("ordered", "fused"):
                want = product(left(a), right(b), order)
                same(lambda a, b: tl.matmul(left(a), right(b), order=order), (a, b), want)
            x, view = strided(lengths(3), dtype)
            axes = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)][int(RNG.integers(7))]
            same(lambda x: tl.sum(view(x), axis=axes), (x,), total(view(x), axes))
            count += 3
    return count


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        print(main(60), "results are those of the loops")
