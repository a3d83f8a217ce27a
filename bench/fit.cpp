/// Five epochs on Fashion-MNIST, from its files, with `fit`.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include "bench/classifier.h"
#include "bench/workloads.h"
#include "gradus/data/dataset.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/train/fit.h"

namespace gradus::bench {
namespace {

std::filesystem::path directory() {
  const char* given = std::getenv("FASHION_MNIST_DIR");
  return given ? given : "/usr/share/datasets/fashion-mnist";
}

std::pair<Tensor, Tensor> normalized(const Tensor& images, const Tensor& labels) {
  return {reshape((cast(images, f32) * (1 / 255.0) - 0.2860) * (1 / 0.3530), {-1, 784}), labels};
}

Figures fit_workload() {
  const auto train =
      data::from_idx(directory() / "train-images-idx3-ubyte.gz", directory() / "train-labels-idx1-ubyte.gz")
          .shuffle()
          .batch(64)
          .map(normalized)
          .prefetch();
  const auto test = data::from_idx(directory() / "t10k-images-idx3-ubyte.gz", directory() / "t10k-labels-idx1-ubyte.gz")
                        .batch(1000)
                        .map(normalized);
  Classifier classifier({128});
  const History history =
      fit(classifier.model, classifier.optimizer, classifier.loss_function, train, {.epochs = 5, .verbose = false});
  const Evaluation evaluation =
      evaluate(classifier.model, classifier.loss_function, test, {.metrics = {SparseCategoricalAccuracy()}});
  std::vector<double> later(history.seconds.begin() + 1, history.seconds.end());
  std::ranges::sort(later);
  const double epoch_s = later[later.size() / 2];
  Figures figures;
  figures.median_us = epoch_s * 1e6;
  figures.extra = {{"epoch_s", epoch_s},
                   {"first_epoch_s", history.seconds.front()},
                   {"test_acc", evaluation["sparse_categorical_accuracy"]}};
  return figures;
}

}  // namespace

void add_fit(Workloads& workloads) { workloads["fit"] = fit_workload; }

}  // namespace gradus::bench
