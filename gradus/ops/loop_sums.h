/// What the iterations of a loop add up to, when its gradient is made. A product of what iterations bring along is
/// added up after the loop, as one product over all of them: its factors are kept, and no iteration reads and writes a
/// sum of the size of the weights. The order of such a sum is that of one product over the rows of all iterations,
/// first to last. Everything else is carried from iteration to iteration.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

class LoopSums {
 public:
  /// What iterations take of a tensor along its first axis: `all` has the elements or rows of all of them.
  struct Taken {
    Tensor symbol, all;
  };
  /// Made within the trace of the body. `taken`: its symbols that go through a tensor; `constant`: symbols that are the
  /// same in all iterations; `stacked`: results of the body that are kept anyway.
  LoopSums(std::int64_t iterations, std::vector<Taken> taken, In constant, In stacked);

  /// The next sum, of `term` over all iterations. Empty: zeros of `spec`. Within the trace.
  void add(const Tensor& term, const Spec& spec);

  /// Symbols of the body for what is carried, what it gives back for them, and further results to keep.
  const Tensors& symbols() const { return symbols_; }
  const Tensors& next() const { return next_; }
  In kept() const { return In(stacked_).subspan(first_kept_); }
  /// After the loop: each sum. `stacked` holds what was to be kept anyway, then kept().
  Tensors results(In carried, In stacked) const;

 private:
  /// What has to be done after the loop: one tensor, of those of earlier steps, the final sums and what was kept.
  using Later = std::function<Tensor(In made, In carried, In stacked)>;
  struct Step {
    std::vector<std::size_t> of;  // the earlier steps
    Later make;
  };
  using Rows = std::function<Tensor(In stacked)>;

  /// They give the number of a step.
  std::size_t later(std::vector<std::size_t> of, Later make);
  std::size_t carried(const Tensor& term);
  std::optional<std::size_t> postponed(const Tensor& term);
  std::optional<std::size_t> newly_postponed(const Node& node);
  std::optional<std::size_t> postponed_product(const Node& product);
  std::optional<std::size_t> postponed_addition(const Node& addition);
  std::optional<std::size_t> postponed_view(const Node& view);
  std::optional<std::size_t> postponed_concat(const Node& concat);
  bool varies(const Tensor& x);
  /// [iterations, shape of x...]; nothing if that would take too much memory.
  std::optional<Rows> all_of(const Tensor& x);

  std::int64_t iterations_;
  std::vector<Taken> taken_;
  std::unordered_map<const Node*, bool> varies_;
  std::unordered_map<const Node*, std::optional<std::size_t>> postponed_;  // a term may be added to itself, and so on
  Tensors symbols_, next_, stacked_;
  std::size_t first_kept_;
  std::int64_t kept_elements_ = 0, most_elements_ = 0;  // an iteration
  std::vector<Step> steps_;
  std::vector<std::size_t> sums_;  // the steps that make them
  std::uint32_t trace_;
};

}  // namespace gradus
