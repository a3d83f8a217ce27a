/// Models in the order of their weights.
#include "tests/optim/reference_problems.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/nn/rearranging.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

struct Block {
  MultiHeadAttention attention{2, 3, {.causal = true}};
  LayerNormalization attention_norm;
  Dense wide{8, gelu}, narrow{6};
  LayerNormalization norm;
  Dense last{3};
  Tensor operator()(const Tensor& x) const {
    const Tensor seen = attention_norm(x + attention(x));
    return last(norm(seen + narrow(wide(seen))));
  }
};

Sequential mlp(DType t, bool scale_loss) {
  return Sequential({Dense(8, tanh), Dense(3)}, {.policy = {t, t, scale_loss}});
}

Sequential cnn() {
  return {Conv2D(3, 3, {.padding = Padding::same, .use_bias = false}),
          BatchNormalization(),
          ReLU(),
          Conv2D(4, 3, {.strides = 2, .padding = Padding::same, .use_bias = false}),
          BatchNormalization(),
          ReLU(),
          Flatten(),
          Dense(3)};
}

std::shared_ptr<Module> model_of(const std::string& kind, DType t) {
  if (kind == "cnn") return std::make_shared<Sequential>(cnn());
  if (kind == "transformer") return std::make_shared<Model<Block>>();
  return std::make_shared<Sequential>(mlp(t, kind == "loss_scale"));
}

}  // namespace

Tensor ReferenceProblem::moving() const {
  Tensors moving;
  for (const Variable& variable : model->variables())
    if (!variable.trainable()) moving.push_back(variable);
  return moving.empty() ? Tensor() : concat(moving);
}

ReferenceProblem reference_problem(const std::string& kind, const Arrays& numbers, DType t) {
  const bool classes = kind == "cnn";
  const std::shared_ptr<Module> model = model_of(kind, t);
  const Tensor x = cast(numbers.at("x"), t);
  model->build(x.spec());
  const Variables weights = model->trainable_variables();
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i].assign(cast(numbers.at(text('w', i < 10 ? "0" : "", i)), t));
  return {x, cast(numbers.at("y"), classes ? i32 : t), model,
          [model, classes](const Tensor& in, const Tensor& y) {
            const Tensor prediction = (*model)(in, training);
            return Loss::mean(classes ? sparse_categorical_crossentropy(y, prediction, from_logits)
                                      : reduce_mean(square(prediction - y), {.axis = {-1}}));
          },
          // Batch normalization sees each part on its own: the script has halves. To others it is all one.
          classes ? 6 : 5};
}

}  // namespace gradus
