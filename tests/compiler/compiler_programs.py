"""Random programs, and the comparison of compiled with reference words.

``python3 tests/compiler/compiler_programs.py 20000`` runs that many.  With ``--into FOLDER`` what is
known is kept there: a run that was ended goes on where it was, and several share the work.
"""
from __future__ import annotations

import argparse
import fcntl
import functools
import pathlib

import numpy as np
from other_ways import WAYS
from random_programs import LaterMaker, Maker, numbers
from random_surface import SurfaceMaker

from tlgrad.api.derivatives import grad
from tlgrad.api.inspecting import clear_caches
from tlgrad.backends.numba_cpu import plan as plans
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.dtypes import of_storage
from tlgrad.core.jaxpr import Eqn, Jaxpr, check_jaxpr, eval_jaxpr, evaluate_arrays
from tlgrad.core.primitive import PRIMITIVES
from tlgrad.core.tensor import words
from tlgrad.errors import TlgradError
from tlgrad.ops.layout import sum_axes
from tlgrad.passes.simplify import eliminate_dead
from tlgrad.transforms.jvp import jvp_jaxpr
from tlgrad.transforms.stage import stage


def staged(maker: Maker):
    """The program's jaxpr and the arrays of its inputs, captured ones first."""
    avals = [make_aval(a.shape, of_storage(a.dtype)) for a in maker.arrays]
    jaxpr, consts = stage(maker.body, avals)
    return check_jaxpr(jaxpr), [*[c.data for c in consts], *maker.arrays]


class Guarded:
    """Runs a plan whose results lie between marked bytes, and looks at the marks afterwards."""

    MARGIN, MARK = 256, 0xA5

    def __init__(self, jaxpr):
        self.made: list = []
        usual, plans.allocate = plans.allocate, self.allocate
        try:
            self.plan = Plan(jaxpr)
        finally:
            plans.allocate = usual

    def allocate(self, shape, dtype):
        """An array with a margin of marked bytes on both sides."""
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        raw = np.full(size + 2 * self.MARGIN, self.MARK, np.uint8)
        self.made.append((raw, size))
        return raw[self.MARGIN:self.MARGIN + size].view(dtype).reshape(shape)

    def run(self, *arrays):
        """The plan's results; AssertionError when something was written beside one."""
        self.made.clear()
        out = self.plan.run(*arrays)
        for raw, size in self.made:
            beside = np.concatenate([raw[:self.MARGIN], raw[self.MARGIN + size:]])
            assert (beside == self.MARK).all(), "a kernel wrote beside its result"
        return out


def differences(jaxpr, arrays, rng=None) -> list[str]:
    """Where compiled and reference words, or errors, differ; all NaNs count as one.  An error that no
    result needs is none.  With `rng` one of the other ways to run is compared too."""
    try:
        want = evaluate_arrays(needed(jaxpr), arrays)
    except (TlgradError, OverflowError) as error:
        try:
            Guarded(jaxpr).run(*arrays)
        except type(error):
            return []
        return [f"no error, the reference says {error}"]
    found = unequal(want, Guarded(jaxpr).run(*arrays))
    if rng is not None and not found:
        for what, got in WAYS[rng.integers(len(WAYS))](jaxpr, arrays, rng):
            found += [f"{what}: {text}" for text in unequal(arrays if what.startswith("operands") else want, got)]
    return found


def unequal(want, got) -> list[str]:
    """Which results have other words."""
    return [f"result {k}: {w!r} became {g!r}" for k, (w, g) in enumerate(zip(want, got, strict=True))
            if not same(np.asarray(w), np.asarray(g))]


def needed(value):
    """A program without what no result needs, also in its inner programs."""
    if isinstance(value, tuple):
        return tuple(map(needed, value))
    if not isinstance(value, Jaxpr):
        return value
    value = eliminate_dead(value)
    eqns = [Eqn(e.prim, e.ins, {k: needed(p) for k, p in e.params.items()}, e.outs, e.source) for e in value.eqns]
    return Jaxpr(value.in_binders, eqns, value.outs)


def same(a, b) -> bool:
    """Equal shape, dtype and words."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    equal = words(a) == words(b)
    if a.dtype.kind == "f":
        equal |= np.isnan(a) & np.isnan(b)
    return bool(np.all(equal))


def with_tangents(jaxpr, arrays, rng):
    """The jvp of a program and its inputs, or None where it has none."""
    nonzero = [a.dtype.kind == "f" for a in arrays]
    if not any(nonzero):
        return None
    try:
        dual, _ = jvp_jaxpr(jaxpr, nonzero)
    except TlgradError:
        return None
    return dual, [*arrays, *[numbers(rng, a.shape, a.dtype) for a, z in zip(arrays, nonzero) if z]]


def with_gradient(jaxpr, arrays):
    """The gradient of the sum of a program's float results, or None where it has none."""
    moving = tuple(k for k, a in enumerate(arrays) if a.dtype.kind == "f" and a.dtype.itemsize > 2)
    if not moving or not any(v.aval.dtype.kind == "f" for v in jaxpr.outs):
        return None

    def total(*xs):
        outs = [y for y in eval_jaxpr(jaxpr, xs) if y.dtype.kind == "f"]
        sums = [PRIMITIVES["convert"].bind(sum_axes(y, tuple(range(y.ndim))), dtype=dtypes.float64, weak=False)
                for y in outs]
        return functools.reduce(PRIMITIVES["add"], sums)
    try:
        return stage(lambda *xs: list(grad(total, argnums=moving)(*xs)), [a for a in jaxpr.in_avals])[0], arrays
    except TlgradError:
        return None


#: programs from this number on have more kinds of steps, and second derivatives
LATER = 1_000_000
#: ... and from this one steps of the whole surface; they are run in other ways too
SURFACE = 10_000_000


def check(seed: int) -> list[str]:
    """Differences of program number `seed`, of its jvp and of its gradient."""
    surface = seed >= SURFACE
    maker = (SurfaceMaker if surface else LaterMaker if seed >= LATER else Maker)(seed)
    jaxpr, arrays = staged(maker)
    rng = np.random.default_rng(seed) if surface else None
    found = differences(jaxpr, arrays, rng)
    dual = with_tangents(jaxpr, arrays, np.random.default_rng(seed))
    if dual is not None and not found:
        found = [f"jvp: {text}" for text in differences(*dual)]
    gradient = with_gradient(jaxpr, arrays)
    if gradient is not None and not found:
        found = [f"gradient: {text}" for text in differences(*gradient, rng)]
    if LATER <= seed < SURFACE and gradient is not None and not found:
        second = with_gradient(*gradient) if any(e.prim.name == "sweeps" for e in jaxpr.eqns) else None
        found = [f"second gradient: {text}" for text in differences(*second)] if second else []
    return found


#: programs that are claimed, and reported, together
BLOCK = 50


def block(first: int, count: int) -> str:
    """A report on programs first .. first + count - 1: one line, then those that differ."""
    bad = []
    for seed in range(first, first + count):
        try:
            found = check(seed)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        if found:
            bad.append("\n  ".join([f"seed {seed}:", *found]))
    clear_caches()
    return "\n".join([f"{count} programs from {first}, {len(bad)} differ", *bad, ""])


def kept(path: pathlib.Path, first: int, count: int) -> str:
    """The report on a block, from its file or made now; empty when another process is at it.  The
    lock goes with its process, so the block of one that was killed is done again."""
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return ""
        file.seek(0)
        text = file.read()
        if not text.endswith("\n"):
            text = block(first, count)
            file.truncate(0)
            file.write(text)
    return text


def main():
    """Run programs, and print those that differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--into", type=pathlib.Path, help="a folder for what is known, one file a block")
    asked = parser.parse_args()
    if asked.into:
        asked.into.mkdir(exist_ok=True)
    done = bad = 0
    for first in range(asked.first, asked.first + asked.count, BLOCK):
        count = min(BLOCK, asked.first + asked.count - first)
        text = kept(asked.into / f"{first}-{count}", first, count) if asked.into else block(first, count)
        if text:
            done, bad = done + count, bad + int(text.split()[4])
            print(*text.splitlines()[1:], sep="\n", end="\n" if text.count("\n") > 1 else "")
    print(f"{done} programs, {bad} differ")


if __name__ == "__main__":
    main()
