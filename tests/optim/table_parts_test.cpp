/// accumulated_gradients of tables whose gradients are kept as rows: the bits of parts that are added up by hand, in
/// memory that the rows bound.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/batches.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/tensor/memory.h"
#include "tests/peak_memory.h"

namespace gradus::table_parts_test {
namespace {

constexpr std::int64_t batch = 13, time = 5, width = 8;

/// A table that is read twice, a kernel, and rows of unequal weight, some of them 0.
struct Net {
  Variable table, kernel;
  explicit Net(std::int64_t words = 5000, DType t = f32)
      : table(random::normal({words, width}, {.dtype = t, .seed = 1}), "table"),
        kernel(random::normal({width, 3}, {.dtype = t, .seed = 2}), "kernel") {}
  Variables variables() { return Variables{table, kernel}; }
  Loss loss(const Tensor& words, const Tensor& weight) const {
    const Tensor read = reduce_mean(gather(table, words) + tanh(gather(table, words * 2)), {.axis = {1}});
    return Loss::mean(reduce_sum(square(matmul(read, kernel)), {.axis = {1}}), cast(weight, kernel.dtype()));
  }
  Gradients by_hand(const Tensor& words, const Tensor& weight, std::int64_t rows) {
    Gradients total;
    for (auto [part, weights] : micro_batches({words, weight}, rows)) {
      GradientTape tape;
      total += tape.gradient(loss(part, weights), variables());
    }
    return total;
  }
  Gradients by_loop(const Tensor& words, const Tensor& weight, AccumulateOptions options) {
    return accumulated_gradients([&](Tensor part, Tensor weights) { return loss(part, weights); }, variables(),
                                 {words, weight}, options)
        .gradients;
  }
};

/// Rows that several parts read, and one that a part reads many times.
Tensor some_words(std::int64_t rows = batch) { return random::integers({rows, time}, {.high = 40, .seed = 3}); }
Tensor some_weights(std::int64_t rows = batch) {
  return cast(random::integers({rows}, {.high = 3, .seed = 4}), f32) * 0.5;
}

TEST(TableParts, HaveTheBitsOfPartsByHand) {
  for (const DType t : {f32, f64}) {
    Net net(5000, t);
    const Tensor words = some_words(), weights = some_weights();
    for (const std::int64_t rows : {1, 4, 12, 13, 20}) {
      const Gradients want = net.by_hand(words, weights, rows);
      const Gradients got = net.by_loop(words, weights, {.micro_batch = rows});
      const auto step = function([&] { return net.by_loop(words, weights, {.micro_batch = rows}); });
      step();
      for (const Gradients& each : {got, step()}) {
        EXPECT_TRUE(each.mean(0).is_rows()) << rows;
        for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(bitwise_equal(each[i], want[i])) << rows << ", " << i;
      }
    }
  }
}

TEST(TableParts, MakeTheStepOfTheWholeBatch) {
  const std::vector<Optimizer> optimizers{
      SGD({.learning_rate = 0.1, .global_clipnorm = 0.5}),
      AdamW({.learning_rate = 0.01, .weight_decay = 0.1, .clipnorm = 0.2, .use_ema = true}),
      Adagrad({.learning_rate = 0.1, .clipvalue = 0.01})};
  for (const Optimizer& optimizer : optimizers) {
    Net whole(5000, f64), parts(5000, f64);
    Optimizer one = optimizer, other = optimizer;
    const auto step = function(
        [&](Tensor words, Tensor weights) { other.apply_gradients(parts.by_loop(words, weights, {.micro_batch = 5})); },
        {.input_signature = {{i32, {batch, any_size}}, {f32, {batch}}}});
    for (int i = 0; i < 4; ++i) {
      const Tensor words = random::integers({batch, 3 + i % 3}, {.high = 40, .seed = 10 + i}), weights = some_weights();
      one.apply_gradients(whole.by_hand(words, weights, batch));
      step(words, weights);
      EXPECT_LT(max_abs_difference(whole.table, parts.table), 1e-12) << i;
      EXPECT_LT(max_abs_difference(whole.kernel, parts.kernel), 1e-12) << i;
    }
  }
}

/// Of a table of 24 MiB a batch reads rows of 80 KiB.
TEST(TableParts, NeedTheMemoryOfRows) {
  Net net(800'000);
  SGD optimizer;
  const Tensor words = random::integers({256, time}, {.high = 400'000, .seed = 5}), weights = ones({256});
  const auto step = function([&] { optimizer.apply_gradients(net.by_loop(words, weights, {.micro_batch = 20})); });
  for (int i = 0; i < 3; ++i) step();
  EXPECT_LE(peak_of(step), 2 * MiB);
}

/// More places than the table has rows, and rows that no example reads, are added up in full.
TEST(TableParts, OfWhatRowsWouldNotSave) {
  Net net;
  const Tensor words = some_words(600), weights = some_weights(600);
  const Gradients many = net.by_loop(words, weights, {.micro_batch = 100});
  EXPECT_FALSE(many.mean(0).is_rows());
  EXPECT_TRUE(bitwise_equal(many[0], net.by_hand(words, weights, 100)[0]));
  const Tensor fixed = random::integers({7}, {.high = 5000, .seed = 6});
  const auto loss = [&](Tensor part) {
    return Loss::mean(reduce_sum(square(part - reduce_sum(gather(net.table, fixed), {.axis = {0}})), {.axis = {1}}));
  };
  const Tensor x = random::normal({batch, width}, {.seed = 7});
  const Gradients got = accumulated_gradients(loss, Variables{net.table}, {x}, {.micro_batch = 7}).gradients;
  Gradients want;
  for (auto [part] : micro_batches({x}, 7)) {
    GradientTape tape;
    want += tape.gradient(loss(part), Variables{net.table});
  }
  EXPECT_FALSE(got.mean(0).is_rows());
  EXPECT_TRUE(bitwise_equal(got[0], want[0]));
}

TEST(TableParts, WithinABudget) {
  Net net;
  const Tensor words = some_words(200), weights = some_weights(200);
  const Gradients whole = net.by_hand(words, weights, 200);
  for (const std::size_t budget : {16 * KiB, 64 * KiB, 16 * MiB}) {
    const Gradients got = net.by_loop(words, weights, {.max_bytes = budget});
    EXPECT_TRUE(got.mean(0).is_rows()) << budget;
    for (std::size_t i = 0; i < 2; ++i) EXPECT_LE(max_abs_difference(got[i], whole[i]), 1e-5) << budget;
  }
}

/// In bf16, 1 added 512 times to 512 would be 512.
TEST(TableParts, OfNarrowTypesAddUpInF32) {
  Variable w(zeros({3}, bf16), "w");
  const Tensor x = ones({1024, 3}, bf16);
  const auto loss = [&](Tensor part) { return Loss::mean(reduce_sum(part * w, {.axis = {1}})); };
  const Gradients got = accumulated_gradients(loss, Variables{w}, {x}, {.micro_batch = 1}).gradients;
  EXPECT_EQ(cast(got[0], f32).to_vector<float>(), std::vector<float>(3, 1.f));
}

}  // namespace
}  // namespace gradus::table_parts_test
