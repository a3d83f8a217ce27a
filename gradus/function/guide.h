/// Guides: they tell a run of the C++ of a call which way to go at its branches on tensor values.
#pragma once
#include <string>
#include "gradus/base/rooms.h"
#include "gradus/function/one_call.h"
#include "gradus/function/trace.h"

namespace gradus {

/// Decides which way a run of a trace goes: the known way first, then by the predicates of this call.
class Guide {
 public:
  Guide(OneCall& values, const std::string& title) : values_(values), title_(title) {}

  Trace::Decision operator()(const Trace& trace, const Tensor& predicate);
  /// True if the run left the known path elsewhere than at its end: it is another program now.
  bool has_diverged(const Trace& trace) const;

 private:
  OneCall& values_;
  const std::string& title_;
  bool diverged_ = false;
};

}  // namespace gradus
