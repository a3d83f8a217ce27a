"""Trains a small network on two spirals, and draws its loss and its accuracy into a file.

    python train_and_plot.py [spirals.svg]
"""
import sys

import gradus
import numpy as np
from gradus import nn


def spirals(n, seed):
    """n points in the plane, float32 [n, 2], on two spirals, and the number of the spiral of each."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    angle = 1 + 1.5 * np.pi * np.sqrt(rng.random(n))
    points = np.stack([np.cos(angle + np.pi * label), np.sin(angle + np.pi * label)], 1) * angle[:, None]
    return (points / 3 + rng.normal(0, 0.05, (n, 2))).astype("float32"), label


def drawing(curves, width=480, height=240):
    """A picture in SVG of curves by name, each scaled to the height."""
    colors, parts = ("#1f77b4", "#d62728"), []
    for k, (name, values) in enumerate(curves.items()):
        values = np.asarray(values)
        low, high = values.min(), values.max()
        x = np.linspace(40, width - 10, len(values))
        y = 10 + (height - 40) * (1 - (values - low) / max(high - low, 1e-12))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colors[k % 2]}" stroke-width="2"/>')
        parts.append(f'<text x="{40 + 220 * k}" y="{height - 8}" fill="{colors[k % 2]}" font-size="12">'
                     f"{name}: {values[0]:.3f} to {values[-1]:.3f}</text>")
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{"".join(parts)}</svg>\n'


def main():
    gradus.set_seed(1)
    model = nn.Sequential([nn.Dense(64, "relu"), nn.Dense(64, "relu"), nn.Dense(2)])
    model.compile(nn.Adam(0.01), nn.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    data = gradus.data.from_tensor_slices(spirals(1000, seed=0)).shuffle(1000, seed=2).batch(50)
    history = model.fit(data, epochs=40, validation_data=spirals(200, seed=1), verbose=False)
    print(model.summary())
    print(f"loss {history['loss'][-1]:.3f}, accuracy on other points "
          f"{history['validation_accuracy'][-1]:.3f}")
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(drawing({name: history[name] for name in ("loss", "validation_accuracy")}))
    if history["validation_accuracy"][-1] < 0.95:
        sys.exit("the network should tell the spirals apart")


if __name__ == "__main__":
    main()
