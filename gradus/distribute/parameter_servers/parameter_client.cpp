#include "gradus/distribute/parameter_servers/parameter_client.h"
#include <algorithm>
#include <thread>
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/distribute/messages/bytes_message.h"
#include "gradus/graph/activity_scope.h"

namespace gradus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view server_answer = "an answer of a parameter server";

MessageWriter question(ParameterQuestion kind, const std::string& run) {
  MessageWriter out;
  out.integer(static_cast<std::uint64_t>(kind)).words(run);
  return out;
}

}  // namespace

ParameterClient::ParameterClient(std::shared_ptr<const ParameterServerPlace> place, std::string sender)
    : place_(std::move(place)), sender_(std::move(sender)) {}

std::optional<std::string> ParameterClient::ask(const std::string& question, std::string_view doing) {
  ActivityScope activity(Activity::communication, ActivityEvent::Kind::communication, "parameter servers");
  activity.add_bytes(std::ssize(question));
  const auto begin = Clock::now();
  const Deadline deadline = begin + place_->timeout;
  auto next_report = begin + place_->heartbeat;
  std::string problem = "it does not answer: it is stopped or cannot be reached";
  for (;;) {
    try {
      const auto answer = place_->client->ask(question, std::min(deadline, Clock::now() + place_->heartbeat), true);
      if (answer) {
        activity.add_bytes(std::ssize(*answer));
        MessageReader reader(*answer, server_answer);
        switch (static_cast<ParameterAnswer>(reader.size(4, "the kind"))) {
          case ParameterAnswer::done: return std::string(reader.rest());
          case ParameterAnswer::wait:
            problem = "steps before this one have not been applied";
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            break;
          case ParameterAnswer::again: return {};
          case ParameterAnswer::failed: throw Unavailable(text(place_->name, ", ", doing, ": ", reader.rest()));
          case ParameterAnswer::unknown:
            throw Unavailable(text(place_->name, ", ", doing,
                                   ": it knows nothing of this training: it was restarted without a checkpoint "
                                   "(ParameterServerOptions::checkpoints), or belongs to another training"));
        }
      } else if (const std::string why = place_->client->problem(); !why.empty()) {
        problem = why;
      }
    } catch (const TurnedAway&) { throw; } catch (const LeftOff&) {
      throw;
    } catch (const Unavailable& error) {
      if (std::string_view(error.what()).starts_with(place_->name)) throw;
      problem = error.what();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const auto now = Clock::now();
    const double seconds = static_cast<double>((now - begin) / std::chrono::milliseconds(100)) / 10;
    require<Unavailable>(now < deadline, place_->name, ", ", doing, ": nothing for ", seconds, " s: ", problem,
                         " (Cluster::timeout)");
    if (now >= next_report) {
      notice(text("gradus: waits for ", place_->name, ", ", doing, ", after ", seconds, " s: ", problem, "\n"));
      next_report = now + place_->heartbeat;
    }
  }
}

void ParameterClient::begin() {
  ask(question(ParameterQuestion::begin, place_->run).integer(place_->lag).take(), "which receives the training");
}

void ParameterClient::add_cells(std::span<const NewCell> cells) {
  constexpr std::size_t together = 64;
  for (std::size_t first = 0; first < cells.size(); first += together) {
    const auto some = cells.subspan(first, std::min(together, cells.size() - first));
    MessageWriter out = question(ParameterQuestion::cells, place_->run);
    out.integer(some.size());
    for (const NewCell& cell : some)
      out.integer(cell.number)
          .words(cell.name.substr(0, most_name))
          .words(text(Spec{cell.spec.dtype, cell.spec.shape}));
    ask(out.take(), "which receives Variables");
  }
}

void ParameterClient::send(ParameterQuestion kind, std::uint64_t subject, std::uint64_t program, std::string_view bytes,
                           std::string_view doing) {
  ++sequence_;
  std::size_t offset = 0;
  do {  // of nothing one piece, too
    const std::string_view piece = bytes.substr(offset, most_piece);
    MessageWriter out = question(kind, place_->run);
    out.words(sender_).integer(sequence_).integer(subject).integer(program).integer(bytes.size()).integer(offset);
    out.words(piece);
    offset = ask(out.take(), doing) ? offset + piece.size() : 0;
  } while (offset < bytes.size());
}

void ParameterClient::set(std::uint64_t cell, std::uint64_t version, std::string_view bytes) {
  send(ParameterQuestion::set, cell, version, bytes, "which gets a value");
}

void ParameterClient::add_program(std::uint64_t number, std::string_view bytes) {
  send(ParameterQuestion::program, number, 0, bytes, "which gets a program");
}

void ParameterClient::push(std::uint64_t step, std::uint64_t program, std::string_view values) {
  send(ParameterQuestion::push, step, program, values, text("to which step ", step, " is pushed"));
}

std::string ParameterClient::pull(std::uint64_t program, std::uint64_t version, std::size_t size) {
  std::string out;
  while (out.size() < size) {
    MessageWriter asked = question(ParameterQuestion::pull, place_->run);
    asked.integer(program).integer(version).integer(out.size()).integer(std::min(most_pulled, size - out.size()));
    const auto piece =
        ask(asked.take(), text("whose values after ", version, version == 1 ? " step" : " steps", " are wanted"));
    require<Unavailable>(piece && !piece->empty() && piece->size() <= size - out.size(), place_->name, " gave ",
                         piece ? piece->size() : 0, " bytes, expected up to ", size - out.size());
    out += *piece;
  }
  return out;
}

}  // namespace gradus
