#!/bin/sh
# Unpacks the libraries that Gradus is linked with, for 64-bit ARM, into build/arm64: tools/arm_libraries.sh
# The preset aarch64 builds with them, and qemu runs programs with them. apt reads the lists of that architecture into a
# folder of its own and checks signatures by Debian's keys; nothing is installed beside the machine's own libraries.
set -eu
cd "$(dirname "$0")/.."

folder=$PWD/build/arm64
# The system's own release and mirror.
. /etc/os-release
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
  sed -n '/security/d; s/ Debian$//p' | head -n 1)}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
headers="llvm-19-dev libgtest-dev zlib1g-dev libjpeg62-turbo-dev libpng-dev libprotobuf-dev libutf8proc-dev libpcre2-dev
         libcli11-dev libtomlplusplus-dev nlohmann-json3-dev"
libraries="libllvm19 zlib1g libjpeg62-turbo libpng16-16 libprotobuf32 libprotobuf-lite32 libutf8proc2 libpcre2-8-0 libtomlplusplus3
           libedit2 libtinfo6 libxml2 libicu72 liblzma5 libzstd1 libbsd0 libmd0 libffi8 libz3-4
           libc6 libstdc++6 libgcc-s1"

fail() {
  echo "arm libraries: NOT UNPACKED: $1" >&2
  exit 1
}

[ "$VERSION_CODENAME $headers $libraries" != "$(cat "$folder/installed" 2>/dev/null)" ] || exit 0
[ "$ID" = debian ] || fail "this is no Debian; elsewhere GRADUS_ARM_LIBRARIES names a folder with the libraries"
[ -n "$mirror" ] || fail "apt knows no mirror of Debian (DEBIAN_MIRROR names one)"
[ -e "$keys" ] || fail "$keys is not there (the package debian-archive-keyring brings it)"

echo "arm libraries: unpacking the arm64 packages (about 100 MB from $mirror) into build/arm64"
rm -rf "$folder"
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/apt/packages"
echo "deb [arch=arm64 signed-by=$keys] $mirror $VERSION_CODENAME main" > "$folder/apt/sources.list"
apt_get() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::Etc::SourceList="$folder/apt/sources.list" \
    -o Dir::Etc::SourceParts=- -o Dir::State::Status=/dev/null -o Dir::State::Lists="$folder/apt/lists" \
    -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=root "$@"
}
apt_get update || fail "apt cannot read the lists of arm64 from $mirror (DEBIAN_MIRROR names another)"
(cd "$folder/apt/packages" && apt_get download $headers $libraries) ||
  fail "apt cannot load all of: $headers $libraries"
# Static libraries stay out, but for GoogleTest, which has no others: those of LLVM alone take 300 MB.
for package in "$folder"/apt/packages/*.deb; do
  case $package in
    */libgtest-dev_*) dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" ;;
    *) dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --exclude='*.a' ;;
  esac
done
rm -rf "$folder/apt"
# Links to places in the system's root would lead out of the folder.
find "$folder" -type l | while read -r link; do
  to=$(readlink "$link")
  case $to in /*) ln -sfn "$folder$to" "$link" ;; esac
done
# Object files of exported steps are linked by tools of this architecture where qemu runs the tests.
mkdir -p "$folder/tools"
for tool in ld objcopy; do ln -sf "$(command -v aarch64-linux-gnu-$tool)" "$folder/tools/$tool"; done
echo "$VERSION_CODENAME $headers $libraries" > "$folder/installed"
