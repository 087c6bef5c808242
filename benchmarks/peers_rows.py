"""Rows: softmax, logsumexp, and the gradient of softmax, float32."""
from __future__ import annotations

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case
from benchmarks.peers_report import compare, jax

SHAPES = ((4096, 4096), (128, 1000), (8, 12, 256, 256))


def by_numpy(x):
    """The usual softmax of NumPy."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    e /= e.sum(axis=-1, keepdims=True)
    return e


def logsumexp_by_numpy(x):
    """The usual logsumexp of NumPy."""
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0]


def rows(rounds: int):
    """Three functions of rows beside JAX and NumPy."""
    for shape in SHAPES:
        x, w = (np.random.default_rng(k).standard_normal(shape).astype("float32") for k in (0, 1))
        title = "x".join(map(str, shape))
        many = rounds if x.size < 1 << 23 else max(rounds // 2, 5)
        one(f"softmax {title}", tl.softmax, lambda j: j.nn.softmax, by_numpy, (x,), many)
        one(f"logsumexp {title}", lambda x: tl.logsumexp(x, axis=-1),
            lambda j: lambda x: j.nn.logsumexp(x, axis=-1), logsumexp_by_numpy, (x,), many)
        one(f"gradient of softmax {title}", tl.grad(lambda x, w: tl.sum(tl.softmax(x) * w)),
            lambda j: j.grad(lambda x, w: j.numpy.sum(j.nn.softmax(x) * w)), None, (x, w), many)


def one(title, f, of_jax, of_numpy, arrays, rounds):
    """One function on the same arrays everywhere."""
    run, tensors = tl.run(f), [tl.tensor(a) for a in arrays]
    cases = [Case("tlgrad", lambda: run(*tensors))]
    if of_numpy is not None:
        cases.append(Case("numpy", lambda: of_numpy(*arrays)))
    if (j := jax()) is not None:
        g, held = j.jit(of_jax(j)), [j.numpy.asarray(a) for a in arrays]
        cases.append(Case("jax", lambda: g(*held).block_until_ready()))
    compare(title, cases, rounds)


WORKS = {"rows": rows}
