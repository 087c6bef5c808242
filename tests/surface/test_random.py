"""Random numbers: known answers of the generator, laws of the samples, batches, gradients."""
import numpy as np
import pytest
from scipy import stats

import tlgrad as tl
import tlgrad.random as R
from tlgrad.errors import ArgumentError, DTypeError, ShapeError

K = R.key(42)
N = 8000
#: Random123, kat_vectors: threefry 2x32, 20 rounds: key, counter, words
KNOWN = [((0, 0, 0, 0), (0x6b200159, 0x99ba4efe)), ((0xffffffff,) * 4, (0x1cb996fc, 0xbb002be7)),
         ((0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3), (0xc4923a9c, 0x483df7a0))]


@pytest.mark.parametrize("words, expected", KNOWN)
def test_known_answers(words, expected):
    out = R.threefry2x32(*[tl.tensor(w, tl.uint32) for w in words])
    assert tuple(w.item() for w in out) == expected


LAWS = {
    "uniform": (lambda n: R.uniform(K, n, minval=-1.0, maxval=3.0), stats.uniform(-1, 4)),
    "normal": (lambda n: R.normal(K, n), stats.norm),
    "normal-32": (lambda n: R.normal(K, n, "float32"), stats.norm),
    "exponential": (lambda n: R.exponential(K, n), stats.expon),
    "gumbel": (lambda n: R.gumbel(K, n), stats.gumbel_r),
    "laplace": (lambda n: R.laplace(K, n), stats.laplace),
    "logistic": (lambda n: R.logistic(K, n), stats.logistic),
    "cauchy": (lambda n: R.cauchy(K, n), stats.cauchy),
    "pareto": (lambda n: R.pareto(K, 3.0, n), stats.pareto(3)),
    "truncated": (lambda n: R.truncated_normal(K, -1.0, 2.0, n), stats.truncnorm(-1, 2)),
    "gamma-0.1": (lambda n: R.gamma(K, 0.1, n), stats.gamma(0.1)),
    "gamma-1": (lambda n: R.gamma(K, 1.0, n), stats.gamma(1)),
    "gamma-50": (lambda n: R.gamma(K, 50.0, n), stats.gamma(50)),
    "beta": (lambda n: R.beta(K, 2.0, 0.5, n), stats.beta(2, 0.5)),
    "dirichlet": (lambda n: R.dirichlet(K, [1.0, 2.0, 3.0], n)[:, 1], stats.beta(2, 4)),
    "t": (lambda n: R.t(K, 3.0, n), stats.t(3)), "chisquare": (lambda n: R.chisquare(K, 4.0, n), stats.chi2(4)),
    "weibull": (lambda n: R.weibull(K, 2.0, 1.5, n), stats.weibull_min(1.5, scale=2)),
    "lognormal": (lambda n: R.lognormal(K, 0.5, n), stats.lognorm(0.5)),
    "rayleigh": (lambda n: R.rayleigh(K, 2.0, n), stats.rayleigh(scale=2)),
    "maxwell": (lambda n: R.maxwell(K, n), stats.maxwell),
    "f": (lambda n: R.f(K, 3.0, 12.0, n), stats.f(3, 12)),
    "triangular": (lambda n: R.triangular(K, -1.0, 0.5, 3.0, n), stats.triang(1.5 / 4, -1, 4)),
    "wald": (lambda n: R.wald(K, 2.0, n), stats.invgauss(2)),
    "generalized_normal": (lambda n: R.generalized_normal(K, 3.0, n), stats.gennorm(3)),
    "ball": (lambda n: (R.ball(K, 3, 2.0, (n,))**2).sum(-1)**1.5, stats.uniform),
}

#: laws of counts
COUNTS = {
    "poisson-4": (lambda n: R.poisson(K, 4.0, n), stats.poisson(4)),
    "poisson-300": (lambda n: R.poisson(K, 300.0, n), stats.poisson(300)),
    "geometric": (lambda n: R.geometric(K, 0.3, n), stats.geom(0.3)),
    "binomial": (lambda n: R.binomial(K, 9, 0.3, n), stats.binom(9, 0.3)),
    "multinomial": (lambda n: R.multinomial(K, 9, [0.1, 0.3, 0.6], (n,))[:, 1], stats.binom(9, 0.3)),
    "bernoulli": (lambda n: tl.convert(R.bernoulli(K, 0.3, n), tl.int64), stats.bernoulli(0.3)),
    "randint": (lambda n: R.randint(K, n, 3, 9), stats.randint(3, 9)),
    "categorical": (lambda n: R.categorical(K, np.log([0.2, 0.3, 0.5]), shape=n),
                    stats.rv_discrete(values=([0, 1, 2], [0.2, 0.3, 0.5]))),
    "choice": (lambda n: R.choice(K, 3, n, p=[0.2, 0.3, 0.5]),
               stats.rv_discrete(values=([0, 1, 2], [0.2, 0.3, 0.5]))),
    "rademacher": (lambda n: R.rademacher(K, n), stats.rv_discrete(values=([-1, 1], [0.5, 0.5]))),
}

#: |z| of a sample moment; of 70 moments, one above this is a chance of 1 in 200
Z = 4.0


@pytest.mark.parametrize("name", [n for n in {**LAWS, **COUNTS} if n not in ("cauchy", "t", "pareto", "f")])
def test_mean_and_variance_against_theory(name):
    """z = (sample moment - moment) / its standard error, which the law's own fourth moment gives."""
    sample, law = {**LAWS, **COUNTS}[name]
    x = np.asarray(sample(N), np.float64)
    mean, variance, kurtosis = (float(v) for v in law.stats(moments="mvk"))
    assert abs(x.mean() - mean) <= Z * np.sqrt(variance / N)
    spread = variance * np.sqrt((kurtosis + 2) / N)                # of the mean of (x - mean)^2
    assert abs(np.mean((x - mean)**2) - variance) <= Z * spread


def test_heavy_tails_by_the_moments_that_they_have():
    x = np.log(np.asarray(R.pareto(K, 3.0, N)))                    # exponential of rate 3
    assert abs(x.mean() - 1 / 3) <= Z / 3 / np.sqrt(N) and abs(x.var() - 1 / 9) <= Z / 9 * np.sqrt(8 / N)
    for name, law in (("t", stats.t(3)), ("cauchy", stats.cauchy), ("f", stats.f(3, 12))):
        u = law.cdf(np.asarray(LAWS[name][0](N)))                  # uniform
        assert abs(u.mean() - 0.5) <= Z * np.sqrt(1 / 12 / N) and abs(u.var() - 1 / 12) <= Z * np.sqrt(1 / 180 / N)


def test_dirichlet_multivariate_and_orthogonal_moments():
    alpha = np.array([1.0, 2.0, 3.0])
    x = np.asarray(R.dirichlet(K, alpha, N))
    law = stats.dirichlet(alpha)
    assert (abs(x.mean(0) - law.mean()) <= Z * np.sqrt(law.var() / N)).all()
    assert np.allclose(np.cov(x.T), law.cov(), atol=Z * 0.06 / np.sqrt(N))
    q = np.asarray(R.orthogonal(K, 3, (500,)))
    assert np.allclose(q @ np.swapaxes(q, 1, 2), np.eye(3), atol=1e-14)
    assert (abs(q.mean(0)) <= Z * np.sqrt(1 / 3 / 500)).all()       # E q = 0, E q_ij^2 = 1 / 3
    assert (abs((q**2).mean(0) - 1 / 3) <= Z * np.sqrt(4 / 45 / 500)).all()


def test_reparameterised_gradients_of_derived_samples():
    assert tl.grad(lambda s: R.rayleigh(K, s))(2.0).item() == pytest.approx(R.rayleigh(K, 1.0).item())
    for f, args in ((R.lognormal, (0.5,)), (R.triangular, (-1.0, 0.5, 3.0)), (R.wald, (2.0,))):
        for k in range(len(args)):
            h = 1e-6
            at = [f(K, *[a + (s * h if i == k else 0) for i, a in enumerate(args)]).item() for s in (1, -1)]
            assert tl.grad(lambda *a: f(K, *a), argnums=k)(*args).item() == pytest.approx(
                (at[0] - at[1]) / (2 * h), rel=1e-6)
    with pytest.raises(ArgumentError, match="Python number"):
        R.binomial(K, 2.5, 0.3)


@pytest.mark.parametrize("name", LAWS)
def test_law_by_kolmogorov_and_smirnov(name):
    sample, law = LAWS[name]
    x = np.asarray(sample(N), np.float64)
    assert np.isfinite(x).all() and stats.kstest(x, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("lam", [0.5, 4.0, 10.0, 300.0])
def test_poisson(lam):
    x = np.asarray(R.poisson(K, lam, N))
    law = stats.poisson(lam)
    jitter = x + np.random.default_rng(0).uniform(size=N)

    def cdf(v):
        n = np.floor(v)
        return law.cdf(n - 1) + (v - n) * law.pmf(n)
    assert x.dtype == np.int64 and stats.kstest(jitter, cdf).pvalue > 1e-3


@pytest.mark.parametrize("sample, p", [
    (lambda: R.randint(K, N, 3, 9) - 3, np.full(6, 1 / 6)),
    (lambda: R.choice(K, 3, N, p=[0.1, 0.2, 0.7]), [0.1, 0.2, 0.7]),
    (lambda: R.categorical(K, np.log([0.1, 0.2, 0.7]), shape=N), [0.1, 0.2, 0.7]),
    (lambda: tl.convert(R.bernoulli(K, 0.3, N), tl.int64), [0.7, 0.3])],
    ids=["randint", "choice", "categorical", "coin"])
def test_counts_by_chi_square(sample, p):
    counts = np.bincount(np.asarray(sample()), minlength=len(p))
    assert stats.chisquare(counts, np.asarray(p) * N).pvalue > 1e-3


def test_permutations_are_equally_likely():
    keys = R.split(K, 600)
    orders = np.asarray(tl.vmap(lambda k: R.permutation(k, 3))(keys))
    codes = np.unique(orders @ [9, 3, 1], return_counts=True)[1]
    assert len(codes) == 6 and stats.chisquare(codes).pvalue > 1e-3
    assert len(set(R.choice(K, 50, (50,), replace=False).tolist())) == 50
    assert len(set(R.choice(K, 9, (9,), replace=False, p=np.arange(1.0, 10) / 45).tolist())) == 9


@pytest.mark.parametrize("f", [
    lambda k: R.normal(k, (3,)), lambda k: R.gamma(k, 2.5), lambda k: R.poisson(k, 40.0),
    lambda k: R.uniform(k, ()),
    lambda k: R.beta(k, 0.5, 2.0, (2,)), lambda k: R.permutation(k, 5), lambda k: R.bits(k, (2,), tl.uint64)],
    ids=["normal", "gamma", "poisson", "uniform", "beta", "permutation", "bits"])
def test_words_do_not_depend_on_the_batch_or_on_staging(f):
    keys = R.split(K, 4)
    lanes = tl.vmap(f)(keys)
    for n in range(4):
        alone = f(keys[n])
        assert tl.same_bits(lanes[n], alone) and tl.same_bits(tl.run(f)(keys[n]), alone)


def test_a_longer_sample_starts_with_the_shorter_one():
    assert tl.same_bits(R.gamma(K, 1.5, 9)[:4], R.gamma(K, 1.5, 4))
    assert tl.same_bits(R.bits(K, 9)[:4], R.bits(K, 4))


@pytest.mark.parametrize("a", [0.05, 0.3, 1.0, 2.5, 20.0])
def test_gradient_of_a_gamma_sample_is_that_of_its_quantile(a):
    x = R.gamma(K, a).item()
    u, h = stats.gamma.cdf(x, a), 1e-5 * a
    expected = (stats.gamma.ppf(u, a + h) - stats.gamma.ppf(u, a - h)) / (2 * h)
    if a >= 1:                          # below 1 the sample has a second random part with its own share
        assert tl.grad(lambda a: R.gamma(K, a))(a).item() == pytest.approx(expected, rel=1e-5)
    assert np.isfinite(tl.grad(lambda a: R.loggamma(K, a))(a).item())


@pytest.mark.parametrize("a", [0.3, 2.0])
def test_mean_of_a_gamma_sample_has_derivative_one(a):
    g = tl.grad(lambda a: tl.mean(R.gamma(K, a, 6000)))(a).item()
    assert g == pytest.approx(1.0, abs=0.1)


def test_location_scale_gradients():
    mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    assert tl.grad(lambda m: tl.sum(R.multivariate_normal(K, m, cov)))(mean).tolist() == [1, 1]
    x = np.asarray(R.multivariate_normal(K, mean, cov, N))
    assert np.allclose(np.cov(x.T), cov, atol=0.1) and np.allclose(x.mean(0), mean, atol=0.1)
    assert tl.grad(lambda b: R.uniform(K, (), maxval=b))(2.0).item() == R.uniform(K, ()).item()


def test_keys():
    a, b = R.split(K)
    assert a.tolist() != b.tolist() and R.fold_in(K, 1).tolist() != R.fold_in(K, 2).tolist()
    assert R.key(-1).tolist() == [2**32 - 1] * 2 and R.key(2**40 + 3).tolist() == [256, 3]
    assert R.split(K, (2, 3)).shape == (2, 3, 2)


@pytest.mark.parametrize("call, error, text", [
    (lambda: R.normal(0), DTypeError, r"tl\.random\.key\(seed\)"),
    (lambda: R.normal(R.split(K)), DTypeError, "vmap"),
    (lambda: R.randint(K, (), 3, 3), ArgumentError, "empty"), (lambda: R.key(2**64), ArgumentError, "64 bits"),
    (lambda: R.choice(K, 3, (4,), replace=False), ArgumentError, "without replacement"),
    (lambda: R.uniform(K, (), tl.int32), DTypeError, "float32"),
    (lambda: R.gamma(K, np.ones(3), (2,)), ShapeError, "broadcast")],
    ids=["seed", "many-keys", "empty-range", "big-seed", "choice", "dtype", "shape"])
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()
