"""W7: one training step of an MLP 784-512-512-10, batch 128, Adam, float32."""
from __future__ import annotations

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case
from benchmarks.peers_report import compare, jax

SIZES, BATCH, RATE = (784, 512, 512, 10), 128, 1e-7


def problem():
    """Parameters (weights and biases in turn), inputs, and one-hot targets."""
    rng = np.random.default_rng(0)
    params = []
    for a, b in zip(SIZES, SIZES[1:]):
        params += [(rng.standard_normal((a, b)) * np.sqrt(2 / a)).astype("float32"), np.zeros(b, "float32")]
    x = rng.standard_normal((BATCH, SIZES[0])).astype("float32")
    return params, x, np.eye(SIZES[-1], dtype="float32")[rng.integers(0, SIZES[-1], BATCH)]


def loss(np_, params, x, y):
    """Mean cross entropy; `np_` is the array namespace."""
    for k in range(0, len(params) - 2, 2):
        x = np_.maximum(np_.matmul(x, params[k]) + params[k + 1], 0)
    z = np_.matmul(x, params[-2]) + params[-1]
    z = z - np_.max(z, axis=1, keepdims=True)
    return np_.sum((np_.log(np_.sum(np_.exp(z), axis=1, keepdims=True)) - z) * y) / BATCH


def adam(sqrt, params, grads, m, v):
    """One update, with the bias corrections of the first step."""
    m = [0.9 * a + 0.1 * g for a, g in zip(m, grads)]
    v = [0.999 * a + 0.001 * g * g for a, g in zip(v, grads)]
    return [p - RATE * (a / 0.1) / (sqrt(b / 0.001) + 1e-8) for p, a, b in zip(params, m, v)], m, v


def tlgrad_step(order, params, x, y):
    """A step of tlgrad, its state donated."""
    def step(params, m, v, x, y):
        value, grads = tl.value_and_grad(lambda p: loss(tl, p, x, y))(params)
        return value, *adam(tl.sqrt, params, grads, m, v)
    run = tl.run(step, order=order, donate=(0, 1, 2))
    state = [[tl.tensor(p) for p in params], *[[tl.tensor(np.zeros_like(p)) for p in params] for _ in range(2)]]
    tx, ty = tl.tensor(x), tl.tensor(y)

    def once():
        _, *state[:] = run(*state, tx, ty)
    return once


def jax_step(j, params, x, y):
    """A step of JAX, its state donated."""
    def step(params, m, v, x, y):
        value, grads = j.value_and_grad(lambda p: loss(j.numpy, p, x, y))(params)
        return value, *adam(j.numpy.sqrt, params, grads, m, v)
    run = j.jit(step, donate_argnums=(0, 1, 2))
    a = j.numpy.asarray
    state = [[a(p) for p in params], *[[a(np.zeros_like(p)) for p in params] for _ in range(2)]]
    jx, jy = a(x), a(y)

    def once():
        _, *state[:] = j.block_until_ready(run(*state, jx, jy))
    return once


def numpy_step(params, x, y):
    """A step written by hand with NumPy (BLAS), state updated in place."""
    params = [p.copy() for p in params]
    m, v = ([np.zeros_like(p) for p in params] for _ in range(2))

    def once():
        hidden = [x]
        for k in range(0, len(params) - 2, 2):
            hidden.append(np.maximum(hidden[-1] @ params[k] + params[k + 1], 0))
        z = hidden[-1] @ params[-2] + params[-1]
        e = np.exp(z - z.max(axis=1, keepdims=True))
        g = (e / e.sum(axis=1, keepdims=True) - y) / BATCH
        for k in range(len(params) - 2, -1, -2):
            grads = hidden[k // 2].T @ g, g.sum(axis=0)
            if k:
                g = (g @ params[k].T) * (hidden[k // 2] > 0)
            for p, d, a, b in zip(params[k:k + 2], grads, m[k:k + 2], v[k:k + 2]):
                a *= 0.9
                a += 0.1 * d
                b *= 0.999
                b += 0.001 * d * d
                p -= RATE * (a / 0.1) / (np.sqrt(b / 0.001) + 1e-8)
    return once


def w7(rounds: int):
    """The step in both orders beside JAX and NumPy."""
    params, x, y = problem()
    cases = [Case(f"tlgrad {o}", tlgrad_step(o, params, x, y)) for o in ("ordered", "fused")]
    cases.append(Case("numpy by hand", numpy_step(params, x, y)))
    if (j := jax()) is not None:
        cases.append(Case("jax", jax_step(j, params, x, y)))
    peers = [c.name for c in cases if not c.name.startswith("tlgrad")]
    pairs = {f"{p} to {o}": (p, f"tlgrad {o}") for p in peers for o in ("ordered", "fused")}
    compare("W7 MLP training step", cases, rounds, pairs=pairs)


WORKS = {"W7": w7}
