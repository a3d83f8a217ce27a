"""Strings on the host: tf.strings, tables, files, records, and data sets of them."""
import os

import gradus.tensorflow as tf
import numpy as np

# Buckets that TensorFlow gives, in test_bits_are_tensorflows.
FAST, STRONG, OLD = [939, 263, 233, 249, 719], [514, 257, 907, 923, 365], [868, 899, 323, 522, 807]

class Strings(tf.test.TestCase):
    def test_tensors(self):
        words = tf.constant(["a", "bc"])
        self.assertEqual((words.dtype, words.shape, words.numpy().tolist()), (tf.string, (2,), [b"a", b"bc"]))
        self.assertEqual(tf.constant("x").numpy(), b"x")
        self.assertAllEqual(words == "a", [True, False])
        self.assertAllEqual(words + "!", [b"a!", b"bc!"])
        self.assertEqual(words[1].numpy(), b"bc")
        self.assertTrue(tf.is_tensor(words))
        with self.assertRaises(TypeError):
            tf.constant(["a", 1])

    def test_functions(self):
        for found, wanted in [
                (tf.strings.lower(["Ab", "C"]), [b"ab", b"c"]), (tf.strings.upper("é", "utf-8"), "É".encode()),
                (tf.strings.length(["a", "héllo"]), [1, 6]), (tf.strings.length("héllo", unit="UTF8_CHAR"), 5),
                (tf.strings.split("a b  c"), [b"a", b"b", b"c"]), (tf.strings.split("a/b", "/")[-1], b"b"),
                (tf.strings.join([["a", "b"], ["c", "d"]], "-"), [b"a-c", b"b-d"]),
                (tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1), [b"ab", b"cd"]),
                (tf.strings.regex_replace(["a<br />b!"], "<br />", " "), [b"a b!"]),
                (tf.strings.regex_replace("a.b,c", "[[:punct:]]", ""), b"abc"),
                (tf.strings.regex_full_match(["ab", "b"], "a.*"), [True, False]),
                (tf.strings.substr("hello", 1, 3), b"ell"), (tf.strings.strip("  a "), b"a"),
                (tf.strings.to_number(["1.5", "2"]), [1.5, 2]), (tf.strings.as_string([1, 2]), [b"1", b"2"]),
                (tf.strings.as_string(tf.cast([0.5, -2], tf.bfloat16), precision=1), [b"0.5", b"-2.0"]),
                (tf.strings.unicode_split("né", "UTF-8"), [b"n", "é".encode()]),
                (tf.strings.unicode_encode(tf.strings.unicode_decode("né", "UTF-8"), "UTF-8"), "né".encode()),
                (tf.strings.format("{} of {}", [1, "x"]), b"1 of x"), (tf.strings.ngrams(["a", "b", "c"], 2), [b"a b", b"b c"])]:
            self.assertAllEqual(found, wanted)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.strings.to_number("x")

    def test_tables(self):
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([3, 4], tf.int64))
        table = tf.lookup.StaticHashTable(words, -1)
        self.assertAllEqual(table.lookup(tf.constant([["a", "x"]])), [[3, -1]])
        spread = tf.lookup.StaticVocabularyTable(words, 2)
        self.assertAllEqual(spread.lookup(["b"]), [4])
        self.assertIn(spread.lookup("other").item(), (2, 3))
        changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        changing.insert(["x", "y"], [1, 2])
        changing.insert(["y"], [5])
        changing.remove(["x", "q"])
        self.assertAllEqual(changing.lookup([["x", "y"]]), [[-1, 5]])
        self.assertEqual([part.numpy().tolist() for part in changing.export()], [[b"y"], [5]])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "2 keys, 1 values"):
            changing.insert(["a", "b"], [1])
        with self.assertRaisesRegex(TypeError, "keys of int"):
            changing.lookup([1])

    def test_tables_of_whole_numbers_are_ops_of_traced_functions(self):
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([7, 5], tf.int64), [0.5, 1.5]), -1.0)
        looked_up = tf.function(lambda keys: table.lookup(keys) * 2)
        self.assertAllEqual(looked_up(tf.constant([[5, 6], [7, 8]], tf.int64)), [[3, -2], [1, -2]])
        empty = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.zeros([0], tf.int64), tf.zeros([0], tf.int64)), 9)
        self.assertAllEqual(tf.function(empty.lookup)(tf.constant([1], tf.int64)), [9])
        names = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2], tf.int64), ["one", "two"]), "?")
        data = tf.data.Dataset.from_tensor_slices(tf.constant([2, 3, 1], tf.int64)).map(names.lookup)
        self.assertEqual([each.numpy() for each in data], [b"two", b"?", b"one"], "the map runs on the host")
        back = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([3, 4], ["a", "b"]), "?")
        self.assertAllEqual(back.lookup([4, 9]), [b"b", b"?"])

    def test_strings_do_not_enter_traced_functions(self):
        with self.assertRaises((TypeError, ValueError)):
            tf.reduce_sum(tf.constant(["a"]))


class Ragged(tf.test.TestCase):
    def test_splits_are_rows(self):
        rows = tf.strings.split(["a b  c", "", "d"])
        self.assertIsInstance(rows, tf.RaggedTensor)
        self.assertEqual(rows.to_list(), [[b"a", b"b", b"c"], [], [b"d"]])
        self.assertEqual(rows.shape.as_list(), [3, None])
        self.assertAllEqual(rows.to_tensor("-"), [[b"a", b"b", b"c"], [b"-"] * 3, [b"d", b"-", b"-"]])
        self.assertAllEqual(rows.to_tensor(shape=[None, 1]), [[b"a"], [b""], [b"d"]])
        self.assertEqual(tf.strings.upper(rows)[0].numpy().tolist(), [b"A", b"B", b"C"])
        self.assertEqual(tf.strings.unicode_decode(["né", ""], "UTF-8").to_list(), [[110, 233], []])

    def test_rows_of_rows(self):
        deep = tf.ragged.constant([[[1, 2], []], [], [[3]]])
        self.assertEqual((deep.ragged_rank, deep.shape.as_list(), deep.flat_values.numpy().tolist()), (2, [3, None, None], [1, 2, 3]))
        self.assertAllEqual(deep.to_tensor(), [[[1, 2], [0, 0]], [[0, 0], [0, 0]], [[3, 0], [0, 0]]])
        self.assertEqual(deep[1:].to_list(), [[], [[3]]])
        self.assertEqual(deep[2, 0].numpy().tolist(), [3])
        self.assertEqual(tf.ragged.map_flat_values(tf.multiply, deep, 10).to_list(), [[[10, 20], []], [], [[30]]])

    def test_wrong_rows_are_refused(self):
        for splits in ([0, 2], [1, 3], [0, 2, 1, 3], [], [[0, 3]], [0.0, 3.0]):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "row_splits"):
                tf.RaggedTensor.from_row_splits([1, 2, 3], splits)
        for call, kind, text in [
                (lambda: tf.RaggedTensor.from_row_lengths([1, 2], [1, 2]), ValueError, "row_splits"),
                (lambda: tf.RaggedTensor.from_value_rowids([1, 2], [1, 0]), ValueError, "never fall"),
                (lambda: tf.ragged.constant([1, 2]), ValueError, "levels"), (lambda: tf.ragged.constant([[1], [2]])[5], IndexError, "row 5"),
                (lambda: tf.ragged.constant([[1]]).to_tensor(shape=[1]), ValueError, "dimensions"),
                (lambda: tf.reduce_sum(tf.ragged.constant([[1]])), TypeError, "ragged|tensor"),
                (lambda: tf.reshape(tf.ragged.constant([[1]]), [1]), TypeError, "to_tensor")]:
            with self.assertRaisesRegex(kind, text):
                call()

    def test_data_sets_of_rows(self):
        data = tf.data.Dataset.from_tensor_slices(["a b", "c", ""]).map(tf.strings.split)
        self.assertIsInstance(data.element_spec.shape, tf.TensorShape)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "padded_batch"):
            list(data.batch(2))
        rows = data.map(lambda words: tf.RaggedTensor.from_row_lengths(words, [len(words)])).batch(2)
        self.assertEqual([each.to_list() for each in rows], [[[[b"a", b"b"]], [[b"c"]]], [[[]]]])
        self.assertIsInstance(rows.element_spec, tf.RaggedTensorSpec)
        sliced = tf.data.Dataset.from_tensor_slices((tf.ragged.constant([[1, 2], [], [3]]), [7, 8, 9]))
        self.assertEqual([(x.numpy().tolist(), int(y)) for x, y in sliced], [([1, 2], 7), ([], 8), ([3], 9)])
        (first, labels), (last, _) = sliced.ragged_batch(2)
        self.assertEqual((first.to_list(), labels.numpy().tolist(), last.to_list()), ([[1, 2], []], [7, 8], [[3]]))
        self.assertEqual([each.to_list() for each in data.ragged_batch(2)], [[[b"a", b"b"], [b"c"]], [[]]])
        self.assertEqual([x.shape for x in tf.data.Dataset.range(3).ragged_batch(2)], [(2,), (1,)])
        kept = list(rows.map(lambda each: each.to_tensor()[:, 0]).unbatch())
        self.assertEqual([each.numpy().tolist() for each in kept], [[b"a", b"b"], [b"c", b""], []])


class Hashes(tf.test.TestCase):
    def test_bits_are_tensorflows(self):
        words = ["a", "", "naïve", "a somewhat longer string of more than 32 bytes", "x" * 100]
        self.assertAllEqual(tf.strings.to_hash_bucket_fast(words, 1000), FAST)
        self.assertAllEqual(tf.strings.to_hash_bucket_strong(words, 1000, [7, 2**40]), STRONG)
        self.assertAllEqual(tf.strings.to_hash_bucket(words, 1000), OLD)
        for wrong in (0, -1):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "positive"):
                tf.strings.to_hash_bucket_fast(words, wrong)
        with self.assertRaisesRegex(ValueError, "two numbers"):
            tf.strings.to_hash_bucket_strong(words, 3, [1])
        with self.assertRaises(TypeError):
            tf.strings.to_hash_bucket_fast([1, 2], 3)


class OpsOfStrings(tf.test.TestCase):
    def test_shapes(self):
        s = tf.constant(["b", "a", "b"])
        self.assertAllEqual(tf.concat([tf.expand_dims(s, 0), [["x", "y", "z"]]], 0), [[b"b", b"a", b"b"], [b"x", b"y", b"z"]])
        self.assertAllEqual(tf.where(tf.equal(s, "b"), "-", s), [b"-", b"a", b"-"])
        self.assertAllEqual(tf.unique(s).idx, [0, 1, 0])
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.gather(s, [3])
        with self.assertRaisesRegex(TypeError, "TextVectorization"):
            tf.cast(s, tf.float32)
        with self.assertRaises((TypeError, ValueError)):
            tf.reshape(tf.zeros([2]), "a")


class Files(tf.test.TestCase):
    def test_images_from_names_of_files(self):
        folder = self.get_temp_dir()
        for i, kind in enumerate(("cat", "dog", "cat")):
            image = np.full([4 + i, 5, 3], 40 * i, np.uint8)
            tf.io.write_file(os.path.join(folder, kind, f"{i}.png"), tf.io.encode_png(image))

        def load(path):
            image = tf.io.decode_png(tf.io.read_file(path), channels=3)
            return tf.image.resize(image, [2, 2]), tf.strings.split(path, os.sep)[-2] == "dog"
        data = tf.data.Dataset.list_files(f"{folder}/*/*.png", shuffle=False)
        self.assertEqual((len(data), data.element_spec.dtype), (3, tf.string))
        loaded = data.map(load)
        self.assertEqual(len(loaded.batch(2)), 2)
        images, labels = next(iter(loaded.shuffle(3, seed=1).batch(3).prefetch(1)))
        self.assertEqual((images.shape, sorted(labels.tolist())), ((3, 2, 2, 3), [False, False, True]))
        self.assertEqual(sorted(images[:, 0, 0, 0].tolist()), [0, 40, 80])
        with self.assertRaises(tf.errors.NotFoundError):
            tf.io.read_file(os.path.join(folder, "none"))
        with self.assertRaises(tf.errors.DataLossError):
            tf.io.decode_image(b"no image")

    def test_lines_and_words(self):
        path = os.path.join(self.get_temp_dir(), "lines.txt")
        tf.io.write_file(path, "the cat\nthe dog\r\na\n")
        lines = tf.data.TextLineDataset(path)
        self.assertEqual([line.numpy() for line in lines], [b"the cat", b"the dog", b"a"])
        words = lines.flat_map(lambda line: tf.data.Dataset.from_tensor_slices(tf.strings.split(line)))
        self.assertEqual([w.numpy() for w in words], [b"the", b"cat", b"the", b"dog", b"a"])
        self.assertEqual(len(list(lines.filter(lambda line: tf.strings.regex_full_match(line, "the.*")))), 2)
        batch = next(iter(lines.batch(2)))
        self.assertAllEqual(batch, [b"the cat", b"the dog"])
        with self.assertRaisesRegex(TypeError, "hold strings"):
            lines._stages

    def test_texts_beside_numbers(self):
        pairs = tf.data.Dataset.from_tensor_slices((["a", "bb", "ccc"], [1, 2, 3]))
        sizes = pairs.map(lambda text, n: (tf.strings.length(text), n))
        self.assertEqual([(int(a), int(b)) for a, b in sizes.repeat(2).take(4)], [(1, 1), (2, 2), (3, 3), (1, 1)])
        both = tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(["x", "y"]), tf.data.Dataset.range(2)))
        self.assertEqual([(text.numpy(), int(n)) for text, n in both], [(b"x", 0), (b"y", 1)])
        self.assertEqual([int(x) for x in sizes.map(lambda a, b: a + b).batch(3).unbatch()], [2, 4, 6])

    def test_records(self):
        path = os.path.join(self.get_temp_dir(), "a.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(3):
                feature = {"name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % i])),
                           "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, 0.5])),
                           "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[-i]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        wanted = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64),
                  "name": tf.io.FixedLenFeature([], tf.string), "z": tf.io.FixedLenFeature([], tf.float32, 7.0)}
        data = tf.data.TFRecordDataset(path).map(lambda record: tf.io.parse_single_example(record, wanted))
        found = list(data)
        self.assertEqual([each["name"].numpy() for each in found], [b"n0", b"n1", b"n2"])
        self.assertAllEqual(found[2]["x"], [2, 0.5])
        self.assertEqual((found[2]["y"].item(), found[2]["z"].item()), (-2, 7))
        numbers = data.map(lambda each: (each["x"], each["y"])).batch(3)
        self.assertAllEqual(next(iter(numbers))[1], [0, -1, -2])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "no feature 'w'"):
            tf.io.parse_single_example(tf.train.Example().SerializeToString(), {"w": tf.io.FixedLenFeature([], tf.int64)})
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.io.parse_single_example(b"\xff\xff", wanted)

    def test_tensors_and_sound_as_bytes(self):
        x = tf.constant([[1.5, 2.0]])
        self.assertAllEqual(tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32), x)
        self.assertAllEqual(tf.io.decode_raw(np.arange(3, dtype=np.int32).tobytes(), tf.int32), [0, 1, 2])
        sound = tf.constant(np.linspace(-0.5, 0.5, 8, dtype=np.float32)[:, None])
        back, rate = tf.audio.decode_wav(tf.audio.encode_wav(sound, 16000))
        self.assertAllClose(back, sound, atol=1e-4)
        self.assertEqual(rate.item(), 16000)


if __name__ == "__main__":
    tf.test.main()
