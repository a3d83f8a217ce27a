"""tf.compat: texts and bytes. The names of TensorFlow 1 are left out."""
import numbers

import numpy as np

complex_types, integral_types, real_types = numbers.Complex, numbers.Integral, numbers.Real
bytes_or_text_types = (bytes, str)


def as_bytes(bytes_or_text, encoding="utf-8"):
    """The bytes of a text; bytes as they are."""
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if not isinstance(bytes_or_text, bytes_or_text_types):
        raise TypeError(f"as_bytes: a text or bytes, not {bytes_or_text!r}")
    return bytes_or_text.encode(encoding) if isinstance(bytes_or_text, str) else bytes_or_text


def as_text(bytes_or_text, encoding="utf-8"):
    """The text of bytes; a text as it is."""
    if not isinstance(bytes_or_text, bytes_or_text_types):
        raise TypeError(f"as_text: a text or bytes, not {bytes_or_text!r}")
    return bytes_or_text.decode(encoding) if isinstance(bytes_or_text, bytes) else str(bytes_or_text)


as_str = as_text


def as_str_any(value, encoding="utf-8"):
    """The text of bytes, and str() of everything else."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path):
    """The str of a path; everything else as it is."""
    return as_str_any(path.__fspath__()) if hasattr(path, "__fspath__") else path


def dimension_value(dimension):
    """The size."""
    return int(dimension) if isinstance(dimension, np.integer) else dimension
