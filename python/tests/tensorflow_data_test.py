"""Data sets of strings, and passes: what is read when, what is made anew, sizes that are asserted."""
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


if __name__ == "__main__":
    tf.test.main()
