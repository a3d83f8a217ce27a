"""PyTorch in the sweep over ops: eager calls, read by the host. Started by ops.py."""
import os

import numpy as np
import torch
import torch.nn.functional as F

import ops_peer


class Torch:
    name, index = "torch", np.int64
    scope = {"torch": torch, "F": F}

    @staticmethod
    def shape_of(call, arrays):
        with torch.no_grad():
            return call(*map(torch.from_numpy, arrays))[0].shape

    @staticmethod
    def value(call, arrays, mode):
        inputs = [torch.from_numpy(array) for array in arrays]

        def step():
            with torch.no_grad():
                return call(*inputs)
        return step

    @staticmethod
    def gradient(call, arrays, sources, cotangent, mode):
        inputs = [torch.from_numpy(array).requires_grad_(place < sources) for place, array in enumerate(arrays)]
        weights = torch.from_numpy(cotangent)
        return lambda: torch.autograd.grad(call(*inputs)[0], inputs[:sources], weights, allow_unused=True)

    @staticmethod
    def array(result):
        return result.detach().resolve_conj().numpy()


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    ops_peer.serve(Torch())
