"""tf.distribute: steps on several devices, or in several processes. run() divides the rows of its tensors among the
replicas, whose gradients and losses are those of the whole batch."""
import contextlib
import enum
import functools
import os
import threading
import types
import weakref

from .. import _native, nest, ops
from ..datasets import Iterator
from ._devices import device_name as _device_name
from .left_out import Names

_here = threading.local()  # the strategies whose scopes this thread is in, and the replica


class ReduceOp(enum.Enum):
    """The combination of the values of replicas."""
    SUM, MEAN = "SUM", "MEAN"


class PerReplica:
    """The values of a tensor on the replicas."""

    def __init__(self, values):
        self.values = tuple(values)

    def __repr__(self):
        return f"PerReplica({', '.join(map(repr, self.values))})"

    def _alike(self):
        """The common value; ValueError unless all replicas have the same one."""
        first = self.values[0].numpy()
        if any(value.shape != self.values[0].shape or (value.numpy() != first).any() for value in self.values[1:]):
            raise ValueError("a value that differs from replica to replica: strategy.reduce or "
                             "strategy.experimental_local_results makes one of it")
        return self.values[0]

    def numpy(self):
        """The value as an array; ValueError unless all replicas have the same one."""
        return self._alike().numpy()

    def __float__(self):
        return float(self._alike())

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)


def _stack():
    if not hasattr(_here, "strategies"):
        _here.strategies, _here.replica = [], None
    return _here.strategies


class ReplicaContext:
    """The replica, as its step sees it. The step runs once for all replicas, so replicas have no numbers in it."""

    def __init__(self, strategy):
        self.strategy = strategy
        self.num_replicas_in_sync = strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self):
        """0: Python runs once for all replicas."""
        return 0

    def all_reduce(self, reduce_op, value, options=None):
        """The sum or the mean of the replicas' values."""
        reduce = ops.all_reduce_sum if ReduceOp(_named(reduce_op)) is ReduceOp.SUM else ops.all_reduce_mean
        return nest.map_structure(reduce, value)

    def all_gather(self, value, axis, options=None):
        """The replicas' values, concatenated along `axis`."""
        return nest.map_structure(lambda x: ops.all_gather(x, axis=axis), value)


def _named(reduce_op):
    return getattr(reduce_op, "value", str(reduce_op)).upper()


class _Steps:
    """The handles of compiled functions and of compiled methods of objects, as long as these live. Other functions have none:
    the state that they read may have changed, so they are traced again. Within a compiled function all have one."""

    def __init__(self):
        self._known = {}

    def of(self, fn):
        """The handle of a tf.function or a method that is one; None for others."""
        if isinstance(fn, functools.partial) and len(fn.args) == 1 and not fn.keywords:
            parts = [fn.func, fn.args[0]]
        else:
            parts = [getattr(fn, "__func__", fn), getattr(fn, "__self__", None)]
        if not hasattr(type(parts[0]), "get_concrete_function") and not _native._runs_function_in_python():
            return None
        parts = [each for each in parts if each is not None]
        key = tuple(map(id, parts))
        if key not in self._known:
            try:
                references = [weakref.ref(each, lambda _: self._known.pop(key, None)) for each in parts]
            except TypeError:  # an object without weak references may die unseen
                return None
            self._known[key] = _native._StepHandle(), references
        return self._known[key][0]


_steps = _Steps()


class Strategy:
    """The devices of a step: scope, run, reduce."""

    def __init__(self, strategy):
        self._strategy = strategy
        self.extended = types.SimpleNamespace(worker_devices=tuple(range(self.num_replicas_in_sync)))

    @property
    def num_replicas_in_sync(self):
        """The number of replicas that compute a step together."""
        return self._strategy.num_replicas_in_sync

    @contextlib.contextmanager
    def scope(self):
        """A context in which tf.distribute.get_strategy() is this strategy. Models and optimizers may be made inside or
        outside."""
        _stack().append(self)
        try:
            yield self
        finally:
            _stack().pop()

    def run(self, fn, args=(), kwargs=None, options=None):
        """fn(*args, **kwargs), with the rows of the tensors divided among the replicas. Losses and gradients are those of the
        whole batch; other tensors in the result become PerReplica if there are several replicas. A tf.function is traced once,
        and so is a function that a tf.function passes to run(); any other function is traced at each call."""
        if _native._is_traced():
            raise _native._StepsWithin("strategy.run within a traced function")  # which runs in Python from now on
        args = args if isinstance(args, (tuple, list)) else (args,)
        return self._run(_steps.of(fn), fn, args, kwargs or {}, PerReplica)

    def _run(self, handle, fn, args, kwargs, per_replica):
        """run(), traced once for a handle. per_replica(list) combines values that differ between replicas into a result."""
        def step(*args, **kwargs):
            _stack().append(self)
            before, _here.replica = _here.replica, ReplicaContext(self)
            try:
                return fn(*args, **kwargs)
            finally:
                _here.replica = before
                _stack().pop()
        step.__name__ = getattr(fn, "__name__", "step")
        return self._strategy.run(handle, step, per_replica, args, kwargs)

    def reduce(self, reduce_op, value, axis=None):
        """The sum or the mean over replicas, and over `axis` if it is given."""
        mean = ReduceOp(_named(reduce_op)) is ReduceOp.MEAN

        def one(x):
            parts = list(x.values) if isinstance(x, PerReplica) else [x]
            if axis is not None:
                joined = ops.concat([ops.cast(p, p.dtype) for p in parts], axis)
                return (ops.reduce_mean if mean else ops.reduce_sum)(joined, axis=axis)
            total = ops.add_n(parts) if len(parts) > 1 else parts[0]
            return total / len(parts) if mean else total
        return nest.map_structure(one, value)

    def gather(self, value, axis):
        """The values of all replicas, concatenated along `axis`."""
        return nest.map_structure(lambda x: ops.concat(list(x.values), axis) if isinstance(x, PerReplica) else x, value)

    def experimental_local_results(self, value):
        """The values of the replicas of this process, as a tuple."""
        return value.values if isinstance(value, PerReplica) else (value,)

    def experimental_distribute_dataset(self, dataset, options=None):
        """The data set for run(), which divides its elements, batches for all replicas. Each process reads only its own
        rows."""
        return dataset._then(self._strategy.distribute)

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """The data set of dataset_fn(context), which gives batches for one replica, joined to batches for all."""
        made = dataset_fn(InputContext(self))
        count = self.num_replicas_in_sync
        return made if count == 1 else made._then(lambda stages: _joined(stages, count))

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn):
        """The PerReplica of value_fn(context) for each replica."""
        return PerReplica([value_fn(types.SimpleNamespace(replica_id_in_sync_group=i,
                                                          num_replicas_in_sync=self.num_replicas_in_sync))
                           for i in range(self.num_replicas_in_sync)])


def _joined(stages, count):
    """Batches of `count` batches, for the replicas."""
    return stages.rebatch([count * _batch_of(stages)], False)


def _batch_of(stages):
    size = stages.specs()[0].shape[0]
    if not isinstance(size, int):
        first = next(iter(stages.begin()))
        size = first[0].shape[0]
    return int(size)


class InputContext:
    """The argument of the function of distribute_datasets_from_function: one pipeline reads the batches."""

    def __init__(self, strategy):
        self.num_replicas_in_sync = strategy.num_replicas_in_sync
        self.num_input_pipelines, self.input_pipeline_id = 1, 0

    def get_per_replica_batch_size(self, global_batch_size):
        """The rows of a replica. ValueError unless the batch divides evenly."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(f"a batch of {global_batch_size} rows for {self.num_replicas_in_sync} replicas")
        return global_batch_size // self.num_replicas_in_sync


class InputOptions:
    """Options of distributed data sets. None of them changes a result."""

    def __init__(self, **options):
        self.__dict__.update(options)


class MirroredStrategy(Strategy):
    """One replica on each of these devices; without a list on all GPUs, or on the processor if there is none. micro_shards:
    the number of shards of a batch, which alone determines the bits of results; 0: one for each replica."""

    def __init__(self, devices=None, cross_device_ops=None, *, micro_shards=0):
        super().__init__(_native._Strategy.mirrored([_device_name(each) for each in devices or ()], micro_shards, False, False))


class MultiWorkerMirroredStrategy(Strategy):
    """Replicas in several processes, which `gradus launch` or TF_CONFIG describe: each runs the same program with the same
    batches. micro_shards as in MirroredStrategy."""

    def __init__(self, cluster_resolver=None, communication_options=None, *, micro_shards=0):
        super().__init__(_native._Strategy.multi_worker(micro_shards, False, False))
        self.cluster_resolver = cluster_resolver or TFConfigClusterResolver()


class OneDeviceStrategy(Strategy):
    """One replica on one device."""

    def __init__(self, device):
        super().__init__(_native._Strategy.mirrored([_device_name(device)], 0, False, False))


class ParameterServerStrategy(Strategy):
    """Asynchronous training: Variables live at parameter servers, and workers take the steps that a ClusterCoordinator
    schedules. Every process that `gradus launch --servers`, or TF_CONFIG, describes runs the same program with the same
    batches; one that is a parameter server serves here until the training ends, and then ends by SystemExit.

    max_staleness: number of updates that a worker's values may lack; results do not depend on the speed of workers.
        checkpoints: a directory from which a restarted server continues; checkpoint_steps: steps between its full snapshots.
    """

    def __init__(self, cluster_resolver=None, variable_partitioner=None, *, max_staleness=0, checkpoints="",
                 checkpoint_steps=100):
        if variable_partitioner is not None:
            raise ValueError("ParameterServerStrategy: a Variable is on one server as a whole: variable_partitioner is None")
        made = _native._ParameterServers.make(max_staleness, os.fspath(checkpoints), checkpoint_steps)
        if made is None:
            raise SystemExit(0)
        super().__init__(made)
        self.cluster_resolver = cluster_resolver or TFConfigClusterResolver()


class RemoteValue:
    """The result of a scheduled step."""

    def fetch(self):
        """UnimplementedError: results of single steps stay at their workers."""
        from .errors import UnimplementedError
        raise UnimplementedError("RemoteValue.fetch: results of single steps stay at their workers; coordinator.join() gives "
                                 "the loss of all steps since the last join")

    get = fetch


class ClusterCoordinator:
    """Distributes steps among the workers of a ParameterServerStrategy."""

    def __init__(self, strategy):
        if not isinstance(strategy, ParameterServerStrategy):
            raise ValueError(f"ClusterCoordinator: takes a ParameterServerStrategy, not a {type(strategy).__name__}")
        self.strategy = strategy

    def schedule(self, fn, args=None, kwargs=None):
        """Schedules fn(*args, **kwargs), with tensors that are not divided, on a free worker. In place of an iterator, fn
        receives an iterator over the next element alone. A tf.function is traced once for each size of batches, any other
        function at each call."""
        args = tuple(args or ())
        iterators = [isinstance(each, Iterator) for each in args]
        given = tuple(next(each) if taken else each for each, taken in zip(args, iterators))

        def step(*given, **kwargs):
            _stack().append(self.strategy)
            before, _here.replica = _here.replica, ReplicaContext(self.strategy)
            try:
                return fn(*(iter([each]) if taken else each for each, taken in zip(given, iterators)), **kwargs)
            finally:
                _here.replica = before
                _stack().pop()
        step.__name__ = getattr(fn, "__name__", "step")
        self.strategy._strategy.schedule(_steps.of(fn), step, given, dict(kwargs or {}))
        return RemoteValue()

    def join(self):
        """Waits for all scheduled steps; then Variables have the servers' values. Gives the loss of all examples since the
        last join, None if no step gave one; raises the error of a step."""
        return self.strategy._strategy.join()

    def done(self):
        """False: use join(), which waits."""
        return False

    def create_per_worker_dataset(self, dataset):
        """The data set, or the one that a function gives: all processes read the same one, and schedule() takes its elements
        in order."""
        return dataset(InputContext(self.strategy)) if callable(dataset) else dataset


coordinator = Names("gradus.tensorflow.distribute.coordinator", ClusterCoordinator=ClusterCoordinator, RemoteValue=RemoteValue)


class TFConfigClusterResolver:
    """The cluster that the variable TF_CONFIG describes."""

    def __init__(self):
        import json
        self._config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = self._config.get("task", {})
        self.task_type, self.task_id = task.get("type", "worker"), int(task.get("index", 0))

    def cluster_spec(self):
        """The addresses by task type, a dict."""
        return dict(self._config.get("cluster", {}))


class HierarchicalCopyAllReduce:
    """TensorFlow's choice of an all-reduce, without effect: here sums follow one fixed tree, whose bits depend on no
    device."""

    def __init__(self, num_packs=1):
        pass


NcclAllReduce = ReductionToOneDevice = HierarchicalCopyAllReduce
_default = []


def get_strategy():
    """The strategy of the surrounding scope or step; else one with a single replica."""
    if _stack():
        return _stack()[-1]
    if not _default:
        _default.append(Strategy(_native._Strategy.default()))
    return _default[0]


def has_strategy():
    """True within the scope or the step of a strategy."""
    return bool(_stack())


def get_replica_context():
    """The replica's context within a step and outside of all strategies; None in a strategy's scope."""
    if _stack() and _here.replica is None:
        return None
    return _here.replica or ReplicaContext(get_strategy())


def in_cross_replica_context():
    """True in the scope of a strategy, outside of its steps."""
    return get_replica_context() is None


def is_within_step():
    """True while a step runs."""
    _stack()
    return _here.replica is not None


cluster_resolver = Names(
    "gradus.tensorflow.distribute.cluster_resolver", TFConfigClusterResolver=TFConfigClusterResolver)
experimental = Names(
    "gradus.tensorflow.distribute.experimental", MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategy,
    ParameterServerStrategy=ParameterServerStrategy, coordinator=coordinator)
