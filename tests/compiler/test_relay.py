"""Sums over all lanes that threads share: the words of the reference, whoever makes which tile."""
import threading

import numpy as np
import pytest
from beside_reference import compiled

import tlgrad as tl
from tlgrad.backends.numba_cpu import relay, team, threads
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.backends.numba_cpu.relay import Relay
from tlgrad.kernels.tiles import team as words


@pytest.fixture(params=[2, 3, 5])
def shared(request, monkeypatch):
    """Small tiles, and work that pays at once."""
    monkeypatch.setenv("TLGRAD_NUM_THREADS", str(request.param))
    monkeypatch.setattr(threads, "SHARE", 1e-3)
    monkeypatch.setattr(relay, "LEAST", 1)
    monkeypatch.setattr(relay, "TILE_BYTES", 512)


def numbers(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def relayed(f, *args):
    """The plan of f, which relays a kernel, after comparing words."""
    with pytest.MonkeyPatch.context() as patch:
        made = []
        patch.setattr(relay, "Relay", lambda *a: made.append(Relay(*a)) or made[-1])
        plan = compiled(f, *args)
    assert made
    return plan


PROGRAMS = {
    "sum": lambda x: tl.sum(tl.exp(x) * x),
    "loss and gradient": tl.value_and_grad(lambda x: tl.sum(tl.log1p(tl.exp(x)) * x)),
    "several": lambda x: (tl.sum(x * x), tl.max(x * 3.0), tl.min(tl.abs(x)), tl.prod(x * 0.1 + 1.0), x + 1.0),
    "loop and gradient": tl.value_and_grad(lambda x: tl.sum(tl.iterate(lambda v: v * v * 0.25 + 0.5, 7, x))),
    "truth": lambda x: (tl.any(x * x > 12.0), tl.all(x * x < 12.0)),
    "start": lambda x: tl.sum(x * x, init=tl.tensor(-0.0, x.dtype)),
    "integers": lambda x: tl.sum(tl.trunc(x * 9).astype(tl.int32) * 5),
    "while": lambda x: tl.sum(tl.map(escape)(x))}


def escape(x):
    n = 0
    while abs(x) < 4.0 and n < 50:
        x = x * x + 0.3
        n = n + 1
    return x * n


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", [2, 31, 1000, 4097])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_words(name, size, dtype, shared):
    relayed(PROGRAMS[name], numbers(size, dtype=dtype))


def test_rows_of_lanes(shared):
    relayed(lambda x, y: tl.sum(tl.exp(x) * y), numbers(70, 33), numbers(33, seed=1))
    relayed(lambda x, y: tl.sum(tl.exp(x) * y.T), numbers(70, 33), numbers(33, 70, seed=1))
    compiled(lambda x, y: tl.sum(tl.exp(x) * y), numbers(3, 9000), numbers(9000, seed=1))


def test_rows_of_three_axes(shared):
    plan = relayed(lambda x, y: tl.sum(tl.exp(x) * y), numbers(5, 7, 40), numbers(5, 1, 40, seed=1))
    assert plan.kernels[0][0].kernel.rank == 3


def test_nan_infinity_and_signed_zeros(shared):
    x = numbers(999)
    x[::7], x[5], x[700] = -0.0, np.inf, -np.inf
    relayed(PROGRAMS["several"], x)
    x[[3, 800]] = np.nan
    relayed(PROGRAMS["several"], x)
    relayed(lambda x: tl.sum(x * 0.0), np.full(500, -1.0))


def test_a_lane_that_cannot_go_on_raises(shared):
    f = tl.run(lambda x, y: tl.sum(x // y))
    x = np.arange(1000)
    assert f(x, x + 1) == np.sum(x // (x + 1))
    with pytest.raises(ZeroDivisionError):
        f(x, x)


def test_calls_from_several_threads_at_once(shared):
    f, x = tl.run(PROGRAMS["loss and gradient"]), tl.tensor(numbers(20_000))
    want, wrong = f(x), []

    def work():
        for _ in range(20):
            got = f(x)
            wrong.extend([] if all(map(tl.same_bits, got, want)) else [got])
    callers = [threading.Thread(target=work) for _ in range(4)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert not wrong


def test_one_thread_alone_makes_all_tiles(shared):
    program = tl.make_jaxpr(PROGRAMS["several"])(tl.tensor(numbers(4097)))
    plan, x = Plan(program.jaxpr), numbers(4097)
    want = plan.run(x)
    team._team.state[words.BUSY] = 1                  # another launch has the team
    try:
        assert all(map(tl.same_bits, plan.run(x), want))
    finally:
        team._team.state[words.BUSY] = 0


def test_a_light_body_stays_on_one_thread(monkeypatch):
    monkeypatch.setenv("TLGRAD_NUM_THREADS", "2")
    monkeypatch.setattr(relay, "Relay", None)
    compiled(lambda x: tl.sum(x * x), numbers(1 << 20))
