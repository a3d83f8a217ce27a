/// An epoch of images from memory, shuffled, normalised, in batches, which nobody trains with.
#include <algorithm>
#include "bench/fashion_mnist.h"
#include "bench/workloads.h"
#include "gradus/ops/random.h"
#include "gradus/ops/select.h"
#include "gradus/ops/shape.h"

namespace gradus::bench {
namespace {

std::pair<Tensor, Tensor> normalized_example(Tensor x, Tensor y) { return {normalized(x), y}; }

/// Normalised, and every other image mirrored.
std::pair<Tensor, Tensor> augmented(Tensor x, Tensor y) {
  return {normalized(where(random::uniform({}) < 0.5, reverse(x, {1}), x)), y};
}

/// The best of three epochs after one; elements are examples, or batches of them.
double examples_per_second(const Dataset<2>& dataset) {
  double best = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    const double start = seconds_now();
    std::int64_t seen = 0;
    for (auto [x, y] : dataset) seen += y.shape().rank() > 0 ? y.shape()[0] : 1;
    if (epoch > 0) best = std::max(best, static_cast<double>(seen) / (seconds_now() - start));
  }
  return best;
}

Figures pipeline() {
  const Dataset<2> images = fashion_mnist("train").shuffle();
  const std::vector<std::pair<const char*, Dataset<2>>> ways{
      {"batch_map", images.batch(64).map(normalized_example).prefetch()},
      {"map_batch", images.map(normalized_example).batch(64).prefetch()},
      {"batch_map_without_prefetch", images.batch(64).map(normalized_example)},
      {"augmented_batch", images.map(augmented).batch(64).prefetch()},
      {"augmented_one_by_one", images.map(augmented).prefetch().take(10000)}};
  Figures figures;
  nlohmann::ordered_json samples;
  for (const auto& [name, dataset] : ways) samples[name] = examples_per_second(dataset);
  figures.median_us = 64e6 / std::max(samples["batch_map"].get<double>(), samples["map_batch"].get<double>());
  figures.extra = {{"samples_per_s", samples}};
  return figures;
}

}  // namespace

void add_pipeline(Workloads& workloads) { workloads["pipeline"] = pipeline; }

}  // namespace gradus::bench
