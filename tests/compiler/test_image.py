"""Object code is loaded without LLVM, to the same words; what that loader does not know goes to LLVM."""
import ctypes
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from tlgrad.kernels import image, machine

pytestmark = pytest.mark.skipif(not image.supported(), reason="objects are not ELF for x86-64 here")
TEXT = """
@name_table = private constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
declare double @fmod(double, double)
@name_outside = external global double
define void @name(ptr %slots, i64 %lo, i64 %hi) {
  %x = load ptr, ptr %slots
  %v = load double, ptr %x
  %place = getelementptr double, ptr @name_table, i64 %hi
  %t = load double, ptr %place
  %o = load double, ptr @name_outside
  %s = fadd double %v, %t
  %p = fmul double %s, 0x400921fb54442d18
  %m = call double @fmod(double %p, double %o)
  store double %m, ptr %x
  ret void
}
"""


def run(address, number):
    """The kernel on one number."""
    value = np.array([number])
    slots = np.array([value.ctypes.data], np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)(slots.ctypes.data, 0, 2)
    return value[0]


def test_constants_tables_and_outside_symbols_as_by_llvm():
    outside = np.array([2.25])
    found = []
    for name in ("image_one", "image_two"):
        machine.add_symbols({f"{name}_outside": outside.ctypes.data})
        code = machine.host().compile(TEXT.replace("name", name))
        if name == "image_one":
            address = image.load(code, name, machine.address_of)
        else:
            engine = machine.host()._engine
            engine.add_object_file(machine.llvm().ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(name)
        found.append([run(address, x) for x in (0.1, -7.0, 1e10)])
    assert found[0] == found[1] and found[0][0] == np.fmod((0.1 + 3.5) * np.pi, 2.25)


def test_what_the_loader_does_not_know_is_not_taken(monkeypatch):
    text = TEXT.replace("name", "image_three")
    code = machine.host().compile(text)
    with pytest.raises(image.NotTaken, match="symbol image_three_outside"):
        image.load(code, "image_three", lambda symbol: None)
    objects = image.Object(code)
    table = next(s for s in objects.sections if s[1] == image.RELA and objects.sections[s[6]][0] != ".eh_frame")
    other = bytearray(code)
    struct.pack_into("<I", other, table[3] + 8, 9)                   # R_X86_64_GOTPCREL
    with pytest.raises(image.NotTaken, match="relocation of type 9"):
        image.load(bytes(other), "image_three", lambda symbol: 0)
    for broken in (b"", b"\x7fELF\x01" + bytes(80), code[:16] + b"\x03" + code[17:]):
        with pytest.raises(image.NotTaken, match="not a relocatable object"):
            image.load(broken, "image_three", lambda symbol: 0)
    outside = np.array([2.25])
    machine.add_symbols({"image_three_outside": outside.ctypes.data})
    monkeypatch.setattr(image, "supported", lambda: False)           # then LLVM loads it
    assert run(machine.host().load(code, "image_three"), 0.1) == np.fmod((0.1 + 3.5) * np.pi, 2.25)


PROGRAM = """
import sys, numpy as np, tlgrad as tl
x = tl.tensor(np.linspace(-2, 2, 999).reshape(27, 37))
f = tl.run(lambda x: tl.exp(x) * tl.sin(x) + tl.sum(tl.tanh(x), axis=1, keepdims=True))
for _ in range(6):
    y = f(x)
g = tl.run(lambda x: x * 1.5)
for _ in range(6):
    z = g(x[0])
eager = tl.erf(x) + tl.cosh(x)
print(y.words().tobytes().hex()[:64], (z.words().tobytes() + eager.words().tobytes()).hex(), hasattr(g, "native"),
      "llvmlite" in sys.modules, tl.cache_info().compiles)
"""


def test_a_process_with_a_warm_disk_cache_does_without_llvm(tmp_path):
    env = {**os.environ, "TLGRAD_CACHE_DIR": str(tmp_path)}
    cold, warm = (subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True,
                                 check=True).stdout.split() for _ in range(2))
    assert cold[:3] == warm[:3] and cold[2] == "True" and cold[3] == "True"
    assert warm[3:] == ["False", "0"]


def test_a_machine_is_described_from_disk_as_by_llvm():
    known, fresh = machine.described(), machine.llvm()
    assert (known.triple, known.cpu, known.features) == (
        fresh.get_process_triple(), fresh.get_host_cpu_name(), fresh.get_host_cpu_features().flatten())
