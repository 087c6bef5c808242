"""The defining backend: NumPy, one primitive after the other.

A jaxpr with its inputs has one result, and this is it: every equation's `impl` in the order
written, on NumPy storage (`core.jaxpr.evaluate_arrays`; eager calls use the same `impl`).  Sums
run in their stated order (`ops.orders`), elementary functions are the bodies of
`tlgrad.kernels.elementary`, software formats those of `tlgrad.softfloat`.  Slow and obvious; the
words of every other backend are tested against these.
"""
from __future__ import annotations

from typing import Sequence

import numpy as np

from tlgrad.core.jaxpr import Jaxpr, evaluate_arrays


class Reference:
    """Evaluates a jaxpr equation by equation."""

    name = "reference"

    def execute(self, jaxpr: Jaxpr, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of the jaxpr: storage arrays in, storage arrays out."""
        return evaluate_arrays(jaxpr, arrays)

    def contiguous(self, array: np.ndarray) -> np.ndarray:
        """The array itself if it is row-major, else NumPy's copy."""
        return np.asarray(array, order="C")


def load() -> Reference:
    """The backend (see `core.execute`)."""
    return Reference()
