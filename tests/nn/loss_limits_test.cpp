/// Every loss over predictions and labels from {0, -0, 1, -1, inf, -inf, NaN, the largest, the smallest number}: values
/// and gradients are finite or what the limit says, where the mathematics has one. The limits are written down here, in
/// long double; NaN in them says that there is none.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include <sstream>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "gradus/ops/crossentropy.h"

namespace gradus::loss_limits_test {
namespace {

using Real = long double;
using Reals = std::vector<Real>;
constexpr Real inf = std::numeric_limits<Real>::infinity(), none = std::numeric_limits<Real>::quiet_NaN();
constexpr Real epsilon = 1e-7L;

/// Of one example: the loss, and its slope by each prediction.
struct Limit {
  Real value;
  Reals slopes;
};
using Rule = std::function<Limit(const Reals& y, const Reals& p)>;

Real times(Real a, Real b) { return a == 0 || b == 0 ? 0 : a * b; }
Real sign_of(Real x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
Real sum(const Reals& x) {
  Real total = 0;
  for (const Real each : x) total += each;
  return total;
}
bool are_shares(const Reals& y) {
  for (const Real each : y)
    if (!(each >= 0 && each <= 1)) return false;
  return true;
}
Limit no_limit(const Reals& p) { return {none, Reals(p.size(), none)}; }

Rule of_errors(Real (*value)(Real), Real (*slope)(Real)) {
  return [=](const Reals& y, const Reals& p) { return Limit{value(p[0] - y[0]), {slope(p[0] - y[0])}}; };
}

Limit percentage(const Reals& y, const Reals& p) {
  if (std::isinf(y[0])) return std::isfinite(p[0]) ? Limit{100, {0}} : std::isnan(p[0]) ? no_limit(p) : no_limit(p);
  const Real size = std::max(std::abs(y[0]), epsilon);
  return {100 * std::abs(y[0] - p[0]) / size, {-100 * sign_of(y[0] - p[0]) / size}};
}

Limit logarithmic(const Reals& y, const Reals& p) {
  if (std::isnan(y[0]) || std::isnan(p[0])) return no_limit(p);
  const Real error = std::log1p(std::max(p[0], epsilon)) - std::log1p(std::max(y[0], epsilon));
  if (p[0] == inf) return {error * error, {std::isnan(error) ? none : 0}};
  return {error * error, {p[0] > epsilon ? 2 * error / (1 + p[0]) : 0}};
}

Limit hinge_of(const Reals& y, const Reals& p, bool squared) {
  const Real t = y[0] == 0 || y[0] == 1 ? 2 * y[0] - 1 : y[0],
             margin = 1 - (p[0] == 0 && std::isinf(t) ? none : t * p[0]);
  if (std::isnan(margin) || margin == 0) return {margin, {none}};  // 0: a kink
  if (margin < 0) return {0, {0}};
  return {squared ? margin * margin : margin, {squared ? -2 * t * margin : -t}};
}

Limit poisson_of(const Reals& y, const Reals& p) {
  if (p[0] == inf && std::isfinite(y[0])) return {inf, {1}};
  const Real rate = p[0] + epsilon;
  if (!(rate > 0) || (p[0] == 1 && std::abs(y[0]) > 1e30L)) return no_limit(p);  // the logarithm of 1 + epsilon
  return {p[0] - y[0] * std::log(rate), {1 - y[0] / rate}};
}

Real clipped(Real p) { return std::isnan(p) ? p : std::min(std::max(p, epsilon), 1 - epsilon); }
bool is_clipped(Real p) { return !(p > epsilon && p < 1 - epsilon); }

Limit binary_of_shares(const Reals& y, const Reals& p) {
  if (!are_shares(y) || std::isnan(p[0])) return no_limit(p);
  const Real q = clipped(p[0]);
  return {-(y[0] * std::log(q) + (1 - y[0]) * std::log(1 - q)),
          {is_clipped(p[0]) ? 0 : (1 - y[0]) / (1 - q) - y[0] / q}};
}

Real sigmoid_of(Real x) { return 1 / (1 + std::exp(-x)); }

/// Of the positive class counting `weight` times.
Rule binary_of_logits(Real weight) {
  return [=](const Reals& y, const Reals& p) {
    const Real x = p[0], z = y[0];
    if (!are_shares(y) || std::isnan(x)) return no_limit(p);
    const Real slope = (1 - z) * sigmoid_of(x) - weight * z * sigmoid_of(-x);
    if (std::isinf(x)) return Limit{x > 0 ? times(1 - z, inf) : times(weight * z, inf), {slope}};
    const Real above = std::log1p(std::exp(-std::abs(x)));  // softplus(x) = max(x, 0) + above
    return Limit{(1 - z) * (std::max(x, Real(0)) + above) + weight * z * (std::max(-x, Real(0)) + above), {slope}};
  };
}

Rule binary_focal_of(bool logits, Real gamma) {
  return [=](const Reals& y, const Reals& given) {
    if (!are_shares(y) || std::isnan(given[0])) return no_limit(given);
    const Real t = y[0], p = logits ? sigmoid_of(given[0]) : clipped(given[0]),
               q = logits ? sigmoid_of(-given[0]) : 1 - p, wrong = t * q + (1 - t) * p;
    const Limit plain = logits ? binary_of_logits(1)(y, given) : binary_of_shares(y, given);
    if (std::pow(wrong, gamma) < 1e-60L && wrong != 0) return no_limit(given);  // it underflows, beside infinity
    const Real step = logits ? p * q : is_clipped(given[0]) ? 0 : 1;            // dp
    return Limit{times(std::pow(wrong, gamma), plain.value),
                 {times(std::pow(wrong, gamma), plain.slopes[0]) +
                  times(times(gamma * (1 - 2 * t), step), times(std::pow(wrong, gamma - 1), plain.value))}};
  };
}

/// log(softmax(x)); empty where there is no limit.
Reals log_shares(const Reals& x) {
  const auto infinite = std::count(x.begin(), x.end(), inf);
  const Real largest = *std::max_element(x.begin(), x.end());
  for (const Real each : x)
    if (std::isnan(each)) return {};
  if (infinite > 1 || largest == -inf) return {};
  Reals out;
  Real total = 0;
  for (const Real each : x) out.push_back(each == largest ? 0 : each - largest);
  for (const Real each : out) total += std::exp(each);
  for (Real& each : out) each -= std::log(total);
  return out;
}

Rule focal_of_logits(Real gamma) {
  return [=](const Reals& y, const Reals& x) {
    const Reals log_p = log_shares(x);
    if (log_p.empty() || !are_shares(y)) return no_limit(x);
    Limit result{0, Reals(x.size())};
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (y[i] > 0 && y[i] < 1e-30L && log_p[i] < -1e37L) return no_limit(x);  // that logarithm is out of range
      const Real p = std::exp(log_p[i]), rest = gamma == 0 ? 1 : std::pow(1 - p, gamma);
      const Real turn = p == 1 ? 0 : times(gamma * std::pow(1 - p, gamma - 1), times(p, log_p[i]));
      result.value -= times(y[i] * rest, log_p[i]);
      for (std::size_t j = 0; j < x.size(); ++j)
        result.slopes[j] += times(y[i], (turn - rest) * ((i == j ? 1 : 0) - std::exp(log_p[j])));
    }
    return result;
  };
}

/// p / sum(p), and how much a step of p is in it; empty where there is no limit.
std::pair<Reals, Real> shares_of_sum(const Reals& p) {
  Reals out;
  const auto infinite = std::count_if(p.begin(), p.end(), [](Real x) { return std::isinf(x); });
  const Real total = sum(p);
  if (std::isnan(total) || total == 0 || infinite > 1) return {{}, 0};
  for (const Real each : p) out.push_back(infinite ? (std::isinf(each) ? 1 : 0) : each / total);
  return {out, infinite ? 0 : 1 / total};
}

Rule focal_of_shares(Real gamma) {
  return [=](const Reals& y, const Reals& given) {
    const auto [s, step] = shares_of_sum(given);
    if (s.empty() || !are_shares(y)) return no_limit(given);
    Limit result{0, Reals(given.size())};
    for (std::size_t i = 0; i < s.size(); ++i) {
      const Real p = clipped(s[i]), rest = gamma == 0 ? 1 : std::pow(1 - p, gamma);
      result.value -= y[i] * rest * std::log(p);
      if (is_clipped(s[i])) continue;
      const Real slope = -y[i] * (rest / p - (gamma == 0 ? 0 : gamma * std::pow(1 - p, gamma - 1) * std::log(p)));
      for (std::size_t j = 0; j < s.size(); ++j) result.slopes[j] += slope * ((i == j ? 1 : 0) - s[i]) * step;
    }
    return result;
  };
}

Limit divergence(const Reals& y, const Reals& p) {
  Limit result{0, {}};
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (std::isnan(y[i]) || std::isnan(p[i])) return no_limit(p);
    const Real t = std::min(std::max(y[i], epsilon), Real(1)), q = std::min(std::max(p[i], epsilon), Real(1));
    result.value += t * std::log(t / q);
    result.slopes.push_back(p[i] == 1 ? none : p[i] > epsilon && p[i] < 1 ? -t / q : 0);
  }
  return result;
}

/// x / |x| and |x|; empty where there is no limit.
std::pair<Reals, Real> direction(const Reals& x) {
  Real squares = 0;
  for (const Real each : x) squares += each * each;
  const auto infinite = std::count_if(x.begin(), x.end(), [](Real each) { return std::isinf(each); });
  if (std::isnan(squares) || infinite > 1) return {{}, 0};
  const Real length = std::max(std::sqrt(squares), Real(1e-12L));
  Reals out;
  for (const Real each : x) out.push_back(infinite ? (std::isinf(each) ? sign_of(each) : 0) : each / length);
  return {out, length};
}

Limit cosine(const Reals& y, const Reals& p) {
  const auto [u, ignored] = direction(y);
  const auto [v, length] = direction(p);
  if (u.empty() || v.empty()) return no_limit(p);
  Real both = 0;
  for (std::size_t i = 0; i < p.size(); ++i) both += u[i] * v[i];
  Limit result{-both, {}};
  const bool is_short = length == 1e-12L;
  for (std::size_t i = 0; i < p.size(); ++i) result.slopes.push_back(-(u[i] - (is_short ? 0 : both * v[i])) / length);
  return result;
}

Limit categorical_hinge_of(const Reals& y, const Reals& p) {
  Real right = 0, wrong = -inf;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!are_shares(y) || std::isnan(p[i])) return no_limit(p);
    right += times(y[i], p[i]), wrong = std::max(wrong, times(1 - y[i], p[i]));
  }
  const Real margin = wrong - right + 1;
  Limit result{std::isnan(margin) ? none : std::max(margin, Real(0)), {}};
  int ties = std::isinf(wrong) ? 2 : 0;
  for (std::size_t i = 0; i < p.size(); ++i) ties += std::abs(times(1 - y[i], p[i]) - wrong) < 1e-4L;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const bool is_kink = std::isnan(margin) || margin == 0 || ties > 1;
    const Real slope = (times(1 - y[i], p[i]) == wrong ? 1 - y[i] : 0) - y[i];
    result.slopes.push_back(is_kink ? none : margin > 0 ? slope : 0);
  }
  return result;
}

/// Dice is 1 - 2 both / (sum of both kinds); Tversky of alpha = beta = 1/2 the same but for its epsilon.
Limit overlap(const Reals& y, const Reals& p) {
  if (!are_shares(y) || std::isnan(sum(p))) return no_limit(p);
  Real both = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (std::isinf(p[i])) return std::isinf(p[1 - i]) ? no_limit(p) : Limit{1 - 2 * y[i], Reals(p.size(), 0)};
    both += y[i] * p[i];
  }
  const Real all = sum(y) + sum(p) + epsilon;
  if (std::abs(all) < 0.02L * (sum(y) + std::abs(p[0]) + std::abs(p[1]))) return no_limit(p);  // beside a pole
  Limit result{1 - 2 * both / all, {}};
  for (std::size_t i = 0; i < p.size(); ++i) result.slopes.push_back(-2 * (y[i] - both / all) / all);
  return result;
}

Limit generalized(const Reals& y, const Reals& p) {
  Limit result{0, Reals(p.size())};
  for (std::size_t i = 0; i < p.size(); ++i)
    if (y[i] == 1) {
      if (!(p[i] >= 0)) return no_limit(p);
      result.value = (1 - std::sqrt(p[i])) / 0.5L;
      result.slopes[i] = std::signbit(p[i]) ? none : -1 / std::sqrt(p[i]);
    }
  return result;
}

Limit log_poisson(const Reals& z, const Reals& x) {
  if (!std::isfinite(z[0])) return no_limit(x);
  return {x[0] == inf ? inf : std::exp(x[0]) - times(x[0], z[0]), {std::exp(x[0]) - z[0]}};
}

/// As the cross entropy, but an impossible alignment pulls nowhere.
Limit one_step(const Reals& y, const Reals& p) {
  const Limit limit = focal_of_logits(0)(y, p);
  return limit.value > 1e37L ? Limit{limit.value, Reals(p.size(), limit.value == inf ? 0 : none)} : limit;
}

using PerExample = std::function<Tensor(const Tensor& y, const Tensor& p)>;

struct Case {
  std::string name;
  std::size_t places;  // of a prediction
  Rule limit;
  PerExample each;  // [n, places] -> [n]
  std::optional<LossFunction> loss = {};
};

/// One-hot labels as classes.
Tensor classes_of(const Tensor& y) { return argmax(y, -1); }
PerExample of_classes(PerExample f) {
  return [f = std::move(f)](const Tensor& y, const Tensor& p) { return f(classes_of(y), p); };
}
PerExample of_column(PerExample f) {
  return [f = std::move(f)](const Tensor& y, const Tensor& p) { return squeeze(f(y, p), {1}); };
}

std::vector<Case> cases() {
  const BinaryFocalOptions sharp{.gamma = 0.5}, square_{.gamma = 2};
  const CategoricalFocalOptions one{.alpha = 1, .gamma = 2}, half{.alpha = 1, .gamma = 0.5};
  const auto huber_value = [](Real e) { return std::abs(e) <= 1 ? e * e / 2 : std::abs(e) - 0.5L; };
  const auto huber_slope = [](Real e) { return std::abs(e) <= 1 ? e : sign_of(e); };
  const auto log_cosh_value = [](Real e) {
    return std::abs(e) + std::log1p(std::exp(-2 * std::abs(e))) - std::log(2.0L);
  };
  return {
      {"squared", 1, of_errors([](Real e) { return e * e; }, [](Real e) { return 2 * e; }), mean_squared_error,
       MeanSquaredError()},
      {"absolute", 1, of_errors([](Real e) { return std::abs(e); }, sign_of), mean_absolute_error,
       PerExampleLoss(mean_absolute_error)},
      {"percentage", 1, percentage, mean_absolute_percentage_error, MeanAbsolutePercentageError()},
      {"logarithmic", 1, logarithmic, mean_squared_logarithmic_error, MeanSquaredLogarithmicError()},
      {"log_cosh", 1, of_errors(log_cosh_value, [](Real e) { return std::tanh(e); }), log_cosh, LogCosh()},
      {"huber", 1, of_errors(huber_value, huber_slope), [](const Tensor& y, const Tensor& p) { return huber(y, p); },
       Huber()},
      {"hinge", 1, [](const Reals& y, const Reals& p) { return hinge_of(y, p, false); }, {}, Hinge()},
      {"squared hinge", 1, [](const Reals& y, const Reals& p) { return hinge_of(y, p, true); }, {}, SquaredHinge()},
      {"poisson", 1, poisson_of, poisson, Poisson()},
      {"binary of shares", 1, binary_of_shares,
       [](const Tensor& y, const Tensor& p) { return binary_crossentropy(y, p, from_probabilities); },
       BinaryCrossentropy(from_probabilities)},
      {"binary", 1, binary_of_logits(1),
       [](const Tensor& y, const Tensor& p) { return binary_crossentropy(y, p, from_logits); },
       BinaryCrossentropy(from_logits)},
      {"binary focal", 1, binary_focal_of(true, 2),
       [=](const Tensor& y, const Tensor& p) { return binary_focal_crossentropy(y, p, from_logits, square_); },
       BinaryFocalCrossentropy(from_logits, square_)},
      {"binary focal of 1/2", 1, binary_focal_of(true, 0.5),
       [=](const Tensor& y, const Tensor& p) { return binary_focal_crossentropy(y, p, from_logits, sharp); },
       BinaryFocalCrossentropy(from_logits, sharp)},
      {"binary focal of shares", 1, binary_focal_of(false, 2),
       [=](const Tensor& y, const Tensor& p) { return binary_focal_crossentropy(y, p, from_probabilities, square_); },
       BinaryFocalCrossentropy(from_probabilities, square_)},
      {"categorical", 2, focal_of_logits(0),
       [](const Tensor& y, const Tensor& p) { return categorical_crossentropy(y, p, from_logits); },
       CategoricalCrossentropy(from_logits)},
      {"categorical of shares", 2, focal_of_shares(0),
       [](const Tensor& y, const Tensor& p) { return categorical_crossentropy(y, p, from_probabilities); },
       CategoricalCrossentropy(from_probabilities)},
      {"focal", 2, focal_of_logits(2),
       [=](const Tensor& y, const Tensor& p) { return categorical_focal_crossentropy(y, p, from_logits, one); },
       CategoricalFocalCrossentropy(from_logits, one)},
      {"focal of 1/2", 2, focal_of_logits(0.5),
       [=](const Tensor& y, const Tensor& p) { return categorical_focal_crossentropy(y, p, from_logits, half); },
       CategoricalFocalCrossentropy(from_logits, half)},
      {"focal of shares", 2, focal_of_shares(2),
       [=](const Tensor& y, const Tensor& p) { return categorical_focal_crossentropy(y, p, from_probabilities, one); },
       CategoricalFocalCrossentropy(from_probabilities, one)},
      {"sparse", 2, focal_of_logits(0),
       of_classes([](const Tensor& y, const Tensor& p) { return sparse_categorical_crossentropy(y, p, from_logits); })},
      {"divergence", 2, divergence, kl_divergence, KLDivergence()},
      {"cosine", 2, cosine, [](const Tensor& y, const Tensor& p) { return cosine_similarity(y, p); },
       CosineSimilarity()},
      {"categorical hinge", 2, categorical_hinge_of, categorical_hinge, CategoricalHinge()},
      {"dice", 2, overlap, [](const Tensor& y, const Tensor& p) { return dice(y, p, {.axis = {1}}); },
       Dice({.axis = {1}})},
      {"tversky", 2, overlap, [](const Tensor& y, const Tensor& p) { return tversky(y, p, {.axis = {1}}); },
       Tversky({.axis = {1}})},
      {"generalized", 2, generalized,
       of_classes([](const Tensor& y, const Tensor& p) { return categorical_generalized_cross_entropy(y, p); })},
      {"ctc of one step", 2, one_step, of_classes([](const Tensor& y, const Tensor& p) {
         // Labels fill up with blanks, so the label 1 is a row of one and the label 0 one of none.
         return ctc(expand_dims(y, 1), expand_dims(p, 1));
       })},
      {"tf.nn sigmoid", 1, binary_of_logits(1), of_column(sigmoid_cross_entropy_with_logits)},
      {"tf.nn weighted", 1, binary_of_logits(3), of_column([](const Tensor& y, const Tensor& p) {
         return weighted_cross_entropy_with_logits(y, p, fill({1}, 3, p.dtype()));
       })},
      {"tf.nn softmax", 2, focal_of_logits(0),
       [](const Tensor& y, const Tensor& p) { return softmax_cross_entropy_with_logits(y, p); }},
      {"tf.nn sparse", 2, focal_of_logits(0), of_classes(sparse_softmax_cross_entropy_with_logits)},
      {"tf.nn log_poisson", 1, log_poisson,
       of_column([](const Tensor& y, const Tensor& p) { return log_poisson_loss(y, p); })},
  };
}

struct Range {
  Real smallest, largest;
};
Range range_of(DType t) {
  const auto of = [](auto limits) { return Range{limits.min(), limits.max()}; };
  if (t == f64) return of(std::numeric_limits<double>());
  if (t == f16) return {6.103515625e-5L, 65504};
  return of(std::numeric_limits<float>());
}

struct Table {
  std::vector<Reals> labels, predictions;
};

Table table(std::size_t places, bool one_hot, DType t) {
  const auto [smallest, largest] = range_of(t);
  const Real big = t == bf16 ? 3.3895313892515355e38L : largest;
  const Reals values{0, -0.0L, 1, -1, 0.5L, inf, -inf, none, big, -big, smallest, 1e-3L};
  std::vector<Reals> rows, labels{{1, 0}, {0, 1}};
  if (places == 1)
    for (const Real each : values) rows.push_back({each});
  else
    for (const Real a : values)
      for (const Real b : values) rows.push_back({a, b});
  if (!one_hot)
    for (const Reals& more : {Reals{0.5L, 0.5L}, Reals{0, 0}, Reals{-0.0L, 1}, Reals{smallest, 1}, Reals{inf, 0},
                              Reals{none, 0}, Reals{-1, 1}, Reals{big, 1}})
      labels.push_back(more);
  Table result;
  for (const Reals& y : places == 1 ? rows : labels)
    for (const Reals& p : rows) result.labels.push_back(y), result.predictions.push_back(p);
  return result;
}

Tensor as_tensor(const std::vector<Reals>& rows, DType t) {
  std::vector<double> values;
  for (const Reals& row : rows) values.insert(values.end(), row.begin(), row.end());
  return cast(from_values(values, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())}),
              t);
}

std::string text_of(const Reals& row) {
  std::ostringstream text;
  for (const Real each : row) text << each << ' ';
  return text.str();
}

/// What is beyond the range of the dtype is infinite, or the largest number.
bool agrees(double got, Real expected, Real largest, double tolerance) {
  if (std::isnan(expected)) return true;
  if (std::abs(expected) > largest * 0.98L) return got * sign_of(expected) > static_cast<double>(largest * 0.9L);
  return std::abs(got - expected) <= tolerance * std::max(std::abs(expected), Real(0.01L));
}

bool is_one_hot(const Case& each) {
  return each.name == "sparse" || each.name == "generalized" || each.name == "tf.nn sparse" ||
         each.name == "ctc of one step";
}

TEST(LossLimits, OfFunctions) {
  for (const Case& each : cases()) {
    if (!each.each) continue;
    for (const DType t : {f64, f32}) {
      const Table rows = table(each.places, is_one_hot(each), t);
      const Tensor y = as_tensor(rows.labels, t), p = as_tensor(rows.predictions, t);
      GradientTape tape;
      tape.watch(p);
      const Tensor losses = each.each(y, p);
      const std::vector<double> values = cast(losses, f64).to_vector<double>(),
                                slopes = cast(tape.gradient(reduce_sum(losses), p), f64).to_vector<double>();
      ASSERT_EQ(values.size(), rows.labels.size()) << each.name;
      const Real largest = range_of(t).largest;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_nan = each.places == 1 && std::isnan(rows.predictions[i][0]);
        EXPECT_TRUE(!is_nan || std::isnan(values[i])) << each.name << " hides a NaN";
        const Limit limit = each.limit(rows.labels[i], rows.predictions[i]);
        EXPECT_TRUE(agrees(values[i], limit.value, largest, 0.02))
            << each.name << ' ' << t << ": y " << text_of(rows.labels[i]) << "p " << text_of(rows.predictions[i])
            << "is " << values[i] << ", its limit " << static_cast<double>(limit.value);
        for (std::size_t j = 0; j < each.places; ++j)
          EXPECT_TRUE(agrees(slopes[i * each.places + j], limit.slopes[j], largest, 0.02))
              << each.name << ' ' << t << ": y " << text_of(rows.labels[i]) << "p " << text_of(rows.predictions[i])
              << "has the slope " << slopes[i * each.places + j] << " at " << j << ", its limit "
              << static_cast<double>(limit.slopes[j]);
      }
    }
  }
}

/// One example at a time, compiled; narrow floats are computed in f32.
TEST(LossLimits, OfClasses) {
  for (const Case& each : cases()) {
    if (!each.loss) continue;
    for (const DType t : {f32, f16, bf16}) {
      auto run = function([&](Tensor y, Tensor p) {
        GradientTape tape;
        tape.watch(p);
        const Loss loss = (*each.loss)(y, p);
        return std::pair{loss.value(), tape.gradient(loss, p)};
      });
      const Table rows = table(each.places, is_one_hot(each), t);
      for (std::size_t i = 0; i < rows.labels.size(); ++i) {
        const auto [value, gradient] = run(as_tensor({rows.labels[i]}, t), as_tensor({rows.predictions[i]}, t));
        const std::vector<double> slopes = cast(gradient, f64).to_vector<double>();
        const Limit limit = each.limit(rows.labels[i], rows.predictions[i]);
        EXPECT_TRUE(agrees(cast(value, f64).item(), limit.value, range_of(f32).largest, 0.02))
            << each.name << ' ' << t << ": y " << text_of(rows.labels[i]) << "p " << text_of(rows.predictions[i])
            << "is " << value.item() << ", its limit " << static_cast<double>(limit.value);
        for (std::size_t j = 0; j < each.places; ++j)
          EXPECT_TRUE(agrees(slopes[j], limit.slopes[j], range_of(t).largest, 0.02))
              << each.name << ' ' << t << ": y " << text_of(rows.labels[i]) << "p " << text_of(rows.predictions[i])
              << "has the slope " << slopes[j] << ", its limit " << static_cast<double>(limit.slopes[j]);
      }
    }
  }
}

/// Targets of any type are those of the prediction's: NumPy's are f64, masks boolean.
TEST(LossTargets, OfAnyTypeAreCast) {
  for (const Case& each : cases()) {
    if (!each.loss) continue;
    for (const DType t : {f64, f32, f16, bf16}) {
      const Tensor p = cast(constant({{0.25, 0.5}, {0.75, 0.125}, {0.5, 0.25}}), t);
      const Tensor prediction = each.places == 1 ? slice(p, {0, 0}, {-1, 1}) : p;
      const Tensor y = constant({{1.0, 0.0}, {0.0, 1.0}, {1.0, 0.0}});
      const Tensor targets = each.places == 1 ? slice(y, {0, 0}, {-1, 1}) : y;
      const auto run = [&](const Tensor& given) {
        GradientTape tape;
        tape.watch(prediction);
        const Loss loss = (*each.loss)(given, prediction);
        return std::pair{loss.value(), tape.gradient(loss, prediction)};
      };
      const auto [value, gradient] = run(cast(targets, t));
      for (const DType of_y : {f64, f32, f16, bf16, i64, i32, u8, boolean}) {
        const auto [same, same_gradient] = run(cast(targets, of_y));
        EXPECT_TRUE(bitwise_equal(same, value)) << each.name << ' ' << of_y << " beside " << t;
        EXPECT_TRUE(bitwise_equal(same_gradient, gradient)) << each.name << ' ' << of_y << " beside " << t;
        if (!each.each) continue;
        EXPECT_TRUE(bitwise_equal(each.each(cast(targets, of_y), prediction), each.each(cast(targets, t), prediction)))
            << each.name << ' ' << of_y << " beside " << t;
      }
    }
  }
}

}  // namespace
}  // namespace gradus::loss_limits_test
