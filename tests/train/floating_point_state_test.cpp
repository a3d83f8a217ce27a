/// What a program set of its floating-point state (fesetround, traps, subnormals) changes no bit of anything, with any
/// number of threads, whether the pool, a program or a data set was made before or after; and the program keeps it.
#include "tests/floating_point_states.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/csv.h"
#include "gradus/formats/image.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/softmax.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"
#include "gradus/train/search_space.h"
#include "tests/threads.h"

namespace gradus::floating_point_state_test {
namespace {

struct Work {
  std::string name;
  std::function<Tensors()> results;
};
void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

Tensors values_of(const Variables& variables) {
  Tensors values;
  for (const Variable& v : variables) values.push_back(v.value());
  return values;
}
Tensor numbers(const std::vector<double>& x) { return from_values(x, {std::ssize(x)}); }

/// Large enough to be divided among threads.
Tensors divided() {
  const Tensor a = random::normal({300, 310}, {.seed = 1}), b = random::normal({310, 290}, {.seed = 2});
  auto f = function([](Tensor x, Tensor y) { return softmax(matmul(x, y) / 3.0) * 0.1 + 1e-39; });
  const Tensor made = f(a, b);
  return {made,
          reduce_sum(made),
          cumsum(made),
          random::truncated_normal({100000}, {.stddev = 0.1, .seed = 4}),
          cast(a, bf16),
          cast(a * 1e-41, f16),
          cast(a * 1e9, i32)};
}

Tensors lazy_steps() {
  set_seed(7);
  Sequential model{Dense(7, gelu), BatchNormalization(), Dropout(0.3), LayerNormalization(), Dense(3, selu)};
  const Tensor x = random::normal({13, 5}, {.seed = 1});
  model.build(x.spec());
  Adam optimizer({.learning_rate = CosineDecay({.initial_learning_rate = 0.1, .decay_steps = 7, .alpha = 0.1})});
  for (int step = 0; step < 3; ++step) {
    GradientTape tape;
    const Tensor loss = reduce_mean(square(model(x, training)));
    optimizer.apply_gradients(clip_by_global_norm(tape.gradient(loss, model.trainable_variables()), 0.3));
  }
  Tensors all = values_of(model.variables());
  all.push_back(numbers({optimizer.learning_rate()}));
  return all;
}

Tensors fitted() {
  set_seed(7);
  int drawn = 0;
  const auto generated = data::from_generator(Spec{f64, {4}}, [drawn]() mutable -> std::optional<Tensor> {
    if (drawn == 40) return {};
    const double x = ++drawn;
    return numbers({1 / x, x / 3, 1e-310 / x, -x / 7});
  });
  const auto mapped =
      generated.map([](Tensor x) { return std::pair(cast(x * 0.1, f32), cast(x.rows(1, 2) / 3.0, f32)); })
          .shuffle(16, {.seed = 1})
          .batch(8);
  Sequential model{Dense(8, tanh), Dropout(0.1), Dense(1)};
  RMSprop optimizer({.learning_rate = 0.01});
  Tensors all;
  for (const bool ahead : {false, true}) {
    const History history = fit(model, optimizer, MeanSquaredError(), ahead ? mapped.prefetch() : mapped,
                                {.epochs = 2, .metrics = {MeanAbsoluteError()}, .verbose = false});
    all.push_back(numbers(history.loss));
    all.push_back(numbers(history["mean_absolute_error"]));
  }
  for (const Tensor& value : values_of(model.variables())) all.push_back(value);
  return all;
}

Tensors transformed() {
  const Tensor x = random::normal({4, 3}, {.dtype = f64, .seed = 3});
  const auto f = [](Tensor at) { return reduce_sum(sigmoid(at / 3.0) * 0.1); };
  const auto looped = while_loop([](Tensor i, Tensor) { return i < 3.3; },
                                 [](Tensor i, Tensor at) { return std::tuple(i + 0.1, at * 0.1 + i / 3.0); },
                                 std::tuple(fill({}, 0, f64), x));
  auto branching = function([](Tensor at) {
    const double third = 1.0 / 3;
    if (reduce_sum(at) * 0.1 > 0) return at * third;
    return at * (third + 0.1);
  });
  return {hessian(f, x), vectorized_map(f, x), std::get<1>(looped), branching(x), branching(-x)};
}

Tensors read() {
  const CsvTable table = parse_csv("a,b\n0.1,16777217\n1e-45,1e-46\n3.3333333333333333333,0.30000000000000000001\n",
                                   "table", CsvOptions{.label = "b"});
  std::vector<std::uint8_t> pixels(3 * 5 * 7);
  const Tensor picture = cast(iota({4, 4, 3}, f32), u8);
  resize_image(picture, 5, 7, pixels.data());
  Tensors all{table.features, table.label, from_values(pixels, {3 * 5 * 7})};
  std::ostringstream out;
  out << all[0] << random::normal({3}, {.seed = 5});
  const std::string text = out.str();
  all.push_back(from_values(std::vector<std::uint8_t>(text.begin(), text.end()), {std::ssize(text)}));
  return all;
}

Tensors searched() {
  const auto space = SearchSpace().log_uniform("rate", 1e-4, 1e-1).uniform("share", 0.1, 0.7, {.points = 7});
  std::vector<double> drawn;
  for (const auto& values : space.drawn(20, 3))
    for (const auto& [name, value] : values) drawn.push_back(std::get<double>(value));
  return {numbers(drawn)};
}

class FloatingPointStates : public testing::TestWithParam<Work> {};

TEST_P(FloatingPointStates, ChangeNoBit) {
  for (const int n : {1, 2, 3}) {  // in each of them another team is made under the first setting
    const Threads threads(n);
    expect_same_in_all_states(GetParam().results);
  }
}

INSTANTIATE_TEST_SUITE_P(Library, FloatingPointStates,
                         testing::Values(Work{"divided", divided}, Work{"lazy_steps", lazy_steps},
                                         Work{"fitted", fitted}, Work{"transformed", transformed}, Work{"read", read},
                                         Work{"searched", searched}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gradus::floating_point_state_test
