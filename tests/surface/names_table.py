"""Writes docs/names.md: what a user of NumPy, SciPy, JAX or PyTorch knows -> its name in tlgrad.

    python3 tests/surface/names_table.py        writes the file
"""
from __future__ import annotations

import pathlib

import numpy as np

import tlgrad as tl
import tlgrad.numpy as tn

TARGET = pathlib.Path(__file__).parents[2] / "docs" / "names.md"

#: NumPy functions that tlgrad does not have, and why
MISSING = {
    "no arrays of dates or strings": "busday_count busday_offset datetime_as_string datetime_data is_busday isnat",
    "writes into its argument; use x.at[...].set, or tl.where": "copyto place put putmask",
    "files and text; use NumPy on np.asarray(x)": (
        "array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific "
        "frombuffer fromfile fromiter fromregex fromstring genfromtxt load loadtxt save savetxt savez "
        "savez_compressed get_printoptions printoptions set_printoptions"),
    "memory layout is not visible in a tensor": (
        "asarray_chkfinite asfortranarray isfortran may_share_memory shares_memory require nested_iters"),
    "error and buffer state of NumPy": "geterr geterrcall seterr seterrcall getbufsize setbufsize",
    "old matrix class": "asmatrix bmat",
    "use tl.promote_types, tl.numpy.result_type": "common_type min_scalar_type mintypecode",
    "use tl.map or tl.vmap": "frompyfunc vectorize",
    "use tl.explain(pattern, ...)": "einsum_path",
    "packed bits are not a dtype": "packbits unpackbits",
    "not built yet": "histogramdd mask_indices",
    "about the installation of NumPy": "get_include show_config show_runtime test typename iterable",
}

JAX = {
    "jax": {"jit": "run", "grad": "grad", "value_and_grad": "value_and_grad", "jvp": "jvp", "vjp": "vjp",
            "linearize": "linearize", "linear_transpose": "linear_transpose", "jacfwd": "jacfwd",
            "jacrev": "jacrev",
            "hessian": "hessian", "vmap": "vmap", "checkpoint": "checkpoint", "custom_jvp": "custom_jvp",
            "custom_vjp": "custom_vjp", "make_jaxpr": "make_jaxpr", "eval_shape": "eval_shape",
            "tree.map": "tree.map",
            "tree.leaves": "tree.leaves", "block_until_ready": "", "pmap": "", "device_put": ""},
    "jax.lax": {"scan": "scan", "while_loop": "while_loop", "fori_loop": "iterate", "cond": "cond",
    "switch": "switch",
                "select": "where", "stop_gradient": "stop_gradient", "top_k": "top_k", "dot_general": "einsum",
                "conv_general_dilated": "conv.conv", "reduce_window": "conv.max_pool", "cumsum": "cumsum",
                "rsqrt": "rsqrt", "erf": "special.erf", "custom_root": "", "associative_scan": "", "map": "vmap"},
    "jax.nn": {"relu": "relu", "sigmoid": "sigmoid", "softplus": "softplus", "softmax": "softmax",
               "log_softmax": "log_softmax", "logsumexp": "logsumexp", "one_hot": "one_hot", "silu": "silu",
               "gelu": "gelu", "elu": "numpy.elu", "celu": "numpy.celu", "selu": "numpy.selu",
               "relu6": "numpy.relu6",
               "leaky_relu": "numpy.leaky_relu", "hard_tanh": "numpy.hard_tanh",
               "log_sigmoid": "numpy.log_sigmoid",
               "soft_sign": "numpy.softsign", "mish": "numpy.mish"},
    "jax.random": {n: f"random.{n}" for n in (
        "key split fold_in bits uniform normal randint bernoulli categorical choice permutation exponential gamma "
        "loggamma beta dirichlet poisson truncated_normal gumbel laplace logistic cauchy multivariate_normal "
        "pareto "
        "rademacher t chisquare").split()} | {"weibull_min": "random.weibull", "ball": "", "orthogonal": ""},
    "jax.scipy.sparse.linalg": {"cg": "linalg.cg", "gmres": "linalg.gmres", "bicgstab": ""},
}

TORCH = {
    "torch": {
        "tensor": "tensor", "cat": "concatenate", "stack": "stack", "permute": "permute_dims",
        "unsqueeze": "expand_dims",
        "flip": "flip", "roll": "roll", "where": "where", "clamp": "clip", "matmul": "matmul", "mm": "matmul",
        "bmm": "matmul", "einsum": "einsum", "tensordot": "tensordot", "gather": "take_along_axis",
        "index_select": "take", "scatter_add": "numpy.put_along_axis", "masked_select": "numpy.extract",
        "topk": "top_k",
        "sort": "sort", "argsort": "argsort", "unique": "numpy.unique", "bincount": "numpy.bincount",
        "cumsum": "cumsum", "cumprod": "cumprod", "logsumexp": "logsumexp", "norm": "norm", "std": "std",
        "var": "var",
        "quantile": "numpy.quantile", "searchsorted": "searchsorted", "meshgrid": "meshgrid", "tril": "tril",
        "triu": "triu", "diag": "diag", "kron": "kron", "cdist": "", "lerp": "", "erf": "special.erf",
        "lgamma": "special.gammaln", "digamma": "special.digamma", "polygamma": "special.polygamma",
        "no_grad": "stop_gradient", "compile": "run", "vmap": "vmap", "func.grad": "grad", "func.jacrev": "jacrev",
        "func.hessian": "hessian", "func.jvp": "jvp", "func.vjp": "vjp", "autograd.Function": "custom_vjp",
        "utils.checkpoint.checkpoint": "checkpoint", "Tensor.backward": "record"},
    "torch.nn.functional": {
        "relu": "relu", "gelu": "gelu", "silu": "silu", "softmax": "softmax", "log_softmax": "log_softmax",
        "softplus": "softplus", "one_hot": "one_hot", "conv1d": "conv.conv", "conv2d": "conv.conv",
        "conv3d": "conv.conv", "conv_transpose2d": "conv.conv_transpose", "max_pool2d": "conv.max_pool",
        "avg_pool2d": "conv.avg_pool", "unfold": "conv.patches", "pad": "pad", "leaky_relu": "numpy.leaky_relu",
        "elu": "numpy.elu", "hardtanh": "numpy.hard_tanh", "mish": "numpy.mish", "logsigmoid": "numpy.log_sigmoid",
        "interpolate": "", "grid_sample": ""},
    "torch.linalg": {n: f"linalg.{n}" for n in "solve inv det slogdet cholesky qr eigh eigvalsh eig eigvals svd "
                     "svdvals pinv lstsq matrix_power matrix_rank norm cond vecdot multi_dot".split()}
    | {"solve_triangular": "linalg.triangular_solve", "lu": "linalg.lu", "matrix_exp": "linalg.expm"},
}

REASONS = {
    "block_until_ready": "use tl.block where results are awaited", "pmap": "one device a call",
    "device_put": "the device belongs to the call", "custom_root": "use tl.custom_jvp",
    "associative_scan": "an ordered scan is tl.scan", "ball": "not built yet", "orthogonal": "not built yet",
    "bicgstab": "use tl.linalg.gmres", "cdist": "write tl.norm(x[:, None] - y, axis=-1)",
    "lerp": "write a + t * (b - a)", "interpolate": "not built yet", "grid_sample": "not built yet",
}


LIBRARIES = (
    "Tensors and traced values have `__array_namespace__`, so SciPy's array API functions (`SCIPY_ARRAY_API=1`), "
    "scikit-learn (`array_api_dispatch=True`) and array-api-extra run on them, and inside every transform: "
    "`tests/surface/consumer_programs.py` lists what is tested. Code of these packages may assign to entries "
    "(`x[i] = v`); what it slices, reshapes or permutes is a view. Another package that follows the standard is "
    'named by `tlgrad.core.writing.WRITERS.add("package")`. In other code an assignment is a `MutationError` that '
    "gives the functional form.")

#: what such libraries cannot do with tensors, and why
NOT_RUNNING = {
    "derivatives through `scipy.signal.convolve`, `detrend`, `savgol_filter`, `scipy.ndimage`, `scipy.cluster`":
        "SciPy turns the values into NumPy arrays; use `tl.scipy.signal`, `tl.conv`",
    "derivatives through scikit-learn's regression metrics and `LogisticRegression`":
        "they turn results into Python floats",
    "derivatives through `StandardScaler`":
        "its formula divides 0 by 0 and overwrites the result; the slope of what was overwritten is 0 times NaN",
    "functions of SciPy that return NumPy arrays for every library (`stats.boxcox`, `signal.welch`, ...)":
        "SciPy has no array API version of them",
    "`scipy.signal.lfilter`, `sosfilt` with coefficients in lists":
        "SciPy asks for arrays of one library: pass tensors",
}


def resolve(path: str):
    """The object of a dotted name in tlgrad; AttributeError when there is none."""
    found = tl
    for part in path.split("."):
        found = getattr(found, part)
    return found


def numpy_names(module) -> list[str]:
    """Public functions of a NumPy namespace."""
    return sorted(n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))
                  and not isinstance(getattr(module, n), type))


def missing_reason() -> dict[str, str]:
    """NumPy name -> why tlgrad lacks it."""
    return {n: why for why, names in MISSING.items() for n in names.split()}


def _numpy_section(lines):
    lines += [
        "## NumPy", "",
        "The functions of `numpy`, `numpy.linalg` and `numpy.fft` have their names in `tl.numpy`, `tl.linalg` and "
        "`tl.fft`; the everyday ones are at the top level too. NumPy's own functions also work: `np.sin(x)` on a "
        "tensor or a traced value calls the tlgrad function. Missing:", "",
        "| NumPy | why, and what to use |", "| --- | --- |"]
    for why, names in MISSING.items():
        lines.append(f"| {', '.join(f'`{n}`' for n in sorted(names.split()))} | {why} |")
    have = [n for n in numpy_names(np) if hasattr(tn, n)]
    lines += ["", f"Present ({len(have)}): " + ", ".join(f"`{n}`" for n in have) + ".", ""]


def _scipy_section(lines):
    lines += ["## SciPy", ""]
    for name in ("special", "linalg", "stats", "signal", "integrate", "fft"):
        module = getattr(tl.scipy, name)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if isinstance(
            getattr(module, n), (module.Continuous, module.Poisson, module.Dirichlet, module.MultivariateNormal))]
        lines += [f"`scipy.{name}` is `tl.scipy.{name}`: " + ", ".join(f"`{n}`" for n in sorted(names)) + ".", ""]


def _mapped_section(lines, title, table):
    lines += [f"## {title}", "", f"| {title} | tlgrad |", "| --- | --- |"]
    for prefix, names in table.items():
        for theirs, ours in names.items():
            lines.append(f"| `{prefix}.{theirs}` | {f'`tl.{ours}`' if ours else 'missing: ' + REASONS[theirs]} |")
    lines.append("")


def text() -> str:
    """The page."""
    lines = ["# Names: NumPy, SciPy, JAX, PyTorch -> tlgrad", "",
             "Generated by `python3 tests/surface/names_table.py`; a test keeps it current.", ""]
    _numpy_section(lines)
    _scipy_section(lines)
    lines += ["## Libraries of the array API standard", "", LIBRARIES, "", "| what does not run | why |",
              "| --- | --- |",
              *[f"| {what} | {why} |" for what, why in NOT_RUNNING.items()], ""]
    _mapped_section(lines, "JAX", JAX)
    _mapped_section(lines, "PyTorch", TORCH)
    return "\n".join(lines)


if __name__ == "__main__":
    TARGET.write_text(text())
