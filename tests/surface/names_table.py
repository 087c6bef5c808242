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
                "switch": "switch", "select": "where", "select_n": "numpy.select",
                "stop_gradient": "stop_gradient",
                "top_k": "top_k", "dot_general": "einsum", "dot": "dot", "batch_matmul": "matmul",
                "conv_general_dilated": "conv.conv", "conv_transpose": "conv.conv_transpose",
                "conv_general_dilated_patches": "conv.patches", "reduce_window": "conv.max_pool", "map": "vmap",
                "custom_linear_solve": "linalg.gmres", "custom_root": "root", "dynamic_slice": "dynamic_slice",
                "dynamic_update_slice": "dynamic_update_slice", "convert_element_type": "convert",
                "broadcast_in_dim": "expand", "rev": "flip", "rem": "remainder", "div": "divide",
                "mul": "multiply",
                "sub": "subtract", "neg": "negative", "clamp": "clip", "eq": "equal", "ne": "not_equal",
                "ge": "greater_equal",
                "gt": "greater", "le": "less_equal", "lt": "less", "is_finite": "isfinite", "integer_pow": "pow",
                "population_count": "numpy.bitwise_count", "cumsum": "cumsum", "cumprod": "cumprod",
                "reduce_sum": "sum", "reduce_prod": "prod", "reduce_max": "max", "reduce_min": "min",
                "reduce_and": "all", "reduce_or": "any", "rsqrt": "rsqrt", "erf": "special.erf",
                "erf_inv": "special.erfinv", "igamma": "special.gammainc", "igammac": "special.gammaincc",
                "bessel_i0e": "special.i0e", "bessel_i1e": "special.i1e", "complex": "numpy.real",
                "associative_scan": "", "cummax": "", "cummin": "", "cumlogsumexp": "", "clz": "",
                "bitcast_convert_type": "", "reduce_precision": "", "sort_key_val": "", "psum": "",
                "ragged_dot": "",
                "approx_max_k": "", "optimization_barrier": ""},
    "jax.nn": {"relu": "relu", "sigmoid": "sigmoid", "softplus": "softplus", "softmax": "softmax",
               "log_softmax": "log_softmax", "logsumexp": "logsumexp", "one_hot": "one_hot", "silu": "silu",
               "gelu": "gelu", "dot_product_attention": "numpy.scaled_dot_product_attention",
               "scaled_matmul": ""} | {n: f"numpy.{n}" for n in (
                   "elu celu selu relu6 leaky_relu hard_tanh log_sigmoid soft_sign mish glu hard_sigmoid "
                   "hard_silu "
                   "hard_swish squareplus sparse_plus sparse_sigmoid swish log1mexp logmeanexp "
                   "standardize").split()},
    "jax.random": {n: f"random.{n}" for n in (
        "key split fold_in bits uniform normal randint bernoulli categorical choice permutation exponential gamma "
        "loggamma beta dirichlet poisson truncated_normal gumbel laplace logistic cauchy multivariate_normal "
        "pareto "
        "rademacher t chisquare weibull_min ball orthogonal lognormal rayleigh maxwell double_sided_maxwell "
        "geometric binomial multinomial f triangular wald generalized_normal").split()}
    | {"PRNGKey": "random.key", "key_data": "", "clone": ""},
    "jax.scipy.special": {n: f"special.{n}" for n in (
        "beta betainc betaln digamma entr erf erfc erfinv exp1 expi expit expn factorial fresnel gamma gammainc "
        "gammaincc gammaln gammasgn hyp1f1 hyp2f1 i0 i0e i1 i1e kl_div log_ndtr log_softmax logit logsumexp "
        "multigammaln boxcox boxcox1p comb erfcx loggamma ndtr ndtri owens_t poch polygamma rel_entr sici "
        "softmax spence xlog1py xlogy zeta dawsn"
        ).split()} | {"bessel_jn": "special.jn", "bernoulli": "", "sph_harm_y": "", "wofz": ""},
    "jax.scipy.stats": {n: f"scipy.stats.{n}" for n in (
        "beta cauchy chi2 dirichlet expon gamma laplace logistic multivariate_normal norm poisson t uniform "
        "bernoulli binom geom gumbel_l gumbel_r nbinom pareto truncnorm vonmises gennorm betabinom wrapcauchy"
        ).split()} | {"multinomial": "", "gaussian_kde": "", "mode": "", "rankdata": "", "sem": ""},
    "jax.scipy": {"ndimage.map_coordinates": "image.map_coordinates", "signal.convolve": "scipy.signal.convolve",
                  "signal.correlate": "scipy.signal.correlate", "signal.fftconvolve": "scipy.signal.fftconvolve",
                  "signal.stft": "", "integrate.trapezoid": "scipy.integrate.trapezoid",
                  "optimize.minimize": "argmin", "linalg.expm": "scipy.linalg.expm",
                  "linalg.sqrtm": "scipy.linalg.sqrtm",
                  "linalg.schur": "", "linalg.polar": "",
                  "linalg.toeplitz": "scipy.linalg.toeplitz",
                  "sparse.linalg.cg": "linalg.cg", "sparse.linalg.gmres": "linalg.gmres",
                  "sparse.linalg.bicgstab": ""},
    "jax.image": {"resize": "image.resize", "scale_and_translate": ""},
}

TORCH = {
    "torch": {
        "tensor": "tensor", "cat": "concatenate", "stack": "stack", "permute": "permute_dims",
        "unsqueeze": "expand_dims", "flip": "flip", "roll": "roll", "where": "where", "clamp": "clip",
        "matmul": "matmul", "mm": "matmul", "bmm": "matmul", "einsum": "einsum", "tensordot": "tensordot",
        "gather": "take_along_axis", "index_select": "take", "scatter_add": "numpy.put_along_axis",
        "masked_select": "numpy.extract", "topk": "top_k", "sort": "sort", "argsort": "argsort",
        "unique": "numpy.unique", "bincount": "numpy.bincount", "histogramdd": "numpy.histogramdd",
        "cumsum": "cumsum", "cumprod": "cumprod", "logsumexp": "logsumexp", "norm": "norm", "std": "std",
        "var": "var", "quantile": "numpy.quantile", "searchsorted": "searchsorted", "bucketize": "numpy.digitize",
        "meshgrid": "meshgrid", "tril": "tril", "triu": "triu", "diag": "diag", "kron": "kron", "cdist": "",
        "lerp": "", "cummax": "", "erf": "special.erf", "lgamma": "special.gammaln", "digamma": "special.digamma",
        "polygamma": "special.polygamma", "igamma": "special.gammainc", "igammac": "special.gammaincc",
        "no_grad": "stop_gradient", "compile": "run", "vmap": "vmap", "func.grad": "grad",
        "func.jacrev": "jacrev", "func.jacfwd": "jacfwd", "func.hessian": "hessian", "func.jvp": "jvp",
        "func.vjp": "vjp", "func.linearize": "linearize", "autograd.Function": "custom_vjp",
        "utils.checkpoint.checkpoint": "checkpoint", "Tensor.backward": "record", "stft": ""},
    "torch.nn.functional": {
        "relu": "relu", "gelu": "gelu", "silu": "silu", "softmax": "softmax", "log_softmax": "log_softmax",
        "softplus": "softplus", "one_hot": "one_hot", "conv1d": "conv.conv", "conv2d": "conv.conv",
        "conv3d": "conv.conv", "conv_transpose2d": "conv.conv_transpose", "max_pool2d": "conv.max_pool",
        "avg_pool2d": "conv.avg_pool", "lp_pool2d": "conv.sum_pool", "unfold": "conv.patches", "pad": "pad",
        "leaky_relu": "numpy.leaky_relu", "elu": "numpy.elu", "hardtanh": "numpy.hard_tanh", "mish": "numpy.mish",
        "logsigmoid": "numpy.log_sigmoid", "glu": "numpy.glu", "hardsigmoid": "numpy.hard_sigmoid",
        "hardswish": "numpy.hard_swish", "softsign": "numpy.softsign", "celu": "numpy.celu", "selu": "numpy.selu",
        "relu6": "numpy.relu6", "interpolate": "image.interpolate", "grid_sample": "image.grid_sample",
        "scaled_dot_product_attention": "numpy.scaled_dot_product_attention", "layer_norm": "numpy.standardize",
        "huber_loss": "special.huber", "kl_div": "special.kl_div", "embedding": "take", "normalize": "",
        "affine_grid": "", "cross_entropy": "", "ctc_loss": "", "pixel_shuffle": "rearrange", "dropout": ""},
    "torch.linalg": {n: f"linalg.{n}" for n in "solve inv det slogdet cholesky qr eigh eigvalsh eig eigvals svd "
                     "svdvals pinv lstsq matrix_power matrix_rank norm cond vecdot multi_dot tensorsolve "
                     "tensorinv "
                     "cross vector_norm matrix_norm diagonal".split()}
    | {"solve_triangular": "linalg.triangular_solve", "lu": "linalg.lu", "matrix_exp": "linalg.expm"},
    "torch.special": {n: f"special.{n}" for n in (
        "digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln i0 i0e i1 i1e log1p "
        "log_ndtr "
        "log_softmax logit logsumexp multigammaln ndtr ndtri polygamma psi round sinc softmax xlog1py xlogy zeta"
        ).split()} | {"bessel_j0": "special.j0", "bessel_j1": "special.j1", "modified_bessel_k0": "special.k0",
                      "scaled_modified_bessel_k1": "special.k1e", "airy_ai": ""},
}

#: names of JAX's namespaces that are no functions of numbers
JAX_OTHERS = ("get_scaled_dot_general_config scaled_dot_general identity key_dtype key_impl wrap_key_data tanh "
"sparse_plus "
              "jit partial").split()

REASONS = {
    "block_until_ready": "use tl.block where results are awaited", "pmap": "one device a call",
    "psum": "one device a call", "device_put": "the device belongs to the call",
    "associative_scan": "an ordered scan is tl.scan", "bicgstab": "use tl.linalg.gmres",
    "cdist": "write tl.norm(x[:, None] - y, axis=-1)", "lerp": "write a + t * (b - a)",
    "cummax": "write tl.scan with tl.maximum", "cummin": "write tl.scan with tl.minimum",
    "cumlogsumexp": "write tl.scan with tl.logaddexp", "clz": "use tl.numpy.frexp",
    "bitcast_convert_type": "the words of a tensor are t.words(); traced values have none",
    "reduce_precision": "use tl.convert there and back", "sort_key_val": "use tl.take_along_axis with tl.argsort",
    "ragged_dot": "write one tl.matmul a group", "approx_max_k": "tl.top_k is exact",
    "optimization_barrier": "the program defines the order", "scaled_matmul": "write the scales as products",
    "key_data": "a key is a tensor of its words", "clone": "keys are values and may be used again",
    "bernoulli": "integers: use scipy.special.bernoulli", "sph_harm_y": "write it with tl.scipy.special.poch",
    "wofz": "no complex error function", "gaussian_kde": "write tl.mean of tl.scipy.stats.norm.pdf",
    "mode": "use tl.numpy.unique_counts", "rankdata": "use tl.argsort twice",
    "sem": "write tl.std(x, correction=1) / n**0.5",
    "multinomial": "write it with tl.scipy.special.gammaln and xlogy",
    "signal.stft": "frame with tl.conv.patches, then tl.fft.rfft",
    "stft": "frame with tl.conv.patches, then tl.fft.rfft",
    "linalg.polar": "write it with tl.linalg.svd",
    "linalg.schur": "vectors of close eigenvalues are not unique; use tl.linalg.eig",
    "sparse.linalg.bicgstab": "use tl.linalg.gmres", "scale_and_translate": "use tl.image.map_coordinates",
    "normalize": "write x / tl.norm(x, axis=1, keepdims=True)", "affine_grid": "write tl.linspace and tl.matmul",
    "cross_entropy": "write -tl.take_along_axis(tl.log_softmax(x), labels)", "ctc_loss": "write tl.scan",
    "dropout": "write x * tl.random.bernoulli(key, p, x.shape) / p", "airy_ai": "no derivative is built",
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
        names = getattr(tl.scipy, name).__all__
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
