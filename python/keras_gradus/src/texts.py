"""Data with texts. A model takes them where its first layers work on the host, as StringLookup does: it then runs op by op, and
arrays of texts reach it as batches of a data set."""
import gradus
import numpy as np
from gradus.tensorflow.texts import StringTensor, is_string_like
from keras.src import tree
from keras.src.trainers.data_adapters import data_adapter_utils


def has_texts(nest):
    """True where leaves of a nest are texts."""
    return any(is_string_like(leaf) for leaf in tree.flatten(nest))


def as_tensors(nest):
    """The nest with tensors for texts and for arrays. A list of texts is one tensor, other lists are tuples."""
    if nest is None or is_string_like(nest):
        return None if nest is None else StringTensor(nest)
    if isinstance(nest, dict):
        return {key: as_tensors(each) for key, each in nest.items()}
    if isinstance(nest, (list, tuple)) and any(hasattr(each, "shape") or has_texts(each) for each in nest):
        return tuple(as_tensors(each) for each in nest)
    return gradus.constant(np.asarray(nest) if isinstance(nest, (list, tuple)) else nest)


def data_set(x, y, sample_weight, batch_size, shuffle):
    """Batches of the rows of x, y and their weights."""
    parts = [as_tensors(each) for each in (x, y, sample_weight)]
    while parts[-1] is None:
        parts.pop()
    if None in parts:
        raise ValueError("sample_weight without y: y is None")
    rows = gradus.Dataset.from_tensor_slices(tuple(parts))
    if shuffle:
        rows = rows.shuffle(max(1, int(rows.cardinality())))
    return rows.batch(batch_size or 32)


def divided(data, validation_split):
    """The first rows of each part, and the last ones, a validation_split of them."""
    parts = [as_tensors(each) for each in data]
    count = next(len(leaf) for leaf in tree.flatten(parts) if leaf is not None)
    first = int(count * (1.0 - validation_split))
    if not 0 < first < count:
        raise ValueError(f"validation_split={validation_split} leaves no rows on one side: there are {count}")

    def cut(begin, end):
        return tuple(tree.map_structure(lambda leaf: None if leaf is None else leaf[begin:end], part) for part in parts)
    return cut(0, first), cut(first, count)


def weighted(batch, class_weight):
    """A batch with weights of its rows, by the classes of its labels."""
    x, y, weights = data_adapter_utils.unpack_x_y_sample_weight(batch)
    if y is None or weights is not None:
        raise ValueError("`class_weight` needs batches of (x, y), without weights of samples")
    return x, y, data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
