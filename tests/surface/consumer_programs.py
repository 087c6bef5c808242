"""Libraries written against the array API standard, on tensors: run as a program, it prints what failed.

    python3 consumer_programs.py values|slopes      -> JSON {name: "" or what went wrong}

It is a program because SciPy reads SCIPY_ARRAY_API once, when it is imported.
"""
import json
import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np                                                                  # noqa: E402
import scipy.differentiate                                                          # noqa: E402
import scipy.optimize.elementwise                                                   # noqa: E402
import sklearn                                                                      # noqa: E402
from scipy import cluster, fft, integrate, linalg, optimize, signal, spatial, special, stats  # noqa: E402
from sklearn import (decomposition, discriminant_analysis, kernel_approximation, linear_model,  # noqa: E402
                     metrics, mixture, naive_bayes, preprocessing)

try:
    import array_api_extra as xpx
except ImportError:
    from sklearn.externals import array_api_extra as xpx

import tlgrad as tl                                                                 # noqa: E402
import tlgrad.numpy as tn                                                           # noqa: E402

sklearn.set_config(array_api_dispatch=True)
RNG = np.random.default_rng(7)
X, Y, U, A, B = (RNG.normal(size=s) for s in (12, 12, 12, (8, 4), (8, 4)))
P, Q, U = np.abs(X) + 0.1, np.abs(Y) + 0.1, 1 / (1 + np.exp(U))
TARGET, LABELS = A @ np.arange(4.0) + 1, (A[:, 0] + 0.3 * B[:, 0] > 0).astype(int)

#: name -> (function, arguments); the first argument is the one that slopes are taken in
VALUES, SLOPES = {}, {}


def both(name, f, *args):
    VALUES[name] = SLOPES[name] = f, args


def value(name, f, *args):
    VALUES[name] = f, args


# ---- SciPy ----

for n in ("zscore gstd gmean hmean gzscore circmean circvar circstd entropy power_divergence chisquare "
          "boxcox_llf tmin tmax").split():
    f = getattr(stats, n)
    both("stats." + n, (lambda v, f=f: f(0.5, v)) if n == "boxcox_llf" else f, P)
for n in ("skew kurtosis moment variation sem kstat kstatvar tmean tvar tstd tsem skewtest "
          "kurtosistest normaltest jarque_bera differential_entropy "
          "iqr median_abs_deviation "
          "describe sigmaclip lmoment").split():
    both("stats." + n, getattr(stats, n), X)
for n in ("zmap bartlett levene f_oneway ttest_ind ttest_rel brunnermunzel pearsonr epps_singleton_2samp").split():
    both("stats." + n, getattr(stats, n), X, Y)
for n in "kruskal mood ansari mannwhitneyu cramervonmises_2samp fligner alexandergovern spearmanr".split():
    value("stats." + n, getattr(stats, n), X, Y)
value("stats.wilcoxon", stats.wilcoxon, X)
value("stats.rankdata", stats.rankdata, X)
both("stats.quantile", lambda v: stats.quantile(v, 0.3), X)
both("stats.ttest_1samp", lambda v: stats.ttest_1samp(v, 0.0), X)
both("stats.combine_pvalues", stats.combine_pvalues, U)
both("stats.false_discovery_control", stats.false_discovery_control, U)
both("stats.directional_stats", stats.directional_stats, A)
for n in "logsumexp softmax log_softmax".split():
    both("special." + n, getattr(special, n), X)
for n in ("betainc betaincc chdtr chdtrc digamma entr erf erfc expit gammaincc gammainc gammaln gamma i0 i0e i1 "
          "i1e j0 j1 log_ndtr ndtr psi rel_entr kl_div sinc stdtr xlogy xlog1py log1p expm1 cbrt exp2").split():
    two = ("chdtr", "chdtrc", "gammainc", "gammaincc", "rel_entr", "kl_div", "stdtr", "xlogy", "xlog1py")
    count = 2 if n in two else 3 if n.startswith("betainc") else 1
    both("special." + n, getattr(special, n), *(Q + 1, P, U)[:count])
for n in "erfinv logit ndtri".split():
    both("special." + n, getattr(special, n), U)
both("signal.fftconvolve", signal.fftconvolve, X, Y)
both("signal.oaconvolve", signal.oaconvolve, X, Y)
both("signal.resample", lambda v: signal.resample(v, 8), X)
value("signal.convolve", signal.convolve, X, Y)
value("signal.hilbert", signal.hilbert, X)
value("signal.detrend", signal.detrend, X)
value("signal.savgol_filter", lambda v: signal.savgol_filter(v, 5, 2), X)
value("ndimage.gaussian_filter", lambda v: __import__("scipy.ndimage").ndimage.gaussian_filter(v, 1.0), A)
both("cluster.vq.whiten", cluster.vq.whiten, A)
value("cluster.vq.vq", cluster.vq.vq, A, B[:3])
value("cluster.hierarchy.linkage", cluster.hierarchy.linkage, A)
value("cluster.hierarchy.inconsistent", cluster.hierarchy.inconsistent, cluster.hierarchy.linkage(A))
value("fft.fft", fft.fft, X)
both("fft.hfft", fft.hfft, X)
both("integrate.trapezoid", integrate.trapezoid, X)
both("integrate.cumulative_simpson", integrate.cumulative_simpson, X)
both("integrate.tanhsinh",
     lambda v: integrate.tanhsinh(lambda t, a: a * t * t, v * 0, v * 0 + 1, args=(v,)).integral, P)
both("integrate.nsum", lambda v: integrate.nsum(lambda k, a: a / k**2, v * 0 + 1, v * 0 + 20, args=(v,)).sum, P)
both("optimize.rosen_der", optimize.rosen_der, X)
both("optimize.rosen_hess", optimize.rosen_hess, X)
both("optimize.elementwise.find_root", lambda v: optimize.elementwise.find_root(
    lambda t, c: t**3 - c, (v * 0, v * 0 + 3), args=(v,)).x, P)
both("differentiate.derivative", lambda v: scipy.differentiate.derivative(lambda t: t**3, v).df, X)
both("differentiate.jacobian", lambda v: scipy.differentiate.jacobian(lambda t: t**2, v).df, X[:3])
ROTATION = spatial.transform.Rotation
both("Rotation.from_quat", lambda v: ROTATION.from_quat(v).as_matrix(), A)
both("Rotation.as_euler", lambda v: ROTATION.from_quat(v).as_euler("xyz"), A)
both("linalg.block_diag", linalg.block_diag, A, B)

# ---- array-api-extra ----

both("at.set", lambda x: xpx.at(x)[0].set(0.0), A)
both("at.add", lambda x: xpx.at(x)[:2].add(x[2:4]), A)
both("at of a mask", lambda x: xpx.at(x)[x > 0].set(9.0), A)
both("at.multiply", lambda x: xpx.at(x, 1).multiply(2.0), A)
both("at.min", lambda x: xpx.at(x, 1).min(0.0, copy=True), A)
both("pad", lambda x: xpx.pad(x, 1), A)
both("cov", xpx.cov, A)
both("kron", xpx.kron, A[:2], B[:2])
both("create_diagonal", xpx.create_diagonal, X)
both("expand_dims", lambda x: xpx.expand_dims(x, axis=(0, 2)), A)
both("atleast_nd", lambda x: xpx.atleast_nd(x, ndim=3), A)
both("apply_where", lambda x: xpx.apply_where(x > 0, x, lambda a: a**0.5, fill_value=0.0), A)
both("apply_where of two", lambda x: xpx.apply_where(x > 0, (x, x), lambda a, b: a * b, lambda a, b: a - b), A)
both("sinc", xpx.sinc, A)
value("isclose", lambda x: xpx.isclose(x, x + 1e-9), A)
value("nunique", xpx.nunique, LABELS)
value("setdiff1d", lambda y: xpx.setdiff1d(y, y[:1]), LABELS)
value("one_hot", lambda y: xpx.one_hot(y, 3), LABELS)
value("nan_to_num", lambda x: xpx.nan_to_num(x / 0.0 * 0.0), A)
value("partition", lambda x: xpx.partition(x, 2, axis=0)[2], A)

# ---- scikit-learn ----

for n in "MinMaxScaler MaxAbsScaler Normalizer PolynomialFeatures".split():
    both(n, lambda x, n=n: getattr(preprocessing, n)().fit(x).transform(x), A)
both("Ridge", lambda x, t: linear_model.Ridge(solver="svd").fit(x, t).predict(x), A, TARGET)
both("RidgeCV", lambda x, t: linear_model.RidgeCV().fit(x, t).predict(x), A, TARGET)
both("PCA", lambda x: abs(decomposition.PCA(2, svd_solver="full").fit_transform(x)), A)
both("PCA of the covariance",
     lambda x: abs(decomposition.PCA(2, svd_solver="covariance_eigh").fit_transform(x)), A)
both("GaussianNB", lambda x, y: naive_bayes.GaussianNB().fit(x, y).predict_proba(x), A, LABELS)
both("Nystroem", lambda x: kernel_approximation.Nystroem(n_components=5, random_state=0).fit_transform(x), A)
value("StandardScaler", lambda x: preprocessing.StandardScaler().fit_transform(x), A)
value("LinearDiscriminantAnalysis", lambda x, y: discriminant_analysis.LinearDiscriminantAnalysis(
    solver="svd").fit(x, y).predict_proba(x), A, LABELS)
value("GaussianMixture", lambda x: mixture.GaussianMixture(2, random_state=0, init_params="random").fit(
    x).score_samples(x), A)
value("LogisticRegression", lambda x, y: linear_model.LogisticRegression().fit(x, y).predict_proba(x), A, LABELS)
for n in ("cosine_similarity euclidean_distances rbf_kernel sigmoid_kernel linear_kernel "
          "additive_chi2_kernel").split():
    both(n, getattr(metrics.pairwise, n), np.abs(A), np.abs(B))
for n in ("mean_squared_error mean_absolute_error r2_score max_error mean_squared_log_error mean_poisson_deviance "
          "d2_absolute_error_score median_absolute_error").split():
    value(n, lambda t, n=n: getattr(metrics, n)(abs(t) + 0.1, abs(t) * 1.1 + 0.05), TARGET)
for n in "accuracy_score f1_score confusion_matrix hamming_loss cohen_kappa_score matthews_corrcoef".split():
    value(n, lambda y, n=n: getattr(metrics, n)(y, y[::-1]), LABELS)
value("roc_auc_score", lambda x, y: metrics.roc_auc_score(y, x[:, 0]), A, LABELS)
value("log_loss", lambda x, y: metrics.log_loss(y, 1 / (1 + abs(x[:, 0]))), A, LABELS)


# ---- checks ----

def leaves(result):
    """The arrays of a result: tuples, named results and single arrays."""
    if hasattr(result, "_asdict") or isinstance(result, (tuple, list)):
        return [x for part in tuple(result) for x in leaves(part)]
    for name in ("statistic", "mean_direction"):
        if hasattr(result, name):
            return leaves((getattr(result, name), getattr(result, "pvalue", None)))
    return [] if result is None else [result]


def check_value(f, args):
    expected, found = leaves(f(*[a.copy() for a in args])), leaves(f(*map(tl.tensor, args)))
    for y, e in zip(found, expected, strict=True):
        if not np.allclose(np.asarray(y), e, rtol=1e-9, atol=1e-11, equal_nan=True):
            return f"{np.asarray(y)!r:.200} is not {e!r:.200}"
    return ""


def check_slope(f, args):
    """A directional derivative of a weighted sum of the first result, against a central difference."""
    like = np.asarray(leaves(f(*[a.copy() for a in args]))[0])
    weights, step = RNG.normal(size=like.shape), RNG.normal(size=args[0].shape)

    def total(x):
        first = leaves(f(x, *[a if isinstance(x, np.ndarray) else tl.tensor(a) for a in args[1:]]))[0]
        return (first * (weights if isinstance(x, np.ndarray) else tl.tensor(weights))).sum()
    slope = np.sum(np.asarray(tl.grad(total)(tl.tensor(args[0]))) * step)
    h = 1e-6
    expected = (total(args[0] + h * step) - total(args[0] - h * step)) / (2 * h)
    return "" if abs(slope - expected) <= 3e-6 * max(1, abs(expected)) else f"{slope} is not {expected}"


def main(which):
    check, programs = {"values": (check_value, VALUES), "slopes": (check_slope, SLOPES)}[which]
    said = {}
    warnings.simplefilter("ignore")
    for name, (f, args) in programs.items():
        try:
            said[name] = check(f, args)
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(said))


if __name__ == "__main__":
    assert tl.tensor(1.0).__array_namespace__() is tn
    main(sys.argv[1])
