"""Whether ONNX's own checker, with shape inference, takes every model of a folder: check_exports.py FOLDER"""
import pathlib
import sys

import onnx


def main():
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
    if not files:
        sys.exit(f"{sys.argv[1]} has no models")
    for file in files:
        onnx.checker.check_model(str(file), full_check=True)
        print(f"{file.name}: fine")


if __name__ == "__main__":
    main()
