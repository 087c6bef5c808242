"""llvmlite: LLVM IR text to machine code for this CPU, or for a lesser one."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import sys
import threading
from importlib.util import find_spec
from typing import Any, Callable, NamedTuple

from tlgrad.kernels import half, image
from tlgrad.kernels.cache import disk
from tlgrad.kernels.fork import around

#: feature sets that can be asked for instead of the host's, and a processor that has no more
RESTRICTED = {"ifma": "icelake-server", "avx512": "skylake-avx512", "avx2": "haswell", "baseline": "x86-64"}
#: what each of them has of the features that kernels are chosen by
FEATURES = {"ifma": ("avx2", "avx512dq", "avx512ifma"), "avx512": ("avx2", "avx512dq"), "avx2": ("avx2",),
            "baseline": ()}
#: lines of a module from which machine code is made the quick way (LLVM's level 0).  Level 2 takes more
#: than linear time there; its code is faster, up to 2x, only when more than 16 vectors are live at once
QUICK = 4000
#: held by whoever makes or loads machine code.  One lock for all of it: LLVM's symbols are those of the process,
#: and a fork waits until nothing is half made
compiling = threading.RLock()


_held = contextlib.ExitStack()


def _before_fork():
    _held.enter_context(compiling)
    # llvmlite's own lock: finalizers take it, in any thread
    lock = getattr(getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None), "_lock", None)
    if lock is not None:
        _held.enter_context(lock)


def _after_fork():
    _held.pop_all().close()


around(_before_fork, _after_fork)


def once(make: Callable) -> Callable:
    """`functools.cache` for what owns or hands out machine code: one thread makes it, the others get the same
    object.  A second one would be dropped, and its code with it, while calls of it are under way."""
    made: dict[tuple, Any] = {}

    @functools.wraps(make)
    def get(*args):
        if args not in made:
            with compiling:
                if args not in made:
                    made[args] = make(*args)
        return made[args]
    return get


@once
def llvm():
    """llvmlite's binding, ready to compile for this machine."""
    import llvmlite.binding as binding
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name, address in _symbols.items():
        binding.add_symbol(name, address)
    return binding


#: addresses of external symbols by name
_symbols: dict[str, int] = {}


def add_symbols(addresses: dict[str, int]):
    """Tell the loader where external symbols lie; before code that names them is loaded."""
    _symbols.update(addresses)
    if "llvmlite.binding" in sys.modules:
        for name, address in addresses.items():
            llvm().add_symbol(name, address)


def address_of(symbol: str) -> int | None:
    """Where an external symbol lies: one that was added, or one of the C library."""
    if symbol not in _symbols:
        function = getattr(ctypes.CDLL(None), symbol, None)
        return function and ctypes.cast(function, ctypes.c_void_p).value
    return _symbols[symbol]


class Description(NamedTuple):
    """What LLVM says of this machine and of itself: triple, name of the processor, its features as
    ``+avx2,-sse4a,...``, versions."""

    triple: str
    cpu: str
    features: str
    versions: str


def described() -> Description:
    """The description of this machine, from disk where it is known: so a process whose kernels are on disk does
    without LLVM."""
    seen = _seen()
    key = seen and disk.key("machine", *seen)
    kept = disk.read(key) if key else None
    if kept is not None:
        return Description(*json.loads(kept))
    import llvmlite
    binding = llvm()
    found = Description(binding.get_process_triple(), binding.get_host_cpu_name(),
                        binding.get_host_cpu_features().flatten(),
                        f"{binding.llvm_version_info} {llvmlite.__version__}")
    if key:
        disk.write(key, json.dumps(found).encode())
    return found


def _seen() -> tuple[str, ...] | None:
    """What the description depends on, as the system shows it: the first processor, and the file of LLVM."""
    try:
        stanza = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0]
        package = pathlib.Path(find_spec("llvmlite").origin).parent
        library = next((package / "binding").glob("libllvmlite*")).stat()
    except (OSError, AttributeError, StopIteration):
        return None
    kinds = ("vendor_id", "cpu family", "model", "stepping", "flags")
    lines = [line for line in stanza.splitlines() if line.startswith(kinds)]
    return (*lines, str(package), str(library.st_size), str(library.st_mtime_ns))


class Machine:
    """A target: its CPU name and features, vector width, compiler, and loader.

    `restrict` is a name in RESTRICTED, or "" for all that this machine has.
    """

    def __init__(self, restrict: str = ""):
        triple, cpu, features, versions = described()
        arm = triple.startswith(("aarch64", "arm64"))
        if restrict and (arm or restrict not in RESTRICTED):
            raise ValueError(f"TLGRAD_CPU={restrict}: expected " + (
                "nothing, on an AArch64 processor" if arm else f"one of {', '.join(RESTRICTED)}, or nothing"))
        has = {name[1:] for name in features.split(",") if name.startswith("+")}
        self.cpu, self.features = RESTRICTED.get(restrict) or cpu, "" if restrict else features
        level = restrict or ("avx512" if "avx512f" in has else "avx2" if "avx2" in has else "baseline")
        self.has = (FEATURES[restrict] if restrict else has).__contains__
        self.vector_bytes = {"ifma": 64, "avx512": 64, "avx2": 32}.get(level, 16)
        self.avx512 = self.vector_bytes == 64
        self.has_f16 = arm or "f16c" in has and restrict != "baseline"
        self.key = f"{triple} {self.cpu} {self.features} {versions} {QUICK}"

    @functools.cached_property
    def target(self):
        """LLVM's target machine."""
        return self._made(2)

    @functools.cached_property
    def _quick_target(self):
        return self._made(0)

    def _made(self, level: int):
        return llvm().Target.from_default_triple().create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, codemodel="jitdefault", jit=True)

    @functools.cached_property
    def _engine(self):
        return llvm().create_mcjit_compiler(llvm().parse_assembly(""), self.target)

    def compile(self, text: str) -> bytes:
        """Object code of a module."""
        with compiling:
            module = llvm().parse_assembly(text)
            module.verify()                  # code generation of a wrong module would end the process
            return self._target(text).emit_object(module)

    def function(self, text: str, symbol: str, compile: Callable[[str], bytes] | None = None) -> int:
        """Where the function `symbol` of a module lies: compiled here or from disk, under a name of its own."""
        name = symbol + hashlib.sha256(text.encode()).hexdigest()[:24]
        key = disk.key("function", self.key, text)
        with compiling:
            code = disk.read(key)
            if code is None:
                code = (compile or self.compile)(text.replace(f"@{symbol}(", f"@{name}("))
                disk.write(key, code)
            return self.load(code, name)

    def optimised(self, text: str):
        """A module after LLVM's scalar passes at -O2, which wide integers need; loops stay as written."""
        with compiling:
            module = llvm().parse_assembly(text)
            options = llvm().create_pipeline_tuning_options(speed_level=2)
            options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
            builder = llvm().create_pass_builder(self.target, options)
            builder.getModulePassManager().run(module, builder)
            return module

    def assembly(self, text: str) -> str:
        """The assembly of a module, for people and tests."""
        with compiling:
            return self._target(text).emit_assembly(llvm().parse_assembly(text))

    def _target(self, text: str):
        return self._quick_target if text.count("\n") >= QUICK else self.target

    @functools.cached_property
    def _halves(self) -> dict[str, int]:
        """Where the conversions of float16 lie that this processor has no instructions for."""
        return {symbol: self.load(self.compile(text), name) for symbol, (name, text) in half.FUNCTIONS.items()}

    def load(self, code: bytes, name: str) -> int:
        """Make object code executable; the address of `name`."""
        if not self.has_f16 and any(symbol.encode() in code for symbol in half.FUNCTIONS):
            add_symbols(self._halves)
        with compiling:
            try:
                return image.load(code, name, address_of)
            except image.NotTaken:
                self._engine.add_object_file(llvm().ObjectFileRef.from_data(code))
                self._engine.finalize_object()
                return self._engine.get_function_address(name)


@once
def host() -> Machine:
    """The machine that kernels are compiled for; TLGRAD_CPU, a name in RESTRICTED, restricts it."""
    return Machine(os.environ.get("TLGRAD_CPU", ""))
