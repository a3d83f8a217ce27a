"""Runs the test program of a room with GRADUS_DEVICE=xla, the processor's plugin, without what not_in_rooms.txt leaves
out with a reason; what compares bits is content with what is equal but for the order of sums (plugins/near_enough.cpp).

    check_rooms.py PLUGIN PROGRAM NEAR_ENOUGH

Exit status 77: there is no plugin, nothing was tested.
"""
import os
import pathlib
import sys

LEFT_OUT = pathlib.Path(__file__).with_name("not_in_rooms.txt")


def main():
    plugin, program, near_enough = sys.argv[1:]
    plugin = os.environ.get("GRADUS_TEST_PLUGIN") or plugin
    if not pathlib.Path(plugin).exists():
        print("NOT TESTED: there is no PJRT plugin for the processor (`make xla-plugin` installs one)")
        sys.exit(77)
    names = [line.split(": ", 1)[0] for line in LEFT_OUT.read_text().splitlines() if line and line[0] != "#"]
    os.environ.update(PJRT_NAMES_AND_LIBRARY_PATHS=f"xla:{plugin}", GRADUS_DEVICE="xla", LD_PRELOAD=near_enough)
    os.execv(program, [program, "--gtest_filter=-" + ":".join(names)])


if __name__ == "__main__":
    main()
