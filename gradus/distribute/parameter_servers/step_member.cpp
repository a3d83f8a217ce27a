#include "gradus/distribute/parameter_servers/step_member.h"
#include <unistd.h>
#include <algorithm>
#include <array>
#include <random>
#include "gradus/base/host_name.h"
#include "gradus/base/clock.h"
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/base/own_thread.h"
#include "gradus/base/version.h"

namespace gradus {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::string_view desk_answer = "an answer of the desk of steps";
constexpr std::size_t most_text = 1 << 16;

StepAnswer kind_of(MessageReader& reader) {
  return static_cast<StepAnswer>(reader.size(static_cast<std::size_t>(StepAnswer::result), "the kind"));
}

[[noreturn]] void throw_end(StepAnswer kind, MessageReader& reader) {
  const std::string why(reader.words(most_text, "the reason"));
  if (kind == StepAnswer::over) throw TrainingOver(why);
  throw Unavailable(why);
}

}  // namespace

std::string drawn_name() {
  std::random_device random;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t word = random();
    for (int digit = 0; digit < 8; ++digit) out += digits[word >> (4 * digit) & 15];
  }
  return out;
}

StepMember::StepMember(std::shared_ptr<RpcClient> client, const Cluster& cluster, std::size_t seat,
                       std::string incarnation)
    : client_(std::move(client)),
      cluster_(cluster),
      seat_(seat),
      incarnation_(std::move(incarnation)),
      place_(cluster.in_process ? "this process" : cluster.meeting().to_string()) {}

StepMember::~StepMember() {
  stop();
  if (beating_.joinable()) beating_.join();
}

void StepMember::stop() noexcept {
  is_leaving_ = true;
  client_->cancel();
}

MessageWriter StepMember::question(StepQuestion kind) const {
  MessageWriter out;
  out.integer(static_cast<std::uint64_t>(kind)).integer(seat_).words(incarnation_);
  return out;
}

std::optional<std::string> StepMember::ask(const std::string& question, Deadline deadline) {
  const bool is_new = names_.empty();  // rank 0 may not have come yet
  try {
    return client_->ask(question, deadline, is_new);
  } catch (const LeftOff&) { throw; } catch (const TurnedAway&) {
    throw;
  } catch (const Unavailable& error) {
    throw DeskGone(
        text(is_new ? "rank 0" : names_[0], ", which hands out the steps of this training, is gone: ", error.what()));
  }
}

std::string StepMember::await(const std::string& question, StepAnswer wanted, std::string_view doing) {
  // A rank that waits for a server says so itself, and its wait may have begun a little later than this one for it.
  const auto patience = cluster_.timeout + (names_.empty() ? 0ms : std::min(cluster_.heartbeat, cluster_.timeout / 2));
  auto begin = Clock::now(), next_report = begin + cluster_.heartbeat;
  std::uint64_t committed = 0;
  std::string missing = "rank 0, where the steps are handed out, at " + place_;
  for (;;) {
    const auto asked = Clock::now(), until = std::min(begin + patience, asked + cluster_.heartbeat);
    const auto answer = ask(question, until);
    const auto now = Clock::now();
    if (now > until + 500ms) begin += now - until, next_report += now - until;  // excludes a pause of this process
    if (answer) {
      MessageReader reader(*answer, desk_answer);
      const StepAnswer kind = kind_of(reader);
      if (kind == wanted) return std::string(reader.rest());
      if (kind == StepAnswer::failed || kind == StepAnswer::over) throw_end(kind, reader);
      require<DataError>(kind == StepAnswer::wait, desk_answer, ": it is none to this question");
      const std::uint64_t done = reader.integer();
      if (done > committed) begin = now;  // it goes on
      committed = done;
      missing = reader.words(most_text, "who is missing");
      std::this_thread::sleep_for(5ms);  // it may have been answered at once
    }
    const std::string problem = answer ? std::string() : client_->problem();
    const std::string state = text(doing, " waits for ", missing, " for ", tenths_of_seconds(now - begin), " s",
                                   problem.empty() ? "" : ": ", problem);
    require<Unavailable>(now < begin + patience, state,
                         ": it was not started, cannot be reached, is stopped or too slow (Cluster::timeout is ",
                         tenths_of_seconds(cluster_.timeout), " s)");
    if (now < next_report) continue;
    notice(text("gradus: ", state, "\n"));
    next_report = now + cluster_.heartbeat;
  }
}

std::string StepMember::join(const std::string& fingerprint) {
  MessageWriter asked = question(StepQuestion::join);
  asked.integer(static_cast<std::uint64_t>(cluster_.ranks())).integer(static_cast<std::uint64_t>(cluster_.servers()));
  asked.words(version_and_contract())
      .words(fingerprint)
      .words(host_name("a host without a name"))
      .integer(static_cast<std::uint64_t>(getpid()));
  const std::string welcome = await(asked.take(), StepAnswer::welcome, "the beginning of the training");
  MessageReader reader(welcome, desk_answer);
  const std::string run(reader.words(64, "the name of the training"));
  for (std::size_t left = reader.size(2 * Cluster::most_ranks, "the number of names"); left > 0; --left)
    names_.emplace_back(reader.words(most_text, "a name"));
  require<DataError>(!names_.empty(), desk_answer, ": there are no names");
  return run;
}

StepMember::Taken StepMember::take(std::uint64_t scheduled) {
  const auto answer = ask(question(StepQuestion::take).integer(scheduled).take(), Clock::now() + cluster_.timeout);
  require<Unavailable>(answer.has_value(), names_[0], ", which hands out the steps of this training, has not answered ",
                       "for ", tenths_of_seconds(cluster_.timeout), " s: it is stopped or cannot be reached");
  MessageReader reader(*answer, desk_answer);
  const StepAnswer kind = kind_of(reader);
  if (kind == StepAnswer::failed || kind == StepAnswer::over) throw_end(kind, reader);
  Taken out{.committed = reader.integer(), .lacks = kind == StepAnswer::more};
  if (kind != StepAnswer::step) return out;
  out.step = reader.integer();
  out.fingerprint = reader.integer();
  return out;
}

std::uint64_t StepMember::done(std::uint64_t step, const StepLoss& loss) {
  MessageWriter asked = question(StepQuestion::done);
  asked.integer(step).integer(loss.has_loss).number(loss.sum).number(loss.weight);
  const std::string answer = await(asked.take(), StepAnswer::fine, text("step ", step));
  return MessageReader(answer, desk_answer).integer();
}

std::vector<std::uint64_t> StepMember::agree(std::uint64_t value) {
  const std::string answer = await(question(StepQuestion::agree).integer(agreements_).integer(value).take(),
                                   StepAnswer::agreed, "what all ranks do together");
  ++agreements_;
  MessageReader reader(answer, desk_answer);
  reader.integer();
  std::vector<std::uint64_t> out(static_cast<std::size_t>(cluster_.ranks()), value);
  for (std::size_t left = reader.size(out.size(), "the number of values"); left > 0; --left) {
    const std::size_t rank = reader.size(out.size() - 1, "a rank");
    out[rank] = reader.integer();
  }
  return out;
}

StepMember::Round StepMember::round(std::uint64_t from, std::uint64_t to) {
  const std::string answer =
      await(question(StepQuestion::round).integer(from).integer(to).take(), StepAnswer::result, "strategy.join");
  MessageReader reader(answer, desk_answer);
  Round out{.committed = reader.integer()};
  out.loss = {reader.integer() != 0, reader.number(), reader.number()};
  return out;
}

void StepMember::start_beating(std::function<void(std::exception_ptr)> lost) {
  lost_ = std::move(lost);
  beating_ = own_thread("the heartbeat of this rank", [this] { beat(); });
}

void StepMember::set_doing(std::string doing) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(doing);
}

void StepMember::beat() {
  while (!is_leaving_) {
    std::string doing;
    {
      const std::lock_guard lock(mutex_);
      doing = doing_.substr(0, 1000);
    }
    try {
      const auto answer = ask(question(StepQuestion::beat).words(doing).take(), Clock::now() + 2 * cluster_.heartbeat);
      require<Unavailable>(answer.has_value(), names_[0],
                           ", which hands out the steps of this training, has given no sign of life for ",
                           tenths_of_seconds(2 * cluster_.heartbeat), " s: it is stopped or cannot be reached");
      MessageReader reader(*answer, desk_answer);
      const StepAnswer kind = kind_of(reader);
      if (kind == StepAnswer::fine) continue;
      throw_end(kind, reader);
    } catch (...) {
      if (!is_leaving_) lost_(std::current_exception());
    }
    return;
  }
}

void StepMember::tell(const std::string& question) noexcept {
  try {
    client_->ask(question, Clock::now() + 1s, false);
  } catch (...) {}  // the receiver has gone: no rank is left to inform
}

void StepMember::fail(const std::string& why) noexcept {
  tell(question(StepQuestion::fail).words(why.substr(0, 4000)).take());
}

void StepMember::leave() noexcept {
  if (is_leaving_.exchange(true)) return;
  tell(question(StepQuestion::leave).take());
}

}  // namespace gradus
