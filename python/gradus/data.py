"""Data sets: elements are nests of tensors, and functions of them are traced once and compiled."""
from ._native import Dataset

__all__ = ["Dataset", "from_generator", "from_tensor_slices", "range", "zip"]

from_generator = Dataset.from_generator
from_tensor_slices = Dataset.from_tensor_slices
range = Dataset.range
zip = Dataset.zip
