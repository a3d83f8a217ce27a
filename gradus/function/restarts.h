/// Restarts: the reasons why one call of a function began again, and the bound on their number.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/function/variant.h"

namespace gradus {

class Restarts {
 public:
  explicit Restarts(const std::string& title) : title_(title) {}

  /// This call has made `variant`.
  void add_made(std::shared_ptr<const Variant> variant) { made_.push_back(std::move(variant)); }
  /// The call begins again, since `variant` does not hold. InvalidArgument if the call itself made it, and has begun
  /// again for this reason before: it would go on so.
  void add(const Variant& variant, std::string reason);
  /// Why the call began again last; empty: it did not, or the reason was taken.
  const std::string& reason() const { return reason_; }
  std::string take_reason() { return std::exchange(reason_, {}); }
  /// Unavailable past many: only other threads, which assign Variables that the call reads, can restart it that often.
  void count_attempt();

 private:
  const std::string& title_;
  std::vector<std::shared_ptr<const Variant>> made_;
  std::set<std::string> reasons_;
  std::string reason_;
  int attempts_ = 0;
};

/// InvalidArgument if state that a run looked at has changed since, in the run itself: no call would find it as it was.
void check_unchanged(const std::string& title, const WatchedState& watched);

}  // namespace gradus
