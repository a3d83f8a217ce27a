"""Writes ONNX's own conformance suite, as the Python package `onnx` makes it, in the standard layout:

    OUTPUT/<kind>/<case>/model.onnx, data.json, test_data_set_N/input_K.pb, output_K.pb
    OUTPUT/left_out.txt     a line a case that was left out: its kind, name and why

    make_suite.py OUTPUT
"""
import argparse
import collections
import json
import pathlib
import shutil
import sys
import warnings

import numpy
import onnx
import onnx.backend.test.case.model
import onnx.backend.test.case.node
import onnx.backend.test.loader
import onnx.backend.test.runner
from onnx import TensorProto, numpy_helper

TYPES = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT64,
         TensorProto.INT32, TensorProto.INT16, TensorProto.INT8, TensorProto.UINT8, TensorProto.UINT16,
         TensorProto.UINT32, TensorProto.UINT64, TensorProto.BOOL}
QUANTISED = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul",
             "ConvInteger", "MatMulInteger"}
SEQUENCES = {"SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
             "SequenceMap", "SplitToSequence", "ConcatFromSequence"}
STRINGS = {"StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "TfIdfVectorizer"}
OPTIONALS = {"Optional", "OptionalGetElement", "OptionalHasElement"}


def why_not_op(node):
    if node.domain == "ai.onnx.ml":
        return "ai.onnx.ml"
    for ops, reason in ((QUANTISED, "quantised"), (SEQUENCES, "sequences"), (STRINGS, "strings"),
                        (OPTIONALS, "optional"), ({"ImageDecoder"}, "image decoding")):
        if node.op_type in ops:
            return f"{reason}: {node.op_type}"
    return None


def why_not_type(element):
    if element in TYPES:
        return None
    name = TensorProto.DataType.Name(element).lower()
    return "strings" if element == TensorProto.STRING else f"type {name}"


def why_not_value(value):
    kind = value.type.WhichOneof("value")
    if kind == "tensor_type":
        return why_not_type(value.type.tensor_type.elem_type)
    return {"sequence_type": "sequences", "optional_type": "optional"}.get(kind, f"values of {kind}")


def why_not_attribute(node, attribute):
    if attribute.HasField("t"):
        return why_not_type(attribute.t.data_type)
    if attribute.HasField("g"):
        return why_not_graph(attribute.g)
    if attribute.name in ("to", "dtype", "output_dtype") and attribute.type == onnx.AttributeProto.INT and attribute.i:
        return why_not_type(attribute.i)
    if node.op_type == "Constant" and attribute.name in ("value_string", "value_strings"):
        return "strings"
    if attribute.HasField("sparse_tensor"):
        return "sparse tensors"
    return None


def why_not_nodes(nodes):
    for node in nodes:
        reasons = [why_not_op(node)] + [why_not_attribute(node, a) for a in node.attribute]
        for reason in filter(None, reasons):
            return reason
    return None


def why_not_graph(graph):
    if graph.sparse_initializer:
        return "sparse tensors"
    reasons = [why_not_value(v) for v in [*graph.input, *graph.output] if v.type.WhichOneof("value")]
    reasons += [why_not_type(t.data_type) for t in graph.initializer]
    return next(filter(None, reasons), None) or why_not_nodes(graph.node)


def why_not(model):
    """Why a case lies outside of what Gradus is for, or nothing."""
    reasons = [why_not_graph(model.graph)] + [why_not_nodes(f.node) for f in model.functions]
    return next(filter(None, reasons), None)


def tensor_of(value, name):
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(numpy.asarray(value), name)


def write_case(directory, model, data_sets, rtol, atol):
    directory.mkdir(parents=True)
    (directory / "model.onnx").write_bytes(model.SerializeToString())
    (directory / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}))
    for number, (inputs, outputs) in enumerate(data_sets):
        data = directory / f"test_data_set_{number}"
        data.mkdir()
        for word, values, infos in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
            for k, value in enumerate(values):
                (data / f"{word}_{k}.pb").write_bytes(tensor_of(value, infos[k].name).SerializeToString())


class Suite:
    def __init__(self, output):
        self.output = output
        self.left_out = []
        self.written = collections.Counter()

    def wants(self, kind, name, model):
        reason = why_not(model)
        if reason:
            self.left_out.append((kind, name, reason))
        else:
            self.written[kind] += 1
        return not reason

    def add_made(self, case):
        if self.wants(case.kind, case.name, case.model):
            write_case(self.output / case.kind / case.name, case.model, case.data_sets, case.rtol, case.atol)

    def add_shipped(self, case):
        source = pathlib.Path(case.model_dir)
        target = self.output / case.kind / case.name
        if target.exists() or not self.wants(case.kind, case.name, onnx.load(source / "model.onnx")):
            return
        shutil.copytree(source, target)
        (target / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}))

    def add_light(self, case, data):
        """A network whose weights are made by its own nodes; its input is what the package's runner makes up."""
        file = data / "light" / pathlib.Path(case.url).name
        model = onnx.load(file)
        if not self.wants("light", case.name, model):
            return
        made = {t.name for t in model.graph.initializer}
        inputs = [onnx.backend.test.runner.Runner.generate_dummy_data(v, seed=0, name=case.model_name, random=False)
                  for v in model.graph.input if v.name not in made]
        outputs = []
        for k in range(len(model.graph.output)):
            tensor = TensorProto()
            tensor.ParseFromString(file.with_name(f"{file.stem}_output_{k}.pb").read_bytes())
            outputs.append(tensor)
        directory = self.output / "light" / case.name
        write_case(directory, model, [([], outputs)], case.rtol, case.atol)
        for k, value in enumerate(inputs):
            (directory / "test_data_set_0" / f"input_{k}.pb").write_bytes(tensor_of(value, "").SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    output = parser.parse_args().output
    warnings.simplefilter("ignore")  # casts that overflow are what some cases are about
    partial = output.with_name(output.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    suite = Suite(partial)
    for case in onnx.backend.test.loader.load_node_model_tests():
        suite.add_made(case)
    data = pathlib.Path(onnx.backend.test.loader.DATA_DIR)
    for case in onnx.backend.test.case.model.collect_testcases():
        if case.kind == "real":
            suite.add_light(case, data)
        else:
            suite.add_made(case)
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for case in onnx.backend.test.loader.load_model_tests(kind=kind):
            suite.add_shipped(case)
    suite.left_out.sort()
    (partial / "left_out.txt").write_text("".join(f"{kind}/{name}: {why}\n" for kind, name, why in suite.left_out))
    shutil.rmtree(output, ignore_errors=True)
    partial.rename(output)
    print(f"onnx {onnx.__version__}: {sum(suite.written.values())} cases ({dict(suite.written)}), "
          f"{len(suite.left_out)} left out")


if __name__ == "__main__":
    sys.exit(main())
