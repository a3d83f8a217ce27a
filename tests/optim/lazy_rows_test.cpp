/// Lazy steps change only the rows of a table that have a gradient: written-out formulas, the rows of ordinary steps,
/// the same bits however the gradient is kept, and the memory of rows.
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/batches.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/tensor/memory.h"
#include "tests/errors.h"
#include "tests/peak_memory.h"

namespace gradus::lazy_rows_test {
namespace {

constexpr std::int64_t width = 3, places = 7;
/// The gradient of a large table is kept as rows, that of a small one in full.
constexpr std::int64_t large = 5000, small = 40;

/// Row 3 of the first batch is read twice with terms that cancel, row 5 of each with slopes of 0.
const std::vector<std::vector<std::int64_t>> batches{
    {3, 7, 3, 0, 39, 5, 7}, {7, 15, 2, 2, 2, 5, 2}, {1, 3, 9, 0, 0, 5, 1}, {15, 0, 4, 39, 38, 5, 39}};
std::vector<double> slopes_of(std::size_t batch) {
  std::vector<double> all;
  for (std::int64_t p = 0; p < places; ++p)
    for (std::int64_t j = 0; j < width; ++j) {
      const double x = std::sin(1.1 * static_cast<double>(batch) + 0.3 * static_cast<double>(p) + 2.1 * j);
      all.push_back(p == 5 ? 0 : batch == 0 && p == 2 ? -all[static_cast<std::size_t>(j)] : x);
    }
  return all;
}
Tensor indices_of(std::size_t batch) { return from_values(batches[batch], {places}); }
Tensor slopes(std::size_t batch, DType t) { return cast(from_values(slopes_of(batch), {places, width}), t); }
/// The gradient in full of a table with `rows` rows.
std::vector<double> gradient_of(std::size_t batch, std::int64_t rows) {
  std::vector<double> all(static_cast<std::size_t>(rows * width));
  const std::vector<double> terms = slopes_of(batch);
  for (std::size_t k = 0; k < terms.size(); ++k)
    all[static_cast<std::size_t>(batches[batch][k / width] * width) + k % width] += terms[k];
  return all;
}
/// True for each row that gets a gradient from the batch.
std::vector<bool> touched_by(std::size_t batch, std::int64_t rows) {
  std::vector<bool> touched(static_cast<std::size_t>(rows));
  const std::vector<double> g = gradient_of(batch, rows);
  for (std::size_t k = 0; k < g.size(); ++k) touched[k / width] = touched[k / width] || g[k] != 0;
  return touched;
}
std::vector<double> start(std::int64_t rows) {
  std::vector<double> all;
  for (std::int64_t k = 0; k < rows * width; ++k) all.push_back(std::cos(0.7 * static_cast<double>(k)));
  return all;
}

struct Trained {
  Variable table;
  Optimizer optimizer;

  Trained(Optimizer o, std::int64_t rows, DType t)
      : table(cast(from_values(start(rows), {rows, width}), t), "table"), optimizer(std::move(o)) {
    optimizer.build(Variables{table});
  }
  Gradients gradients(const Tensor& indices, const Tensor& g) const {
    GradientTape tape;
    return tape.gradient(reduce_sum(gather(table, indices) * g), Variables{table});
  }
  void step(const Tensor& indices, const Tensor& g) { optimizer.apply_gradients(gradients(indices, g)); }
  Variables all() const { return Variables{table} + optimizer.variables(); }
};

void expect_same(const Trained& a, const Trained& b) {
  const Variables of_a = a.all(), of_b = b.all();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i)
    EXPECT_TRUE(bitwise_equal(of_a[i].value(), of_b[i].value())) << of_a[i].name();
}

// ---------------------------------------------------------------- written out

/// One element, with whatever a rule keeps for it.
struct Cell {
  double w, m = 0, v = 0, more = 0, average = w;
};
constexpr double rate = 0.1;

void adam(Cell& c, double g, double t, bool amsgrad) {
  c.m = 0.9 * c.m + 0.1 * g;
  c.v = 0.999 * c.v + 0.001 * g * g;
  c.more = std::max(c.more, c.v);
  const double corrected = rate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
  c.w -= corrected * c.m / (std::sqrt(amsgrad ? c.more : c.v) + 1e-7);
}
void nadam(Cell& c, double g, double t) {
  const auto u = [](double s) { return 0.9 * (1 - 0.5 * std::pow(0.96, s)); };
  double product = 1;
  for (int s = 1; s <= t; ++s) product *= u(s);
  c.m = 0.9 * c.m + 0.1 * g;
  c.v = 0.999 * c.v + 0.001 * g * g;
  const double step = u(t + 1) * c.m / (1 - product * u(t + 1)) + (1 - u(t)) * g / (1 - product);
  c.w -= rate * step / (std::sqrt(c.v / (1 - std::pow(0.999, t))) + 1e-7);
}
void rmsprop(Cell& c, double g, double momentum, bool centered) {
  c.v = 0.9 * c.v + 0.1 * g * g;
  c.more = 0.9 * c.more + 0.1 * g;
  const double step = rate * g / std::sqrt(c.v - (centered ? c.more * c.more : 0) + 1e-7);
  c.m = momentum * c.m + step;
  c.w -= c.m;
}
void sgd(Cell& c, double g, bool nesterov) {
  c.m = 0.9 * c.m - rate * g;
  c.w += nesterov ? 0.9 * c.m - rate * g : c.m;
}

struct Formula {
  std::string name;
  std::function<Optimizer()> make;
  std::function<void(Cell& cell, double g, double t)> update;
  double decay = 0, average = 0;
  int overwrite = 0;
};
template <class O, class Options>
Formula written(std::string name, Options options, std::function<void(Cell&, double, double)> update) {
  options.learning_rate = rate;
  options.lazy = true;
  return {std::move(name),
          [options] { return O(options); },
          std::move(update),
          options.weight_decay,
          options.use_ema ? options.ema_momentum : 0,
          static_cast<int>(options.ema_overwrite_frequency)};
}
std::vector<Formula> formulas() {
  return {
      written<Adam, AdamOptions>("adam", {}, [](Cell& c, double g, double t) { adam(c, g, t, false); }),
      written<Adam, AdamOptions>("amsgrad", {.amsgrad = true},
                                 [](Cell& c, double g, double t) { adam(c, g, t, true); }),
      written<AdamW, AdamWOptions>("adamw", {.weight_decay = 0.2, .use_ema = true, .ema_momentum = 0.6},
                                   [](Cell& c, double g, double t) { adam(c, g, t, false); }),
      written<Nadam, AdamOptions>("nadam", {}, nadam),
      written<RMSprop, RMSpropOptions>("rmsprop", {}, [](Cell& c, double g, double) { rmsprop(c, g, 0, false); }),
      written<RMSprop, RMSpropOptions>("centered", {.momentum = 0.5, .centered = true, .weight_decay = 0.1},
                                       [](Cell& c, double g, double) { rmsprop(c, g, 0.5, true); }),
      written<SGD, SGDOptions>("momentum", {.momentum = 0.9}, [](Cell& c, double g, double) { sgd(c, g, false); }),
      written<SGD, SGDOptions>(
          "overwritten",
          {.momentum = 0.9, .nesterov = true, .use_ema = true, .ema_momentum = 0.6, .ema_overwrite_frequency = 2},
          [](Cell& c, double g, double) { sgd(c, g, true); }),
  };
}

void step_by_hand(std::vector<Cell>& cells, const Formula& formula, std::size_t batch) {
  const auto rows = static_cast<std::int64_t>(cells.size()) / width;
  const std::vector<double> g = gradient_of(batch, rows);
  const std::vector<bool> touched = touched_by(batch, rows);
  const double t = static_cast<double>(batch) + 1;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    Cell& c = cells[k];
    if (touched[k / width]) {
      c.w -= c.w * formula.decay * rate;
      formula.update(c, g[k], t);
      c.average = t == 1 ? c.w : formula.average * c.average + (1 - formula.average) * c.w;
    }
    if (formula.overwrite > 0 && static_cast<int>(t) % formula.overwrite == 0) c.w = c.average;
  }
}

TEST(LazySteps, AreTheWrittenFormulasOfTouchedRows) {
  for (const Formula& formula : formulas())
    for (const std::int64_t rows : {large, small}) {
      SCOPED_TRACE(text(formula.name, ", ", rows, " rows"));
      Trained trained(formula.make(), rows, f64), compiled(formula.make(), rows, f64);
      const auto step = function([&](Tensor indices, Tensor g) { compiled.step(indices, g); });
      std::vector<Cell> cells;
      for (const double w : start(rows)) cells.push_back({.w = w});
      for (std::size_t i = 0; i < batches.size(); ++i) {
        trained.step(indices_of(i), slopes(i, f64));
        step(indices_of(i), slopes(i, f64));
        step_by_hand(cells, formula, i);
      }
      expect_same(trained, compiled);
      const std::vector<double> got = trained.table.value().to_vector<double>(), before = start(rows);
      for (std::size_t k = 0; k < got.size(); ++k)
        if (cells[k].w == before[k]) ASSERT_EQ(got[k], before[k]) << k;
        else ASSERT_NEAR(got[k], cells[k].w, 1e-12) << k;
      if (formula.average == 0) continue;
      const std::vector<double> averages = trained.optimizer.averages()[0].value().to_vector<double>();
      for (std::size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(averages[k], cells[k].average, 1e-12) << k;
    }
}

// ---------------------------------------------------------------- every optimizer

struct Case {
  std::string name;
  std::function<Optimizer(bool lazy)> make;
  bool sums_all = false;  // clips by a norm, whose sum has another order where rows are kept
};
template <class O, class Options> Case of(std::string name, Options options, bool sums_all = false) {
  options.learning_rate = rate;
  const auto make = [options](bool lazy) {
    Options chosen = options;
    chosen.lazy = lazy;
    return O(chosen);
  };
  return {std::move(name), make, sums_all};
}
std::vector<Case> cases() {
  return {
      of<SGD, SGDOptions>("sgd", {.weight_decay = 0.2}),
      of<SGD, SGDOptions>("momentum", {.momentum = 0.9, .use_ema = true}),
      of<RMSprop, RMSpropOptions>("rmsprop", {.momentum = 0.5, .centered = true}),
      of<Adam, AdamOptions>("adam", {.clipvalue = 0.25}),
      of<AdamW, AdamWOptions>("adamw", {.global_clipnorm = 0.5}, true),
      of<Nadam, AdamOptions>("nadam", {.clipnorm = 0.5}, true),
      of<Adamax, AdamOptions>("adamax", {}),
      of<Adagrad, AdagradOptions>("adagrad", {.weight_decay = 0.2}),
      of<Adadelta, AdadeltaOptions>("adadelta", {}),
      of<Ftrl, FtrlOptions>("ftrl", {}),
      of<Lion, LionOptions>("lion", {}),
  };
}

/// In state that is kept per row, rows without a gradient are as before, the others are those of the ordinary step.
TEST(LazySteps, ChangeTheRowsOfOrdinaryStepsAndNoOthers) {
  for (const Case& c : cases())
    for (const DType t : {f32, bf16})
      for (const std::int64_t rows : {large, small}) {
        SCOPED_TRACE(text(c.name, ", ", t, ", ", rows, " rows"));
        Trained lazy(c.make(true), rows, t), ordinary(c.make(false), rows, t);
        for (std::size_t i = 0; i < batches.size(); ++i) {
          const Variables of_lazy = lazy.all(), of_ordinary = ordinary.all();
          Tensors before;
          for (std::size_t k = 0; k < of_lazy.size(); ++k) {
            before.push_back(of_lazy[k].value());
            of_ordinary[k].assign(before[k]);
          }
          lazy.step(indices_of(i), slopes(i, t));
          ordinary.step(indices_of(i), slopes(i, t));
          std::vector<std::int64_t> counts;
          for (const bool is_touched : touched_by(i, rows)) counts.push_back(is_touched);
          const Tensor touched = cast(from_values(counts, {rows, 1}), boolean);
          for (std::size_t k = 0; k < of_lazy.size(); ++k) {
            const Tensor next = of_ordinary[k].value();
            const Tensor want = next.shape().rank() == 2 ? where(touched, next, before[k]) : next;
            EXPECT_TRUE(bitwise_equal(of_lazy[k].value(), want)) << of_lazy[k].name() << ", step " << i;
          }
        }
      }
}

TEST(LazySteps, HaveTheSameBitsForRowsAndInFull) {
  for (const Case& c : cases()) {
    if (c.sums_all) continue;
    Trained by_rows(c.make(true), large, f32), whole(c.make(true), large, f32);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Gradients gradients = by_rows.gradients(indices_of(i), slopes(i, f32));
      EXPECT_TRUE(gradients.mean(0).is_rows());
      by_rows.optimizer.apply_gradients(gradients);
      const GradientPart in_full(whole.gradients(indices_of(i), slopes(i, f32))[0], true);
      whole.optimizer.apply_gradients(Gradients(Variables{whole.table}, std::vector{in_full}, constant(1.0)));
    }
    expect_same(by_rows, whole);
  }
}

/// 256 rows of 128 bytes are 32 KiB. The table has 24 MiB, and each slot too.
TEST(LazySteps, NeedTheMemoryOfRows) {
  constexpr std::int64_t many = 200'000, wide = 32;
  const Tensor indices = random::integers({256}, {.high = many, .seed = 1}),
               g = random::normal({256, wide}, {.seed = 2});
  for (const Case& c : cases()) {
    Variable table(zeros({many, wide}), "table");
    Optimizer optimizer = c.make(true);
    optimizer.build(Variables{table});
    const auto step = function([&] {
      GradientTape tape;
      optimizer.apply_gradients(tape.gradient(reduce_sum(gather(table, indices) * g), Variables{table}));
    });
    for (int i = 0; i < 3; ++i) step();
    EXPECT_LE(peak_of(step), 2 * MiB) << c.name;
  }
}

/// In parts of a batch the rows of all parts count, whether they come out of the loop or are summed in it.
TEST(LazySteps, OfPartsAreThoseOfTheirSum) {
  for (const std::int64_t rows : {large, small}) {
    Trained by_hand(Adam({.lazy = true}), rows, f32), by_loop(Adam({.lazy = true}), rows, f32);
    const Tensor x = concat({indices_of(0), indices_of(1)}), g = concat({slopes(0, f32), slopes(1, f32)});
    const auto loss_of = [](const Trained& trained, const Tensor& part, const Tensor& slope) {
      return Loss::mean(reduce_sum(gather(trained.table, part) * slope, {.axis = {1}}));
    };
    const auto step = function([&] {
      by_loop.optimizer.apply_gradients(
          accumulated_gradients([&](Tensor part, Tensor slope) { return loss_of(by_loop, part, slope); },
                                Variables{by_loop.table}, {x, g}, {.micro_batch = 4})
              .gradients);
    });
    for (int i = 0; i < 3; ++i) {
      step();
      Gradients total;
      for (auto [part, slope] : micro_batches({x, g}, 4)) {
        GradientTape tape;
        total += tape.gradient(loss_of(by_hand, part, slope), Variables{by_hand.table});
      }
      by_hand.optimizer.apply_gradients(total);
    }
    expect_same(by_loop, by_hand);
    const std::vector<float> got = by_loop.table.value().to_vector<float>();
    const std::vector<double> before = start(rows);
    const std::size_t unread = 5 * width;
    EXPECT_EQ(got[unread], static_cast<float>(before[unread]));
  }
}

// ---------------------------------------------------------------- what is no table

using LossOfTable = std::function<Tensor(const Tensor& table)>;

/// Row 1 of each gradient is 0, and yet it moves by its momentum.
TEST(LazySteps, AreOrdinaryWhereMoreThanLookupsReadTheVariable) {
  const Tensor x = from_values(std::vector<float>{1, 0, 2, 3}, {1, 4}),
               index = from_values(std::vector<int>{0, 2}, {2});
  const std::vector<std::pair<std::string, LossOfTable>> losses{
      {"a product", [&](const Tensor& w) { return reduce_sum(matmul(x, w)); }},
      {"a product and a lookup",
       [&](const Tensor& w) { return reduce_sum(matmul(x, w)) + reduce_sum(gather(w, index)); }},
      {"a branch",
       [&](const Tensor& w) {
         return cond(reduce_sum(x) > 0, [&] { return reduce_sum(gather(w, index)); }, [&] { return reduce_sum(w); });
       }},
  };
  for (const auto& [name, loss] : losses) {
    const auto train = [&](bool lazy) {
      Variable w(random::normal({4, 2}, {.seed = 3}), "w");
      Adam optimizer({.learning_rate = rate, .lazy = lazy});
      for (int i = 0; i < 3; ++i) {
        GradientTape tape;
        const Tensor value = i == 0 ? reduce_sum(square(w)) : loss(w);
        optimizer.apply_gradients(tape.gradient(value, Variables{w}));
      }
      return w.value();
    };
    EXPECT_TRUE(bitwise_equal(train(true), train(false))) << name;
  }
}

TEST(LazySteps, AreNotOfNormsOverTheWholeVariable) {
  expect_says(error_of<InvalidArgument>([] { Lamb({.lazy = true}); }), "Lamb: lazy is given");
}

TEST(LazySteps, AreOtherStepsThanThoseThatWereCompiled) {
  Trained trained(Adam({.lazy = true}), small, f32);
  const auto step = function([&](Tensor indices, Tensor g) { trained.step(indices, g); });
  step(indices_of(0), slopes(0, f32));
  Adam ordinary;
  ordinary.build(Variables{trained.table});
  expect_says(error_of<InvalidArgument>([&] { trained.optimizer = ordinary; }), "compiled step");
}

}  // namespace
}  // namespace gradus::lazy_rows_test
