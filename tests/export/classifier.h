/// Training steps of classifiers, to be exported.
#pragma once
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"

namespace gradus {

template <class M> auto classifier_step(M& model, Optimizer& optimizer) {
  return function(
      [&](Tensor x, Tensor y) {
        GradientTape tape;
        Loss loss = Loss::mean(sparse_categorical_crossentropy(y, cast(model(x, training), f32), from_logits));
        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
        return loss;
      },
      {.name = "step"});
}

struct AttentionClassifier {
  Dense enter{16};
  LayerNormalization before, between;
  MultiHeadAttention attention{2, 8, {.causal = true, .dropout = 0.1}};
  Dense up{32, gelu}, down{16}, scores{3};
  Dropout drop{0.2};
  Tensor operator()(const Tensor& x) const {  // [batch, time, features]
    const Tensor entered = enter(x);
    const Tensor attended = entered + drop(attention(before(entered)));
    return scores(reduce_mean(attended + drop(down(up(between(attended)))), {.axis = {1}}));
  }
};

}  // namespace gradus
