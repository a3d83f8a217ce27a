"""tf.data: gradus' data sets, which have the methods of TensorFlow's, and those of strings."""
from .. import nest
from ..datasets import (AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, AutoShardPolicy, Dataset,  # noqa: F401
                        Iterator, Options)
from .._names import knows_keywords
from ..windows import DatasetSpec  # noqa: F401
from .left_out import Names
from .shapes import TensorSpec
from .text_datasets import TextDataset, TextLineDataset, TFRecordDataset, list_files, of_generator, of_map, of_ragged, of_text, of_texts, zipped

Dataset._spec = TensorSpec
Dataset._of_texts, Dataset._of_text = staticmethod(of_texts), staticmethod(of_text)
Dataset._zipped = staticmethod(
    lambda parts: zipped(parts) if any(isinstance(each, TextDataset) for each in nest.flatten(parts)) else None)
Dataset._of_generator, Dataset._of_map = staticmethod(of_generator), staticmethod(of_map)
Dataset._of_ragged = staticmethod(of_ragged)
Dataset.list_files = staticmethod(knows_keywords(list_files, "Dataset.list_files"))


def _applied(name):
    """A function for Dataset.apply that calls the method of this name."""
    def function(*args, **kwargs):
        return lambda dataset: getattr(dataset, name)(*args, **kwargs)
    function.__name__ = name
    function.__doc__ = f"A function for Dataset.apply; Dataset.{name} is shorter."
    return function


def Counter(start=0, step=1, dtype="int64"):
    """start, start + step ... without end."""
    return Dataset.counter(start, step, dtype)


def _prefetch_to_device(device, buffer_size=None):
    """A function for Dataset.apply; Dataset.prefetch is shorter."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


experimental = Names(
    "gradus.tensorflow.data.experimental", AUTOTUNE=AUTOTUNE, AutoShardPolicy=AutoShardPolicy,
    INFINITE_CARDINALITY=INFINITE_CARDINALITY, UNKNOWN_CARDINALITY=UNKNOWN_CARDINALITY, cardinality=Dataset.cardinality, Counter=Counter,
    sample_from_datasets=Dataset.sample_from_datasets, choose_from_datasets=Dataset.choose_from_datasets,
    prefetch_to_device=_prefetch_to_device, get_single_element=Dataset.get_single_element,
    assert_cardinality=_applied("assert_cardinality"), ignore_errors=_applied("ignore_errors"), unbatch=_applied("unbatch"),
    unique=_applied("unique"), group_by_window=_applied("group_by_window"), rejection_resample=_applied("rejection_resample"),
    bucket_by_sequence_length=_applied("bucket_by_sequence_length"))
