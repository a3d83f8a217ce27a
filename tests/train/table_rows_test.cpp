/// fit of embeddings whose gradients are kept as rows: the steps by hand with gradients in full, under every policy, in
/// parts, and in memory that the rows bound.
#include <gtest/gtest.h>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"

namespace gradus::table_rows_test {
namespace {

constexpr std::int64_t words = 5000, time = 6;

struct Text {
  Tensor x = random::integers({96, time}, {.high = words, .seed = 1});
  Tensor y = random::integers({96}, {.high = 3, .seed = 2});
  Dataset<2> dataset = data::from_tensor_slices(x, y).batch(32);
  SparseCategoricalCrossentropy loss{from_logits};

  static Sequential model(Policy policy = float32, std::int64_t vocabulary = words, std::int64_t width = 8) {
    set_seed(5);
    Sequential made({Embedding(vocabulary, width), GlobalAveragePooling1D(), Dense(3)}, {.policy = policy});
    made.build({i32, {any_size, time}});
    return made;
  }
};

void expect_same(const Variables& a, const Variables& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bitwise_equal(a[i].value(), b[i].value())) << a[i].name();
}

Gradients in_full(const Gradients& gradients) {
  std::vector<GradientPart> whole;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    whole.emplace_back(gradients[i], gradients.mean(i).is_of_lookups());
  return Gradients(gradients.variables(), whole, gradients.weight());
}

std::vector<Optimizer> optimizers() {
  return {SGD({.learning_rate = 0.5}),
          Adagrad({.learning_rate = 0.1}),
          Adam({.learning_rate = 0.02}),
          RMSprop({.learning_rate = 0.01, .use_ema = true, .ema_overwrite_frequency = 2}),
          AdamW({.learning_rate = 0.02, .weight_decay = 0.1}),
          AdamW({.learning_rate = 0.02, .weight_decay = 0.1, .use_ema = true, .lazy = true})};
}

TEST(FitOfRows, IsTheLoopByHandInFull) {
  const Text text;
  for (const Policy& policy : {float32, mixed_float16, mixed_bfloat16})
    for (const Optimizer& optimizer : optimizers()) {
      Sequential fitted = Text::model(policy), by_hand = Text::model(policy);
      Optimizer one = optimizer, other = optimizer;
      fit(fitted, one, text.loss, text.dataset, {.epochs = 2, .verbose = false});
      for (int epoch = 0; epoch < 2; ++epoch)
        for (auto [x, y] : text.dataset.epoch(epoch)) {
          GradientTape tape;
          const Loss loss = text.loss(y, by_hand(x, training));
          const Gradients gradients = tape.gradient(loss, by_hand.trainable_variables());
          EXPECT_TRUE(gradients.mean(0).is_rows());
          other.apply_gradients(in_full(gradients));
        }
      other.finalize_variable_values(by_hand.trainable_variables());
      expect_same(fitted.variables(), by_hand.variables());
      expect_same(one.variables(), other.variables());
    }
}

TEST(FitOfRows, InPartsIsTheWholeBatch) {
  const Text text;
  for (const Optimizer& optimizer : optimizers()) {
    Sequential whole = Text::model(), parts = Text::model();
    Optimizer one = optimizer, other = optimizer;
    fit(whole, one, text.loss, text.dataset, {.epochs = 1, .verbose = false});
    fit(parts, other, text.loss, text.dataset, {.epochs = 1, .micro_batch = 10, .verbose = false});
    for (std::size_t i = 0; i < whole.variables().size(); ++i)
      EXPECT_LE(max_abs_difference(whole.variables()[i], parts.variables()[i]), 1e-3);
  }
}

/// An overflow changes nothing, and no row is touched.
TEST(FitOfRows, SkipsOverflows) {
  const Text text;
  Sequential model = Text::model(mixed_float16);
  Adagrad optimizer;
  const auto step = [&](double scale) {
    GradientTape tape;
    const Loss loss = text.loss(text.y, model(text.x, training) * scale);
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
  };
  step(1);
  const Tensor held = model.variables()[0].value();
  step(std::numeric_limits<double>::infinity());
  EXPECT_EQ(optimizer.skipped_steps(), 1);
  EXPECT_TRUE(bitwise_equal(model.variables()[0].value(), held));
  step(1);
  EXPECT_EQ(optimizer.iterations(), 2);
  EXPECT_FALSE(bitwise_equal(model.variables()[0].value(), held));
}

/// A table of 32 MiB, of which a step reads 192 rows of 256 bytes.
TEST(FitOfRows, NeedsTheMemoryOfRows) {
  const Text text;
  Sequential model = Text::model(float32, 131072, 64);
  Adagrad adagrad;
  SGD sgd;
  for (Optimizer* optimizer : {static_cast<Optimizer*>(&adagrad), static_cast<Optimizer*>(&sgd)}) {
    fit(model, *optimizer, text.loss, text.dataset, {.epochs = 1, .verbose = false});
    synchronize();
    reset_peak_memory();
    const std::size_t before = memory_use().live_bytes;
    fit(model, *optimizer, text.loss, text.dataset, {.epochs = 3, .verbose = false});
    EXPECT_LE(memory_use().peak_bytes - before, 4 * MiB);
  }
}

}  // namespace
}  // namespace gradus::table_rows_test
