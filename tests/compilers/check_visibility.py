"""Compiles program.cpp with every symbol hidden that nobody marks otherwise, as users do, links it against the library
and runs it. Then looks at data that the object and the library both define: an inline variable that is hidden is two
variables, and what the program sets the library does not see. Exits with 77, skipped, without the compiler.

    check_visibility.py COMPILER ROOT LIBRARY
"""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
FLAGS = ["-fvisibility=hidden", "-fvisibility-inlines-hidden"]
# One line of readelf: number, value, size, kind, binding, visibility, section, name.
SYMBOL = re.compile(r"^\s*\d+: [0-9a-f]+\s+\S+\s+(OBJECT|TLS)\s+\S+\s+(\S+)\s+(\S+)\s+(\S+)", re.M)
# Tables of classes and texts are compared by their contents; a guard goes with its variable, a reference with its table.
NO_IDENTITY = ("DW.ref.", "_ZTC", "_ZTV", "_ZTI", "_ZTS", "_ZTT", "_ZGV")
# One line of the list of sections: number, name, kind, address, offset, size, entry size, flags.
SECTION = re.compile(r"^\s*\[\s*(\d+)\]\s+\S+\s+\S+\s+[0-9a-f]+\s+[0-9a-f]+\s+[0-9a-f]+\s+[0-9a-f]+\s+([A-Z]*)", re.M)


def data_of(file):
    """The mangled name of each variable of namespace gradus that the file defines, with its visibility."""
    listing = subprocess.run(["readelf", "-sW", str(file)], check=True, capture_output=True, text=True).stdout
    sections = subprocess.run(["readelf", "-SW", str(file)], check=True, capture_output=True, text=True).stdout
    writable = {number for number, flags in SECTION.findall(sections) if "W" in flags}  # constants have no identity
    return {name: visibility for _, visibility, section, name in SYMBOL.findall(listing)
            if section in writable and "6gradus" in name and not name.startswith(NO_IDENTITY)}


def main():
    compiler, root, library = sys.argv[1:]
    if not compiler or compiler.endswith("NOTFOUND"):
        print("skipped: this compiler is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        compiled, program = pathlib.Path(folder, "program.o"), pathlib.Path(folder, "program")
        command = [compiler, "-std=c++20", *FLAGS, "-I", root, str(HERE / "program.cpp")]
        # Functions that the program does not call name variables, too; GCC can keep them, but they do not link.
        keep = [] if "clang" in compiler else ["-fkeep-inline-functions"]
        subprocess.run(command + keep + ["-c", "-o", str(compiled)], check=True)
        subprocess.run(command + [library, f"-Wl,-rpath,{pathlib.Path(library).parent}", "-o",
                        str(program)], check=True)
        subprocess.run([str(program)], check=True)
        own, shared = data_of(compiled), data_of(library)
    hidden = sorted(name for name, visibility in own.items() if visibility == "HIDDEN" and name in shared)
    for name in hidden:
        print(f"{name}: the program has a variable of its own beside the library's: mark it "
              '[[gnu::visibility("default")]] in its header')
    if not hidden:
        print(f"{len(own)} variables of the program are no second ones")
    sys.exit(1 if hidden else 0)


if __name__ == "__main__":
    main()
