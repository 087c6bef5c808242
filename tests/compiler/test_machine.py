"""Kernel text, and the same words with narrower instruction sets."""
import os
import subprocess
import sys

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.kernels.machine import Machine

GOLDEN = """kernel nest=lanes rank=2
  input v0:f32 @ lanes
  input v1:f32 @ lanes
  literal v2:f32!
  v3:f32 = add v0 v1
  v4:f32 = max v3 v2
  store v4
  add v4"""


def test_a_layer_and_its_sum_are_one_kernel_with_this_text():
    def layer(x, b):
        y = tl.maximum(x + b, 0.0)
        return y, tl.sum(y)
    kernel, = tl.kernels(layer)(tl.tensor(np.ones((4, 40), "float32")), tl.tensor(np.ones(40, "float32")))
    assert kernel.text == GOLDEN


PROGRAM = """
import hashlib, numpy as np, tlgrad as tl
rng = np.random.default_rng(0)
digest = hashlib.sha256()
def keep(*values):
    for v in values:
        digest.update(np.ascontiguousarray(v.words()).tobytes())
for dtype in ("float32", "float64"):
    x = tl.tensor(rng.standard_normal((13, 37)).astype(dtype))
    w = tl.tensor(rng.standard_normal((37, 21)).astype(dtype))
    keep(tl.run(lambda x: tl.exp(x) * tl.tanh(x) + tl.log1p(x * x) - tl.sqrt(tl.abs(x)))(x))
    keep(tl.run(lambda x: tl.sum(x, axis=1))(x), tl.run(lambda x: tl.max(x, axis=0))(x))
    keep(tl.run(lambda x: tl.sum(x))(x))
    keep(tl.run(tl.matmul)(x, w), tl.run(tl.matmul, order="fused")(x, w))
    keep(*tl.run(tl.value_and_grad(lambda x: tl.sum(tl.iterate(lambda v: v * v * 0.25 + 0.5, 30, x))))(x))
    keep(tl.run(lambda x: tl.where(x > 0, tl.floor(x * 3.0), tl.sin(x)))(x))
k = tl.tensor(rng.integers(-9, 9, 100))
keep(tl.run(lambda k: (k * 3 + (k >> 1)) % 7)(k), tl.run(lambda k: tl.convert(k, tl.float32))(k))
halves = np.arange(65536).astype(np.uint16).view(np.float16)
near = np.arange(1, 2**15)[:, None] * 2**16 + np.array([-1, 0, 1, 0xfff, 0x1000, 0x1001, 0x3000])
near = near.astype(np.uint32).view(np.float32)
for x in (halves[~np.isnan(halves)], near[~np.isnan(near)]):
    keep(tl.run(lambda x: tl.convert(tl.convert(x * 1.0, tl.float32) + 0.0, tl.float16))(tl.tensor(x)))
    keep(tl.run(lambda x: tl.convert(x, tl.float32) * 1.0)(tl.tensor(x)))
print(digest.hexdigest())
"""


def words(restrict):
    env = {**os.environ, "TLGRAD_CPU": restrict, "TLGRAD_CACHE_DIR": ""}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_narrower_instruction_sets_give_the_same_words():
    assert words("") == words("avx2") == words("baseline")


def test_an_unknown_restriction_is_refused():
    with pytest.raises(ValueError, match="TLGRAD_CPU=avx3: expected one of ifma, avx512, avx2, baseline, or"):
        Machine("avx3")
