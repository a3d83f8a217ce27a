"""The devices and processes of keras.distribution, which replicas.py makes a strategy of. Models are replicated: there is no
ModelParallel."""
import json
import os

import gradus
from gradus import _native


def list_devices(device_type=None):
    """The devices of a kind as texts, cpu:0; without a kind GPUs or TPUs, or else processors. Of several processes each has
    one. More replicas on the processor are named, cpu:1, cpu:2 ..., where they are wanted."""
    kinds = [device_type.lower()] if device_type else ["gpu", "tpu", "cpu"]
    for kind in kinds:
        found = [f"{kind}:{each.index}" for each in gradus.devices(kind)]
        if found:
            return [f"{kind}:{i}" for i in range(num_processes())] if num_processes() > 1 else found
    return []


def get_device_count(device_type=None):
    return len(list_devices(device_type))


def num_processes():
    """The processes that train together: gradus launch, initialize(), TF_CONFIG or another launcher say so."""
    return _native._cluster()[1]


def process_id():
    return _native._cluster()[0]


def initialize(job_addresses, num_processes, process_id):
    """Names the processes that train together, unless the environment does so already."""
    if job_addresses is None:
        return
    addresses = [each.strip() for each in job_addresses.split(",")]
    if num_processes is not None and num_processes != len(addresses):
        raise ValueError(f"initialize: {num_processes} processes, but {len(addresses)} job_addresses: give one for each process")
    if process_id is None or not 0 <= process_id < len(addresses):
        raise ValueError(f"initialize: process_id is a number from 0 to {len(addresses) - 1}, not {process_id}")
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": process_id}})


def initialize_rng():
    """Nothing: keras.utils.set_random_seed gives all processes one seed, and a step refuses values that differ."""


def distribute_tensor(tensor, layout):
    """Refuses: rows of batches alone are divided, by a step."""
    raise NotImplementedError("distribute_tensor: this backend divides batches, by keras.distribution.DataParallel, and has no "
                              "layouts of tensors")


def distribute_data_input(per_process_batch, layout, batch_dim_name):
    """The batch as it is: a step divides it."""
    return per_process_batch


def _to_backend_mesh(device_mesh):
    return device_mesh


def _to_backend_layout(tensor_layout):
    return tensor_layout
