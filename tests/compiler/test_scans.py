"""Scans with inputs and results of each turn are kernels with the words of the reference."""
import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.emitter import Emitter
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.njit import run_lowered
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.backends.numba_cpu.revolve import first_piece
from tlgrad.control import schedule

from beside_reference import compiled


def hosted(plan):
    """Loops that no kernel runs."""
    return [s for s in plan.grouping.steps if s.kind == "host" and s.eqns[0].prim.name == "sweeps"]


def cell(c, x):
    h = tl.tanh(c * 0.5 + x)
    return h, h * 2 + c


def forward(c, xs):
    c, ys = tl.scan(cell, c, xs)
    return c, ys


def backward(c, xs):
    return tl.scan(cell, c, xs, reverse=True)


def loss(scan):
    def f(c, xs):
        c, ys = scan(c, xs)
        return tl.sum(c) + tl.sum(ys * ys)
    return f


def entries(n, shape, dtype):
    rng = np.random.default_rng(n)
    return rng.standard_normal(shape).astype(dtype), rng.standard_normal((n, *shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (300,), (3, 7), (2, 1, 40)], ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 33, 700])
@pytest.mark.parametrize("scan", [forward, backward], ids=lambda f: f.__name__)
def test_a_scan_and_its_gradient(scan, n, shape, dtype):
    if n == 700 and shape != (5,):
        n = 70
    c, xs = entries(n, shape, dtype)
    assert not hosted(compiled(scan, c, xs))
    assert not hosted(compiled(tl.value_and_grad(loss(scan), argnums=(0, 1)), c, xs))


def test_inputs_of_several_kinds():
    c, xs = entries(9, (31,), "float64")
    numbers, whole, yes = xs[:, 0].copy(), np.arange(9), xs > 0

    def f(c, xs, numbers, whole, yes):
        def turn(c, x):
            x, number, k, b = x
            c = tl.where(b, c * number + x, c - k)
            return c, (c > 0, tl.convert(c, tl.int32), k)
        return tl.scan(turn, c, (xs, numbers, whole, yes))
    compiled(f, c, xs, numbers, whole, yes)
    compiled(lambda c, xs, k: tl.scan(lambda c, x: (c * 0.5 + x, c), c, (xs.T[:, ::2] * k).T[::-1]), c, xs, 2.0)


def test_what_a_scan_gives_is_read_by_other_steps():
    c, xs = entries(12, (20,), "float64")

    def f(c, xs):
        c, ys = tl.scan(cell, c, xs * 2.0)
        d, zs = tl.scan(cell, c * c, ys + 1.0, reverse=True)
        return tl.sum(zs, axis=0), tl.sum(d), zs[3] + c
    assert not hosted(compiled(f, c, xs))
    compiled(tl.grad(lambda c, xs: tl.sum(f(c, xs)[0]), argnums=(0, 1)), c, xs)


@pytest.mark.parametrize("derive", [
    lambda f: lambda c, xs: tl.jvp(f, (c, xs), (xs[0], xs * 2))[1],
    lambda f: tl.grad(lambda c, xs: tl.sum(tl.grad(f, 1)(c, xs) * xs), 1),
    lambda f: lambda c, xs: tl.vmap(tl.grad(f, 0), (None, 0))(c, tl.stack([xs, xs * 2]))],
    ids=["forward", "second", "lanes"])
def test_other_derivatives(derive):
    c, xs = entries(14, (6,), "float64")
    compiled(derive(loss(forward)), c, xs)


def test_rows_that_are_all_one_number():
    """The one row of a scan of one turn is a literal, not an array."""
    for n in (1, 3):
        compiled(lambda c: tl.scan(cell, c, tl.ones((n, 1))), np.ones(1))


@pytest.mark.parametrize("shape", [(), (3,), (300,)], ids=str)
@pytest.mark.parametrize("memory", [None, 2])
def test_a_reverse_sweep_that_carries_nothing(shape, memory):
    def loss(xs):
        start = tl.tensor(np.full(shape, 0.75))
        return tl.sum(tl.scan(lambda c, x: (tl.tanh(c * 0.5), tl.sin(c) * x), start, xs, memory=memory)[1])
    plan = compiled(tl.grad(loss), np.linspace(-1, 1, 5 * int(np.prod(shape))).reshape(5, *shape))
    assert not hosted(plan)


def test_partial_reductions_stay_outside():
    c, xs = entries(11, (6, 50), "float64")
    for axis in (0, 1, 2):
        compiled(lambda c, xs: tl.sum(tl.scan(cell, c, xs)[1], axis=axis), c, xs)
    compiled(lambda c, xs: tl.sum(tl.scan(cell, c, xs)[0], axis=0), c, xs)


def test_the_njit_engine_runs_scans():
    c, xs = entries(8, (13,), "float32")
    for f in (forward, backward, tl.grad(loss(backward), argnums=(0, 1))):
        program = tl.make_jaxpr(f)(tl.tensor(c), tl.tensor(xs))
        plan = Plan(program.jaxpr)
        inputs = dict(zip(plan.jaxpr.in_binders, [c, xs]))
        results = dict(zip([plan.grouping.view(a).root for a in plan.jaxpr.outs], plan.run(c, xs)))
        for lowered, _ in plan.kernels:
            if all(o.root in inputs for o in lowered.inputs):
                for var, got in zip(lowered.outs, run_lowered(lowered, inputs), strict=True):
                    assert var not in results or tl.same_bits(got.reshape(results[var].shape), results[var])
                    inputs[var] = got


@pytest.mark.parametrize("memory", [1, 2, 3, 10, 100, 5000, "1KB", "40KB", "64MB"])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 60, 211])
def test_a_kernel_keeps_as_many_states_as_it_may(memory, n):
    c, xs = entries(n, (37,), "float64")

    def f(memory):
        scan = lambda c, xs: tl.scan(cell, c, xs, memory=memory)
        return tl.value_and_grad(loss(scan), argnums=(0, 1))
    plan = compiled(f(memory), c, xs)
    assert any("unfold_within" in lowered.kernel.text() for lowered, _ in plan.kernels) and not hosted(plan)
    free = compiled(f(None), c, xs)
    assert all(tl.same_bits(a, b) for a, b in zip(plan.run(c, xs), free.run(c, xs)))


@pytest.mark.parametrize("turns", [1, 2, 3, 10, 101, 5000, 100_000, 10**9])
@pytest.mark.parametrize("slots", [1, 2, 3, 10, 100, 4000])
def test_a_kernel_cuts_where_the_schedule_does(turns, slots):
    if turns > slots > 1:
        assert cut_by_kernel(turns, slots) == schedule.first_piece(turns, slots)


def cut_by_kernel(turns, slots):
    """`first_piece` as machine code."""
    e = Emitter(1)
    e.lines.append(f"  ret i64 {first_piece(e, '%turns', '%slots')}")
    text = "\n".join(["define i64 @first_piece(i64 %turns, i64 %slots) {", "entry:", *e.lines, "}", ""])
    number = ctypes.c_int64
    return ctypes.CFUNCTYPE(number, number, number)(build(text, "first_piece"))(turns, slots)


def test_the_limit_is_no_part_of_the_text():
    c, xs = entries(20, (4,), "float64")
    texts = set()
    for memory in (2, 7, 19):
        f = tl.grad(lambda c, xs: tl.sum(tl.scan(cell, c, xs, memory=memory)[0]))
        texts.add(compiled(f, c, xs).kernels[0][1].text)
    assert len(texts) == 1


PROGRAM = """
import hashlib, numpy as np, tlgrad as tl
rng = np.random.default_rng(0)
digest = hashlib.sha256()
def cell(c, x):
    h = tl.tanh(c * 0.5 + x)
    return h, h * 2 + c
for dtype in ("float32", "float64"):
    for memory in (None, 7):
        def loss(c, xs):
            c, ys = tl.scan(cell, c, xs, memory=memory)
            return tl.sum(c) + tl.sum(ys * ys)
        for shape in ((), (77,)):
            c, xs = (tl.tensor(rng.standard_normal(s).astype(dtype)) for s in (shape, (40, *shape)))
            value, (a, b) = tl.run(tl.value_and_grad(loss, argnums=(0, 1)))(c, xs)
            for y in (value, a, b):
                digest.update(np.ascontiguousarray(y.words()).tobytes())
print(digest.hexdigest())
"""


def words(restrict):
    env = {**os.environ, "TLGRAD_CPU": restrict, "TLGRAD_CACHE_DIR": ""}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_narrower_instruction_sets_give_the_same_words():
    assert words("") == words("avx2") == words("baseline")
