"""Bodies written once, importable as ``tlgrad.kernels``; they know nothing of tracing."""
