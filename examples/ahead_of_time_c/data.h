/// Batches whose classes are the quadrants of two of the inputs.
#pragma once
#include <stdint.h>

enum { batch = 64, features = 16, steps = 200 };

static uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void make_batch(uint32_t* random, float* x, int32_t* y) {
  for (int i = 0; i < batch; ++i) {
    for (int k = 0; k < features; ++k) x[i * features + k] = (float)next_random(random) / 8388608.0f - 1.0f;
    y[i] = (x[i * features] > 0.0f ? 2 : 0) + (x[i * features + 1] > 0.0f ? 1 : 0);
  }
}
