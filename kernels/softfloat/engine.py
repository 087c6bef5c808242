"""Compiles kernel text with llvmlite, once per text, in memory; calls it on contiguous arrays."""
import ctypes
import threading


class Library:
    """Compiled functions by text. The modules stay alive as long as the library does.

    `optimise` runs LLVM's scalar and loop passes at -O2: wide integers need its combining.
    """

    def __init__(self):
        self._functions, self._modules, self._lock = {}, [], threading.Lock()
        self._machine = self._features = None

    @property
    def host(self):
        """``(cpu name, feature text)`` of this machine; features that the system hides are off."""
        import llvmlite.binding as llvm
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()

    def has(self, feature):
        """Whether this machine has a CPU feature, by LLVM's name for it."""
        if self._features is None:
            import llvmlite.binding as llvm
            self._features = dict(llvm.get_host_cpu_features())
        return bool(self._features.get(feature))

    def function(self, text, counts, pointers):
        """The function `k` of a module text, taking `counts` i64 and then `pointers` pointers."""
        with self._lock:
            if text not in self._functions:
                self._functions[text] = self._compile(text, counts, pointers)
            return self._functions[text]

    def _start(self):
        import llvmlite.binding as llvm
        if self._machine is None:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            cpu, features = self.host
            self._machine = llvm.Target.from_default_triple().create_target_machine(
                cpu=cpu, features=features, opt=2, codemodel="jitdefault", jit=True)
        return llvm

    def _optimised(self, text):
        llvm = self._start()
        module = llvm.parse_assembly(text)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        builder = llvm.create_pass_builder(self._machine, options)
        builder.getModulePassManager().run(module, builder)
        return llvm, module

    def _compile(self, text, counts, pointers):
        llvm, module = self._optimised(text)
        engine = llvm.create_mcjit_compiler(module, self._machine)
        engine.finalize_object()
        self._modules.append(engine)
        arguments = [ctypes.c_int64] * counts + [ctypes.c_void_p] * pointers
        return ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address("k"))

    def assembly(self, text):
        """The machine code of a module text, as assembler text."""
        _, module = self._optimised(text)
        return self._machine.emit_assembly(module)


LIBRARY = Library()
