"""The functions as C++ and CUDA source: one text for g++ and nvcc."""
from ..expr import Value
from ..expr.ctext import PREAMBLE, TYPE, CText
from .registry import FUNCTIONS, render

TYPES = {"float32": "f32", "float64": "f64"}


def function_text(name, dtype):
    """(definition, tables) of ``tlgrad_NAME_f32`` or ``..._f64``."""
    type = TYPES[dtype]
    emitter, arguments = CText(), [f"x{j}" for j in range(FUNCTIONS[name].arity)]
    y = render(name, *(Value(emitter, a, type) for a in arguments))
    signature = ", ".join(f"{TYPE[type]} {a}" for a in arguments)
    lines = [f"FN {TYPE[type]} tlgrad_{name}_{type}({signature}) {{", *emitter.lines,
             f"  return {y.handle};", "}", ""]
    return "\n".join(lines), emitter.tables


def source(pairs):
    """The source text of the functions in `pairs` of (name, dtype): preamble, tables, definitions.

    Compile it with ``-ffp-contract=off`` (g++) or ``--fmad=false`` (nvcc).
    """
    texts, tables = [], {}
    for name, dtype in pairs:
        text, used = function_text(name, dtype)
        texts.append(text)
        tables |= used
    emitter = CText()
    emitter.tables = tables
    return PREAMBLE + emitter.table_text() + "\n".join(texts)
