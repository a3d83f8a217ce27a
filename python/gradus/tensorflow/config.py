"""tf.config: devices, threads, and how functions run."""
import contextlib
import os

from .. import device as _device, devices as _devices, num_threads as _num_threads, set_num_threads as _set_num_threads
from ._devices import device_name as _device_name
from .left_out import Names
from .functions import functions_run_eagerly, run_functions_eagerly


class PhysicalDevice:
    """A device of this machine."""

    def __init__(self, name, device_type):
        self.name, self.device_type = name, device_type

    def __eq__(self, other):
        return isinstance(other, PhysicalDevice) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"{type(self).__name__}(name={self.name!r}, device_type={self.device_type!r})"


class LogicalDevice(PhysicalDevice):
    """A device as programs name it."""


def _listed(kind, prefix, device_type):
    kinds = [device_type] if device_type else ["CPU", "GPU", "TPU"]
    if any(each not in ("CPU", "GPU", "TPU") for each in kinds):
        return []
    return [kind(f"{prefix}:{each}:{device.index}", each) for each in kinds for device in _devices(each.lower())]


def list_physical_devices(device_type=None):
    """The devices of this machine, or those of a type: CPU, GPU, TPU."""
    return _listed(PhysicalDevice, "/physical_device", device_type)


def list_logical_devices(device_type=None):
    """As list_physical_devices: each is one logical device."""
    return _listed(LogicalDevice, "/device", device_type)


def get_visible_devices(device_type=None):
    """All devices are visible."""
    return list_physical_devices(device_type)


def set_visible_devices(devices, device_type=None):
    """No effect: all devices stay visible, and a device is used only where a program names it. ValueError for an unknown
    device."""
    known = list_physical_devices()
    for each in devices if isinstance(devices, (list, tuple)) else [devices]:
        if each not in known:
            raise ValueError(f"set_visible_devices: there is no device {each!r}")


def set_soft_device_placement(enabled):
    """No effect: an op runs on the device of its inputs, or raises an error with the reason."""


def get_soft_device_placement():
    """False, see set_soft_device_placement."""
    return False


def _set_memory_growth(device, enable):
    """No effect: memory always grows as needed."""


def _get_memory_growth(device):
    """True: memory always grows as needed."""
    return True


def _set_jit(enabled):
    """No effect: functions are always compiled."""


def _set_intra(num_threads):
    _set_num_threads(num_threads or len(os.sched_getaffinity(0)))  # 0: as many as the process may run on


class LogicalDeviceConfiguration:
    """Limits of a logical device, which the engine does not use."""

    def __init__(self, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        self.memory_limit = memory_limit


def set_logical_device_configuration(device, logical_devices):
    """No effect: a physical device is one logical device; replicas on the processor are named cpu:0, cpu:1 ..."""


def get_logical_device_configuration(device):
    """None: a physical device is one logical device."""


def _enable_op_determinism():
    """No effect: results are the same in every run, on any number of threads."""


experimental_run_functions_eagerly = run_functions_eagerly
experimental = Names(
    "gradus.tensorflow.config.experimental",
    enable_op_determinism=_enable_op_determinism, VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    set_virtual_device_configuration=set_logical_device_configuration,
    set_memory_growth=_set_memory_growth, get_memory_growth=_get_memory_growth,
    list_physical_devices=list_physical_devices, list_logical_devices=list_logical_devices,
    run_functions_eagerly=run_functions_eagerly)
optimizer = Names("gradus.tensorflow.config.optimizer", set_jit=_set_jit, get_jit=lambda: "autoclustering",
                                  set_experimental_options=lambda options: None, get_experimental_options=dict)
threading = Names("gradus.tensorflow.config.threading",
    set_intra_op_parallelism_threads=_set_intra, get_intra_op_parallelism_threads=lambda: _num_threads(),
    set_inter_op_parallelism_threads=lambda num_threads: None, get_inter_op_parallelism_threads=lambda: 1)


def device(device_name):
    """A context in which this thread computes on a device: "/GPU:0", "cpu:1", or a device of list_logical_devices. None: no
    change."""
    if device_name is None:
        return contextlib.nullcontext()
    return _device(_device_name(device_name))
