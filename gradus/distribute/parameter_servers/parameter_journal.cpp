#include "gradus/distribute/parameter_servers/parameter_journal.h"
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"
#include "gradus/distribute/messages/bytes_message.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/crc32c.h"

namespace gradus {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t head_bytes = 16;

std::string head_of(std::string_view event) {
  return MessageWriter().integer(event.size()).integer(masked_crc32c(std::as_bytes(std::span(event)))).take();
}

[[noreturn]] void fail(const fs::path& file, std::string_view what, int problem) {
  const std::string message = text("the checkpoint of a parameter server, ", file.string(), ", ", what, ": ",
                                   std::generic_category().message(problem));
  if (problem == ENOSPC || problem == EDQUOT) throw ResourceExhausted(message);
  throw Unavailable(message);
}

/// True if all records are whole.
bool read_events(const fs::path& file, const ParameterJournal::Take& take) {
  const std::string all = read_text_file(file);
  std::string_view rest = all;
  while (!rest.empty()) {
    if (rest.size() < head_bytes) return false;
    MessageReader head(rest.substr(0, head_bytes), "a record");
    const std::uint64_t length = head.integer(), checksum = head.integer();
    if (length > rest.size() - head_bytes) return false;
    const std::string_view event = rest.substr(head_bytes, static_cast<std::size_t>(length));
    if (masked_crc32c(std::as_bytes(std::span(event))) != checksum) return false;
    take(event);
    rest.remove_prefix(head_bytes + event.size());
  }
  return true;
}

/// The number in "log-7"; nothing for other names.
std::optional<std::uint64_t> number_in(const std::string& name, std::string_view kind) {
  if (!name.starts_with(kind) || name.size() <= kind.size() + 1 || name[kind.size()] != '-') return {};
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, problem] = std::from_chars(name.data() + kind.size() + 1, end, number);
  return problem == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::vector<std::uint64_t> numbers_in(const fs::path& directory, std::string_view kind) {
  std::vector<std::uint64_t> out;
  for (const auto& entry : fs::directory_iterator(directory))
    if (const auto number = number_in(entry.path().filename().string(), kind)) out.push_back(*number);
  std::ranges::sort(out);
  return out;
}

}  // namespace

ParameterJournal::ParameterJournal(fs::path directory) : directory_(std::move(directory)) {
  std::error_code problem;
  fs::create_directories(directory_, problem);
  if (problem) fail(directory_, "cannot be made", problem.value());
}

ParameterJournal::~ParameterJournal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

fs::path ParameterJournal::file(std::string_view kind, std::uint64_t number) const {
  return directory_ / text(kind, '-', number);
}

void ParameterJournal::open_log() {
  if (descriptor_ >= 0) ::close(descriptor_);
  const fs::path log = file("log", number_);
  descriptor_ = ::open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor_ < 0) fail(log, "cannot be opened", errno);
}

void ParameterJournal::recover(const Take& take) {
  const std::vector<std::uint64_t> snapshots = numbers_in(directory_, "snapshot"), logs = numbers_in(directory_, "log");
  const std::uint64_t first = snapshots.empty() ? 0 : snapshots.back();
  if (!snapshots.empty())
    require<DataError>(read_events(file("snapshot", first), take), "the checkpoint of a parameter server, ",
                       file("snapshot", first).string(), ", is damaged");
  for (const std::uint64_t log : logs)
    if (log >= first) read_events(file("log", log), take);
  number_ = std::max(first, logs.empty() ? 0 : logs.back()) + 1;
  open_log();
}

void ParameterJournal::append(std::string_view event) {
  const std::string head = head_of(event);
  for (std::string_view rest : {std::string_view(head), event})
    while (!rest.empty()) {
      const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(file("log", number_), "cannot be written", errno);
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
}

void ParameterJournal::turn() {
  ++number_;
  open_log();
}

void ParameterJournal::write_snapshot(const std::function<void(const Take& add)>& write) {
  AtomicFile whole(file("snapshot", number_));
  write([&](std::string_view event) {
    whole.write(head_of(event));
    whole.write(event);
  });
  whole.commit();
  remove_before(number_);
}

void ParameterJournal::remove_before(std::uint64_t number) {
  std::error_code ignored;  // an older file does no harm
  for (const char* kind : {"snapshot", "log"})
    for (const std::uint64_t each : numbers_in(directory_, kind))
      if (each < number) fs::remove(file(kind, each), ignored);
}

void ParameterJournal::reset() {
  turn();
  for (const std::uint64_t each : numbers_in(directory_, "snapshot")) fs::remove(file("snapshot", each));
  remove_before(number_);
}

}  // namespace gradus
