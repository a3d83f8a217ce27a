/// Scores are looked at on the host, in f64.
#include "apps/gradus/findings.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace gradus::command {
namespace {

constexpr std::size_t shown_examples = 18;
constexpr std::int64_t most_classes = 64;  // of a confusion matrix
constexpr std::int64_t shown_features = 12;

bool is_worse(const WorstExample& a, const WorstExample& b) {
  return a.loss != b.loss ? a.loss > b.loss : a.index < b.index;
}

/// The worst so far, in order.
void keep(std::vector<WorstExample>& worst, WorstExample example) {
  if (std::isnan(example.loss)) example.loss = std::numeric_limits<double>::infinity();
  if (worst.size() == shown_examples && !is_worse(example, worst.back())) return;
  const auto place = std::ranges::upper_bound(worst, example, is_worse);
  worst.insert(place, std::move(example));
  if (worst.size() > shown_examples) worst.pop_back();
}

void add_scores(Findings& findings, std::span<const float> scores, std::int64_t truth, std::int64_t index) {
  const std::vector<double> shares = probabilities(scores);
  const auto best = static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
  if (!findings.confusion.empty()) ++findings.confusion[static_cast<std::size_t>(truth)][best];
  keep(findings.worst, {.index = index,
                        .truth = class_name(findings.classes, truth),
                        .prediction = class_name(findings.classes, static_cast<std::int64_t>(best)),
                        .loss = -std::log(shares[static_cast<std::size_t>(truth)]),
                        .probability = shares[best]});
}

void add_numbers(Findings& findings, std::span<const float> given, std::span<const float> wanted, std::int64_t index) {
  double distance = 0;
  const auto listed = [](std::span<const float> numbers) {
    std::string all;
    for (const float number : numbers.first(std::min<std::size_t>(numbers.size(), 6)))
      all += text(all.empty() ? "" : ", ", number);
    return numbers.size() > 6 ? all + " ..." : all;
  };
  for (std::size_t i = 0; i < given.size(); ++i)
    distance += std::abs(static_cast<double>(given[i]) - static_cast<double>(wanted[i]));
  keep(findings.worst, {.index = index,
                        .truth = listed(wanted),
                        .prediction = listed(given),
                        .loss = distance / static_cast<double>(given.size())});
}

std::string features_of(const Tensor& row, const std::vector<std::string>& columns) {
  std::string all;
  const auto values = row.span<float>();
  for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), shown_features); ++i)
    all += text(i > 0 ? ", " : "", i < columns.size() ? columns[i] : std::to_string(i), " = ", values[i]);
  return std::ssize(values) > shown_features ? all + " ..." : all;
}

/// The example in a form that a reader can look at.
void illustrate(WorstExample& example, const Data& data) {
  const auto [x, y] = data.test.raw.skip(example.index).first();
  const Shape& shape = x.shape();
  const bool picture = x.dtype() == u8 && (shape.rank() == 2 || (shape.rank() == 3 && shape[2] >= 1 && shape[2] <= 4));
  if (picture) example.png = encode_png(x, "report");
  else if (x.dtype() == f32 && shape.rank() == 1) example.features = features_of(x, data.facts.columns);
}

}  // namespace

std::vector<double> probabilities(std::span<const float> scores) {
  const double most = static_cast<double>(*std::ranges::max_element(scores));
  std::vector<double> shares;
  for (const float score : scores) shares.push_back(std::exp(static_cast<double>(score) - most));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

std::string class_name(const std::vector<std::string>& classes, std::int64_t number) {
  const auto i = static_cast<std::size_t>(number);
  return i < classes.size() ? classes[i] : std::to_string(number);
}

Findings examine(const Module& model, const Data& data, const DataConfig& config) {
  Findings findings{.classes = data.facts.classes};
  if (config.kind == "text") return findings;
  std::int64_t index = 0;
  for (const auto& [x, y] : batches(data.test.raw, config, test_batch(config))) {
    const Tensor prediction = cast(model(x, inference), f32);
    const std::int64_t rows = prediction.shape()[0];
    if (rows == 0 || prediction.shape().rank() != 2 || prediction.shape()[1] == 0) return findings;
    const auto width = static_cast<std::size_t>(prediction.shape()[1]);
    if (index == 0 && data.facts.of_classes && std::cmp_less_equal(width, most_classes))
      findings.confusion.assign(width, std::vector<std::int64_t>(width));
    const Tensor labels = data.facts.of_classes ? y : reshape(y, prediction.shape());
    for (std::size_t row = 0; std::cmp_less(row, rows); ++row, ++index) {
      const auto scores = prediction.span<float>().subspan(row * width, width);
      if (data.facts.of_classes) add_scores(findings, scores, labels.span<std::int32_t>()[row], index);
      else add_numbers(findings, scores, labels.span<float>().subspan(row * width, width), index);
    }
  }
  for (WorstExample& example : findings.worst) illustrate(example, data);
  return findings;
}

}  // namespace gradus::command
