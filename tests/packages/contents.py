"""The .deb files themselves: their sizes, the packages that they need, names that the library exports, what lintian says.

    contents.py FOLDER_OF_THE_PACKAGES
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

MOST_BYTES, MOST_INSTALLED = 30e6, 90e6
ALL = {"libgradus0", "libgradus-dev", "gradus", "gradus-ranks"}


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def field(package, name):
    return run("dpkg-deb", "--field", package, name).strip()


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = {field(file, "Package"): file for file in FOLDER.glob("*.deb")}
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.root = pathlib.Path(cls.scratch.name)
        for file in cls.files.values():
            run("dpkg-deb", "--extract", file, cls.root)

    def needs(self, package):
        return {need.split()[0]: need for need in field(self.files[package], "Depends").split(", ")}

    def test_names(self):
        architecture = run("dpkg", "--print-architecture").strip()
        self.assertEqual(set(self.files), ALL)
        for name, file in self.files.items():
            version = field(file, "Version")
            self.assertEqual(file.name, f"{name}_{version}_{architecture}.deb")

    def test_sizes(self):
        self.assertLess(sum(file.stat().st_size for file in self.files.values()), MOST_BYTES)
        self.assertLess(sum(int(field(file, "Installed-Size")) for file in self.files.values()) * 1024, MOST_INSTALLED)

    def test_dependencies(self):
        version = field(self.files["gradus"], "Version")
        for name in ALL - {"libgradus0"}:
            self.assertEqual(self.needs(name)["libgradus0"], f"libgradus0 (= {version})", name)
        self.assertLessEqual({"libc6", "libstdc++6", "zlib1g", "libpcre2-8-0"}, set(self.needs("libgradus0")))
        self.assertFalse(any("llvm" in need.lower() for need in self.needs("libgradus0")))
        self.assertIn("libucx0", self.needs("gradus-ranks"))

    def test_files(self):
        (library,) = self.root.glob("usr/lib/*/libgradus.so.0")
        folder = library.parent
        self.assertEqual((folder / "libgradus.so").readlink(), pathlib.Path(library.name))
        for file in ("gradus/libgradus_ucx.so", "gradus/libgradus_grpc.so", "cmake/gradus/gradus-config.cmake"):
            self.assertTrue((folder / file).is_file(), file)
        self.assertTrue((self.root / "usr/include/gradus/gradus.h").is_file())
        self.assertFalse((self.root / "usr/include/gradus/backend/cpu").exists())
        self.assertEqual(list(self.root.rglob("*.a")), [])
        names = run("nm", "-D", "--defined-only", library).split()
        self.assertEqual([name for name in names if re.match(r"_Z.*(?:4llvm|6google8protobuf)", name) and "gradus" not in name], [])

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian(self):
        said = subprocess.run(["lintian", "--fail-on", "error", *self.files.values()], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertEqual([line for line in said.stdout.splitlines() if line.startswith("E:")], [])


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
