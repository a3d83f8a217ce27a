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
# The steps of the overview are our scopes, but for the first and the last, which it leaves out.
(scope,) = [row for row in report["rows"] if row["kind"] == "scope"]
marked = sorted((event for event in events if "step_name" in event.get("args", {})), key=lambda event: event["ts"])
assert [event["name"] for event in marked] == [f"{scope['name']} {k}" for k in range(scope["calls"])], marked
durations = [event["dur"] * 1e-3 for event in marked]
table = next(table for table in json.loads(tool("overview_page")) if table.get("p", {}).get("steptime_ms_average"))
column = [col["id"] for col in table["cols"]].index("stepTimeMs")
steps = [row["c"][column]["v"] for row in table["rows"]]
assert len(steps) == len(durations) - 2, (steps, table["p"])
for step, duration in zip(steps, durations[1:-1]):
    assert abs(step - duration) < 1e-3 + 1e-3 * duration, (steps, durations)
print(len(events), "events;", len(steps), "steps;", ", ".join(sorted(names)))
