/// The known way first, then evaluation.
#include "gradus/function/guide.h"
#include "gradus/function/variant.h"

namespace gradus {

Trace::Decision Guide::operator()(const Trace& trace, const Tensor& predicate) {
  const auto& constants = trace.memory().constants();
  if (const auto known = constants.find(predicate.node().get()); known != constants.end()) return {known->second, true};
  const std::size_t k = trace.guards().size();
  if (!diverged_ && k < values_.path().size()) {
    const PathStep& step = values_.path()[k];
    if (step.segment->predicate.node() == predicate.node()) return {step.taken};
    diverged_ = true;
  }
  require<ResourceExhausted>(
      k < Variant::most_guards, title_, ": more than ", Variant::most_guards,
      " C++ branches on tensor values in one call, each of them a guard; make a loop whose length depends on values "
      "a while_loop, one of known length a scan, and a branch a cond");
  return values_.evaluate(trace, predicate);
}

bool Guide::has_diverged(const Trace& trace) const {
  return diverged_ || trace.guards().size() < values_.path().size();
}

}  // namespace gradus
