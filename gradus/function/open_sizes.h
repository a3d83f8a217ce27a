/// Why a call cannot be served by a program whose sizes are open, and how that is put to the user.
#pragma once
#include <string>
#include "gradus/base/error.h"
#include "gradus/function/signature.h"
#include "gradus/function/trace.h"

namespace gradus {

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
  /// What explain() says of a variant with symbol `k` of `pattern` fixed.
  std::string fixing(const Signature& pattern, int k) const {
    return text("(", places_of(pattern, k), ": this size is fixed in it, since ",
                is_of_op() ? "with it open: " + why : "the C++ of the function reads it", ")");
  }
  std::string fixing_all() const { return "(sizes are fixed in it, since with sizes that vary: " + why + ")"; }
  /// For a signature that declares these sizes.
  std::string refusal(const Signature& pattern) const {
    return text("its input signature says any_size for ", places_of(pattern, 0),
                ", but with that size open the C++ of the function is another program than with the size of this call: ",
                why,
                "; a C++ loop over a size is to be a scan, a number made of a size extent(x.shape()[0], dtype), and "
                "where C++ has to read a size, leave any_size out of the signature");
  }
};

}  // namespace gradus
