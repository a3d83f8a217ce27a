#include "gradus/distribute/membership/meeting_desk.h"
#include <algorithm>
#include "gradus/base/error.h"
#include "gradus/base/lived_time.h"
#include "gradus/base/own_thread.h"
#include "gradus/distribute/cluster/json_fields.h"

namespace gradus {
namespace {

using Json = nlohmann::json;

constexpr std::string_view meeting_question = "a question at the meeting";

std::string failed(const std::string& why) { return written({{"kind", "failed"}, {"why", why}}); }

std::string short_string(const Json& object, const std::string& name, std::size_t most) {
  std::string read = string(field(object, meeting_question, name), meeting_question, name);
  require<DataError>(read.size() <= most, meeting_question, ": `", name, "` has ", read.size(), " bytes, at most ",
                     most);
  return read;
}

}  // namespace

/// A question as it came, with the common fields of all.
struct MeetingDesk::Question {
  std::uint64_t call;
  Json fields;
  std::string kind, incarnation;
  int rank;

  Question(std::uint64_t number, std::string_view bytes) : call(number), fields(object(bytes, meeting_question)) {
    kind = short_string(fields, "kind", 16);
    incarnation = short_string(fields, "incarnation", 64);
    rank = integer(field(fields, meeting_question, "rank"), meeting_question, "rank");
    require<DataError>(!incarnation.empty(), meeting_question, ": `incarnation` is empty");
  }
};

MeetingDesk::MeetingDesk(MeetingTerms terms)
    : terms_(std::move(terms)),
      seats_(static_cast<std::size_t>(terms_.ranks)),
      told_(seats_.size()),
      told_to_(seats_.size()) {
  watcher_ = own_thread("the watch over the ranks", [this] { watch(); });
}

MeetingDesk::~MeetingDesk() {
  close("rank 0 has ended the meeting");
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void MeetingDesk::send(Replies replies) {
  for (const Reply& each : replies) each.answer(each.bytes);
}

void MeetingDesk::ask(std::uint64_t call, std::string_view bytes, Answer answer) {
  Replies replies;
  try {
    const Question question(call, bytes);
    const std::lock_guard lock(mutex_);
    const bool is_ours = question.rank >= 0 && question.rank < terms_.ranks;
    if (!failure_.empty()) {
      if (is_ours && question.kind == "join" && has_come_again(question)) {
        replies.push_back({answer, written({{"kind", "before"}, {"why", failure_}})});
      } else {
        if (is_ours) note_told(question);
        replies.push_back({answer, end_reply()});
      }
    } else if (question.kind == "join") {
      join(question, answer, replies);
    } else {
      require<DataError>(is_ours && seats_[static_cast<std::size_t>(question.rank)].incarnation == question.incarnation,
                         "rank ", question.rank, " asks the meeting, and has not joined it");
      Seat& seat = seats_[static_cast<std::size_t>(question.rank)];
      seat.last_sign = Clock::now();
      if (question.kind == "share") {
        share(question, answer, replies);
      } else if (question.kind == "beat") {
        seat.doing = short_string(question.fields, "doing", 4096);
        hold(question, {}, terms_.heartbeat / 2, answer);
        if (question.fields.contains("left"))
          held_.back().knows_left = integer(question.fields["left"], meeting_question, "left");
        changed_.notify_all();  // there may be news for it
      } else if (question.kind == "leave") {
        seat.has_left = true;
        if (question.fields.contains("doing")) seat.doing = short_string(question.fields, "doing", 4096);
        told(question.rank) = true;
        replies.push_back({answer, written({{"kind", "alive"}})});
        changed_.notify_all();  // the others learn it at once
      } else if (question.kind == "fail") {
        told(question.rank) = true;
        fail(text(seat.name, ": ", short_string(question.fields, "why", 8192)), replies);
        replies.push_back({answer, end_reply()});
      } else {
        throw DataError(text(meeting_question, ": `kind` is \"", question.kind, "\", which there is not"));
      }
    }
  } catch (const DataError& error) { replies.push_back({answer, failed(error.what())}); }
  send(std::move(replies));
}

void MeetingDesk::note_told(const Question& question) {
  told(question.rank) = true;
  told_to_[static_cast<std::size_t>(question.rank)] = question.incarnation;
}

/// True if the rank forms the group again while this desk still ends the group before.
bool MeetingDesk::has_come_again(const Question& question) const {
  const auto rank = static_cast<std::size_t>(question.rank);
  const auto was_another = [&](const std::string& known) { return !known.empty() && known != question.incarnation; };
  return was_another(seats_[rank].incarnation) || was_another(told_to_[rank]);
}

std::string MeetingDesk::mismatch(const Question& question) const {
  const Json& fields = question.fields;
  const std::string host = short_string(fields, "host", 256);
  const int process = integer(field(fields, meeting_question, "process"), meeting_question, "process");
  const std::string who = text("rank ", question.rank, " (", host, ", process ", process, ")");
  const auto differ = [&](std::string_view what, const auto& theirs, const auto& ours) {
    return text(who, " and rank 0 do not belong together: ", what, " is ", theirs, " there and ", ours, " at rank 0");
  };
  const int theirs = integer(field(fields, meeting_question, "protocol"), meeting_question, "protocol");
  if (theirs != protocol) return differ("the protocol of the meeting", theirs, protocol);
  if (const auto version = short_string(fields, "version", 256); version != terms_.version)
    return differ("the version of Gradus", version, terms_.version);
  if (const int ranks = integer(field(fields, meeting_question, "ranks"), meeting_question, "ranks");
      ranks != terms_.ranks)
    return differ("the number of ranks", ranks, terms_.ranks);
  if (const int made = integer(field(fields, meeting_question, "generation"), meeting_question, "generation");
      made != terms_.generation)
    return differ("the generation of the group", made, terms_.generation);
  if (question.rank < 0 || question.rank >= terms_.ranks)
    return text(who, " is none of the ", terms_.ranks, " ranks: expected 0 .. ", terms_.ranks - 1);
  if (const auto print = short_string(fields, "fingerprint", 4096); print != terms_.fingerprint)
    return differ("the fingerprint of program, model and strategy", print, terms_.fingerprint);
  const Seat& seat = seats_[static_cast<std::size_t>(question.rank)];
  if (seat.is_taken() && seat.incarnation != question.incarnation)
    return text("two processes say that they are rank ", question.rank, ": ", seat.name, " and process ", process,
                " on ", host);
  return {};
}

void MeetingDesk::join(const Question& question, Answer answer, Replies& replies) {
  const std::string wrong = mismatch(question);
  if (!wrong.empty()) {
    fail(wrong, replies);
    if (question.rank >= 0 && question.rank < terms_.ranks) note_told(question);
    replies.push_back({answer, failed(wrong)});
    return;
  }
  Seat& seat = seats_[static_cast<std::size_t>(question.rank)];
  seat.incarnation = question.incarnation;
  seat.host = short_string(question.fields, "host", 256);
  seat.name = text("rank ", question.rank, " (", seat.host, ", process ",
                   integer(question.fields.at("process"), meeting_question, "process"), ")");
  seat.last_sign = Clock::now();
  hold(question, {}, terms_.report, answer);
  if (!std::ranges::all_of(seats_, &Seat::is_taken)) return;
  is_complete_ = true;
  for (Seat& each : seats_) each.last_sign = Clock::now();
  answer_held([&](const HeldQuestion& each) { return each.kind == "join" ? std::optional(roster()) : std::nullopt; },
              replies);
}

void MeetingDesk::share(const Question& question, Answer answer, Replies& replies) {
  const std::string topic = short_string(question.fields, "topic", 256);
  const std::string value = short_string(question.fields, "value", 2 * most_shared_bytes);
  require<DataError>(topics_.contains(topic) || topics_.size() < most_topics, meeting_question, ": more than ",
                     most_topics, " topics at a time");
  Topic& shared = topics_[topic];
  const bool is_new = shared.size() < seats_.size();
  if (is_new) shared[question.rank] = value;
  hold(question, topic, terms_.report, answer);
  if (shared.size() < seats_.size()) return;
  Json values = Json::array();
  for (const auto& [rank, each] : shared) values.push_back(each);
  const std::string all = written({{"kind", "shared"}, {"values", values}});
  answer_held(
      [&](const HeldQuestion& each) {
        return each.kind == "share" && each.topic == topic ? std::optional(all) : std::nullopt;
      },
      replies);
  if (!is_new) return;
  complete_.push_back(topic);
  if (complete_.size() <= topics_kept) return;
  topics_.erase(complete_.front());
  complete_.pop_front();
}

void MeetingDesk::hold(const Question& question, std::string topic, std::chrono::milliseconds time, Answer answer) {
  held_.push_back(
      {question.call, question.rank, question.kind, std::move(topic), Clock::now() + time, std::move(answer)});
}

void MeetingDesk::answer_held(const std::function<std::optional<std::string>(const HeldQuestion&)>& reply,
                              Replies& replies) {
  std::erase_if(held_, [&](HeldQuestion& each) {
    auto bytes = reply(each);
    if (!bytes) return false;
    replies.push_back({std::move(each.answer), std::move(*bytes)});
    return true;
  });
}

void MeetingDesk::fail(const std::string& why, Replies& replies) {
  if (failure_.empty()) failure_ = why;
  answer_held(
      [&](const HeldQuestion& each) {
        told(each.rank) = true;
        return std::optional(end_reply());
      },
      replies);
}

std::string MeetingDesk::end_reply() const { return reply(ended_in_order_ ? "over" : "failed"); }

std::string MeetingDesk::reply(std::string_view kind) const {
  Json left = Json::array();
  for (std::size_t rank = 0; rank < seats_.size(); ++rank)
    if (seats_[rank].has_left) left.push_back({{"rank", rank}, {"did", seats_[rank].doing}});
  return written({{"kind", kind}, {"why", failure_}, {"decided", decided_}, {"left", left}});
}

std::string MeetingDesk::wait_reply(const std::string& topic) const {
  Json missing = Json::array();
  const auto found = topics_.find(topic);
  for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
    const bool is_here =
        found == topics_.end() ? seats_[rank].is_taken() : found->second.contains(static_cast<int>(rank));
    if (is_here) continue;
    if (seats_[rank].is_taken()) missing.push_back(seats_[rank].name);
    else missing.push_back(text("rank ", rank, rank < terms_.addresses.size() ? " at " + terms_.addresses[rank] : ""));
  }
  return written({{"kind", "wait"}, {"missing", missing}});
}

std::string MeetingDesk::roster() const {
  Json names = Json::array(), hosts = Json::array();
  for (const Seat& seat : seats_) names.push_back(seat.name), hosts.push_back(seat.host);
  return written({{"kind", "all here"}, {"names", names}, {"hosts", hosts}});
}

void MeetingDesk::lose(const Seat& seat, const std::string& why, Replies& replies) {
  told(static_cast<int>(&seat - seats_.data())) = true;  // no rank is left to hear it
  fail(seat.doing.empty() ? why : text(why, "; what it did last, as far as it said: ", seat.doing), replies);
}

void MeetingDesk::left(std::uint64_t call) {
  Replies replies;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(held_, call, &HeldQuestion::call);
    if (found == held_.end()) return;
    Seat& seat = seats_[static_cast<std::size_t>(found->rank)];
    held_.erase(found);
    if (!is_complete_) seat = {};  // it may come again
    else if (!seat.has_left)
      lose(seat, text(seat.name, " is gone: its connection has ended, so its process has ended, crashed or was killed"),
           replies);
  }
  send(std::move(replies));
}

void MeetingDesk::refused(std::string_view peer) { notice_turned_away("the meeting", peer); }

std::string MeetingDesk::decide(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) decided_ = number;
  return failure_;
}

void MeetingDesk::close(const std::string& why, bool in_order) {
  Replies replies;
  {
    const std::lock_guard lock(mutex_);
    ended_in_order_ = in_order && failure_.empty();
    told(0) = true;  // it is the one that says it
    fail(why, replies);
  }
  send(std::move(replies));
}

void MeetingDesk::wait_until_told(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (std::ranges::count(told_, false) > 0 && Clock::now() < deadline)
    changed_.wait_until(lock, std::min(deadline, Clock::now() + std::chrono::milliseconds(20)));
}

void MeetingDesk::watch() {
  const auto pause = std::clamp<std::chrono::milliseconds>(
      std::min(terms_.heartbeat, terms_.report) / 8, std::chrono::milliseconds(5), std::chrono::milliseconds(500));
  std::unique_lock lock(mutex_);
  LivedTime time(pause);
  while (!is_closing_) {
    changed_.wait_for(lock, pause);
    Replies replies;
    const auto now = Clock::now();
    // If this process was stopped, the others may have been, too, so the time of their silence excludes the pause.
    if (const auto missed = time.missed(now); missed > Clock::duration::zero())
      for (Seat& seat : seats_) seat.last_sign += missed;
    const auto have_left = std::ranges::count_if(seats_, &Seat::has_left);
    answer_held(
        [&](const HeldQuestion& each) -> std::optional<std::string> {
          const bool has_news = each.knows_left && *each.knows_left != have_left;
          if (each.until > now && !has_news) return {};
          return each.kind == "beat" ? reply("alive") : wait_reply(each.topic);
        },
        replies);
    if (is_complete_ && failure_.empty())
      for (const Seat& seat : seats_)
        if (!seat.has_left && now - seat.last_sign > 2 * terms_.heartbeat) {
          lose(seat,
               text(seat.name, " has given no sign of life for ",
                    std::chrono::duration<double>(now - seat.last_sign).count(),
                    " s: it is stopped or cannot be reached"),
               replies);
          break;
        }
    lock.unlock();
    send(std::move(replies));
    lock.lock();
  }
}

}  // namespace gradus
