#!/bin/sh
# Installs a PJRT plugin of the processor for the tests of accelerators: tools/xla_plugin.sh
# It comes from one Python package, pinned by version and hash, into an environment of its own, .venv-xla. Nothing else
# needs it: without it those tests are skipped, and say so.
set -eu
cd "$(dirname "$0")/.."

package=lammps-jax-pjrt-cpu
version=0.11.2
hash=1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1
environment=.venv-xla
plugin=$environment/pjrt_cpu_plugin.so
stamp=$environment/$package-$version
[ -e "$stamp" ] && [ -e "$plugin" ] && exit 0

warn() {
  echo "xla plugin: NOT INSTALLED: $1; the tests of accelerators are skipped." >&2
  exit 0
}
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || warn "there is none for $(uname -s) on $(uname -m)"
echo "xla plugin: installing the Python package $package $version (63 MB) into $environment"
python3 -m venv --clear "$environment" || warn "python3 -m venv fails (tools/setup.sh installs python3-venv)"
requirement=$environment/requirement.txt
echo "$package==$version --hash=sha256:$hash" > "$requirement"
"$environment/bin/pip" install --quiet --no-deps --require-hashes --only-binary :all: -r "$requirement" ||
  warn "the Python package $package $version could not be installed: is PyPI within reach?"
for file in "$environment"/lib/python3*/site-packages/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so; do
  [ -e "$file" ] || warn "the package holds no plugin"
  ln -sf "${file#"$environment"/}" "$plugin"
done
touch "$stamp"
