"""Data sets of strings, and passes: what is read when, what is made anew, sizes that are asserted."""
import json
import os

import gradus.tensorflow as tf

D = tf.data.Dataset


def texts(dataset):
    return [x.numpy() for x in dataset]


def generated(make):
    return D.from_generator(make, output_signature=tf.TensorSpec([], tf.string))


class Strings(tf.test.TestCase):
    def test_endless_data_sets_are_read_as_they_are_asked_for(self):
        read = []

        def endless():
            while True:
                read.append(1)
                yield f"{len(read)}"
        for made in (generated(endless), D.from_tensor_slices(["1", "2"]).repeat().flat_map(
                lambda x: D.from_tensor_slices([x])), generated(endless).concatenate(generated(endless)),
                     generated(endless).take_while(lambda x: True), generated(endless).batch(2).unbatch()):
            self.assertEqual(len(texts(made.take(3))), 3)
        self.assertLess(len(read), 200)

    def test_files_are_read_as_they_are_asked_for(self):
        path = os.path.join(self.get_temp_dir(), "lines")
        with open(path, "w") as file:
            file.write("a\nb\r\nc")
        lines = tf.data.TextLineDataset(path)
        self.assertEqual(texts(lines), [b"a", b"b", b"c"])
        with open(path, "w") as file:
            file.write("new\n")
        self.assertEqual(texts(lines), [b"new"])

    def test_each_pass_runs_the_generator(self):
        runs = []

        def make():
            runs.append(1)
            yield f"run {len(runs)}"
        dataset = generated(make)
        self.assertNotEqual(texts(dataset), texts(dataset))

    def test_orders_differ_from_pass_to_pass_and_follow_the_seed(self):
        names = [f"{i:02}" for i in range(32)]
        folder = self.get_temp_dir()
        for name in names:
            open(os.path.join(folder, name), "w").close()
        for make in (lambda: D.from_tensor_slices(names).shuffle(32), lambda: D.list_files(os.path.join(folder, "*"))):
            def orders(seed):
                tf.random.set_seed(seed)
                dataset = make()
                return [texts(dataset) for _ in range(2)]
            self.assertEqual(orders(3), orders(3))
            self.assertNotEqual(orders(3), orders(4))
            first, second = orders(3)
            self.assertNotEqual(first, second)
            self.assertEqual(sorted(first), sorted(second))

    def test_all_methods_take_strings(self):
        words = D.from_tensor_slices(["a", "bb", "a"])
        self.assertEqual(texts(words.unique()), [b"a", b"bb"])
        self.assertEqual(texts(D.from_tensors("a")), [b"a"])
        self.assertEqual([x.numpy().tolist() for x in D.from_tensors(["a", "b"])], [[b"a", b"b"]])
        self.assertEqual(texts(words.filter(lambda x: False).batch(2)), [])
        pass_ = iter(words.take(1))
        self.assertEqual(pass_.get_next().numpy(), b"a")
        with self.assertRaises(tf.errors.OutOfRangeError):
            pass_.get_next()
        parts = D.from_tensor_slices([["a b c", "d"]]).unbatch().map(lambda x: (tf.strings.split([x])[0], tf.strings.length(x)))
        (split, lengths), = parts.padded_batch(2)
        self.assertEqual(split.numpy().tolist(), [[b"a", b"b", b"c"], [b"d", b"", b""]])
        self.assertEqual(lengths.tolist(), [5, 1])
        self.assertEqual([x.numpy().tolist() for x in words.unique().batch(2).repeat(2)], [[b"a", b"bb"]] * 2)


class Passes(tf.test.TestCase):
    def test_ranges_take_no_memory(self):
        self.assertEqual([int(x) for x in D.range(10**13).take(2)], [0, 1])
        self.assertEqual([int(x) for x in D.range(5, 10**13, 10).skip(3).take(2)], [35, 45])
        self.assertEqual(len(D.range(10**13)), 10**13)
        self.assertEqual([int(x) for x in D.counter(3, 2).take(2)], [3, 5])
        self.assertEqual(next(iter(tf.data.experimental.Counter(1, 2, tf.int32))).dtype, tf.int32)

    def test_nothing_has_no_data_sets_within(self):
        for name in ("flat_map", "interleave"):
            self.assertEqual(list(getattr(D.range(0), name)(lambda x: D.range(3))), [])

    def test_a_checkpoint_holds_the_end_of_a_pass(self):
        ended, fresh = iter(D.range(2)), iter(D.range(2))
        list(ended)
        path = tf.train.Checkpoint(data=ended).write(os.path.join(self.get_temp_dir(), "c"))
        tf.train.Checkpoint(data=fresh).read(path)
        self.assertEqual(list(fresh), [])
        again = iter(D.range(2))
        next(again)
        path = tf.train.Checkpoint(data=again).write(os.path.join(self.get_temp_dir(), "d"))
        tf.train.Checkpoint(data=ended).read(path)
        self.assertEqual([int(x) for x in ended], [1])

    def test_asserted_sizes(self):
        self.assertEqual(len(D.range(3).assert_cardinality(3)), 3)
        with self.assertRaisesRegex(ValueError, "has 3 elements"):
            D.range(3).assert_cardinality(4)
        some = D.range(6).filter(lambda x: x < 3)
        asserted = some.assert_cardinality(3)
        self.assertEqual((len(asserted), [int(x) for x in asserted]), (3, [0, 1, 2]))
        for count in (2, 4):
            with self.assertRaisesRegex(ValueError, "assert_cardinality"):
                list(some.assert_cardinality(count))


def batches(dataset):
    return [x.tolist() for x in dataset]


def sum_of(window):
    return window.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)


class Windows(tf.test.TestCase):
    numbers = D.range(7).window(3)
    pairs = D.from_tensor_slices({"a": [1, 2, 3], "b": [4.0, 5.0, 6.0]}).window(2)

    def test_windows_are_data_sets(self):
        self.assertEqual(batches(self.numbers.flat_map(lambda w: w.batch(3))), [[0, 1, 2], [3, 4, 5], [6]])
        self.assertEqual([batches(w.map(lambda x: 2 * x)) for w in self.numbers], [[0, 2, 4], [6, 8, 10], [12]])
        self.assertEqual(len(self.numbers), 3)
        self.assertIsInstance(self.numbers, D)
        self.assertIsInstance(self.numbers.element_spec, tf.data.DatasetSpec)
        self.assertEqual(self.numbers.element_spec.element_spec.dtype, tf.int64)
        self.assertEqual(batches(iter(self.numbers).get_next()), [0, 1, 2])

    def test_windows_of_nests_are_nests(self):
        self.assertEqual(sorted(self.pairs.element_spec), ["a", "b"])
        self.assertEqual([(batches(w["a"]), batches(w["b"])) for w in self.pairs], [([1, 2], [4, 5]), ([3], [6])])
        both = D.from_tensor_slices(([1, 2, 3], [4, 5, 6])).window(2)
        joined = both.flat_map(lambda x, y: D.zip((x.batch(2), y.batch(2))))
        self.assertEqual([(x.tolist(), y.tolist()) for x, y in joined], [([1, 2], [4, 5]), ([3], [6])])

    def test_methods_of_windows(self):
        n = self.numbers
        self.assertEqual([batches(w) for w in n.map(lambda w: w.batch(3))], [[[0, 1, 2]], [[3, 4, 5]], [[6]]])
        self.assertEqual(batches(n.map(sum_of)), [3, 12, 6])
        self.assertEqual(batches(n.map(lambda w: w.batch(2)).flat_map(lambda w: w.map(tf.reduce_sum))), [1, 2, 7, 5, 6])
        self.assertEqual([batches(w) for w in n.filter(lambda w: w.cardinality() == 3)], [[0, 1, 2], [3, 4, 5]])
        self.assertEqual([batches(w) for w in n.take_while(lambda w: sum_of(w) < 10)], [[0, 1, 2]])
        self.assertEqual([(int(i), batches(w)) for i, w in n.enumerate(5).skip(1)], [(6, [3, 4, 5]), (7, [6])])
        self.assertEqual(int(n.reduce(0, lambda s, w: s + sum_of(w))), 21)
        self.assertEqual([batches(w) for w in n.skip(1).concatenate(n.take(1))], [[3, 4, 5], [6], [0, 1, 2]])
        self.assertEqual(sorted(map(str, (batches(w) for w in n.shuffle(3, seed=1).repeat(2).prefetch(1)))),
                         sorted(2 * ["[0, 1, 2]", "[3, 4, 5]", "[6]"]))
        self.assertEqual(batches(n.interleave(lambda w: w, cycle_length=2)), [0, 3, 1, 4, 2, 5, 6])
        beside = D.zip((n, D.range(10, 20), self.pairs.map(lambda w: 0)))
        self.assertEqual([(batches(w), int(i), int(j)) for w, i, j in beside], [([0, 1, 2], 10, 0), ([3, 4, 5], 11, 0)])
        with self.assertRaisesRegex(TypeError, "before window"):
            D.zip((n, n))
        seen = []
        self.assertEqual(batches(n.repeat().map(lambda w: seen.append(1) or tf.constant(len(batches(w)))).take(4)), [3, 3, 1, 3])
        self.assertLessEqual(len(seen), 7)
        self.assertEqual(list(D.range(0).window(2).flat_map(lambda w: w.batch(2))), [])

    def test_methods_that_need_tensors_say_so(self):
        for call in (lambda: self.numbers.batch(2), lambda: self.numbers.unbatch(), lambda: self.numbers.save("x"),
                     lambda: self.numbers.as_numpy_iterator(), lambda: self.numbers.concatenate(self.pairs)):
            with self.assertRaisesRegex(TypeError, "data sets"):
                call()
        with self.assertRaisesRegex(TypeError, "flat_map: map_func gives a Dataset, not a"):
            list(self.numbers.flat_map(lambda w: 1))


class Sources(tf.test.TestCase):
    def test_random_numbers(self):
        first = D.random(seed=4).take(5)
        self.assertEqual(batches(first), batches(first))
        self.assertEqual(batches(first), batches(D.random(seed=4).take(5)))
        self.assertNotEqual(batches(first), batches(D.random(seed=5).take(5)))
        self.assertEqual((first.element_spec.dtype, int(D.random().cardinality())), (tf.int64, -1))
        self.assertTrue(all(0 <= x < 2**32 for x in batches(D.random(seed=1).take(100))))
        again = D.random(seed=4, rerandomize_each_iteration=True).take(5)
        self.assertNotEqual(batches(again), batches(again))
        found = []
        for _ in range(2):
            tf.random.set_seed(3)
            found.append(batches(D.random().take(3)))
        self.assertEqual(*found)

    def test_saved_and_loaded(self):
        path = os.path.join(self.get_temp_dir(), "saved")
        rows = D.from_tensor_slices({"x": tf.reshape(tf.range(6.0), [3, 2]), "y": (tf.constant([1, 2, 3], tf.int8), [True, False, True])})
        rows.save(path)
        loaded = D.load(path)
        self.assertEqual((loaded.element_spec, len(loaded)), (rows.element_spec, 3))
        for a, b in zip(rows, loaded):
            self.assertAllEqual(a["x"], b["x"])
            self.assertEqual([each.tolist() for each in a["y"]], [each.tolist() for each in b["y"]])
        D.from_tensor_slices(tf.cast([1.5, 2.5], tf.bfloat16)).save(path)  # replaces it
        self.assertEqual([(x.dtype, float(x)) for x in D.load(path)], [(tf.bfloat16, 1.5), (tf.bfloat16, 2.5)])
        self.assertEqual(len(os.listdir(path)), 2)
        D.range(5).batch(2).save(path)
        self.assertEqual(batches(D.load(path, tf.TensorSpec([None], tf.int64))), [[0, 1], [2, 3], [4]])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "no end"):
            D.random().save(path)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            D.load(path, tf.TensorSpec([], tf.float32))
        with self.assertRaisesRegex(tf.errors.NotFoundError, "no data set"):
            D.load(path + "_")

    def test_files_that_are_not_whole(self):
        path = os.path.join(self.get_temp_dir(), "damaged")
        D.range(3).save(path)
        (folder,) = [name for name in os.listdir(path) if not name.endswith(".json")]
        file = os.path.join(path, folder, "00000.tfrecord")
        with open(file, "rb") as opened:
            whole = opened.read()
        for damaged in (whole[:-3], whole[:20] + b"x" + whole[21:], whole[: len(whole) // 3]):
            with open(file, "wb") as opened:
                opened.write(damaged)
            with self.assertRaises(tf.errors.DataLossError):
                list(D.load(path))
        for text in ("", "[]", "{}", '{"version": 2}', '{"version": 1, "specs": [{"shape": "x", "dtype": "int8"}]}'):
            with open(os.path.join(path, "elements.json"), "w") as opened:
                opened.write(text)
            with self.assertRaises(tf.errors.DataLossError):
                D.load(path)

    def test_a_damaged_data_set_may_be_replaced_and_nothing_beside_it(self):
        beside = os.path.join(self.get_temp_dir(), "beside")
        path = os.path.join(beside, "saved")
        os.makedirs(os.path.join(path, "mine"))
        kept = os.path.join(beside, "kept")
        open(kept, "w").close()
        for folder in ("..", ".", "", "mine", "/", "elements-/..", beside):
            with open(os.path.join(path, "elements.json"), "w") as opened:
                json.dump({"version": 1, "folder": folder, "files": [], "count": 0, "structure": None, "specs": []}, opened)
            D.range(3).save(path)
            self.assertEqual(batches(D.load(path)), [0, 1, 2])
            self.assertTrue(os.path.exists(kept) and os.path.exists(os.path.join(path, "mine")), folder)
        with open(os.path.join(path, "elements.json"), "w") as opened:
            opened.write("{")
        D.range(2).save(path)
        self.assertEqual(batches(D.load(path)), [0, 1])

    def test_snapshots(self):
        runs = []

        def make():
            runs.append(1)
            yield from range(3)
        path = os.path.join(self.get_temp_dir(), "snapshot")
        for _ in range(2):
            made = D.from_generator(make, output_signature=tf.TensorSpec([], tf.int32)).snapshot(path)
            self.assertEqual(batches(made), [0, 1, 2])
        self.assertEqual(len(runs), 1)


if __name__ == "__main__":
    tf.test.main()
