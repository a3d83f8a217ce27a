/// A user's function of the fields of an element, compiled, for the stages that call one.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/data/stage.h"
#include "gradus/function/traced_function.h"

namespace gradus {

/// The result of tracing a function of elements, with any_size where it varies.
struct Traced {
  std::vector<Spec> arguments, specs;
  bool is_random;
  bool branches = false;  // in C++, on values of the element: there is no trace of it, and it may draw random numbers
};
/// Traces f. If f must know the sizes, it is traced with those of the first element. If it branches on values, it is
/// run for the first element. `stage` opens errors.
Traced trace_element(std::string_view stage, const Stage& source, const ElementFunction& f);

/// The value without its history.
Tensor settled(const Tensor& result);

/// The value of a scalar of an integer type.
std::int64_t integer_of(const Tensor& scalar);

/// True if a tensor may be an element of the spec `expected`, which may have any_size.
bool fits(const Spec& given, const Spec& expected);

/// Runs `work` apart if this thread records or traces, so that its calls do not become part of that.
void apart_from_recordings(const std::function<void()>& work);

/// A user's function of elements, with its compiled forms.
class ElementWork {
 public:
  /// `trace` is called with symbols, here and where many elements are made at once; `run` is called per element.
  ElementWork(std::string stage, const Stage& source, const ElementFunction& trace, ElementFunction run);

  /// The same work, with the same random numbers, for elements of another source.
  std::shared_ptr<const ElementWork> for_source(const Stage& source) const;

  /// Specs of the results.
  const std::vector<Spec>& specs() const { return specs_; }
  /// A hash of the traced program, its captures, and the seed: equal for the same work in every run. Of a function that
  /// branches on values in C++ it is one of the seed.
  std::uint64_t identity() const;
  /// True if random ops are used.
  bool is_random() const { return seed_.has_value(); }
  /// Results for one element. Random ops draw numbers that belong to the element. Errors name stage and element.
  Tensors apply(In element, std::int64_t epoch, std::int64_t index) const;
  /// True if it is worth trying apply_to_rows for elements of known sizes: the sizes of the results are known, and it
  /// has not failed.
  bool may_vectorize() const;
  /// Turns may_vectorize() off.
  void give_up_rows() const { has_no_rows_.store(true, std::memory_order_relaxed); }
  /// Results for the elements at `indices`, which are contiguous in `stacked`. The results are contiguous, too, with
  /// the bits of apply(). Empty if that cannot be done, or if it fails for an element: then apply() each by itself.
  std::optional<Tensors> apply_to_rows(In stacked, std::int64_t epoch, std::span<const std::int64_t> indices) const;
  /// True if it is worth trying apply_to_chosen: it has not failed.
  bool may_choose() const { return !has_no_choice_.load(std::memory_order_relaxed); }
  /// apply_to_rows for elements that are such rows, or apply() for one that is a batch of them: a program that reads
  /// the rows in place.
  std::optional<Tensors> apply_to_chosen(const ChosenRows& chosen, std::int64_t epoch,
                                         std::span<const std::int64_t> indices) const;
  /// True if, as is certain, apply() to `part` rows of an element of `whole` rows gives these rows of its results.
  /// `given`: specs of an element, whose rows may vary.
  bool keeps_rows_apart(const std::vector<Spec>& given, std::int64_t whole, std::int64_t part) const;

 private:
  /// The seed of the random numbers of an element.
  std::uint64_t seed_of(std::int64_t epoch, std::int64_t index) const;
  Tensor keys_of(std::int64_t epoch, std::span<const std::int64_t> indices) const;
  /// The function applied to all rows of `in`, within a trace. If it is random, the keys of the elements follow the
  /// fields.
  Tensors trace_rows(In in) const;
  /// The computed result of `call`, if it has these specs and works.
  std::optional<Tensors> results_of(const std::function<Tensors()>& call, const std::vector<Spec>& specs) const;
  std::vector<Spec> specs_of_rows(std::int64_t count) const;
  bool finds_rows_apart(const std::vector<Spec>& given, std::int64_t whole, std::int64_t part) const;
  Tensors apply_here(In element, std::int64_t epoch, std::int64_t index) const;
  const std::string stage_;
  const ElementFunction trace_, run_;
  const std::unique_ptr<TracedFunction> rows_, chosen_rows_, chosen_batch_;
  mutable std::atomic<bool> has_no_rows_ = false, has_no_choice_ = false;
  mutable std::mutex guard_;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, bool> rows_apart_;  // results of keeps_rows_apart
  std::vector<Spec> arguments_;                                               // specs that it was traced with
  std::vector<Spec> specs_;
  std::optional<std::uint64_t> seed_;  // only if random ops are used
  bool branches_ = false;
};

/// `work`, of elements of `before`, for those of `now`.
inline std::shared_ptr<const ElementWork> work_of(const std::shared_ptr<const ElementWork>& work, const Stage& before,
                                                  const Stage& now) {
  return before.specs() == now.specs() ? work : work->for_source(now);
}

}  // namespace gradus
