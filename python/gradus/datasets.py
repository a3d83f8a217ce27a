"""Data sets over the engine's pipelines, with the methods of tf.data. Functions are traced once and run compiled; one that
cannot be traced runs in Python for each element, with a warning the first time."""
import contextlib
import functools
import itertools
import operator
import os

import numpy as np

from . import _native, nest, saved
from ._data_options import AutoShardPolicy, Options  # noqa: F401
from ._elements import OnHost, _collect_shapes, _fields, _Function, _numbers, _scalar, _signature
from ._names import methods_know_keywords
from ._native import TensorSpec, constant, int64
from ._warnings import warn
from .errors import UnknownValueError

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
_LONGEST_RANGE = 1 << 20  # of those whose numbers are in memory


class CallsPython(UnknownValueError):
    """The error of a traced function that calls Python on purpose, by py_function."""


def _packing(structure):
    """The function from fields to elements of this structure."""
    if structure is None:
        return operator.itemgetter(0)
    if type(structure) is tuple and all(part is None for part in structure):
        return tuple
    return functools.partial(nest.pack_sequence_as, structure)


# Contexts in which functions are traced, in this order until a trace succeeds, before they are traced without one. The backend
# of Keras adds some: its layers keep sizes open, and draw for each element.
traced_first = []
_told = set()


def _tell_of_python(stage, f, error):
    """Warns, once for each function of the program, that it runs in Python."""
    code = getattr(f, "__code__", f)
    if isinstance(error, CallsPython) or code in _told or f"{getattr(f, '__module__', '')}".startswith("keras."):
        return
    _told.add(code)
    warn(f"{stage}: {getattr(f, '__name__', 'the function')} cannot be traced, so that it runs in Python for each element: "
         f"{error}")


@methods_know_keywords
class Dataset:
    """Elements, nests of tensors, made by a chain of stages: lazy, restartable, in an order that the seed alone determines,
    for any number of threads. Tuples and dicts are nests; a list is a tensor."""

    _spec = TensorSpec  # the class of element_spec
    _of_texts = _of_text = _zipped = _of_generator = _of_map = _of_ragged = staticmethod(lambda *given: None)  # data sets of strings, where there are

    def __init__(self, stages, structure):
        self._known, self._later = (stages, structure), None

    @classmethod
    def _deferred(cls, later):
        """A data set whose stages later() makes when they are first needed."""
        made = cls.__new__(cls)
        made._known, made._later = None, later
        return made

    def _made(self):
        if self._known is None:
            self._known, self._later = self._later(), None
        return self._known

    _stages = property(lambda self: self._made()[0])
    _structure = property(lambda self: self._made()[1])

    def _then(self, make):
        """The data set of make(stages), with elements of the same structure; deferred if this one is."""
        return self._through(lambda: (make(self._stages), self._structure))

    def _through(self, make, calls_first=False):
        """The data set of the stages and the structure that make() gives. calls_first: make() calls a function of the first
        element, so it is deferred."""
        return Dataset._deferred(make) if calls_first or self._known is None else Dataset(*make())

    # ---- sources

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        """The rows of tensors, arrays or lists, in their nest."""
        texts = Dataset._of_texts(tensors)
        if texts is not None:
            return texts
        structure, fields = _fields(tensors)
        return Dataset(_native._Pipeline.slices(fields), structure)

    @staticmethod
    def from_tensors(tensors, name=None):
        """One element."""
        texts = Dataset._of_text(tensors)
        if texts is not None:
            return texts
        structure, fields = _fields(tensors)
        return Dataset(_native._Pipeline.slices([t[None] for t in fields]), structure)

    @staticmethod
    def range(*args, output_type=int64, name=None):
        """The numbers of Python's range(*args), as scalars of output_type."""
        numbers = range(*map(int, args))
        if len(numbers) <= _LONGEST_RANGE:
            return Dataset.from_tensor_slices(constant(np.arange(*map(int, args), dtype=np.int64), output_type))
        return Dataset._counted(len(numbers), numbers.start, numbers.step, output_type)

    @staticmethod
    def _counted(count, start, step, output_type):
        """`count` numbers that are not in memory; None: without end."""
        one = Dataset.from_tensor_slices(constant([0], int64)).repeat(count).enumerate(0)
        return one.map(lambda i, _: _native.ops.cast(i * step + start, output_type))

    @staticmethod
    def counter(start=0, step=1, dtype=int64, name=None):
        """start, start + step ... without end."""
        return Dataset._counted(None, start, step, dtype)

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        """Random whole numbers from 0 to 2^32 - 1, int64, without end: the same ones in each pass, unless
        rerandomize_each_iteration is true. Without a seed they follow from set_seed."""
        key = [int(_native.random.integers([], high=1 << 31)) if seed is None else _scalar(seed, "seed") % (1 << 31)]
        numbers = Dataset.counter()
        if rerandomize_each_iteration:
            passes = itertools.count()
            of_pass = Dataset.from_generator(lambda: itertools.repeat(next(passes)), output_signature=TensorSpec([], int64))
            numbers = Dataset.zip(numbers, of_pass).map(lambda i, n: _native.random.stateless_fold_in(
                _native.ops.stack([constant(key[0], int64), n], 0), i))
        else:
            numbers = numbers.map(lambda i: _native.ops.stack([constant(key[0], int64), i], 0))
        return numbers.map(lambda at: _native.random.stateless_integers([], at, high=1 << 32, dtype=int64))

    @staticmethod
    def load(path, element_spec=None, compression=None, reader_func=None):
        """The data set that save() has written; its files are read when elements are needed. UnavailableError if there is
        none, DataLossError for damaged files. A named tuple comes back as a tuple."""
        return saved.load(Dataset, path, element_spec, compression, reader_func)

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        """The elements that generator(*args) yields; each pass calls it again. `output_signature`: the nest of TensorSpecs of
        an element."""
        if not callable(generator):
            raise TypeError("from_generator: a function that makes the iterator is needed, such as lambda: iterator")
        signature = output_signature
        if signature is None:
            signature = _signature(output_types, output_shapes)
        texts = Dataset._of_generator(generator, signature, tuple(args or ()))
        if texts is not None:
            return texts
        specs, arguments = nest.flatten(signature), tuple(args or ())
        for spec in specs:
            if not isinstance(spec, TensorSpec):
                raise TypeError(f"from_generator: output_signature is a nest of TensorSpecs, not of {type(spec).__name__}")
        stages = _native._Pipeline.generate(specs, signature, lambda: generator(*arguments))
        return Dataset(stages, nest.map_structure(lambda _: None, signature))

    @staticmethod
    def zip(*args, datasets=None, name=None):
        """Elements that are nests of the elements of several data sets, as many as the shortest has."""
        parts = args[0] if len(args) == 1 else args or datasets
        leaves = nest.flatten(parts)
        if not leaves or not all(isinstance(each, Dataset) for each in leaves):
            raise TypeError("zip: takes data sets, or a tuple or dict of them")
        texts = Dataset._zipped(parts)
        if texts is not None:
            return texts
        if any("_get" in each.__dict__ for each in leaves):  # data sets of data sets
            from .windows import zipped
            return zipped(parts, leaves)
        return Dataset._deferred(lambda: (_native._Pipeline.zip([each._stages for each in leaves]),
                                          nest.pack_sequence_as(parts, [each._structure for each in leaves])))

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False,
                             rerandomize_each_iteration=None):
        """Draws each element from one of the data sets at random, until all have ended. No weights: all are equally likely."""
        shares = [] if weights is None else [float(w) for w in weights]
        stages = _native._Pipeline.sample([each._stages for each in datasets], shares, seed, stop_on_empty_dataset,
                                          bool(rerandomize_each_iteration))
        return Dataset(stages, datasets[0]._structure)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """Takes each element from the data set whose number is the next element of choice_dataset."""
        stages = _native._Pipeline.choose([each._stages for each in datasets], choice_dataset._stages,
                                          stop_on_empty_dataset)
        return Dataset(stages, datasets[0]._structure)

    # ---- functions

    def _call(self, f, context=contextlib.nullcontext):
        return _Function(f, self._structure, context=context)

    def _traced(self, stage, f, make):
        """make(function, in_python) of f as a function of fields: traced if possible, else in Python."""
        for context in traced_first:
            try:
                return make(self._call(f, context), False)
            except OnHost:
                raise
            except CallsPython:
                break
            except Exception:  # the last trace reports it, or succeeds
                pass
        try:
            return make(self._call(f), False)
        except UnknownValueError as error:
            made = make(self._call(f), True)
            _tell_of_python(stage, f, error)
            return made

    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, name=None):
        """map_func of each element; the parts of a tuple are its arguments."""
        calls = AUTOTUNE if num_parallel_calls is None else _scalar(num_parallel_calls, "num_parallel_calls")

        def make():
            def of_stages(f, in_python):
                return self._stages.map(f, calls, in_python), f
            stages, f = self._traced("map", map_func, of_stages)
            return stages, f.structure
        try:
            return self._through(make)
        except OnHost:
            return self._of_map(self, map_func)

    def filter(self, predicate, name=None):
        """The elements for which the predicate is true."""
        return self._then(lambda stages: self._traced(
            "filter", predicate, stages.filter))

    def _filter_in_python(self, predicate):
        f = _Function(predicate, self._structure, spreads=False)
        return self._then(lambda stages: stages.filter(f, True))

    def take_while(self, predicate, name=None):
        """The elements before the first one for which the predicate is false."""
        return self._then(lambda stages: self._traced(
            "take_while", predicate, stages.take_while))

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None,
                   name=None):
        """The elements of the data sets that map_func of each element gives: cycle_length data sets are read alternately,
        block_length elements per turn. map_func is called when elements are needed."""
        cycle = 4 if cycle_length in (None, AUTOTUNE) else _scalar(cycle_length, "cycle_length")
        return self._interleaved(map_func, cycle, 1 if block_length is None else _scalar(block_length, "block_length"),
                                 "interleave")

    def flat_map(self, map_func, name=None):
        """The elements of the data sets that map_func of each element gives, one data set after the other. map_func is called
        when elements are needed."""
        return self._interleaved(map_func, 1, 1, "flat_map")

    def _interleaved(self, map_func, cycle, block, name):
        def make():
            f, found = self._call(map_func), []

            def stages_of(fields):
                made = f.call(fields)
                if not isinstance(made, Dataset):
                    raise TypeError(f"{name}: map_func gives a Dataset, not a {type(made).__name__}")
                found[:] = [made._structure]
                return made._stages
            try:
                return self._stages.interleave(stages_of, cycle, block, name), found[0]
            except _native.InvalidArgumentError:
                if found or self._count() != 0 and next(iter(self), None) is not None:
                    raise
                return self._stages, self._structure  # without an element there is nothing to call map_func with
        return self._through(make, calls_first=True)

    def scan(self, initial_state, scan_func, name=None):
        """The results of scan_func(state, element), which gives the next state and a result."""
        structure, first = _fields(initial_state)

        def make():
            results = []

            def step(fields):
                state = nest.pack_sequence_as(structure, fields[:len(first)])
                found = scan_func(state, nest.pack_sequence_as(self._structure, fields[len(first):]))
                after, states = _fields(found[0])
                nest.assert_same_structure(structure, after)
                results[:], tensors = [_fields(found[1])[0]], _fields(found[1])[1]
                return states + tensors
            return self._stages.scan(first, step), results[0]
        return self._through(make)

    def reduce(self, initial_state, reduce_func, name=None):
        """The state after the last of state = reduce_func(state, element)."""
        structure, first = _fields(initial_state)

        def step(fields):
            state = nest.pack_sequence_as(structure, fields[:len(first)])
            return _fields(reduce_func(state, nest.pack_sequence_as(self._structure, fields[len(first):])))[1]
        return nest.pack_sequence_as(structure, self._stages.reduce(first, step))

    def apply(self, transformation_func):
        """transformation_func(self), a data set."""
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(f"apply: the function gives a Dataset, not a {type(made).__name__}")
        return made

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None):
        """Collects elements of one key, which key_func gives, until there are window_size of them; the elements of the data
        set that reduce_func(key, window) gives come next."""
        if (window_size is None) == (window_size_func is None):
            raise ValueError("group_by_window: window_size or window_size_func is needed, one of them")
        size = window_size_func or (lambda key: window_size)

        def make():
            found = []

            def reduced(fields):
                made = reduce_func(fields[0], Dataset(self._stages.holding(fields[1:]), self._structure))
                if not isinstance(made, Dataset):
                    raise TypeError(f"group_by_window: reduce_func gives a Dataset, not a {type(made).__name__}")
                found[:] = [made._structure]
                return made._stages
            stages = self._stages.group_by_window(self._call(key_func), reduced,
                                                  lambda key: int(size(constant(key, int64))))
            return stages, found[0]
        return self._through(make, calls_first=True)

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                                  padding_values=None, pad_to_bucket_boundary=False, no_padding=False,
                                  drop_remainder=False, name=None):
        """Padded batches of elements of similar length."""
        if pad_to_bucket_boundary or no_padding:
            raise ValueError("bucket_by_sequence_length: batches are padded to their longest element")
        return self._then(lambda stages: stages.bucket_by_sequence_length(
            self._call(element_length_func), list(bucket_boundaries), list(bucket_batch_sizes),
            self._shapes(padded_shapes), _numbers(padding_values), drop_remainder))

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
        """Elements (class, element), dropped at random so that the classes, given by class_func, follow target_dist."""
        return self._through(lambda: (self._stages.rejection_resample(
            self._call(class_func), _numbers(target_dist), _numbers(initial_dist), seed), (None, self._structure)))

    # ---- batches

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """Joins batch_size elements of equal sizes along a new axis 0."""
        made = self._then(lambda stages: stages.batch(_scalar(batch_size, "batch_size"), bool(drop_remainder)))
        made._batch_size = batch_size  # Keras's split_dataset asks for it
        return made

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """Joins batch_size elements of different sizes, padded to the largest, or to padded_shapes."""
        size = _scalar(batch_size, "batch_size")
        return self._then(lambda stages: stages.padded_batch(size, self._shapes(padded_shapes), _numbers(padding_values),
                                                             bool(drop_remainder)))

    def _shapes(self, padded_shapes):
        """One shape for each field."""
        if padded_shapes is None:
            return []
        shapes = []
        _collect_shapes(padded_shapes, self._structure, shapes)
        return shapes

    def unbatch(self, name=None):
        """Every row of axis 0 as an element."""
        return self._then(lambda stages: stages.unbatch())

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Batches of another size. Several sizes are used in order, and again from the first one."""
        sizes = [int(n) for n in np.atleast_1d(np.asarray(batch_size))]
        return self._then(lambda stages: stages.rebatch(sizes, bool(drop_remainder)))

    def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype=int64, name=None):
        """Joins batch_size elements, as RaggedTensors where sizes vary. NotImplementedError without gradus.tensorflow."""
        made = self._of_ragged(self, _scalar(batch_size, "batch_size"), bool(drop_remainder))
        if made is None:
            raise NotImplementedError("ragged_batch: ragged tensors are in gradus.tensorflow: import it, or pad by padded_batch")
        return made

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Windows of elements, as data sets in the nest of an element."""
        from .windows import windows_of
        shift = None if shift is None else _scalar(shift, "shift")
        return windows_of(self, _scalar(size, "size"), shift, _scalar(stride, "stride"), bool(drop_remainder))

    # ---- order

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=None, name=None):
        """Draws each element at random from a buffer of buffer_size elements. No seed: one that follows from set_seed."""
        again = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
        return self._then(lambda stages: stages.shuffle(_scalar(buffer_size, "buffer_size"), seed, again))

    def repeat(self, count=None, name=None):
        """The data set `count` times; None or -1: without end."""
        return self._then(lambda stages: stages.repeat(-1 if count is None else _scalar(count, "count")))

    def take(self, count, name=None):
        """The first `count` elements; -1: all."""
        count = _scalar(count, "count")
        return self if count == -1 else self._then(lambda stages: stages.take(count))

    def skip(self, count, name=None):
        """All but the first `count` elements; -1: none."""
        count = _scalar(count, "count")
        return self._then(lambda stages: stages.take(0) if count == -1 else self._stages.skip(count))

    def shard(self, num_shards, index, name=None):
        """Every num_shards-th element, from number `index` on."""
        return self._then(lambda stages: stages.shard(_scalar(num_shards, "num_shards"), _scalar(index, "index")))

    def concatenate(self, dataset, name=None):
        """The elements of this data set, then those of another one."""
        def make(stages):
            nest.assert_same_structure(self._structure, dataset._structure)
            return stages.concatenate(dataset._stages)
        return self._then(make)

    def enumerate(self, start=0, name=None):
        """Elements (number, element), counted from `start`, int64."""
        first = _scalar(start, "start")
        return self._through(lambda: (self._stages.enumerate(first), (None, self._structure)))

    def unique(self, name=None):
        """Each element once. Elements are integers."""
        return self._then(lambda stages: stages.unique())

    def cache(self, filename="", name=None):
        """Keeps the elements in memory, or in the file `filename`."""
        return self._then(lambda stages: stages.cache_in(str(filename)) if filename else self._stages.cache())

    def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
        """Writes all elements into a directory, from which load() reads them. An older data set there is replaced when the new
        one is whole."""
        saved.save(self, path, compression, shard_func)

    def snapshot(self, path, compression="AUTO", reader_func=None, shard_func=None, name=None):
        """cache() in a file of this directory: the first pass writes it, and all passes of later runs read it."""
        saved._require_plain("snapshot", compression, shard_func or reader_func)
        os.makedirs(path, exist_ok=True)
        return self.cache(os.path.join(path, "snapshot"))

    def prefetch(self, buffer_size=AUTOTUNE, name=None):
        """Makes up to buffer_size elements ahead, on other threads."""
        return self._then(lambda stages: stages.prefetch(_scalar(buffer_size, "buffer_size")))

    def ignore_errors(self, log_warning=False, name=None):
        """Leaves out elements whose map, file or batch raises an error; log_warning prints a notice of each."""
        return self._then(lambda stages: stages.ignore_errors(log_warning))

    def with_options(self, options, name=None):
        """The data set itself: the engine needs no options."""
        return self

    def options(self):
        """The default options."""
        return Options()

    # ---- elements

    def __iter__(self):
        return Iterator(self._stages.begin(), self)

    def _element(self, fields):
        """The element of these fields."""
        pack = self.__dict__.get("_pack")
        if pack is None:
            pack = self._pack = _packing(self._structure)
        return pack(fields)

    def as_numpy_iterator(self):
        """The elements, with arrays of NumPy for tensors."""
        for element in self:
            yield nest.map_structure(lambda tensor: tensor.numpy(), element)

    def get_single_element(self, name=None):
        """The only element. InvalidArgumentError if there is none or more than one."""
        return self._single(list(self.take(2)))

    @staticmethod
    def _single(found):
        if len(found) != 1:
            raise _native.InvalidArgumentError(f"get_single_element: the data set has {'no' if not found else 'several'} "
                                               "elements, one is needed")
        return found[0]

    @property
    def element_spec(self):
        """The nest of TensorSpecs of an element."""
        specs = [Dataset._spec(spec.shape, spec.dtype) for spec in self._stages.specs()]
        return nest.pack_sequence_as(self._structure, specs)

    def assert_cardinality(self, cardinality):
        """The data set, with this cardinality. InvalidArgumentError if it is known to be another one, and in a pass that gives
        more or fewer elements."""
        wanted = _scalar(cardinality, "cardinality")
        if self._count() is not None:
            self._require_count(wanted, self._count())
            return self

        def counted():
            count = 0
            for element in self:
                if count == wanted:
                    self._require_count(wanted, "more")
                count += 1
                yield element
            self._require_count(wanted, count)
        made = Dataset._from_same(self, counted)
        made._asserted = wanted
        return made

    def _from_same(self, make):
        return Dataset.from_generator(make, output_signature=self.element_spec)

    @staticmethod
    def _require_count(wanted, count):
        if count != wanted:
            raise _native.InvalidArgumentError(f"assert_cardinality: the data set has {count} elements, {wanted} were asserted")

    def _count(self):
        if "_asserted" in self.__dict__:
            return self._asserted
        return INFINITE_CARDINALITY if self._stages.is_endless() else self._stages.cardinality()

    def cardinality(self, name=None):
        """The number of elements, INFINITE_CARDINALITY (-1) or UNKNOWN_CARDINALITY (-2), as an int64 scalar."""
        count = self._count()
        return constant(UNKNOWN_CARDINALITY if count is None else count, int64)

    def __len__(self):
        count = self._count()
        if count is None or count < 0:
            raise TypeError("len(): the number of elements is " + ("not known without reading them" if count is None else
                                                                    "infinite"))
        return count

    def __bool__(self):
        return True

    def explain(self):
        """A report of the time of each stage in all passes so far."""
        return self._stages.explain()

    def __repr__(self):
        return f"<Dataset element_spec={self.element_spec}>"


class Iterator:
    """One pass over a data set."""

    def __init__(self, reading, dataset):
        self._reading, self._dataset, self._has_ended = reading, dataset, False

    element_spec = property(lambda self: self._dataset.element_spec, doc="As Dataset.element_spec.")

    def __iter__(self):
        return self

    def __next__(self):
        if self._has_ended:
            raise StopIteration
        try:
            fields = next(self._reading)
        except StopIteration:
            self._has_ended = True
            raise
        return self._dataset._element(fields)

    def _position(self):
        """The position in the data set, for checkpoints; empty after its end."""
        return [] if self._has_ended else list(self._reading.position())

    def _go_to(self, epoch=None, index=None):
        self._has_ended = epoch is None
        self._reading.close()
        if self._has_ended:
            return
        self._reading = self._dataset._stages.begin_at(epoch, index)

    def close(self):
        """Ends the pass, and the threads that make elements for it."""
        self._reading.close()

    def get_next(self):
        """The next element. OutOfRangeError at the end."""
        try:
            return next(self)
        except StopIteration:
            raise _native.OutOfRangeError("get_next: the data set has ended") from None

