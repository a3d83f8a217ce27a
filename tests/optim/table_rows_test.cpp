/// Steps of tables whose gradients are kept as rows: the bits of the step with the gradient in full, Keras's values,
/// and memory that the rows bound.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include "gradus/base/rooms.h"
#include "gradus/formats/safetensors.h"
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/tensor/memory.h"
#include "tests/errors.h"
#include "tests/peak_memory.h"

namespace gradus::table_rows_test {
namespace {

constexpr std::int64_t rows = 5000;

struct Case {
  std::string name;
  std::function<Optimizer()> make;
  bool sums_all = false;  // clips by a norm, whose sum has another order
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

template <class O, class Options> Case plain(const std::string& name, Options options, bool sums_all = false) {
  return {name, [options] { return O(options); }, sums_all};
}

std::vector<Case> cases() {
  return {
      plain<SGD, SGDOptions>("sgd", {.learning_rate = 0.1}),
      plain<SGD, SGDOptions>("momentum", {.learning_rate = 0.1, .momentum = 0.9}),
      plain<SGD, SGDOptions>("nesterov", {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}),
      plain<RMSprop, RMSpropOptions>("rmsprop", {.learning_rate = 0.1}),
      plain<RMSprop, RMSpropOptions>("rmsprop_centered", {.learning_rate = 0.1, .momentum = 0.5, .centered = true}),
      plain<Adam, AdamOptions>("adam", {.learning_rate = 0.1}),
      plain<Adam, AdamOptions>("amsgrad", {.learning_rate = 0.1, .beta_2 = 0.9, .amsgrad = true}),
      plain<AdamW, AdamWOptions>("adamw", {.learning_rate = 0.1, .weight_decay = 0.1}),
      plain<Nadam, AdamOptions>("nadam", {.learning_rate = 0.1}),
      plain<Adagrad, AdagradOptions>("adagrad", {.learning_rate = 0.1}),
      plain<Adadelta, AdadeltaOptions>("adadelta", {.learning_rate = 1.0}),
      plain<Adamax, AdamOptions>("adamax", {.learning_rate = 0.1}),
      plain<Ftrl, FtrlOptions>("ftrl", {.learning_rate = 0.1}),
      plain<Lion, LionOptions>("lion", {.learning_rate = 0.1}),
      plain<Lamb, AdamOptions>("lamb", {.learning_rate = 0.1}),
      plain<Adam, AdamOptions>("clipnorm", {.learning_rate = 0.1, .clipnorm = 0.5}, true),
      plain<Adam, AdamOptions>("global_clipnorm", {.learning_rate = 0.1, .global_clipnorm = 0.5}, true),
      plain<SGD, SGDOptions>(
          "ema", {.learning_rate = 0.1, .use_ema = true, .ema_momentum = 0.6, .ema_overwrite_frequency = 2}),
  };
}
std::vector<Case> more_cases() {
  std::vector<Case> all = cases();
  all.push_back(plain<Adagrad, AdagradOptions>("clipvalue", {.learning_rate = 0.1, .clipvalue = 0.5}));
  all.push_back(plain<SGD, SGDOptions>("decay", {.learning_rate = 0.1, .weight_decay = 0.2}));
  all.push_back(plain<Adagrad, AdagradOptions>("average", {.learning_rate = 0.1, .use_ema = true}));
  all.push_back(plain<Adagrad, AdagradOptions>(
      "from_nothing", {.learning_rate = 0.1, .initial_accumulator_value = 0, .epsilon = 1e-30}));
  all.push_back(plain<Ftrl, FtrlOptions>("ftrl_regularized", {.learning_rate = 0.2,
                                                              .l1_regularization_strength = 0.01,
                                                              .l2_regularization_strength = 0.02,
                                                              .l2_shrinkage_regularization_strength = 0.03}));
  return all;
}

/// Element (i, j) is cos(0.7 i + 1.3 j).
Tensor start(std::int64_t n, std::int64_t width, DType t) {
  const Tensor i = reshape(iota({n}, f64), {n, 1}), j = reshape(iota({width}, f64), {1, width});
  return cast(cos(i * 0.7 + j * 1.3), t);
}
/// Of step t: sin(1.1 t + 0.3 p + 2.1 j).
Tensor slopes(std::int64_t t, std::int64_t places, std::int64_t width, DType dtype) {
  const Tensor p = reshape(iota({places}, f64), {places, 1}), j = reshape(iota({width}, f64), {1, width});
  return cast(sin(p * 0.3 + j * 2.1 + 1.1 * static_cast<double>(t)), dtype);
}

Gradients in_full(const Gradients& gradients) {
  std::vector<Tensor> whole;
  for (std::size_t i = 0; i < gradients.size(); ++i) whole.push_back(gradients[i]);
  return Gradients(gradients.variables(), whole, gradients.weight());
}

using LossOfTable = std::function<Tensor(const Tensor& table, const Tensor& indices, const Tensor& slopes)>;
Tensor read_once(const Tensor& table, const Tensor& indices, const Tensor& slopes) {
  return reduce_sum(gather(table, indices) * slopes);
}

struct Trained {
  Variable table;
  Optimizer optimizer;
  bool full;
  LossOfTable loss = read_once;

  Trained(const Case& c, const Tensor& initial, bool in_full)
      : table(initial, "table"), optimizer(c.make()), full(in_full) {}
  Trained(const Case& c, DType t, bool in_full, std::int64_t width = 20) : Trained(c, start(rows, width, t), in_full) {}
  Tensor step(const Tensor& indices, const Tensor& g) {
    GradientTape tape;
    const Tensor value = loss(table, indices, g);
    const Gradients gradients = tape.gradient(value, Variables{table});
    EXPECT_TRUE(gradients.mean(0).is_rows());
    optimizer.apply_gradients(full ? in_full(gradients) : gradients);
    return value;
  }
  Variables all() const {
    Variables list;
    list.add(table);
    return list + optimizer.variables();
  }
};

/// Repeated rows, the first and the last one.
const std::vector<std::vector<std::int64_t>> batches{
    {3, 7, 3, 0, 4999, 3, 7}, {7, 15, 2, 2, 2, 2, 2}, {1, 3, 9, 0, 0, 1, 1}, {15, 0, 4, 4999, 4998, 4997, 4999}};
Tensor places(const std::vector<std::int64_t>& indices, DType t = i32) {
  return cast(from_values(indices, {static_cast<std::int64_t>(indices.size())}), t);
}

void expect_same(const Trained& a, const Trained& b, double tolerance) {
  const Variables of_a = a.all(), of_b = b.all();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (tolerance == 0) EXPECT_TRUE(bitwise_equal(of_a[i].value(), of_b[i].value())) << of_a[i].name();
    else EXPECT_LE(max_abs_difference(cast(of_a[i].value(), f64), cast(of_b[i].value(), f64)), tolerance);
  }
}

class Steps : public testing::TestWithParam<Case> {};

TEST_P(Steps, HaveTheBitsOfThoseInFull) {
  for (const DType t : {f32, f64, bf16}) {
    Trained by_rows(GetParam(), t, false), whole(GetParam(), t, true), compiled(GetParam(), t, false);
    const auto step = function([&](Tensor indices, Tensor g) { return compiled.step(indices, g); });
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Tensor g = slopes(static_cast<std::int64_t>(i), 7, 20, t), indices = places(batches[i], i % 2 ? i64 : i32);
      by_rows.step(indices, g);
      whole.step(indices, g);
      step(places(batches[i]), g);
    }
    const double tolerance = !GetParam().sums_all ? 0 : t == f64 ? 1e-12 : t == f32 ? 1e-5 : 0.1;
    expect_same(by_rows, whole, tolerance);
    expect_same(compiled, by_rows, 0);
  }
}

/// Rows that have no gradient any more, or never had one, included.
TEST_P(Steps, AreKeras) {
  static const auto stored = read_safetensors(std::filesystem::path(GRADUS_OPTIM_FOLDER) / "keras_rows.safetensors");
  const auto found = std::ranges::find(stored, GetParam().name, &NamedArray::name);
  if (found == stored.end()) return;
  Trained trained(GetParam(), f64, false, 3);
  const std::vector<std::vector<std::int64_t>> distinct{{3, 7, 0}, {7, 15, 2}, {1, 3, 9}, {15, 0, 4}, {2, 8, 7}};
  for (std::size_t i = 0; i < distinct.size(); ++i)
    trained.step(places(distinct[i]), slopes(static_cast<std::int64_t>(i) + 1, 3, 3, f64));
  const Tensor want = Tensor::of_buffer(found->spec, found->data);
  const double tolerance = GetParam().name == "nadam" ? 1e-8 : 1e-12;  // Keras's powers of 0.96 are of f32
  EXPECT_LE(max_abs_difference(trained.table.value().rows(0, want.shape()[0]), want), tolerance);
}

constexpr std::int64_t many = 200'000, width = 32;

/// Once compiled, a step needs what its rows need: 256 rows of 128 bytes are 32 KiB. The table has 24 MiB.
TEST_P(Steps, NeedTheMemoryOfRows) {
  const Tensor indices = random::integers({256}, {.high = many, .seed = 1}), g = slopes(1, 256, width, f32);
  Trained trained(GetParam(), zeros({many, width}), false);
  const auto step = function([&] {
    trained.step(indices, g);
    return g[0];
  });
  for (int i = 0; i < 3; ++i) step().observed();
  EXPECT_LE(peak_of([&] { step().observed(); }), 2 * MiB);
  for (int i = 0; i < 3; ++i) trained.step(indices, g).observed();
  EXPECT_LE(peak_of([&] { trained.step(indices, g).observed(); }), 2 * MiB);
  EXPECT_LE(peak_of([&] {  // nobody looks
              for (int i = 0; i < 3; ++i) trained.step(indices, g);
            }),
            2 * MiB);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Steps, testing::ValuesIn(more_cases()),
                         [](const auto& c) { return c.param.name; });

TEST(TableRows, AreTheMemoryOfTheFirstStepToo) {
  const Case sgd = cases()[0];
  const Tensor indices = random::integers({256}, {.high = many, .seed = 1}), g = slopes(1, 256, width, f32);
  Trained trained(sgd, zeros({many, width}), false);
  for (const Tensor& x : {indices, g, trained.table.value()}) x.observed();
  EXPECT_LE(peak_of([&] { trained.step(indices, g).observed(); }), 4 * MiB);
}

TEST(TableRows, OfSeveralGathersAreAddedAsInFull) {
  for (const Case& c : {cases()[0], cases()[5]}) {
    Trained by_rows(c, f32, false), whole(c, f32, true), compiled(c, f32, false);
    const LossOfTable loss = [](const Tensor& table, const Tensor& indices, const Tensor& g) {
      const Tensor again = reshape(concat({indices, indices, cast(equal(indices, 3), i32)}), {3, 7});
      return read_once(table, indices, g) + reduce_sum(square(gather(table, again)) * g) +
             reduce_sum(tanh(gather(table, cast(indices, i64))));
    };
    for (Trained* each : {&by_rows, &whole, &compiled}) each->loss = loss;
    const auto step = function([&](Tensor indices, Tensor g) { return compiled.step(indices, g); });
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Tensor g = slopes(static_cast<std::int64_t>(i), 7, 20, f32);
      by_rows.step(places(batches[i]), g);
      whole.step(places(batches[i]), g);
      step(places(batches[i]), g);
    }
    expect_same(by_rows, whole, 0);
    expect_same(compiled, whole, 0);
  }
}

/// In bf16, 0.25 added to 100 is 100.
TEST(TableRows, OfManyGathersOfANarrowTableAreRoundedOnce) {
  for (const bool assigned : {false, true}) {
    Variable table(zeros({rows, 1}, bf16), "table");
    const Tensor index = places({7});
    GradientTape tape;
    Tensor sum = fill({}, 0, bf16);
    for (int i = 0; i < 17; ++i) {
      if (assigned && i == 10) table.assign(ones({rows, 1}, bf16));
      sum = sum + reduce_sum(gather(table, index)) * (i == 8 ? 100 : 0.25);
    }
    const Gradients gradients = tape.gradient(sum, Variables{table});
    EXPECT_TRUE(gradients.mean(0).is_rows());
    EXPECT_EQ(reduce_sum(cast(gradients[0], f32)).item(), 104) << assigned;
    EXPECT_EQ(reduce_sum(cast(gradients.mean(0).summed().values, f32)).item(), 104) << assigned;
  }
}

/// A tied table has rows, and a product by which every element has a gradient.
TEST(TableRows, AndAProductAreAGradientInFull) {
  Variable table(start(rows, 3, f64), "table");
  const Tensor indices = places(batches[0]), x = slopes(2, 4, 3, f64), g = slopes(1, 7, 3, f64);
  GradientTape tape;
  const Tensor product = reduce_sum(tanh(matmul(x, transpose(table))));
  const Gradients tied = tape.gradient(product + read_once(table, indices, g), Variables{table});
  EXPECT_FALSE(tied.mean(0).is_rows());
  GradientTape other;
  const Tensor dense = matmul(one_hot(indices, rows, f64), table);
  const Gradients want =
      other.gradient(reduce_sum(tanh(matmul(x, transpose(table)))) + reduce_sum(dense * g), Variables{table});
  EXPECT_LE(max_abs_difference(tied[0], want[0]), 1e-12);
}

TEST(TableRows, AreWrittenOutForWhoLooks) {
  Variable table(start(rows, 20, f64), "table");
  const Tensor indices = places(batches[0]), g = slopes(1, 7, 20, f64);
  const auto of = [&] {
    GradientTape tape;
    return tape.gradient(read_once(table, indices, g), Variables{table});
  };
  const Tensor want = matmul(transpose(one_hot(indices, rows, f64)), g);
  const Gradients rows_of = of();
  EXPECT_EQ(rows_of[0].spec(), (Spec{f64, {rows, 20}}));
  EXPECT_LE(max_abs_difference(rows_of[0], want), 1e-12);
  EXPECT_LE(max_abs_difference(rows_of[table], want), 1e-12);
  const auto compiled = function([&] { return of(); });
  EXPECT_TRUE(compiled().mean(0).is_rows());
  EXPECT_TRUE(bitwise_equal(compiled()[0], rows_of[0]));
  EXPECT_NEAR(global_norm(rows_of).item(), sqrt(reduce_sum(square(want))).item(), 1e-12);
  EXPECT_LE(max_abs_difference(clip_by_global_norm(rows_of, 0.5)[0], want * 0.5 / sqrt(reduce_sum(square(want)))),
            1e-12);
  EXPECT_TRUE(bitwise_equal(clip_by_value(rows_of, -0.25, 0.5)[0], clip_by_value(rows_of[0], -0.25, 0.5)));
  EXPECT_TRUE(bitwise_equal(clip_by_value(rows_of, 0.25, 0.5)[0], clip_by_value(rows_of[0], 0.25, 0.5)));
  GradientTape tape;
  EXPECT_LE(max_abs_difference(tape.gradient(read_once(table, indices, g), table), want), 1e-12);
}

TEST(TableRows, AddUpOverPartsOfABatch) {
  const Tensor indices = places({3, 7, 3, 0, 4999, 3, 7, 3, 3, 0, 1, 2, 3}), g = slopes(1, 13, 20, f64);
  Variable table(start(rows, 20, f64), "table");
  const auto gradients_of = [&](const Tensor& part, const Tensor& slope) {
    GradientTape tape;
    return tape.gradient(Loss::mean(reduce_sum(square(gather(table, part)) * slope, {.axis = {1}})), Variables{table});
  };
  Gradients total, whole;
  for (auto [part, slope] : micro_batches({indices, g}, 4)) {
    total += gradients_of(part, slope);
    whole += in_full(gradients_of(part, slope));
  }
  EXPECT_TRUE(total.mean(0).is_rows());
  EXPECT_TRUE(bitwise_equal(total[0], whole[0]));
  EXPECT_LE(max_abs_difference(total[0], gradients_of(indices, g)[0]), 1e-12);
  Gradients twice;
  twice += total;
  twice += total;
  EXPECT_LE(max_abs_difference(twice[0], total[0]), 1e-12);
  total += in_full(gradients_of(indices, g));
  EXPECT_FALSE(total.mean(0).is_rows());
  EXPECT_LE(max_abs_difference(total[0], whole[0]), 1e-12);
}

TEST(TableRows, OfNoPlacesAreNone) {
  for (const Case& c : cases()) {
    Trained by_rows(c, f32, false), whole(c, f32, true), compiled(c, f32, false);
    const auto step = function([&](Tensor indices, Tensor g) { return compiled.step(indices, g); },
                               {.input_signature = {{i32, {any_size}}, {f32, {any_size, 20}}}});
    for (const std::size_t count : {2, 0, 5}) {
      const std::vector<std::int64_t> some(batches[0].begin(), batches[0].begin() + static_cast<std::ptrdiff_t>(count));
      const Tensor g = slopes(1, static_cast<std::int64_t>(count), 20, f32);
      by_rows.step(places(some), g);
      whole.step(places(some), g);
      step(places(some), g);
    }
    expect_same(by_rows, whole, c.sums_all ? 1e-5 : 0);
    expect_same(compiled, by_rows, 0);
  }
}

TEST(TableRows, OutsideTheTableAreErrorsThatChangeNothing) {
  for (const Case& c : {cases()[0], cases()[5], cases()[9]})
    for (const std::int64_t bad : {std::int64_t{-1}, rows, std::int64_t{1} << 40}) {
      Trained trained(c, f32, false), other(c, f32, false), compiled(c, f32, false);
      const Tensor g = slopes(1, 7, 20, f32);
      const auto step = function([&](Tensor indices, Tensor slope) { return compiled.step(indices, slope); });
      std::vector<std::int64_t> wrong = batches[0];
      wrong[4] = bad;
      for (int i = 0; i < 3; ++i) {
        expect_says(error_of<OutOfRange>([&] { trained.step(places(wrong, i64), g).observed(); }), "outside [0, 5000)");
        expect_says(error_of<OutOfRange>([&] { step(places(wrong, i64), g).observed(); }), "outside [0, 5000)");
        trained.step(places(batches[1], i64), g);
        other.step(places(batches[1], i64), g);
        step(places(batches[1], i64), g);
      }
      expect_same(trained, other, 0);
      expect_same(compiled, other, 0);
    }
}

/// What is written in place is nobody else's.
TEST(TableRows, LeaveWhatIsHeldAlone) {
  for (const Case& c : {cases()[0], cases()[5]}) {
    Trained trained(c, f32, false);
    const Tensor held = trained.table.value(), before = start(rows, 20, f32);
    const auto step = function([&](Tensor indices, Tensor g) { return trained.step(indices, g); });
    for (int i = 0; i < 3; ++i) {
      step(places(batches[0]), slopes(1, 7, 20, f32));
      trained.step(places(batches[0]), slopes(1, 7, 20, f32));
    }
    EXPECT_TRUE(bitwise_equal(held, before));
    EXPECT_FALSE(bitwise_equal(trained.table.value(), before));
  }
}

TEST(TableRows, OfTwoStepsInOneProgram) {
  for (const Case& c : {cases()[0], cases()[5]}) {
    Trained by_rows(c, f32, false), whole(c, f32, true);
    const Tensor g = slopes(1, 7, 20, f32);
    const auto step = function([&](Tensor first, Tensor second) {
      by_rows.step(first, g);
      return by_rows.step(second, g);
    });
    for (int i = 0; i < 3; ++i) {
      step(places(batches[0]), places(batches[1]));
      whole.step(places(batches[0]), g);
      whole.step(places(batches[1]), g);
    }
    expect_same(by_rows, whole, 0);
  }
}

/// 0 / sqrt(0) is not 0: then all rows move, to NaN.
TEST(TableRows, WithoutEpsilonAreTheWholeTable) {
  const Case nothing =
      plain<Adagrad, AdagradOptions>("nothing", {.learning_rate = 0.1, .initial_accumulator_value = 0, .epsilon = 0});
  Trained by_rows(nothing, f32, false), whole(nothing, f32, true);
  by_rows.step(places(batches[0]), slopes(1, 7, 20, f32));
  whole.step(places(batches[0]), slopes(1, 7, 20, f32));
  expect_same(by_rows, whole, 0);
  EXPECT_TRUE(std::isnan(by_rows.table.value()[1][0].item()));
}

TEST(TableRows, OfASmallTableAreInFull) {
  Variable table(start(100, 3, f32), "table");
  GradientTape tape;
  const Gradients gradients = tape.gradient(read_once(table, places({3, 4}), slopes(1, 2, 3, f32)), Variables{table});
  EXPECT_FALSE(gradients.mean(0).is_rows());
}

}  // namespace
}  // namespace gradus::table_rows_test
