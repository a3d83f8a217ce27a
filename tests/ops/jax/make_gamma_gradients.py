"""JAX's implicit gradients of gamma numbers for random_parameters_test.cpp: reads lines `alpha number`, which the test's
seed gives, and prints the derivative of each number by alpha. Needs JAX.

    make_gamma_gradients.py < numbers.txt
"""
import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
for line in sys.stdin:
    alpha, number = map(np.float64, line.split())
    print(alpha, number, jax.lax.random_gamma_grad(alpha, number))
