"""The .deb files in a bare Debian 12, which debootstrap makes within the build folder from the mirror that this system's apt reads:
they are installed, trained with, compiled against and removed. Skipped (77) where that cannot be made.

    in_debian.py FOLDER_OF_THE_PACKAGES SCRATCH README
"""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

RELEASE = "bookworm"
# In a namespace of mounts, which ends with the command.
WITHIN = 'mount -t proc proc "$0/proc" && exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -c "$1"'
CONFIG = """
[data]
kind = "csv"
train = "flowers.csv"
label = "kind"
[[layers]]
type = "dense"
units = 8
activation = "relu"
[[layers]]
type = "dense"
units = 2
[train]
epochs = 3
batch_size = 16
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(lines LANGUAGES CXX)
find_package(gradus 0.1 REQUIRED)
add_executable(lines lines.cpp)
target_link_libraries(lines PRIVATE gradus::gradus)
"""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def archives():
    """(URI, suite) of each archive of the release that apt reads here, the main one first."""
    lines = output("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT) $(ORIGIN)", "Created-By: Packages")
    found = {tuple(line.split()[:2]) for line in lines.splitlines() if line.endswith(" main Debian")}
    return sorted((pair for pair in found if pair[1].startswith(RELEASE)), key=lambda pair: pair[1] != RELEASE)


def conditions():
    if os.geteuid() != 0:
        skip("a root of Debian is made by root alone")
    if not shutil.which("debootstrap"):
        skip("debootstrap is not installed")
    if f"VERSION_CODENAME={RELEASE}\n" not in pathlib.Path("/etc/os-release").read_text():
        skip(f"packages are for the system that made them, and this is not Debian {RELEASE}")
    if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
        skip("this container may not mount")
    if not archives() or archives()[0][1] != RELEASE:
        skip(f"apt reads no archive of {RELEASE}")


def copy_packages(source, target):
    """What apt has loaded is kept for the next time."""
    target.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*.deb"):
        if not (target / file.name).exists():
            shutil.copy(file, target)


def make_root(root, kept):
    shutil.rmtree(root, ignore_errors=True)
    kept.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["debootstrap", "--variant=minbase", f"--cache-dir={kept}", RELEASE, str(root), archives()[0][0]],
                          capture_output=True, text=True)
    if made.returncode:
        skip("debootstrap failed: " + made.stdout[-2000:] + made.stderr[-2000:])
    (root / "etc/apt/sources.list").write_text("".join(f"deb {uri} {suite} main\n" for uri, suite in archives()))
    settings = [line for line in output("apt-config", "dump", "Acquire").splitlines() if re.match("Acquire::https?::", line)]
    (root / "etc/apt/apt.conf.d/10as-outside").write_text("\n".join(settings) + "\n")
    (root / "etc/apt/apt.conf.d/20keep").write_text('APT::Keep-Downloaded-Packages "true";\n')
    for file in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(f"/{file}", root / file)
    copy_packages(kept, root / "var/cache/apt/archives")


class InDebian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root, kept = SCRATCH / "root", SCRATCH / "loaded"
        make_root(cls.root, kept)
        atexit.register(copy_packages, cls.root / "var/cache/apt/archives", kept)
        shutil.copytree(FOLDER, cls.root / "packages")
        cls.within("apt-get update")

    @classmethod
    def ended(cls, command):
        return subprocess.run(["unshare", "--mount", "sh", "-c", WITHIN, cls.root, command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")

    @classmethod
    def within(cls, command):
        done = cls.ended(command)
        if done.returncode:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    @classmethod
    def install(cls, *names):
        cls.within("apt-get install -y --no-install-recommends " + " ".join(names))

    def write(self, name, text):
        file = self.root / "work" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def test_1_another_architecture_is_refused(self):
        self.within("cd /packages && dpkg-deb -R libgradus0_*.deb /other && sed -i 's/^Architecture: .*/Architecture: arm64/' "
                    "/other/DEBIAN/control && dpkg-deb -b /other /other.deb")
        done = self.ended("dpkg --install /other.deb")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("package architecture (arm64) does not match system (amd64)", done.stdout)
        self.assertEqual(list(self.root.glob("usr/lib/*/libgradus*")), [])

    def test_2_the_command_trains(self):
        self.install("/packages/libgradus0_*.deb", "/packages/gradus_*.deb")
        self.assertNotEqual(self.ended("dpkg --status libllvm19").returncode, 0)
        self.write("flowers.csv", "a,b,kind\n" + "".join(f"{i % 7}.5,{i % 5},{int(i % 7 > 3)}\n" for i in range(64)))
        self.write("flowers.toml", CONFIG)
        self.assertIn("loss", self.within("cd /work && gradus train flowers.toml --output one"))
        self.assertTrue((self.root / "work/one").is_dir())

    def test_3_ranks(self):
        train = "cd /work && gradus launch -n 2 -- gradus train flowers.toml --set distribute.micro_shards=2 --output "
        without = self.ended(train + "without")
        self.assertNotEqual(without.returncode, 0)
        self.assertIn("gradus-ranks", without.stdout)
        self.install("/packages/gradus-ranks_*.deb")
        self.assertIn("loss", self.within(train + "two"))

    def test_4_twenty_lines(self):
        text = README.read_text(encoding="utf-8")
        lines, printed = re.search(r"## Twenty lines\n\n```cpp\n(.*?)```\n\nIt prints:\n\n```\n(.*?)```", text, re.S).groups()
        self.write("lines.cpp", lines)
        self.write("CMakeLists.txt", PROJECT)
        self.install("/packages/libgradus-dev_*.deb", "g++", "cmake", "make")
        for path in ("/usr/sbin:/usr/bin", "/sbin:/bin"):  # of which one leads CMake to /usr/lib, one to /lib
            self.within(f"cd /work && rm -rf build && PATH={path} cmake -B build -DCMAKE_BUILD_TYPE=Release")
        self.within("cmake --build /work/build")
        self.assertEqual(self.within("/work/build/lines"), printed)

    def test_5_removal_leaves_nothing(self):
        self.within("apt-get remove -y libgradus0")
        self.assertEqual([file for file in self.root.glob("usr/**/*gradus*")], [])


if __name__ == "__main__":
    FOLDER, SCRATCH, README = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    conditions()
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
