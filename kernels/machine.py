"""llvmlite: LLVM IR text to machine code for this CPU, or for a lesser one."""
from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from typing import Any, Callable

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


class Machine:
    """A target: its CPU name and features, vector width, compiler, and loader.

    `restrict` is a name in RESTRICTED, or "" for all that this machine has.
    """

    def __init__(self, restrict: str = ""):
        import llvmlite
        import llvmlite.binding as binding
        self.binding = binding
        arm = binding.get_process_triple().startswith(("aarch64", "arm64"))
        if restrict and (arm or restrict not in RESTRICTED):
            raise ValueError(f"TLGRAD_CPU={restrict}: expected " + (
                "nothing, on an AArch64 processor" if arm else f"one of {', '.join(RESTRICTED)}, or nothing"))
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        host = binding.get_host_cpu_features()
        self.cpu = RESTRICTED.get(restrict) or binding.get_host_cpu_name()
        self.features = "" if restrict else host.flatten()
        has = dict.fromkeys(["avx512f", "avx2", "f16c"], False) | dict(host)
        level = restrict or ("avx512" if has["avx512f"] else "avx2" if has["avx2"] else "baseline")
        self.has = FEATURES[restrict].__contains__ if restrict else lambda name: bool(has.get(name))
        self.vector_bytes = {"ifma": 64, "avx512": 64, "avx2": 32}.get(level, 16)
        self.avx512 = self.vector_bytes == 64
        self.has_f16 = arm or bool(has["f16c"]) and restrict != "baseline"
        target = binding.Target.from_default_triple()
        self.target, self.quick_target = [
            target.create_target_machine(cpu=self.cpu, features=self.features, opt=level, codemodel="jitdefault",
                                         jit=True) for level in (2, 0)]
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(""), self.target)
        self.key = (f"{target.triple} {self.cpu} {self.features} {binding.llvm_version_info} "
                    f"{llvmlite.__version__} {QUICK}")

    def compile(self, text: str) -> bytes:
        """Object code of a module."""
        with compiling:
            return self._target(text).emit_object(self.binding.parse_assembly(text))

    def optimised(self, text: str):
        """A module after LLVM's scalar passes at -O2, which wide integers need; loops stay as written."""
        with compiling:
            module = self.binding.parse_assembly(text)
            options = self.binding.create_pipeline_tuning_options(speed_level=2)
            options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
            builder = self.binding.create_pass_builder(self.target, options)
            builder.getModulePassManager().run(module, builder)
            return module

    def assembly(self, text: str) -> str:
        """The assembly of a module, for people and tests."""
        with compiling:
            return self._target(text).emit_assembly(self.binding.parse_assembly(text))

    def _target(self, text: str):
        return self.quick_target if text.count("\n") >= QUICK else self.target

    def load(self, code: bytes, name: str) -> int:
        """Make object code executable; the address of `name`."""
        with compiling:
            self.engine.add_object_file(self.binding.ObjectFileRef.from_data(code))
            self.engine.finalize_object()
            return self.engine.get_function_address(name)


def add_symbols(addresses: dict[str, int]):
    """Tell the loader where external symbols lie; before code that names them is loaded."""
    import llvmlite.binding as binding
    for name, address in addresses.items():
        binding.add_symbol(name, address)


@once
def host() -> Machine:
    """The machine that kernels are compiled for; TLGRAD_CPU, a name in RESTRICTED, restricts it."""
    return Machine(os.environ.get("TLGRAD_CPU", ""))
