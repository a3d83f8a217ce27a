"""Prints the table of gradus/onnx/attributes.cpp: the attributes of the ops of ONNX and the opsets that define them.

    python tests/onnx/make_attributes.py | clang-format     # with the package onnx
"""
import collections

import onnx.defs

DOMAINS = ("", "ai.onnx.preview", "ai.onnx.preview.training")


def ranges(versions, holding):
    """'' if all versions of the op have the attribute, else '@first-last' for each run of those that do."""
    if holding == versions:
        return ""
    runs = []
    for i, version in enumerate(versions):
        if version not in holding:
            continue
        last = versions[i + 1] - 1 if i + 1 < len(versions) else ""
        if runs and runs[-1][1] == version - 1:
            runs[-1][1] = last
        else:
            runs.append([version, last])
    return "".join(f"@{first}-{last}" for first, last in runs)


def table():
    schemas = collections.defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS and not schema.deprecated:
            schemas[schema.name][schema.since_version] = set(schema.attributes)
    for name, by_version in sorted(schemas.items()):
        versions = sorted(by_version)
        words = []
        for attribute in sorted(set().union(*by_version.values())):
            words.append(attribute + ranges(versions, [v for v in versions if attribute in by_version[v]]))
        if words:
            yield name, " ".join(words)


for op, attributes in table():
    print(f'    {{"{op}", "{attributes}"}},')
