#!/usr/bin/env python3
"""Makes the files beside this one: loss curves of 20 steps by Keras 3 or PyTorch in f64, and where the weights end.

    make_reference.py keras [problem ...]      (in an environment with keras and tensorflow)
    make_reference.py torch [problem ...]      (in an environment with torch)

A file is one problem with its numbers, problems.py: mlp, cnn (with batch normalization), transformer (one block), or
loss_scale: the mlp under a loss scale, some steps of which overflow. Curves are named after the optimizer.
PyTorch says those whose rules are Keras's: its Adam, Adagrad and RMSprop add epsilon elsewhere, so for them epsilon
is next to nothing. Its momentum is Keras's while the rate is constant.
"""
import json
import pathlib
import struct
import sys
import types

import numpy as np

import problems

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 20
OVERFLOWS = (3, 8, 9)  # steps whose loss is infinite
# Rates, times those of the mlp: deeper models would turn rounding of float32 into visible differences.
PACE = {"mlp": 1.0, "cnn": 0.25, "transformer": 0.25, "loss_scale": 1.0}


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


def make_nadam_exact():
    """Keras casts the 0.96 of its schedule by way of float32, also for variables that are float64."""
    from keras.src.optimizers import nadam
    cast = nadam.ops.cast
    nadam.ops = types.SimpleNamespace(**vars(nadam.ops))
    nadam.ops.cast = lambda x, dtype: cast(np.float64(x) if type(x) is float else x, dtype)


def keras_cases(r):
    import keras
    o, s = keras.optimizers, keras.optimizers.schedules
    cases = {
        "sgd": o.SGD(0.1 * r),
        "momentum": o.SGD(0.05 * r, momentum=0.9),
        "nesterov": o.SGD(0.05 * r, momentum=0.9, nesterov=True),
        "rmsprop": o.RMSprop(0.01 * r),
        "rmsprop_momentum": o.RMSprop(0.01 * r, rho=0.8, momentum=0.7),
        "rmsprop_centered": o.RMSprop(0.01 * r, momentum=0.5, centered=True),
        "adam": o.Adam(0.02 * r),
        "amsgrad": o.Adam(0.05 * r, beta_2=0.9, amsgrad=True),
        "adamw": o.AdamW(0.02 * r, weight_decay=0.1),
        "nadam": o.Nadam(0.02 * r),
        "adagrad": o.Adagrad(0.1 * r),
        "adadelta": o.Adadelta(1.0 * r),
        "adamax": o.Adamax(0.02 * r),
        "ftrl": o.Ftrl(0.1 * r),
        "ftrl_regularized": o.Ftrl(0.2 * r, learning_rate_power=-0.7, initial_accumulator_value=0.2,
                                   l1_regularization_strength=0.01, l2_regularization_strength=0.02,
                                   l2_shrinkage_regularization_strength=0.03, beta=0.1),
        "lion": o.Lion(0.01 * r, weight_decay=0.1),
        "lamb": o.Lamb(0.02 * r),
        "clipnorm": o.Adam(0.02 * r, clipnorm=0.05),
        "global_clipnorm": o.SGD(0.2 * r, momentum=0.9, global_clipnorm=0.1),
        "clipvalue": o.Adagrad(0.1 * r, clipvalue=0.01),
        "decay_of_momentum": o.SGD(0.05 * r, momentum=0.9, weight_decay=0.2),
        "decay_without_biases": o.AdamW(0.05 * r, weight_decay=0.5),
        "ema": o.SGD(0.1 * r, momentum=0.9, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=3),
        "ema_of_adam": o.Adam(0.05 * r, use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=7),
        "accumulation": o.Adam(0.02 * r, gradient_accumulation_steps=2, global_clipnorm=0.1),
        "exponential_decay": o.SGD(s.ExponentialDecay(0.3 * r, 4, 0.7)),
        "exponential_staircase": o.SGD(s.ExponentialDecay(0.3 * r, 4, 0.7, staircase=True)),
        "cosine_decay": o.Adam(s.CosineDecay(0.05 * r, 12, alpha=0.1)),
        "cosine_decay_with_warmup": o.AdamW(s.CosineDecay(0.0, 10, warmup_target=0.05 * r, warmup_steps=5)),
        "cosine_decay_restarts": o.SGD(s.CosineDecayRestarts(0.3 * r, 3, t_mul=1.5, m_mul=0.8, alpha=0.05)),
        "cosine_decay_restarts_even": o.SGD(s.CosineDecayRestarts(0.3 * r, 5, t_mul=1.0, m_mul=0.9)),
        "polynomial_decay": o.SGD(s.PolynomialDecay(0.3 * r, 12, 0.01 * r, power=2.0)),
        "polynomial_decay_cycle": o.SGD(s.PolynomialDecay(0.3 * r, 6, 0.01 * r, power=0.5, cycle=True)),
        "piecewise_constant_decay": o.SGD(s.PiecewiseConstantDecay([5, 11], [0.3 * r, 0.1 * r, 0.02 * r])),
        "inverse_time_decay": o.RMSprop(s.InverseTimeDecay(0.05 * r, 3, 0.6)),
        "inverse_time_staircase": o.SGD(s.InverseTimeDecay(0.3 * r, 3, 0.6, staircase=True)),
    }
    for optimizer in cases.values():
        in_double(optimizer)
    cases["decay_without_biases"].exclude_from_weight_decay(var_names=["b0", "b1", "bias", "beta"])
    return cases


def keras_scaled_cases():
    """A schedule, averages and bias corrections count the updates that were made, not the steps that overflowed."""
    import keras
    o, s = keras.optimizers, keras.optimizers.schedules
    cases = {
        "sgd": o.SGD(0.1),
        "adam_cosine": o.Adam(s.CosineDecay(0.05, 12, alpha=0.1)),
        "ema": o.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=3),
        "global_clipnorm": o.AdamW(0.05, weight_decay=0.1, global_clipnorm=0.1),
        "nadam": o.Nadam(0.02),
    }
    for optimizer in cases.values():
        in_double(optimizer)
    return cases


def keras_curves(kind, numbers):
    import keras
    import tensorflow as tf
    scaled = kind == "loss_scale"
    problem = problems.of_keras(kind, numbers)
    x, y = tf.constant(numbers["x"]), tf.constant(numbers["y"])
    curves = {}
    for name, optimizer in (keras_scaled_cases() if scaled else keras_cases(PACE[kind])).items():
        problem.reset()
        weights = problem.trainable
        stepping = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**15) if scaled else optimizer
        stepping.build(weights)
        # Accumulation: halves of the batch, so that an update is the whole one.
        parts = [(x[:6], y[:6]), (x[6:], y[6:])] if name == "accumulation" else [(x, y)]
        losses = []
        for step in range(STEPS):
            total = 0.0
            for xs, ys in parts:
                with tf.GradientTape() as tape:
                    loss = problem.loss(xs, ys)
                    objective = loss
                    if scaled:
                        objective = stepping.scale_loss(loss * (np.inf if step in OVERFLOWS else 1.0))
                total += float(loss) / len(parts)
                stepping.apply(tape.gradient(objective, [w.value for w in weights]), weights)
            losses.append(total)
        if optimizer.use_ema:
            optimizer.finalize_variable_values(weights)
        curves[name] = np.array(losses)
        curves[name + "|end"] = weights[0].numpy()
        if problem.moving:
            curves[name + "|moving"] = np.concatenate([v.numpy() for v in problem.moving])
        if scaled:
            curves[name + "|scale"] = np.array(float(stepping.dynamic_scale))
    return curves


def torch_cases(r):
    import torch
    o, tiny = torch.optim, 1e-60
    one_cycle = {"cycle_momentum": False, "total_steps": STEPS}
    return {
        "sgd": (lambda w: o.SGD(w, 0.1 * r), None),
        "momentum": (lambda w: o.SGD(w, 0.05 * r, momentum=0.9), None),
        "nesterov": (lambda w: o.SGD(w, 0.05 * r, momentum=0.9, nesterov=True), None),
        "adam": (lambda w: o.Adam(w, 0.02 * r, eps=tiny), None),
        "adamw": (lambda w: o.AdamW(w, 0.02 * r, weight_decay=0.1, eps=tiny), None),
        "adadelta": (lambda w: o.Adadelta(w, 1.0 * r, rho=0.95, eps=1e-7), None),
        "adamax": (lambda w: o.Adamax(w, 0.02 * r, eps=tiny), None),
        "adagrad": (lambda w: o.Adagrad(w, 0.1 * r, initial_accumulator_value=0.1, eps=tiny), None),
        "rmsprop_momentum": (lambda w: o.RMSprop(w, 0.01 * r, alpha=0.8, momentum=0.7, eps=tiny), None),
        "groups": (lambda w: o.SGD([{"params": w[::2]}, {"params": w[1::2], "lr": 0.3 * r}], 0.05 * r, momentum=0.9), None),
        "one_cycle": (lambda w: o.SGD(w, 0.1), lambda opt: o.lr_scheduler.OneCycleLR(opt, 0.4 * r, **one_cycle)),
        "one_cycle_linear": (lambda w: o.SGD(w, 0.1), lambda opt: o.lr_scheduler.OneCycleLR(
            opt, 0.4 * r, pct_start=0.45, anneal_strategy="linear", div_factor=10, final_div_factor=50, **one_cycle)),
    }


def torch_scaled_cases():
    import torch
    o = torch.optim
    return {
        "momentum": (lambda w: o.SGD(w, 0.05, momentum=0.9), None),
        "adadelta": (lambda w: o.Adadelta(w, 1.0, rho=0.95, eps=1e-7), None),
    }


# Deeper models have gradients that are 0, or 0 but for rounding: these would divide them by next to nothing.
OF_MLP_ALONE = ("adam", "adamw", "adamax", "rmsprop_momentum")


def torch_curves(kind, numbers):
    import torch
    scaled = kind == "loss_scale"
    curves = {}
    for name, (make, schedule) in (torch_scaled_cases() if scaled else torch_cases(PACE[kind])).items():
        if name in OF_MLP_ALONE and kind != "mlp":
            continue
        weights, loss_of = problems.of_torch(kind, numbers)
        optimizer = make(weights)
        scheduler = schedule(optimizer) if schedule else None
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**15, enabled=scaled)
        losses = []
        for step in range(STEPS):
            loss = loss_of()
            optimizer.zero_grad()
            scaler.scale(loss * (np.inf if scaled and step in OVERFLOWS else 1.0)).backward()
            scaler.step(optimizer)
            scaler.update()
            if scheduler:
                scheduler.step()
            losses.append(loss.item())
        curves[name] = np.array(losses)
        curves[name + "|end"] = weights[0].detach().numpy()
        if scaled:
            curves[name + "|scale"] = np.array(scaler.get_scale())
    return curves


def main():
    peer, kinds = sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:] or list(PACE)
    if peer not in ("keras", "torch") or not set(kinds) <= set(PACE):
        sys.exit(__doc__)
    if peer == "keras":
        import keras
        keras.backend.set_floatx("float64")
        make_nadam_exact()
    for kind in kinds:
        numbers = problems.numbers(kind)
        curves = {"keras": keras_curves, "torch": torch_curves}[peer](kind, numbers)
        write(HERE / f"{peer}_{kind}.safetensors", numbers | curves)


if __name__ == "__main__":
    main()
