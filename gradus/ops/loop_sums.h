/// Sums over the iterations of a loop, for its gradient. A product of values that the iterations bring along is summed
/// after the loop, as one product over all of them. Its factors are kept, so no iteration reads and writes a sum of the
/// size of the weights. The order of such a sum is that of one product over the rows of all iterations, first to last.
/// All other sums are carried from iteration to iteration.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

class LoopSums {
 public:
  /// A tensor of which each iteration takes a part along the first axis. `symbol` is that part, `all` has the elements
  /// or rows of all iterations.
  struct Taken {
    Tensor symbol, all;
  };
  /// Constructed within the trace of the body. `taken`: its symbols that go through a tensor. `constant`: symbols that
  /// are the same in all iterations. `stacked`: results of the body that are kept anyway.
  LoopSums(std::int64_t iterations, std::vector<Taken> taken, In constant, In stacked);

  /// Adds the next sum, of `term` over all iterations. An empty term gives zeros of `spec`. Called within the trace.
  void add(const Tensor& term, const Spec& spec);

  /// Symbols of the body for what is carried, what it gives back for them, and further results to keep.
  const Tensors& symbols() const { return symbols_; }
  const Tensors& next() const { return next_; }
  In kept() const { return In(stacked_).subspan(first_kept_); }
  /// Called after the loop: each sum. `stacked` holds the results that were kept anyway, then kept().
  Tensors results(In carried, In stacked) const;

 private:
  /// Work after the loop: makes one tensor of those of earlier steps, the final sums and the kept values.
  using Later = std::function<Tensor(In made, In carried, In stacked)>;
  struct Step {
    std::vector<std::size_t> of;  // numbers of the earlier steps that it reads
    Later make;
  };
  using Rows = std::function<Tensor(In stacked)>;

  /// These give the number of a step.
  std::size_t later(std::vector<std::size_t> of, Later make);
  std::size_t carried(const Tensor& term);
  std::optional<std::size_t> postponed(const Tensor& term);
  std::optional<std::size_t> newly_postponed(const Node& node);
  std::optional<std::size_t> postponed_product(const Node& product);
  std::optional<std::size_t> postponed_addition(const Node& addition);
  std::optional<std::size_t> postponed_view(const Node& view);
  std::optional<std::size_t> postponed_concat(const Node& concat);
  bool varies(const Tensor& x);
  /// The values of all iterations, [iterations, shape of x...]; empty if they would take too much memory.
  std::optional<Rows> all_of(const Tensor& x);

  std::int64_t iterations_;
  std::vector<Taken> taken_;
  std::unordered_map<const Node*, bool> varies_;
  std::unordered_map<const Node*, std::optional<std::size_t>> postponed_;  // a term may be added to itself, and so on
  Tensors symbols_, next_, stacked_;
  std::size_t first_kept_;
  std::int64_t kept_elements_ = 0, most_elements_ = 0;  // per iteration
  std::vector<Step> steps_;
  std::vector<std::size_t> sums_;  // numbers of the steps that make them
  std::uint32_t trace_;
};

}  // namespace gradus
