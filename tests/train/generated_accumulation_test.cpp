/// Accumulation in generated combinations of everything that a step may have: optimizer, clipping, decay and what is
/// left out of it, groups, schedule, averages, weights, masks, sizes. By fit, tape and accumulated_gradients it is the
/// whole batch to 1e-12 in f64; but for batch normalization, whose meaning is shown here too.
#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/gradients/batches.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"

namespace gradus::generated_accumulation_test {
namespace {

constexpr std::int64_t features = 3, classes = 4, time_steps = 3;
enum class Clipping { none, each, all, value };

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n)); }
  bool chance(double p) { return static_cast<double>(below(1000)) < 1000 * p; }

 private:
  std::mt19937_64 engine_;
};

constexpr std::int64_t optimizer_kinds = 13;

struct Combination {
  explicit Combination(std::uint64_t number) : seed(number) {
    Draw draw(number);
    optimizer = static_cast<std::int64_t>(number) % optimizer_kinds;
    clipping = static_cast<Clipping>(draw.below(4));
    scheduled = draw.chance(0.5);
    decays = draw.chance(0.5);
    spares_biases = decays && draw.chance(0.5);
    grouped = draw.chance(0.3);
    averaged = draw.chance(0.5);
    overwrite = averaged ? draw.below(4) : 0;
    sequences = draw.chance(0.4);
    labels = draw.chance(0.6);
    weighted = draw.chance(0.7);
    has_dead_batch = weighted && draw.chance(0.4);
    rows = 5 + draw.below(9);
    last_rows = 1 + draw.below(rows);
    part = 1 + rows / 4 + draw.below(rows);
    scaled = number % 2 == 0;  // half of them, however few
    overflows = number % 4 == 2;
  }
  std::uint64_t seed;
  std::int64_t optimizer;
  Clipping clipping;
  bool scheduled, decays, spares_biases, grouped, averaged;
  std::int64_t overwrite;
  bool sequences, labels, weighted, has_dead_batch;
  std::int64_t rows, last_rows, part;
  bool scaled, overflows;  // a row of the second batch is infinite

  std::string said() const {
    return text("combination ", seed, ": optimizer ", optimizer, ", clipping ", static_cast<int>(clipping),
                scheduled ? ", schedule" : "", decays ? ", decay" : "", spares_biases ? " but of biases" : "",
                grouped ? ", group" : "", averaged ? ", averages" : "", sequences ? ", sequences" : "",
                labels ? ", masked labels" : "", weighted ? ", weights" : "", has_dead_batch ? ", some all 0" : "",
                ", ", rows, " and ", last_rows, " rows in parts of ", part, scaled ? ", loss scale" : "",
                overflows ? " with overflow" : "");
  }
};

template <class O, class Options> Optimizer with_all(const Combination& c, Options options, double rate) {
  options.learning_rate = c.scheduled
                              ? Schedule(CosineDecay({.initial_learning_rate = rate, .decay_steps = 7, .alpha = 0.1}))
                              : Schedule(rate);
  if (c.decays) options.weight_decay = 0.05;
  if (c.clipping == Clipping::each) options.clipnorm = 0.05;
  if (c.clipping == Clipping::all) options.global_clipnorm = 0.05;
  if (c.clipping == Clipping::value) options.clipvalue = 0.02;
  options.use_ema = c.averaged;
  options.ema_momentum = 0.7;
  options.ema_overwrite_frequency = c.overwrite;
  return O(options);
}

Optimizer of_kind(const Combination& c) {
  switch (c.optimizer) {
    case 0: return with_all<SGD, SGDOptions>(c, {.momentum = 0.9}, 0.1);
    case 1: return with_all<SGD, SGDOptions>(c, {.momentum = 0.9, .nesterov = true}, 0.1);
    case 2: return with_all<Adam, AdamOptions>(c, {}, 0.01);
    case 3: return with_all<Adam, AdamOptions>(c, {.amsgrad = true}, 0.01);
    case 4: return with_all<AdamW, AdamWOptions>(c, {}, 0.01);
    case 5: return with_all<Nadam, AdamOptions>(c, {}, 0.01);
    case 6: return with_all<Adamax, AdamOptions>(c, {}, 0.01);
    case 7: return with_all<Lamb, AdamOptions>(c, {}, 0.01);
    case 8: return with_all<RMSprop, RMSpropOptions>(c, {.momentum = 0.5, .centered = true}, 0.01);
    case 9: return with_all<Adagrad, AdagradOptions>(c, {}, 0.05);
    case 10: return with_all<Adadelta, AdadeltaOptions>(c, {}, 1);
    case 11: return with_all<Ftrl, FtrlOptions>(c, {.l1_regularization_strength = 0.001}, 0.1);
    default: return with_all<Lion, LionOptions>(c, {}, 0.01);
  }
}

struct Training {
  const Combination& c;
  Sequential model;
  Optimizer optimizer;
  Tensor x, y, weight;
  const SparseCategoricalCrossentropy masked{from_logits, {.ignore_class = 3}};
  const MeanSquaredError squared;

  explicit Training(const Combination& combination)
      : c(combination),
        model({Dense(5, tanh), Dense(classes)}, {.policy = {f64, f64, c.scaled}}),
        optimizer(of_kind(combination)) {
    set_seed(c.seed);
    const Shape places = c.sequences ? Shape{2 * c.rows + c.last_rows, time_steps} : Shape{2 * c.rows + c.last_rows};
    const auto with = [&](std::int64_t last) {
      Shape shape = places;
      shape.push_back(last);
      return shape;
    };
    x = random::normal(with(features), {.dtype = f64, .seed = 1});
    model.build({f64, c.sequences ? Shape{any_size, time_steps, features} : Shape{any_size, features}});
    y = c.labels ? random::integers(places, {.low = 0, .high = classes, .seed = 2})
                 : random::normal(with(classes), {.dtype = f64, .seed = 2});
    const Tensor drawn = random::uniform(places, {.low = -0.3, .high = 1, .dtype = f64, .seed = 3});
    weight = c.weighted ? maximum(drawn, 0.0) : ones(places, f64);
    if (c.has_dead_batch) weight = concat({zeros_like(weight.rows(0, c.rows)), weight.rows(c.rows, places[0])});
    if (c.overflows) {  // of an example that counts: of others fit takes no infinities
      weight = concat(
          {weight.rows(0, c.rows), ones_like(weight.rows(c.rows, c.rows + 1)), weight.rows(c.rows + 1, places[0])});
      x = concat({x.rows(0, c.rows), x.rows(c.rows, c.rows + 1) + std::numeric_limits<double>::infinity(),
                  x.rows(c.rows + 1, places[0])});
    }
    Variables biases;
    for (std::size_t i = 1; i < 4; i += 2) biases.add(model.variables()[i]);
    if (c.spares_biases) optimizer.exclude_from_weight_decay(biases);
    if (c.grouped) optimizer.add_parameter_group(biases, {.learning_rate = 0.02});
  }

  const LossFunction& loss() const {
    return c.labels ? static_cast<const LossFunction&>(masked) : static_cast<const LossFunction&>(squared);
  }
  Loss loss_of(const Tensor& in, const Tensor& labels, const Tensor& weights) const {
    return loss()(labels, model(in, training), weights);
  }
  double by_fit(std::int64_t part) {
    const FitOptions options{.epochs = 2, .sample_weight = c.weighted, .micro_batch = part, .verbose = false};
    if (c.weighted)
      return fit(model, optimizer, loss(), data::from_tensor_slices(x, y, weight).batch(c.rows), options).loss[0];
    return fit(model, optimizer, loss(), data::from_tensor_slices(x, y).batch(c.rows), options).loss[0];
  }
  double by_steps(const std::function<LossAndGradients(In)>& step) {
    Loss first;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto [in, labels, weights] : data::from_tensor_slices(x, y, weight).batch(c.rows)) {
        const LossAndGradients result = step(Tensors{in, labels, weights});
        optimizer.apply_gradients(result.gradients);
        if (epoch == 0) first += result.loss;
      }
    optimizer.finalize_variable_values(model.trainable_variables());
    return first.item();
  }
  double by_tape(std::int64_t part) {
    return by_steps([&](In batch) {
      LossAndGradients all;
      for (auto [in, labels, weights] : micro_batches({batch[0], batch[1], batch[2]}, part)) {
        GradientTape tape;
        const Loss of_part = loss_of(in, labels, weights);
        all.gradients += tape.gradient(of_part, model.trainable_variables());
        all.loss += of_part;
      }
      return all;
    });
  }
  double by_accumulated_gradients(std::int64_t part) {
    return by_steps([&](In batch) {
      return accumulated_gradients(
          [&](Tensor in, Tensor labels, Tensor weights) { return loss_of(in, labels, weights); },
          model.trainable_variables(), {batch[0], batch[1], batch[2]}, {.micro_batch = part});
    });
  }
};

/// Learning rates that a schedule decides are NaN in both.
double difference(const Variables& a, const Variables& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor in_a = cast(a[i].value(), f64), in_b = cast(b[i].value(), f64);
    const Tensor both_nan = logical_and(is_nan(in_a), is_nan(in_b));
    const double apart = reduce_max(where(both_nan, zeros_like(in_a), abs(in_a - in_b))).item();
    if (std::isnan(apart)) return apart;
    most = std::max(most, apart);
  }
  return most;
}

TEST(Accumulation, HoldsInAnyCombination) {
  const char* said = std::getenv("GRADUS_PROGRAMS");
  const int count = said ? std::atoi(said) : 6;
  for (int number = 0; number < count; ++number) {
    const Combination c(static_cast<std::uint64_t>(number) * 5 + 1);  // so that all kinds come first
    Training whole(c);
    const double loss = whole.by_fit(0);                             // leaves out what was skipped
    const bool may_count_nothing = c.overflows && c.has_dead_batch;  // and the last batch may be masked
    ASSERT_TRUE(std::isfinite(loss) || may_count_nothing) << c.said();
    EXPECT_EQ(whole.optimizer.skipped_steps(), c.overflows ? 2 : 0) << c.said();
    for (double (Training::*way)(std::int64_t) :
         {&Training::by_fit, &Training::by_tape, &Training::by_accumulated_gradients}) {
      Training parts(c);
      const double of_parts = (parts.*way)(c.part);
      if (!c.overflows) { EXPECT_NEAR(of_parts, loss, 1e-12) << c.said(); }
      EXPECT_LT(difference(whole.model.variables(), parts.model.variables()), 1e-12) << c.said();
      EXPECT_LT(difference(whole.optimizer.variables(), parts.optimizer.variables()), 1e-12) << c.said();
      EXPECT_EQ(whole.optimizer.iterations(), parts.optimizer.iterations()) << c.said();
    }
  }
}

/// Each part is normalised by its own moments, and the moving statistics move once a part.
TEST(Accumulation, OfBatchNormalizationIsThatOfItsParts) {
  const Tensor x = random::normal({6, 3}, {.mean = 1, .dtype = f64, .seed = 1});
  const Tensor y = random::normal({6, 2}, {.dtype = f64, .seed = 2});
  Sequential model{BatchNormalization({.momentum = 0.9}), Dense(2, linear, {.dtype = f64})};
  model.build({f64, {any_size, 3}});
  Tensor mean = zeros({3}, f64), variance = ones({3}, f64);
  Loss wanted;
  Sequential by_hand = model;
  for (const auto& [begin, end] : {std::pair{0, 4}, std::pair{4, 6}}) {
    const Tensor part = x.rows(begin, end), center = reduce_mean(part, {.axis = {0}});
    mean = mean * 0.9 + center * 0.1;
    variance = variance * 0.9 + reduce_mean(square(part - center), {.axis = {0}}) * 0.1;
    wanted += MeanSquaredError()(y.rows(begin, end), by_hand(part, training));
  }
  SGD optimizer({.learning_rate = 0.1});
  const History history = fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, y).batch(6),
                              {.micro_batch = 4, .verbose = false});
  EXPECT_NEAR(history.loss[0], wanted.item(), 1e-12);
  EXPECT_LT(max_abs_difference(model.variables()["batch_normalization/moving_mean"], mean), 1e-12);
  EXPECT_LT(max_abs_difference(model.variables()["batch_normalization/moving_variance"], variance), 1e-12);
  Sequential other = by_hand;
  EXPECT_THROW(
      accumulated_gradients([&](Tensor in, Tensor labels) { return MeanSquaredError()(labels, other(in, training)); },
                            other.trainable_variables(), {x, y}, {.micro_batch = 4}),
      InvalidArgument)
      << "a loop may not assign";
}

}  // namespace
}  // namespace gradus::generated_accumulation_test
