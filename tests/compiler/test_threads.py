"""Words do not depend on the number of threads."""
import os
import subprocess
import sys

import pytest

from tlgrad.backends.numba_cpu.threads import SHARE, parts

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


@pytest.mark.parametrize("count", [0, 1, 5, 127, 128, 1000, 4097])
@pytest.mark.parametrize("work", [0, SHARE, 3 * SHARE, 100 * SHARE])
def test_parts_cover_every_lane_once(count, work, monkeypatch):
    monkeypatch.setenv("TLGRAD_NUM_THREADS", "3")
    ranges = parts(count, work)
    assert [k for lo, hi in ranges for k in range(lo, hi)] == list(range(count))
    assert len(ranges) <= 3
