"""Results and scratch lie on 64-byte lines, and large results come from the pool."""
import re

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.buffers import POOLED, Pool, allocate
from tlgrad.core.memory import ALIGNED


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64"])
@pytest.mark.parametrize("size", [ALIGNED, ALIGNED + 8, 50_000, POOLED - 8, POOLED, POOLED + 8, 3 << 20])
def test_results_are_aligned_row_major_and_of_their_size(size, dtype):
    dtype = np.dtype(dtype)
    kept = [allocate((2, size // dtype.itemsize // 2), dtype) for _ in range(3)]
    for k, out in enumerate(kept):
        assert out.ctypes.data % 64 == 0 and out.flags.c_contiguous and out.flags.aligned
        out[...] = k
    assert [int(out.min()) for out in kept] == [int(out.max()) for out in kept] == [min(k, 1 + (dtype.kind != "b"))
                                                                                  for k in range(3)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_tensors_are_aligned_copies(order):
    block = np.arange(ALIGNED + 10, dtype="float32")
    for start in range(5):
        data = np.array(block[start:start + ALIGNED].reshape(64, -1), order=order)
        t = tl.tensor(data)
        assert t.data.ctypes.data % 64 == 0 and not t.data.flags.writeable and t.data.flags.c_contiguous
        assert not np.shares_memory(t.data, data) and tl.same_bits(t.data, data)
        assert tl.tensor(t).data is t.data


def test_programs_give_aligned_results():
    f = tl.run(lambda x: (x * 2.0, tl.sum(x, axis=1), x @ x.T, x.T + 1.0))
    for out in f(tl.tensor(np.ones((5000, 70)))):
        assert out.data.nbytes < ALIGNED or out.data.ctypes.data % 64 == 0


def test_scratch_is_aligned():
    def total(x):
        return tl.sum(tl.iterate(lambda v: v * v * 0.25 + 0.5, 40, x))
    programs = [tl.value_and_grad(total), lambda x: tl.map(lambda v: _turns(v))(x), lambda x: tl.sum(x, axis=0)]
    found = 0
    for f in programs:
        for kernel in tl.kernels(f)(tl.tensor(np.ones((40, 50)))):
            for line in re.findall(r"= alloca [^pi].*", kernel.llvm):      # not pointers and counts
                found += 1
                assert line.endswith("align 64"), line
    assert found


def _turns(v):
    n = 0
    while v < 100.0:
        v, n = v * 1.5 + 0.1, n + 1
    return n


def test_a_block_goes_back_when_nobody_holds_it():
    pool = Pool(limit=1 << 22)
    first = pool.take(1 << 20)
    place, second = first.ctypes.data, pool.take(1 << 20)
    assert second.ctypes.data != place
    del first
    assert pool.take(1 << 20).ctypes.data == place
    large = [pool.take(1 << 20) for _ in range(8)]           # beyond the limit: given, not kept
    assert len({b.ctypes.data for b in large}) == 8 and pool.total <= pool.limit
