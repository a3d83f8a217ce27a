"""Which ops and layers the sweep has to have: the functions and layers that gradus.h offers from ops/ and nn/, beside the
names of its rows. Each one without a row has a reason in ops_without_row.txt, so that a new op is not forgotten.

    python3 bench/ops_public.py GRADUS_BENCH     prints those that have neither, and reasons that nobody needs"""
import json
import pathlib
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH.parent / "docs/api"))
import for_doxygen  # noqa: E402

NOT_COMPUTED = ("Options", "OptionsOf")  # ends of names of structs that are no layers


def public_names():
    """Functions of ops/ and nn/ and, of nn/, structs that can be called as a layer or a loss."""
    names = set()
    for header in for_doxygen.public_headers():
        if not header.startswith(("gradus/ops/", "gradus/nn/")):
            continue
        found = for_doxygen.Names((for_doxygen.ROOT / header).read_text(encoding="utf-8"))
        for place in found.shown:
            member, path = found.scopes.get(place.start, (place, ""))
            if path not in ("gradus", "gradus::random") or not member.name or member.name.endswith(NOT_COMPUTED):
                continue
            if member.kind == "function" and not member.name.startswith("operator"):
                names.add((path + "::").removeprefix("gradus::") + member.name)
            if member.kind == "class" and header.startswith("gradus/nn/"):
                names.add(member.name)
    return names


def reasons():
    """{name: reason} of ops_without_row.txt."""
    found = {}
    for line in (BENCH / "ops_without_row.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            names, _, reason = line.partition(":  ")
            found |= {name: reason.strip() for name in names.split()}
    return found


def findings(rows):
    """Of the names of rows: what is missing, and what is superfluous. One text each."""
    having, named, public = {name.split()[0] for name in rows}, reasons(), public_names()
    for name in sorted(public - having - named.keys()):
        yield f"{name} has no row in bench/ops/ and no reason in bench/ops_without_row.txt"
    for name in sorted(named.keys() - public):
        yield f"bench/ops_without_row.txt: gradus.h offers no {name}"
    for name in sorted(named.keys() & having):
        yield f"bench/ops_without_row.txt: {name} has a row"
    for name in sorted(having - public):
        yield f"bench/ops/: the row {name} is called like no op that gradus.h offers"


def rows_of(gradus_bench):
    """What `gradus_bench ops` answers about its rows."""
    result = subprocess.run([str(gradus_bench), "ops", "--threads", "1"], input='{"list": true}\n', text=True, check=True,
                            capture_output=True)
    return json.loads(result.stdout.splitlines()[0])["rows"]


if __name__ == "__main__":
    texts = list(findings(row["name"] for row in rows_of(sys.argv[1])))
    print("\n".join(texts) if texts else "each op has a row or a reason")
    sys.exit(1 if texts else 0)
