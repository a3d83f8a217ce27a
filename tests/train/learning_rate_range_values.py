"""Suggestions of the learning-rate range test as PyTorch Lightning 2 makes them (its lr_find: losses smoothed with the
corrected moving average, np.gradient of those without the first 10 and the last one), for range_of_learning_rates_test.cpp.

    learning_rate_range_values.py
"""
import numpy as np


def raw(kind, i):
    if kind == "bowl":
        return 1 + (i - 60) ** 2 / 900
    if kind == "cliff":
        return 2.5 / (1 + np.exp((i - 45) / 4)) + 0.1 * np.sin(i) + (np.exp((i - 80) / 3) if i > 70 else 0)
    return 3 - 0.02 * i + 0.3 * np.cos(0.7 * i)


for kind in ["bowl", "cliff", "line"]:
    for beta in [0.0, 0.9, 0.98]:
        average, least, smoothed = 0.0, np.inf, []
        for i in range(100):
            average = beta * average + (1 - beta) * raw(kind, i)
            smoothed.append(average / (1 - beta ** (i + 1)))
            if i > 0 and smoothed[-1] > 4 * least:
                break
            least = min(least, smoothed[-1])
        slope = np.gradient(np.array(smoothed)[10:-1])
        print(f'{{"{kind}", {beta}, {len(smoothed)}, {10 + int(slope.argmin())}}},')
