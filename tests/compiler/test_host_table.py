"""The table of docs/compiler.md says which primitives run on the host, and no others do."""
import pathlib
import re

import host_steps

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "compiler.md"


def stated() -> dict[str, str]:
    """Primitive -> why it runs on the host."""
    rows = re.findall(r"^\| ([^|`]+) \| ((?:`\w+` ?)+)\|$", PAGE.read_text(), re.M)
    return {name: why for why, names in rows for name in re.findall(r"`(\w+)`", names)}


def test_the_table_lists_the_primitives_that_no_kernel_does():
    found = host_steps.found()
    assert found.keys() == stated().keys()
    for name, why in stated().items():
        if why.startswith(("complex", "float16")):
            kind = "complex128" if why.startswith("complex") else "float16"
            assert name in ("complex", "imag") or found[name] - {""} == {kind}, name
