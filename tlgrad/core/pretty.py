"""Jaxpr -> text, deterministic (golden tests), with the user's variable names where known.

    { lambda x:float64[3] ;
        a:float64[3] = mul x x
        b:float64[] = reduce_sum[axes=(0,)] a
      in (b,) }
"""
from __future__ import annotations

import itertools
from typing import Iterator

from tlgrad.core.dtypes import DType
from tlgrad.core.jaxpr import Jaxpr, Literal, Var
from tlgrad.core.tensor import Tensor


def jaxpr_text(jaxpr: Jaxpr, n_consts: int = 0, sources: bool = False) -> str:
    """The program as text; `n_consts` leading inputs are shown apart; `sources` adds user lines."""
    return "\n".join(_Printer(sources).lines(jaxpr, n_consts))


class _Printer:
    """Names variables in order of appearance: hints first, then a, b, ..., z, aa, ..."""

    def __init__(self, sources: bool):
        self.sources = sources
        self.names: dict[Var, str] = {}
        self.taken: set[str] = set()
        self.fresh = _letters()

    def name(self, var: Var) -> str:
        if var not in self.names:
            name = var.name
            if not name or name in self.taken:
                name = next(n for n in self.fresh if n not in self.taken)
            self.taken.add(name)
            self.names[var] = name
        return self.names[var]

    def binder(self, var: Var) -> str:
        return f"{self.name(var)}:{var.aval}"

    def atom(self, atom) -> str:
        if type(atom) is Literal:
            return literal_text(atom.value)
        return self.name(atom) if type(atom) is Var else f"<{atom!r}: not an atom>"

    def reserve_hints(self, jaxpr: Jaxpr):
        """User names win over letters, wherever they are bound."""
        for var in jaxpr.in_binders:
            if var.name:
                self.name(var)
        for var, name in user_names(jaxpr):
            if name not in self.taken:
                self.taken.add(name)
                self.names[var] = name

    def lines(self, jaxpr: Jaxpr, n_consts: int = 0) -> list[str]:
        self.reserve_hints(jaxpr)
        binders = [self.binder(v) for v in jaxpr.in_binders]
        head = " ".join(binders[n_consts:])
        if n_consts:
            head = " ".join(binders[:n_consts]) + " | " + head
        lines = [f"{{ lambda {head} ;" if head else "{ lambda ;"]
        for eqn in jaxpr.eqns:
            lines += ["    " + text for text in self.eqn_lines(eqn)]
        outs = [self.atom(a) for a in jaxpr.outs]
        lines.append(f"  in ({', '.join(outs)}{',' if len(outs) == 1 else ''}) }}")
        return lines

    def eqn_lines(self, eqn) -> list[str]:
        outs = " ".join(self.binder(v) for v in eqn.outs)
        ins = " ".join(self.atom(a) for a in eqn.ins)
        plain, nested = [], []
        for key, value in eqn.params.items():
            if isinstance(value, Jaxpr):
                nested.append((key, value))
            elif isinstance(value, tuple) and value and all(isinstance(v, Jaxpr) for v in value):
                nested += [(f"{key}[{i}]", v) for i, v in enumerate(value)]
            elif value is not None:
                plain.append(f"{key}={_param_text(value)}")
        params = f"[{' '.join(plain)}]" if plain else ""
        source = f"    # {eqn.source}" if self.sources and eqn.source else ""
        lines = [f"{outs} = {eqn.prim.name}{params} {ins}".rstrip() + source]
        for key, inner in nested:
            inner_lines = self.lines(inner)
            lines.append(f"    {key} = {inner_lines[0]}")
            lines += ["    " + text for text in inner_lines[1:]]
        return lines


def user_names(jaxpr: Jaxpr):
    """(variable, name) for results that the user's program stores under a name.

    Of several equations that one expression makes, the last holds its value; where derivative
    rules wrote them, the first does.
    """
    for source, group in itertools.groupby(jaxpr.eqns, lambda eqn: eqn.source):
        if source is None or not source.target:
            continue
        eqns = list(group)
        eqn = eqns[0] if source.derived else eqns[-1]
        if len(eqn.outs) == 1:
            yield eqn.outs[0], source.target


def literal_text(value: Tensor) -> str:
    """A constant with its dtype: ``0.25:float32``."""
    return f"{value.item() if value.dtype.software else repr(value.item())}:{value.dtype}"


def _param_text(value) -> str:
    if isinstance(value, DType):
        return value.name
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if isinstance(value, tuple):
        inner = ",".join(map(_param_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value).replace(" ", "")


def _letters() -> Iterator[str]:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    for n in itertools.count(1):
        for chars in itertools.product(alphabet, repeat=n):
            yield "".join(chars)


Jaxpr.text = jaxpr_text
