// Shows: forecasting a series: a data set of windows over the last two days, an LSTM, and its forecast of 12 hours
// ahead
//        against that of persistence (it stays as it was a day before that hour).
// Prints: the mean absolute error of both, in degrees (that of the network is less than two thirds).
#include <gradus/gradus.h>
#include <random>
using namespace gradus;

// Hourly temperature, pressure and wind [hours, 3]: seasons, days and fronts, which the pressure tells in advance.
Tensor weather(int hours) {
  std::mt19937 engine(7);
  std::normal_distribution<float> noise;
  std::vector<float> values;
  float front = 0, warmth = 0, wind = 0;
  for (int hour = 0; hour < hours; ++hour) {
    front = 0.97f * front + 0.5f * noise(engine);
    warmth = 0.96f * warmth - 0.15f * front;
    wind = 0.9f * wind + 0.4f * std::abs(noise(engine));
    const float season = std::sin(6.2832f * hour / (24 * 365)), day = std::sin(6.2832f * hour / 24);
    values.insert(values.end(), {10 + 8 * season + 4 * day + warmth, 1013 + 4 * front, wind});
  }
  return from_values(values, {hours, 3});
}

struct Forecast {
  LSTM memory{32, {.dropout = 0.1}};
  Dense hidden{16, relu}, temperature{1};
  Tensor operator()(const Tensor& window) const { return temperature(hidden(memory(window))); }
};

int main() {
  set_seed(1);
  const int hours = 24 * 365, past = 48, ahead = 12, split = 7000;
  const Tensor series = weather(hours), known = series.rows(0, split);
  const Tensor mean = reduce_mean(known, {.axis = {0}}), deviation = reduce_std(known, {.axis = {0}});
  const Tensor normalized = (series - mean) / deviation;
  const Tensor temperature = slice(normalized, {0, 0}, {-1, 1});

  // Windows that begin at hour i: [48, 3], and the temperature 12 hours after its end: [1].
  const auto windows = data::range(hours - past - ahead).map([=](Tensor i) {
    return std::pair{gather(normalized, i + range(past)), gather(temperature, i + past + ahead - 1)};
  });
  const auto train = windows.take(split - past - ahead).shuffle().batch(64).prefetch();
  const auto test = windows.skip(split).batch(256);

  Model<Forecast> model;
  Adam optimizer({.learning_rate = 3e-3});
  fit(model, optimizer, MeanSquaredError(), train,
      {.epochs = 6, .validation = test, .callbacks = {reduce_lr_on_plateau({.factor = 0.3, .patience = 1})}});

  const double degrees = deviation[0].item();
  const double error =
      evaluate(model, MeanSquaredError(), test, {.metrics = {MeanAbsoluteError()}})["mean_absolute_error"];
  const Tensor later = temperature.rows(split + past + ahead - 1, hours),
               before = temperature.rows(split + past + ahead - 25, hours - 24);
  const double persistence = reduce_mean(abs(later - before)).item();
  print("error in degrees", error * degrees, "of persistence", persistence * degrees);
  check(error < 0.66 * persistence, "pressure tells what comes");
}
