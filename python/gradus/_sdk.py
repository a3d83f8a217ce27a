"""The files for C++ that a wheel brings: the library, its headers, its CMake package and the command."""
import os
import pathlib
import sys

from . import errors


def _folder():
    folder = pathlib.Path(__file__).parent / "sdk"
    if not folder.is_dir():
        raise errors.UnavailableError(f"{folder} is not there: this gradus was not installed from a wheel, which `make wheel` "
                                      "makes; programs in C++ use the library's own install tree (`make install`)")
    return folder


def cmake_prefix_path():
    """Where CMake finds this library for programs in C++: `cmake -DCMAKE_PREFIX_PATH=...`, then `find_package(gradus)`."""
    return str(_folder())


def run_command():
    """The command `gradus`: the program in the wheel takes this process's place."""
    program = str(_folder() / "bin" / "gradus")
    os.execv(program, [program] + sys.argv[1:])
