#!/bin/sh
# Packs a build tree into .deb files for the system on which it runs: make.sh FOLDER BUILD. dpkg's own tools find the packages that
# each file needs (dpkg-shlibdeps), and write its description from control.in.
set -eu
folder=$1
build=$2
trees=$folder/trees
rm -rf "$folder"
mkdir -p "$trees"
cp -r "$build/packaged/debian" "$trees/debian"
cd "$trees"
umask 022
library=$(sed -n 's/^Package: \(libgradus[0-9]*\)$/\1/p' debian/control)
version=$(dpkg-parsechangelog -S Version)

install_tree() {  # PACKAGE: everything but DEBIAN/control
  cmake --install "$build" --component "$1" --prefix "$PWD/debian/$1/usr" --strip >/dev/null
  documents=debian/$1/usr/share/doc/$1
  mkdir -p "$documents" "debian/$1/DEBIAN"
  cp debian/copyright "$documents"
  gzip -9n < debian/changelog > "$documents/changelog.Debian.gz"
  find "debian/$1/usr" -name '*.so' -type f -exec chmod 644 {} +
  find "debian/$1/usr" -name '*.so.*' -type f -exec chmod 644 {} +
  (cd "debian/$1" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
}

pack() {  # PACKAGE: after the library, by whose shlibs file the others find it
  programs=$(find "debian/$1/usr/bin" "debian/$1/usr/lib" -type f \( -path '*/bin/*' -o -name '*.so*' \) 2>/dev/null || true)
  [ -z "$programs" ] || dpkg-shlibdeps -T"debian/$1.substvars" -S"debian/$library" $programs
  touch "debian/$1.substvars"
  dpkg-gencontrol -p"$1" -P"debian/$1" -T"debian/$1.substvars" -O"debian/$1/DEBIAN/control"
  dpkg-deb --root-owner-group -Zxz --build "debian/$1" .. >/dev/null
}

install_tree "$library"
echo "libgradus ${library#libgradus} $library (= $version)" > "debian/$library/DEBIAN/shlibs"
echo "activate-noawait ldconfig" > "debian/$library/DEBIAN/triggers"
for package in libgradus-dev gradus gradus-ranks; do install_tree $package; done
if ! [ -d debian/gradus-ranks/usr/lib ]; then
  echo "packages: without gradus-ranks, since UCX and gRPC were not there to build it (libucx-dev, libgrpc++-dev)" >&2
  rm -r debian/gradus-ranks
fi
for package in "$library" libgradus-dev gradus gradus-ranks; do
  [ ! -d "debian/$package" ] || pack "$package"
done
cd ..
rm -r "$trees"
ls -l "$folder"/*.deb
