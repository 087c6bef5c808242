"""Polynomial coefficients for the bodies, near-minimax in binary64.

Weighted least squares on Chebyshev nodes, reweighted by Lawson's iteration, comes within about
1.1x of the minimax error and has no exchange step to lose an extremum. Coefficients are rounded
from low to high: one is rounded and fixed, the others are fitted again, so that they absorb its
rounding error.
"""
import mpmath

MP = mpmath.MPContext()
MP.prec = 220


def polynomial(coefficients, x):
    """The value at x, by Horner's rule; the constant term comes first."""
    value = MP.mpf(0)
    for c in reversed(coefficients):
        value = c + x * value
    return value


def few_bits(x, bits):
    """`x` rounded to a significand of `bits` bits."""
    sig, exponent = MP.frexp(x)
    return MP.ldexp(MP.nint(MP.ldexp(sig, bits)), exponent - bits)


def _least_squares(values, nodes, weights, powers, rounds):
    """Coefficients of `powers`; each round multiplies the weights by the error (Lawson)."""
    basis = [[x ** p for p in powers] for x in nodes]
    multipliers, best = [MP.mpf(1)] * len(nodes), None
    n = len(powers)
    for _ in range(rounds + 1):
        square = [m * w * w for m, w in zip(multipliers, weights)]
        matrix, right = MP.matrix(n, n), MP.matrix(n, 1)
        for i in range(n):
            right[i] = MP.fsum(s * b[i] * f for s, b, f in zip(square, basis, values))
            for j in range(i, n):
                matrix[i, j] = MP.fsum(s * b[i] * b[j] for s, b in zip(square, basis))
                matrix[j, i] = matrix[i, j]
        solution = list(MP.lu_solve(matrix, right))
        errors = [abs(w * (f - MP.fdot(solution, b))) for w, f, b in zip(weights, values, basis)]
        if best is None or max(errors) < best[0]:
            best = max(errors), solution
        mean = MP.fsum(m * e for m, e in zip(multipliers, errors)) / len(nodes)
        if not mean:
            break
        multipliers = [m * e / mean + MP.mpf(10) ** -6 for m, e in zip(multipliers, errors)]
    return best[1]


def fit(function, low, high, count, weight=None, fixed=(), rounds=4, bits=53):
    """`count` coefficients, low to high, of a polynomial near `function` on [low, high].

    The error is relative to the function unless `weight` says otherwise; the first coefficients
    may be `fixed`. They have `bits` bits. Returns (coefficients as floats, log2 of the greatest
    weighted error after rounding).
    """
    low, high = MP.mpf(low), MP.mpf(high)
    weight = weight or (lambda x: 1 / function(x))
    middle, half = (low + high) / 2, (high - low) / 2
    size = 4 * count
    nodes = [middle - half * MP.cos(MP.pi * (i + MP.mpf(1) / 2) / size) for i in range(size)]
    weights, values = [weight(x) for x in nodes], [function(x) for x in nodes]
    done = [MP.mpf(c) for c in fixed]
    while len(done) < count:
        k = len(done)
        rest = [v - polynomial(done, x) if done else v for v, x in zip(values, nodes)]
        free = _least_squares(rest, nodes, weights, range(k, count), rounds if k < 2 else 1)
        done.append(few_bits(free[0], bits))
    probes = [low + (high - low) * (i + MP.mpf(1) / 2) / 300 for i in range(300)]
    worst = max(abs(weight(x) * (function(x) - polynomial(done, x))) for x in probes)
    return [float(c) for c in done], float(MP.log(worst, 2)) if worst else -999.0
