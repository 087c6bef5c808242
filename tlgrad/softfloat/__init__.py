"""Software floats: formats and exact arithmetic on words. Knows nothing of tracing."""
