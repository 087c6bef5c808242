"""Primitives, all rules of one beside its name."""
from tlgrad.ops import (arithmetic, contract, contract_many, convert, elementary, index, layout,
                        logic, methods, reduce, shape)

__all__ = ["arithmetic", "contract", "contract_many", "convert", "elementary", "index", "layout",
           "logic", "methods", "reduce", "shape"]
