/// Waiting for messages, with a deadline and an error that names late ranks.
#include "gradus/distribute/messages/transport.h"
#include <algorithm>
#include <exception>
#include "gradus/base/error.h"
#include "gradus/base/lived_time.h"

namespace gradus {

void await(Transport& transport, Deadline deadline, const std::function<bool()>& done,
           const std::function<std::string()>& late) {
  try {
    LivedDeadline lived(deadline);
    while (!done()) {
      const bool moved = transport.progress();
      if (lived.has_passed() && !done()) throw Unavailable(late());
      if (!moved) transport.wait(lived.next());
    }
  } catch (const std::exception& error) {
    if (dynamic_cast<const Unavailable*>(&error) != nullptr) transport.note_failed_by_peers();
    transport.close(error.what());  // so that peers hear the reason, not that this rank has left
    throw;
  }
}

void Transport::note_left(int rank, std::string did) {
  const std::lock_guard lock(mutex_of_left_);
  left_.insert_or_assign(rank, std::move(did));
  has_any_left_ = true;
}

std::optional<std::string> Transport::has_left(int rank) const {
  const std::lock_guard lock(mutex_of_left_);
  const auto found = left_.find(rank);
  return found == left_.end() ? std::nullopt : std::optional(found->second);
}

std::string has_left_in_order(std::string_view did) {
  return text(
      " has left in order", did.empty() ? "" : text(" after ", did),
      ": it has done all that it had to do, while this rank goes on. Every rank trains as many epochs, makes as "
      "many steps and asks for the same results");
}

Exchange::~Exchange() {
  if (!under_way_.empty())
    transport_->close(
        text("it stopped in the midst of ", doing_, std::uncaught_exceptions() > 0 ? " for an error" : ""));
}

void Exchange::send(int to, Tag tag, std::span<const std::byte> bytes) {
  under_way_.push_back(transport_->send(to, tag, bytes));
}

void Exchange::receive(int from, Tag tag, std::span<std::byte> bytes) {
  under_way_.push_back(transport_->receive(from, tag, bytes));
}

bool Exchange::is_done() {
  for (const TransferPointer& each : under_way_) {
    if (!each->is_done || each->problem.empty()) continue;
    const auto did = each->is_peer_gone ? transport_->has_left(each->peer) : std::nullopt;
    if (each->is_peer_gone && !did && transport_->hears_of_peers() && !has_waited_for_news()) return false;
    throw Unavailable(text(doing_, ": ", transport_->group().members[static_cast<std::size_t>(each->peer)].name,
                           did ? has_left_in_order(*did) : " " + each->problem));
  }
  std::erase_if(under_way_, [](const TransferPointer& each) { return each->is_done; });
  if (transport_->has_any_left()) check_left();
  return under_way_.empty();
}

/// True after a second, in which this rank has looked for messages and news.
bool Exchange::has_waited_for_news() {
  if (!news_end_) news_end_ = in(std::chrono::seconds(1));
  return ++looks_ >= 3 && std::chrono::steady_clock::now() >= *news_end_;
}

/// Messages of a rank that has left may still be under way.
void Exchange::check_left() {
  const auto gone = std::ranges::find_if(
      under_way_, [&](const TransferPointer& each) { return transport_->has_left(each->peer).has_value(); });
  if (gone == under_way_.end() || !has_waited_for_news()) return;
  const int peer = (*gone)->peer;
  throw Unavailable(text(doing_, ": ", transport_->group().members[static_cast<std::size_t>(peer)].name,
                         has_left_in_order(*transport_->has_left(peer))));
}

void Exchange::finish(std::chrono::milliseconds timeout) {
  await(*transport_, in(timeout), [&] { return is_done(); }, [&] { return late(timeout); });
}

std::string Exchange::late(std::chrono::milliseconds timeout) const {
  std::vector<int> silent, full;
  for (const TransferPointer& each : under_way_) (each->is_receive ? silent : full).push_back(each->peer);
  TextStream out;
  const auto name = [&](std::vector<int>& peers, std::string_view what) {
    std::ranges::sort(peers);
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    std::vector<std::string> names;
    for (const int peer : peers) names.push_back(transport_->group().members[static_cast<std::size_t>(peer)].name);
    out << listed(names) << what;
  };
  out << doing_ << ": ";
  if (!silent.empty()) name(silent, " sent nothing");
  else name(full, " took nothing");
  out << " for " << static_cast<double>(timeout.count()) / 1000
      << " s: stopped, unreachable, slow, or doing something else (Cluster::timeout says how long to wait)";
  return std::move(out).str();
}

std::string listed(std::span<const std::string> names) {
  constexpr std::size_t most = 8;
  std::string all;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) all += (i > 0 ? ", " : "") + names[i];
  return names.size() > most ? text(all, " and ", names.size() - most, " more") : all;
}

void check_group(const Group& group) {
  require(group.ranks() >= 1 && group.ranks() <= 16'384, "Group: there are ", group.ranks(),
          " ranks, expected 1 .. 16384");
  require(group.rank >= 0 && group.rank < group.ranks(), "Group: `rank` is ", group.rank, ", expected 0 .. ",
          group.ranks() - 1);
  require(group.generation >= 1, "Group: `generation` is ", group.generation, ", expected 1 or more");
}

void check_message(const Group& group, int peer, Tag tag) {
  internal_check(peer >= 0 && peer < group.ranks() && peer != group.rank, "a message between rank ", group.rank,
                 " and ", peer, " of ", group.ranks());
  internal_check(tag.step < Tag::steps && tag.slot < 2 * Tag::slots, "a tag out of its range");
}

}  // namespace gradus
