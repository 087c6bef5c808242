"""The code of ``docs/precision.md`` runs."""
import pathlib
import re

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "precision.md"


def test_the_page_runs():
    scope = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)
    assert scope["low"].raised == ("inexact",) and scope["x"].dtype == "binary128"
