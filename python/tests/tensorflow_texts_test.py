"""Strings on the host: tf.strings, tables, files, records, and data sets of them."""
import os

import gradus.tensorflow as tf
import numpy as np


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
                (tf.strings.unicode_split("né", "UTF-8"), [b"n", "é".encode()]),
                (tf.strings.unicode_encode(tf.strings.unicode_decode("né", "UTF-8"), "UTF-8"), "né".encode()),
                (tf.strings.format("{} of {}", [1, "x"]), b"1 of x"), (tf.strings.ngrams(["a", "b", "c"], 2), [b"a b", b"b c"])]:
            self.assertAllEqual(found, wanted)
        with self.assertRaisesRegex(ValueError, "ragged"):
            tf.strings.split(["a b", "c"])
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.strings.to_number("x")

    def test_tables(self):
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([3, 4], tf.int64))
        table = tf.lookup.StaticHashTable(words, -1)
        self.assertAllEqual(table.lookup(tf.constant([["a", "x"]])), [[3, -1]])
        spread = tf.lookup.StaticVocabularyTable(words, 2)
        self.assertAllEqual(spread.lookup(["b"]), [4])
        self.assertIn(spread.lookup("other").item(), (2, 3))
        back = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([3, 4], ["a", "b"]), "?")
        self.assertAllEqual(back.lookup([4, 9]), [b"b", b"?"])

    def test_strings_do_not_enter_traced_functions(self):
        with self.assertRaises((TypeError, ValueError)):
            tf.reduce_sum(tf.constant(["a"]))


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
