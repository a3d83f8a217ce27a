#!/bin/sh
# Runs small programs of Keras with a version of it, in an environment of its own: tools/keras_versions.sh VERSION [TESTS...]
set -eu
cd "$(dirname "$0")/.."
version=${1:?usage: tools/keras_versions.sh VERSION [TESTS...]}
shift
environment=build/keras-$version
packages="keras==$version $(grep -E '^(numpy|ml_dtypes)==' python/requirements.txt | tr '\n' ' ')"
if [ "$(cat "$environment/installed" 2>/dev/null)" != "$packages" ]; then
  echo "keras_versions: installing $packages into $environment"
  "${PYTHON:-python3}" -m venv "$environment"
  # shellcheck disable=SC2086 # a list of packages
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-compile $packages
  echo "$packages" > "$environment/installed"
fi
PYTHONPATH="${GRADUS_PYTHON_PACKAGE:-$PWD/build/release/python}" PYTHONDONTWRITEBYTECODE=1 \
  exec "$environment/bin/python" python/tests/keras/versions/programs.py "$@"
