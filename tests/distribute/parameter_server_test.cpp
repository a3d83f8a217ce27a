/// Strategies with parameter servers in one process: the bits of one process where nobody lags, those of gradients that
/// come late by hand where workers do, whatever the servers; what steps assign, give and throw; and refusals.
#include <gtest/gtest.h>
#include <atomic>
#include "gradus/gradus.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"

namespace gradus::parameter_server_test {
namespace {

struct Batches {
  Tensor labels = random::integers({70}, {.high = 3, .seed = 1});
  Tensor x = random::normal({70, 5}, {.seed = 2}) + one_hot(labels, 5);
  /// 7 of 10 rows, but the last one has 3 and the fourth 17.
  std::vector<std::pair<Tensor, Tensor>> all() const {
    std::vector<std::pair<Tensor, Tensor>> out;
    for (std::int64_t at = 0; const std::int64_t rows : {10, 10, 10, 17, 10, 10, 3}) {
      out.emplace_back(x.rows(at, at + rows), labels.rows(at, at + rows));
      at += rows;
    }
    return out;
  }
};

const SparseCategoricalCrossentropy loss_function(from_logits);

/// One process without a strategy.
template <class O> Trained trained_alone(Sequential model, O optimizer) {
  set_seed(4);
  const auto step = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    const Loss loss = loss_function(y, model(x, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  double sum = 0, weight = 0;
  for (int round = 0; round < 2; ++round) {
    sum = weight = 0;
    for (const auto& [x, y] : Batches().all()) {
      const Loss loss = step(x, y);
      sum += loss.sum().item();
      weight += loss.weight().item();
    }
  }
  return values_of(model.variables() + optimizer.variables(), static_cast<float>(sum) / static_cast<float>(weight));
}

template <class O> Trained trained_with(Sequential model, O optimizer, Cluster cluster, int max_staleness) {
  set_seed(4);
  const ParameterServerStrategy strategy(cluster, {.max_staleness = max_staleness});
  const auto step = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    const Loss loss = loss_function(y, model(x, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  double loss = 0;
  for (int round = 0; round < 2; ++round) {
    for (const auto& [x, y] : Batches().all()) strategy.schedule(step, x, y);
    loss = strategy.join().item();
  }
  return values_of(model.variables() + optimizer.variables(), loss);
}

/// Gradients that come `lag` updates late, by hand.
template <class O> Trained trained_late(Sequential model, O optimizer, std::size_t lag) {
  set_seed(4);
  const auto gradient = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    const Loss loss = loss_function(y, model(x, training));
    return std::pair{loss, tape.gradient(loss, model.trainable_variables())};
  });
  double sum = 0, weight = 0;
  for (int round = 0; round < 2; ++round) {
    sum = weight = 0;
    std::vector<Tensors> versions;  // of this round
    for (const auto& [x, y] : Batches().all()) {
      const Variables variables = model.is_built() ? model.trainable_variables() : Variables();
      const auto put = [&](const Tensors& values) {
        for (std::size_t i = 0; i < values.size(); ++i) variables[i].assign(values[i]);
      };
      Tensors now;
      for (const Variable& variable : variables) now.push_back(variable.value());
      versions.push_back(now);
      if (variables.size() > 0) put(versions[versions.size() - 1 - std::min(lag, versions.size() - 1)]);
      const auto [loss, gradients] = gradient(x, y);
      put(now);
      if (versions.back().empty())
        for (const Variable& variable : model.trainable_variables()) versions.back().push_back(variable.value());
      optimizer.apply_gradients(gradients);
      sum += loss.sum().item();
      weight += loss.weight().item();
    }
  }
  return values_of(model.variables() + optimizer.variables(), static_cast<float>(sum) / static_cast<float>(weight));
}

TEST(ParameterServer, InStepHasTheBitsOfOneProcess) {
  const auto compare = [](const std::string& what, const auto& model, const auto& optimizer) {
    const Trained alone = trained_alone(model(), optimizer);
    expect_same_bits(alone, trained_with(model(), optimizer, Cluster::simulated(3, 1), 0), what);
    expect_same_bits(alone, trained_with(model(), optimizer, Cluster::simulated(1, 2), 5), what + ", 2 servers");
  };
  const auto plain = [] { return Sequential{Dense(6, tanh), Dense(3)}; };
  const auto rich = [] { return Sequential{Dense(12, tanh), BatchNormalization(), Dropout(0.2), Dense(3)}; };
  compare("Adam", rich, Adam({.learning_rate = 1e-2, .global_clipnorm = 1}));
  compare("AdamW", rich,
          AdamW({.learning_rate = CosineDecay({.initial_learning_rate = 0.01, .decay_steps = 10}),
                 .clipnorm = 1,
                 .use_ema = true}));
  compare("Nadam", plain, Nadam({.learning_rate = 1e-2}));
  compare("RMSprop", plain, RMSprop({.learning_rate = 1e-2, .centered = true}));
  compare("Lamb", plain, Lamb({.learning_rate = 1e-2}));
}

/// Two optimizers in one step, the second of which sees what the first has done, and gradients of several parts.
TEST(ParameterServer, StepsOfSeveralOptimizers) {
  const auto trained = [](std::optional<ParameterServerOptions> options) {
    set_seed(3);
    Sequential generator{Dense(8, tanh), Dense(5)}, critic{Dense(8, relu), Dense(1)};
    Adam of_generator({.learning_rate = 1e-2}), of_critic({.learning_rate = 2e-2, .clipvalue = 0.5});
    const auto step = function([&](Tensor x) {
      GradientTape first;
      const Loss real = Loss::mean(critic(x, training)) * -1;
      Gradients gradients = first.gradient(real, critic.trainable_variables());
      GradientTape second;
      const Loss fake = Loss::mean(critic(generator(x, training), training));
      gradients += second.gradient(fake, critic.trainable_variables());
      of_critic.apply_gradients(gradients);
      GradientTape third;
      const Loss loss = Loss::mean(critic(generator(x, training), training)) * -1;
      of_generator.apply_gradients(third.gradient(loss, generator.trainable_variables()));
      return loss;
    });
    std::optional<ParameterServerStrategy> strategy;
    if (options) strategy.emplace(Cluster::simulated(3, 2), *options);
    double loss = 0;
    for (const auto& [x, y] : Batches().all()) {
      if (strategy) strategy->schedule(step, x);
      else loss += step(x).sum().item();
    }
    if (strategy) loss = strategy->join().sum().item();
    return values_of(generator.variables() + critic.variables() + of_generator.variables() + of_critic.variables(),
                     static_cast<float>(loss));
  };
  expect_same_bits(trained({}), trained(ParameterServerOptions()), "in step");
  expect_same_bits(trained(ParameterServerOptions{2}), trained(ParameterServerOptions{2}), "late");
}

TEST(ParameterServer, LateGradientsAreThoseByHand) {
  const auto model = [] { return Sequential{Dense(6, tanh), Dense(3)}; };
  const auto compare = [&](const std::string& what, const auto& optimizer) {
    for (const std::size_t lag : {1, 3}) {
      const Trained late = trained_late(model(), optimizer, lag);
      const auto with = [&](int workers, int servers, int staleness) {
        return trained_with(model(), optimizer, Cluster::simulated(workers, servers), staleness);
      };
      const int as_int = static_cast<int>(lag);
      expect_same_bits(late, with(4, 1, as_int), text(what, ", lag ", lag));
      expect_same_bits(late, with(as_int + 1, 3, 7), text(what, ", lag ", lag, " of few workers, 3 servers"));
    }
    const Trained alone = trained_alone(model(), optimizer);
    EXPECT_FALSE(bitwise_equal(alone.variables[0], trained_late(model(), optimizer, 2).variables[0])) << "nobody lags";
  };
  compare("SGD", SGD({.learning_rate = 0.1, .momentum = 0.9}));
  compare("Adam", Adam({.learning_rate = 1e-2, .global_clipnorm = 1}));
}

TEST(ParameterServer, IsTheSameEveryTime) {
  const auto once = [](int servers) {
    return trained_with(Sequential{Dense(16, tanh), BatchNormalization(), Dropout(0.3), Dense(3)},
                        Adam({.learning_rate = 1e-2}), Cluster::simulated(4, servers), 3);
  };
  const Trained first = once(1);
  for (int i = 0; i < 5; ++i) expect_same_bits(first, once(1 + i % 3), text("time ", i));
}

TEST(ParameterServer, TablesAndNarrowFloats) {
  const auto trained = [](std::optional<int> staleness) {
    set_seed(9);
    Sequential model({Embedding(50, 8), Flatten(), Dense(4)}, {.policy = mixed_float16});
    Adam optimizer({.learning_rate = 1e-2});
    const auto step = function([&](Tensor x, Tensor y) {
      GradientTape tape;
      const Loss loss = loss_function(y, model(x, training));
      optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
      return loss;
    });
    std::optional<ParameterServerStrategy> strategy;
    if (staleness) strategy.emplace(Cluster::simulated(3, 2), ParameterServerOptions{*staleness});
    for (int k = 0; k < 6; ++k) {
      const auto seed = static_cast<std::uint64_t>(k);
      const Tensor x = random::integers({8, 3}, {.high = 50, .seed = seed});
      const Tensor y = random::integers({8}, {.high = 4, .seed = seed});
      if (strategy) strategy->schedule(step, x, y);
      else step(x, y);
    }
    if (strategy) strategy->join();
    return values_of(model.variables() + optimizer.variables(), 0);
  };
  expect_same_bits(trained({}), trained(0), "in step");
  expect_same_bits(trained(2), trained(2), "late");
}

TEST(ParameterServer, JoinsLossesByWeight) {
  const ParameterServerStrategy strategy(Cluster::simulated(2, 1), {.max_staleness = 1});
  EXPECT_FALSE(strategy.join().defined());
  const auto mean = function([](Tensor x) { return Loss::mean(x); });
  strategy.schedule(mean, from_values<float>({1, 2, 3}, {3}));
  strategy.schedule(mean, from_values<float>({10}, {1}));
  const Loss loss = strategy.join();
  EXPECT_EQ(loss.item(), 4);
  EXPECT_EQ(loss.weight().item(), 4);
  strategy.schedule([](Tensor x) { return x; }, from_values<float>({1, 3, 5, 7}, {4}));
  strategy.schedule([](Tensor x, Tensor y) { return std::pair{x, Loss::of(y + 0 * reduce_sum(x))}; },
                    from_values<float>({9, 9}, {2}), 5.0);
  EXPECT_EQ(strategy.join().item(), 34.0f / 6) << "of several results the first";
  strategy.schedule([](Tensor) {}, ones({2}));
  EXPECT_FALSE(strategy.join().defined());
}

TEST(ParameterServer, CountsWhatStepsAssign) {
  Variable seen(zeros({}), "seen", {.trainable = false, .aggregation = Aggregation::sum}),
      calls(zeros({}, i64), "calls"), last(zeros({2}), "last"),
      table(zeros({3, 2}), "table", {.aggregation = Aggregation::mean});
  const ParameterServerStrategy strategy(Cluster::simulated(4, 2), {.max_staleness = 3});
  const auto step = function([&](Tensor x) {
    seen.assign_add(reduce_sum(x));
    calls.assign_add(ones({}, i64));
    last.assign(x);
    table.assign_add(x * ones({3, 1}));
  });
  for (int i = 1; i <= 10; ++i) strategy.schedule(step, full({2}, i));
  strategy.join();
  EXPECT_EQ(seen.value().item(), 110);
  EXPECT_EQ(calls.value().item(), 10);
  EXPECT_TRUE(bitwise_equal(last.value(), full({2}, 10)));
  EXPECT_TRUE(bitwise_equal(table.value(), full({3, 2}, 55)));
}

TEST(ParameterServer, WhatIsAssignedBetweenStepsTakesEffectThere) {
  Variable w(ones({}), "w");
  SGD optimizer({.learning_rate = 1});
  const ParameterServerStrategy strategy(Cluster::simulated(3, 1), {.max_staleness = 2});
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Loss loss = Loss::of(w * x);
    optimizer.apply_gradients(tape.gradient(loss, Variables{w}));
    return loss;
  });
  for (int i = 0; i < 3; ++i) strategy.schedule(step, ones({}));
  optimizer.set_learning_rate(0.5);
  for (int i = 0; i < 2; ++i) strategy.schedule(step, ones({}));
  strategy.join();
  EXPECT_EQ(w.value().item(), 1 - 3 - 1);
  EXPECT_EQ(optimizer.iterations(), 5);
  w.assign(full({}, 10));
  strategy.schedule(step, ones({}));
  w.assign(full({}, 20));
  EXPECT_EQ(strategy.join().item(), 10);
  EXPECT_EQ(w.value().item(), 20) << "assigned after the step";
}

TEST(ParameterServer, RunsAStepForItsResults) {
  Variable w(ones({2}), "w");
  SGD optimizer({.learning_rate = 0.5});
  const ParameterServerStrategy strategy(Cluster::simulated(3, 2), {.max_staleness = 2});
  EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Loss loss = Loss::of(reduce_sum(w * x));
    const Gradients gradients = tape.gradient(loss, Variables{w});
    optimizer.apply_gradients(gradients);
    return std::tuple{loss, w.value(), gradients};
  });
  for (int i = 0; i < 4; ++i) strategy.schedule(step, ones({2}));
  const auto [loss, after, gradients] = strategy.run(step, ones({2}));
  EXPECT_EQ(loss.item(), -2) << "after 4 steps";
  EXPECT_TRUE(bitwise_equal(after[0], full({2}, -1.5)));
  EXPECT_TRUE(bitwise_equal(gradients[0], ones({2})));
  EXPECT_TRUE(bitwise_equal(w.value(), full({2}, -1.5)));
  EXPECT_EQ(strategy.run([&](Tensor x) { return w * x; }, full({2}, 2)).concat().to_vector<float>()[0], -3);
  EXPECT_EQ(optimizer.iterations(), 5);
}

TEST(ParameterServer, FitsAsOneProcess) {
  const auto fitted = [](std::optional<Strategy> strategy) {
    set_seed(5);
    const Batches batches;
    const auto dataset = data::from_tensor_slices(batches.x, batches.labels).shuffle(70, {.seed = 8}).batch(25);
    Sequential model{Dense(12, relu, {.kernel_regularizer = regularizers::l2(1e-3)}), BatchNormalization(),
                     Dropout(0.2), Dense(3)};
    Adam optimizer({.learning_rate = 1e-2, .global_clipnorm = 1});
    const History history = fit(model, optimizer, loss_function, dataset,
                                {.epochs = 2,
                                 .metrics = {SparseCategoricalAccuracy()},
                                 .validation = dataset,
                                 .strategy = strategy,
                                 .verbose = false});
    const Evaluation evaluation = evaluate(model, loss_function, dataset, {.strategy = strategy});
    Trained out = values_of(model.variables() + optimizer.variables(), history.loss.back());
    out.variables.push_back(full({}, history["sparse_categorical_accuracy"].back()));
    out.variables.push_back(full({}, history.validation_loss.back()));
    out.variables.push_back(full({}, evaluation.loss));
    out.variables.push_back(predict(model, data::from_tensor_slices(batches.x).batch(25), {.strategy = strategy}));
    return out;
  };
  expect_same_bits(fitted({}), fitted(ParameterServerStrategy(Cluster::simulated(2, 2), {.max_staleness = 1})), "fit");
}

TEST(ParameterServer, SaysWhatAStepHasThrown) {
  const ParameterServerStrategy strategy(Cluster::simulated(3, 1), {.max_staleness = 2});
  TableOfTest job;
  const auto step = function([&](Tensor rows) { return job.step(rows); });
  for (const std::int32_t row : {0, 1, 7, 2}) {
    try {
      strategy.schedule(step, TableOfTest::batch(row));
    } catch (const OutOfRange&) {
    }  // it may be known before the last one is scheduled
    catch (const Unavailable&) {}
  }
  EXPECT_THROW({ strategy.join(); }, Error);
  expect_error<Unavailable>([&] { strategy.schedule(step, TableOfTest::batch(0)); },
                            {"strategy.schedule", "has failed before", "make the strategy again"});
  expect_error<Unavailable>([&] { strategy.join(); }, {"strategy.join", "has failed before"});
}

TEST(ParameterServer, Refuses) {
  expect_error<InvalidArgument>([] { ParameterServerStrategy(Cluster::simulated(2)); },
                                {"no parameter servers", "MultiWorkerMirroredStrategy"});
  expect_error<InvalidArgument>([] { ParameterServerStrategy(Cluster::simulated(2, 1), {.max_staleness = -1}); },
                                {"max_staleness", "-1"});
  Cluster beside = Cluster::simulated(2, 1);
  beside.task = TaskType::evaluator;
  expect_error<InvalidArgument>([&] { ParameterServerStrategy{beside}; }, {"evaluator"});
  const auto with = [](auto work) {
    const ParameterServerStrategy strategy(Cluster::simulated(2, 1), {.max_staleness = 1});
    work(strategy);
  };
  with([](const auto& strategy) {
    expect_error<InvalidArgument>(
        [&] { strategy.schedule([](Tensor x) { return reduce_sum(x) > 0 ? x : -x; }, ones({2})); },
        {"if (tensor)", "cond"});
    strategy.schedule([](Tensor x) { return x; }, ones({2}));
    EXPECT_EQ(strategy.join().item(), 1) << "what could not be traced changed nothing";
  });
  with([](const auto& strategy) {
    expect_error<InvalidArgument>(
        [&] { function([&](Tensor x) { strategy.schedule([](Tensor y) { return y; }, x); })(ones({2})); },
        {"strategy.schedule inside of a function"});
  });
  with([](const auto& strategy) {
    Variable average(zeros({}), "average");
    expect_error<InvalidArgument>(
        [&] { strategy.schedule([&](Tensor x) { average.assign(0.9 * average + 0.1 * reduce_sum(x)); }, ones({2})); },
        {"average", "Aggregation::sum", "max_staleness = 0"});
  });
  Variable average(zeros({}), "average");
  const ParameterServerStrategy in_step(Cluster::simulated(2, 1));
  for (int i = 0; i < 2; ++i)
    in_step.schedule([&](Tensor x) { average.assign(0.5 * average + reduce_sum(x)); }, ones({2}));
  in_step.join();
  EXPECT_EQ(average.value().item(), 3);
}

}  // namespace
}  // namespace gradus::parameter_server_test
