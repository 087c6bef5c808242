"""Reads packs of conformance vectors: ``name.xz`` of fixed-size big-endian rows, and an index.

Run it with a folder that holds packs and ``index*.json`` to check every row of every pack, on the reference
(words and flags) and on arrays (words; TLGRAD_CPU chooses the kernels), or on arrays alone:

    python tests/softfloat/softfloat_vectors.py FOLDER [arrays]
"""
import json
import lzma
import sys
import time
from pathlib import Path

import numpy as np

from tlgrad.softfloat import arith, array, compare, convert, elementary, fast
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import binary16, binary32, binary64, binary128
from tlgrad.softfloat.storage import of_integers, to_integers

DATA = Path(__file__).parents[1] / "data" / "softfloat"
FORMATS = {"f16": binary16, "f32": binary32, "f64": binary64, "f128": binary128}
ARITHMETIC = {"add": arith.add, "sub": arith.sub, "mul": arith.mul, "div": arith.div,
              "sqrt": arith.sqrt, "rem": arith.rem, "mulAdd": arith.fma, "eq": compare.eq,
              "lt": compare.lt, "le": compare.le, "roundToInt": arith.round_to_integral}


def index(folder=DATA):
    """The descriptions of all packs of a folder, by name."""
    found = {}
    for path in sorted(Path(folder).glob("index*.json")):
        found.update(json.loads(path.read_text()))
    if not found:
        raise FileNotFoundError(f"{folder} has no index*.json")
    return found


def rows(name, meta, folder=DATA):
    """The rows of a pack as tuples of integers: operands, result, flags where it has them."""
    raw = lzma.decompress((Path(folder) / f"{name}.xz").read_bytes())
    edges, start = [], 0
    for _, size in meta["columns"]:
        edges.append((start, start + size))
        start += size
    for at in range(0, len(raw), start):
        yield tuple(int.from_bytes(raw[at + a:at + b], "big") for a, b in edges)


def operation(name):
    """``(function of operand words and an environment, result format or None)`` for a pack."""
    kind, source, op = name.split("_", 2)
    if kind == "mpfr":
        return (lambda *a, env: elementary.evaluate(op, binary128, *a, env=env)), binary128
    if not op.startswith("to_"):
        function, fmt = ARITHMETIC[op], FORMATS[source]
        result = None if op in ("eq", "lt", "le") else fmt
        return (lambda *a, env: function(fmt, *a, env)), result
    target = op[3:]
    if source in ("i64", "ui64"):
        fmt = FORMATS[target]
        return (lambda a, env: convert.from_int(
            fmt, a - (a >> 63 << 64 if source == "i64" else 0), env)), fmt
    fmt = FORMATS[source]
    if target in ("i64", "ui64"):
        return (lambda a, env: convert.to_int(
            fmt, a, 64, target == "i64", env, exact=False) & (1 << 64) - 1), None
    return (lambda a, env: convert.convert(fmt, FORMATS[target], a, env)), FORMATS[target]


def mismatches(name, meta, folder=DATA, step=1):
    """``(rows checked, mismatching rows)``: words (NaNs as one) and flags, exactly."""
    function, fmt = operation(name)
    flagged = meta["columns"][-1][0] == "flags"
    checked, bad = 0, []
    for number, row in enumerate(rows(name, meta, folder)):
        if number % step:
            continue
        checked += 1
        operands, expected = (row[:-2], row[-2]) if flagged else (row[:-1], row[-1])
        env = Environment()
        got = function(*operands, env=env)
        same = got == expected or (fmt and fmt.is_nan(got) and fmt.is_nan(expected))
        if not same or (flagged and env.flags != row[-1]):
            bad.append((row, got, env.flags))
    return checked, bad


KERNELS = {"mulAdd": "fma", "roundToInt": "round"}


def on_arrays(name, meta, folder=DATA):
    """``(rows checked, mismatching rows)`` of a pack of binary128 as one operation on arrays; None for others."""
    kind, source, operation = name.split("_", 2)
    if source != "f128":
        return None
    table = list(rows(name, meta, folder))
    inputs = [k for k, (column, _) in enumerate(meta["columns"]) if column in "abc"]
    operands = [of_integers([row[k] for row in table], binary128, (len(table),)) for k in inputs]
    expected = [row[len(inputs)] for row in table]
    if operation.startswith("to_"):
        target = {"i64": np.int64, "ui64": np.uint64}.get(operation[3:]) or FORMATS[operation[3:]]
        got = array.convert(operands[0], target)
    else:
        got = array.evaluate(KERNELS.get(operation, operation), binary128, *operands)
    fmt = None if got.dtype.kind in "biu" else array.format_of(got.dtype)
    found = (got.view(np.uint64) if got.dtype.kind in "iu" else got).tolist() if fmt is None else to_integers(got)
    if operation in ("to_i64", "to_ui64"):             # out of range: the packs round, arrays truncate
        truncated = [convert.to_int(binary128, w, 64, operation == "to_i64", Environment("zero")) & (1 << 64) - 1
                     for w in to_integers(operands[0])]
        expected = truncated
    bad = [(row, g, 0) for row, g, e in zip(table, found, expected)
           if g != e and not (fmt and fmt.is_nan(g) and fmt.is_nan(e))]
    return len(table), bad


def main(folder, *only):
    """Check every pack of a folder; the exit status says whether all rows agree."""
    fast.WARM, total, wrong = 0, 0, 0
    for name, meta in sorted(index(folder).items()):
        for check in (on_arrays,) if only else (mismatches, on_arrays):
            start, found = time.perf_counter(), check(name, meta, folder)
            if found is None:
                continue
            checked, bad = found
            total, wrong = total + checked, wrong + len(bad)
            print(f"{name:24} {check.__name__:10} {checked:8} rows {len(bad):6} mismatches "
                  f"{time.perf_counter() - start:6.1f} s", flush=True)
            for row, got, flags in bad[:3]:
                print("    ", *(f"{v:x}" for v in row), "got", f"{got:x} flags {flags}")
    print(f"{total} rows, {wrong} mismatches")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
