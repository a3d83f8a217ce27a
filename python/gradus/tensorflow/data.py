"""tf.data: data sets over the engine's pipelines. Functions are traced once and run compiled; what cannot be traced runs
in Python for each element, which a warning says once."""
import atexit
import types
import warnings
import weakref

import numpy as np

from .. import Tensor, _native, int64
from . import nest
from .shapes import TensorSpec
from .tensors import constant, convert_to_tensor, is_tensor

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2

_readings = weakref.WeakSet()


@atexit.register
def _end_readings():
    """Ends all passes: their threads may be in a generator of Python when the interpreter ends."""
    for reading in list(_readings):
        reading.close()


# ---- elements

def _nested(value):
    """An element with its lists as tensors: in tf.data tuples and dicts alone are nests."""
    if isinstance(value, dict):
        return {key: _nested(each) for key, each in value.items()}
    if isinstance(value, tuple):
        made = [_nested(each) for each in value]
        return value._make(made) if hasattr(value, "_fields") else tuple(made)
    return convert_to_tensor(value)


def _fields(element):
    """The structure of an element, and its tensors."""
    tensors = _nested(element)
    return nest.map_structure(lambda _: None, tensors), nest.flatten(tensors)


class _Function:
    """A function of an element as one of its fields. The structure of what it gives is known once it was called."""

    def __init__(self, f, of, spreads=True):
        self.f, self.of, self.spreads, self.structure = f, of, spreads, None

    def call(self, fields):
        element = nest.pack_sequence_as(self.of, fields)
        return self.f(*element) if self.spreads and isinstance(element, tuple) else self.f(element)

    def __call__(self, fields):
        self.structure, tensors = _fields(self.call(fields))
        return tensors


def _scalar(value, name):
    if is_tensor(value):
        value = value.item()
    if isinstance(value, bool) or int(value) != value:
        raise ValueError(f"{name} is a whole number, not {value!r}")
    return int(value)


class Options:
    """Options of data sets, as attributes. The engine tunes itself, so that none changes a result."""

    def __init__(self):
        self.autotune = types.SimpleNamespace()
        self.experimental_optimization = types.SimpleNamespace()
        self.experimental_distribute = types.SimpleNamespace()
        self.threading = types.SimpleNamespace()
        self.deterministic = True


class AutoShardPolicy:
    """How replicas divide a data set: always by rows of batches."""
    OFF, AUTO, FILE, DATA = -1, 0, 1, 2


class Dataset:
    """Elements, nests of tensors, that a chain of stages makes: lazy, restartable, in one order for a seed whatever the
    number of threads."""

    def __init__(self, stages, structure):
        self._stages, self._structure = stages, structure

    # ---- sources

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        """The rows of tensors, arrays or lists, in their nest."""
        structure, fields = _fields(tensors)
        return Dataset(_native._Pipeline.slices(fields), structure)

    @staticmethod
    def from_tensors(tensors, name=None):
        """One element."""
        structure, fields = _fields(tensors)
        return Dataset(_native._Pipeline.slices([t[None] for t in fields]), structure)

    @staticmethod
    def range(*args, output_type=int64, name=None):
        """Numbers, as Python's range."""
        return Dataset.from_tensor_slices(constant(np.arange(*map(int, args), dtype=np.int64), output_type))

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        """The elements that generator(*args) yields, anew in each pass, as `output_signature`, a nest of TensorSpecs,
        describes them."""
        if not callable(generator):
            raise TypeError("from_generator: a function that makes the iterator is needed, such as lambda: iterator")
        signature = output_signature
        if signature is None:
            signature = _signature(output_types, output_shapes)
        specs, arguments = nest.flatten(signature), tuple(args or ())

        def make():
            for element in generator(*arguments):
                yield _as_signature(element, signature)
        return Dataset(_native._Pipeline.generate(specs, make), nest.map_structure(lambda _: None, signature))

    @staticmethod
    def zip(*args, datasets=None, name=None):
        """The elements of several data sets, side by side, as long as the shortest."""
        parts = args[0] if len(args) == 1 else args or datasets
        leaves = nest.flatten(parts)
        if not leaves or not all(isinstance(each, Dataset) for each in leaves):
            raise TypeError("zip: takes data sets, or a tuple or dict of them")
        structure = nest.pack_sequence_as(parts, [each._structure for each in leaves])
        return Dataset(_native._Pipeline.zip([each._stages for each in leaves]), structure)

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False,
                             rerandomize_each_iteration=None):
        """The next element of one of the data sets, drawn at random, until all have ended."""
        shares = [] if weights is None else [float(w) for w in weights]
        stages = _native._Pipeline.sample([each._stages for each in datasets], shares, seed, stop_on_empty_dataset,
                                          bool(rerandomize_each_iteration))
        return Dataset(stages, datasets[0]._structure)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """The next element of the data set whose number the next element of choice_dataset is."""
        stages = _native._Pipeline.choose([each._stages for each in datasets], choice_dataset._stages,
                                          stop_on_empty_dataset)
        return Dataset(stages, datasets[0]._structure)

    # ---- functions

    def _call(self, f, spreads=True):
        return _Function(f, self._structure, spreads)

    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, name=None):
        """map_func of each element."""
        f = self._call(map_func)
        calls = AUTOTUNE if num_parallel_calls is None else _scalar(num_parallel_calls, "num_parallel_calls")
        try:
            stages = self._stages.map(f, calls)
        except Exception as error:
            return self._map_in_python(f, error)
        return Dataset(stages, f.structure)

    def _map_in_python(self, f, error):
        """map of a function that cannot be traced, if it can be called."""
        try:
            f(next(iter(self._stages.begin())))
        except Exception:
            raise error from None
        warnings.warn(f"map: {getattr(f.f, '__name__', 'the function')} cannot be traced, so that it runs in Python for "
                      f"each element: {error}", RuntimeWarning, stacklevel=3)
        stages = self._stages.interleave(lambda fields: _native._Pipeline.slices([t[None] for t in f(fields)]), 1, 1, "map")
        return Dataset(stages, f.structure)

    def filter(self, predicate, name=None):
        """The elements for which the predicate is true."""
        return Dataset(self._stages.filter(self._call(predicate)), self._structure)

    def take_while(self, predicate, name=None):
        """The elements before the first one for which the predicate is false."""
        return Dataset(self._stages.take_while(self._call(predicate)), self._structure)

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None,
                   name=None):
        """The elements of the data sets that map_func of each element gives, block_length of one after block_length of
        another, cycle_length data sets at a time."""
        cycle = 4 if cycle_length in (None, AUTOTUNE) else _scalar(cycle_length, "cycle_length")
        return self._interleaved(map_func, cycle, 1 if block_length is None else _scalar(block_length, "block_length"),
                                 "interleave")

    def flat_map(self, map_func, name=None):
        """The elements of the data sets that map_func of each element gives, one after the other."""
        return self._interleaved(map_func, 1, 1, "flat_map")

    def _interleaved(self, map_func, cycle, block, name):
        f, found = self._call(map_func), []

        def stages_of(fields):
            made = f.call(fields)
            if not isinstance(made, Dataset):
                raise TypeError(f"{name}: map_func gives a Dataset, not a {type(made).__name__}")
            found.append(made._structure)
            return made._stages
        stages = self._stages.interleave(stages_of, cycle, block, name)
        if not found:
            stages_of(next(iter(self._stages.begin())))
        return Dataset(stages, found[0])

    def scan(self, initial_state, scan_func, name=None):
        """The results of scan_func(state, element), which gives the next state and a result."""
        structure, first = _fields(initial_state)
        results = []

        def step(fields):
            state = nest.pack_sequence_as(structure, fields[:len(first)])
            found = scan_func(state, nest.pack_sequence_as(self._structure, fields[len(first):]))
            after, states = _fields(found[0])
            nest.assert_same_structure(structure, after)
            results[:], tensors = [_fields(found[1])[0]], _fields(found[1])[1]
            return states + tensors
        stages = self._stages.scan(first, step)
        return Dataset(stages, results[0])

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
        """Collects elements of one key until there are window_size of them; reduce_func(key, window) gives the data set of
        the elements that come next."""
        if (window_size is None) == (window_size_func is None):
            raise ValueError("group_by_window: window_size or window_size_func is needed, one of them")
        size = window_size_func or (lambda key: window_size)
        found = []

        def reduced(fields):
            window = Dataset(self._stages.holding(fields[1:]), self._structure)
            made = reduce_func(fields[0], window)
            found.append(made._structure)
            return made._stages
        stages = self._stages.group_by_window(self._call(key_func), reduced, lambda key: int(size(constant(key, int64))))
        if not found:
            first = next(iter(self._stages.begin()))
            reduced([constant(0, int64), *first])
        return Dataset(stages, found[0])

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                                  padding_values=None, pad_to_bucket_boundary=False, no_padding=False,
                                  drop_remainder=False, name=None):
        """Padded batches of elements of similar length."""
        if pad_to_bucket_boundary or no_padding:
            raise ValueError("bucket_by_sequence_length: batches are padded to their longest element")
        stages = self._stages.bucket_by_sequence_length(
            self._call(element_length_func), list(bucket_boundaries), list(bucket_batch_sizes),
            self._shapes(padded_shapes), _numbers(padding_values), drop_remainder)
        return Dataset(stages, self._structure)

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
        """(class, element) of elements that are kept so that classes are distributed as target_dist says."""
        stages = self._stages.rejection_resample(self._call(class_func), _numbers(target_dist), _numbers(initial_dist), seed)
        return Dataset(stages, (None, self._structure))

    # ---- batches

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """batch_size elements as one, along a new axis 0."""
        return Dataset(self._stages.batch(_scalar(batch_size, "batch_size"), bool(drop_remainder)), self._structure)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """Elements of several sizes as one, padded to the largest, or to padded_shapes."""
        stages = self._stages.padded_batch(_scalar(batch_size, "batch_size"), self._shapes(padded_shapes),
                                           _numbers(padding_values), bool(drop_remainder))
        return Dataset(stages, self._structure)

    def _shapes(self, padded_shapes):
        """One shape for each field."""
        if padded_shapes is None:
            return []
        shapes = []
        _collect_shapes(padded_shapes, self._structure, shapes)
        return shapes

    def unbatch(self, name=None):
        """Every row of axis 0 as an element."""
        return Dataset(self._stages.unbatch(), self._structure)

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Batches of another size, or of several sizes by turns."""
        sizes = [int(n) for n in np.atleast_1d(np.asarray(batch_size))]
        return Dataset(self._stages.rebatch(sizes, bool(drop_remainder)), self._structure)

    def ragged_batch(self, *args, **kwargs):
        """There are no ragged tensors: padded_batch."""
        raise NotImplementedError("ragged_batch: there are no ragged tensors: padded_batch pads the elements")

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Windows of elements, as data sets in the nest of an element."""
        windows = self._stages.windows(_scalar(size, "size"), shift, stride, bool(drop_remainder))
        return WindowDataset(windows, self)

    # ---- order

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=None, name=None):
        """Draws each element at random from a buffer of that many."""
        again = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
        return Dataset(self._stages.shuffle(_scalar(buffer_size, "buffer_size"), seed, again), self._structure)

    def repeat(self, count=None, name=None):
        """The data set several times; without a count without end."""
        return Dataset(self._stages.repeat(-1 if count is None else _scalar(count, "count")), self._structure)

    def take(self, count, name=None):
        """The first elements; all for -1."""
        count = _scalar(count, "count")
        return self if count == -1 else Dataset(self._stages.take(count), self._structure)

    def skip(self, count, name=None):
        """All but the first elements; none for -1."""
        count = _scalar(count, "count")
        return Dataset(self._stages.take(0) if count == -1 else self._stages.skip(count), self._structure)

    def shard(self, num_shards, index, name=None):
        """Every num_shards-th element, from number `index` on."""
        return Dataset(self._stages.shard(_scalar(num_shards, "num_shards"), _scalar(index, "index")), self._structure)

    def concatenate(self, dataset, name=None):
        """The elements of this data set, then those of another one."""
        nest.assert_same_structure(self._structure, dataset._structure)
        return Dataset(self._stages.concatenate(dataset._stages), self._structure)

    def enumerate(self, start=0, name=None):
        """(number, element)."""
        return Dataset(self._stages.enumerate(_scalar(start, "start")), (None, self._structure))

    def unique(self, name=None):
        """Each element once. Elements are integers."""
        return Dataset(self._stages.unique(), self._structure)

    def cache(self, filename="", name=None):
        """Keeps the elements, in memory or in a file."""
        return Dataset(self._stages.cache_in(str(filename)) if filename else self._stages.cache(), self._structure)

    def prefetch(self, buffer_size, name=None):
        """Makes elements ahead, on other threads."""
        return Dataset(self._stages.prefetch(_scalar(buffer_size, "buffer_size")), self._structure)

    def ignore_errors(self, log_warning=False, name=None):
        """Leaves out elements that cannot be made."""
        return Dataset(self._stages.ignore_errors(log_warning), self._structure)

    def with_options(self, options, name=None):
        """The data set: the engine tunes itself."""
        return self

    def options(self):
        """Options, of which none was changed."""
        return Options()

    # ---- elements

    def __iter__(self):
        reading = self._stages.begin()
        _readings.add(reading)
        return Iterator(reading, self)

    def as_numpy_iterator(self):
        """The elements, with arrays of NumPy for tensors."""
        for element in self:
            yield nest.map_structure(lambda tensor: tensor.numpy(), element)

    def get_single_element(self, name=None):
        """The one element. InvalidArgumentError if there are none or several."""
        found = list(self.take(2))
        if len(found) != 1:
            raise _native.InvalidArgumentError(f"get_single_element: the data set has {'no' if not found else 'several'} "
                                               "elements, one is needed")
        return found[0]

    @property
    def element_spec(self):
        """The nest of TensorSpecs of an element."""
        specs = [TensorSpec(spec.shape, spec.dtype) for spec in self._stages.specs()]
        return nest.pack_sequence_as(self._structure, specs)

    def _count(self):
        return INFINITE_CARDINALITY if self._stages.is_endless() else self._stages.cardinality()

    def cardinality(self, name=None):
        """The number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
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
        """The report: where the time of all passes so far went."""
        return self._stages.explain()

    def __repr__(self):
        return f"<Dataset element_spec={self.element_spec}>"


class Iterator:
    """One pass over a data set."""

    def __init__(self, reading, dataset):
        self._reading, self._dataset = reading, dataset
        self._structure = dataset._structure

    element_spec = property(lambda self: self._dataset.element_spec, doc="As Dataset.element_spec.")

    def __iter__(self):
        return self

    def __next__(self):
        fields = next(self._reading)
        return fields[0] if self._structure is None else nest.pack_sequence_as(self._structure, fields)

    def get_next(self):
        """The next element. OutOfRangeError at the end."""
        try:
            return next(self)
        except StopIteration:
            raise _native.OutOfRangeError("get_next: the data set has ended") from None


class WindowDataset:
    """Windows, each as data sets in the nest of an element."""

    def __init__(self, windows, source):
        self._windows, self._source = windows, source

    def _window(self, fields):
        whole = Dataset(self._source._stages.holding(fields), self._source._structure)
        if self._source._structure is None:
            return whole
        count = len(nest.flatten(self._source._structure))
        parts = []
        for i in range(count):
            stages = whole._stages.map(lambda row, i=i: [row[i]], AUTOTUNE)
            parts.append(Dataset(stages, None))
        return nest.pack_sequence_as(self._source._structure, parts)

    def flat_map(self, map_func, name=None):
        """The elements of the data sets that map_func of each window gives."""
        found = []

        def stages_of(fields):
            window = self._window(fields)
            made = map_func(*window) if isinstance(window, tuple) else map_func(window)
            found.append(made._structure)
            return made._stages
        stages = self._windows.interleave(stages_of, 1, 1, "window")
        if not found:
            stages_of(next(iter(self._windows.begin())))
        return Dataset(stages, found[0])

    def __iter__(self):
        for fields in self._windows.begin():
            yield self._window(fields)

    def __len__(self):
        return self._windows.cardinality()


# ---- descriptions

def _numbers(values):
    """Numbers of a nest, a list or one, for each field."""
    if values is None:
        return []
    if is_tensor(values) or isinstance(values, np.ndarray):
        values = np.atleast_1d(np.asarray(values)).tolist()
    return [float(0 if n is None else n.item() if is_tensor(n) else n) for n in nest.flatten(values)]


def _collect_shapes(shapes, structure, found):
    if not nest.is_nested(structure):
        found.append([None if n == -1 else n for n in shapes])
        return
    keys = sorted(structure) if isinstance(structure, dict) else range(len(structure))
    for key in keys:
        _collect_shapes(shapes[key], structure[key], found)


def _signature(types_, shapes):
    """The TensorSpecs of nests of dtypes and shapes, which from_generator took before."""
    if types_ is None:
        raise TypeError("from_generator: output_signature is needed, a nest of tf.TensorSpec")
    if shapes is None:
        raise TypeError("from_generator: output_shapes is needed beside output_types; output_signature says both")
    if not nest.is_nested(types_):
        return TensorSpec(shapes, types_)
    found = []
    _collect_shapes(shapes, nest.map_structure(lambda _: None, types_), found)
    return nest.pack_sequence_as(types_, [TensorSpec(s, t) for s, t in zip(found, nest.flatten(types_))])


def _as_signature(element, signature):
    """The tensors of an element in the nest of a signature, in its dtypes."""
    if isinstance(signature, dict):
        return [t for key in sorted(signature) for t in _as_signature(element[key], signature[key])]
    if isinstance(signature, (tuple, list)):
        if len(element) != len(signature):
            raise TypeError(f"from_generator: an element of {len(element)} parts, output_signature has {len(signature)}")
        return [t for value, spec in zip(element, signature) for t in _as_signature(value, spec)]
    return [element if isinstance(element, Tensor) else constant(element, signature.dtype)]


experimental = types.SimpleNamespace(AUTOTUNE=AUTOTUNE, AutoShardPolicy=AutoShardPolicy,
                                     INFINITE_CARDINALITY=INFINITE_CARDINALITY, UNKNOWN_CARDINALITY=UNKNOWN_CARDINALITY,
                                     cardinality=Dataset.cardinality)
