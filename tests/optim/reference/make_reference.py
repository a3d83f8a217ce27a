#!/usr/bin/env python3
"""Makes keras.safetensors or torch.safetensors beside this file: loss curves of 20 steps by Keras 3 or PyTorch, f64.

    make_reference.py keras        (in an environment with keras and tensorflow)
    make_reference.py torch        (in an environment with torch)

The problem is one MLP, tanh(x k0 + b0) k1 + b1 with mean squared error; its numbers are stored with the curves.
PyTorch says those whose rules are Keras's: its Adam, Adagrad and RMSprop add epsilon elsewhere, so for them epsilon
is next to nothing.
"""
import json
import pathlib
import struct
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 20


def problem():
    draw = np.random.default_rng(7)
    normal = lambda *shape: draw.normal(size=shape)
    return {"x": normal(12, 4), "y": normal(12, 3), "k0": normal(4, 8) / 2, "b0": normal(8) / 10,
            "k1": normal(8, 3) / 3, "b1": normal(3) / 10}


def write(path, arrays):
    header, blobs, offset = {}, [], 0
    for name in sorted(arrays):
        blob = np.ascontiguousarray(arrays[name], np.float64).tobytes()
        header[name] = {"dtype": "F64", "shape": list(np.shape(arrays[name])), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def in_double(thing):
    """Of a plain float Keras makes a float32, also beside variables that are float64."""
    for name, value in list(vars(thing).items()):
        if type(value) is float:
            setattr(thing, name, np.float64(value))
        elif name == "values":
            thing.values = [np.float64(v) for v in value]
        elif type(value).__module__.endswith("learning_rate_schedule"):
            in_double(value)


def keras_cases():
    import keras
    o, s = keras.optimizers, keras.optimizers.schedules
    cases = {
        "sgd": o.SGD(0.1),
        "momentum": o.SGD(0.05, momentum=0.9),
        "nesterov": o.SGD(0.05, momentum=0.9, nesterov=True),
        "rmsprop": o.RMSprop(0.01),
        "rmsprop_momentum": o.RMSprop(0.01, rho=0.8, momentum=0.7),
        "rmsprop_centered": o.RMSprop(0.01, momentum=0.5, centered=True),
        "adam": o.Adam(0.02),
        "amsgrad": o.Adam(0.05, beta_2=0.9, amsgrad=True),
        "adamw": o.AdamW(0.02, weight_decay=0.1),
        "nadam": o.Nadam(0.02),
        "adagrad": o.Adagrad(0.1),
        "adadelta": o.Adadelta(1.0),
        "adamax": o.Adamax(0.02),
        "ftrl": o.Ftrl(0.1),
        "ftrl_regularized": o.Ftrl(0.2, learning_rate_power=-0.7, initial_accumulator_value=0.2,
                                   l1_regularization_strength=0.01, l2_regularization_strength=0.02,
                                   l2_shrinkage_regularization_strength=0.03, beta=0.1),
        "lion": o.Lion(0.01, weight_decay=0.1),
        "lamb": o.Lamb(0.02),
        "clipnorm": o.Adam(0.02, clipnorm=0.05),
        "global_clipnorm": o.SGD(0.2, momentum=0.9, global_clipnorm=0.1),
        "clipvalue": o.Adagrad(0.1, clipvalue=0.01),
        "decay_of_momentum": o.SGD(0.05, momentum=0.9, weight_decay=0.2),
        "decay_without_biases": o.AdamW(0.05, weight_decay=0.5),
        "ema": o.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=3),
        "ema_of_adam": o.Adam(0.05, use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=7),
        "accumulation": o.Adam(0.02, gradient_accumulation_steps=2, global_clipnorm=0.1),
        "exponential_decay": o.SGD(s.ExponentialDecay(0.3, 4, 0.7)),
        "exponential_staircase": o.SGD(s.ExponentialDecay(0.3, 4, 0.7, staircase=True)),
        "cosine_decay": o.Adam(s.CosineDecay(0.05, 12, alpha=0.1)),
        "cosine_decay_with_warmup": o.AdamW(s.CosineDecay(0.0, 10, warmup_target=0.05, warmup_steps=5)),
        "cosine_decay_restarts": o.SGD(s.CosineDecayRestarts(0.3, 3, t_mul=1.5, m_mul=0.8, alpha=0.05)),
        "cosine_decay_restarts_even": o.SGD(s.CosineDecayRestarts(0.3, 5, t_mul=1.0, m_mul=0.9)),
        "polynomial_decay": o.SGD(s.PolynomialDecay(0.3, 12, 0.01, power=2.0)),
        "polynomial_decay_cycle": o.SGD(s.PolynomialDecay(0.3, 6, 0.01, power=0.5, cycle=True)),
        "piecewise_constant_decay": o.SGD(s.PiecewiseConstantDecay([5, 11], [0.3, 0.1, 0.02])),
        "inverse_time_decay": o.RMSprop(s.InverseTimeDecay(0.05, 3, 0.6)),
        "inverse_time_staircase": o.SGD(s.InverseTimeDecay(0.3, 3, 0.6, staircase=True)),
    }
    for optimizer in cases.values():
        in_double(optimizer)
    cases["decay_without_biases"].exclude_from_weight_decay(var_names=["b0", "b1"])
    return cases


def keras_curves(numbers):
    import keras
    import tensorflow as tf
    keras.backend.set_floatx("float64")
    curves = {}
    for name, optimizer in keras_cases().items():
        weights = [keras.Variable(numbers[k], name=k, dtype="float64") for k in ("k0", "b0", "k1", "b1")]
        x, y = tf.constant(numbers["x"]), tf.constant(numbers["y"])
        # Accumulation: halves of the batch, so that an update is the whole one.
        parts = [(x[:6], y[:6]), (x[6:], y[6:])] if name == "accumulation" else [(x, y)]
        losses = []
        for _ in range(STEPS):
            total = 0.0
            for xs, ys in parts:
                with tf.GradientTape() as tape:
                    k0, b0, k1, b1 = [w.value for w in weights]
                    loss = tf.reduce_mean(tf.square(tf.tanh(xs @ k0 + b0) @ k1 + b1 - ys))
                total += float(loss) / len(parts)
                optimizer.apply(tape.gradient(loss, [w.value for w in weights]), weights)
            losses.append(total)
        if optimizer.use_ema:
            optimizer.finalize_variable_values(weights)
        curves[name] = np.array(losses)
        curves[name + "|k0"] = weights[0].numpy()
    return curves


def torch_cases():
    import torch
    o, tiny = torch.optim, 1e-60
    return {
        "sgd": (lambda w: o.SGD(w, 0.1), None),
        "momentum": (lambda w: o.SGD(w, 0.05, momentum=0.9), None),
        "nesterov": (lambda w: o.SGD(w, 0.05, momentum=0.9, nesterov=True), None),
        "adam": (lambda w: o.Adam(w, 0.02, eps=tiny), None),
        "adamw": (lambda w: o.AdamW(w, 0.02, weight_decay=0.1, eps=tiny), None),
        "adadelta": (lambda w: o.Adadelta(w, 1.0, rho=0.95, eps=1e-7), None),
        "adamax": (lambda w: o.Adamax(w, 0.02, eps=tiny), None),
        "adagrad": (lambda w: o.Adagrad(w, 0.1, initial_accumulator_value=0.1, eps=tiny), None),
        "rmsprop_momentum": (lambda w: o.RMSprop(w, 0.01, alpha=0.8, momentum=0.7, eps=tiny), None),
        "groups": (lambda w: o.SGD([{"params": [w[0], w[2]]}, {"params": [w[1], w[3]], "lr": 0.3}], 0.05, momentum=0.9),
                   None),
        "one_cycle": (lambda w: o.SGD(w, 0.1), lambda opt: o.lr_scheduler.OneCycleLR(
            opt, 0.4, total_steps=STEPS, cycle_momentum=False)),
        "one_cycle_linear": (lambda w: o.SGD(w, 0.1), lambda opt: o.lr_scheduler.OneCycleLR(
            opt, 0.4, total_steps=STEPS, pct_start=0.45, anneal_strategy="linear", div_factor=10, final_div_factor=50,
            cycle_momentum=False)),
    }


def torch_curves(numbers):
    import torch
    curves = {}
    for name, (make, schedule) in torch_cases().items():
        weights = [torch.tensor(numbers[k], requires_grad=True) for k in ("k0", "b0", "k1", "b1")]
        optimizer = make(weights)
        scheduler = schedule(optimizer) if schedule else None
        x, y = torch.tensor(numbers["x"]), torch.tensor(numbers["y"])
        losses = []
        for _ in range(STEPS):
            k0, b0, k1, b1 = weights
            loss = torch.mean(torch.square(torch.tanh(x @ k0 + b0) @ k1 + b1 - y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if scheduler:
                scheduler.step()
            losses.append(loss.item())
        curves[name] = np.array(losses)
        curves[name + "|k0"] = weights[0].detach().numpy()
    return curves


def main():
    peer = sys.argv[1] if len(sys.argv) == 2 else ""
    if peer not in ("keras", "torch"):
        sys.exit(__doc__)
    numbers = problem()
    curves = {"keras": keras_curves, "torch": torch_curves}[peer](numbers)
    write(HERE / f"{peer}.safetensors", numbers | curves)


if __name__ == "__main__":
    main()
