/// Five epochs on Fashion-MNIST, from its files, with `fit`.
#include <algorithm>
#include "bench/classifier.h"
#include "bench/fashion_mnist.h"
#include "bench/workloads.h"
#include "gradus/ops/shape.h"
#include "gradus/train/fit.h"

namespace gradus::bench {
namespace {

Figures fit_workload() {
  const auto flat = [](Tensor x, Tensor y) { return std::pair{reshape(normalized(x), {-1, 784}), y}; };
  const auto train = fashion_mnist("train").shuffle().batch(64).map(flat).prefetch();
  const auto test = fashion_mnist("t10k").batch(1000).map(flat);
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
