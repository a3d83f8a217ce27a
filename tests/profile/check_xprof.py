"""The package xprof makes the data of its trace viewer and overview of what profile_test left in a directory
(GRADUS_WRITTEN): check_xprof.py DIRECTORY"""
import glob
import json
import os
import sys

from xprof.convert import raw_to_tool_data

(file,) = glob.glob(os.path.join(sys.argv[1], "plugins", "profile", "*", "*.xplane.pb"))
report = json.load(open(os.path.join(sys.argv[1], "report.json")))


def tool(name):
    data, kind = raw_to_tool_data.xspace_to_tool_data([file], name, {"tqx": "out:json;"})
    assert data, name
    return data.decode() if isinstance(data, bytes) else data


names = raw_to_tool_data.xspace_to_tool_names([file])
assert any(name.startswith("trace_viewer") for name in names) and "overview_page" in names, names
trace = json.loads(tool("trace_viewer"))
events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
tracks = {event["args"]["name"] for event in trace["traceEvents"] if event.get("name") == "thread_name"}
assert any("thread 0 (profiled)" in track for track in tracks), tracks
seconds = {}
for event in events:
    seconds[event["name"]] = seconds.get(event["name"], 0) + event["dur"] * 1e-6
for row in report["rows"]:
    if row["kind"] == "kernel":
        assert abs(seconds[row["name"]] - row["seconds"]) < 1e-6 + 1e-3 * row["seconds"], (row, seconds[row["name"]])
overview = tool("overview_page")
assert "steptime" in overview.lower() or "step" in overview.lower(), overview[:300]
print(len(events), "events;", ", ".join(sorted(names)))
