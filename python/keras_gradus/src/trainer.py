"""Training: a step, with model, loss, metrics and update, is one compiled function, whose state stays in Variables."""
import itertools
import warnings

import gradus
import numpy as np
from gradus.tensorflow import GradientTape as _Tape
from keras.src import callbacks as callbacks_module, optimizers as optimizers_module, tree
from keras.src.backend import config
from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

from keras_gradus.src import texts
from keras_gradus.src.epochs import Step, all_of, first_rows, last_of, only_batch, progress, whole_arrays
from keras_gradus.src.export import exporting
from keras_gradus.src.ops.core import compute_output_spec, convert_to_numpy, convert_to_tensor
from keras_gradus.src.replicas import (completed, is_first_process, mean_over_rows, on_whole_batch, row_count, strategy_here,
                                       strategy_of, whole)

# A new batch size makes a program, which is no reason to warn.
warnings.filterwarnings("ignore", r"gradus: function .*\.(train|test|predict)_step has been traced")


def _value_and_gradients(loss_of, variables):
    """loss_of(), and the gradients of its first result by keras.Variables; None for one that it does not depend on."""
    with _Tape() as tape:
        result = loss_of()
    gradients = tape.gradient(result[0], [variable._value for variable in variables])
    return result, list(gradients)


class GradusTrainer(base_trainer.Trainer):
    """fit, evaluate and predict on this engine. A model's own train_step(data), test_step(data) or predict_step(data) is
    compiled as these are."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__module__ == "keras.src.models.model" and "export" in vars(cls):
            cls.export = exporting(cls.export)

    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None
        self._own_strategy = strategy_here()

    # ---- steps

    def _predicted(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def train_step(self, data):
        """The logs of one step, which updates the weights."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        count, labels, weights_of_rows = row_count(x), whole(y), whole(sample_weight)

        def loss_of():
            y_pred = whole(self._predicted(x, training=True))
            with on_whole_batch():
                loss = self._compute_loss(x=self._seen_by("compute_loss", x), y=labels, y_pred=y_pred,
                                          sample_weight=weights_of_rows, training=True)
                self._loss_tracker.update_state(loss, sample_weight=count)
            return loss if self.optimizer is None else self.optimizer.scale_loss(loss), y_pred
        weights = self.trainable_weights
        if weights:
            (_, y_pred), gradients = _value_and_gradients(loss_of, weights)
            self.optimizer.apply(gradients, weights)
        else:
            warnings.warn("The model does not have any trainable weights.")
            _, y_pred = loss_of()
        with on_whole_batch():
            return self.compute_metrics(self._seen_by("compute_metrics", x), labels, y_pred, sample_weight=weights_of_rows)

    def test_step(self, data):
        """The logs of one batch."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        count, y, sample_weight = row_count(x), whole(y), whole(sample_weight)
        y_pred = whole(self._predicted(x, training=False))
        with on_whole_batch():
            loss = self._compute_loss(x=self._seen_by("compute_loss", x), y=y, y_pred=y_pred, sample_weight=sample_weight,
                                      training=False)
            self._loss_tracker.update_state(loss, sample_weight=count)
            return self.compute_metrics(self._seen_by("compute_metrics", x), y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        """The outputs of one batch."""
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._predicted(x, training=False)

    def _seen_by(self, name, x):
        """The inputs as a method gets them: those of the whole batch where it is a model's own, since Keras's looks at none."""
        return x if getattr(type(self), name) is getattr(GradusTrainer, name) else whole(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss of the whole batch, also in a train_step of a model's own, which has a shard."""
        with on_whole_batch():
            return super().compute_loss(x, completed(y), completed(y_pred), completed(sample_weight), training)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """The metrics of the whole batch, as compute_loss."""
        with on_whole_batch():
            return super().compute_metrics(x, completed(y), completed(y_pred), completed(sample_weight))

    def _aggregate_additional_loss(self, loss):
        """Of a shard's outputs, as an activity regularizer's, it is the shard's own."""
        return mean_over_rows(super()._aggregate_additional_loss(loss))

    def _symbolic_build(self, iterator=None, data_batch=None):
        """As Keras's. A model that is no network, but whose steps call some, has no call() to build it by."""
        if type(self).call.__module__ != "keras.src.models.model":
            super()._symbolic_build(iterator, tree.map_structure(_with_dtype, data_batch))

    def make_train_function(self, force=False):
        self.train_function = self._step_function(self.train_function, "train_step", force)
        return self.train_function

    def make_test_function(self, force=False):
        self.test_function = self._step_function(self.test_function, "test_step", force)
        return self.test_function

    def make_predict_function(self, force=False):
        self.predict_function = self._step_function(self.predict_function, "predict_step", force, all_of)
        return self.predict_function

    def _step_function(self, known, name, force, joined=last_of):
        """The step that is known, or one for the strategy of now."""
        strategy = strategy_of(self._own_strategy)
        is_of_another = isinstance(known, Step) and known.strategy is not strategy
        return Step(self, name, strategy, joined) if known is None or force or is_of_another else known

    # ---- loops

    @traceback_utils.filter_traceback
    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None,
            validation_steps=None, validation_batch_size=None, validation_freq=1):
        self._assert_compile_called("fit")
        epochs = _limited(epochs)
        self._eval_epoch_iterator = None
        if validation_split and validation_data is None and texts.has_texts(x) and not isinstance(x, gradus.Dataset):
            (x, y, sample_weight), validation_data = texts.divided((x, y, sample_weight), validation_split)
        elif validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split)
        batches = _batches(x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps_per_epoch, shuffle=shuffle,
                           class_weight=class_weight, steps_per_execution=self.steps_per_execution)
        batches.reset()
        self._symbolic_build(data_batch=_first_batch(self, batches))
        callbacks = self._callback_list(callbacks, verbose, epochs, batches, add_history=True)

        def validate():
            values, labels, weights = data_adapter_utils.unpack_x_y_sample_weight(validation_data)
            size = validation_batch_size or batch_size
            if self._eval_epoch_iterator is None:
                self._eval_epoch_iterator = _batches(values, labels, weights, batch_size=size, steps_per_epoch=validation_steps,
                                                     steps_per_execution=self.steps_per_execution)
            logs = self.evaluate(values, labels, batch_size=size, sample_weight=weights, steps=validation_steps,
                                 callbacks=callbacks, return_dict=True, _use_cached_eval_dataset=True)
            return {f"val_{name}": value for name, value in logs.items()}

        self.make_train_function()
        self.stop_training = False
        logs = {}
        callbacks.on_train_begin()
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            logs = self._run_epoch(epoch, batches, callbacks)
            if validation_data is not None and self._should_eval(epoch, validation_freq):
                logs.update(validate())
            callbacks.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        self._eval_epoch_iterator = None
        callbacks.on_train_end(logs=logs)
        return self.history

    def _run_epoch(self, epoch, batches, callbacks):
        """The logs of an epoch."""
        self.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        whole = batches.whole(self.train_function, callbacks, "train")
        if whole is not None:
            logs = whole.logs(progress(callbacks, "train"), lambda: self.stop_training)
        else:
            logs = self._logs_of_batches(batches, callbacks)
        return pythonify_logs(self._get_metrics_result_or_logs(logs))

    def _logs_of_batches(self, batches, callbacks):
        """The logs of the last step of an epoch, which calls callbacks for each batch."""
        logs = {}
        with batches.catch_stop_iteration():
            for begin, end, data in batches.steps():
                callbacks.on_train_batch_begin(begin)
                logs = self.train_function(data)
                callbacks.on_train_batch_end(end, logs)
                if self.stop_training:
                    break
        return logs

    @traceback_utils.filter_traceback
    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None,
                 return_dict=False, **kwargs):
        self._assert_compile_called("evaluate")
        is_cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        batches = self._eval_epoch_iterator if is_cached else _batches(
            x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps, steps_per_execution=self.steps_per_execution)
        batches.reset()  # a generator's first batches come again, as everywhere in Keras
        self._symbolic_build(data_batch=_first_batch(self, batches))
        callbacks = self._callback_list(callbacks, verbose, 1, batches)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        self.reset_metrics()
        whole = batches.whole(self.test_function, callbacks, "test")
        if whole is not None:
            logs = whole.logs(progress(callbacks, "test"), lambda: self.stop_evaluating)
        else:
            logs = self._test_logs_of_batches(batches, callbacks)
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def _test_logs_of_batches(self, batches, callbacks):
        logs = {}
        for begin, end, data in batches.steps():
            callbacks.on_test_batch_begin(begin)
            logs = self.test_function(data)
            callbacks.on_test_batch_end(end, logs)
            if self.stop_evaluating:
                break
        return logs

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        if callbacks is None and verbose == 0 and steps is None and (rows := only_batch(x, batch_size)) is not None:
            return self.predict_on_batch(rows)  # nobody looks on: no queue of callbacks, no adapter
        batches = _batches(x, batch_size=batch_size, steps_per_epoch=steps, steps_per_execution=self.steps_per_execution)
        callbacks = self._callback_list(callbacks, verbose, 1, batches)
        self._build_for(_first_batch(self, batches))
        self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        found = []
        for begin, end, data in batches.steps():
            callbacks.on_predict_batch_begin(begin)
            outputs = self.predict_function(data)
            found.append(outputs)
            callbacks.on_predict_batch_end(end, {"outputs": outputs})
            if self.stop_predicting:
                break
        callbacks.on_predict_end()
        if not found:
            raise ValueError("predict: the data have no batch")
        return tree.map_structure(lambda *parts: np.concatenate([convert_to_numpy(part) for part in parts]), *found)

    def _callback_list(self, callbacks, verbose, epochs, batches, add_history=False):
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        if verbose == "auto" and not is_first_process(strategy_of(self._own_strategy)):
            verbose = 0
        return callbacks_module.CallbackList(callbacks, add_history=add_history, add_progbar=verbose != 0, verbose=verbose,
                                             epochs=epochs, steps=batches.num_batches, model=self)

    # ---- single batches

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("Arguments `sample_weight` and `class_weight` cannot be specified at the same time. Received: "
                                 f"sample_weight={sample_weight}, class_weight={class_weight}")
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        return self._on_batch((x, y, sample_weight), self.make_train_function, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        return self._on_batch((x, y, sample_weight), self.make_test_function, return_dict)

    def _on_batch(self, data, make_function, return_dict):
        data = tree.map_structure(_as_tensor, data)
        self._symbolic_build(data_batch=data)
        run = make_function()
        self.reset_metrics()
        logs = pythonify_logs(run([data]))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def _build_for(self, data):
        """Makes the weights of layers that are not built, which a traced step cannot. None is no data."""
        if data is not None and not all(layer.built for layer in self._flatten_layers()):
            x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
            like = tree.map_structure(lambda leaf: None if leaf is None else KerasTensor(
                tuple(leaf.shape), standardize_dtype(leaf.dtype)), x)
            compute_output_spec(self._predicted, like, training=False)

    def predict_on_batch(self, x):
        data = (tree.map_structure(_as_tensor, x),)
        self._build_for(data)
        outputs = self.make_predict_function()([data])
        return tree.map_structure(convert_to_numpy, outputs)


# ---- data

def _with_dtype(leaf):
    """The leaf; texts as a tensor, whose dtype Keras knows."""
    return convert_to_tensor(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "OSU" else leaf


def _as_tensor(leaf):
    is_array = isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "OSU"
    return leaf if leaf is None or is_array else convert_to_tensor(leaf)


def _limited(epochs):
    most = config.max_epochs() if hasattr(config, "max_epochs") else None
    if most and most < epochs:
        warnings.warn(f"Limiting epochs to {most}")
        return most
    return epochs


class _DatasetAdapter(DataAdapter):
    """A data set of this engine, whose elements are batches."""

    def __init__(self, dataset, class_weight=None):
        self._dataset, self._class_weight = dataset, class_weight

    def get_numpy_iterator(self):
        if self._class_weight is None:
            return iter(self._dataset)
        return (texts.weighted(batch, self._class_weight) for batch in self._dataset)

    @property
    def num_batches(self):
        count = int(self._dataset.cardinality())
        return None if count < 0 else count

    @property
    def batch_size(self):
        return None

    @property
    def has_partial_batch(self):
        return None

    @property
    def partial_batch_size(self):
        return None


def _batches(x, y=None, sample_weight=None, **options):
    """The batches of an epoch, again and again."""
    if isinstance(x, gradus.Dataset):
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(f"x is a data set, whose elements are (x, y) or (x, y, sample_weight): leave out {name}")
    elif texts.has_texts(x):
        x = texts.data_set(x, y, sample_weight, options.get("batch_size"), options.get("shuffle", False))
        y = sample_weight = None
    adapter = _DatasetAdapter(x, options.get("class_weight")) if isinstance(x, gradus.Dataset) else x
    return _Batches(adapter, y, sample_weight, **options)


class _Batches(EpochIterator):
    """Keras's iterator, whose first batch can be looked at: generators give it once."""
    _begun = None
    _whole = None

    def whole(self, step, callbacks, kind):
        """The arrays for a loop over numbers, or None; found once for a step."""
        if self._begun is not None:
            return None
        if self._whole is None or self._whole[0] is not step:
            self._whole = step, whole_arrays(step, self, callbacks, kind)
        return self._whole[1]

    def first(self):
        rows = first_rows(self.data_adapter)
        if rows is not None:
            return rows
        epoch = self.enumerate_epoch()
        item = next(epoch, None)
        if item is None:
            raise ValueError("the data have no batch")
        self._begun = itertools.chain([item], epoch)
        return item[-1][0]

    def steps(self):
        """(first step, last step, batches) for each execution. Keras up to 3.11 gives the first step alone."""
        epoch, self._begun = self._begun or self.enumerate_epoch(), None
        for *places, data in epoch:
            yield places[0], places[-1] + (len(data) - 1 if len(places) == 1 else 0), data


def _first_batch(model, batches):
    """A batch for Keras to build what is not built yet; None where all is."""
    parts = [*model._flatten_layers(), model._compile_metrics, model._compile_loss]
    return None if all(part is None or part.built for part in parts) else batches.first()
