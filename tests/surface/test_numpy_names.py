"""Functions under NumPy's names against NumPy: values, shapes and dtypes, on one table of calls."""
import numpy as np
import pytest

import tlgrad as tl
import tlgrad.numpy as tn

rng = np.random.default_rng(0)
A = rng.normal(size=(3, 4))
B = rng.normal(size=(3, 4))
C3 = rng.normal(size=(2, 3, 4))
V = rng.normal(size=5)
W = np.array([0.5, -1.25, 2.5, 3.0, -0.75])
Z = A + 1j * B
I = np.array([3, 1, 2, 1, 0, 3])
M = rng.integers(-9, 9, (3, 4))
U8 = np.array([250, 10, 7], np.uint8)
NAN = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [4.0, 0.5, -2.0]])
SPECIAL = np.array([-np.inf, -1.5, -0.0, 0.0, 2.5, np.inf, np.nan])
S = np.sort(V)
MASK = A > 0


def call(name, *args, **kwargs):
    return name, args, kwargs


ELEMENTWISE = [call(n, SPECIAL) for n in (
    "abs", "absolute", "fabs", "ceil", "floor", "trunc", "rint", "fix", "sign", "signbit", "square", "isnan",
    "isinf",
    "isfinite", "isposinf", "isneginf", "nan_to_num", "sin", "exp", "expm1", "tanh", "arctan", "sqrt", "log1p",
    "cbrt",
    "deg2rad", "rad2deg", "reciprocal", "negative", "positive", "spacing", "real", "imag", "conj", "iscomplex",
    "isreal")]
ELEMENTWISE += [call(n, W, V) for n in (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "mod", "fmod", "maximum", "minimum",
    "fmax",
    "fmin", "hypot", "arctan2", "copysign", "nextafter", "logaddexp", "logaddexp2", "heaviside", "equal", "less",
    "float_power", "isclose", "allclose", "array_equal", "logical_and", "logical_xor")]
ELEMENTWISE += [call(n, SPECIAL, SPECIAL[::-1].copy()) for n in ("fmax", "fmin", "maximum", "logaddexp",
"heaviside")]
ELEMENTWISE += [
    call("sinc", V), call("i0", V), call("ldexp", W, np.arange(5)), call("frexp", W), call("modf", W),
    call("divmod", M, 4), call("gcd", M, 6), call("lcm", M, 6), call("power", M, 3),
    call("power", np.abs(W), V),
    call("round", W * 10, 1), call("round", W * 1234, -2), call("clip", W, -1, 1), call("clip", W, None, 0.5),
    call("bitwise_and", M, 5), call("invert", M), call("left_shift", M, 2), call("right_shift", M, 1),
    call("bitwise_count", M), call("angle", Z), call("angle", Z, deg=True), call("sign", Z), call("abs", Z),
    call("where", MASK, A, 0), call("nan_to_num", NAN, nan=7.0), call("logical_not", M),
    call("isclose", NAN, NAN,
                                                                                             equal_nan=True)]

REDUCTIONS = [call(n, A, **k) for n in ("sum", "prod", "mean", "max", "min", "std", "var", "argmax", "argmin",
"ptp")
              for k in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}) if n != "ptp" or "keepdims" not in k]
REDUCTIONS += [call(n, C3, axis=(0, -1)) for n in ("sum", "prod", "mean", "max", "std", "any", "all",
"count_nonzero")]
REDUCTIONS += [call(n, U8) for n in ("sum", "prod", "mean", "max", "cumsum", "var")]
REDUCTIONS += [call(n, NAN, axis=a) for n in ("nansum", "nanprod", "nancumsum", "nancumprod") for a in (None, 0,
1)]
REDUCTIONS += [call(n, NAN, axis=0) for n in ("nanmean", "nanmax", "nanmin", "nanstd", "nanvar", "nanmedian",
                                              "nanargmax", "nanargmin")]
REDUCTIONS += [
    call("sum", A, axis=0, where=MASK), call("mean", A, where=MASK), call("max", A, initial=9.0, where=MASK),
    call("sum", A, dtype=np.float32), call("std", A, ddof=1), call("var", Z, axis=1),
    call("sum", A, initial=2.0),
    call("cumsum", A), call("cumsum", A, axis=1), call("cumprod", A, axis=0), call("diff", A),
    call("diff", A, 2, 0),
    call("diff", A, prepend=0.0, append=A[:, :1]), call("ediff1d", V), call("average", A, axis=1, weights=B),
    call("average", A, axis=1, weights=V[:4]), call("trace", A), call("trace", C3, 1, 1, 2),
    call("median", A, axis=0),
    call("quantile", A, [0.1, 0.5, 0.9], axis=1), call("percentile", V, 30),
    call("nanquantile", NAN, 0.3, axis=0),
    call("quantile", NAN, 0.3, axis=0), call("median", V[:4]), call("cov", A), call("cov", A, B),
    call("corrcoef", A),
    call("cov", A, ddof=0, aweights=np.arange(1.0, 5)),
    call("cov", A.T, rowvar=False, fweights=np.array([1, 2, 1, 3])),
    call("histogram", V), call("histogram", V, 4, (-1.0, 1.0), True),
    call("histogram", V, np.array([-1.0, 0.0, 2.0])),
    call("bincount", I), call("bincount", I, W[[0, 1, 2, 3, 4, 0]], 9), call("trapezoid", A),
    call("trapezoid", V, S),
    call("gradient", V), call("gradient", A, 0.5, axis=1, edge_order=2),
    call("gradient", V, np.cumsum(np.abs(W)),
                                                                              edge_order=2),
]
REDUCTIONS += [call("quantile", V, 0.37, method=m) for m in (
    "linear", "hazen", "weibull", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf", "lower",
    "higher",
    "nearest", "midpoint")]

SHAPES = [
    call("reshape", A, (2, -1)), call("reshape", A, (2, 6), order="F"), call("ravel", A),
    call("transpose", C3, (2, 0, 1)),
    call("squeeze", A[None]), call("expand_dims", A, (0, 3)), call("moveaxis", C3, 0, -1),
    call("swapaxes", C3, 0, 2),
    call("rollaxis", C3, 2), call("flip", A), call("flip", A, 1), call("fliplr", A), call("flipud", A),
    call("roll", A, 2),
    call("roll", A, (1, -2), (0, 1)), call("rot90", A), call("rot90", A, 3), call("broadcast_to", V, (2, 5)),
    call("broadcast_arrays", A[:, :1], A[0]), call("concatenate", [A, B], 1), call("concatenate", [A, M], None),
    call("stack", [A, B], 1), call("hstack", [A, B]), call("vstack", [V, W]), call("dstack", [A, B]),
    call("column_stack", [V, W]), call("append", V, W), call("split", A, 2, 1), call("array_split", V, 3),
    call("split", V, [1, 3]), call("hsplit", A, 2), call("vsplit", A, 3), call("dsplit", C3, 2),
    call("tile", A, (2, 3)),
    call("repeat", A, 2), call("repeat", A, [1, 0, 2], axis=0), call("pad", A, 1),
    call("pad", A, ((1, 2), (0, 3)), "edge"),
    call("pad", V, 3, "reflect"), call("pad", V, 2, "symmetric"), call("pad", V, 7, "wrap"),
    call("pad", A, 1, constant_values=((1, 2), (3, 4))), call("atleast_1d", 3.0), call("atleast_2d", V),
    call("atleast_3d", A), call("block", [[A, B], [B, A]]), call("resize", V, (2, 4)),
    call("delete", V, [1, 3]),
    call("insert", V, 2, 9.0), call("insert", A, [1, 1], 9.0, axis=1),
    call("trim_zeros", np.array([0, 0, 1, 0, 2, 0])),
    call("unstack", A), call("tri", 3, 4, 1), call("tril", A, -1), call("triu", A, 1),
    call("eye", 3, 4, 1), call("identity", 3),
    call("meshgrid", V, W), call("meshgrid", V, W[:3], indexing="ij", sparse=True), call("indices", (2, 3)),
    call("linspace", 0.0, 1.0, 7), call("linspace", 1, 9, 5, endpoint=False), call("linspace", V, W, 4, axis=1),
    call("logspace", 0.0, 2.0, 5), call("geomspace", 1.0, 8.0, 4), call("arange", 5),
    call("arange", 1.0, 2.0, 0.3),
    call("full", (2, 2), 7), call("zeros_like", M), call("ones", (2,), np.int8),
    call("full_like", A, 2), call("vander", V),
    call("vander", V, 3, increasing=True), call("kron", A, M), call("outer", V, W), call("inner", A, B),
    call("cross", A[:, :3], B[:, :3]),
    call("cross", A[:, :3], B[:, :3], axis=0), call("tensordot", C3, A, ([1, 2], [0, 1])),
    call("dot", A, B.T), call("vdot", Z, A),
    call("matmul", C3, B.T), call("vecdot", Z, Z), call("diag", V, 1), call("diag", A),
    call("diagflat", A), call("diagonal", C3, 1),
]

PLACES = [
    call("sort", A), call("sort", A, None), call("sort", SPECIAL), call("argsort", M, 0),
    call("lexsort", (M[0], M[1])),
    call("searchsorted", S, V), call("searchsorted", S, np.append(S, np.nan), "right"), call("digitize", V, S),
    call("digitize", V, S[::-1].copy(), True), call("partition", V, 2), call("take", A, [0, 2], 1),
    call("take", A, [[1], [-1]]),
    call("take", A, [5, 9], 1, mode="clip"), call("take", A, [5, -9], 1, mode="wrap"),
    call("take_along_axis", A, M % 4, 1),
    call("choose", M % 2, [A, B]), call("compress", [True, False, True], A, 0),
    call("extract", MASK, A), call("nonzero", MASK),
    call("flatnonzero", MASK), call("argwhere", MASK), call("select", [A > 1, A > 0], [A, B], 5.0),
    call("piecewise", A, [A < 0, A >= 1], [lambda v: -v, lambda v: v * v, 3.0]),
    call("unravel_index", [3, 7], (3, 4)),
    call("ravel_multi_index", ([1, 2], [0, 3]), (3, 4)), call("tril_indices", 3), call("triu_indices", 3, 1, 4),
    call("diag_indices", 3), call("unique", I), call("unique", I, True, True, True),
    call("unique", M % 2, axis=0),
    call("unique_all", I), call("unique_counts", I), call("unique_inverse", I), call("kaiser", 6, 3.0),
    call("isin", I, [1, 3]),
    call("isin", I, np.arange(3, 40)), call("intersect1d", I, [1, 2, 9]), call("union1d", I, [7]),
    call("setdiff1d", I, [1]),
    call("setxor1d", I, [1, 8]), call("polyval", W, V), call("polyadd", W, V[:3]),
    call("polysub", W, V[:3]), call("polymul", W, V),
    call("polyder", W), call("polyint", W, 2), call("interp", np.linspace(-2, 2, 9), S, W),
    call("unwrap", np.cumsum(W * 3)),
    call("interp", V * 9, np.sort(np.abs(W)), V, period=4.0), call("hanning", 6), call("hamming", 5),
    call("blackman", 7),
    call("bartlett", 6), call("count_nonzero", M), call("array_equiv", A, A[None]), call("shape", A),
    call("ndim", C3),
    call("size", A, 1), call("result_type", np.int8, np.float32), call("can_cast", np.int32, np.int64),
    call("promote_types", np.int8, np.uint8), call("isdtype", np.dtype("int8"), "integral"),
]


def leaves(x):
    return [v for item in x for v in leaves(item)] if isinstance(x, (tuple, list)) else [x]


def name_of(case):
    name, args, kwargs = case
    return name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", [*ELEMENTWISE, *REDUCTIONS, *SHAPES, *PLACES], ids=name_of)
def test_value_shape_and_dtype(case):
    name, args, kwargs = case
    expected = leaves(getattr(np, name)(*args, **kwargs))
    found = leaves(getattr(tn, name)(*args, **kwargs))
    assert len(found) == len(expected)
    for y, e in zip(found, expected):
        if isinstance(e, (np.dtype, type)):
            assert y == e
            continue
        y, e = np.asarray(y), np.asarray(e)
        assert y.shape == e.shape and y.dtype == e.dtype, f"{y.dtype}{y.shape}, NumPy {e.dtype}{e.shape}"
        assert np.allclose(y, e, rtol=1e-13, atol=1e-15, equal_nan=True)
        if e.dtype.kind == "f" and name in ("floor", "ceil", "trunc", "rint", "sqrt", "sort", "negative", "clip"):
            assert tl.same_bits(np.where(e == 0, y, 0.0), np.where(e == 0, e, 0.0)), "signs of zeros"


def test_sets_are_sorted():
    assert tn.unique_values(I).tolist() == [0, 1, 2, 3]
    assert len(tn.unique_values(np.array([np.nan, np.nan, 1.0])).tolist()) == 3
    assert len(tn.unique(np.array([np.nan, np.nan, 1.0])).tolist()) == 2


def test_traced_values_that_decide_a_shape_are_refused():
    for f in (tn.nonzero, tn.unique, lambda x: x[x > 0], lambda x: tn.bincount(tl.convert(x, tl.int64))):
        with pytest.raises(tl.errors.ConcretizationError, match="shape"):
            tl.run(f)(V)


@pytest.mark.parametrize("f", [
    lambda x: tn.quantile(x, 0.3), tn.median, lambda x: tn.sum(tn.sort(x)[:2]), lambda x: tn.nanmean(x),
    lambda x: tn.interp(0.1, S, x), lambda x: tn.interp(x[0] + 0.07, S, W), lambda x: tn.sum(tn.gradient(x)**2),
    lambda x: tn.trapezoid(x * x), lambda x: tn.sum(tn.cov(tn.stack([x, x * x]))), lambda x: tn.polyval(x, 1.5),
    lambda x: tn.sum(tn.histogram(np.array([1.0, 2.0]), 2, weights=x[:2])[0]), lambda x: tn.sum(tn.vander(x)),
    lambda x: tn.sum(tn.top_k(x, 2)[0]**2), lambda x: tn.sum(tn.put_along_axis(x, np.array([1]), 3.0, 0)**2),
    lambda x: tn.average(x, weights=tn.abs(x)), lambda x: tn.sum(tn.corrcoef(x, x**2)), lambda x: tn.nanstd(x),
    lambda x: tn.sum(tn.diff(x, 2)**2), lambda x: tn.sum(tn.unwrap(x * 3)), lambda x: tn.linspace(x[0], x[1],
    5)[2],
])
def test_gradients_against_differences(f):
    tl.testing.check_grads(f, (V,), order=1, rtol=1e-8)


def test_polynomials_by_roots_and_fit():
    x, y = np.linspace(-1, 1, 20), np.sin(np.linspace(-1, 1, 20) * 3)
    assert np.allclose(tn.polyfit(x, y, 3), np.polyfit(x, y, 3))
    assert np.allclose(tn.polyfit(x, y, 2, w=1 + x**2), np.polyfit(x, y, 2, w=1 + x**2))
    assert np.allclose(np.sort(np.asarray(tn.roots([1.0, -6, 11, -6, 0])).real), [0, 1, 2, 3])
    assert np.allclose(tn.poly([1.0, 2.0, 3.0]), [1, -6, 11, -6])
    for found, expected in zip(tn.polydiv([1.0, 5, 6, 1], [2.0, 1]), np.polydiv([1.0, 5, 6, 1], [2.0, 1])):
        assert np.allclose(found, expected)
    tl.testing.check_grads(lambda y: tn.polyfit(x, y, 2), (y,), order=1, rtol=1e-8)
    assert tl.grad(lambda c: tn.max(tn.real(tn.roots(c))))(np.array([1.0, -6, 11,
                                                                     -6]))[3].item() == pytest.approx(-0.5)


def test_indexed_objects_and_functions_over_axes():
    assert np.array_equal(tn.r_[V, 1.0, 0:3], np.r_[V, 1.0, 0:3]) and np.array_equal(tn.c_[V, W], np.c_[V, W])
    assert np.array_equal(tn.mgrid[0:3, 1:2:3j], np.mgrid[0:3, 1:2:3j])
    assert np.array_equal(tl.tensor(A)[tn.ix_([0, 2], [1])], A[np.ix_([0, 2], [1])])
    assert np.array_equal(tn.apply_along_axis(tn.cumsum, 1, C3), np.apply_along_axis(np.cumsum, 1, C3))
    assert np.allclose(tn.apply_over_axes(tn.sum, C3, [0, 2]), np.apply_over_axes(np.sum, C3, [0, 2]))
    for found, expected in zip(tn.histogram2d(V, W, 3), np.histogram2d(V, W, 3)):
        assert np.allclose(found, expected)
    assert tl.grad(lambda x: tn.sum(tn.r_[x, 2 * x]))(V).tolist() == [3] * 5


def test_documented_order_of_sorting():
    """Ascending, -0 and +0 equal and kept as they come, infinities at the ends, NaN last."""
    x = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 0.0, 1.0])
    assert tn.argsort(x).tolist() == [4, 1, 2, 5, 6, 3, 0]
    assert tn.argsort(x, descending=True).tolist() == [0, 3, 6, 1, 2, 5, 4]
    assert np.signbit(np.asarray(tn.sort(x))[1:4]).tolist() == [False, True, False]
    values, places = tn.top_k(np.array([2.0, 3.0, 3.0, 1.0]), 3)
    assert values.tolist() == [3, 3, 2] and places.tolist() == [1, 2, 0]
    weights = np.array([1.0, 10.0, 100.0])
    assert tl.grad(lambda v: tn.sum(tn.sort(v) * weights))(np.array([3.0, 1.0, 2.0])).tolist() == [100, 1, 10]
    assert tl.grad(lambda v: tn.sum(tn.sort(v) * weights))(np.array([1.0, 1.0, 1.0])).tolist() == [1, 10, 100]
    assert tl.grad(lambda v: tn.quantile(v, 0.25))(np.array([1.0, 2.0, 4.0])).tolist() == [0.5, 0.5, 0]
    assert tl.grad(lambda v: tn.median(v))(np.array([1.0, np.inf, -np.inf])).tolist() == [1, 0, 0]
    assert tn.quantile(np.array([-np.inf, -np.inf, 1.0]), 0.25).item() == -np.inf
    assert np.isnan(tn.median(np.array([1.0, np.nan])).item())
