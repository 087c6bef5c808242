"""Words do not depend on the number of threads."""
import os
import subprocess
import sys

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu import threads
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.backends.numba_cpu.shares import Shares
from tlgrad.backends.numba_cpu.threads import SHARE

PROGRAM = """
import hashlib, numpy as np, tlgrad as tl
rng = np.random.default_rng(1)
digest = hashlib.sha256()
x = tl.tensor(rng.standard_normal((700, 801)).astype("float32"))
w = tl.tensor(rng.standard_normal((801, 333)).astype("float32"))
for f, args in [(lambda x: tl.exp(x) * tl.tanh(x) + x, (x,)), (lambda x: tl.sum(x, axis=1), (x,)),
                (lambda x: tl.sum(x, axis=0), (x,)), (tl.matmul, (x, w)), (lambda x: tl.sum(x * x), (x,)),
                (lambda x: tl.iterate(lambda v: v * v * 0.25 + 0.5, 20, x), (x,))]:
    digest.update(tl.run(f)(*args).words().tobytes())
print(digest.hexdigest())
"""


def test_one_two_and_three_threads_agree():
    found = set()
    for n in ("1", "2", "3"):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
                              env={**os.environ, "TLGRAD_NUM_THREADS": n})
        found.add(done.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("count", [1, 5, 127, 128, 1000, 4097])
@pytest.mark.parametrize("work", [0, SHARE, 3 * SHARE, 100 * SHARE])
def test_shares_cover_every_lane_once(count, work, monkeypatch):
    monkeypatch.setenv("TLGRAD_NUM_THREADS", "3")
    kernel, = Plan(tl.make_jaxpr(lambda x, y: x + y)(x := tl.ones(count), x).jaxpr).kernels
    address, size = kernel[1].address, [count]
    out, x = np.zeros(count), np.arange(count, dtype=float)
    Shares(address, count, work, 16).launch([0] * 3, size, True)(out, x, out)
    assert np.array_equal(out, x)
    Shares(address, count - 1, work, 16, first=1).launch([0] * 3, size, True)(out, x, out)
    assert np.array_equal(out, np.where(x, 2 * x, 0))
    assert Shares(address, count, work, 16).threads <= 3


@pytest.mark.parametrize("dtype", ["binary128", "bfloat16"])
def test_software_formats_are_shared(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    x, y = (tl.tensor(rng.standard_normal(20_001)).astype(getattr(tl, dtype)) for _ in range(2))
    found = []
    for n in ("1", "3"):
        monkeypatch.setenv("TLGRAD_NUM_THREADS", n)
        monkeypatch.setattr(threads, "SHARE", 10)
        f = tl.run(lambda x, y: ((x * y + x) * 2.0, x < y))
        f(x, y)
        found.append(f(x, y))
    assert all(map(tl.same_bits, *found))


def test_a_process_with_workers_ends(tmp_path):
    program = "import os, tlgrad as tl, atexit\nf = tl.run(tl.exp)\nx = tl.ones(1 << 20)\n"
    program += "atexit.register(lambda: print(f(x)[0]))\nf(x)\nprint(os.fork() and os.wait()[1], f(x)[0])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60,
                          env={**os.environ, "TLGRAD_NUM_THREADS": "3"})
    assert done.stdout.count("2.718281828459045") == 4, done
