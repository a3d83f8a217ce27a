/* Trains and predicts with two steps of one state, which stand in one object. */
#include <stdio.h>
#include "data.h"
#include "net.h"

static struct net_state state;

static int likeliest(const float* scores) {
  int best = 0;
  for (int k = 1; k < 4; ++k)
    if (scores[k] > scores[best]) best = k;
  return best;
}

static int count_right(uint32_t* random) {
  static float x[batch * features];
  static int32_t y[batch];
  int right = 0;
  make_batch(random, x, y);
  for (int i = 0; i < batch; ++i) {
    float scores[4];
    net_predict(&state, x + i * features, scores);
    right += likeliest(scores) == y[i];
  }
  return right;
}

int main(void) {
  static float x[batch * features];
  static int32_t y[batch];
  uint32_t random = 1;
  int before, after;
  if (!net_supported()) {
    printf("this processor lacks instructions of the steps\n");
    return 77;
  }
  net_init(&state);
  before = count_right(&random);
  for (int step = 0; step < steps; ++step) {
    make_batch(&random, x, y);
    net_train(&state, x, y);
  }
  after = count_right(&random);
  printf("%d of %d right, then %d\n", before, batch, after);
  return after > before && after > batch * 8 / 10 ? 0 : 1;
}
