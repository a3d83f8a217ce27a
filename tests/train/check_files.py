"""What train_test left in a directory (GRADUS_WRITTEN) says to others what it should: check_files.py DIRECTORY"""
import io
import json
import os
import sys

import numpy
from PIL import Image
from tensorboard.backend.event_processing import event_accumulator

directory = sys.argv[1]


def expected(name):
    with open(os.path.join(directory, name + ".json")) as file:
        return json.load(file)


def pixels(png):
    """Of a file or of bytes."""
    return numpy.array(Image.open(io.BytesIO(png) if isinstance(png, bytes) else png))


def events(run):
    keep_all = {kind: 0 for kind in ("scalars", "histograms", "images", "tensors", "graph")}
    reader = event_accumulator.EventAccumulator(os.path.join(directory, "events", run), keep_all)
    reader.Reload()
    return reader


def scalars(reader, tag):
    """Steps and numbers, as TensorBoard shows them."""
    rows = reader.Scalars(tag)
    return [row.step for row in rows], [row.value for row in rows]


def check_events():
    want, train, validation = expected("events"), events("train"), events("validation")
    for reader, prefix in ((train, ""), (validation, "validation_")):
        for name in ("loss", "mean_absolute_error"):
            steps, numbers = scalars(reader, "epoch_" + name)
            assert steps == [0, 1, 2, 3], steps
            numpy.testing.assert_allclose(numbers, want[prefix + name], rtol=1e-6)
    numpy.testing.assert_allclose(scalars(train, "epoch_learning_rate")[1], [want["learning_rate"]] * 4, rtol=1e-6)
    assert scalars(train, "batch_loss")[0] == want["batch_steps"]
    histograms = train.Histograms("hidden/kernel")
    assert [row.step for row in histograms] == [0, 2]
    for row, kernel in zip(histograms, want["kernels"]):
        found = row.histogram_value
        assert found.num == len(kernel)
        numpy.testing.assert_allclose([found.min, found.max], [min(kernel), max(kernel)])
        numpy.testing.assert_allclose([found.sum, found.sum_squares], [sum(kernel), sum(x * x for x in kernel)])
        counts, _ = numpy.histogram(kernel, bins=[found.min] + list(found.bucket_limit))
        assert counts.tolist() == list(found.bucket)
    (image,) = train.Images("picture")
    assert (image.width, image.height) == (7, 5)
    assert pixels(image.encoded_image_string).flatten().tolist() == want["picture"]
    (note,) = train.Tensors("note")
    assert list(note.tensor_proto.string_val) == [b"*first* epoch"]
    assert train.SummaryMetadata("note").plugin_data.plugin_name == "text"
    graph = train.Graph()
    names = {node.name for node in graph.node}
    assert {"x", "hidden/kernel", "hidden/bias", "out/kernel", "out/bias"} <= names, names
    assert all(name in names for node in graph.node for name in node.input), "every input is a node"
    assert any(node.op == "matmul" and node.name.endswith("out/matmul") for node in graph.node), names


def check_arrays():
    want = expected("arrays")
    with numpy.load(os.path.join(directory, "arrays.npz")) as arrays:
        assert sorted(arrays.files) == sorted(want)
        for name, expectation in want.items():
            array = arrays[name]
            assert list(array.shape) == expectation["shape"], name
            assert array.astype(float).flatten().tolist() == expectation["values"], name


def check_pictures():
    image = pixels(os.path.join(directory, "rgb.png"))
    assert image.shape == (5, 7, 3) and image.flatten().tolist() == expected("pictures")["rgb"]
    image = pixels(os.path.join(directory, "grey.png"))
    assert image.shape == (3, 4) and (image == 200).all()


check_events()
check_arrays()
check_pictures()
