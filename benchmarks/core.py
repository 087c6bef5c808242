"""``python3 -m benchmarks core``: tracing, transforming and executing, apart; cold and warm."""
from __future__ import annotations

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case, control, measure, report
from tlgrad.core.aval import make_aval
from tlgrad.transforms.stage import stage


def chain(n):
    """A program of n multiplications."""
    def f(x):
        for _ in range(n):
            x = x * 1.5
        return x
    return f


def mlp_loss(params, x, y):
    """Two layers, softmax cross-entropy."""
    (w1, b1), (w2, b2) = params
    hidden = tl.tanh(x @ w1 + b1)
    logits = hidden @ w2 + b2
    return -tl.mean(tl.sum(y * tl.log_softmax(logits, axis=1), axis=1))


def mlp_arguments(rng):
    """Parameters and a batch, 64-32-10, float32."""
    def array(*shape):
        return tl.tensor(rng.standard_normal(shape), tl.float32)
    return [(array(64, 32), array(32)), (array(32, 10), array(10))], array(16, 64), array(16, 10)


def main(arguments):
    """Run and report."""
    aval = make_aval((3,), tl.float32)
    rng = np.random.default_rng(0)
    params, x, y = mlp_arguments(rng)
    square, vector = tl.run(lambda x: x * x), tl.tensor([1.0, 2.0, 3.0], tl.float32)
    fresh = []
    energy = tl.run(lambda x: tl.sum(x * x))

    def trace(n):
        return lambda: stage(lambda x: [chain(n)(x)], [aval])
    mlp = tl.make_jaxpr(mlp_loss)
    eager, compiled = tl.value_and_grad(mlp_loss), tl.run(tl.value_and_grad(mlp_loss))
    mlp_grad = tl.make_jaxpr(tl.value_and_grad(mlp_loss))
    cases = [
        control(),
        Case("trace 2,000 multiplications", trace(2000)),
        Case("trace 20,000 multiplications", trace(20000)),
        Case("trace, per multiplication", trace(2000), items=2000),
        Case("trace a 2-layer MLP", lambda: mlp(params, x, y)),
        Case("trace + grad of a 2-layer MLP", lambda: mlp_grad(params, x, y)),
        Case("eager value_and_grad of a 2-layer MLP", lambda: eager(params, x, y)),
        Case("compiled value_and_grad of a 2-layer MLP", lambda: compiled(params, x, y)),
        Case("first call of a new function (trace, find the kernel, execute)", lambda: fresh[-1](vector),
             prepare=lambda: fresh.append(tl.run(lambda x: x * x))),
        Case("warm call on 3 elements", lambda: [square(vector) for _ in range(100)], items=100),
        Case("warm energy on 3 elements", lambda: [energy(vector) for _ in range(100)], items=100),
    ]
    timings = measure(cases, rounds=9)
    report("core", timings, {"20,000 over 2,000 (bar: < 15)":
                             ("trace 20,000 multiplications", "trace 2,000 multiplications")})
