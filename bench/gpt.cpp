/// A training step of a small GPT: causal blocks over characters, four of them unless the name says so.
#include <vector>
#include "bench/cold.h"
#include "bench/workloads.h"
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"

namespace gradus::bench {
namespace {

constexpr std::int64_t vocabulary = 65, places = 256, width = 256, heads = 8;

Tensor gelu_tanh(const Tensor& x) { return gelu(x, {.approximate = true}); }

struct Block {
  LayerNormalization before_attention{{.epsilon = 1e-5}}, before_mlp{{.epsilon = 1e-5}};
  MultiHeadAttention attention{heads, width / heads, {.causal = true}};
  Dense up{4 * width, gelu_tanh}, down{width};
  Tensor operator()(Tensor x) const {
    x = x + attention(before_attention(x));
    return x + down(up(before_mlp(x)));
  }
};
struct Gpt {
  Embedding embed{vocabulary, width};
  PositionEmbedding place{places};
  std::vector<Block> blocks{};
  LayerNormalization last{{.epsilon = 1e-5}};
  Dense scores{vocabulary, linear, {.use_bias = false}};
  Tensor operator()(Tensor tokens) const {
    Tensor x = place(embed(tokens));
    for (const Block& block : blocks) x = block(x);
    return scores(last(x));
  }
};

/// Kernels and tables: normal of 0.02.
void draw(Variables variables) {
  std::uint64_t seed = 1;
  for (Variable& variable : variables)
    if (variable.name().ends_with("kernel") || variable.name().ends_with("embeddings"))
      variable.assign(random::normal(variable.shape(), {.stddev = 0.02, .seed = seed++}));
}

/// A model, and all that its training step needs.
struct Training {
  Model<Gpt> model;
  AdamW optimizer{{.learning_rate = 3e-4, .weight_decay = 0.1, .epsilon = 1e-8, .global_clipnorm = 1}};
  SparseCategoricalCrossentropy loss_function{from_logits};
  Tensor tokens, next;

  Training(const Policy& policy, std::size_t layers) : model(with_layers(layers), {.policy = policy}) {
    model.build({i32, {8, places}});
    draw(model.variables());
    const Tensor text = random::integers({8, places + 1}, {.high = vocabulary, .seed = 0});
    tokens = slice(text, {0, 0}, {8, places});
    next = slice(text, {0, 1}, {8, places});
  }
  static Gpt with_layers(std::size_t layers) {
    Gpt gpt;
    gpt.blocks.resize(layers);
    return gpt;
  }
  auto step() {
    return function(
        [this](Tensor tokens, Tensor next) {
          GradientTape tape;
          Loss loss = loss_function(next, cast(model(tokens, training), f32));
          optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
          return loss;
        },
        function_options);
  }
};

Figures train(const Policy& policy, std::size_t layers = 4) {
  Training training(policy, layers);
  const auto train_step = training.step();
  const Tensor tokens = training.tokens, next = training.next;
  synchronize();
  std::vector<double> losses;
  Figures figures = measure({.step = [&] { losses.push_back(train_step(tokens, next).item()); },
                             .step_without_reading = [&] { train_step(tokens, next); },
                             .wait = synchronize});
  figures.extra["compile_s"] = train_step.explain().compile_seconds;
  figures.extra["parameters"] = training.model.trainable_variables().parameters();
  add_losses(figures, losses);
  return figures;
}

Figures cold() {
  return measure_cold("cold_gpt", [](Figures& figures) {
    Training training(float32, 4);
    const auto train_step = training.step();
    const double loss = train_step(training.tokens, training.next).item();
    figures.extra["compile_s"] = train_step.explain().compile_seconds;
    return loss;
  });
}

}  // namespace

void add_gpt(Workloads& workloads) {
  workloads["gpt"] = [] { return train(float32); };
  workloads["gpt_bf16"] = [] { return train(mixed_bfloat16); };
  for (const std::size_t layers : {1, 2, 8})
    workloads["gpt_l" + std::to_string(layers)] = [layers] { return train(float32, layers); };
  workloads["cold_gpt"] = cold;
}

}  // namespace gradus::bench
