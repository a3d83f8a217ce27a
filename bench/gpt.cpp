/// A training step of a small GPT: causal blocks over characters, four of them unless the name says so.
#include "bench/cold.h"
#include "bench/gpt_model.h"
#include "bench/inputs.h"
#include "bench/training.h"
#include "gradus/base/rooms.h"
#include "gradus/nn/model.h"

namespace gradus::bench {
namespace {

constexpr std::int64_t vocabulary = 65, places = 256;

/// A model, and all that its training step needs.
struct Training {
  Model<Gpt> model;
  AdamW optimizer{{.learning_rate = 3e-4, .weight_decay = 0.1, .epsilon = 1e-8, .global_clipnorm = 1}};
  SparseCategoricalCrossentropy loss_function{from_logits};
  Batch batch = text_of(rows_of_batch(8), places, vocabulary);

  Training(const Policy& policy, std::size_t layers)
      : model(gpt_of({vocabulary, places, 256, 8, layers}), {.policy = policy}) {
    model.build({i32, {8, places}});
    if (!assign_given(model.trainable_variables())) draw_kernels(model.variables());
    optimizer.build(model.trainable_variables());
  }
  auto step() { return train_step(model, optimizer, loss_function); }
};

Figures train_gpt(const Policy& policy, std::size_t layers = 4) {
  Training training(policy, layers);
  Figures figures = measure_training(training.step(), training.batch.x, training.batch.y);
  figures.extra["parameters"] = training.model.trainable_variables().parameters();
  return figures;
}

Figures cold_gpt() {
  return measure_cold([](const NoteLoss& note_loss) {
    Training training(float32, 4);
    const auto step = training.step();
    note_loss(step(training.batch.x, training.batch.y).item());
    return step.explain().compile_seconds;
  });
}

}  // namespace

void add_gpt(Workloads& workloads) {
  workloads["gpt"] = [] { return train_gpt(float32); };
  workloads["gpt_bf16"] = [] { return train_gpt(mixed_bfloat16); };
  for (const std::size_t layers : {1, 2, 8})
    workloads["gpt_l" + std::to_string(layers)] = [layers] { return train_gpt(float32, layers); };
  workloads["cold_gpt"] = cold_gpt;
}

}  // namespace gradus::bench
