"""Random numbers with explicit keys: counter-based, the same words on every device and for any batch.

    k = tl.random.key(0)
    k, sub = tl.random.split(k)
    x = tl.random.normal(sub, (3,))
"""
from tlgrad.random.bits import bits, fold_in, key, split, threefry2x32
from tlgrad.random.distributions import (bernoulli, categorical, cauchy, choice, exponential, gumbel, laplace,
                                         logistic, multivariate_normal, normal, pareto, permutation,
                                         rademacher, randint, shuffle, truncated_normal, uniform, weibull)
from tlgrad.random.rejection import beta, chisquare, dirichlet, gamma, loggamma, poisson, t

__all__ = ["bernoulli", "beta", "bits", "categorical", "cauchy", "chisquare", "choice", "dirichlet", "exponential",
           "fold_in", "gamma", "gumbel", "key", "laplace", "loggamma", "logistic", "multivariate_normal", "normal",
           "pareto", "permutation", "poisson", "rademacher", "randint", "shuffle", "split", "t", "threefry2x32",
           "truncated_normal", "uniform", "weibull"]
