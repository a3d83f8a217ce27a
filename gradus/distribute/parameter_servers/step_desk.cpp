#include "gradus/distribute/parameter_servers/step_desk.h"
#include <algorithm>
#include <utility>
#include "gradus/base/clock.h"
#include "gradus/base/error.h"
#include "gradus/base/lived_time.h"
#include "gradus/base/notice.h"
#include "gradus/base/own_thread.h"

namespace gradus {
namespace {

constexpr std::string_view desk_question = "a question at the desk of steps";
constexpr std::uint64_t most_steps_ahead = 1 << 20;
constexpr std::size_t agreements_kept = 1024;
// For members that join again: steps before the present round, and results of rounds.
constexpr std::uint64_t old_steps_kept = 1 << 16;
constexpr std::size_t rounds_kept = 1 << 16;
/// A member that waits for a step is answered after this many others were done meanwhile, so that it can drop them.
constexpr std::uint64_t told_after = 4;

MessageWriter reply(StepAnswer kind) {
  MessageWriter out;
  out.integer(static_cast<std::uint64_t>(kind));
  return out;
}

}  // namespace

StepDesk::StepDesk(StepDeskTerms terms)
    : terms_(std::move(terms)), seats_(static_cast<std::size_t>(terms_.ranks + terms_.servers)) {
  watcher_ = own_thread("the watch over the ranks", [this] { watch(); });
}

StepDesk::~StepDesk() {
  close("rank 0 has ended the training", false);
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

std::string StepDesk::name_of(std::size_t seat) const {
  if (!seats_[seat].name.empty()) return seats_[seat].name;
  const auto ranks = static_cast<std::size_t>(terms_.ranks);
  return seat < ranks ? text("rank ", seat) : text("parameter server ", seat - ranks);
}

std::string StepDesk::place_of(std::size_t seat) const {
  const auto ranks = static_cast<std::size_t>(terms_.ranks);
  const std::vector<std::string>& all = seat < ranks ? terms_.addresses : terms_.servers_at;
  const std::size_t place = seat < ranks ? seat : seat - ranks;
  return place < all.size() ? " at " + all[place] : std::string();
}

void StepDesk::ask(std::uint64_t call, std::string_view bytes, Answer answer) {
  Replies replies;
  {
    const std::lock_guard lock(mutex_);
    try {
      reply_to(call, MessageReader(bytes, desk_question), answer, replies);
    } catch (const std::exception& error) {
      replies.emplace_back(answer, reply(StepAnswer::failed).words(error.what()).take());
    }
    answer_held(replies);
  }
  send(std::move(replies));
}

void StepDesk::reply_to(std::uint64_t call, MessageReader reader, const Answer& answer, Replies& replies) {
  const auto kind =
      static_cast<StepQuestion>(reader.size(static_cast<std::size_t>(StepQuestion::leave), "the kind of question"));
  const std::size_t number = reader.size(seats_.size() - 1, "the rank");
  const std::string incarnation(reader.words(64, "the incarnation"));
  require<DataError>(!incarnation.empty(), desk_question, ": the incarnation is empty");
  Seat& seat = seats_[number];
  if (!failure_.empty()) {
    note_told(seat, kind);
    replies.emplace_back(answer, end_reply());
    return;
  }
  if (kind == StepQuestion::join) return join(call, number, incarnation, reader, answer, replies);
  require<DataError>(seat.incarnation == incarnation, name_of(number), " asks the desk of steps, and is another ",
                     "process than the one that has joined");
  seat.last_sign = Clock::now();
  if (std::exchange(seat.is_lost, false)) notice(text("gradus: ", seat.name, " is here again\n"));
  HeldQuestion held{
      .call = call, .seat = number, .kind = kind, .until = Clock::now() + terms_.heartbeat / 2, .answer = answer};
  switch (kind) {
    case StepQuestion::take:
      held.first = reader.integer();
      held.second = committed_;
      reader.finish();
      return hold(std::move(held));
    case StepQuestion::agree: return agree(number, reader, held);
    case StepQuestion::round:
      held.first = reader.integer(), held.second = reader.integer();
      reader.finish();
      require<DataError>(held.first <= held.second && held.second <= committed_ + most_steps_ahead, desk_question,
                         ": steps ", held.first, " to ", held.second);
      require<DataError>(
          held.first == held.second || held.first >= first_ || rounds_.contains({held.first, held.second}),
          desk_question, ": steps ", held.first, " to ", held.second, " were done long ago");
      return hold(std::move(held));
    case StepQuestion::beat:
      seat.doing = reader.words(4096, "what is done");
      reader.finish();
      return hold(std::move(held));
    case StepQuestion::done: finish(reader); break;
    case StepQuestion::leave:
      reader.finish();
      seat.has_left = true;
      seat.is_told = true;
      release(number);
      break;
    case StepQuestion::fail:
      seat.is_told = true;
      fail(text(seat.name, ": ", reader.words(8192, "the reason")), replies);
      break;
    case StepQuestion::join: break;
  }
  replies.emplace_back(answer, reply(StepAnswer::fine).integer(committed_).take());
}

void StepDesk::join(std::uint64_t call, std::size_t number, const std::string& incarnation, MessageReader& reader,
                    const Answer& answer, Replies& replies) {
  Seat& seat = seats_[number];
  const auto differ = [&](std::string_view what, const auto& theirs, const auto& ours) {
    return text(name_of(number), " and rank 0 do not belong together: ", what, " is ", theirs, " there and ", ours,
                " at rank 0");
  };
  const std::uint64_t ranks = reader.integer(), servers = reader.integer();
  const std::string version(reader.words(256, "the version")), print(reader.words(4096, "the fingerprint")),
      host(reader.words(256, "the host"));
  const std::uint64_t process = reader.integer();
  reader.finish();
  std::string wrong;
  if (ranks != static_cast<std::uint64_t>(terms_.ranks)) wrong = differ("the number of ranks", ranks, terms_.ranks);
  else if (servers != static_cast<std::uint64_t>(terms_.servers))
    wrong = differ("the number of parameter servers", servers, terms_.servers);
  else if (version != terms_.version) wrong = differ("the version of Gradus", version, terms_.version);
  else if (print != terms_.fingerprint) wrong = differ("the fingerprint of the strategy", print, terms_.fingerprint);
  else if (is_contested(seat, incarnation)) {
    // The one before it may have been lost just now.
    replies.emplace_back(answer,
                         reply(StepAnswer::wait).integer(committed_).words(text("the end of ", seat.name)).take());
    return;
  } else if (seat.is_here() && seat.incarnation != incarnation)
    wrong =
        text("two processes say that they are ", name_of(number), ": the other one is process ", process, " on ", host);
  if (!wrong.empty()) {
    seat.is_told = true;
    fail(wrong, replies);
    replies.emplace_back(answer, end_reply());
    return;
  }
  const bool is_again = seat.is_taken() && seat.incarnation != incarnation;
  const bool is_server = number >= static_cast<std::size_t>(terms_.ranks);
  seat = {.incarnation = incarnation,
          .name = text(is_server ? "parameter server " : "rank ",
                       is_server ? number - static_cast<std::size_t>(terms_.ranks) : number, " (", host, ", process ",
                       process, ")"),
          .last_sign = Clock::now()};
  if (is_again && is_complete_) notice(text("gradus: ", seat.name, " has come again\n"));
  hold({.call = call,
        .seat = number,
        .kind = StepQuestion::join,
        .until = Clock::now() + terms_.heartbeat / 2,
        .answer = answer});
  if (is_complete_ || !std::ranges::all_of(seats_, &Seat::is_taken)) return;
  is_complete_ = true;
  for (Seat& each : seats_) each.last_sign = Clock::now();
}

/// True if another process has this seat, and may still live.
bool StepDesk::is_contested(Seat& seat, const std::string& incarnation) const {
  if (!is_complete_ || !seat.is_here() || seat.incarnation == incarnation) return false;
  if (seat.contested == Clock::time_point()) seat.contested = Clock::now();
  return Clock::now() - seat.contested < 3 * terms_.heartbeat;
}

StepDesk::Step& StepDesk::step(std::uint64_t number) {
  require<DataError>(number < committed_ + most_steps_ahead, desk_question, ": step ", number, ", while ", committed_,
                     " are done");
  require<DataError>(number >= first_, desk_question, ": step ", number, " was done long ago");
  if (number >= end_of_steps()) steps_.resize(static_cast<std::size_t>(number - first_) + 1);
  return known(number);
}

void StepDesk::forget_old_steps() {
  std::uint64_t needed = std::min(last_round_, committed_);
  for (const HeldQuestion& held : held_)
    if (held.kind == StepQuestion::round) needed = std::min(needed, held.first);
  for (; first_ + old_steps_kept < needed && !steps_.empty(); ++first_) steps_.pop_front();
  while (rounds_.size() > rounds_kept) rounds_.erase(rounds_.begin());
}

std::size_t StepDesk::steps_kept() {
  const std::lock_guard lock(mutex_);
  return steps_.size();
}

void StepDesk::finish(MessageReader& reader) {
  const std::uint64_t number = reader.integer();
  const StepLoss loss{reader.size(1, "whether there is a loss") != 0, reader.number(), reader.number()};
  reader.finish();
  if (number < first_) return;  // it was done long ago
  Step& finished = step(number);
  if (!std::exchange(finished.is_done, true)) finished.loss = loss;
  while (committed_ < end_of_steps() && known(committed_).is_done) ++committed_;
}

/// All present members give a value; one that joins again later receives the agreed one.
void StepDesk::agree(std::size_t seat, MessageReader& reader, HeldQuestion& held) {
  held.first = reader.integer();
  const std::uint64_t value = reader.integer();
  reader.finish();
  require<DataError>(held.first <= seats_[seat].agreed, desk_question, ": agreement ", held.first, " before ",
                     seats_[seat].agreed);
  if (held.first == seats_[seat].agreed) {
    agreements_[held.first].emplace(seat, value);
    seats_[seat].agreed = held.first + 1;
  }
  while (agreements_.size() > agreements_kept) agreements_.erase(agreements_.begin());
  hold(std::move(held));
}

void StepDesk::open(std::uint64_t number, std::uint64_t version, std::uint64_t fingerprint) {
  Replies replies;
  {
    const std::lock_guard lock(mutex_);
    Step& opened = step(number);
    opened.version = version;
    opened.fingerprint = fingerprint;
    opened.is_open = true;
    answer_held(replies);
  }
  send(std::move(replies));
}

/// The first step that may begin and is unassigned, or whose worker is slow.
std::optional<std::string> StepDesk::next_for(const HeldQuestion& held) {
  const auto now = Clock::now();
  const auto can_begin = [&](const Step& one) { return one.is_open && !one.is_done && one.version <= committed_; };
  const auto give = [&](std::uint64_t number, Step& one) {
    one.worker = static_cast<int>(held.seat);
    one.since = now;
    ++one.times;
    ++handed_out_;
    return reply(StepAnswer::step).integer(committed_).integer(number).integer(one.fingerprint).take();
  };
  bool lacks = false;
  for (std::uint64_t k = committed_; k < end_of_steps() && known(k).is_open; ++k) {
    Step& one = known(k);
    if (!can_begin(one) || one.worker >= 0) continue;
    if (k < held.first) return give(k, one);
    lacks = true;
  }
  if (lacks) return reply(StepAnswer::more).integer(committed_).take();
  for (std::uint64_t k = committed_; k < std::min(end_of_steps(), held.first); ++k) {
    Step& one = known(k);
    if (can_begin(one) && one.worker != static_cast<int>(held.seat) && now - one.since > terms_.slow * one.times)
      return give(k, one);
  }
  return {};
}

std::optional<std::string> StepDesk::result_of(std::uint64_t from, std::uint64_t to) {
  if (to > committed_) return {};
  StepLoss all;
  if (const auto found = rounds_.find({from, to}); found != rounds_.end()) {
    all = found->second;
  } else if (from < to) {
    for (std::uint64_t k = from; k < to; ++k) {
      const StepLoss& one = known(k).loss;
      if (one.has_loss) all = {true, all.sum + one.sum, all.weight + one.weight};
    }
    rounds_[{from, to}] = all;
    last_round_ = std::max(last_round_, from);
  }
  return reply(StepAnswer::result).integer(committed_).integer(all.has_loss).number(all.sum).number(all.weight).take();
}

std::string StepDesk::waiting_for(const HeldQuestion& held) const {
  std::string out;
  const auto add = [&](const std::string& name) { out += (out.empty() ? "" : ", ") + name; };
  if (held.kind == StepQuestion::join) {
    for (std::size_t i = 0; i < seats_.size(); ++i)
      if (!seats_[i].is_taken()) add(name_of(i) + place_of(i));
  } else if (held.kind == StepQuestion::agree) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(terms_.ranks); ++i)
      if (seats_[i].is_here() && seats_[i].agreed <= held.first) add(name_of(i));
  } else if (held.kind == StepQuestion::round && committed_ < end_of_steps()) {
    const Step& one = known(committed_);
    if (one.worker >= 0) add(text("step ", committed_, " of ", name_of(static_cast<std::size_t>(one.worker))));
  }
  return out.empty() ? "the other ranks" : out;
}

std::optional<std::string> StepDesk::answer_to(const HeldQuestion& held, bool is_late) {
  std::optional<std::string> out;
  switch (held.kind) {
    case StepQuestion::join:
      if (is_complete_) {
        MessageWriter written = reply(StepAnswer::welcome);
        written.words(terms_.run).integer(seats_.size());
        for (std::size_t i = 0; i < seats_.size(); ++i) written.words(name_of(i));
        out = written.take();
      }
      break;
    case StepQuestion::take:
      out = next_for(held);
      is_late = is_late || committed_ - held.second >= told_after;
      break;
    case StepQuestion::agree: {
      const bool is_complete =
          std::ranges::all_of(seats_.begin(), seats_.begin() + terms_.ranks,
                              [&](const Seat& seat) { return !seat.is_here() || seat.agreed > held.first; });
      if (!is_complete) break;
      MessageWriter written = reply(StepAnswer::agreed).integer(committed_);
      const auto& values = agreements_[held.first];
      written.integer(values.size());
      for (const auto& [seat, value] : values) written.integer(seat).integer(value);
      out = written.take();
      break;
    }
    case StepQuestion::round: out = result_of(held.first, held.second); break;
    default: break;
  }
  if (out || !is_late) return out;
  if (held.kind == StepQuestion::beat) return reply(StepAnswer::fine).integer(committed_).take();
  return reply(StepAnswer::wait).integer(committed_).words(waiting_for(held)).take();
}

void StepDesk::answer_held(Replies& replies, bool all) {
  const auto now = Clock::now();
  std::erase_if(held_, [&](HeldQuestion& held) {
    std::optional<std::string> bytes;
    if (all) {
      note_told(seats_[held.seat], held.kind);
      bytes = end_reply();
    } else {
      bytes = answer_to(held, held.until <= now);
    }
    if (!bytes) return false;
    replies.emplace_back(std::move(held.answer), std::move(*bytes));
    return true;
  });
  forget_old_steps();
}

/// A process that beats has heard of the end when its beat has: its other threads wait for that (note_failure).
void StepDesk::note_told(Seat& seat, StepQuestion kind) {
  using enum StepQuestion;
  if (kind == beat || kind == join || kind == leave || kind == StepQuestion::fail) seat.is_told = true;
}

void StepDesk::fail(const std::string& why, Replies& replies) {
  if (failure_.empty()) failure_ = why;
  answer_held(replies, true);
}

std::string StepDesk::end_reply() const {
  return reply(ended_in_order_ ? StepAnswer::over : StepAnswer::failed).words(failure_).take();
}

/// The training cannot go on without rank 0 or a server that does not return; but members that ask these find that out.
void StepDesk::lose(Seat& seat, const std::string& why) {
  const auto number = static_cast<std::size_t>(&seat - seats_.data());
  seat.is_lost = true;
  seat.is_told = true;
  if (number >= static_cast<std::size_t>(terms_.ranks)) return;
  notice(text("gradus: ", why, seat.doing.empty() ? "" : text("; what it did last, as far as it said: ", seat.doing),
              "; others do its steps\n"));
  release(number);
}

void StepDesk::release(std::size_t number) {
  for (std::uint64_t k = committed_; k < end_of_steps(); ++k) {
    Step& one = known(k);
    if (!one.is_done && one.worker == static_cast<int>(number)) one.worker = -1;
  }
}

void StepDesk::left(std::uint64_t call) {
  Replies replies;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(held_, call, &HeldQuestion::call);
    if (found == held_.end()) return;
    Seat& seat = seats_[found->seat];
    const StepQuestion kind = found->kind;
    held_.erase(found);
    if (!is_complete_) seat = {};  // it may come again
    else if (kind == StepQuestion::beat && seat.is_here())
      lose(seat,
           text(seat.name, " is gone: its connection has ended, so its process has ended, crashed or was killed"));
    answer_held(replies);
  }
  send(std::move(replies));
}

void StepDesk::refused(std::string_view peer) { notice_turned_away("the desk of steps", peer); }

void StepDesk::close(const std::string& why, bool in_order) {
  Replies replies;
  {
    const std::lock_guard lock(mutex_);
    ended_in_order_ = in_order && failure_.empty();
    seats_[0].is_told = true;  // it is the one that says it
    fail(why, replies);
  }
  send(std::move(replies));
}

void StepDesk::wait_until_told(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (!std::ranges::all_of(seats_, &Seat::is_told) && Clock::now() < deadline)
    changed_.wait_until(lock, std::min(deadline, Clock::now() + std::chrono::milliseconds(20)));
}

std::uint64_t StepDesk::handed_out() {
  const std::lock_guard lock(mutex_);
  return handed_out_;
}

void StepDesk::watch() {
  const auto pause = std::clamp<std::chrono::milliseconds>(terms_.heartbeat / 16, std::chrono::milliseconds(5),
                                                           std::chrono::milliseconds(500));
  std::unique_lock lock(mutex_);
  LivedTime time(pause);
  while (!is_closing_) {
    changed_.wait_for(lock, pause);
    const auto now = Clock::now();
    if (const auto missed = time.missed(now); missed > Clock::duration::zero())  // others may have been stopped, too
      for (Seat& seat : seats_) seat.last_sign += missed;
    if (terms_.is_watching && is_complete_ && failure_.empty())
      for (Seat& seat : seats_)
        if (seat.is_here() && now - seat.last_sign > 2 * terms_.heartbeat)
          lose(seat, text(seat.name, " has given no sign of life for ", tenths_of_seconds(now - seat.last_sign),
                          " s: it is stopped or cannot be reached"));
    Replies replies;
    answer_held(replies);
    if (replies.empty()) continue;
    lock.unlock();
    send(std::move(replies));
    lock.lock();
  }
}

}  // namespace gradus
