"""safetensors files: exact for every dtype, readable by the reference library, and sceptical of damage."""
import json

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.errors import ArgumentError, DTypeError
from tlgrad.interop import safetensors as files
from tlgrad.softfloat import format as formats

SOFTWARE = [tl.binary128, tl.binary256, tl.Binary(6, 9), tl.Binary(19, 44), formats.float8_e4m3fnuz,
            formats.float4_e2m1fn, tl.tf32, tl.Complex(tl.binary128), tl.Complex(tl.Binary(6, 9))]
NATIVE = [tl.float64, tl.float32, tl.float16, tl.bfloat16, tl.float8_e4m3fn, tl.float8_e5m2, tl.int8, tl.uint64]


@pytest.mark.parametrize("dtype", SOFTWARE + NATIVE, ids=str)
def test_round_trip(dtype, tmp_path):
    x = tl.tensor([[1, 2, 3], [0, 1, 2]], dtype)
    files.save_file({"x": x, "one": x[0, 0], "none": x[:0]}, tmp_path / "x", {"about": "numbers"})
    back = files.load_file(tmp_path / "x")
    assert list(back) == ["x", "one", "none"] and files.metadata_of(tmp_path / "x") == {"about": "numbers"}
    for name, value in (("x", x), ("one", x[0, 0]), ("none", x[:0])):
        assert back[name].dtype == dtype and back[name].shape == value.shape
        assert tl.same_bits(back[name], value)


def test_words_that_are_not_numbers(tmp_path):
    """Payloads of NaN, negative zeros, the least subnormal: the bytes themselves."""
    words = np.array([[5, 0x7fff << 48 | 9], [0, 1 << 63], [1, 0]], np.uint64)
    x = tl.Tensor.own(np.ascontiguousarray(words).view(tl.tensor(0, tl.binary128).data.dtype).reshape(3))
    files.save_file({"x": x}, tmp_path / "x")
    assert np.array_equal(files.load_file(tmp_path / "x")["x"].words(), words)
    y = np.array([0x7ff0000000000001, 1 << 63], np.uint64).view(np.float64)
    files.save_file({"y": y}, tmp_path / "y")
    assert np.array_equal(files.load_file(tmp_path / "y")["y"].words(), y.view(np.uint64))


def test_the_reference_library_reads_and_writes_them(tmp_path):
    peer = pytest.importorskip("safetensors")
    numpy = pytest.importorskip("safetensors.numpy")
    x = tl.tensor(["0.1", "nan"], tl.binary128)
    files.save_file({"x": x, "y": tl.tensor([1.5, 2], tl.float32)}, tmp_path / "x")
    seen = numpy.load_file(tmp_path / "x")
    assert np.array_equal(seen["y"], [1.5, 2]) and seen["x"].tobytes() == x.data.tobytes()
    assert seen["x"].dtype == np.uint8 and seen["x"].shape == (2, 16)
    numpy.save_file({"z": np.arange(6, dtype=np.int16).reshape(2, 3)}, tmp_path / "z", {"a": "b"})
    assert files.load_file(tmp_path / "z")["z"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert dict(peer.deserialize((tmp_path / "x").read_bytes()))["x"]["dtype"] == "U8"


def test_damaged_files_are_refused(tmp_path):
    def write(header, body=b"", size=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        (tmp_path / "bad").write_bytes((size or len(text)).to_bytes(8, "little") + text + body)
        return tmp_path / "bad"

    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    quad = {"__metadata__": {"tlgrad": json.dumps({"x": "binary128"})}}
    for header, body, words in [
            ({"x": entry}, b"\0" * 4, "does not fit"), (b"{", b"", "header is not understood"),
            ({"x": {"dtype": "F32"}}, b"", "header is not understood"),
            ({"x": {**entry, "shape": [-2]}}, b"\0" * 8, "does not fit"),
            ({**quad, "x": entry}, b"\0" * 8, "not 16 bytes")]:
        with pytest.raises(ArgumentError, match=words):
            files.load_file(write(header, body))
    with pytest.raises(ArgumentError, match="longer than the file"):
        files.load_file(write({"x": entry}, size=1 << 40))
    with pytest.raises(DTypeError, match="F4 .* which tlgrad lacks|the dtype F4"):
        files.load_file(write({"x": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}, b"\0"))
    with pytest.raises(ArgumentError, match="must be text"):
        files.save_file({1: 2.0}, tmp_path / "x")
