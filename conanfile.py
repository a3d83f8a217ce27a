"""Gradus as a package of Conan 2, built from this checkout with the system's LLVM 19 (docs/packages.md)."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import load
from conan.tools.system.package_manager import Apt


class Gradus(ConanFile):
    name = "gradus"
    description = "Gradients and compiled training steps in C++20"
    license = "Apache-2.0"
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False]}
    default_options = {"shared": True}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "gradus/*", "apps/*"

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "CMakeLists.txt"))
        self.version = re.search(r"project\(gradus VERSION ([\d.]+)", text)[1]

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration(f"gradus is for Linux on x86_64 and armv8, not {self.settings.os} on {self.settings.arch}")
        check_min_cppstd(self, 20)

    def layout(self):
        self.folders.build = "build/conan"
        self.folders.generators = "build/conan/generators"

    def system_requirements(self):
        Apt(self).install(["llvm-19-dev", "zlib1g-dev", "libjpeg-dev", "libpng-dev", "libprotobuf-dev", "protobuf-compiler",
                           "libutf8proc-dev", "libpcre2-dev", "libcli11-dev", "libtomlplusplus-dev", "nlohmann-json3-dev"])

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.cache_variables.update({"GRADUS_BOTH_KINDS": False, "GRADUS_TESTS": False,
                                          "BUILD_SHARED_LIBS": bool(self.options.shared)})
        toolchain.user_presets_path = False  # nothing is written beside the sources
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # Projects read the install tree's own package, find_package(gradus).
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "gradus")]
