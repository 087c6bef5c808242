"""The pure-Python reference against TestFloat, MPFR and boundary vectors: words and flags."""
import pytest
import softfloat_vectors as vectors

PACKS = vectors.index()


@pytest.mark.parametrize("name", sorted(PACKS))
def test_pack(name):
    checked, bad = vectors.mismatches(name, PACKS[name], step=4 if "mulAdd" in name else 1)
    assert checked >= 12
    assert not bad, [(list(map(hex, row)), hex(got), flags) for row, got, flags in bad[:3]]
