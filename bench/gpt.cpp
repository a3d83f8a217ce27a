/// A training step of a small GPT: causal blocks over characters, four of them unless the name says so.
#include <vector>
#include "bench/cold.h"
#include "bench/inputs.h"
#include "bench/training.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/model.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/random.h"

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
  std::vector<Block> blocks;
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
  Batch batch = text_of(rows_of_batch(8), places, vocabulary);

  Training(const Policy& policy, std::size_t layers) : model(with_layers(layers), {.policy = policy}) {
    model.build({i32, {8, places}});
    if (!assign_given(model.trainable_variables())) draw(model.variables());
    optimizer.build(model.trainable_variables());
  }
  static Gpt with_layers(std::size_t layers) {
    Gpt gpt;
    gpt.blocks.resize(layers);
    return gpt;
  }
  auto step() { return train_step(model, optimizer, loss_function); }
};

Figures train(const Policy& policy, std::size_t layers = 4) {
  Training training(policy, layers);
  Figures figures = measure_training(training.step(), training.batch.x, training.batch.y);
  figures.extra["parameters"] = training.model.trainable_variables().parameters();
  return figures;
}

Figures cold() {
  return measure_cold([](const NoteLoss& note_loss) {
    Training training(float32, 4);
    const auto step = training.step();
    note_loss(step(training.batch.x, training.batch.y).item());
    return step.explain().compile_seconds;
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
