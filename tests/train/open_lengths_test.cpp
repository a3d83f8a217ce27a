/// fit over batches whose lengths vary: strided windows of any length are one program; what has to know a length has a
/// few programs of its own, and beyond them goes op by op. The weights are those of training op by op, bit for bit.
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/nn/convolutions.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/nn/pools.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/signal.h"
#include "gradus/ops/spectral.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"

namespace gradus::open_lengths_test {
namespace {

/// Sequences [length, 2], one of each length.
Dataset<2> sequences(std::int64_t shortest, std::int64_t longest) {
  return data::from_generator<2>(std::array{Spec{f32, {any_size, 2}}, Spec{f32, {1}}},
                                 [n = shortest, longest]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                   if (n > longest) return std::nullopt;
                                   const std::int64_t length = n++;
                                   const Tensor x =
                                       random::normal({length, 2}, {.seed = static_cast<std::uint64_t>(length)});
                                   return std::pair{x, reshape(reduce_mean(x), {1})};
                                 });
}

struct Net {
  Conv1D first{4, 3, {.strides = 2, .padding = Padding::same, .activation = relu}};
  MaxPooling1D halves;
  Conv1D second{4, 3, {.strides = 3, .padding = Padding::same}};
  AveragePooling1D means{3, {.strides = 2, .padding = Padding::same}};
  Dense out{1};
  int* runs = nullptr;  // of the C++

  Tensor operator()(const Tensor& x) const {
    ++*runs;
    return out(reduce_mean(means(second(halves(first(x)))), {.axis = {1}}));
  }
};

struct Trained {
  std::vector<Tensor> weights;
  int runs = 0;
  std::string said;
};

template <class Call> Trained trained(const Dataset<2>& dataset, FunctionOptions function, Call call) {
  set_seed(3);
  Trained result;
  auto model = call(result.runs);
  Adam optimizer({.learning_rate = 0.01});
  testing::internal::CaptureStderr();
  try {
    fit(model, optimizer, MeanSquaredError(), dataset, {.function = std::move(function), .verbose = false});
  } catch (const Error& error) { ADD_FAILURE() << error.what(); }
  result.said = testing::internal::GetCapturedStderr();
  for (const Variable& variable : model.variables()) result.weights.push_back(variable.value());
  return result;
}

void expect_same(const Trained& a, const Trained& b) {
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (std::size_t i = 0; i < a.weights.size(); ++i) EXPECT_TRUE(bitwise_equal(a.weights[i], b.weights[i])) << i;
}

TEST(OpenLengths, StridedWindowsAreOneProgram) {
  const auto model = [](int& runs) { return Model(Net{.runs = &runs}); };
  const auto dataset = sequences(4, 40).batch(1);
  const Trained compiled = trained(dataset, {}, model), eager = trained(dataset, {.run_eagerly = true}, model);
  expect_same(compiled, eager);
  // Twice at each length: whether the C++ is the same program there; and what a first call takes besides.
  EXPECT_LE(compiled.runs, 2 * 37 + 6);
  EXPECT_EQ(compiled.said, "");
}

/// The gradient of what falls between the strides, batches of two whose lengths agree after padding.
TEST(OpenLengths, PaddedBatchesOfStridedWindows) {
  const auto model = [](int& runs) { return Model(Net{.runs = &runs}); };
  const auto dataset = sequences(5, 24).padded_batch(3);
  expect_same(trained(dataset, {}, model), trained(dataset, {.run_eagerly = true}, model));
}

struct Spectrum {
  Dense out{1};
  int* runs = nullptr;

  Tensor operator()(const Tensor& x) const {
    ++*runs;
    const Tensor along = rfft(transpose(x, {0, 2, 1}));  // [batch, 2, n / 2 + 1, 2]
    return out(reduce_mean(square(along), {.axis = {2, 3}}));
  }
};

/// C++ that reads the length.
struct Loop {
  Dense out{1};
  int* runs = nullptr;

  Tensor operator()(const Tensor& x) const {
    ++*runs;
    Tensor sum = zeros({x.shape()[0], 2});
    for (std::int64_t t = 0; t < x.shape()[1]; ++t)
      sum = sum * 0.5F + reshape(slice(x, {0, t, 0}, {-1, 1, -1}), {x.shape()[0], 2});
    return out(sum);
  }
};

template <class N> void check_few_programs() {
  const auto model = [](int& runs) { return Model(N{.runs = &runs}); };
  const auto dataset = sequences(2, 12).batch(1);
  const FunctionOptions few{.max_variants = 4};
  const Trained compiled = trained(dataset, few, model), eager = trained(dataset, {.run_eagerly = true}, model);
  expect_same(compiled, eager);
  const std::string line = "calls with further sizes run op by op";
  const std::size_t at = compiled.said.find(line);
  EXPECT_NE(at, std::string::npos) << compiled.said;
  EXPECT_EQ(compiled.said.find(line, at + 1), std::string::npos) << compiled.said;
}

TEST(OpenLengths, WhatAnOpHasToKnowIsFixed) { check_few_programs<Spectrum>(); }
TEST(OpenLengths, WhatTheCppReadsIsFixed) { check_few_programs<Loop>(); }

}  // namespace
}  // namespace gradus::open_lengths_test
