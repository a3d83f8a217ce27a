/// Losses, weights and metrics of several outputs by name: the numbers are those of a loop by hand, in every way to run
/// a step; names that are not there are refused with those that are.
#include "gradus/train/outputs.h"
#include <gtest/gtest.h>
#include <map>
#include "gradus/distribute/strategy.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/masks.h"
#include "gradus/nn/model.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"

namespace gradus::outputs_test {
namespace {

struct TwoTargets {
  struct Out {
    Tensor digit, even;
  };
  Dense hidden{8, relu, {.kernel_regularizer = regularizers::l2(1e-3)}}, digit{4}, even{1};
  Out operator()(Tensor x) const {
    const Tensor h = hidden(x);
    return {digit(h), even(h)};
  }
};
struct AsPair {
  TwoTargets net;
  std::pair<Tensor, Tensor> operator()(Tensor x) const {
    const auto [digit, even] = net(x);
    return {digit, even};
  }
};
struct AsMap {
  TwoTargets net;
  std::map<std::string, Tensor> operator()(Tensor x) const {
    const auto [digit, even] = net(x);
    return {{"even", even}, {"digit", digit}};
  }
};
/// A sequence and a number: their losses count different numbers of examples.
struct Sequences {
  struct Out {
    Tensor steps, whole;
  };
  Dense steps{3}, whole{1};
  Out operator()(Tensor x) const { return {steps(x), whole(reduce_mean(x, {.axis = {1}}))}; }
};

const SparseCategoricalCrossentropy of_digit{from_logits};
const BinaryCrossentropy of_even{from_logits};

struct Targets {
  Tensor x = random::normal({70, 5}, {.seed = 1});
  Tensor digit = random::integers({70}, {.high = 4, .seed = 8});
  Tensor even = cast(reduce_sum(x, {.axis = {1}, .keepdims = true}) > 0, f32);
  Tensor weight = random::uniform({70}, {.seed = 2});
  Dataset<3> plain = data::from_tensor_slices(x, digit, even).batch(16);
  Losses losses{{{"even", of_even}, {"digit", of_digit}}, {.loss_weights = {{"even", 0.25}}}};
};

template <class Net> Model<Net> built() {
  set_seed(3);
  Model<Net> model;
  model.build({{f32, {any_size, 5}}});
  return model;
}

void expect_near(const Variables& a, const Variables& b, double difference) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_LE(max_abs_difference(a[i], b[i]), difference) << a[i].name();
}

TEST(Outputs, IsTheLoopByHand) {
  const Targets targets;
  auto fitted = built<TwoTargets>(), by_hand = built<TwoTargets>();
  SGD one({.learning_rate = 0.1}), other({.learning_rate = 0.1});
  const History history =
      fit(fitted, one, targets.losses, targets.plain,
          {.epochs = 2,
           .metrics = {{"digit", SparseCategoricalAccuracy()}, {"even", {BinaryAccuracy(from_logits)}}},
           .validation = targets.plain,
           .verbose = false});
  double digit_sum = 0, even_sum = 0, right = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    digit_sum = even_sum = right = 0;
    for (auto [x, digit, even] : targets.plain) {
      GradientTape tape;
      const auto [of_first, of_second] = by_hand(x, training);
      const Loss first = of_digit(digit, of_first), second = of_even(even, of_second);
      const Loss total = first + 0.25 * second + by_hand.losses()[0];
      other.apply_gradients(tape.gradient(total, by_hand.trainable_variables()));
      digit_sum += first.sum().item();
      even_sum += second.sum().item();
      right += reduce_sum(cast(equal(argmax(of_first), digit), f32)).item();
    }
  }
  expect_near(fitted.variables(), by_hand.variables(), 1e-6);
  EXPECT_NEAR(history["digit_loss"][1], digit_sum / 70, 1e-6);
  EXPECT_NEAR(history["even_loss"][1], even_sum / 70, 1e-6);
  EXPECT_NEAR(history["digit_sparse_categorical_accuracy"][1], right / 70, 1e-9);
  std::vector<std::string> names;
  for (const auto& [name, values] : history.metrics) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"digit_loss", "even_loss", "digit_sparse_categorical_accuracy",
                                             "even_binary_accuracy", "validation_digit_loss", "validation_even_loss",
                                             "validation_digit_sparse_categorical_accuracy",
                                             "validation_even_binary_accuracy"}));
  const Evaluation found = evaluate(fitted, targets.losses, targets.plain);
  EXPECT_EQ(found.loss, history["val_loss"].back());
  EXPECT_EQ(found["even_loss"], history["val_even_loss"].back());
}

TEST(Outputs, OfAnyFormAndInAnyWayToRunAStep) {
  const Targets targets;
  const auto trained = [&]<class Net>(Model<Net> model, const Losses& losses, FitOptions options) {
    SGD optimizer({.learning_rate = 0.1});
    options.epochs = 2;
    options.verbose = false;
    const History history = fit(model, optimizer, losses, targets.plain, options);
    return std::pair{history, model.variables()};
  };
  const auto [history, variables] = trained(built<TwoTargets>(), targets.losses, {});
  const Losses by_place({{"output_0", of_digit}, {"output_1", of_even}}, {.loss_weights = {{"output_1", 0.25}}});
  const auto [of_pair, pair_variables] = trained(built<AsPair>(), by_place, {});
  const auto [of_map, map_variables] = trained(built<AsMap>(), targets.losses, {});
  EXPECT_EQ(of_pair.loss, history.loss);
  EXPECT_EQ(of_pair["output_1_loss"], history["even_loss"]);
  EXPECT_EQ(of_map.loss, history.loss);
  expect_near(pair_variables, variables, 0);
  expect_near(map_variables, variables, 0);
  FitOptions eager, parts, shards;
  eager.function = {.run_eagerly = true};
  parts.micro_batch = 5;
  shards.strategy = MirroredStrategy({.devices = {cpu(0), cpu(1)}});
  for (const FitOptions& options : {eager, parts, shards}) {
    const auto [other, of_other] = trained(built<TwoTargets>(), targets.losses, options);
    expect_near(of_other, variables, 2e-6);
    for (const char* name : {"loss", "digit_loss", "even_loss"}) EXPECT_NEAR(other[name][1], history[name][1], 2e-6);
  }
}

TEST(Outputs, SampleWeightsOfAllOrOfEach) {
  const Targets targets;
  const auto loss_with = [&](const auto& dataset) {
    const auto model = built<TwoTargets>();
    return evaluate(model, targets.losses, dataset, {.sample_weight = true});
  };
  const auto& [x, digit, even, weight, plain, losses] = targets;
  const Evaluation of_all = loss_with(data::from_tensor_slices(x, digit, even, weight).batch(16));
  const Evaluation of_each = loss_with(data::from_tensor_slices(x, digit, even, weight, ones({70})).batch(16));
  const auto model = built<TwoTargets>();
  const auto [of_first, of_second] = model(x);
  EXPECT_NEAR(of_all["digit_loss"], of_digit(digit, of_first, weight).item(), 1e-6);
  EXPECT_NEAR(of_all["even_loss"], of_even(even, of_second, weight).item(), 1e-6);
  EXPECT_NEAR(of_each["digit_loss"], of_all["digit_loss"], 1e-6);
  EXPECT_NEAR(of_each["even_loss"], of_even(even, of_second).item(), 1e-6);
}

TEST(Outputs, WithoutALossAndOfDifferentCounts) {
  const Targets targets;
  auto model = built<TwoTargets>();
  const Losses digit_alone({{"digit", of_digit}});
  const auto dataset = data::from_tensor_slices(targets.x, targets.digit).batch(16);
  EXPECT_NEAR(evaluate(model, digit_alone, dataset)["digit_loss"],
              of_digit(targets.digit, model(targets.x).digit).item(), 1e-6);

  const Tensor x = random::normal({20, 6, 2}, {.seed = 4}), labels = argmax(random::normal({20, 6, 3}, {.seed = 5}));
  const Tensor y = random::normal({20, 1}, {.seed = 6});
  set_seed(7);
  Model<Sequences> sequences;
  sequences.build({{f32, {any_size, 6, 2}}});
  const Losses losses({{"steps", of_digit}, {"whole", MeanSquaredError()}}, {.loss_weights = {{"whole", 2}}});
  const auto [of_steps, of_whole] = sequences(x);
  const double expected = of_digit(labels, of_steps).item() + 2 * MeanSquaredError()(y, of_whole).item();
  const auto batches = data::from_tensor_slices(x, labels, y).batch(8);
  EXPECT_NEAR(evaluate(sequences, losses, batches).loss, expected, 1e-6);
  const std::optional<Strategy> shards = MirroredStrategy({.devices = {cpu(0), cpu(1), cpu(2)}});
  EXPECT_NEAR(evaluate(sequences, losses, batches, {.strategy = shards}).loss, expected, 1e-6);
  SGD optimizer;
  expect_error<InvalidArgument>(
      [&] { fit(sequences, optimizer, losses, batches, {.micro_batch = 3, .verbose = false}); },
      {"different numbers of examples", "micro_batch"});
}

TEST(Outputs, NamesThatAreNotThere) {
  const Targets targets;
  auto model = built<TwoTargets>();
  SGD optimizer;
  const auto fit_with = [&](const Losses& losses, FitOptions options) {
    options.verbose = false;
    fit(model, optimizer, losses, targets.plain, options);
  };
  expect_error<InvalidArgument>([&] { fit_with(Losses({{"digit", of_digit}, {"odd", of_even}}), {}); },
                                {"`odd` is no output", "`digit`", "`even`"});
  expect_error<InvalidArgument>([&] { Losses({{"digit", of_digit}}, {.loss_weights = {{"even", 1}}}); },
                                {"loss_weights", "`even` has no loss", "`digit`"});
  expect_error<InvalidArgument>([&] { Losses({{"digit", of_digit}, {"digit", of_even}}); }, {"two are of `digit`"});
  expect_error<InvalidArgument>([&] { fit_with(targets.losses, {.metrics = {{"odd", BinaryAccuracy(from_logits)}}}); },
                                {"no output `odd`", "`digit`", "`even`"});
  expect_error<InvalidArgument>([&] { fit_with(targets.losses, {.metrics = {SparseCategoricalAccuracy()}}); },
                                {"does not tell of which output", "`even`"});
  expect_error<InvalidArgument>([&] { fit_with(Losses({{"digit", of_digit}}), {}); },
                                {"3 fields", "takes 1", "one y for each"});
  expect_error<InvalidArgument>([&] { fit_with(targets.losses, {.class_weight = {{0, 1}, {1, 2}}}); },
                                {"class_weight", "single output"});
  Sequential single{Dense(4)};
  expect_error<InvalidArgument>(
      [&] {
        fit(single, optimizer, of_digit, data::from_tensor_slices(targets.x, targets.digit).batch(16),
            {.metrics = {{"digit", SparseCategoricalAccuracy()}}, .verbose = false});
      },
      {"`digit`", "Losses"});
  auto of_map = built<AsMap>();
  SGD another;
  expect_error<InvalidArgument>(
      [&] { fit(of_map, another, Losses({{"digit", of_digit}, {"odd", of_even}}), targets.plain, {.verbose = false}); },
      {"`odd` is no output", "`even`"});
}

}  // namespace
}  // namespace gradus::outputs_test
