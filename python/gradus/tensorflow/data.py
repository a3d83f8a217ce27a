"""tf.data: gradus' data sets, which have the methods of TensorFlow's."""
import types

from ..datasets import (AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, AutoShardPolicy, Dataset,  # noqa: F401
                        Iterator, Options)
from .shapes import TensorSpec

Dataset._spec = TensorSpec

experimental = types.SimpleNamespace(AUTOTUNE=AUTOTUNE, AutoShardPolicy=AutoShardPolicy,
                                     INFINITE_CARDINALITY=INFINITE_CARDINALITY, UNKNOWN_CARDINALITY=UNKNOWN_CARDINALITY,
                                     cardinality=Dataset.cardinality)
