"""tf.errors: the library's errors, and TensorFlow's names for them. Errors that the library does not distinguish are one class
under both names."""
from ..errors import (DataLossError, DivergedError, InternalError, InvalidArgumentError, OpError, OutOfRangeError,
                      ResourceExhaustedError, UnavailableError, UnimplementedError)

NotFoundError = UnavailableError


class MissingFileError(NotFoundError, FileNotFoundError):
    """A file or folder does not exist: a NotFoundError that is also Python's FileNotFoundError."""


MissingFileError.__name__ = MissingFileError.__qualname__ = "NotFoundError"


def opened(path, mode="rb", **options):
    """A file as Python's open() gives it; NotFoundError if there is none."""
    try:
        return open(path, mode, **options)
    except FileNotFoundError as error:
        raise MissingFileError(str(error)) from None


class AlreadyExistsError(OpError, FileExistsError):
    """A file exists and must not be overwritten."""


class AbortedError(OpError):
    """An operation was aborted. The library never raises it."""


class CancelledError(OpError):
    """An operation was cancelled. The library never raises it."""


class DeadlineExceededError(OpError, TimeoutError):
    """A deadline has passed. The library never raises it."""


class FailedPreconditionError(OpError):
    """An object is not in the state that an operation needs. The library raises InvalidArgumentError instead."""


class PermissionDeniedError(OpError, PermissionError):
    """A file or device may not be used. The library raises UnavailableError instead."""


class UnauthenticatedError(OpError):
    """The caller is not authenticated. The library never raises it."""


class UnknownError(OpError):
    """An error without a known cause. The library never raises it."""


OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = range(8)
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = range(8, 15)
DATA_LOSS, UNAUTHENTICATED = 15, 16

_CODES = {OpError: UNKNOWN, InternalError: INTERNAL, DataLossError: DATA_LOSS, InvalidArgumentError: INVALID_ARGUMENT,
          OutOfRangeError: OUT_OF_RANGE, ResourceExhaustedError: RESOURCE_EXHAUSTED, UnavailableError: NOT_FOUND,
          AlreadyExistsError: ALREADY_EXISTS, AbortedError: ABORTED, CancelledError: CANCELLED,
          FailedPreconditionError: FAILED_PRECONDITION, UnimplementedError: UNIMPLEMENTED,
          DeadlineExceededError: DEADLINE_EXCEEDED, PermissionDeniedError: PERMISSION_DENIED,
          UnauthenticatedError: UNAUTHENTICATED, UnknownError: UNKNOWN}
for _class, _code in _CODES.items():
    _class.error_code, _class.op, _class.node_def = _code, None, None
    _class.message = property(str, doc="The text.")

__all__ = [name for name in dir() if (name.endswith("Error") and name != "MissingFileError") or name.isupper() and name[0] != "_"]
