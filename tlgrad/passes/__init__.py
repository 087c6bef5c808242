"""Passes: jaxpr -> jaxpr, pure and bit-preserving, in the order of `PIPELINE`.

Every result is checked against the abstract rules of its primitives.
"""
from __future__ import annotations

from tlgrad.core.jaxpr import Jaxpr, check_jaxpr
from tlgrad.passes.reductions import middle_axes_moved, products_to_sums, winners_to_minima
from tlgrad.passes.simplify import (eliminate_common, eliminate_dead, fold_constants, inline_calls,
                                    skip_identities)
from tlgrad.passes.trees import trees_to_sums
from tlgrad.passes.vectors import vectors_to_sums

#: (name, pass), applied in this order
PIPELINE = (("inline_calls", inline_calls), ("eliminate_dead", eliminate_dead),
            ("vectors_to_sums", vectors_to_sums), ("trees_to_sums", trees_to_sums),
            ("products_to_sums", products_to_sums), ("winners_to_minima", winners_to_minima),
            ("middle_axes_moved", middle_axes_moved),
            ("fold_constants", fold_constants), ("skip_identities", skip_identities),
            ("eliminate_common", eliminate_common), ("eliminate_dead", eliminate_dead))


def optimise(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr after all passes: the same words with fewer equations.

    Raises JaxprTypeError that names the pass when one breaks the typing of the program.
    """
    found = jaxpr.memo.get("optimised")
    if found is None:
        found = jaxpr
        for name, apply in PIPELINE:
            changed = apply(found)
            if changed is not found:
                found = check_jaxpr(changed, f"pass {name} of {', '.join(n for n, _ in PIPELINE)}")
        jaxpr.memo["optimised"] = found
        found.memo["optimised"] = found
    return found
