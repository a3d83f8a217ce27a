/// What counts as a weight that may be pruned, which of them are chosen, and what the report says.
#include "gradus/nn/sparsity.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::sparsity_test {
namespace {

std::vector<std::string> names_of(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

struct Everything {
  Embedding embed{10, 8};
  LSTM recurrent{8, {.return_sequences = true}};
  MultiHeadAttention attention{2, 4};
  LayerNormalization norm{};
  Dense shared{8, relu};
  Variable free{ones({3, 3}), "free"};
  Variable shift{zeros({8}), "shift"};
  Tensor operator()(const Tensor& tokens) const {
    return shared(shared(norm(attention(recurrent(embed(tokens)))))) + shift;
  }
};

TEST(PrunableVariables, AreTheKernelsOfTheLayers) {
  Model<Everything> model;
  model.build({i32, {any_size, 5}});
  std::vector<std::string> expected{
      "embed/embeddings",     "recurrent/kernel",       "recurrent/recurrent_kernel",        "attention/query/kernel",
      "attention/key/kernel", "attention/value/kernel", "attention/attention_output/kernel", "shared/kernel"};
  EXPECT_EQ(names_of(prunable_variables(model)), expected);
  model->free.set_mask(eye(3));
  expected.push_back("free");
  EXPECT_EQ(names_of(prunable_variables(model)), expected) << "and what is masked";

  Sequential images{
      Conv2D(4, 3),  DepthwiseConv2D(3), SeparableConv2D(2, 3), Conv2DTranspose(2, 3), BatchNormalization(),
      PReLU({1, 2}), Flatten(),          Sequential{Dense(2)}};
  images.build({f32, {any_size, 9, 9, 3}});
  EXPECT_EQ(names_of(prunable_variables(images)),
            (std::vector<std::string>{"conv2d/kernel", "separable_conv2d/pointwise_kernel", "conv2d_transpose/kernel",
                                      "sequential/dense/kernel"}));
  Sequential unbuilt{Dense(2)};
  expect_says(error_of<InvalidArgument>([&] { prunable_variables(unbuilt); }), "no variables yet");
  Sequential empty{Flatten()};
  empty.build({f32, {any_size, 3}});
  EXPECT_EQ(sparsity(empty), 0);
}

TEST(PruneTo, TakesThoseOfLeastMagnitude) {
  const Tensor values = random::normal({7, 9}, {.seed = 4});
  for (const double share : {0.0, 0.1, 0.5, 0.6349, 0.8, 0.99}) {
    Variable w(values, "w");
    prune_to(w, share);
    const auto kept = static_cast<std::size_t>(std::nearbyint(63 * (1 - share)));
    std::vector<float> left;
    const std::vector<float> now = w.value().to_vector<float>(), before = values.to_vector<float>();
    for (std::size_t i = 0; i < now.size(); ++i)
      if (now[i] != 0) {
        EXPECT_EQ(now[i], before[i]);
        left.push_back(std::abs(now[i]));
      }
    std::vector<float> largest = before;
    for (float& each : largest) each = std::abs(each);
    std::ranges::sort(largest, std::greater<>());
    largest.resize(kept);
    std::ranges::sort(left, std::greater<>());
    EXPECT_EQ(left, largest) << share;
  }
}

TEST(PruneTo, KeepsWhatIsPrunedAndGoesOnFromThere) {
  Variable w(constant({1.f, 5.f, 2.f, 4.f, 3.f, 6.f, 7.f, 8.f}), "w");
  prune_to(w, 0.25);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{0, 5, 0, 4, 3, 6, 7, 8}));
  w.assign(constant({9.f, 0.f, 9.f, 4.f, 3.f, 6.f, 7.f, 8.f}));  // a weight that is 0 by chance is no masked one
  const Tensor mask = w.mask();
  prune_to(w, 0.25);
  EXPECT_TRUE(bitwise_equal(w.mask(), mask));
  prune_to(w, 0.5);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{0, 0, 0, 4, 0, 6, 7, 8}));
  prune_to(w, 0.1);
  EXPECT_EQ(w.mask().to_vector<bool>(), (std::vector<bool>{false, false, false, true, false, true, true, true}));
}

TEST(PruneTo, TiesGoByPlaceAndWhatIsNoNumberStays) {
  Variable ties(ones({6}), "ties"), nan(constant({std::nanf(""), 1.f, 2.f, std::nanf("")}), "nan"),
      none(zeros({0, 2}), "none"), half(cast(constant({1.f, -3.f, 2.f, -4.f}), bf16), "half");
  prune_to(ties, 0.5);
  EXPECT_EQ(ties.value().to_vector<float>(), (std::vector<float>{0, 0, 0, 1, 1, 1}));
  prune_to(nan, 0.75);
  EXPECT_EQ(nan.mask().to_vector<bool>(), (std::vector<bool>{true, false, false, true}));
  prune_to(none, 0.5);
  prune_to(half, 0.5);
  EXPECT_EQ(cast(half, f32).to_vector<float>(), (std::vector<float>{0, -3, 0, -4}));
}

TEST(PruneTo, BlocksGoTogether) {
  Variable w(constant({{1.f, 9.f, 3.f, 3.f, 1.f}, {1.f, 1.f, 3.f, 3.f, 1.f}, {8.f, 8.f, 2.f, 2.f, 9.f}}), "w");
  // Means of 2 x 2 blocks: 3, 3, 1; of the last row 8, 2, 9.
  prune_to(w, 0.3, {.rows = 2, .columns = 2});
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{1, 9, 3, 3, 0, 1, 1, 3, 3, 0, 8, 8, 0, 0, 9}));
  Variable stacked(broadcast_to(reshape(range(4, f32), {2, 2, 1}), {2, 2, 3}), "stacked");
  prune_to(stacked, 0.5, {.rows = 1, .columns = 3});
  EXPECT_EQ(stacked.value().to_vector<float>(), (std::vector<float>{0, 0, 0, 0, 0, 0, 2, 2, 2, 3, 3, 3}));
  Variable vector(ones({4}), "vector");
  expect_says(error_of<InvalidArgument>([&] { prune_to(vector, 0.5, {.rows = 2}); }), "vector");
  EXPECT_THROW(prune_to(w, 0.5, {.rows = 0}), InvalidArgument);
  for (const double share : {-0.1, 1.0, std::nan("")}) EXPECT_THROW(prune_to(w, share), InvalidArgument);
}

TEST(Sparsity, ReportCountsWeightsBytesAndOperations) {
  Sequential model{Conv2D(4, 3, {.strides = 2, .padding = Padding::same}), Flatten(), Dense(10)};
  model.build({f32, {any_size, 8, 6, 2}});
  prune_to(model, 0.75);
  const SparsityReport report = sparsity_report(model);
  ASSERT_EQ(report.rows.size(), 2u);
  const SparsityRow &conv = report.rows[0], &dense = report.rows[1];
  EXPECT_EQ(conv.name, "conv2d/kernel");
  EXPECT_EQ(conv.weights, 3 * 3 * 2 * 4);
  EXPECT_EQ(conv.zeros, 54);
  EXPECT_EQ(conv.dense_bytes, 72 * 4);
  EXPECT_EQ(conv.sparse_bytes, 72 / 8 + 18 * 4);
  EXPECT_EQ(conv.operations, 2 * 72 * 4 * 3) << "at each of 4 x 3 places";
  EXPECT_EQ(conv.sparse_operations, 2 * 18 * 4 * 3);
  EXPECT_EQ(dense.weights, 480);
  EXPECT_EQ(dense.zeros, 360);
  EXPECT_EQ(dense.operations, 960);
  EXPECT_EQ(report.total.weights, 552);
  EXPECT_EQ(report.total.dense_bytes, 552 * 4);
  EXPECT_EQ(report.total.sparse_bytes, 9 + 18 * 4 + 60 + 120 * 4);
  EXPECT_EQ(report.other_bytes, 14 * 4);
  EXPECT_DOUBLE_EQ(sparsity(model), 0.75);
  std::ostringstream table;
  table << report;
  for (const char* part : {"sparse bytes", "conv2d/kernel", "dense/kernel", "1920", "total", "552", "56 bytes"})
    expect_says(table.str(), part);
}

TEST(Sparsity, ZerosAreMaskedOrFreedAsOneSays) {
  const TestDirectory directory("sparsity");
  std::filesystem::create_directories(directory.path());
  const auto made = [] {
    Sequential model{Dense(8), Dense(4)};
    model.build({f32, {any_size, 8}});
    return model;
  };
  Sequential pruned = made();
  prune_to(pruned, 0.5);
  save_safetensors(directory.path() / "weights", pruned);
  Sequential read = made();
  load_safetensors(directory.path() / "weights", read);
  EXPECT_DOUBLE_EQ(sparsity(read), 0.5);
  mask_zeros(read);
  const auto fill = [](const Sequential& model) {
    for (Variable& variable : model.variables()) variable.assign(ones(variable.shape()));
  };
  fill(read);
  EXPECT_DOUBLE_EQ(sparsity(read), 0.5);
  strip_pruning(read);
  EXPECT_DOUBLE_EQ(sparsity(read), 0.5) << "still 0";
  fill(read);
  EXPECT_EQ(sparsity(read), 0);
}

}  // namespace
}  // namespace gradus::sparsity_test
