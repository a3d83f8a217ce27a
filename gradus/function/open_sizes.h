/// The reasons why a call cannot be served by a program whose sizes are open, as messages for the user.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/function/signature.h"
#include "gradus/function/trace.h"
#include "gradus/graph/graph.h"

namespace gradus {

/// How many ops a run with symbols may apply, where one with sizes applied `known`: C++ that counts with a negative
/// number may never end.
inline std::size_t applications_after(std::size_t known) { return std::max(4 * known, Trace::most_of_open_sizes); }

/// Library functions leave ops away where a size is 0 or 1; a trace does not show if they did, or if the C++ read the
/// size.
inline bool has_small(const std::vector<std::int64_t>& sizes) {
  return std::ranges::any_of(sizes, [](std::int64_t size) { return size <= 1; });
}

/// True if such a size stands within `open`, where it follows from these: a window of an input of two may have one
/// place.
inline bool has_small_within(const Graph& open, std::span<const std::int64_t> symbols) {
  return std::ranges::any_of(open.values, [&](const Value& v) {
    return std::ranges::any_of(v.spec.shape, [&](std::int64_t d) {
      return dimension::is_symbolic(d) && static_cast<std::size_t>(dimension::symbols_in(d)) <= symbols.size() &&
             dimension::evaluate(d, symbols) <= 1;
    });
  });
}

/// The message, told once, that there are too many variants.
inline std::string going_op_by_op(const std::string& title, std::size_t variants, const std::string& reason) {
  return text("gradus: ", title, " has ", variants, " variants, each for sizes of its own (", reason,
              "); calls with further sizes run op by op, which is slower: pad to fewer sizes, or raise max_variants\n");
}

/// Why open sizes make another program, or none at all.
struct Unlike {
  enum class Cause { another_program, exception, op };
  std::string why;
  Cause cause = Cause::another_program;

  /// An op had to know a size: that is no mistake of the user's C++.
  bool is_of_op() const { return cause == Cause::op; }
  static Unlike by(const std::exception& error) {
    const bool is_of_op = dynamic_cast<const Error*>(&error) && !dynamic_cast<const MistakeOfCpp*>(&error);
    return {error.what(), is_of_op ? Cause::op : Cause::exception};
  }
  /// The line of explain() for a variant with symbol `k` of `pattern` fixed.
  std::string fixing(const Signature& pattern, int k) const {
    return text("(", places_of(pattern, k), ": this size is fixed in it, since ",
                is_of_op() ? "with it open: " + why : "the C++ of the function reads it", ")");
  }
  std::string fixing_all() const { return "(sizes are fixed in it, since with sizes that vary: " + why + ")"; }
  /// For a signature that declares these sizes.
  std::string refusal(const Signature& pattern) const {
    return text(
        "its input signature says any_size for ", places_of(pattern, 0),
        ", but with that size open the C++ of the function is another program than with the size of this call: ", why,
        "; a C++ loop over a size is to be a scan, a number made of a size extent(x.shape()[0], dtype), and "
        "where C++ has to read a size, leave any_size out of the signature");
  }
};

}  // namespace gradus
