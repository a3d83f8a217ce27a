#!/bin/sh
# Packs a build tree into wheels: make.sh FOLDER BUILD, from the project's root. One is for the Python of build/python-venv,
# one by the stable ABI for every Python from 3.12 on. auditwheel brings in what the library needs beside the C and C++
# libraries (protobuf, libjpeg, libpng, ...) and names the systems that the wheel fits.
set -eu
folder=$1
build=$(realpath "$2")
newer=$PWD/build/python-3.13/venv/bin/python  # tools/setup.sh python unpacks it
PATH=$PWD/build/python-venv/bin:$PATH
plain=$folder/plain
rm -rf "$plain" "$folder"/*.whl

pack() {  # PYTHON SETTING...
  by=$1
  shift
  pip --python "$by" wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$plain" \
    --config-settings="cmake.define.GRADUS_BUILD=$build" "$@" ./python
}

own=$(command -v python)
if python -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
  newer=$own
else
  pack "$own"
fi
if [ -x "$newer" ]; then
  pack "$newer" --config-settings=wheel.py-api=cp312 --config-settings=cmake.define.GRADUS_STABLE_ABI=ON
else
  echo "wheel: none by the stable ABI, for which tools/setup.sh python unpacks a newer Python" >&2
fi
for wheel in "$plain"/*.whl; do auditwheel repair --wheel-dir "$folder" "$wheel"; done
rm -rf "$plain"
ls -l "$folder"/*.whl
