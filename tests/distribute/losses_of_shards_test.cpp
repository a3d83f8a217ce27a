/// Losses and derivatives in a step that a strategy runs, each kind in each way: either the values of one process on
/// the whole batch, or an error that names the remedy, and nothing else.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/gradus.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"

namespace gradus::losses_of_shards_test {
namespace {

constexpr std::int64_t inputs = 3;

Tensor numbers(std::initializer_list<double> values) { return cast(constant(std::vector<double>(values)), f64); }

Tensor errors_of(const Tensor& w, const Tensor& x) { return square(reduce_sum(sin(x) * w, {.axis = {1}}) - 0.5); }
Tensor others_of(const Tensor& w, const Tensor& x) { return exp(reduce_sum(x * w, {.axis = {1}}) * 0.2); }
Tensor weights_of(const Tensor& x) { return cast(reduce_sum(x, {.axis = {1}}) > 0, x.dtype()) * 2 + 0.25; }
Tensor penalty_of(const Tensor& w) { return 0.3 * reduce_sum(square(w)); }
Tensor total_of(const Tensor& per_example) { return all_reduce_sum(reduce_sum(per_example)); }

/// A loss that a program may write. `batch`: the number of rows of the global batch.
struct Kind {
  const char* name;
  std::function<Loss(const Tensor& w, const Tensor& x, double batch)> loss;
  bool has_parts = true;  // the losses of parts of a batch, added up, are that of the batch
};
const std::vector<Kind> kinds = {
    {"mean", [](const Tensor& w, const Tensor& x, double) { return Loss::mean(errors_of(w, x)); }},
    {"weighted mean",
     [](const Tensor& w, const Tensor& x, double) { return Loss::mean(errors_of(w, x), weights_of(x)); }},
    {"two means", [](const Tensor& w, const Tensor& x,
                     double) { return Loss::mean(errors_of(w, x)) * 2 + Loss::mean(others_of(w, x)); }},
    {"mean and penalty",
     [](const Tensor& w, const Tensor& x, double) { return Loss::mean(errors_of(w, x)) + penalty_of(w); }},
    {"weighted mean and penalty", [](const Tensor& w, const Tensor& x,
                                     double) { return Loss::mean(errors_of(w, x), weights_of(x)) + penalty_of(w); }},
    {"mean with values of all shards",
     [](const Tensor& w, const Tensor& x, double batch) {
       return Loss::mean(errors_of(w, x) * (total_of(others_of(w, x)) / batch));
     },
     false},
    {"sum by the batch",
     [](const Tensor& w, const Tensor& x, double batch) { return Loss::sum(reduce_sum(errors_of(w, x)) / batch); }},
    {"sum", [](const Tensor& w, const Tensor& x, double) { return Loss::sum(reduce_sum(errors_of(w, x))); }},
    {"sum from zero",
     [](const Tensor& w, const Tensor& x, double) {
       Tensor sum = constant(0.0, f64);
       for (const Tensor& each : {errors_of(w, x), others_of(w, x)}) sum += reduce_sum(each);
       return Loss::sum(sum);
     }},
    {"two sums",
     [](const Tensor& w, const Tensor& x, double batch) {
       return Loss::sum(reduce_sum(errors_of(w, x)) / batch) * 3 + Loss::sum(reduce_sum(others_of(w, x)));
     }},
    {"sum and penalty",
     [](const Tensor& w, const Tensor& x, double batch) {
       return Loss::sum(reduce_sum(errors_of(w, x)) / batch) + penalty_of(w);
     },
     false},
    {"sum and a sum that all have in common",
     [](const Tensor& w, const Tensor& x, double batch) {
       return Loss::sum(reduce_sum(errors_of(w, x)) / batch) + Loss::sum(penalty_of(w));
     },
     false},
    {"sum with values of all shards",
     [](const Tensor& w, const Tensor& x, double batch) {
       return Loss::sum(reduce_sum(errors_of(w, x)) * (total_of(others_of(w, x)) / batch));
     },
     false},
    {"number in common", [](const Tensor& w, const Tensor&, double) { return Loss::of(penalty_of(w)); }, false},
    {"sum in common", [](const Tensor& w, const Tensor&, double) { return Loss::sum(penalty_of(w)); }, false},
    {"number of all shards",
     [](const Tensor& w, const Tensor& x, double batch) {
       return Loss::of(sqrt(total_of(errors_of(w, x)) / batch) + penalty_of(w));
     },
     false},
    {"sum of all shards",
     [](const Tensor& w, const Tensor& x, double batch) {
       return Loss::sum(sqrt(total_of(errors_of(w, x)) / batch) + penalty_of(w));
     },
     false},
};

/// A program's use of a loss: a function of the Variable and of rows.
using Program = std::function<Tensor(const Variable& w, const Tensor& x)>;
struct Way {
  const char* name;
  std::function<Program(const Kind& kind, double batch)> of;
  bool gives_rows = false;   // each shard has its own rows of the result
  bool takes_parts = false;  // it adds up parts of the batch
};
Variables only(const Variable& w) {
  Variables all;
  all.add(w);
  return all;
}
const std::vector<Way> ways = {
    {"value",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         const Loss loss = kind.loss(w.value(), x, batch);
         return stack({loss.value(), loss.sum(), loss.weight()});
       };
     }},
    {"variables",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         GradientTape tape;
         return tape.gradient(kind.loss(w.value(), x, batch), only(w), {.unconnected = Unconnected::zero})[0];
       };
     }},
    {"a variable",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         GradientTape tape;
         return tape.gradient(kind.loss(w.value(), x, batch), w);
       };
     }},
    {"value_and_gradient",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         const auto [loss, gradients] = value_and_gradient([&] { return kind.loss(w.value(), x, batch); }, only(w));
         return gradients[0] * loss.value();
       };
     }},
    {"a tensor that all have in common",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         GradientTape tape;
         const Tensor at = w.value();
         return tape.gradient(kind.loss(at, x, batch), at);
       };
     }},
    {"rows",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         GradientTape tape;
         tape.watch(x);
         return tape.gradient(kind.loss(w.value(), x, batch), x, {.unconnected = Unconnected::zero}) + 0 * x;
       };
     },
     true},
    {"two gradients, added up",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         GradientTape tape({.persistent = true});
         const Loss loss = kind.loss(w.value(), x, batch);
         const Loss common = loss.is_sum() ? Loss::sum(penalty_of(w.value())) : Loss::of(penalty_of(w.value()));
         Gradients sum = tape.gradient(loss, only(w));
         sum += tape.gradient(common, only(w));
         Loss total = loss;
         total += common;
         return concat({sum[0], expand_dims(sum.weight() * total.value(), 0)});
       };
     }},
    {"parts by hand",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         Loss total;
         Gradients sum;
         for (const auto& [rows] : micro_batches({x}, 2)) {
           GradientTape tape;
           const Loss loss = kind.loss(w.value(), rows, batch);
           sum += tape.gradient(loss, only(w));
           total += loss;
         }
         return concat({sum[0], expand_dims(total.value(), 0)});
       };
     },
     false, true},
    {"accumulated_gradients",
     [](const Kind& kind, double batch) -> Program {
       return [=](const Variable& w, const Tensor& x) {
         const auto [loss, sum] = accumulated_gradients(
             [&](const Tensor& rows) { return kind.loss(w.value(), rows, batch); }, only(w), {x}, {.micro_batch = 2});
         return concat({sum[0], expand_dims(loss.value(), 0)});
       };
     },
     false, true},
};

Tensor batch_of(std::int64_t rows) { return random::normal({rows, inputs}, {.dtype = f64, .seed = 5}); }
Variable weights() { return Variable(numbers({0.4, -0.7, 0.2}), "w"); }

/// The program's result on shards of the batch, joined as one process would have it.
Tensor on_shards(const Program& program, const Variable& w, const Tensor& x, int shards, int replicas, bool rows) {
  const MirroredStrategy strategy({.devices = devices(replicas), .micro_shards = shards});
  const auto found = strategy.run([&](Tensor part) { return program(w, part); }, x);
  return rows ? found.concat() : found[0];
}

void expect_whole(const Program& program, std::int64_t rows, bool gives_rows, const std::string& what) {
  const Variable w = weights();
  const Tensor x = batch_of(rows), whole = program(w, x);
  const double size = std::max(1.0, reduce_max(abs(whole)).item());
  const bool is_uneven = rows % 6 != 0;
  for (const int shards : {1, 2, 3}) {
    Tensor first;
    for (const int replicas : {1, shards}) {
      if (first.defined() && (replicas == 1 || !is_uneven)) continue;  // one division of even batches is enough
      const std::string where = text(what, ", ", rows, " rows, ", shards, " shards, ", replicas, " replicas");
      Tensor found;
      try {
        found = on_shards(program, w, x, shards, replicas, gives_rows);
      } catch (const Error& error) { FAIL() << where << ": " << error.what(); }
      ASSERT_EQ(found.spec(), whole.spec()) << where;
      EXPECT_LT(max_abs_difference(found, whole), 1e-12 * size) << where;
      EXPECT_TRUE(!first.defined() || bitwise_equal(found, first)) << where;
      first = found;
    }
  }
}

class LossesOfShards : public testing::TestWithParam<Way> {};

/// All kinds side by side in one step.
TEST_P(LossesOfShards, AreThoseOfTheBatch) {
  const Way& way = GetParam();
  for (const std::int64_t rows : {12, 13}) {
    const auto all = [&](const Variable& w, const Tensor& x) {
      Tensors results;
      for (const Kind& kind : kinds)
        if (kind.has_parts || !way.takes_parts) results.push_back(way.of(kind, static_cast<double>(rows))(w, x));
      return concat(results, way.gives_rows ? 1 : 0);
    };
    expect_whole(all, rows, way.gives_rows, way.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, LossesOfShards, testing::ValuesIn(ways), [](const auto& way) {
  std::string name = way.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// ---------------------------------------------------------------- what is no loss of the batch

struct Refused {
  const char* name;
  Program program;
  std::vector<const char*> says = {"Loss::mean", "Loss::sum"};
};

void expect_refused(const std::vector<Refused>& all) {
  for (const Refused& each : all)
    for (const int shards : {1, 2, 3})
      for (const std::int64_t rows : {12, 13}) {
        const Variable w = weights();
        const std::string said = error_of<InvalidArgument>(
            [&] { on_shards(each.program, w, batch_of(rows), shards, std::min(shards, 2), false); });
        for (const char* part : each.says)
          EXPECT_NE(said.find(part), std::string::npos) << each.name << ", " << shards << ": " << said;
      }
}

Program gradient_of(std::function<Tensor(const Tensor& w, const Tensor& x)> target) {
  return [target](const Variable& w, const Tensor& x) {
    GradientTape tape;
    return tape.gradient(target(w.value(), x), only(w))[0];
  };
}

TEST(LossesOfShards, PlainTensorsOfAShardAreRefused) {
  const auto sum = [](const Tensor& w, const Tensor& x) { return reduce_sum(errors_of(w, x)); };
  expect_refused({
      {"sum", gradient_of(sum)},
      {"sum by the batch", gradient_of([=](auto& w, auto& x) { return sum(w, x) / 13; })},
      {"mean", gradient_of([](auto& w, auto& x) { return reduce_mean(errors_of(w, x)); })},
      {"mean and penalty", gradient_of([](auto& w, auto& x) { return reduce_mean(errors_of(w, x)) + penalty_of(w); })},
      {"a variable",
       [=](auto& w, auto& x) {
         GradientTape tape;
         return tape.gradient(sum(w.value(), x), w);
       }},
      {"a tensor in common",
       [=](auto& w, auto& x) {
         GradientTape tape;
         const Tensor at = w.value();
         return tape.gradient(sum(at, x), at);
       }},
      {"rows and a tensor in common",
       [=](auto& w, auto& x) {
         GradientTape tape;
         const Tensor at = w.value();
         tape.watch(x);
         return tape.gradient(sum(at, x), {x, at})[0];
       }},
      {"output gradients",
       [](auto& w, auto& x) {
         GradientTape tape;
         const Tensor each = errors_of(w.value(), x);
         return tape.gradient(each, only(w), {.output_gradients = ones_like(each)})[0];
       }},
      {"value_and_gradient",
       [=](auto& w, auto& x) { return value_and_gradient([&](Tensor at) { return sum(at, x); }, w.value()).second; }},
      {"gradient by two",
       [=](auto& w, auto& x) { return gradient([&](Tensor at, Tensor) { return sum(at, x); }, {w.value(), x})[0]; }},
      {"vjp",
       [](auto& w, auto& x) {
         auto [y, pullback] = vjp([&](Tensor at) { return errors_of(at, x); }, w.value());
         return pullback(ones_like(y));
       }},
      {"jvp",
       [=](auto& w, auto& x) {
         return jvp([&](Tensor at) { return sum(at, x); }, w.value(), ones_like(w.value())).second;
       }},
      {"hessian_vector_product",
       [=](auto& w, auto& x) {
         return hessian_vector_product([&](Tensor at) { return sum(at, x); }, w.value(), ones_like(w.value()));
       }},
      {"hessian", [=](auto& w, auto& x) { return hessian([&](Tensor at) { return sum(at, x); }, w.value()); }},
      {"jacobian", [=](auto& w, auto& x) { return jacobian([&](Tensor at) { return sum(at, x); }, w.value()); }},
      {"Loss::of", [=](auto& w, auto& x) { return Loss::of(sum(w.value(), x)).value(); }},
      {"Loss::of of a part",
       [=](auto& w, auto& x) {
         return accumulated_gradients([&](Tensor rows) { return Loss::of(sum(w.value(), rows)); }, only(w), {x},
                                      {.micro_batch = 2})
             .gradients[0];
       }},
      {"a penalty of a shard",
       [=](auto& w, auto& x) { return (Loss::mean(errors_of(w.value(), x)) + sum(w.value(), x)).value(); }},
      {"a penalty of a shard on a sum",
       [=](auto& w, auto& x) { return (Loss::sum(sum(w.value(), x)) + sum(w.value(), x)).value(); }},
  });
}

TEST(LossesOfShards, SumsDoNotCountWhatAllHaveInCommonForEach) {
  const auto sum = [](const Tensor& w, const Tensor& x) { return reduce_sum(errors_of(w, x)); };
  const std::vector<const char*> says = {"Loss::sum", "same on all shards", "+ penalty"};
  expect_refused({
      {"plus", [=](auto& w, auto& x) { return Loss::sum(sum(w.value(), x) + penalty_of(w.value())).value(); }, says},
      {"minus", [=](auto& w, auto& x) { return Loss::sum(sum(w.value(), x) - penalty_of(w.value())).value(); }, says},
      {"a number", [=](auto& w, auto& x) { return Loss::sum(1 + sum(w.value(), x)).value(); }, says},
      {"scaled",
       [=](auto& w, auto& x) {
         return Loss::sum(-(0.5 * (sum(w.value(), x) + 4 * penalty_of(w.value())) / 13)).value();
       },
       says},
  });
}

TEST(LossesOfShards, MeansAndSumsDoNotMix) {
  Variable w = weights();
  const Tensor x = batch_of(4);
  const auto mean = [&] { return Loss::mean(errors_of(w.value(), x)); };
  const auto sum = [&] { return Loss::sum(reduce_sum(errors_of(w.value(), x))); };
  const auto gradients = [&](const auto& loss) {
    GradientTape tape;
    return tape.gradient(loss(), only(w));
  };
  expect_error<InvalidArgument>([&] { mean() + sum(); }, {"both Loss::mean, or both Loss::sum"});
  expect_error<InvalidArgument>([&] { mean() += sum(); }, {"both Loss::mean, or both Loss::sum"});
  expect_error<InvalidArgument>([&] { gradients(mean) += gradients(sum); }, {"Loss::sum", "both of a sum"});
  expect_error<InvalidArgument>([] { Loss::sum(ones({2})); }, {"Loss::sum", "expected a scalar"});
  expect_error<InvalidArgument>([] { Loss::sum(ones({}, i32)); }, {"Loss::sum", "floating"});
}

// ---------------------------------------------------------------- derivatives of functions

struct Derivative {
  const char* name;
  Program program;
  bool gives_rows = false;
};

/// Derivatives of targets that all shards compute together, of targets that are the same on all, and of rows.
TEST(LossesOfShards, DerivativesOfFunctionsAreThoseOfTheBatch) {
  const auto joint = [](const Tensor& w, const Tensor& x) { return square(total_of(errors_of(w, x))) + penalty_of(w); };
  const auto direction = [] { return numbers({1, -2, 0.5}); };
  const std::vector<Derivative> all = {
      {"gradient, joint",
       [=](auto& w, auto& x) { return gradient([&](Tensor at) { return joint(at, x); }, w.value()); }},
      {"gradient by variables, joint",
       [=](auto& w, auto& x) {
         GradientTape tape;
         return tape.gradient(joint(w.value(), x), only(w))[0];
       }},
      {"gradient by rows, joint",
       [=](auto& w, auto& x) { return gradient([&](Tensor at) { return joint(w.value(), at); }, x); }, true},
      {"vjp, joint",
       [=](auto& w, auto& x) {
         auto [y, pullback] = vjp([&](Tensor at) { return stack({joint(at, x), penalty_of(at)}); }, w.value());
         return pullback(numbers({2, -3}));
       }},
      {"vjp by rows, joint",
       [=](auto& w, auto& x) {
         return vjp([&](Tensor at) { return joint(w.value(), at); }, x).second(constant(2.0, f64));
       },
       true},
      {"jvp, joint",
       [=](auto& w, auto& x) { return jvp([&](Tensor at) { return joint(at, x); }, w.value(), direction()).second; }},
      {"jvp by rows, joint",
       [=](auto& w, auto& x) { return jvp([&](Tensor at) { return joint(w.value(), at); }, x, cos(x)).second; }},
      {"hessian_vector_product, joint",
       [=](auto& w, auto& x) {
         return hessian_vector_product([&](Tensor at) { return joint(at, x); }, w.value(), direction());
       }},
      {"hessian_vector_product by rows, joint",
       [=](auto& w, auto& x) {
         return hessian_vector_product([&](Tensor at) { return joint(w.value(), at); }, x, cos(x));
       },
       true},
      {"gradient, in common", [](auto& w, auto&) { return gradient(penalty_of, w.value()); }},
      {"hessian, in common", [](auto& w, auto&) { return hessian(penalty_of, w.value()); }},
      {"vjp, in common", [](auto& w, auto&) { return vjp(penalty_of, w.value()).second(constant(2.0, f64)); }},
      {"jvp of rows",
       [=](auto& w, auto& x) {
         return jvp([&](Tensor at) { return errors_of(at, x); }, w.value(), direction()).second;
       },
       true},
      {"jacobian of rows",
       [](auto& w, auto& x) { return jacobian([&](Tensor at) { return errors_of(at, x); }, w.value()); }, true},
      {"gradient by rows",
       [](auto& w, auto& x) { return gradient([&](Tensor at) { return reduce_sum(errors_of(w.value(), at)); }, x); },
       true},
      {"gradient by rows of each row",
       [](auto& w, auto& x) {
         return vectorized_map(
             [&](Tensor row) {
               return gradient([&](Tensor at) { return reduce_sum(errors_of(at, expand_dims(row, 0))); }, w.value());
             },
             x);
       },
       true},
      {"gradient penalty",  // like a critic's: by rows, within the loss
       [](auto& w, auto& x) {
         GradientTape tape;
         const Tensor by_rows = gradient([&](Tensor at) { return reduce_sum(errors_of(w.value(), at)); }, x);
         return tape.gradient(Loss::mean(reduce_sum(square(by_rows), {.axis = {1}})), only(w))[0];
       }},
  };
  for (const Derivative& each : all)
    for (const std::int64_t rows : {12, 13}) expect_whole(each.program, rows, each.gives_rows, each.name);
}

TEST(LossesOfShards, MatricesOfWhatAllMakeTogetherAreRefused) {
  const auto joint = [](const Tensor& w, const Tensor& x) { return total_of(errors_of(w, x)); };
  const std::vector<const char*> says = {"made of all shards", "outside of strategy.run"};
  expect_refused({
      {"hessian", [=](auto& w, auto& x) { return hessian([&](Tensor at) { return joint(at, x); }, w.value()); }, says},
      {"jacobian", [=](auto& w, auto& x) { return jacobian([&](Tensor at) { return joint(at, x); }, w.value()); },
       says},
      {"of a tape",
       [=](auto& w, auto& x) {
         GradientTape tape;
         const Tensor at = w.value();
         return tape.jacobian(joint(at, x), at);
       },
       says},
  });
}

// ---------------------------------------------------------------- trainings

/// An activity penalty is the mean over the rows of the batch, whatever their weights and however they are divided.
TEST(LossesOfShards, FitHasThePenaltiesAndCustomLossesOfOneProcess) {
  const Tensor x = random::normal({26, 4}, {.dtype = f64, .seed = 1}),
               y = random::normal({26, 1}, {.dtype = f64, .seed = 2});
  const Tensor weight =
      cast(constant(std::vector<double>{1, 0, 2, 1, 1, 3, 0, 0, 0, 1, 2, 1, .5, 0, 0, 0, 1, 1, 4, 1, 1, 1, 2, 0, 1, 1}),
           f64);
  const auto by_the_batch = [](Tensor truth, Tensor prediction) {
    return Loss::sum(reduce_sum(square(truth - prediction)) / 13);
  };
  const auto train = [&](std::optional<Strategy> strategy, std::int64_t micro_batch, bool weighted, bool custom) {
    set_seed(4);
    Sequential model(
        {Dense(5, tanh, {.kernel_regularizer = regularizers::l2(1e-2), .activity_regularizer = regularizers::l2(0.1)}),
         Dense(1)},
        {.policy = Policy{f64, f64}});
    SGD optimizer({.learning_rate = 0.1});
    const auto rows = data::from_tensor_slices(x, y).batch(13);
    const auto weighed = data::from_tensor_slices(x, y, weight).batch(13);
    FitOptions options{.epochs = 2, .micro_batch = micro_batch, .strategy = strategy, .verbose = false};
    History history;
    if (custom) {
      history = fit(model, optimizer, by_the_batch, rows, options);
    } else if (weighted) {
      options.sample_weight = true;
      history = fit(model, optimizer, MeanSquaredError(), weighed, options);
    } else {
      history = fit(model, optimizer, MeanSquaredError(), rows, options);
    }
    return values_of(model.variables(), history.loss.back());
  };
  for (const std::int64_t micro_batch : {0, 2, 3})
    for (const auto& [weighted, custom] : {std::pair{false, false}, {true, false}, {false, true}}) {
      const Trained whole = train({}, micro_batch, weighted, custom);
      for (const int shards : {2, 3}) {
        const Trained divided =
            train(MirroredStrategy({.devices = devices(2), .micro_shards = shards}), micro_batch, weighted, custom);
        const std::string what =
            text("micro_batch ", micro_batch, ", weighted ", weighted, ", custom ", custom, ", ", shards, " shards");
        EXPECT_NEAR(whole.loss, divided.loss, 1e-9) << what;
        for (std::size_t i = 0; i < whole.variables.size(); ++i)
          EXPECT_LT(max_abs_difference(whole.variables[i], divided.variables[i]), 1e-10) << what << ", variable " << i;
      }
    }
}

/// Shards of two lengths, of which one has one part and the other two: both add up the same sums.
TEST(LossesOfShards, FitDividesOneShardIntoPartsAndTheOtherNot) {
  const Tensor x = random::normal({10, 3}, {.dtype = f64, .seed = 1}),
               y = random::normal({10, 1}, {.dtype = f64, .seed = 2});
  const auto train = [&](std::optional<Strategy> strategy, const Regularizer& kernel, const Regularizer& activity) {
    set_seed(4);
    Sequential model({Dense(5, tanh, {.kernel_regularizer = kernel, .activity_regularizer = activity}), Dense(1)},
                     {.policy = Policy{f64, f64}});
    SGD optimizer({.learning_rate = 0.1});
    const History history = fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, y).batch(5),
                                {.epochs = 2, .micro_batch = 1, .strategy = strategy, .verbose = false});
    return values_of(model.variables(), history.loss.back());
  };
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 3});  // 2, 2 and 1 rows
  for (const bool has_kernel : {false, true})
    for (const bool has_activity : {false, true}) {
      const Regularizer kernel = has_kernel ? regularizers::l2(1e-2) : Regularizer(),
                        activity = has_activity ? regularizers::l2(0.1) : Regularizer();
      const Trained whole = train({}, kernel, activity), divided = train(strategy, kernel, activity);
      EXPECT_NEAR(whole.loss, divided.loss, 1e-9) << has_kernel << has_activity;
      for (std::size_t i = 0; i < whole.variables.size(); ++i)
        EXPECT_LT(max_abs_difference(whole.variables[i], divided.variables[i]), 1e-10) << has_kernel << has_activity;
    }
}

}  // namespace
}  // namespace gradus::losses_of_shards_test
