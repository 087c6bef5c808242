"""The pure-Python reference and the compiled kernels against TestFloat, MPFR and boundary vectors."""
import numpy as np
import pytest
import softfloat_vectors as vectors

from tlgrad.softfloat import array, fast
from tlgrad.softfloat.format import binary128
from tlgrad.softfloat.storage import of_integers

PACKS = vectors.index()


@pytest.mark.parametrize("name", sorted(PACKS))
def test_pack(name):
    """Words and flags of the reference."""
    checked, bad = vectors.mismatches(name, PACKS[name], step=4 if "mulAdd" in name else 1)
    assert checked >= 12
    assert not bad, [(list(map(hex, row)), hex(got), flags) for row, got, flags in bad[:3]]


@pytest.mark.parametrize("name", [n for n in sorted(PACKS) if "f128" in n.split("_")[1]])
def test_pack_on_arrays(name, monkeypatch):
    """Words of the operations on arrays, compiled where there is a kernel."""
    monkeypatch.setattr(fast, "WARM", 0)
    checked, bad = vectors.on_arrays(name, PACKS[name])
    assert checked >= 12 and bad == []


@pytest.mark.parametrize("name", [n for n in sorted(PACKS) if n.startswith("tf_f128")])
def test_flags_of_operations_on_arrays(name):
    """All rows of one set of flags at once: with flags watched, operations on arrays raise that set."""
    rows = list(vectors.rows(name, PACKS[name]))[::7]
    operation = name.split("_", 2)[2]
    target = {"to_i64": np.int64, "to_ui64": np.uint64}.get(operation)
    if operation.startswith("to_") and target is None:
        target = vectors.FORMATS[operation[3:]]
    for flags in {row[-1] for row in rows}:
        columns = list(zip(*[row for row in rows if row[-1] == flags]))[:-2]
        operands = [of_integers(c, binary128, (len(c),)) for c in columns]
        with array.environment() as env:
            if target is None:
                array.evaluate(vectors.KERNELS.get(operation, operation), binary128, *operands)
            else:
                array.convert(operands[0], target)
        seen = env.flags & ~1 if operation in ("to_i64", "to_ui64") else env.flags
        assert seen == flags, (flags, env.raised)
