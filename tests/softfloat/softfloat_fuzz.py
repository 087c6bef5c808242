"""Structured fuzzing of the binary128 kernels against gcc's ``__float128`` and glibc.

    python tests/softfloat/softfloat_fuzz.py 100000000

runs that many cases per operation, in blocks, and names the first mismatches. gcc's + - * / and
glibc's sqrtf128 and fmaf128 are right in every case known; libquadmath's sqrtq is not.
"""
import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tlgrad.softfloat import array, fast
from tlgrad.softfloat.format import binary128
from tlgrad.softfloat.storage import dtype_of

SOURCE = """
#include <math.h>
typedef __float128 q;
#define MAP(name, e) void name(long n, q *a, q *b, q *c, q *r) { for (long i = 0; i < n; i++) r[i] = e; }
MAP(op_add, a[i] + b[i]) MAP(op_sub, a[i] - b[i]) MAP(op_mul, a[i] * b[i]) MAP(op_div, a[i] / b[i])
MAP(op_sqrt, sqrtf128(a[i])) MAP(op_fma, fmaf128(a[i], b[i], c[i]))
"""
ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "sqrt": 1, "fma": 3}
U = np.uint64


def compiled():
    """The oracle as a ctypes library, or None where no compiler can build it."""
    if shutil.which("gcc") is None:
        return None
    folder = Path(tempfile.mkdtemp())
    (folder / "oracle.c").write_text(SOURCE)
    done = subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-D__STDC_WANT_IEC_60559_TYPES_EXT__",
         str(folder / "oracle.c"), "-o", str(folder / "oracle.so"), "-lm"], capture_output=True)
    return ctypes.CDLL(str(folder / "oracle.so")) if done.returncode == 0 else None


def _fractions(count, rng):
    """112-bit fractions as (low, high): random, runs of ones or zeros, single bits, sparse."""
    low, high = (rng.integers(0, 2 ** 64, count, dtype=U) for _ in range(2))
    cut = rng.integers(0, 128, count).astype(U)
    ones_low = np.where(cut < 64, (U(1) << (cut & U(63))) - U(1), ~U(0))
    ones_high = np.where(cut < 64, U(0), (U(1) << (cut & U(63))) - U(1))
    kind = rng.integers(0, 6, count)
    for k, (l, h) in enumerate(((ones_low, ones_high), (~ones_low, ~ones_high),
                                (low & ones_low, high & ones_high),
                                (ones_low ^ (ones_low >> U(1)), ones_high ^ (ones_high >> U(1))))):
        low, high = np.where(kind == k, l, low), np.where(kind == k, h, high)
    return low, high & U((1 << 48) - 1)


def _exponents(count, rng):
    """Exponent codes by regime: any, near one, subnormal, where products underflow, large, special."""
    regimes = ((0, 32768), (16383 - 120, 16383 + 120), (0, 3), (8100, 8300), (32760, 32767),
               (32766, 32768))
    kind = rng.integers(0, len(regimes), count)
    low = np.array([r[0] for r in regimes])[kind]
    high = np.array([r[1] for r in regimes])[kind]
    return (low + rng.random(count) * (high - low)).astype(U)


def operands(count, rng):
    """Three arrays of structured words; half of b are neighbours of a, many c near -a * b."""
    words = []
    for _ in range(3):
        low, high = _fractions(count, rng)
        high = high | _exponents(count, rng) << U(48) | rng.integers(0, 2, count).astype(U) << U(63)
        words.append(np.stack([low, high], axis=-1))
    a, b, c = words
    near = rng.random(count) < 0.4
    nudge = rng.integers(0, 2 ** 20, count, dtype=U) >> rng.integers(0, 21, count).astype(U)
    b[:, 0] = np.where(near, a[:, 0] ^ nudge, b[:, 0])
    flip = rng.integers(0, 2, count).astype(U) << U(63)
    shift = rng.integers(-2, 3, count) * (rng.random(count) < 0.5)
    moved = (a[:, 1].view(np.int64) + (shift << 48)).view(U) ^ flip
    b[:, 1] = np.where(near, moved, b[:, 1])
    a, b, c = (np.ascontiguousarray(w).view(dtype_of(binary128)).reshape(count) for w in words)
    product = array.evaluate("neg", binary128, array.evaluate("mul", binary128, a, b))
    c = np.where(rng.random(count) < 0.4, product, c)
    raw = np.ascontiguousarray(c).view(U).reshape(count, 2)
    raw[:, 0] ^= np.where(rng.random(count) < 0.3, nudge, U(0))
    return a, b, raw.view(dtype_of(binary128)).reshape(count)


def mismatches(name, library, count, rng):
    """The operands and results, as hexadecimal words, of the cases where ours differs."""
    arguments = operands(count, rng)
    want = np.empty_like(arguments[0])
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arguments, want)]
    getattr(library, "op_" + name)(ctypes.c_long(count), *pointers)
    used = arguments[:ARITY[name]]
    got = array.evaluate(name, binary128, *used)
    nan = array.evaluate("is_nan", binary128, got) & array.evaluate("is_nan", binary128, want)
    bad = np.nonzero((got != want) & ~nan)[0]
    return [[f"{int(x[i][0][1]):016x}{int(x[i][0][0]):016x}" for x in (*used, got, want)] for i in bad]


def main(count):
    """Run `count` cases per operation; the exit status says whether all agree."""
    library, fast.WARM = compiled(), 0
    if library is None:
        sys.exit("no gcc, or no __float128 in its libm: nothing to compare with")
    failed = 0
    for name in ARITY:
        wrong, done, rng = [], 0, np.random.default_rng(20)
        while done < count:
            block = min(1 << 20, count - done)
            wrong += mismatches(name, library, block, rng)
            done += block
        print(f"{name:5} {done} cases, {len(wrong)} mismatches", *wrong[:3], sep="\n      "
              if wrong else " ", flush=True)
        failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
