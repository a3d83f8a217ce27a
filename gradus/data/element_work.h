/// Work: a user's function of the fields of an element, compiled, for the stages that call one.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/data/stage.h"
#include "gradus/function/traced_function.h"

namespace gradus {

/// What a function of elements gives: any_size where it varies.
struct Traced {
  std::vector<Spec> arguments, specs;
  bool is_random;
};
/// A function that must know the sizes is traced with those of the first element. `stage` opens errors.
Traced trace_element(std::string_view stage, const Stage& source, const ElementFunction& f);

/// The value without its history.
Tensor settled(const Tensor& result);

/// Whether a tensor may be an element of this spec, which may have any_size.
bool fits(const Spec& given, const Spec& expected);

/// Where this thread records or traces, what `work` calls would become part of that: another thread does it.
void apart_from_recordings(const std::function<void()>& work);

class ElementWork {
 public:
  /// `trace` is called here, with symbols, and where many elements are made at once; `run` for each element.
  ElementWork(std::string stage, const Stage& source, const ElementFunction& trace, ElementFunction run);

  const std::vector<Spec>& specs() const { return specs_; }
  /// Of the traced program, what it captured, and the seed: the same for the same work in every run.
  std::uint64_t identity() const;
  bool is_random() const { return seed_.has_value(); }
  /// Random ops draw numbers that belong to the element. What goes wrong says stage and element.
  Tensors apply(In element, std::int64_t epoch, std::int64_t index) const;
  /// Whether it is worth trying apply_to_rows, of elements of known sizes: those of the results are known, and it has
  /// not failed.
  bool may_vectorize() const;
  void give_up_rows() const { has_no_rows_.store(true, std::memory_order_relaxed); }
  /// The results of the elements at `indices`, which lie one behind the other in `stacked`, one behind the other: the
  /// bits of apply(). Nothing if that cannot be done, or one of them fails: then each is to be applied by itself.
  std::optional<Tensors> apply_to_rows(In stacked, std::int64_t epoch, std::span<const std::int64_t> indices) const;
  /// Whether it is worth trying apply_to_chosen: it has not failed.
  bool may_choose() const { return !has_no_choice_.load(std::memory_order_relaxed); }
  /// The same of elements that are such rows, or the result of the one that is a batch of them: a program that reads
  /// the rows where they lie.
  std::optional<Tensors> apply_to_chosen(const ChosenRows& chosen, std::int64_t epoch,
                                         std::span<const std::int64_t> indices) const;

 private:
  /// Of the random numbers of an element.
  std::uint64_t seed_of(std::int64_t epoch, std::int64_t index) const;
  Tensor keys_of(std::int64_t epoch, std::span<const std::int64_t> indices) const;
  /// What the function makes of all rows of `in`, within a trace; behind the fields lie the keys of the elements, where
  /// they are random.
  Tensors trace_rows(In in) const;
  /// What `call` gives, computed, if that has these specs and works.
  std::optional<Tensors> results_of(const std::function<Tensors()>& call, const std::vector<Spec>& specs) const;
  std::vector<Spec> specs_of_rows(std::int64_t count) const;
  Tensors apply_here(In element, std::int64_t epoch, std::int64_t index) const;
  const std::string stage_;
  const ElementFunction trace_, run_;
  const std::unique_ptr<TracedFunction> rows_, chosen_rows_, chosen_batch_;
  mutable std::atomic<bool> has_no_rows_ = false, has_no_choice_ = false;
  std::vector<Spec> arguments_;  // that it was traced with
  std::vector<Spec> specs_;
  std::optional<std::uint64_t> seed_;  // where random ops are used
};

}  // namespace gradus
