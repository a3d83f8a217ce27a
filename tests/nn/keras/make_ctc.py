"""Values of keras.ops.ctc_loss and ctc_decode for tests/nn/ctc_test.cpp, by Keras 3.15 on JAX in float32. Prints them.

    KERAS_BACKEND=jax python3 make_ctc.py
"""
import numpy as np
from keras import ops

i = np.arange(3 * 6 * 4)
logits = ((i * i * 7 + 3 * i) % 11 * 0.25).reshape(3, 6, 4).astype(np.float32)
target = np.array([[1, 2, 1], [3, 3, 0], [2, 0, 0]], np.int32)
print("loss", np.asarray(ops.ctc_loss(target, logits, np.array([3, 2, 1]), np.array([6, 5, 4]))).tolist())
last_blank = np.array([[1, 2, 1], [0, 0, 2], [2, 1, 0]], np.int32)
print("blank 3", np.asarray(ops.ctc_loss(last_blank, logits, np.array([3, 2, 1]), np.array([6, 5, 4]), mask_index=3)).tolist())
for blank in (0, 3):
    for merge in (True, False):
        labels, scores = ops.ctc_decode(logits, np.array([6, 5, 2]), merge_repeated=merge, mask_index=blank)
        print("greedy", blank, merge, np.asarray(labels).tolist(), np.asarray(scores).tolist())
    for width in (3, 50):
        labels, scores = ops.ctc_decode(logits, np.array([6, 5, 2]), strategy="beam_search", beam_width=width, top_paths=3,
                                        mask_index=blank)
        print("beam", blank, width, np.asarray(labels).tolist(), np.asarray(scores).tolist())
