"""einsum against the written loop: words in every order, exact values, derivatives."""
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tlgrad as tl
from patterns.pattern_oracle import einsums, exact_values, spread, written_loop

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("order", ["ordered", "fused", "tree"])
@given(case=einsums(), seed=seeds)
@settings(max_examples=60, deadline=None)
def test_words_are_those_of_the_written_loop(order, case, seed):
    spec, shapes = case
    arrays = [spread(s, np.random.default_rng(seed)) for s in shapes]
    got = tl.einsum(spec.text, *arrays, order=order)
    assert tl.same_bits(got, written_loop(spec, arrays, order))


@given(case=einsums(), seed=seeds)
@settings(max_examples=60, deadline=None)
def test_free_order_and_tensors_first_on_exact_sums(case, seed):
    """Small integers have one sum, whatever the order."""
    spec, shapes = case
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-3, 4, s) for s in shapes]
    got = np.asarray(tl.einsum(*arrays, spec.text, order="free"))
    exact = exact_values(spec, arrays)
    assert got.size == len(exact) and all(got[k] == v for k, v in exact.items())
    floats = np.asarray(tl.einsum(spec.text, *[a.astype(np.float32) for a in arrays], order="free"))
    assert floats.dtype == np.float32 and np.array_equal(floats, got)


@given(case=einsums(sizes=(1, 2, 3)), seed=seeds, staged=st.booleans())
@settings(max_examples=40, deadline=None)
def test_cotangents_have_the_shapes_and_values_of_the_exact_derivative(case, seed, staged):
    """einsum is linear in an operand: <ct, einsum(.., v, ..)> = <vjp(ct), v>, exactly on small integers."""
    spec, shapes = case
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-3, 4, s).astype(np.float64) for s in shapes]

    def f(*xs):
        return tl.einsum(spec.text, *xs)

    out, pull = tl.vjp(tl.run(f) if staged else f, *arrays)
    ct = rng.integers(-3, 4, out.shape).astype(np.float64)
    for k, (bar, x) in enumerate(zip(pull(tl.tensor(ct)), arrays)):
        assert bar.shape == x.shape
        v = rng.integers(-3, 4, x.shape).astype(np.float64)
        moved = np.asarray(f(*arrays[:k], v, *arrays[k + 1:]))
        assert np.sum(moved * ct) == np.sum(np.asarray(bar) * v)


@given(case=einsums(max_operands=2), seed=seeds, which=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_a_batch_has_the_words_of_its_members(case, seed, which):
    spec, shapes = case
    rng = np.random.default_rng(seed)
    mapped = [bool(which >> k & 1) for k in range(len(shapes))]
    if not any(mapped):
        mapped = [True] * len(shapes)
    arrays = [spread((3, *s) if m else s, rng) for s, m in zip(shapes, mapped)]
    axes = tuple(0 if m else None for m in mapped)
    got = tl.vmap(lambda *xs: tl.einsum(spec.text, *xs), in_axes=axes)(*arrays)
    for lane in range(3):
        alone = tl.einsum(spec.text, *[a[lane] if m else a for a, m in zip(arrays, mapped)])
        assert tl.same_bits(np.asarray(got)[lane], alone)


# ---- the pattern families of NumPy and opt_einsum ----

LETTERS = [
    "a,ab,abc->abc", "a,b,ab->ab", "ea,fb,gc,hd,abcd->efgh", "abcd,ea,fb,gc,hd->efgh", "ab,ij,kl->ijklab",
    "a,ac,ab,ad,cd,bd,bc->", "ab,ab,c->", "ab,ab,cd,cd,ef,ef->cdef", "eb,cb,fb->cef", "dd,fb,be,cdb->cef",
    "bca,cdb,dbf,afc->", "dcc,fce,ea,dbf->ab", "fdf,cdd,ccd,afe->ae", "abcd,ad", "ed,fcd,ff,bcf->be",
    "baa,dcf,af,cde->be",
    "bd,db,eac->ace", "fff,fae,bef,def->abd", "efc,dbc,acf,fd->abe", "ab,ab", "ab,ba", "abc,abc", "abc,bac",
    "abc,cba",
    "ab,bc", "ab,cb", "ba,bc", "ba,cb", "abcd,cd", "abcd,ab", "abcd,cdef", "abcd,cdef->feba", "abcd,efdc",
    "aab,bc->ac",
    "ab,bcc->ac", "aab,bcc->ac", "baa,bcc->ac", "aab,ccb->ac", "aab,fa,df,ecc->bde", "ecb,fef,bad,ed->ac",
    "bcf,bbb,fbf,fc->",
    "bb,ff,be->e", "bcb,bb,fc,fff->", "fbb,dfd,fc,fc->", "afd,ba,cc,dc->bf", "adb,bc,fa,cfc->d",
    "bbd,bda,fc,db->acf",
    "dba,ead,cad->bce", "aef,fbc,dca->bde", "ii", "ii->i", "ij->ji", "ij", "ji", "...ij,...jk->...ik",
    "i...->...", "ba"]


@pytest.mark.parametrize("pattern", LETTERS)
def test_letters_mean_what_numpy_means(pattern):
    """The patterns of opt_einsum's own tests; integers, so that every order has the same words."""
    rng = np.random.default_rng(len(pattern))
    size = dict(zip(string.ascii_lowercase, [2, 3, 2, 3, 2, 2, 2, 3, 2, 2, 3, 2]))
    arrays = [rng.integers(-2, 3, (*[4, 2][:2 * ("..." in term)], *[size[c] for c in term.replace(".", "")]))
              for term in pattern.split("->")[0].split(",")]
    expected = np.einsum(pattern, *arrays)
    for order in ("ordered", "free"):
        assert np.array_equal(np.asarray(tl.einsum(pattern, *arrays, order=order)), expected)
    blanks = pattern.replace(",", " , ").replace("->", " -> ")
    assert np.array_equal(np.asarray(tl.einsum(blanks, *arrays)), expected)


@given(seed=seeds, n=st.integers(3, 6))
@settings(max_examples=30, deadline=None)
def test_free_paths_of_random_networks(seed, n):
    rng = np.random.default_rng(seed)
    letters = "abcdefg"
    terms = ["".join(rng.choice(list(letters), rng.integers(1, 4), replace=False)) for _ in range(n)]
    present = sorted(set("".join(terms)))
    out = "".join(rng.choice(present, rng.integers(0, 3) if len(present) > 2 else 0, replace=False))
    equation = ",".join(terms) + "->" + out
    views = [rng.integers(-2, 3, tuple(2 + letters.index(c) % 2 for c in t)) for t in terms]
    assert np.array_equal(np.asarray(tl.einsum(equation, *views, order="free")), np.einsum(equation, *views))
