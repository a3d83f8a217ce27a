"""TensorFlow's own descriptor of XPlane against gradus/profile/xplane.proto, and the file that profile_test left in a
directory (GRADUS_WRITTEN) read by it: check_xplane.py DIRECTORY SCHEMA"""
import glob
import json
import os
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorflow.tsl.profiler.protobuf import xplane_pb2

directory, schema = sys.argv[1:]

# Every field of ours is one of theirs, with the same number and kind.
kinds = {"int64": 3, "uint64": 4, "double": 1, "string": 9}
message, fields = None, 0
for line in open(schema):
    if opened := re.match(r"message (\w+)", line):
        message = xplane_pb2.DESCRIPTOR.message_types_by_name[opened[1]]
    elif field := re.match(r"\s+(repeated )?(map<.*>|\w+) (\w+) = (\d+);", line):
        repeated, kind, name, number = field.groups()
        theirs = message.fields_by_name[name]
        assert theirs.number == int(number), (message.name, name)
        assert theirs.type == (kinds[kind] if kind in kinds else theirs.TYPE_MESSAGE), (message.name, name)
        is_list = repeated is not None or kind.startswith("map")
        listed = theirs.is_repeated if hasattr(theirs, "is_repeated") else theirs.label == theirs.LABEL_REPEATED
        assert listed == is_list, (message.name, name)
        fields += 1
assert fields >= 25, fields

(file,) = glob.glob(os.path.join(directory, "plugins", "profile", "*", "*.xplane.pb"))
space = xplane_pb2.XSpace()
space.ParseFromString(open(file, "rb").read())
report = json.load(open(os.path.join(directory, "report.json")))
(plane,) = space.planes
assert plane.name == "/host:CPU" and len(space.hostnames) == 1
# Nothing is left unread: what is written again has the same length.
assert len(space.SerializeToString()) == os.path.getsize(file)
lines = {line.name: line for line in plane.lines}
assert {"thread 0 (profiled)", "data thread 1", "compiling", "communication"} <= set(lines), list(lines)
seconds = {}
for line in plane.lines:
    assert line.timestamp_ns > 1.7e18
    last = 0
    for event in line.events:
        assert event.offset_ps >= last
        last = event.offset_ps
        name = plane.event_metadata[event.metadata_id].name
        seconds[name] = seconds.get(name, 0) + event.duration_ps * 1e-12
for row in report["rows"]:
    if row["kind"] == "kernel":
        assert abs(seconds[row["name"]] - row["seconds"]) < 1e-8 + 1e-6 * row["seconds"], row
steps = [e for line in plane.lines for e in line.events
         if any(plane.stat_metadata[s.metadata_id].name == "step_num" for s in e.stats)]
assert len(steps) == 10, len(steps)
print(fields, "fields,", sum(len(line.events) for line in plane.lines), "events")
