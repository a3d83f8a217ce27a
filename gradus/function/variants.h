/// The variants of one function: which one serves a call, why they were made, and which are let go.
#pragma once
#include <atomic>
#include <set>
#include <shared_mutex>
#include "gradus/base/rooms.h"
#include "gradus/function/traced_function.h"
#include "gradus/function/variant.h"

namespace gradus {

/// The common part of all variants of a function.
struct FunctionSetup {
  explicit FunctionSetup(FunctionOptions o)
      : options(std::move(o)), title(options.name.empty() ? "function" : "function " + options.name) {}

  const FunctionOptions options;
  const std::string title;
  ClosureRange closure;

  /// Bytes that a call may keep between its kernels; 0: any.
  std::int64_t budget() const;
  HandOn hand_on() const { return budget() > 0 ? HandOn::nothing : HandOn::what_is_needed; }
};

/// Thread-safe.
class Variants {
 public:
  explicit Variants(const FunctionSetup& setup) : setup_(setup) {}

  /// The newest that serves this call, and the values of its symbols; null if there is none.
  std::shared_ptr<Variant> find(const Signature& call, std::vector<std::int64_t>& symbols) const;
  /// Makes this the one that was used last.
  void use(Variant& variant) { variant.last_use = ++uses_; }

  /// Why this call needs a variant of its own; empty for the first.
  std::string reason_for(const Signature& call) const;
  /// The signature that the next variant is made for. ResourceExhausted, with all reasons so far, if there are too
  /// many.
  Signature next_pattern(const Signature& call) const;
  /// True if one more variant would only be made because ops have to know sizes, and max_variants others were made so.
  bool is_one_of_too_many(const Signature& call);
  void note_needing_sizes(const Signature& call);

  void admit(std::shared_ptr<Variant> variant, const std::string& reason, double took);
  /// Another path of a variant has been compiled.
  void note_path(Variant& variant, const Segment& begin, double took);
  void add_watched(Variant& variant, const WatchedState& watched);
  /// Takes a variant away that is of no use any more.
  void retire(const Variant& variant);
  /// The same of those whose layers have changed for good.
  void retire_outdated();

  void explain(Explanation& e) const;

 private:
  bool is_valid(Variant& variant, const std::vector<std::int64_t>& symbols) const;
  void check_number() const;
  std::size_t max_variants() const { return static_cast<std::size_t>(setup_.options.max_variants); }
  void evict();
  void warn_of_captures(const Segment& root);

  const FunctionSetup& setup_;
  mutable std::shared_mutex guard_;                 // guards the members below
  std::vector<std::shared_ptr<Variant>> variants_;  // newest last
  std::vector<Signature> examples_;                 // of all variants ever made
  std::vector<Retrace> retraces_;
  std::vector<Signature> needing_sizes_;     // examples of variants whose sizes an op had to know
  bool warned_of_op_by_op_ = false;          // that further ones are not compiled
  std::set<std::uint64_t> warned_captures_;  // by the number of their nodes
  double compile_seconds_ = 0;
  int made_ = 0;

  std::atomic<std::uint64_t> uses_{0};
};

}  // namespace gradus
