/// Functions of rows and gradients of sums, a part of the batch at a time: the same as in one pass, in less memory.
#include "gradus/gradients/batches.h"
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/memory.h"
#include "tests/errors.h"

namespace gradus::batches_test {
namespace {

struct Problem {
  Tensor x = random::normal({1000, 12}, {.seed = 1}), y = random::integers({1000}, {.high = 3, .seed = 2});
  Sequential model{Dense(64, tanh), Dense(64, tanh), Dense(3)};
  Problem() {
    set_seed(3);
    model.build(x.spec());
  }
  auto loss() {
    return [this](Tensor xb, Tensor yb) {
      return Loss::mean(sparse_categorical_crossentropy(yb, model(xb, inference), from_logits));
    };
  }
  auto saliency() {
    return [this](Tensor rows) {
      return gradient([&](Tensor r) { return reduce_sum(square(model(r, inference))); }, rows);
    };
  }
};

/// What compute() keeps alive at most above what is alive before, its result included.
std::size_t peak_of(const std::function<Tensor()>& compute) {
  synchronize();
  reset_peak_memory();
  const std::size_t before = memory_use().live_bytes;
  compute().observed();
  return memory_use().peak_bytes - before;
}

TEST(MapBatches, IsTheFunctionOfAllRows) {
  Problem p;
  const Tensor whole = p.saliency()(p.x);
  for (std::int64_t rows : {1, 7, 250, 999, 1000, 5000})
    EXPECT_TRUE(bitwise_equal(map_batches(p.saliency(), p.x, {.batch_size = rows}), whole)) << rows;
}

TEST(MapBatches, OfAnyResultAndWithoutRows) {
  const Tensor x = random::normal({10, 2, 3}, {.dtype = f64, .seed = 1});
  const auto wide = [](Tensor rows) { return cast(reshape(rows, {rows.shape()[0], 6}) > 0.0, i32); };
  EXPECT_TRUE(bitwise_equal(map_batches(wide, x, {.batch_size = 4}), wide(x)));
  EXPECT_EQ(map_batches(wide, x.rows(0, 0), {.batch_size = 4}).shape(), (Shape{0, 6}));
}

TEST(MapBatches, KeepsItsBudget) {
  Problem p;
  const Tensor x = random::normal({20'000, 12}, {.seed = 4});
  const auto run = [&](std::size_t max_bytes) { return map_batches(p.saliency(), x, {.max_bytes = max_bytes}); };
  const Tensor whole = p.saliency()(x);
  for (std::size_t budget : {256 * KiB, 1 * MiB, 4 * MiB}) {
    Tensor result;
    EXPECT_LE(peak_of([&] { return result = run(budget); }), x.bytes() + budget) << budget;
    EXPECT_TRUE(bitwise_equal(result, whole));
  }
}

TEST(MapBatches, NamesTheSmallestBudgetThatWorks) {
  Problem p;
  const std::string message = error_of<ResourceExhausted>([&] { map_batches(p.saliency(), p.x, {.max_bytes = 16}); });
  expect_says(message, "the smallest budget that works");
  const std::size_t smallest = std::stoul(message.substr(message.find(" takes ") + 7));
  EXPECT_NO_THROW(map_batches(p.saliency(), p.x, {.max_bytes = smallest}));
  EXPECT_THROW(map_batches(p.saliency(), p.x, {.max_bytes = smallest - 1}), ResourceExhausted);
}

TEST(MapBatches, RunsInsideOfAFunction) {
  Problem p;
  const auto compiled = function([&](Tensor x) { return map_batches(p.saliency(), x, {.batch_size = 300}); });
  EXPECT_TRUE(bitwise_equal(compiled(p.x), p.saliency()(p.x)));
  EXPECT_TRUE(bitwise_equal(compiled(p.x), p.saliency()(p.x)));
}

TEST(MapBatches, IsDifferentiable) {
  Problem p;
  const Tensor x = p.x.rows(0, 50);
  const auto total = [&](Tensor rows) {
    return reduce_sum(square(map_batches([&](Tensor r) { return p.model(r, inference); }, rows, {.batch_size = 8})));
  };
  EXPECT_LE(max_abs_difference(gradient(total, x), p.saliency()(x)), 1e-6);
}

TEST(MapBatches, MistakesAreExplained) {
  const Tensor x = ones({10, 2});
  const auto same = [](Tensor rows) { return rows; };
  expect_says(error_of([&] { map_batches(same, x, {}); }), "say one of batch_size and max_bytes");
  expect_says(error_of([&] { map_batches(same, x, {.max_bytes = 1, .batch_size = 1}); }), "say one of");
  expect_says(error_of([&] { map_batches(same, x, {.batch_size = -1}); }), "batch_size must not be negative, got -1");
  expect_says(error_of([&] { map_batches([](Tensor r) { return reduce_sum(r); }, x, {.batch_size = 4}); }),
              "as many rows as it gets");
  expect_says(error_of([&] { map_batches(same, constant(1.0), {.batch_size = 4}); }), "is a scalar");
}

TEST(AccumulatedGradients, AreThoseOfAddedMicroBatches) {
  Problem p;
  const Variables variables = p.model.trainable_variables();
  for (std::int64_t rows : {64, 1000, 333, 999}) {
    Gradients wanted;
    Loss loss;
    for (auto [xb, yb] : micro_batches({p.x, p.y}, rows)) {
      GradientTape tape;
      const Loss part = p.loss()(xb, yb);
      wanted += tape.gradient(part, variables);
      loss += part;
    }
    const auto found = accumulated_gradients(p.loss(), variables, {p.x, p.y}, {.micro_batch = rows});
    EXPECT_TRUE(bitwise_equal(found.loss.value(), loss.value())) << rows;
    EXPECT_EQ(found.gradients.weight().item(), 1000);
    for (const Variable& variable : variables)
      EXPECT_TRUE(bitwise_equal(found.gradients[variable], wanted[variable])) << variable.name() << " by " << rows;
  }
}

TEST(AccumulatedGradients, KeepTheirBudget) {
  Problem p;
  const Tensor x = random::normal({20'000, 12}, {.seed = 4}), y = random::integers({20'000}, {.high = 3, .seed = 5});
  const Variables variables = p.model.trainable_variables();
  const auto whole = accumulated_gradients(p.loss(), variables, {x, y}, {.micro_batch = 20'000});
  const std::size_t gradient_bytes = 4 * static_cast<std::size_t>(variables.parameters());
  for (std::size_t budget : {512 * KiB, 4 * MiB}) {
    const auto run = [&] {
      const auto found = accumulated_gradients(p.loss(), variables, {x, y}, {.max_bytes = budget});
      EXPECT_LE(max_abs_difference(found.gradients[0], whole.gradients[0]), 1e-5);
      return found.gradients[1];
    };
    EXPECT_LE(peak_of(run), budget + 2 * gradient_bytes) << budget;
  }
}

TEST(AccumulatedGradients, TrainInsideOfAFunction) {
  Problem p, q;
  const auto step = [](Problem& problem, std::int64_t rows) {
    return function([&problem, rows](Tensor x, Tensor y) {
      const auto [loss, gradients] =
          accumulated_gradients(problem.loss(), problem.model.trainable_variables(), {x, y}, {.micro_batch = rows});
      return std::pair{loss, gradients};
    });
  };
  const auto parts = step(p, 128), whole = step(q, 1000);
  EXPECT_LE(max_abs_difference(parts(p.x, p.y).second[0], whole(q.x, q.y).second[0]), 1e-6);
}

TEST(AccumulatedGradients, MistakesAreExplained) {
  Problem p;
  const Variables variables = p.model.trainable_variables();
  expect_says(error_of([&] { accumulated_gradients(p.loss(), variables, {p.x, p.y}, {}); }), "say one of micro_batch");
  expect_says(error_of([&] { accumulated_gradients(p.loss(), variables, {p.x, p.y.rows(0, 3)}, {.micro_batch = 2}); }),
              "the same number of rows");
  expect_says(error_of([&] {
                accumulated_gradients(p.loss(), variables, {p.x.rows(0, 0), p.y.rows(0, 0)}, {.micro_batch = 2});
              }),
              "has no rows");
  const Variable count(zeros({}), "count");
  const auto counting = [&](Tensor xb, Tensor yb) {
    Variable& counted = Variables{count}[0];
    counted.assign_add(ones({}));
    return p.loss()(xb, yb);
  };
  expect_says(error_of([&] { accumulated_gradients(counting, variables, {p.x, p.y}, {.micro_batch = 100}); }), "count");
}

/// A sum has no weight by which parts could share a penalty, which would count once for each.
TEST(AccumulatedGradients, RefuseASumWithAPenalty) {
  const Variable w(constant({1.0, 2.0}, f64), "w");
  const Tensor x = constant({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, f64);
  const auto penalty = [&] { return 0.5 * reduce_sum(square(w.value())); };
  const auto sum = [&](const Tensor& rows) { return Loss::sum(reduce_sum(square(rows * w.value())) / 3); };
  const auto mean = [&](const Tensor& rows) { return Loss::mean(reduce_sum(square(rows * w.value()), {.axis = {1}})); };
  const auto of_parts = [&](const auto& loss) {
    return accumulated_gradients(loss, Variables{w}, {x}, {.micro_batch = 2}).loss.item();
  };
  EXPECT_NEAR(of_parts([&](Tensor rows) { return sum(rows); }), sum(x).item(), 1e-12);
  EXPECT_NEAR(of_parts([&](Tensor rows) { return mean(rows) + penalty(); }), (mean(x) + penalty()).item(), 1e-12);
  expect_error<InvalidArgument>([&] { of_parts([&](Tensor rows) { return 2 * (sum(rows) + penalty()); }); },
                                {"Loss::sum with a penalty", "once for each part"});
  Loss total;
  for (const auto& [rows] : micro_batches({x}, 2)) total += sum(rows);
  EXPECT_NEAR((total + penalty()).item(), (sum(x) + penalty()).item(), 1e-12);
}

}  // namespace
}  // namespace gradus::batches_test
