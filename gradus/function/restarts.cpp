/// Bounds on restarts of a call. Decision 190 has the reasons.
#include "gradus/function/restarts.h"
#include <algorithm>
#include "gradus/base/error.h"

namespace gradus {
namespace {

constexpr int most_attempts = 1000;
constexpr std::size_t most_reasons = 16;  // of one call: names in them may differ each time

}  // namespace

void Restarts::add(const Variant& variant, std::string reason) {
  const bool is_own = std::ranges::any_of(made_, [&](const auto& known) { return known.get() == &variant; });
  const bool again = !reasons_.insert(reason).second || reasons_.size() > most_reasons;
  require(!is_own || !again, title_, ": traced anew within one call, and again, because ", reason,
          "; its C++ must not end what it is traced with: make models, layers and Variables outside of it, capture and "
          "pass them by reference, and change what C++ branches on outside of it, too");
  reason_ = std::move(reason);
}

void Restarts::count_attempt() {
  require<Unavailable>(++attempts_ < most_attempts, title_, ": other threads have assigned its Variables ",
                       most_attempts,
                       " times while it ran; let one thread train, or guard the calls with a mutex of yours");
}

void check_unchanged(const std::string& title, const WatchedState& watched) {
  const std::string difference = watched.difference();
  require(difference.empty(), title, ": while it was traced, ", difference,
          ": its C++ changes what it is traced with, so that each call would trace anew; make models outside of it, "
          "pass them on by reference, as in const Model<Net>&, and change their fields outside of it");
}

}  // namespace gradus
