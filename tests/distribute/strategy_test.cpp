/// Strategies on logical devices: equal bits for any number of replicas, the gradient of the global batch whatever the
/// division, what comes back, and what is refused.
#include "gradus/base/rooms.h"
#include "gradus/distribute/strategy.h"
#include <gtest/gtest.h>
#include <functional>
#include "gradus/gradus.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"

namespace gradus::strategy_test {
namespace {

/// A way of training: steps over batches of 32, 30, 13 and 5 rows.
struct Way {
  const char* name;
  std::function<Trained(const Strategy&)> train;
};

Trained trained(const Strategy& strategy, Sequential model, Optimizer optimizer, const auto& make_step) {
  const Tensor x = random::normal({80, 6}, {.seed = 1}), y = one_hot(mod(cast(argmax(x, {.axis = -1}), i32), 3), 3);
  auto step = function([&](Tensor xs, Tensor ys) { return make_step(model, optimizer, xs, ys); });
  double loss = 0;
  std::int64_t begin = 0;
  for (const std::int64_t rows : {32, 30, 13, 5}) {
    loss = strategy.run(step, x.rows(begin, begin + rows), y.rows(begin, begin + rows)).item();
    begin += rows;
  }
  return values_of(model.variables() + optimizer.variables(), loss);
}

Loss plain_step(Sequential& model, Optimizer& optimizer, const Tensor& x, const Tensor& y) {
  GradientTape tape;
  const Loss loss = CategoricalCrossentropy(from_logits)(y, model(x, training));
  optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
  return loss;
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"Adam",
       [](const Strategy& s) {
         return trained(s, {Dense(16, relu), Dense(3)}, Adam({.learning_rate = 1e-2}), plain_step);
       }},
      {"Momentum",
       [](const Strategy& s) {
         return trained(s, {Dense(16, tanh), Dense(3)}, SGD({.learning_rate = 0.1, .momentum = 0.9}), plain_step);
       }},
      {"ClippingAndDecay",
       [](const Strategy& s) {
         return trained(s, {Dense(16, tanh), Dense(3)}, AdamW({.weight_decay = 0.01, .global_clipnorm = 0.1}),
                        plain_step);
       }},
      {"ClippingByHand",
       [](const Strategy& s) {
         return trained(s, {Dense(16, tanh), Dense(3)}, SGD(), [](auto& model, auto& optimizer, Tensor x, Tensor y) {
           GradientTape tape;
           const Loss loss = CategoricalCrossentropy(from_logits)(y, model(x, training));
           optimizer.apply_gradients(clip_by_norm(tape.gradient(loss, model.trainable_variables()), 0.05));
           return loss;
         });
       }},
      {"Dropout",
       [](const Strategy& s) { return trained(s, {Dense(16, tanh), Dropout(0.4), Dense(3)}, Adam(), plain_step); }},
      {"BatchNormalization",
       [](const Strategy& s) { return trained(s, {Dense(16), BatchNormalization(), Dense(3)}, Adam(), plain_step); }},
      {"SynchronizedBatchNormalization",
       [](const Strategy& s) {
         return trained(s, {Dense(16), BatchNormalization({.synchronized = true}), Dense(3)}, Adam(), plain_step);
       }},
      {"Accumulation",
       [](const Strategy& s) {
         return trained(s, {Dense(16, tanh), Dense(3)}, Adam(), [](auto& model, auto& optimizer, Tensor x, Tensor y) {
           auto [loss, gradients] = accumulated_gradients(
               [&](Tensor xs, Tensor ys) { return CategoricalCrossentropy(from_logits)(ys, model(xs, training)); },
               model.trainable_variables(), {x, y}, {.micro_batch = 2});
           optimizer.apply_gradients(gradients);
           return loss;
         });
       }},
      {"AccumulationByHand",
       [](const Strategy& s) {
         return trained(s, {Dense(16, tanh), Dense(3)}, Adam(), [](auto& model, auto& optimizer, Tensor x, Tensor y) {
           Loss total;
           Gradients gradients;
           for (auto [xs, ys] : micro_batches({x, y}, 2)) {
             GradientTape tape;
             const Loss loss = CategoricalCrossentropy(from_logits)(ys, model(xs, training));
             gradients += tape.gradient(loss, model.trainable_variables());
             total += loss;
           }
           optimizer.apply_gradients(gradients);
           return total;
         });
       }},
      {"MixedPrecision",
       [](const Strategy& s) {
         Sequential model({Dense(16, tanh), Dense(3, linear, {.dtype = f32})}, {.policy = mixed_bfloat16});
         return trained(s, std::move(model), Adam(), plain_step);
       }},
      {"SynchronizedStatistics",
       [](const Strategy& s) {
         return trained(s, {Dense(3)}, SGD(), [](auto& model, auto& optimizer, Tensor x, Tensor y) {
           GradientTape tape;
           const Tensor z = model(x, training);
           const Tensor rows = all_reduce_sum(element_count(reduce_sum(z, {.axis = {1}}), f32));
           const Tensor mean = all_reduce_sum(reduce_sum(z, {.axis = {0}, .keepdims = true})) / rows;
           const Loss loss = CategoricalCrossentropy(from_logits)(y, z - mean);
           optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
           return loss;
         });
       }},
  };
  return all;
}

class StrategyBits : public testing::TestWithParam<Way> {};

TEST_P(StrategyBits, AreEqualForAnyNumberOfReplicas) {
  const auto with = [&](int replicas) {
    set_seed(3);
    return GetParam().train(MirroredStrategy({.devices = devices(replicas), .micro_shards = 8}));
  };
  const Trained one = with(1);
  for (const int replicas : {2, 3, 5, 8})
    expect_same_bits(one, with(replicas), text(GetParam().name, " with ", replicas, " replicas"));
}

TEST_P(StrategyBits, AreEqualForAnyNumberOfThreads) {
  const auto with = [&](int threads) {
    set_seed(3);
    const int before = num_threads();
    set_num_threads(threads);
    Trained made = GetParam().train(MirroredStrategy({.devices = devices(2), .micro_shards = 4}));
    set_num_threads(before);
    return made;
  };
  expect_same_bits(with(1), with(3), GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(Ways, StrategyBits, testing::ValuesIn(ways()),
                         [](const auto& way) { return std::string(way.param.name); });

// ---------------------------------------------------------------- the gradient of the global batch

/// The gradient that one step takes, by an optimizer that subtracts it as it is.
Tensor taken(const Strategy& strategy, const Variable& w, const auto& loss_of, In global) {
  const Tensor before = w.value();
  const auto step = [&](Tensor x, Tensor y, Tensor weight) {
    GradientTape tape;
    const Loss loss = loss_of(w.value(), x, y, weight);
    Variables all;
    all.add(w);
    Variable& target = all[0];
    target.assign_sub(tape.gradient(loss, all)[0]);
    return loss;
  };
  strategy.run(step, global[0], global[1], global[2]);
  const Tensor after = w.value();
  Variables all;
  all.add(w);
  all[0].assign(before);
  return before - after;
}

TEST(StrategyGradients, AreThoseOfTheWholeBatch) {
  struct Case {
    const char* name;
    std::function<Loss(Tensor w, Tensor x, Tensor y, Tensor weight)> loss;
  };
  const auto sum_of_all = [](const Tensor& x) { return all_reduce_sum(reduce_sum(x)); };
  const std::vector<Case> cases = {
      {"mean", [](Tensor w, Tensor x, Tensor y, Tensor) { return Loss::mean(square(matmul(x, w) - y)); }},
      {"weights",
       [](Tensor w, Tensor x, Tensor y, Tensor weight) {
         return Loss::mean(reduce_mean(square(matmul(x, w) - y), {.axis = {1}}), weight);
       }},
      {"penalty", [](Tensor w, Tensor x, Tensor y,
                     Tensor) { return Loss::mean(square(matmul(x, w) - y)) + 0.3 * reduce_sum(square(w)); }},
      {"number",
       [&](Tensor w, Tensor x, Tensor y, Tensor) {  // of all, once
         return Loss::of(sum_of_all(square(matmul(x, w) - y)) / 26 + reduce_sum(w * w));
       }},
      {"normalized",
       [&](Tensor w, Tensor x, Tensor y, Tensor weight) {
         const Tensor z = matmul(x, w);
         const Tensor mean = all_reduce_sum(reduce_sum(z, {.axis = {0}, .keepdims = true})) / 13;
         return Loss::mean(reduce_mean(square(z - mean - y), {.axis = {1}}), weight);
       }},
      {"penalty of a mean",
       [&](Tensor w, Tensor x, Tensor y, Tensor) {
         const Tensor z = matmul(x, w);
         return Loss::mean(square(z - y)) + square(sum_of_all(z)) * 0.01;
       }},
  };
  const Tensor x = random::normal({13, 4}, {.dtype = f64, .seed = 1}),
               y = random::normal({13, 2}, {.dtype = f64, .seed = 2});
  const Tensor weight = cast(constant(std::vector<double>{1, 0, 2, 1, 1, 3, 0, 0, 0, 1, 2, 1, .5}), f64);
  const Variable w(random::normal({4, 2}, {.dtype = f64, .seed = 3}), "w");
  for (const Case& each : cases) {
    const Tensor whole = taken(MirroredStrategy({.devices = {cpu(0)}}), w, each.loss, Tensors{x, y, weight});
    {  // and without any strategy
      GradientTape tape;
      const Loss loss = each.loss(w.value(), x, y, weight);
      EXPECT_LT(max_abs_difference(whole, tape.gradient(loss, w)), 1e-12) << each.name;
    }
    for (const int shards : {2, 3, 4, 13, 16}) {
      const MirroredStrategy strategy({.devices = devices(2), .micro_shards = shards});
      const Tensor divided = taken(strategy, w, each.loss, Tensors{x, y, weight});
      EXPECT_LT(max_abs_difference(whole, divided), 1e-12) << each.name << ", " << shards << " shards";
    }
  }
}

/// Synchronized statistics: the model on shards is the model on the whole batch, moving statistics and all.
TEST(StrategyGradients, SynchronizedNormalizationIsThatOfTheWholeBatch) {
  const Tensor x = random::normal({22, 5}, {.mean = 1, .dtype = f64, .seed = 1});
  const Tensor y = random::normal({22, 2}, {.dtype = f64, .seed = 2});
  for (const bool masked : {false, true}) {
    const auto after_steps = [&](const auto& run) {
      set_seed(4);
      Sequential model({Dense(6, tanh), BatchNormalization({.momentum = 0.7, .synchronized = true}), Dense(2)},
                       {.policy = Policy{f64, f64}});
      if (masked)
        model = Sequential({Masking(), Dense(6, tanh), BatchNormalization({.momentum = 0.7, .synchronized = true})},
                           {.policy = Policy{f64, f64}});
      SGD optimizer({.learning_rate = 0.1});
      const auto step = function([&](Tensor xs, Tensor ys) {
        GradientTape tape;
        const Tensor prediction = model(xs, training);
        const Loss loss = masked ? Loss::mean(square(reduce_mean(prediction, {.axis = {1, 2}})))
                                 : Loss::mean(square(prediction - ys));
        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
        return loss;
      });
      for (int i = 0; i < 3; ++i) run(step);
      return values_of(model.variables(), 0);
    };
    Tensor in = x;
    if (masked) in = reshape(concat({x, zeros_like(x)}, 1), {22, 2, 5}) * cast(reshape(range(22) > 3, {22, 1, 1}), f64);
    const Trained plain = after_steps([&](const auto& step) { step(in, y); });
    const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
    const Trained divided = after_steps([&](const auto& step) { strategy.run(step, in, y); });
    ASSERT_EQ(plain.variables.size(), divided.variables.size());
    for (std::size_t i = 0; i < plain.variables.size(); ++i)
      EXPECT_LT(max_abs_difference(plain.variables[i], divided.variables[i]), masked ? 1e-6 : 1e-11)
          << masked << ' ' << i;
  }
}

TEST(StrategyGradients, OfATableAreThoseOfTheWholeBatch) {
  const Tensor indices = random::integers({50, 3}, {.high = 5000, .seed = 4}), y = random::normal({50, 1}, {.seed = 5});
  const auto after_steps = [&](const auto& run) {
    set_seed(1);
    Sequential model{Embedding(5000, 4), Flatten(), Dense(1)};
    Adam optimizer({.learning_rate = 1e-2});
    const auto step = function([&](Tensor x, Tensor ys) {
      GradientTape tape;
      const Loss loss = MeanSquaredError()(ys, model(x, training));
      optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
      return loss;
    });
    for (int i = 0; i < 3; ++i) run(step);
    return model.trainable_variables()[0].value();
  };
  const Tensor plain = after_steps([&](const auto& step) { step(indices, y); });
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 3});
  const Tensor divided = after_steps([&](const auto& step) { strategy.run(step, indices, y); });
  EXPECT_LT(max_abs_difference(plain, divided), 1e-5);
}

// ---------------------------------------------------------------- what comes back

TEST(StrategyRun, GivesOneEntryAReplica) {
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const Tensor x = reshape(range(22, f32), {11, 2});  // shards of 3, 3, 3, 2 rows
  const auto [doubled, sums, common] = strategy.run(
      [](Tensor part) { return std::tuple{2 * part, reduce_sum(part), all_reduce_sum(reduce_sum(part))}; }, x);
  ASSERT_EQ(doubled.size(), 2u);
  EXPECT_EQ(doubled[0].shape(), (Shape{6, 2}));
  EXPECT_EQ(doubled[1].shape(), (Shape{5, 2}));
  EXPECT_TRUE(bitwise_equal(doubled.concat(), 2 * x));
  EXPECT_EQ(sums[0].to_vector<float>(), (std::vector<float>{15, 51}));
  EXPECT_EQ(sums.sum().item(), 231);
  EXPECT_EQ(common[0].item(), 231);
  EXPECT_EQ(common[1].item(), 231);
  expect_error<OutOfRange>([&] { doubled[2]; }, {"replica 2 of 2"});
  expect_error<InvalidArgument>([&] { doubled.sum(); }, {"one shape"});
}

TEST(StrategyRun, TakesNumbersToEveryShard) {
  const MirroredStrategy strategy({.devices = devices(2)});
  const auto scaled = strategy.run([](Tensor x, Tensor factor) { return x * factor; }, ones({5}), 3.0);
  EXPECT_TRUE(bitwise_equal(scaled.concat(), fill({5}, 3, f32)));
  const auto one = strategy.run([](Tensor factor) { return factor * factor; }, 3.0);  // nothing is split
  EXPECT_EQ(one.concat().to_vector<float>(), (std::vector<float>{9, 9}));
}

TEST(StrategyRun, AddsUpArgumentsAsTheyAre) {
  const MirroredStrategy strategy({.devices = devices(2)});
  const auto [sum, again] = strategy.run(
      [](Tensor x) {
        const Tensor sum = all_reduce_sum(x);
        return std::pair{sum, x};
      },
      constant(std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(sum[0].to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_EQ(again[1].to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST(StrategyRun, HasFewerRowsThanShards) {
  const MirroredStrategy strategy({.devices = devices(4), .micro_shards = 8});
  const auto [rows, loss] =
      strategy.run([](Tensor x) { return std::pair{x, Loss::mean(x)}; }, constant(std::vector<float>{1, 2, 6}));
  EXPECT_EQ(rows.concat().to_vector<float>(), (std::vector<float>{1, 2, 6}));
  EXPECT_EQ(loss.item(), 3);
  EXPECT_EQ(loss.weight().item(), 3);
  EXPECT_EQ(rows[3].shape(), (Shape{0}));
}

TEST(StrategyRun, TracesAStepOnce) {
  int traced = 0;
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const auto step = function([&](Tensor x) {
    ++traced;
    return reduce_sum(x);
  });
  for (int i = 0; i < 3; ++i) strategy.run(step, ones({16}));
  EXPECT_EQ(traced, 1);
  strategy.run(step, ones({14}));  // two lengths
  EXPECT_GE(traced, 3);
  const int before = traced;
  strategy.run(step, ones({14}));
  EXPECT_EQ(traced, before);
}

/// A strategy divides what it traces.
TEST(StrategyRun, RefusesToRunOpByOp) {
  const MirroredStrategy strategy({.devices = devices(2)});
  const auto step = function([](Tensor x) { return reduce_sum(x); }, {.run_eagerly = true});
  expect_says(error_of<InvalidArgument>([&] { strategy.run(step, ones({4})); }), "the step has run_eagerly");
  Sequential model{Dense(1)};
  Adam optimizer;
  const auto dataset = data::from_tensor_slices(ones({8, 2}), ones({8, 1})).batch(4);
  expect_says(error_of<InvalidArgument>([&] {
                fit(model, optimizer, MeanSquaredError(), dataset,
                    {.function = {.run_eagerly = true}, .strategy = strategy, .verbose = false});
              }),
              "the step has run_eagerly");
}

/// Sizes of which each needs a variant of its own, past max_variants.
TEST(StrategyRun, RefusesMoreSizesThanVariants) {
  const MirroredStrategy strategy({.devices = devices(2)});
  const auto step = function([](Tensor x) { return reduce_sum(square(fft(x))); }, {.max_variants = 2});
  int ran = 0;
  const std::string problem = error_of<ResourceExhausted>([&] {
    for (std::int64_t n = 3; n < 12; ++n, ++ran) strategy.run(step, ones({2 * n, 2}));
  });
  expect_says(problem, "max_variants");
  EXPECT_GE(ran, 2);
}

/// Weights and slots are large beside all else; a step that writes them anew would hold them twice.
TEST(StrategyRun, WritesVariablesInPlace) {
  for (const int replicas : {1, 2}) {
    const MirroredStrategy strategy({.devices = devices(replicas)});
    Sequential model{Dense(512, relu), Dense(512), Dense(3)};
    Adam optimizer;
    const Tensor x = random::normal({8, 512}, {.seed = 1}), y = one_hot(constant(std::vector<int>(8, 1)), 3);
    auto step = function([&](Tensor xs, Tensor ys) { return plain_step(model, optimizer, xs, ys); });
    for (int i = 0; i < 2; ++i) strategy.run(step, x, y).item();
    synchronize();
    std::int64_t weights = 0;
    for (const Variable& variable : model.variables()) weights += bytes_of(variable.value().spec());
    reset_peak_memory();
    const std::size_t before = memory_use().live_bytes;
    strategy.run(step, x, y).item();
    // On cpu(0): the gradients of a replica, and with two their sum; and what each thread packs for a product. Weights
    // and slots that were written anew would be three more.
    EXPECT_LT(memory_use().peak_bytes - before, static_cast<std::size_t>(weights) * (replicas == 1 ? 3 : 5) / 2)
        << replicas << " replicas";
  }
}

TEST(StrategyRun, DrawsNumbersByTheShard) {
  const auto drawn = [](int replicas) {
    set_seed(9);
    return MirroredStrategy({.devices = devices(replicas), .micro_shards = 4})
        .run([](Tensor x) { return x + random::uniform(x.shape()); }, zeros({12}))
        .concat();
  };
  const Tensor one = drawn(1);
  EXPECT_TRUE(bitwise_equal(one, drawn(4)));
  EXPECT_FALSE(bitwise_equal(one.rows(0, 3), one.rows(3, 6)));
  set_seed(9);
  const auto plain = function([](Tensor x) { return x + random::uniform(x.shape()); });
  EXPECT_TRUE(bitwise_equal(plain(zeros({3})), one.rows(0, 3)));  // the first shard draws what a plain step does
}

TEST(StrategyRun, DefaultIsOneReplica) {
  const DefaultStrategy strategy;
  EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
  EXPECT_TRUE(bitwise_equal(strategy.run([](Tensor x) { return 2 * x; }, ones({3}))[0], fill({3}, 2, f32)));
}

TEST(StrategyRun, BranchesOnWhatAllHaveInCommon) {
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const auto step = function([](Tensor x) {
    if (all_reduce_sum(reduce_sum(x)) > 10) return x * 0.5;
    return x * 2;
  });
  for (const double value : {0.5, 5.0, 0.25, 7.0}) {
    const Tensor x = fill({8}, value, f32);
    EXPECT_TRUE(bitwise_equal(strategy.run(step, x).concat(), value * 8 > 10 ? x * 0.5 : x * 2)) << value;
  }
}

/// What shards have computed before a branch is theirs behind it, too.
TEST(StrategyRun, GoesOnBehindABranchWithTheValuesOfEachShard) {
  const auto computed = [](const Tensor& x, bool is_large) { return is_large ? x * 0.5 + x * x : x * 2 - x * x; };
  for (const std::int64_t rows : {8, 3}) {
    const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
    const auto step = function([&](Tensor x) {
      const Tensor y = tanh(x), sum = all_reduce_sum(reduce_sum(y));
      const auto is_large = static_cast<bool>(sum > 1);
      return std::pair{computed(y, is_large) + random::uniform(x.shape()) * 0, sum * 2};
    });
    for (const double value : {0.5, -5.0, 0.25, 7.0, -0.125}) {
      const Tensor x = range(rows, f32) * value, y = tanh(x);
      const auto [found, sum] = strategy.run(step, x);
      EXPECT_LT(max_abs_difference(found.concat(), computed(y, reduce_sum(y).item() > 1)), 1e-6)
          << rows << ' ' << value;
      EXPECT_NEAR(sum[1].item(), 2 * reduce_sum(y).item(), 1e-5) << rows << ' ' << value;
    }
    expect_error<InvalidArgument>([&] { strategy.run(step, ones({7})); }, {"if (tensor)", "two lengths", "evenly"});
  }
}

// ---------------------------------------------------------------- Variables

TEST(StrategyVariables, AreAggregatedAsTheySay) {
  Variable mean(zeros({}), "mean", {.aggregation = Aggregation::mean}),
      sum(zeros({}), "sum", {.aggregation = Aggregation::sum});
  Variable count(zeros({}), "count", {.aggregation = Aggregation::sum}), none(zeros({}), "none");
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const auto step = function([&](Tensor x) {
    mean.assign(reduce_sum(x));
    sum.assign_add(reduce_sum(x));
    count.assign_add(element_count(x, f32));
    none.assign_add(all_reduce_sum(reduce_sum(x)));
    return reduce_sum(x);
  });
  strategy.run(step, range(8, f32));
  strategy.run(step, range(7, f32));  // two lengths
  EXPECT_EQ(mean.value().item(), 21.0 / 4);
  EXPECT_EQ(sum.value().item(), 49);
  EXPECT_EQ(count.value().item(), 15);
  EXPECT_EQ(none.value().item(), 49);
}

TEST(StrategyVariables, WithoutAggregationAreRefused) {
  Variable v(zeros({}), "steps");
  const MirroredStrategy strategy({.devices = devices(2)});
  expect_error<InvalidArgument>(
      [&] {
        strategy.run(
            [&](Tensor x) {
              v.assign(reduce_sum(x));
              return x;
            },
            ones({4}));
      },
      {"variable steps", "differs from shard to shard", "Aggregation::mean", "all_reduce_sum"});
  EXPECT_EQ(v.value().item(), 0);
}

TEST(StrategyVariables, ThatDependOnALengthAreRefused) {
  Variable v(zeros({}), "rows");
  const MirroredStrategy strategy({.devices = devices(2)});
  const auto step = [&](Tensor x) {
    v.assign(element_count(x, f32));
    return x;
  };
  strategy.run(step, ones({4}));
  EXPECT_EQ(v.value().item(), 2);
  expect_error<InvalidArgument>([&] { strategy.run(step, ones({5})); }, {"variable rows", "number of rows of a shard"});
}

// ---------------------------------------------------------------- what is refused

TEST(StrategyErrors, NameWhatIsWrong) {
  const MirroredStrategy strategy({.devices = devices(2)});
  const auto same = [](Tensor x) { return x; };
  expect_error<InvalidArgument>([&] { strategy.run(same, zeros({0, 3})); }, {"no rows"});
  expect_error<InvalidArgument>([&] { strategy.run([](Tensor x, Tensor y) { return x + y; }, ones({4}), ones({5})); },
                                {"4 and 5 rows"});
  expect_error<InvalidArgument>([&] { strategy.run([](Tensor) { return Tensor(); }, ones({4})); }, {"empty tensor"});
  expect_error<InvalidArgument>([&] { function([&](Tensor x) { return strategy.run(same, x).concat(); })(ones({4})); },
                                {"outermost"});
  expect_error<InvalidArgument>(
      [&] {
        GradientTape tape;
        strategy.run(same, ones({4}));
      },
      {"put the tape into the step"});
  expect_error<InvalidArgument>([&] { strategy.run([](Tensor x) { return reduce_sum(x) > 0 ? x : -x; }, ones({4})); },
                                {"may differ from shard to shard", "all_reduce_sum", "where(condition, a, b)"});
  expect_error<InvalidArgument>([&] { strategy.run([](Tensor x) { return x.to(cpu(1)); }, ones({4})); },
                                {"strategy says where"});
  expect_error<InvalidArgument>([] { MirroredStrategy({.devices = {cpu(0), cpu(0)}}); }, {"given twice"});
  expect_error<InvalidArgument>([] { MirroredStrategy({.devices = devices(4), .micro_shards = 3}); },
                                {"micro_shards is 3 for 4 replicas"});
  expect_error<InvalidArgument>([] { MirroredStrategy({.micro_shards = -1}); }, {"micro_shards"});
  expect_error<Error>([] { MirroredStrategy({.devices = {Device{DeviceKind::gpu, 0}}}); }, {"gpu"});
}

TEST(StrategyErrors, GradientsAreNotReadInsideOfLoops) {
  Variable w(ones({2}), "w");
  const MirroredStrategy strategy({.devices = devices(2)});
  expect_error<InvalidArgument>(
      [&] {
        strategy.run(
            [&](Tensor x) {
              return while_loop([](Tensor v) { return reduce_sum(v) < 10; },
                                [](Tensor v) { return all_reduce_sum(v) + 1; }, x);
            },
            ones({4, 2}));
      },
      {"inside of it"});
}

TEST(StrategyErrors, LeaveVariablesAsTheyWere) {
  Variable w(ones({2}), "w");
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const auto step = function([&](Tensor index) {
    w.assign_add(all_reduce_sum(gather(w.value(), index)));
    return index;
  });
  expect_error<Error>([&] { strategy.run(step, constant(std::vector<std::int32_t>{0, 1, 0, 7})); }, {"7"});
  EXPECT_TRUE(bitwise_equal(w.value(), ones({2})));
}

// ---------------------------------------------------------------- one's own

TEST(OwnStrategy, AddsAsItSays) {
  int calls = 0;
  const Strategy strategy(devices(2), [&](const ReplicaSum&, const std::vector<Tensor>& parts) {
    ++calls;
    return std::vector(parts.size(), parts[0] + 10 * parts[1]);
  });
  const auto both = strategy.run([](Tensor x) { return all_reduce_sum(reduce_sum(x)); }, ones({5}));
  EXPECT_EQ(both[0].item(), 3 + 20);
  EXPECT_EQ(calls, 1);
  const Strategy wrong(devices(2),
                       [](const ReplicaSum&, const std::vector<Tensor>&) { return std::vector<Tensor>(1); });
  expect_error<InvalidArgument>([&] { wrong.run([](Tensor x) { return all_reduce_sum(reduce_sum(x)); }, ones({4})); },
                                {"gave 1 tensors for 2 replicas"});
}

TEST(Strategy, TakesAndGivesVectorsMapsAndStructs) {
  struct Batch {
    Tensor x;
    std::vector<Tensor> more;
  };
  struct Made {
    Loss loss;
    Gradients gradients;
  };
  const Variable w(constant(2.0f), "w");
  const auto losses = function([&](const Batch& batch) {
    GradientTape tape;
    Tensor sum = batch.x;
    for (const Tensor& each : batch.more) sum = sum + each;
    const Loss loss = Loss::mean(w * sum);
    return Made{loss, tape.gradient(loss, Variables{w})};
  });
  const auto parts = function([](const std::vector<Tensor>& all) {
    return std::pair{std::vector<Tensor>{all[1], all[0] * 2}, std::map<std::string, Tensor>{{"sum", all[0] + all[1]}}};
  });
  const Tensor a = random::normal({8, 3}, {.seed = 1}), b = random::normal({8, 3}, {.seed = 2});
  const MirroredStrategy one({.devices = {cpu(0)}, .micro_shards = 4});
  const MirroredStrategy two({.devices = {cpu(0), cpu(1)}, .micro_shards = 4});
  const Batch batch{a, {b, a}};
  const Made of_one = one.run(losses, batch), of_two = two.run(losses, batch);
  EXPECT_EQ(of_one.loss.item(), of_two.loss.item());
  EXPECT_NEAR(of_two.loss.item(), losses(batch).loss.item(), 1e-5);
  EXPECT_EQ(of_one.gradients[0].item(), of_two.gradients[0].item());
  const auto [vector, map] = two.run(parts, std::vector<Tensor>{a, b});
  ASSERT_EQ(vector.size(), 2u);
  EXPECT_TRUE(bitwise_equal(vector[0].concat(), b));
  EXPECT_TRUE(bitwise_equal(vector[1].concat(), a * 2));
  EXPECT_TRUE(bitwise_equal(map.at("sum").concat(), a + b));
  expect_error<InvalidArgument>([&] { two.run(parts, std::vector<Tensor>{a, b.rows(0, 4)}); }, {"rows"});
}

}  // namespace
}  // namespace gradus::strategy_test
