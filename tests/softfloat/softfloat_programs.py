"""Random chains of operations on software formats, and the words of one operation after another.

``python3 tests/softfloat/softfloat_programs.py COUNT`` runs COUNT of them.
"""
import random
import sys

import numpy as np
from softfloat_operands import operands, random_numbers

from tlgrad.kernels.softfloat import carried, catalogue, narrow
from tlgrad.kernels.softfloat.chains import LOGIC
from tlgrad.kernels.softfloat.ordering import CHOICES, PREDICATES
from tlgrad.softfloat import bits, chained, fast, small
from tlgrad.softfloat import format as formats
from tlgrad.softfloat.chained import MASK
from tlgrad.softfloat.format import Binary, binary32, binary64, binary128, binary256

SMALL = [formats.tf32, formats.bfloat16, Binary(9, 22), formats.float8_e4m3fn, formats.float8_e5m2,
         formats.float8_e4m3fnuz, formats.float4_e2m1fn, formats.float6_e2m3fn, Binary(4, 11), binary32,
         Binary(9, 24), formats.binary16, Binary(8, 7, specials="fn")]
FAMILIES = [[binary128], [binary256], [Binary(10, 40)], [formats.tf32], [formats.bfloat16],
            [formats.float8_e4m3fn, formats.float8_e5m2],
            [formats.bfloat16, formats.float8_e4m3fn, formats.binary16, formats.float8_e4m3fnuz], SMALL]


def arity(name):
    """Operands of an operation."""
    for table in (PREDICATES, CHOICES, narrow.OPERATIONS, catalogue.ARITHMETIC):
        if name in table:
            return table[name][1]
    return carried.FUNCTIONS.get(name) or (2 if name in catalogue.TWO else 1)


def numeric(fmt):
    """The operations that a chain may have on a format."""
    if small.fits(fmt):
        return [*narrow.OPERATIONS, *CHOICES, *carried.FUNCTIONS]
    return [*catalogue.ARITHMETIC, *CHOICES, *(catalogue.FUNCTIONS if fmt is binary128 else ())]


def program(rng, family, length, names=None):
    """``(kinds, steps, uniform, outs)`` of a random chain."""
    kinds = [rng.choice(family) for _ in range(3)] + [MASK, binary64]
    inputs, steps = len(kinds), []

    def some(kind):
        places = [k for k, have in enumerate(kinds) if have == kind]
        return rng.choice(places[-4:] if rng.random() < 0.7 else places)

    while len(steps) < length:
        fmt = rng.choice([k for k in kinds if k in family])
        roll = rng.random()
        if roll < 0.1:
            source, target = rng.choice([(fmt, binary64), (binary64, fmt), (fmt, rng.choice(family))])
            step = ("convert", target, some(source))
        elif roll < 0.2:
            name = rng.choice(list(LOGIC))
            step = (name, MASK, *(some(MASK) for _ in range({"not": 1, "select": 3}.get(name, 2))))
        elif roll < 0.35:
            name = rng.choice(list(PREDICATES))
            step = (name, MASK, *(some(fmt) for _ in range(PREDICATES[name][1])))
        else:
            name = rng.choice(names or numeric(fmt))
            mask = [some(MASK)] if name == "select" else []
            step = (name, fmt, *mask, *(some(fmt) for _ in range(arity(name) - len(mask))))
        steps.append(step)
        kinds.append(step[1])
    outs = sorted({len(kinds) - 1, *rng.sample(range(inputs, len(kinds)), min(4, length))})
    uniform = tuple(rng.random() < 0.2 for _ in range(inputs))
    return tuple(kinds[:inputs]), tuple(steps), uniform, tuple(outs)


def column(kind, count, same, seed):
    """An array of structured operands and ordinary numbers; with the canonical NaN only."""
    rng = np.random.default_rng(seed)
    if kind == MASK:
        return np.array(seed & 1 == 1) if same else rng.random(count) < 0.5
    if same:
        return operands(kind, 1, 1, seed)[0].reshape(())
    x = operands(kind, count // 3, 1, seed)[0]
    if kind.E > 3:
        x = np.concatenate([x, random_numbers((count - len(x),), kind, seed)])
    else:
        x = np.resize(x, count)
    if kind.nan is None or x.dtype.kind == "f":
        return x
    return bits.fill(x, bits.is_nan(x, kind), kind.nan, kind)


def differs(found, right):
    """Whether two arrays have different words; a NaN of a hardware dtype counts as one."""
    if found.dtype.kind == "f":
        return not np.array_equal(found.view(f"u{found.itemsize}")[~np.isnan(found)],
                                  right.view(f"u{right.itemsize}")[~np.isnan(right)])
    return not np.all(found == right)


def check(seed, family, count=203, length=10, names=None):
    """Run one chain both ways."""
    kinds, steps, uniform, outs = program(random.Random(seed), family, length, names)
    inputs = [column(k, count, same, seed + 9 * n) for n, (k, same) in enumerate(zip(kinds, uniform))]
    chain, shape = chained.Chained(kinds, steps, uniform, outs), np.broadcast_shapes(*(x.shape for x in inputs))
    found = chain(shape, *inputs)
    right = chain.one_by_one([np.broadcast_to(x, shape) for x in inputs])
    for x, k in zip(found, outs):
        if differs(x, right[k]):
            where = np.flatnonzero(x != right[k])[0] if x.dtype.kind == "V" else None
            raise AssertionError(f"seed {seed}, {family}: value {k} of\n" + "\n".join(
                f"  {n}: {s}" for n, s in enumerate([*kinds, *steps])) + f"\n entry {where}: "
                f"{[v if not v.shape else v[where] for v in right]}; found {x[where]}")


def main(count):
    """Run `count` random chains of each family."""
    fast.WARM = 0
    for seed in range(count):
        for family in FAMILIES:
            check(seed, family)
    print(f"{count} chains of {len(FAMILIES)} families: 0 differ")


if __name__ == "__main__":
    main(int(sys.argv[1]))
