"""The files for C++ that a wheel brings: the library, its headers, its CMake package and the command."""
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
    """Where CMake finds this library for programs in C++: `cmake -DCMAKE_PREFIX_PATH=...`, then `find_package(gradus)`."""
    return _folder()


def run_command():
    """The command `gradus`: the program in the wheel takes this process's place."""
    program = os.path.join(_folder(), "bin", "gradus")
    os.execv(program, [program] + sys.argv[1:])
