/* Trains with a step that was compiled ahead of time: nothing of Gradus is linked, and no mathematical library. The
   classes are the quadrants of two of the inputs. */
#include <stdio.h>
#include <stdlib.h>
#include "data.h"
#include "train_step.h"

int main(int count, char** arguments) {
  static float x[batch * features];
  static int32_t y[batch];
  struct train_step_state* state;
  uint32_t random = 1;
  float first = 0.0f, loss = 0.0f;
  if (!train_step_supported()) {
    printf("this processor lacks instructions of the step\n");
    return 77;
  }
  state = malloc(sizeof *state);
  if (!state) return 1;
  train_step_init(state);
  for (int step = 0; step < steps; ++step) {
    make_batch(&random, x, y);
    loss = train_step(state, x, y);
    if (step == 0) first = loss;
  }
  printf("loss %.4f, then %.4f\n", (double)first, (double)loss);
  if (!(loss < 0.5f * first)) return 1;
  y[3] = 4; /* there are four classes */
  loss = train_step(state, x, y);
  if (loss == loss || state->failure != 1 || state->failure_index != 3 || state->failure_value != 4) return 1;
  if (count > 1) { /* the state, for load_object_state of Gradus */
    FILE* const file = fopen(arguments[1], "wb");
    if (!file || fwrite(state, sizeof *state, 1, file) != 1 || fclose(file) != 0) return 1;
  }
  free(state);
  return 0;
}
