"""The committed tables: `numbers` for coefficients and constants, `table` for what a body
indexes."""
import functools
import json
import pathlib

from ..expr import Table


@functools.cache
def _file():
    path = pathlib.Path(__file__).with_name("tables.json")
    return json.loads(path.read_text())


@functools.cache
def numbers(name):
    """The tuple of floats called `name` in `tables.json`."""
    return tuple(map(float.fromhex, _file()[name]))


@functools.cache
def table(name):
    """`numbers(name)` as a `Table`."""
    return Table(name, numbers(name))
