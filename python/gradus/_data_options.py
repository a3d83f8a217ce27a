"""Options of data sets that TensorFlow's programs set. None of them changes a result."""
import types


class Options:
    """Options of data sets, as attributes. The engine tunes itself, so that none changes a result."""

    def __init__(self):
        self.autotune = types.SimpleNamespace()
        self.experimental_optimization = types.SimpleNamespace()
        self.experimental_distribute = types.SimpleNamespace()
        self.threading = types.SimpleNamespace()
        self.deterministic = True


class AutoShardPolicy:
    """TensorFlow's policies of dividing a data set among replicas. Here it is always divided by rows of batches."""
    OFF, AUTO, FILE, DATA = -1, 0, 1, 2
