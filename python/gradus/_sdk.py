"""The files for C++ in a wheel: the library, its headers, its CMake package and the command."""
import os
import sys

from . import errors


def _folder():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sdk")
    if not os.path.isdir(folder):
        raise errors.UnavailableError(f"{folder} is not there: this gradus was not installed from a wheel, which `make wheel` "
                                      "makes; programs in C++ use the library's own install tree (`make install`)")
    return folder


def cmake_prefix_path():
    """The folder with the library for programs in C++: `cmake -DCMAKE_PREFIX_PATH=...`, then `find_package(gradus)`.
    UnavailableError if gradus was not installed from a wheel."""
    return _folder()


def run_command():
    """Runs the command `gradus`: the program in the wheel replaces this process."""
    program = os.path.join(_folder(), "bin", "gradus")
    os.execv(program, [program] + sys.argv[1:])
