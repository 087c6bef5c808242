"""Reductions along rows, and of whole arrays to an extreme, beside the loops that define them: around every size
at which the nest goes another way, and views of rows with steps.

``python3 row_programs.py``: prints how many results were compared; TLGRAD_CPU restricts the machine.
"""
import numpy as np

import tlgrad as tl

RNG = np.random.default_rng(5)
#: rows: less than a band, whole bands, one more
COUNTS = (1, 7, 16, 33, 70)
#: terms: less than a block, whole blocks, one more or less, and enough for the halves of a band to part
TERMS = (1, 15, 16, 17, 64, 129, 300, 512, 1031, 2100)


def folded(step, start, x):
    """((start . t0) . t1) . ... along rows."""
    acc = np.full(len(x), start, x.dtype)
    for k in range(x.shape[1]):
        acc = step(acc, x[:, k])
    return acc


def greater(acc, x):
    """The earlier of equal numbers; NaN is above all."""
    return np.where((x > acc) | (x != x), x, acc)


def less(acc, x):
    return np.where((x < acc) | (x != x), x, acc)


def total(x):
    """Sums of integers are 64-bit."""
    return folded(np.add, 0, x.astype(np.int64) if x.dtype.kind == "i" else x)


def greatest(x):
    return folded(greater, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x)


def least(x):
    return folded(less, np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max, x)


#: programs of two arrays of rows, and what they mean
PROGRAMS = [
    (lambda x, y: tl.sum(x, axis=1), lambda x, y: total(x)),
    (lambda x, y: tl.max(x, axis=1), lambda x, y: greatest(x)),
    (lambda x, y: (tl.sum(x * y, axis=1), tl.max(x - y, axis=1), x - y),
     lambda x, y: (total(x * y), greatest(x - y), x - y)),
    (lambda x, y: tl.sum(x[:, ::-2] + y[:, ::-2], axis=1), lambda x, y: total(x[:, ::-2] + y[:, ::-2])),
    (lambda x, y: -tl.min(x[::-1], axis=1), lambda x, y: -least(x[::-1])),
    (lambda x, y: (tl.max(x), tl.min(y)),
     lambda x, y: (greatest(x.reshape(1, -1))[0], least(y.reshape(1, -1))[0])),
    (lambda x, y: (tl.max(x[0] - y[0]), tl.max(x[0] * 0), tl.min(y[0] * 0)),      # of zeros the first
     lambda x, y: (greatest(x[:1] - y[:1])[0], greatest(x[:1] * 0)[0], least(y[:1] * 0)[0])),
]


def numbers(shape, dtype):
    """Numbers of many sizes; of floats also zeros of both signs and some that are not finite."""
    x = RNG.standard_normal(shape) * 2.0 ** RNG.integers(-3, 20, shape)
    if np.dtype(dtype).kind != "f":
        return x.astype(dtype)
    x[RNG.random(shape) < 0.2] = 0.0
    x[RNG.random(shape) < 0.1] = -0.0
    for special, row in ((np.nan, 2), (np.inf, 3), (-np.inf, 4)):
        x[row::11, RNG.integers(shape[1])] = special
    x[5::11] = np.where(RNG.random(shape[1]) < 0.5, 0.0, -0.0)
    return x.astype(dtype)


def main():
    count = 0
    for dtype in ("float32", "float64", "int32"):
        for shape in ((n, m) for n in COUNTS for m in TERMS):
            x, y = numbers(shape, dtype), numbers(shape, dtype)
            for program, meaning in PROGRAMS:
                got = tl.run(program)(tl.tensor(x), tl.tensor(y))
                with np.errstate(all="ignore"):
                    want = meaning(x, y)
                got, want = (v if isinstance(v, tuple) else (v,) for v in (got, want))
                for a, b in zip(got, want, strict=True):
                    if not tl.same_bits(a, b):
                        raise AssertionError(f"{PROGRAMS.index((program, meaning))} on {dtype} {shape}")
                    count += 1
    print(f"{count} results are those of the loops")


if __name__ == "__main__":
    main()
