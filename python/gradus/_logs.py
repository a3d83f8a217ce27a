"""Numbers of a training by name: logs of epochs and steps, and the history."""
from collections.abc import Mapping

from ._names import nearest


class Logs(dict):
    """Numbers by name. Names of validation numbers begin with `validation_`; Keras's `val_` finds them, too. KeyError, with
    the nearest name, for an unknown one."""

    def __missing__(self, name):
        if isinstance(name, str) and name.startswith("val_"):
            return self["validation_" + name[4:]]
        near = nearest(str(name), self)
        raise KeyError(f"{name!r}" + (f"; did you mean {near!r}?" if near else f"; there are {sorted(self)}"))

    def __contains__(self, name):
        is_keras = isinstance(name, str) and name.startswith("val_")
        return super().__contains__(name) or is_keras and super().__contains__("validation_" + name[4:])

    def get(self, name, default=None):
        """The number, or `default` where there is none."""
        try:
            return self[name]
        except KeyError:
            return default


class StepLogs(dict):
    """The loss of a step by the name "loss". Reading it waits for the step."""

    def __init__(self, loss):
        super().__init__()
        self._loss = loss

    def __missing__(self, name):
        if name != "loss":
            raise KeyError(name)
        self["loss"] = float(self._loss)
        return self["loss"]

    def get(self, name, default=None):
        """The number, or `default` where there is none."""
        return self[name] if name == "loss" else default


class History(Mapping):
    """The numbers of a training: a mapping of names to lists, one number an epoch. `history` is the dict of these lists,
    `epoch` the list of epochs."""

    def __init__(self, numbers, first_epoch):
        self.history = Logs(numbers)
        self.epoch = list(range(first_epoch, first_epoch + len(self.history.get("seconds", []))))

    def __getitem__(self, name):
        return self.history[name]

    def __iter__(self):
        return iter(self.history)

    def __len__(self):
        return len(self.history)

    def __contains__(self, name):
        return name in self.history

    __hash__, __eq__ = object.__hash__, object.__eq__  # two trainings are two histories

    def __repr__(self):
        return f"<History of {len(self.epoch)} epochs: {', '.join(self.history)}>"
