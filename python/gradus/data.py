"""Data sets: elements are nests of tensors, and functions of them are traced once and compiled."""
from .datasets import AUTOTUNE, Dataset, Iterator

__all__ = ["AUTOTUNE", "Dataset", "Iterator", "from_generator", "from_tensor_slices", "range", "zip"]

from_tensor_slices = Dataset.from_tensor_slices
range = Dataset.range
zip = Dataset.zip


def from_generator(generator, output_signature, args=()):
    """The elements of the iterable that generator(*args) gives, which each pass calls again. `output_signature`: the nest of
    TensorSpecs of an element."""
    return Dataset.from_generator(generator, args=args, output_signature=output_signature)
