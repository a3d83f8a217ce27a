/// Parts that fit, evaluate and predict share: data that end, the rows of this process, and errors of one rank.
#pragma once
#include <optional>
#include <string_view>
#include "gradus/base/error.h"
#include "gradus/data/pipeline.h"
#include "gradus/distribute/strategy.h"

namespace gradus {

/// The number of elements may be found out by reading them; that there is an end must be known. `what` opens errors,
/// `remedy` ends them.
void check_length(const Pipeline& dataset, std::string_view what, std::string_view remedy);

/// The rows of this process.
Pipeline distributed(const Pipeline& dataset, const std::optional<Strategy>& strategy);

/// An error of one process ends the work of all, which learn the reason. A loss that is not finite all have.
template <class Work> auto told_to_all(const std::optional<Strategy>& strategy, Work work) {
  try {
    return work();
  } catch (const Diverged&) { throw; } catch (...) {
    if (strategy) strategy->report_failure(message_of_current());
    throw;
  }
}

}  // namespace gradus
