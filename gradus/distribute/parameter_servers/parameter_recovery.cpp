/// How a parameter server records its input, and restores it.
#include <algorithm>
#include "gradus/base/notice.h"
#include "gradus/distribute/parameter_servers/parameter_questions.h"
#include "gradus/distribute/parameter_servers/parameter_store.h"

namespace gradus {
namespace {

constexpr std::string_view server_checkpoint = "the checkpoint of a parameter server";

/// Every event begins with its kind.
enum class Event : std::uint64_t {
  begin,    // run, lag
  cell,     // number, name, spec
  set,      // number, bytes
  program,  // number, bytes
  push,     // step, program, bytes
  newest,   // the number of the newest version, and how many there are
  value,    // of version, of cell, bytes: if it is another than in the version before
};

MessageWriter event(Event kind) {
  MessageWriter out;
  out.integer(static_cast<std::uint64_t>(kind));
  return out;
}

std::string joined(const std::vector<Ref<Buffer>>& values) {
  std::string out;
  for (const Ref<Buffer>& value : values) out.append(value->data<char>(), static_cast<std::size_t>(value->bytes()));
  return out;
}

}  // namespace

std::string ParameterStore::written_begin() const { return event(Event::begin).words(run_).integer(lag_).take(); }

std::string ParameterStore::written(std::uint64_t number, const Cell& cell) {
  return event(Event::cell).integer(number).words(cell.name).words(text(cell.spec)).take();
}

std::string ParameterStore::written(const Upload& upload) {
  switch (static_cast<ParameterQuestion>(upload.kind)) {
    case ParameterQuestion::set: return event(Event::set).integer(upload.subject).words(upload.bytes).take();
    case ParameterQuestion::push:
      return event(Event::push).integer(upload.subject).integer(upload.program).words(upload.bytes).take();
    default: return event(Event::program).integer(upload.subject).words(upload.bytes).take();
  }
}

void ParameterStore::write_down(const std::string& written) {
  if (!journal_) return;
  try {
    journal_->append(written);
  } catch (const Error& error) {
    failure_ = error.what();
    throw;
  }
}

/// Writes the present state, while other threads go on.
void ParameterStore::take_snapshot(std::unique_lock<std::mutex>& lock) {
  std::vector<std::string> before{written_begin()}, after;
  for (const auto& [number, cell] : cells_) before.push_back(written(number, cell));
  before.push_back(event(Event::newest).integer(newest_).integer(versions_.size()).take());
  for (const auto& [number, bytes] : program_bytes_)
    after.push_back(event(Event::program).integer(number).words(bytes).take());
  for (const auto& [step, push] : ready_)
    after.push_back(event(Event::push).integer(step).integer(push->number).words(joined(push->values)).take());
  const auto cells = cells_;
  const auto versions = versions_;
  const std::uint64_t oldest = newest_ + 1 - versions.size();
  journal_->turn();
  lock.unlock();
  std::string problem;
  try {
    journal_->write_snapshot([&](const ParameterJournal::Take& add) {
      for (const std::string& each : before) add(each);
      for (std::size_t v = 0; v < versions.size(); ++v)
        for (const auto& [number, cell] : cells) {
          const Ref<Buffer>& value = versions[v][cell.place];
          if (!value || (v > 0 && versions[v - 1][cell.place] == value)) continue;
          add(event(Event::value).integer(oldest + v).integer(number).words(joined({value})).take());
        }
      for (const std::string& each : after) add(each);
    });
  } catch (const Error& error) { problem = error.what(); }
  lock.lock();
  if (!problem.empty()) failure_ = problem;
}

void ParameterStore::recover() {
  const std::lock_guard lock(mutex_);
  journal_->recover([this](std::string_view event) { take_again(MessageReader(event, server_checkpoint)); });
  // Cells that a version does not contain are those of the version before.
  for (std::size_t v = 1; v < versions_.size(); ++v)
    for (std::size_t place = 0; place < cells_.size(); ++place)
      if (!versions_[v][place]) versions_[v][place] = versions_[v - 1][place];
  if (run_.empty()) return;
  failure_.clear();
  notice(
      text("gradus: a parameter server has come back with what it held after ", newest_ + ready_.size(), " steps\n"));
}

void ParameterStore::take_again(MessageReader reader) {
  const auto kind = static_cast<Event>(reader.size(static_cast<std::size_t>(Event::value), "the kind of an event"));
  const auto bytes = [&] { return std::string(reader.words(ParameterProgram::most_bytes, "an event")); };
  switch (kind) {
    case Event::begin: {
      const std::string run(reader.words(most_run, "the run"));
      forget_all(run, reader.size(1 << 20, "the lag"));
      break;
    }
    case Event::cell: {
      const std::uint64_t number = reader.integer();
      const std::string name(reader.words(most_name, "a name"));
      add_cell(number, name, reader.words(400, "a spec"));
      break;
    }
    case Event::newest: {
      newest_ = reader.integer();
      versions_.assign(reader.size(most_versions(), "the number of versions"), Version(cells_.size()));
      require<DataError>(!versions_.empty() && newest_ + 1 >= versions_.size(), server_checkpoint,
                         ": it has no version");
      break;
    }
    case Event::value: {
      const std::uint64_t version = reader.integer(), number = reader.integer(),
                          oldest = newest_ + 1 - versions_.size();
      require<DataError>(version >= oldest && version <= newest_, server_checkpoint, ": version ", version, " of ",
                         oldest, " to ", newest_);
      const std::string value = bytes();
      require<DataError>(static_cast<std::int64_t>(value.size()) == bytes_of(cell(number).spec), server_checkpoint,
                         ": a value has ", value.size(), " bytes, expected those of ", cell(number).spec);
      versions_[static_cast<std::size_t>(version - oldest)][cell(number).place] = buffer_with(value);
      break;
    }
    case Event::set:
    case Event::program:
    case Event::push: {
      Upload upload{.kind = static_cast<std::uint64_t>(kind == Event::set       ? ParameterQuestion::set
                                                       : kind == Event::program ? ParameterQuestion::program
                                                                                : ParameterQuestion::push)};
      upload.subject = reader.integer();
      if (kind == Event::push) upload.program = reader.integer();
      upload.bytes = bytes();
      const std::size_t size = size_of_upload(upload.kind, upload.subject, upload.program);
      require<DataError>(kind == Event::program ? upload.bytes.size() <= size : upload.bytes.size() == size,
                         server_checkpoint, ": an event has ", upload.bytes.size(), " bytes, expected ", size);
      if (kind == Event::set) apply_ready();  // as when it came: after all steps before it
      finish(upload);
      break;
    }
  }
  reader.finish();
}

/// Before the server begins: all steps that are here.
void ParameterStore::apply_ready() {
  for (std::size_t v = 1; v < versions_.size(); ++v)
    for (std::size_t place = 0; place < cells_.size(); ++place)
      if (!versions_[v][place]) versions_[v][place] = versions_[v - 1][place];
  std::unique_lock<std::mutex> owned;  // no other thread exists yet
  while (failure_.empty() && ready_.contains(newest_)) apply(owned);
}

}  // namespace gradus
