"""The wheel in a new environment: its size and names, a program, the command, the package's own tests, and a project in C++
that finds it by CMake.

    installed.py FOLDER_OF_THE_WHEELS SCRATCH PYTHON        PYTHON makes the environment, and says which wheel
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import fresh  # noqa: E402

MOST_BYTES = 30e6
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30)}  # of Ubuntu 22.04, by which manylinux_2_35 is meant
VERSION = re.compile(r"Name: (GLIBC|GLIBCXX)_([\d.]+)")
OTHERS = re.compile(r"(?!.*gradus).*(?:llvm|google|LLVM|arc4random|ZSTD_)")
PROGRAM = """
import numpy as np
import gradus

w = gradus.Variable(np.ones((3, 2), np.float32))

@gradus.function
def step(x):
    with gradus.GradientTape() as tape:
        loss = ((x @ w) ** 2).sum()
    gradient = tape.gradient(loss, w)
    w.assign_sub(0.1 * gradient)
    return loss

print(step(np.ones((4, 3), np.float32)).item(), w.numpy().ravel().tolist())
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wheel = fresh.wheel_for(PYTHON, FOLDER)
        cls.scratch = SCRATCH / cls.wheel.name.split("-")[2]
        shutil.rmtree(cls.scratch, ignore_errors=True)
        fresh.run(PYTHON, "-m", "venv", "--without-pip", cls.scratch / "venv")
        cls.bin = cls.scratch / "venv/bin"
        fresh.pip(cls.bin / "python", cls.wheel)
        cls.package = next((cls.scratch / "venv/lib").glob("python*/site-packages/gradus"))

    def python(self, text):
        return fresh.run(self.bin / "python", "-c", text)

    def test_size_and_system(self):
        self.assertLess(self.wheel.stat().st_size, MOST_BYTES)
        glibc = re.search(r"manylinux_(\d+)_(\d+)_", self.wheel.name)
        self.assertLessEqual(tuple(map(int, glibc.groups())), NEWEST["GLIBC"], self.wheel.name)
        self.assertTrue(self.wheel.name.startswith("gradus_ml-"))

    def test_versions_of_symbols(self):
        files = [*self.package.glob("_native*"), *self.package.glob("sdk/lib/lib*"), self.package / "sdk/bin/gradus",
                 *self.package.parent.glob("gradus_ml.libs/*")]
        self.assertGreater(len(files), 5)
        for file in files:
            for kind, version in VERSION.findall(fresh.run("readelf", "--version-info", "--wide", file)):
                self.assertLessEqual(tuple(map(int, version.split("."))), NEWEST[kind], f"{kind}_{version} in {file}")

    def test_what_is_inside_is_hidden(self):
        library = next((self.package / "sdk/lib").glob("libgradus.so.*"))
        names = fresh.run("nm", "-D", "--defined-only", library).split()
        self.assertGreater(sum("gradus" in name for name in names), 5000)
        self.assertEqual([name for name in names if OTHERS.match(name)], [])
        self.assertNotIn("libLLVM", fresh.run("readelf", "-d", library))

    def test_a_program(self):
        self.assertEqual(self.python(PROGRAM).split("\n")[0], "72.0 " + str([-1.4] * 6).replace("-1.4", NEW_WEIGHT))

    def test_which_abi(self):
        (native,) = self.package.glob("_native*.so")
        self.assertIn("abi3" if "-abi3-" in self.wheel.name else self.wheel.name.split("-")[2].replace("cp", "cpython-"),
                      native.name)

    def test_its_own_tests(self):
        for test in sorted(pathlib.Path(__file__).parents[1].glob("*_test.py")):
            if "names.json" not in test.read_text(encoding="utf-8"):  # which the build alone has
                with self.subTest(test.name):
                    self.assertIn("OK", fresh.run(self.bin / "python", "-B", test))

    def test_the_command(self):
        version = self.python("import gradus; print(gradus.__version__)")
        self.assertEqual(fresh.run("gradus", "--version", path=self.bin), version)
        self.assertIn("cpu", fresh.run("gradus", "devices", path=self.bin))
        ended = subprocess.run([self.bin / "gradus", "no-such"], env={}, capture_output=True)
        self.assertNotEqual(ended.returncode, 0)

    def test_a_project_in_cpp(self):
        prefix = self.python("import gradus; print(gradus.cmake_prefix_path())").strip()
        build = self.scratch / "consumer"
        fresh.run("cmake", "-S", pathlib.Path(__file__).parent / "consumer", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                  path=pathlib.Path(shutil.which("cmake")).parent)
        fresh.run("cmake", "--build", build, path=pathlib.Path(shutil.which("cmake")).parent)
        self.assertEqual(fresh.run(build / "consumer"), "12\n")


NEW_WEIGHT = "-1.4000000953674316"  # 1 - 0.1 * 24 in float32

if __name__ == "__main__":
    FOLDER, SCRATCH = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    PYTHON = pathlib.Path(sys.argv[3]).absolute()  # a link is the environment that it stands in
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
