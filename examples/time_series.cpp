// Shows: windows over a series, a small model that forecasts the next value, and a forecast far beyond the series.
// Prints: the error of the forecast in the last epoch and without a model (the last value again), and values ahead.
#include <gradus/gradus.h>
#include <numbers>
using namespace gradus;

int main() {
  set_seed(1);
  constexpr std::int64_t hours = 1000, known = 24;
  // Two waves of other lengths, and noise.
  const Tensor time = cast(range(hours), f32);
  const Tensor waves = sin(time * (2 * std::numbers::pi / 24)) + 0.5 * sin(time * (2 * std::numbers::pi / 7));
  const Tensor series = reshape(waves + random::normal({hours}, {.stddev = 0.05}), {hours, 1});

  // Sequences of 24 values; the target of each is the value that follows it.
  const Tensor following = series.rows(known, hours);
  const auto train = data::timeseries_dataset_from_array(series, following, known,
                                                         {.batch_size = 32, .shuffle = true, .end_index = 800});
  const auto test = data::timeseries_dataset_from_array(series, following, known, {.start_index = 800});
  print("sequences", train.first()[0].shape(), "targets", train.first()[1].shape());
  check(train.first()[0].shape() == Shape{32, known, 1} && train.first()[1].shape() == Shape{32, 1}, "sequences of 24");

  // The same by windows: 25 values are a sequence and its target.
  const auto windows = data::from_tensor_slices(series)
                           .window(known + 1, {.shift = 1, .drop_remainder = true})
                           .batch()
                           .map([](Tensor x) { return std::pair{x.rows(0, known), x[-1]}; });
  check(bitwise_equal(windows.skip(5).first()[1], following[5]), "the value that follows");

  Sequential model{Flatten(), Dense(16, relu), Dense(1)};
  Adam optimizer({.learning_rate = 0.01});
  const History history = fit(model, optimizer, MeanSquaredError(), train, {.epochs = 15, .verbose = false});
  const double error = evaluate(model, MeanSquaredError(), test).loss;
  const double naive =
      test.unbatch()
          .reduce(constant(0.0), [](Tensor sum, Tensor x, Tensor y) { return sum + reduce_sum(square(x[-1] - y)); })
          .item() /
      static_cast<double>(test.unbatch().cardinality().value());
  print("loss", history.loss.back(), "on later hours", error, "with the last value again", naive);
  check(error < 0.1 * naive, "the model has learnt the waves");

  // Its own forecasts are the input of the next ones.
  Tensor recent = series.rows(hours - known, hours);
  for (int i = 0; i < 6; ++i) {
    const Tensor next = model(reshape(recent, {1, known, 1}));
    print("hour", hours + i, next[0]);
    recent = concat({recent.rows(1, known), next}, 0);
  }
  check(recent.shape() == Shape{known, 1}, "24 values again");
}
