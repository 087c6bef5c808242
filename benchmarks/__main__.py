"""``python3 -m benchmarks NAME [ARGUMENT ...]`` runs ``benchmarks.NAME.main(arguments)``."""
import importlib
import pathlib
import sys


def main(arguments):
    files = pathlib.Path(__file__).parent.glob("[a-z]*.py")
    names = sorted(path.stem for path in files if "\ndef main(" in path.read_text())
    if not arguments or arguments[0] not in names:
        sys.exit(f"usage: python3 -m benchmarks NAME [ARGUMENT ...], NAME one of: {', '.join(names)}")
    importlib.import_module(f"benchmarks.{arguments[0]}").main(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
