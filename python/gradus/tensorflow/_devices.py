"""Names of devices, as TensorFlow writes them."""


def device_name(device):
    """The engine's name, "gpu:0", of "/GPU:0", "cpu", "/physical_device:GPU:0" or a device of tf.config."""
    name = str(getattr(device, "name", device)).lower().rsplit("/", 1)[-1]
    name = name.removeprefix("device:").removeprefix("physical_device:")
    return name if ":" in name else f"{name}:0"
