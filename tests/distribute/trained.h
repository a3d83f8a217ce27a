/// What trainings on strategies leave, for comparing bits.
#pragma once
#include <gtest/gtest.h>
#include <string>
#include <vector>
#include "gradus/gradus.h"

namespace gradus {

/// So many logical devices of the processor.
inline std::vector<Device> devices(int n) {
  std::vector<Device> all;
  for (int i = 0; i < n; ++i) all.push_back(cpu(i));
  return all;
}

/// What a training leaves: loss of the last step, and all variables.
struct Trained {
  double loss = 0;
  std::vector<Tensor> variables = {};
};

inline void expect_same_bits(const Trained& a, const Trained& b, const std::string& what) {
  EXPECT_EQ(a.loss, b.loss) << what;
  ASSERT_EQ(a.variables.size(), b.variables.size()) << what;
  for (std::size_t i = 0; i < a.variables.size(); ++i)
    EXPECT_TRUE(bitwise_equal(a.variables[i], b.variables[i])) << what << ", variable " << i;
}

inline Trained values_of(const Variables& variables, double loss) {
  Trained trained{loss};
  for (const Variable& variable : variables) trained.variables.push_back(variable.value());
  return trained;
}

/// A classifier of 64 examples with all that shards may see: batch statistics, random numbers, clipping.
struct ClassifierOfTest {
  const bool is_seeded = (set_seed(2), true);
  Sequential model{Dense(12, tanh), BatchNormalization(), Dropout(0.2), Dense(3)};
  Adam optimizer{{.learning_rate = 1e-2, .global_clipnorm = 1}};
  const SparseCategoricalCrossentropy loss_function{from_logits};
  const Tensor labels = random::integers({64}, {.high = 3, .seed = 1});
  const Tensor x = random::normal({64, 5}, {.seed = 2}) + one_hot(labels, 5);

  /// Forward, backward, update; within a function.
  Loss step(const Tensor& xs, const Tensor& ys) {
    GradientTape tape;
    const Loss loss = loss_function(ys, model(xs, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  }
  Dataset<2> batches() const { return data::from_tensor_slices(x, labels).shuffle().batch(20); }
  Variables variables() { return model.variables() + optimizer.variables(); }
};

/// A step on single rows of a table of four, which fails for any other row.
struct TableOfTest {
  Variable table{ones({4, 2}), "table"};
  SGD optimizer{{.learning_rate = 1}};

  Loss step(const Tensor& rows) {
    GradientTape tape;
    const Loss loss = Loss::mean(gather(table, rows));
    optimizer.apply_gradients(tape.gradient(loss, Variables{table}));
    return loss;
  }
  static Tensor batch(std::int32_t row) { return from_values<std::int32_t>({row}, {1}); }
};

inline void append_bytes(std::string& bytes, const Tensor& t) {
  bytes.append(static_cast<const char*>(t.host()), t.bytes());
}

}  // namespace gradus
