"""Escape times of a grid (Mandelbrot): plain Python under `tl.map`, beside scalar Numba and NumPy."""
from __future__ import annotations

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case
from benchmarks.peers_report import compare

SIDE = 1000


def escape(cr, ci, limit):
    """Turns of z = z * z + c until |z| > 2, at most `limit`."""
    zr = zi = 0.0
    n = 0
    while n < limit and zr * zr + zi * zi <= 4.0:
        zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
        n = n + 1
    return n


def numba_escape(dtype: str):
    """The same function by numba.njit over all pixels, with numbers of the dtype; and its pixel function."""
    import numba
    number = np.dtype(dtype).type
    zero, two, four = number(0), number(2), number(4)

    @numba.njit
    def pixel(cr, ci, limit):
        zr = zi = zero
        n = 0
        while n < limit and zr * zr + zi * zi <= four:
            zr, zi = zr * zr - zi * zi + cr, two * zr * zi + ci
            n = n + 1
        return n

    @numba.njit
    def grid(cr, ci, limit, out):
        for k in range(cr.size):
            out[k] = pixel(cr[k], ci[k], limit)
    return grid


def engine(cr, ci, limit):
    """The loops that tlgrad makes of `escape`, by its njit engine."""
    def times(a, b):
        return tl.map(lambda p, q: escape(p, q, limit))(a, b)
    kernel, = tl.kernels(times)(tl.tensor(cr), tl.tensor(ci))
    f, out = kernel.to_numba(), np.empty(cr.size, np.int64)

    def run():
        f(cr, ci, out, cr.size)
        return out
    return run


def numpy_escape(cr, ci, limit):
    """All pixels turn by turn; those that are done are dropped."""
    out = np.full(cr.size, limit)
    place, zr, zi = np.arange(cr.size), np.zeros_like(cr), np.zeros_like(cr)
    for n in range(limit):
        live = zr * zr + zi * zi <= 4
        if not live.all():
            out[place[~live]] = n
            place, cr, ci, zr, zi = (a[live] for a in (place, cr, ci, zr, zi))
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
    return out


def pixels(dtype: str, shuffled: bool):
    """The numbers c of a picture, in rows or in no order."""
    x, y = np.meshgrid(np.linspace(-2, 0.6, SIDE), np.linspace(-1.3, 1.3, SIDE))
    c = np.stack([x.ravel(), y.ravel()]).astype(dtype)
    return c[:, np.random.default_rng(0).permutation(c.shape[1])] if shuffled else c


def escape_times(rounds: int):
    """Ratios for both dtypes, with pixels in rows and shuffled."""
    for dtype, limit, shuffled in (("float64", 200, False), ("float32", 1000, False), ("float32", 1000, True)):
        cr, ci = pixels(dtype, shuffled)
        f = tl.run(lambda a, b, n: tl.map(lambda p, q: escape(p, q, n))(a, b))
        args = tl.tensor(cr), tl.tensor(ci), tl.tensor(limit)
        cases = [Case("tlgrad", lambda: f(*args))]
        out = np.empty(cr.size, np.int64)
        grid = numba_escape(dtype)
        cases.append(Case("numba scalar", lambda: grid(cr, ci, limit, out)))
        if not shuffled:
            cases.append(Case("numpy", lambda: numpy_escape(cr, ci, limit)))
            cases.append(Case("tlgrad njit engine", engine(cr, ci, limit)))
        grid(cr, ci, limit, out)
        if not all(tl.same_bits(np.asarray(c.round()), out) for c in cases if c.name.startswith("tlgrad")):
            raise AssertionError("the escape times differ")
        compare(f"escape {dtype} {limit} turns{' shuffled' if shuffled else ''}, {SIDE}x{SIDE}", cases,
                max(rounds // 3, 3))


WORKS = {"escape": escape_times}
