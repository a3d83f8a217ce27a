"""Compiles program.cpp as a user would, with the warnings of -Wall -Wextra as errors, links it against the library and
runs it; then parses all examples and some of the gallery, for C++20. Exits with 77, skipped, where the compiler is not
installed.

    check_compiler.py COMPILER STANDARD ROOT LIBRARY
"""
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# Those of the gallery that are hardest for compilers: blocks with constructors, lambdas within lambdas, scans.
GALLERY = ["neural_ode.cpp", "structured_table.cpp", "unet.cpp"]


def main():
    compiler, standard, root, library = sys.argv[1:]
    if not compiler or compiler.endswith("NOTFOUND"):
        print("skipped: this compiler is not installed (apt-get install clang-14)")
        sys.exit(77)
    command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fdiagnostics-color=never", "-I", root]

    def parse(example):
        return subprocess.run(command + ["-fsyntax-only", str(example)], capture_output=True, text=True).stderr

    with tempfile.TemporaryDirectory() as folder:
        program = str(pathlib.Path(folder) / "program")
        link = [library, f"-Wl,-rpath,{pathlib.Path(library).parent}", "-o", program]
        subprocess.run(command + [str(HERE / "program.cpp")] + link, check=True)
        subprocess.run([program], check=True)
    folder = pathlib.Path(root, "examples")
    examples = sorted(folder.glob("*.cpp")) + [folder / "gallery" / name for name in GALLERY]
    examples = examples if standard == "c++20" else []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        findings = [text for text in pool.map(parse, examples) if text]
    print("\n".join(findings) if findings else f"program.cpp and {len(examples)} examples compile")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
