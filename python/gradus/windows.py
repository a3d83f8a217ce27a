"""Data sets whose elements are data sets: windows, and maps of them."""
from . import _native, nest
from ._elements import _Function
from .datasets import AUTOTUNE, Dataset


class DatasetSpec:
    """The spec of a data set within an element; `element_spec` is the spec of its elements."""

    def __init__(self, element_spec, dataset_shape=()):
        self.element_spec, self.dataset_shape = element_spec, tuple(dataset_shape)

    def __eq__(self, other):
        return isinstance(other, DatasetSpec) and (self.element_spec, self.dataset_shape) == (
            other.element_spec, other.dataset_shape)

    def __hash__(self):
        return hash((str(self.element_spec), self.dataset_shape))

    def __repr__(self):
        return f"DatasetSpec({self.element_spec}, TensorShape({list(self.dataset_shape)}))"


def _has_datasets(element):
    return any(isinstance(leaf, Dataset) for leaf in nest.flatten(element))


def _applied(f, element):
    return f(*element) if isinstance(element, tuple) else f(element)


class _ElementFunction(_Function):
    """A function of the element get(fields) as a function of the fields."""

    def __init__(self, f, get):
        super().__init__(f, None)
        self._get = get

    def call(self, fields):
        element = self._get(fields)
        return _applied(self.f, element) if self.spreads else self.f(element)


class _Window:
    """One window: a data set for each part of the elements of the source."""

    def __init__(self, source):
        self._source = source

    def __call__(self, fields):
        structure = self._source._structure
        whole = Dataset(self._source._stages.holding(fields), structure)
        if structure is None:
            return whole
        parts = [Dataset(whole._stages.map(lambda row, i=i: [row[i]], AUTOTUNE, False), None)
                 for i in range(len(nest.flatten(structure)))]
        return nest.pack_sequence_as(structure, parts)

    def spec(self):
        return nest.map_structure(DatasetSpec, self._source.element_spec)


class WindowDataset(Dataset):
    """A data set whose elements are data sets, or nests of data sets. flat_map and interleave join them to one data set;
    functions of its elements run in Python, once for each."""

    def __init__(self, stages, get):
        super().__init__(stages, None)
        self._get = get

    def _element(self, fields):
        return self._get(fields)

    def _then(self, make):
        return WindowDataset(make(self._stages), self._get)

    def _call(self, f, context=None):
        return _ElementFunction(f, self._get)

    def _traced(self, stage, f, make):
        return make(self._call(f), True)

    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, name=None):
        """map_func of each element: data sets again, or tensors. It is called with the first element at once, to find out
        which."""
        get = self._get
        for first in self:
            if _has_datasets(_applied(map_func, first)):
                return WindowDataset(self._stages, lambda fields: _applied(map_func, get(fields)))
            break
        return self._interleaved(lambda *element: Dataset.from_tensors(map_func(*element)), 1, 1, "map")

    def reduce(self, initial_state, reduce_func, name=None):
        """The state after the last of state = reduce_func(state, element), in Python."""
        state = initial_state
        for element in self:
            state = reduce_func(state, element)
        return nest.map_structure(_native.constant, state)

    def enumerate(self, start=0, name=None):
        """Elements (number, element)."""
        get = self._get
        return WindowDataset(self._stages.enumerate(int(start)), lambda fields: (fields[0], get(fields[1:])))

    def concatenate(self, dataset, name=None):
        """The elements of this data set, then those of another data set of the same windows. TypeError for others."""
        if getattr(dataset, "_get", None) is not self._get:
            raise TypeError("concatenate: data sets of data sets are of the same windows, as windows.take(1) and "
                            "windows.skip(1) are")
        return self._then(lambda stages: stages.concatenate(dataset._stages))

    def as_numpy_iterator(self):
        """TypeError: elements that are data sets are no arrays."""
        raise TypeError("as_numpy_iterator: the elements are data sets: flat_map makes one data set of them")

    def get_single_element(self, name=None):
        """The only element. InvalidArgumentError if there is none or more than one."""
        return self._single(list(self.take(2)))

    @property
    def element_spec(self):
        """The nest of DatasetSpecs of an element."""
        if isinstance(self._get, _Window):
            return self._get.spec()
        for element in self:
            return nest.map_structure(_spec_of, element)
        raise _native.OutOfRangeError("element_spec: there is no element, so what the function gives is not known")


def _spec_of(leaf):
    return DatasetSpec(leaf.element_spec) if isinstance(leaf, Dataset) else Dataset._spec(leaf.shape, leaf.dtype)


def _refusing(name):
    def method(self, *args, **kwargs):
        raise TypeError(f"{name}: the elements of this data set are data sets: flat_map makes one data set of them, such as "
                        "windows.flat_map(lambda window: window.batch(3))")
    method.__name__ = name
    method.__doc__ = f"Data sets have no {name}: TypeError."
    return method


for _name in ("batch", "padded_batch", "unbatch", "rebatch", "unique", "scan", "window", "group_by_window", "cache", "save",
              "bucket_by_sequence_length", "rejection_resample", "snapshot", "assert_cardinality"):
    setattr(WindowDataset, _name, _refusing(_name))


def windows_of(source, size, shift, stride, drop_remainder):
    """The windows of a data set."""
    return WindowDataset(source._stages.windows(size, shift, stride, drop_remainder), _Window(source))


def zipped(parts, leaves):
    """zip of data sets, one of which has data sets as elements. The number of fields of a window varies with its elements, so
    its fields come last. TypeError for several such data sets."""
    windows = [i for i, each in enumerate(leaves) if isinstance(each, WindowDataset)]
    if len(windows) > 1:
        raise TypeError("zip: one data set of data sets beside others: zip the data sets before window() makes windows of them")
    order = [i for i in range(len(leaves)) if i != windows[0]] + windows
    counts = [len(leaves[i]._stages.specs()) for i in order[:-1]]

    def get(fields):
        made = [None] * len(leaves)
        for i, count in zip(order, [*counts, None]):
            made[i] = leaves[i]._element(fields[:count])
            fields = fields[count:] if count is not None else []
        return nest.pack_sequence_as(parts, made)
    return WindowDataset(_native._Pipeline.zip([leaves[i]._stages for i in order]), get)
