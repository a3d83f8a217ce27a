"""Small programs of Keras's layers for texts and tables, each of which gives lists of numbers and texts.

    KERAS_BACKEND=tensorflow python cases.py > expected.json     # made with TensorFlow

texts_test.py runs the same programs by KERAS_BACKEND=gradus, without TensorFlow, and compares. `tf` is TensorFlow, or gradus.tensorflow.
"""
import contextlib
import json
import os
import sys
import tempfile

import keras
import numpy as np

if keras.backend.backend() == "gradus":
    import gradus.tensorflow as tf
else:
    import tensorflow as tf

L = keras.layers
DOCUMENTS = ["The cat sat on the mat.", "A dog, a cat & a bird!", "no   words\tknown", "", "mat mat MAT dog"]
WORDS = ["earth", "wind", "and", "fire", "wind", "earth", "wind", "", "[UNK]", "naïve", "a somewhat longer string of more than 32 bytes",
         "x" * 100]
CODES = [12, -3, 36, 1138, 12, 12, 36, 0, 2**40]
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def plain(value):
    """Lists of numbers and texts."""
    if hasattr(value, "to_list"):
        value = value.to_list()
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    return plain(array.tolist() if isinstance(array, (np.ndarray, np.generic)) else array)


def forms(values):
    """Strings as a list, arrays of objects and of texts, and as a tensor."""
    return [values, np.array(values, object), np.array(values), tf.constant(values)]


# ---- the facade

@case
def hashes():
    integers = tf.strings.as_string(tf.constant(CODES, "int64"))
    return [tf.strings.to_hash_bucket_fast(WORDS, 1000), tf.strings.to_hash_bucket_strong(WORDS, 1000, [7, 2**40]),
            tf.strings.to_hash_bucket(WORDS, 1000), tf.strings.to_hash_bucket_fast([["a", "b"], ["c", ""]], 3),
            tf.strings.to_hash_bucket_fast(integers, 99),
            tf.strings.to_hash_bucket_fast(["y" * n for n in range(0, 200, 7)], 2**40)]


@case
def splits():
    return [tf.strings.split(DOCUMENTS), tf.strings.split("a b  c"), tf.strings.split([["a b", "c"], ["", "d e f"]]),
            tf.strings.split(["a/b//c", "/"], "/"), tf.strings.split(["a b c"], maxsplit=1), tf.strings.unicode_split(["né", ""], "UTF-8"),
            tf.strings.bytes_split(["né", "ab"]), tf.strings.unicode_decode(["né", "ab"], "UTF-8"),
            tf.strings.lower(tf.strings.split(DOCUMENTS)), tf.strings.split(DOCUMENTS).to_tensor(),
            tf.strings.split(DOCUMENTS).to_tensor("?", shape=[None, 3]), tf.strings.split(DOCUMENTS)[1], tf.strings.split(DOCUMENTS)[1, :2],
            tf.strings.split(DOCUMENTS)[1:3], tf.strings.length(tf.strings.split(DOCUMENTS)), tf.strings.split(DOCUMENTS).row_lengths(),
            tf.strings.reduce_join(tf.strings.split(DOCUMENTS), axis=-1, separator="+")]


@case
def neighbours():
    rows = tf.strings.split(DOCUMENTS)
    return [tf.strings.ngrams(rows, 2), tf.strings.ngrams(rows, [1, 3], separator="_"), tf.strings.ngrams(["a", "b", "c"], 2),
            tf.strings.ngrams([["a", "b", "c"], ["d", "e", "f"]], 2), tf.strings.ngrams(rows, 3, pad_values=("<", ">")),
            tf.strings.ngrams(rows, 3, pad_values="#", padding_width=1), tf.strings.ngrams(rows, 5, preserve_short_sequences=True)]


@case
def tensors_of_strings():
    s, two = tf.constant(["b", "a", "b", "c"]), tf.constant([["a", "b"], ["c", "d"]])
    return [tf.expand_dims(s, -1), tf.squeeze(tf.expand_dims(s, 0), axis=0), tf.reshape(s, [2, 2]), tf.concat([s, s], 0), tf.stack([s, s], 1),
            tf.gather(s, [2, 1]), tf.gather_nd(two, [[0, 1], [1, 0]]), tf.where(tf.equal(s, "b"), "x", s), tf.where(s == "b", [1, 2, 3, 4], 0),
            tf.tile(s, [2]), tf.transpose(two), tf.reverse(s, [0]), tf.unique(s).y, tf.unique(s).idx, tf.unique_with_counts(s).count,
            tf.shape(two), tf.size(two), tf.rank(two), tf.zeros_like(s, "int32"), tf.ones_like(s, "int64"), tf.not_equal(s, "b"), tf.unstack(two),
            tf.pad(two, [[0, 1], [1, 0]]), tf.slice(two, [0, 1], [2, 1]), tf.boolean_mask(s, [True, False, True, False]), tf.repeat(s, 2),
            tf.split(s, 2), tf.identity(s), tf.cast(s, tf.string), tf.broadcast_to(tf.constant("q"), [2])]


@case
def ragged_rows():
    r = tf.ragged.constant([[1, 2, 3], [], [4]])
    deep = tf.ragged.constant([[["a"], ["b", "c"]], [], [["d", "e", "f"], []]])
    return [r, r.to_tensor(), r.to_tensor(9, shape=[None, 2]), r.shape.as_list(), r.row_lengths(), r.row_splits, r.value_rowids(), r.nrows(), r[0],
            r[1:], r.bounding_shape(), deep, deep.to_tensor(), deep.flat_values, deep.values, deep[0], deep[2, 0], deep.ragged_rank, deep.shape.as_list(),
            tf.ragged.map_flat_values(tf.add, r, 1), tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 0, 0], [3, 0, 4]], padding=0),
            tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 0, 0]], lengths=[1, 2]), tf.RaggedTensor.from_value_rowids([5, 6, 7], [0, 0, 2], 4),
            tf.RaggedTensor.from_row_starts([5, 6, 7], [0, 0, 2]), tf.concat([r, r], 0), tf.concat([r, r], 1), tf.ragged.stack([[1], [2, 3]]),
            tf.expand_dims(r, 0), tf.cast(r, tf.float32), tf.where(tf.ragged.map_flat_values(lambda x: x > 2, r), r, tf.zeros_like(r)),
            tf.math.bincount(r, axis=-1, minlength=5), tf.map_fn(lambda row: row[1:], r)]


@case
def tables():
    words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([3, 4], tf.int64))
    numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([7, 5], tf.int64), tf.constant([70, 50], tf.int64)), -1)
    changing = tf.lookup.experimental.MutableHashTable("string", "int64", 0)
    changing.insert(tf.constant(["p", "q", "r"]), tf.constant([1, 2, 3], tf.int64))
    changing.remove(tf.constant(["q", "z"]))
    in_map = tf.data.Dataset.from_tensor_slices(np.array([5, 6, 7], np.int64)).map(numbers.lookup)
    spread = tf.lookup.StaticVocabularyTable(words, 7)
    of_numbers = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(
        tf.constant([10, 20], tf.int64), tf.constant([0, 1], tf.int64)), 9)
    return [tf.lookup.StaticHashTable(words, -1).lookup(tf.strings.split(["a x", "b"])), spread.lookup(tf.constant(WORDS)), spread.size(),
            of_numbers.lookup(tf.constant(CODES, tf.int64)), list(in_map), changing.lookup(tf.constant(["p", "q", "s"])), changing.size(),
            sorted(plain(changing.export()[0])), sorted(plain(numbers.export()[1]))]


# ---- layers

@case
def text_vectorization():
    found = []
    for options in [{}, {"max_tokens": 6}, {"output_sequence_length": 3}, {"output_mode": "multi_hot"}, {"output_mode": "count"},
                    {"output_mode": "tf_idf"}, {"output_mode": "multi_hot", "pad_to_max_tokens": True, "max_tokens": 30}, {"ngrams": 2},
                    {"ngrams": (2,), "output_mode": "count"}, {"standardize": None}, {"standardize": "lower"},
                    {"standardize": "strip_punctuation"}, {"split": "character", "output_sequence_length": 12}, {"split": None}]:
        layer = L.TextVectorization(**options)
        layer.adapt(DOCUMENTS)
        found.append([str(options), layer.get_vocabulary(), layer.vocabulary_size(), layer(DOCUMENTS), layer([["a cat"], ["fish"]])])
    return found


@case
def text_vectorization_of_given_words():
    layer = L.TextVectorization(vocabulary=["cat", "dog", "mat"], output_mode="int", output_sequence_length=4)
    weighted = L.TextVectorization(vocabulary=["cat", "dog"], idf_weights=[0.5, 2.0], output_mode="tf_idf")
    return [[layer(each) for each in forms(DOCUMENTS)], layer.get_vocabulary(), layer.get_vocabulary(include_special_tokens=False),
            layer(tf.constant("a dog")), layer("a dog"), weighted(DOCUMENTS)]


@case
def text_vectorization_adapts_to_data_sets():
    found = []
    for data in (tf.data.Dataset.from_tensor_slices(DOCUMENTS).batch(2), tf.data.Dataset.from_tensor_slices(DOCUMENTS),
                 np.array(DOCUMENTS)[:, None], tf.constant(DOCUMENTS)):
        for mode in ("int", "tf_idf"):
            layer = L.TextVectorization(output_mode=mode)
            layer.adapt(data)
            found.append([layer.get_vocabulary(), layer(DOCUMENTS)])
    return found


@case
def string_lookup():
    found = []
    for options in [{}, {"mask_token": ""}, {"num_oov_indices": 3}, {"num_oov_indices": 3, "mask_token": ""}, {"output_mode": "one_hot"},
                    {"output_mode": "multi_hot"}, {"output_mode": "count"}, {"output_mode": "multi_hot", "mask_token": ""},
                    {"output_mode": "count", "num_oov_indices": 2}, {"max_tokens": 8, "output_mode": "multi_hot", "pad_to_max_tokens": True}]:
        layer = L.StringLookup(vocabulary=["earth", "wind", "fire"], **options)
        found.append([str(options), layer.get_vocabulary(), [layer(each) for each in forms(WORDS)],
                      layer(tf.constant([WORDS[:4], WORDS[4:8]])), layer(tf.constant("wind"))])
    return found


@case
def string_lookup_adapts():
    found = []
    for options in [{}, {"max_tokens": 4}, {"output_mode": "tf_idf"}, {"output_mode": "tf_idf", "pad_to_max_tokens": True, "max_tokens": 20}]:
        for data in (WORDS, np.array([WORDS[:6], WORDS[6:]]), tf.data.Dataset.from_tensor_slices(WORDS).batch(5)):
            layer = L.StringLookup(**options)
            layer.adapt(data)
            found.append([layer.get_vocabulary(), layer(WORDS[:3])])
    return found


@case
def lookups_invert():
    words = L.StringLookup(vocabulary=["earth", "wind"], invert=True)
    numbers = L.IntegerLookup(vocabulary=[12, 36], invert=True)
    inverse = tf.data.Dataset.from_tensor_slices(np.array([1, 0, 2, 5], np.int64)).map(words)
    return [words(tf.constant([[1, 2], [0, 9]], tf.int64)), numbers(tf.constant([0, 1, 2, 7], tf.int64)), list(inverse)]


@case
def integer_lookup():
    found = []
    for options in [{}, {"mask_token": 0}, {"num_oov_indices": 3}, {"num_oov_indices": 3, "mask_token": 0}, {"output_mode": "one_hot"},
                    {"output_mode": "multi_hot"}, {"output_mode": "count"}, {"output_mode": "count", "num_oov_indices": 2}]:
        layer = L.IntegerLookup(vocabulary=[12, 36, 1138], **options)
        mapped = tf.data.Dataset.from_tensor_slices(np.array(CODES, np.int64)).batch(4).map(layer)
        found.append([str(options), layer.get_vocabulary(), layer(CODES), layer(np.array(CODES)), layer(tf.constant(CODES, tf.int64)),
                      list(mapped)])
    adapted = L.IntegerLookup(output_mode="tf_idf")
    adapted.adapt(np.array(CODES).reshape(3, 3))
    return [*found, adapted.get_vocabulary(), adapted(CODES)]


@case
def hashing():
    found = []
    for options in [{}, {"salt": 133}, {"salt": [133, 137]}, {"mask_value": ""}, {"output_mode": "one_hot"}, {"output_mode": "multi_hot"},
                    {"output_mode": "count"}]:
        layer = L.Hashing(num_bins=7, **options)
        found.append([str(options), [layer(each) for each in forms(WORDS)], layer([[WORDS[0]], [WORDS[1]]])])
        if "mask_value" not in options:
            data = tf.data.Dataset.from_tensor_slices(np.array(CODES, np.int64)).batch(4)
            found.append([layer(np.array(CODES)), layer(tf.constant([1.5, -2.7])), list(data.map(layer))])
    return found


@case
def hashed_crossing():
    found = []
    for options in [{}, {"output_mode": "one_hot"}]:
        layer = L.HashedCrossing(num_bins=9, **options)
        found.append([layer((np.array(["A", "B", "A", "B"]), np.array([101, 102, 103, 104]))), layer((tf.constant("A"), tf.constant(101))),
                      layer((tf.constant([["A"], ["B"]]), tf.constant([["x"], ["y"]]), tf.constant([[1], [2]])))])
    data = tf.data.Dataset.from_tensor_slices((["A", "B", "C"], [1, 2, 3])).batch(2)
    return [*found, list(data.map(lambda a, b: L.HashedCrossing(5)((a, b))))]


@case
def numbers_of_data_sets():
    x = np.array([[1.0, 2.0], [3.0, 9.0], [4.0, 5.0]], "float32")
    data = tf.data.Dataset.from_tensor_slices(x).batch(2)
    normal, bins = L.Normalization(), L.Discretization(num_bins=3)
    normal.adapt(data), bins.adapt(data)
    codes = tf.data.Dataset.from_tensor_slices([[0, 2], [1, 1]]).batch(2)
    return [list(data.map(normal)), list(data.map(bins)), bins(x), list(data.map(L.Discretization([2.5, 4.5], output_mode="one_hot"))),
            [list(codes.map(L.CategoryEncoding(3, output_mode=mode))) for mode in ("one_hot", "multi_hot", "count")]]


@case
def maps_over_data_sets():
    layer = L.TextVectorization(vocabulary=["cat", "dog", "mat"], output_sequence_length=3)
    bag = L.TextVectorization(vocabulary=["cat", "dog", "mat"], output_mode="multi_hot")
    data = tf.data.Dataset.from_tensor_slices((DOCUMENTS, [0, 1, 0, 1, 1]))
    table = L.StringLookup(vocabulary=["x", "y"], num_oov_indices=0)
    rows = tf.data.Dataset.from_tensor_slices({"word": ["x", "y", "x"], "size": [1.0, 2.0, 3.0]})
    return [list(data.batch(2).map(lambda x, y: (layer(x), y))), list(data.take(3).map(lambda x, y: (layer(x), y)).batch(2)),
            list(data.batch(3).map(lambda x, y: (bag(x), y), num_parallel_calls=tf.data.AUTOTUNE).cache().prefetch(1)),
            list(rows.map(lambda row: {"id": table(row["word"]), "size": row["size"]}).batch(2))]


@case
def saved_and_loaded():
    inputs = keras.Input((1,), dtype="string")
    layer = L.TextVectorization(output_mode="tf_idf", max_tokens=9)
    layer.adapt(DOCUMENTS)
    words, numbers = L.StringLookup(), L.IntegerLookup(num_oov_indices=2)
    words.adapt(WORDS), numbers.adapt(CODES)
    given = L.TextVectorization(vocabulary=["cat", "dog"], output_sequence_length=3)
    found = []
    for each, kind in ((layer, "string"), (words, "string"), (numbers, "int64"), (given, "string"), (L.Hashing(5, salt=3), "string")):
        model = keras.Sequential([keras.Input((1,), dtype=kind), each])
        with tempfile.TemporaryDirectory() as folder:
            model.save(os.path.join(folder, "net.keras"))
            loaded = keras.models.load_model(os.path.join(folder, "net.keras"))
        again = loaded.layers[-1]
        data = np.array(CODES) if kind == "int64" else DOCUMENTS + WORDS
        found.append([again.get_vocabulary() if hasattr(again, "get_vocabulary") else 0, again(data), each(data)])
    return [inputs.shape[1], found]


@case
def feature_space():
    rows = {"city": ["Paris", "Rome", "Paris", "Oslo"], "code": [1, 7, 7, 3], "size": [0.5, 1.5, 2.5, 9.0], "text": [
        "a good day", "bad day", "good good", ""]}
    F = keras.utils.FeatureSpace
    space = F(features={"city": F.string_categorical(num_oov_indices=1), "code": F.integer_categorical(), "size": F.float_discretized(num_bins=3),
                        "norm": F.float_normalized(), "hashed": F.string_hashed(num_bins=5)},
              crosses=[F.cross(feature_names=("city", "code"), crossing_dim=8)], output_mode="concat")
    data = {**rows, "norm": rows["size"], "hashed": rows["city"]}
    del data["text"]
    dataset = tf.data.Dataset.from_tensor_slices(data)
    space.adapt(dataset)
    return [space({name: column[0] for name, column in data.items()}), space({name: tf.constant(column) for name, column in data.items()}),
            list(dataset.batch(2).map(space))]


# ---- helpers for data

def folder_of(files):
    """A temporary folder with these files: {path: bytes}."""
    folder = tempfile.TemporaryDirectory()
    for path, content in files.items():
        whole = os.path.join(folder.name, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(content)
    return folder


@case
def timeseries():
    of = keras.utils.timeseries_dataset_from_array
    x, y = np.arange(20), np.arange(20) * 10
    wide = np.arange(30.0).reshape(10, 3)
    return [list(of(x, None, sequence_length=4)), list(of(x, y, sequence_length=4, sequence_stride=3, sampling_rate=2, batch_size=2)),
            list(of(wide, wide[:, 0], sequence_length=3, batch_size=None, start_index=1, end_index=8)),
            sorted(plain(list(of(x, y, 5, shuffle=True, seed=3, batch_size=None))))]


@case
def split_data_sets():
    left, right = keras.utils.split_dataset(np.arange(10.0), left_size=0.7)
    pairs = keras.utils.split_dataset((np.arange(4), np.ones([4, 2])), right_size=1)
    data = tf.data.Dataset.from_tensor_slices((np.arange(6), np.arange(6) * 2))
    batched = keras.utils.split_dataset(data.batch(2), left_size=4)
    return [list(left), list(right), [list(each) for each in pairs], [list(each) for each in keras.utils.split_dataset(data, left_size=0.5)],
            [list(each) for each in batched], int(left.cardinality()),
            sorted(plain(list(keras.utils.split_dataset(np.arange(10), 0.5, shuffle=True, seed=1)[0])))]


@case
def texts_of_a_folder():
    files = {f"{kind}/{i}.txt": f"{kind} number {i}".encode() for kind in ("bad", "good") for i in range(3)}
    with folder_of(files) as folder:
        of = keras.utils.text_dataset_from_directory
        data = of(folder, batch_size=4, shuffle=False, verbose=False)
        layer = L.TextVectorization(output_sequence_length=3)
        layer.adapt(data.map(lambda text, label: text))
        both = of(folder, subset="both", validation_split=0.5, seed=1, label_mode="binary", verbose=False)
        return [list(data), data.class_names, layer.get_vocabulary(), list(data.map(lambda text, label: (layer(text), label))),
                list(of(folder, label_mode=None, max_length=4, shuffle=False, verbose=False)),
                list(of(folder, label_mode="categorical", batch_size=None, shuffle=False, verbose=False)),
                [sorted(plain(list(each.unbatch()))) for each in both]]


@case
def images_of_a_folder():
    drawn = np.arange(4 * 6 * 3).reshape(4, 6, 3).astype("uint8") * 3
    files = {f"{kind}/{i}.png": tf.io.encode_png(drawn // (i + 1)).numpy() for kind in ("a", "b") for i in range(2)}
    with folder_of(files) as folder:
        of = keras.utils.image_dataset_from_directory
        options = {"shuffle": False, "verbose": False, "batch_size": 3}
        data = of(folder, image_size=(4, 6), **options)
        return [list(data), data.class_names, list(of(folder, image_size=(2, 3), label_mode="categorical", **options)),
                list(of(folder, image_size=(2, 2), crop_to_aspect_ratio=True, label_mode=None, **options)),
                list(of(folder, image_size=(6, 6), pad_to_aspect_ratio=True, label_mode=None, **options)),
                list(of(folder, image_size=(4, 6), labels=[3, 1, 2, 0], data_format="channels_first", **options))]


@case
def sounds_of_a_folder():
    def wav(n):
        return tf.audio.encode_wav(np.linspace(-0.5, 0.5, n, dtype="float32")[:, None], 8000).numpy()
    with folder_of({f"{kind}/{i}.wav": wav(5 + i) for kind in ("x", "y") for i in range(2)}) as folder:
        of = keras.utils.audio_dataset_from_directory
        options = {"shuffle": False, "verbose": False, "batch_size": 2}
        data = of(folder, output_sequence_length=6, **options)
        return [list(data), data.class_names, list(of(folder, ragged=True, label_mode=None, **options))]


@case
def sequences():
    return [keras.utils.pad_sequences([[1], [2, 3], [4, 5, 6]], maxlen=2, padding="post"),
            keras.utils.pad_sequences([["a"], ["b", "c"]], dtype=object, value="-")]


def written(names):
    """The results as JSON, a line for each program."""
    lines = [f"{json.dumps(name)}:{json.dumps(plain(CASES[name]()), ensure_ascii=False, separators=(',', ':'))}" for name in names]
    return "{" + ",\n".join(lines) + "}\n"


if __name__ == "__main__":
    if keras.backend.backend() == "gradus":
        raise SystemExit("values that are to be expected are made by KERAS_BACKEND=tensorflow")
    with contextlib.redirect_stdout(sys.stderr):  # for what Keras says of folders
        made = written(sys.argv[1:] or CASES)
    sys.stdout.write(made)
