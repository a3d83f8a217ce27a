#include "apps/gradus/rank_fates.h"
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/distribute/messages/transport.h"

namespace gradus::command {
namespace {

using namespace std::chrono_literals;

/// Time for the message of a rank that has failed and not ended yet.
constexpr std::chrono::milliseconds patience_with_cause = 5s;
/// Time for a failure that no rank has reported yet, while all ended ranks followed another one.
constexpr std::chrono::milliseconds patience_with_followers = 1s;

/// The index of the fate with the earliest moment, or -1; `take` gives a fate's moment, 0 if it has none.
template <class Take> int first(std::span<const RankFate> fates, Take take) {
  int found = -1, earliest = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < fates.size(); ++i) {
    const int moment = take(fates[i]);
    if (moment <= 0 || moment >= earliest) continue;
    earliest = moment;
    found = static_cast<int>(i);
  }
  return found;
}

/// The moment of a failure that follows from no other one.
int own_failure(const RankFate& fate) {
  if (fate.state == RankState::failed) return fate.said;
  return fate.has_failed() && fate.state != RankState::followed ? fate.ended : 0;
}

/// The moment of a rank's end with status 0 while the others needed it; 0 if that did not happen.
int early_end(const RankFate& fate) { return fate.has_ended_well() && fate.state != RankState::left ? fate.ended : 0; }

std::string early(const RankFate& fate) {
  if (fate.state == RankState::left) return " after it had left in order";
  return fate.state == RankState::together ? " before its work with the others was done"
                                           : " before it had met the others";
}

}  // namespace

std::string how_it_ended(const RankFate& fate) {
  if (fate.signal == 0) return text("ended with exit code ", fate.status);
  return text("was killed by signal ", fate.signal, " (", strsignal(fate.signal), ')');
}

std::optional<std::string> cause(std::span<const RankFate> fates, std::chrono::milliseconds since,
                                 const NameOfProcess& name_of) {
  const int follower = first(fates, [](const RankFate& each) { return each.has_failed() ? each.ended : 0; });
  if (follower < 0) return {};
  const auto fate = [&](int process) -> const RankFate& { return fates[static_cast<std::size_t>(process)]; };
  const auto said = [&](int process, const std::string& words) { return text(name_of(process), ' ', words); };
  if (const int own = first(fates, own_failure); own >= 0) {
    const RankFate& found = fate(own);
    if (found.has_failed()) return said(own, how_it_ended(found));
    if (!found.lives) return said(own, text(how_it_ended(found), " after a failure: ", found.why));
    if (since < patience_with_cause) return {};
    return said(own, text("has failed and does not end: ", found.why));
  }
  const std::string other = text(", and ", name_of(follower), ' ', how_it_ended(fate(follower)));
  if (const int gone = first(fates, early_end); gone >= 0)
    return said(gone, text(how_it_ended(fate(gone)), early(fate(gone)), other));
  const auto stopped = std::ranges::find_if(fates, [](const RankFate& each) { return each.lives && each.is_stopped; });
  if (stopped != fates.end())
    return said(static_cast<int>(stopped - fates.begin()), text("is stopped (by SIGSTOP or the like)", other));
  const bool others_live = std::ranges::any_of(fates, &RankFate::lives);
  if (others_live && since < patience_with_followers) return {};
  return said(follower, how_it_ended(fate(follower)));
}

std::optional<std::string> vain_meeting(std::span<const RankFate> fates, int ranks, const NameOfProcess& name_of) {
  const auto all = fates.first(static_cast<std::size_t>(ranks));
  const auto waits =
      std::ranges::find_if(all, [&](const RankFate& each) { return each.lives && each.state == RankState::joins; });
  const auto gone = std::ranges::find_if(all, &RankFate::has_ended_well);
  if (waits == all.end() || gone == all.end()) return {};
  return text(name_of(static_cast<int>(gone - all.begin())), ' ', how_it_ended(*gone), early(*gone), ", and ",
              name_of(static_cast<int>(waits - all.begin())), " waits to meet it");
}

std::string living(std::span<const RankFate> fates, const NameOfProcess& name_of) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fates.size(); ++i)
    if (fates[i].lives) names.push_back(name_of(static_cast<int>(i)) + (fates[i].is_stopped ? " (stopped)" : ""));
  return listed(names);
}

}  // namespace gradus::command
