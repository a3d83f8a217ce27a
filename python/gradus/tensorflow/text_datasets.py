"""Data sets whose elements hold strings or ragged rows. The engine determines the order of the elements by their numbers; the
functions of the maps make an element from its number, in Python. Batches without strings are elements of the engine again."""
import builtins
import glob
import pickle

import numpy as np

from .. import _native, constant, nest
from .._elements import _Function, _scalar, as_tensor, map_element
from ..datasets import Dataset
from .errors import opened
from .ragged import RaggedTensor, RaggedTensorSpec, stack
from .shapes import TensorSpec
from .texts import StringTensor, is_string_like, string, text_of


def _tensors(value):
    """An element with its texts and lists as tensors."""
    def leaf_of(leaf):
        return StringTensor(leaf) if is_string_like(leaf) else leaf if isinstance(leaf, RaggedTensor) else as_tensor(leaf)
    return map_element(leaf_of, value)


def _has_strings(element):
    """True if an element has strings or ragged rows, which the engine does not take."""
    return any(isinstance(leaf, (StringTensor, RaggedTensor)) for leaf in nest.flatten(element))


def _stacked(elements):
    def one(*leaves):
        if isinstance(leaves[0], RaggedTensor):
            return stack(leaves)
        if len({tuple(leaf.shape) for leaf in leaves}) > 1:
            raise _native.InvalidArgumentError(f"batch: elements of the shapes {[tuple(leaf.shape) for leaf in leaves][:5]} are no "
                                               "batch: padded_batch fills them up")
        if isinstance(leaves[0], StringTensor):
            return StringTensor(np.stack([leaf._array for leaf in leaves]))
        return _native.ops.stack(list(leaves), 0)
    return nest.map_structure(one, *elements)


def _filled(array, shape):
    """The array in a larger shape, filled with empty strings or zeros."""
    made = np.full(shape, b"" if array.dtype == object else 0, array.dtype)
    made[tuple(builtins.slice(n) for n in array.shape)] = array
    return made


def _padded(elements):
    """_stacked() of elements whose sizes differ."""
    def one(*leaves):
        if isinstance(leaves[0], RaggedTensor):
            return stack(leaves)
        arrays = [leaf._array if isinstance(leaf, StringTensor) else leaf.numpy() for leaf in leaves]
        shape = [max(sizes) for sizes in builtins.zip(*(array.shape for array in arrays))]
        stacked = np.stack([_filled(np.asarray(array), shape) for array in arrays])
        return StringTensor(stacked) if isinstance(leaves[0], StringTensor) else constant(stacked)
    return nest.map_structure(one, *elements)


class TextDataset(Dataset):
    """Elements get(number), for the numbers, or nests of numbers, of another data set."""

    def __init__(self, numbers, get):
        self._numbers, self._get, self._kept_first = numbers, get, None
        self._known, self._later = None, self._as_engine

    def _as_engine(self):
        """The engine's stages. TypeError if elements hold strings."""
        self._require_numbers()
        f = _Function(self._get, self._numbers._structure, spreads=False)
        return self._numbers._stages.map(f, -1, True), f.structure

    def _has_texts(self):
        """True if elements hold strings, and for an empty data set, whose elements are not known."""
        try:
            return _has_strings(self._first())
        except _native.DataLossError:
            return True

    def _require_numbers(self):
        if _has_strings(self._first()):
            raise TypeError("the elements of this data set hold strings or ragged rows, which no model takes: map them to tensors of "
                            "numbers, by a layer such as TextVectorization or by to_tensor()")

    def _first(self):
        if self._kept_first is None:
            for number in self._numbers.take(1):
                self._kept_first = (self._get(number),)
        if self._kept_first is None:
            raise _native.DataLossError("this data set is empty, so what its elements are is not known")
        return self._kept_first[0]

    def _in_order(self, name):
        """A method that changes only the order."""
        method = getattr(Dataset, name)

        def changed(*args, **kwargs):
            return TextDataset(method(self._numbers, *args, **kwargs), self._get)
        return changed

    def __getattribute__(self, name):
        if name in ("shuffle", "repeat", "take", "skip", "shard", "prefetch"):
            return object.__getattribute__(self, "_in_order")(name)
        return object.__getattribute__(self, name)

    # ---- functions

    def _called(self, f):
        def call(number):
            element = self._get(number)
            return f(*element) if isinstance(element, tuple) else f(element)
        return call

    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, name=None):
        """map_func of each element, in Python."""
        call = self._called(map_func)
        return TextDataset(self._numbers, lambda number: _tensors(call(number)))

    def filter(self, predicate, name=None):
        """The elements for which the predicate is true."""
        call = self._called(predicate)
        return TextDataset(self._numbers._filter_in_python(lambda number: constant(bool(call(number)))), self._get)

    def take_while(self, predicate, name=None):
        """The elements before the first one for which the predicate is false."""
        def elements():
            for element in self:
                if not (predicate(*element) if isinstance(element, tuple) else predicate(element)):
                    return
                yield element
        return of_elements(elements)

    def flat_map(self, map_func, name=None):
        """The elements of the data sets that map_func of each element gives, one after the other."""
        return self._of_datasets(map_func, 1, 1)

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None):
        """As flat_map, but cycle_length data sets are read alternately, block_length elements per turn."""
        return self._of_datasets(map_func, 4 if cycle_length in (None, -1) else cycle_length, block_length or 1)

    def _of_datasets(self, map_func, cycle, block):
        call = self._called(map_func)

        def elements():
            sources = iter(self._numbers)
            lanes = [None] * cycle
            while True:
                open_lanes = 0
                for i in builtins.range(cycle):
                    if lanes[i] is None:
                        number = next(sources, None)
                        lanes[i] = None if number is None else iter(call(number))
                    if lanes[i] is None:
                        continue
                    open_lanes += 1
                    for _ in builtins.range(block):
                        element = next(lanes[i], None)
                        if element is None:
                            lanes[i] = None
                            break
                        yield element
                if open_lanes == 0:
                    return
        return of_elements(elements)

    def reduce(self, initial_state, reduce_func, name=None):
        """The state after the last of state = reduce_func(state, element)."""
        state = _tensors(initial_state)
        for element in self:
            state = _tensors(reduce_func(state, element))
        return state

    # ---- elements together

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """Joins batch_size elements of equal sizes along a new axis 0."""
        if not self._has_texts():
            return Dataset.batch(self, batch_size, drop_remainder)
        made = self._batched(_scalar(batch_size, "batch_size"), drop_remainder, _stacked)
        made._batch_size = batch_size
        return made

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """Joins batch_size elements of different sizes, filled to the largest: strings with empty ones, numbers with 0.
        ValueError for padded_shapes or padding_values if elements hold strings."""
        if padded_shapes is not None or padding_values is not None:
            if not self._has_texts():
                return Dataset.padded_batch(self, batch_size, padded_shapes, padding_values, drop_remainder)
            raise ValueError("padded_batch: elements with strings are filled up to the largest one, strings with empty ones "
                             "and numbers with 0: leave out padded_shapes and padding_values")
        return self._batched(_scalar(batch_size, "batch_size"), drop_remainder, _padded)

    def _batched(self, batch_size, drop_remainder, join):
        structure = self._numbers._structure

        def get(numbers):
            leaves = nest.flatten(numbers)
            rows = builtins.range(int(leaves[0].shape[0]))
            return join([self._get(nest.pack_sequence_as(structure, [leaf[i] for leaf in leaves])) for i in rows])
        # Elements as bytes differ in length; their padding is not read.
        return TextDataset(self._numbers.padded_batch(batch_size, drop_remainder=drop_remainder), get)

    def unique(self, name=None):
        """Each element once, where it comes first."""
        def elements():
            seen = set()
            for element in self:
                key = _packed(element).tobytes()
                if key not in seen:
                    seen.add(key)
                    yield element
        return of_elements(elements)

    def cache(self, filename="", name=None):
        """Keeps the elements in memory. ValueError for a file."""
        if filename:
            raise ValueError("cache: elements that are made in Python are kept in memory, not in a file")
        kept = {}

        def get(number):
            key = str([leaf.tolist() for leaf in nest.flatten(number)])
            if key not in kept:
                kept[key] = self._get(number)
            return kept[key]
        return TextDataset(self._numbers, get)

    def enumerate(self, start=0, name=None):
        """Elements (number, element)."""
        return TextDataset(self._numbers.enumerate(start), lambda pair: (pair[0], self._get(pair[1])))

    def concatenate(self, dataset, name=None):
        """The elements of this data set, then those of another one."""
        def elements():
            yield from self
            yield from dataset
        return of_elements(elements)

    def unbatch(self, name=None):
        """Every row of axis 0 as an element."""
        def elements():
            for element in self:
                for i in builtins.range(len(nest.flatten(element)[0])):
                    yield nest.map_structure(lambda leaf, i=i: leaf[i], element)
        return of_elements(elements)

    # ---- reading

    def __iter__(self):
        return TextIterator(self)

    @property
    def element_spec(self):
        """The nest of specs of the first element."""
        return nest.map_structure(spec_of, self._first())

    def _count(self):
        asserted = self.__dict__.get("_asserted")
        return self._numbers._count() if asserted is None else asserted

    def explain(self):
        """A report of the time of the stages that determine the order of the elements."""
        return self._numbers.explain()

    def __repr__(self):
        return f"<Dataset element_spec={self.element_spec}>"


class TextIterator:
    """One pass over a data set."""

    def __init__(self, dataset):
        self._dataset, self._pass = dataset, iter(dataset._numbers)

    element_spec = property(lambda self: self._dataset.element_spec, doc="As Dataset.element_spec.")

    def __iter__(self):
        return self

    def __next__(self):
        return self._dataset._get(next(self._pass))

    def get_next(self):
        """The next element. OutOfRangeError at the end."""
        return self._dataset._get(self._pass.get_next())

    def close(self):
        """Ends the pass."""
        self._pass.close()


class StringSpec:
    """The shape of tensors of strings."""
    dtype = string

    def __init__(self, shape):
        self.shape = shape

    def __eq__(self, other):
        return isinstance(other, StringSpec) and self.shape == other.shape

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype=tf.string)"


def spec_of(leaf):
    """The spec of a tensor, also of strings and ragged rows."""
    if isinstance(leaf, RaggedTensor):
        return RaggedTensorSpec(leaf.shape, leaf.dtype, leaf.ragged_rank)
    return StringSpec(leaf.shape) if isinstance(leaf, StringTensor) else TensorSpec(leaf.shape, leaf.dtype)


# ---- sources

def _packed(element):
    """An element as bytes, a tensor for the engine."""
    def part(leaf):
        if isinstance(leaf, RaggedTensor):
            return leaf, 0
        return isinstance(leaf, StringTensor), leaf._array if isinstance(leaf, StringTensor) else leaf.numpy()
    parts = nest.map_structure(part, element)
    return np.frombuffer(pickle.dumps((nest.map_structure(lambda _: None, element), nest.flatten(parts))), np.uint8)


def _unpacked(packed):
    """The element of such bytes; padding after their end has no effect."""
    structure, parts = pickle.loads(packed.numpy().tobytes())
    leaves = [kind if isinstance(kind, RaggedTensor) else StringTensor(value) if kind else constant(value)
              for kind, value in zip(parts[::2], parts[1::2])]
    return nest.pack_sequence_as(structure, leaves)


def of_elements(make):
    """A data set of the elements that make() yields, which each pass calls again; elements are made when they are needed."""
    def packed():
        for each in make():
            yield _packed(_tensors(each))
    return TextDataset(Dataset.from_generator(packed, output_signature=_native.TensorSpec([None], _native.uint8)), _unpacked)


def of_text(tensors):
    """A data set of one element that has texts; None if it has none."""
    element = _tensors(tensors)
    return of_elements(lambda: [element]) if _has_strings(element) else None


def of_texts(tensors):
    """A data set of the rows of a nest that has texts or ragged rows; None if it has none."""
    def is_text(value):
        return isinstance(value, RaggedTensor) or is_string_like(value) and not isinstance(value, (str, bytes))

    def leaves(value):
        if isinstance(value, dict):
            return [leaf for each in value.values() for leaf in leaves(each)]
        return [leaf for each in value for leaf in leaves(each)] if isinstance(value, tuple) else [value]
    if not any(is_text(leaf) for leaf in leaves(tensors)):
        return None
    columns = _tensors(tensors)
    lengths = {len(leaf) for leaf in nest.flatten(columns)}
    if len(lengths) != 1:
        raise ValueError(f"from_tensor_slices: tensors of {sorted(lengths)} rows; all need as many")
    return TextDataset(Dataset.range(lengths.pop()),
                       lambda number: nest.map_structure(lambda leaf: leaf[int(number)], columns))


def of_map(dataset, map_func):
    """The map of a data set without strings by a function whose results have strings or ragged rows."""
    def get(element):
        return _tensors(map_func(*element) if isinstance(element, tuple) else map_func(element))
    return TextDataset(dataset, get)


def of_ragged(dataset, batch_size, drop_remainder):
    """Batches of elements whose sizes may vary, as ragged rows; elements of known sizes become tensors."""
    if not isinstance(dataset, TextDataset):
        if all(spec.shape.is_fully_defined() for spec in nest.flatten(dataset.element_spec)):
            return dataset.batch(batch_size, drop_remainder)
        dataset = TextDataset(dataset, lambda element: element)

    def join(elements):
        return nest.map_structure(lambda *leaves: (_stacked if leaves[0].ndim == 0 else stack)(leaves), *elements)
    return dataset._batched(batch_size, drop_remainder, join)


def zipped(parts):
    """zip of data sets, at least one of which holds strings."""
    leaves = nest.flatten(parts)
    numbers = Dataset.zip(tuple(each._numbers if isinstance(each, TextDataset) else each for each in leaves))

    def get(element):
        made = [each._get(part) if isinstance(each, TextDataset) else part for each, part in zip(leaves, element)]
        return nest.pack_sequence_as(parts, made)
    return TextDataset(numbers, get)


def list_files(file_pattern, shuffle=None, seed=None, name=None):
    """A data set of the names of the files that match patterns: sorted if shuffle is False, else in random order.
    InvalidArgumentError if there is none."""
    patterns = [text_of(each) for each in StringTensor(file_pattern)._array.ravel()]
    found = sorted(name for pattern in patterns for name in glob.glob(pattern))
    if not found:
        raise _native.InvalidArgumentError(f"list_files: no file matches {patterns}")
    names = of_texts(found)
    return names.shuffle(len(found), seed=seed) if shuffle is None or shuffle else names


def _names(filenames):
    return [text_of(each) for each in (filenames if isinstance(filenames, TextDataset) else
                                       StringTensor(filenames)._array.ravel())]


def TextLineDataset(filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
    """A data set of the lines of files, without their ends. NotFoundError for a missing file."""
    if compression_type not in (None, ""):
        raise ValueError("TextLineDataset: files are read as they are")

    def lines():
        for path in _names(filenames):
            with opened(path) as file:
                for line in file:
                    yield line.rstrip(b"\r\n")
    return of_elements(lines)


def TFRecordDataset(filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
    """A data set of the records of files, as strings; gzip is recognised. DataLossError for a damaged file."""
    return of_elements(lambda: (record for path in _names(filenames) for record in _native._records(path)))


def of_generator(generator, signature, arguments):
    """A data set of the elements of a generator, which each pass calls again; None if its signature has no strings."""
    if not any(isinstance(spec, StringSpec) for spec in nest.flatten(signature)):
        return None
    return of_elements(lambda: generator(*arguments))
