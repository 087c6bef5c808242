"""Rows of the primitives of linear algebra and Fourier transforms.

They are library-backed: the words are the library's, so a row compares with the library call (or the
primitive's own evaluation where it is a formula over library calls).  Derivatives are compared with
differences in test_linalg.py and test_fft.py; lanes and staging here.
"""
import numpy as np
from opspec import Calls, Words

from tlgrad import linalg
from tlgrad.core.primitive import PRIMITIVES

rng = np.random.default_rng(5)
A = rng.normal(size=(3, 3)) + 3 * np.eye(3)
B = rng.normal(size=(3, 2))
T = rng.normal(size=(4, 3))
C = A + 1j * rng.normal(size=(3, 3))
D = np.abs(A) + 1


def own(name):
    return lambda *x, **params: PRIMITIVES[name].impl(*x, **params)


def definite(x):
    return np.asarray(linalg.matmul(x, linalg.matrix_transpose(x))) + np.eye(3)


_LOWER = dict(lower=True, unit=False, transposed=False)

ROWS = [
    Words("fft", (((C,), dict(axes=(0, 1), inverse=False), np.fft.fft2),
                  ((C,), dict(axes=(1,), inverse=True), lambda x: np.fft.ifft(x, norm="forward"))), 0),
    Words("rfft", (((A,), dict(axis=0), lambda x: np.fft.rfft(x, axis=0)),), 0),
    Words("irfft", (((C,), dict(axis=1, n=5), lambda x: np.fft.irfft(x, 5, norm="forward")),), 0),
    Words("triangular_solve", (((D, B), _LOWER, lambda a, b: own("triangular_solve")(a, b, **_LOWER)),), 0),
    Words("solve", (((A, B), {}, np.linalg.solve),), 0),
    Calls("cholesky", ((lambda x: linalg.cholesky(linalg.matmul(x, linalg.matrix_transpose(x)) + np.eye(3)), (A,),
                        lambda x: np.linalg.cholesky(definite(x))),), 0),
    Words("lu", (((A,), {}, own("lu")),), 0),
    Words("qr", (((T,), {}, lambda a: list(np.linalg.qr(a))),), 0),
    Words("eigh", (((A + A.T,), {}, lambda a: list(np.linalg.eigh(a))),), 0),
    Words("eigvalsh", (((A + A.T,), {}, lambda a: np.linalg.eigh(a)[0]),), 0),
    Words("eig", (((A,), {}, own("eig")),), 0),
    Words("eigvals", (((A,), {}, own("eigvals")),), 0),
    Words("svd", (((T,), {}, lambda a: list(np.linalg.svd(a, full_matrices=False))),), 0),
    Words("svdvals", (((T,), {}, lambda a: np.linalg.svd(a, full_matrices=False)[1]),), 0),
    Words("full_svd", (((T,), {}, lambda a: list(np.linalg.svd(a))),), 0),
    Words("full_qr", (((T,), {}, own("full_qr")),), 0),
    Words("turn", (((T,), dict(what="a test"), lambda x: np.zeros((3, 3))),), 0),
    Words("refuse_turns", (((np.full((3, 3), 2.0),), dict(what="a test"), np.zeros_like),), 0),
    Words("divide_by_gap", (((A, D), dict(what="a test"), lambda b, d: b / d),), 0),
    Words("det", (((A,), {}, own("det")),), 0),
    Words("cofactor", (((A,), {}, own("cofactor")),), 0),
    Words("slogdet", (((A,), {}, lambda a: list(map(np.asarray, np.linalg.slogdet(a)))),), 0),
    Words("pinv", (((T,), dict(rcond=1e-15), lambda a: np.linalg.pinv(a, rcond=1e-15)),), 0),
    Words("expm", (((A,), {}, own("expm")),), 0),
    Words("sqrtm", (((A @ A.T,), {}, own("sqrtm")),), 0),
    Words("solve_sylvester", (((A, D, C.real.copy()), {}, own("solve_sylvester")),), 0),
    Calls("linear_solve", ((lambda a, b: linalg.gmres(lambda v: linalg.matmul(a, v), b), (A, B[:, 0].copy()),
                            lambda a, b: np.asarray(linalg.gmres(a, b))),), 0),
    Words("expm_frechet", (((A, D), {}, own("expm_frechet")),), 0),
]
