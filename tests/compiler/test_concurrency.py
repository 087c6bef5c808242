"""Calls from many threads, and forks while other threads compile: the words of one thread."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.api import run as runs
from tlgrad.api.fast import NativelyCalled
from tlgrad.backends.numba_cpu import call
from tlgrad.core import writing
from tlgrad.kernels import machine

X = tl.tensor(np.linspace(-2.0, 3.0, 600 * 70).reshape(600, 70))
W = tl.tensor(np.linspace(1.0, 2.0, 70 * 90).reshape(70, 90))
#: large enough that threads run them side by side, without the GIL
PROGRAMS = {
    "elementwise": (lambda x: tl.exp(x) * tl.tanh(x) + x / 3.0, (X,)), "product": (tl.matmul, (X, W)),
    "rows": (lambda x: tl.sum(x * x, axis=1), (X,)), "columns": (lambda x: tl.sum(x - 0.1, axis=0), (X,)),
    "fold": (tl.grad(lambda x: tl.sum(tl.iterate(lambda v: v * v * 0.25 + 0.5, 20, x))), (X,)),
    "transpose": (lambda x: x.T * 2.0, (X,)),
    "while": (tl.vmap(lambda x: tl.while_loop(lambda v: v < 50.0, lambda v: v * v + 1.0, x)), (X.reshape(-1),)),
    "wide": (lambda x: tl.convert(x, tl.binary128) / 3.0, (X[0],))}


def together(works):
    """Run functions in threads that start at the same moment; what they raised."""
    barrier, raised = threading.Barrier(len(works)), []

    def guarded(work):
        barrier.wait()
        try:
            work()
        except BaseException as error:
            raised.append(error)
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return raised


def test_first_calls_from_many_threads_while_caches_are_cleared():
    expected = {name: tl.run(f)(*args) for name, (f, args) in PROGRAMS.items()}
    made = {name: tl.run(f) for name, (f, _) in PROGRAMS.items()}
    tl.clear_caches()
    wrong, running = [], threading.Event()

    def use(k):
        names = [*made][k:] + [*made][:k]
        for name in names * 3:
            if not tl.same_bits(made[name](*PROGRAMS[name][1]), expected[name]):
                wrong.append(name)

    def clear():
        while not running.is_set():
            tl.clear_caches()
            running.wait(0.001)
    clearing = threading.Thread(target=clear)
    clearing.start()
    raised = together([lambda k=k: use(k) for k in (0, 0, 2, 4)])
    running.set()
    clearing.join()
    assert (wrong, raised) == ([], [])


def test_threads_that_drop_each_others_traces(monkeypatch):
    monkeypatch.setattr(runs, "MAX_TRACES", 2)
    f = tl.run(lambda x: x * 2.0)
    wrong = []

    def use(k):
        for n in range(200):
            n = 1 + (n * (k + 1)) % 5
            if f(tl.tensor(np.ones(n))).tolist() != [2.0] * n:
                wrong.append(n)
    assert together([lambda k=k: use(k) for k in range(4)]) == [] and wrong == []


def test_the_native_call_is_given_once(monkeypatch):
    class Called(NativelyCalled):
        def __call__(self, *args):
            return args
    built = []
    monkeypatch.setattr(call, "add_symbols", lambda symbols: None)
    monkeypatch.setattr(call, "build", lambda *text: built.append(text) or 0)
    assert together([lambda: call.give_native_call(Called, "native")] * 4) == []
    assert len(built) == 1


def test_what_is_made_once_is_one_object(monkeypatch):
    """A second launcher, target or dtype would be dropped while others still use it."""
    made = []

    @machine.once
    def make(number):
        threading.Event().wait(0.01)
        return [number]
    assert together([lambda: made.append(make(1))] * 6) == []
    assert all(m is made[0] for m in made) and make(2) == [2]
    for n in range(20):
        found = []
        assert together([lambda: found.append(tl.tensor([1.0], tl.Complex(tl.Binary(9, 30 + n))).dtype)] * 4) == []
        assert all(d is found[0] for d in found)


FORKS = """
import os, signal, sys, threading, numpy as np, tlgrad as tl
from tlgrad.core import counters
from tlgrad.backends.numba_cpu import buffers

def program(seed, steps):
    def f(x):
        y = x
        for j in range(steps):
            y = y * x if seed >> j % 9 & 1 else y - x * 0.5
        return y
    return f

def compiling(k):
    seed = k
    while True:
        seed += 8
        tl.run(program(seed, 30 + seed % 20))(tl.tensor(np.ones(70_000)))

for k in range(3):
    threading.Thread(target=compiling, args=(k,), daemon=True).start()
x = np.linspace(0, 1, 5)
failed = 0
for turn in range(15):
    threading.Event().wait(0.01)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        got = tl.run(program(turn, 20))(tl.tensor(x))
        total = tl.run(lambda x: tl.sum(x * x - 0.5, axis=1))(tl.tensor(np.ones((1000, 2000))))
        os._exit(0 if tl.same_bits(got, program(turn, 20)(x)) and total.tolist() == [1000.0] * 1000 else 1)
    failed += os.waitpid(child, 0)[1] != 0
os.write(1, b"%d" % failed)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_that_are_forked_while_other_threads_compile(tmp_path):
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=500,
                          env={**os.environ, "TLGRAD_CACHE_DIR": str(tmp_path), "TLGRAD_NUM_THREADS": "2"})
    assert (done.stdout, done.stderr, done.returncode) == ("0", "", 0)


def test_an_assignment_to_a_captured_tensor_is_seen_by_native_calls():
    """Code of `writing.WRITERS` may assign; a captured scalar is a number of the program."""
    x = tl.tensor([1.0, 2.0])
    for body in (lambda x, k: x * k, lambda x, k: x * (k + 1.0), lambda x, k: tl.iterate(lambda v: v + k, 2, x)):
        k = tl.tensor(2.0)
        f = tl.run(lambda x: body(x, k))
        for value in (2.0, 5.0, 7.0):
            writing.assign(k, tl.tensor(value))
            for _ in range(6):
                assert tl.same_bits(f(x), body(x, tl.tensor(value)))
        assert f.native
