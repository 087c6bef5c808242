"""Random numbers with explicit keys: counter-based, the same words on every device and for any batch.

    k = tl.random.key(0)
    k, sub = tl.random.split(k)
    x = tl.random.normal(sub, (3,))
"""
from tlgrad.random.bits import bits, fold_in, key, split, threefry2x32
from tlgrad.random.derived import (ball, binomial, double_sided_maxwell, f, generalized_normal, geometric,
                                   lognormal, maxwell, multinomial, orthogonal, rayleigh, triangular, wald,
                                   weibull_min)
from tlgrad.random.distributions import (bernoulli, categorical, cauchy, choice, exponential, gumbel, laplace,
                                         logistic, multivariate_normal, normal, pareto, permutation,
                                         rademacher, randint, shuffle, truncated_normal, uniform, weibull)
from tlgrad.random.rejection import beta, chisquare, dirichlet, gamma, loggamma, poisson, t

__all__ = ["ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice",
           "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma",
           "generalized_normal", "geometric", "gumbel", "key", "laplace", "loggamma", "logistic",
           "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal", "orthogonal",
           "pareto", "permutation", "poisson", "rademacher", "randint", "rayleigh", "shuffle",
           "split", "t", "threefry2x32", "triangular", "truncated_normal", "uniform", "wald",
           "weibull", "weibull_min"]
