"""tf.errors: the library's errors, and TensorFlow's names for them."""
from ..errors import (DataLossError, DivergedError, InternalError, InvalidArgumentError, OpError, OutOfRangeError,
                      ResourceExhaustedError, UnavailableError)

NotFoundError = UnavailableError
FailedPreconditionError = InvalidArgumentError
UnimplementedError = InvalidArgumentError

__all__ = ["DataLossError", "DivergedError", "FailedPreconditionError", "InternalError", "InvalidArgumentError",
           "NotFoundError", "OpError", "OutOfRangeError", "ResourceExhaustedError", "UnavailableError",
           "UnimplementedError"]
