"""Scopes: of names, Keras's, which the engine knows, too; and of attributes."""
import contextlib

from keras.src.backend.common.name_scope import name_scope as keras_name_scope

from gradus import _native


class name_scope(keras_name_scope):
    """Keras's. The layer's name is a row of profiles, and stands in messages of the engine."""

    def __enter__(self):
        entered = super().__enter__()
        if self._pop_on_exit:
            self._of_engine = _native._NameScope(self.name)
            self._of_engine.__enter__()
        return entered

    def __exit__(self, *error):
        if self._pop_on_exit:
            self._of_engine.__exit__(*error)
        super().__exit__(*error)


@contextlib.contextmanager
def attributes(holder, **values):
    """Within, the holder's attributes have these values."""
    before = {name: getattr(holder, name) for name in values}
    vars(holder).update(values)
    try:
        yield
    finally:
        vars(holder).update(before)
