"""Files that other libraries write and read."""
from tlgrad.interop import safetensors

__all__ = ["safetensors"]
