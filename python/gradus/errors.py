"""Errors by the names of tf.errors. Each is also Python's own error for the same mistake, as ValueError or IndexError."""
from ._native import (DataLossError, DivergedError, InternalError, InvalidArgumentError, OpError, OutOfRangeError,
                      ResourceExhaustedError, UnavailableError, UnimplementedError, UnknownValueError)

__all__ = ["DataLossError", "DivergedError", "InternalError", "InvalidArgumentError", "OpError", "OutOfRangeError",
           "ResourceExhaustedError", "UnavailableError", "UnimplementedError", "UnknownValueError"]
