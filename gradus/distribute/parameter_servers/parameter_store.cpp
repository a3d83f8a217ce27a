/// Questions, pieces, versions.
#include "gradus/distribute/parameter_servers/parameter_store.h"
#include <algorithm>
#include "gradus/base/own_thread.h"
#include "gradus/distribute/parameter_servers/parameter_questions.h"

namespace gradus {
namespace {

constexpr std::string_view server_question = "a question at a parameter server";
constexpr std::size_t most_programs = 1 << 16, most_senders = 1 << 16;
constexpr std::size_t most_ready = 8;  // steps that wait to be applied, beyond those that workers may be ahead

std::string reply(ParameterAnswer kind, std::string_view rest = {}) {
  std::string out = MessageWriter().integer(static_cast<std::uint64_t>(kind)).take();
  out.append(rest);
  return out;
}

}  // namespace

Ref<Buffer> ParameterStore::buffer_with(std::string_view bytes) {
  Ref<Buffer> buffer = Buffer::allocate(static_cast<std::int64_t>(bytes.size()), "a value at a parameter server");
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return buffer;
}

ParameterStore::ParameterStore(Options options) : options_(std::move(options)) {
  if (!options_.checkpoints.empty()) {
    journal_ = std::make_unique<ParameterJournal>(options_.checkpoints);
    recover();
  }
  applying_ = own_thread("the updates of a parameter server", [this] { apply_all(); });
}

ParameterStore::~ParameterStore() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  applying_.join();
}

void ParameterStore::ask(std::uint64_t call, std::string_view bytes, Answer answer) {
  std::optional<std::string> written;
  try {
    const std::lock_guard lock(mutex_);
    written = reply_to(call, MessageReader(bytes, server_question), answer);
  } catch (const std::exception& error) { written = reply(ParameterAnswer::failed, error.what()); }
  if (written) answer(*written);
}

std::optional<std::string> ParameterStore::reply_to(std::uint64_t call, MessageReader reader, const Answer& answer) {
  const auto kind = static_cast<ParameterQuestion>(
      reader.size(static_cast<std::size_t>(ParameterQuestion::pull), "the kind of question"));
  const std::string run(reader.words(most_run, "the run"));
  if (kind == ParameterQuestion::begin) return begin(run, reader);
  if (run.empty() || run != run_) return reply(ParameterAnswer::unknown);
  if (!failure_.empty()) return reply(ParameterAnswer::failed, failure_);
  if (kind == ParameterQuestion::cells) return add_cells(reader);
  if (kind != ParameterQuestion::pull) return take_piece(static_cast<std::uint64_t>(kind), reader);
  Pull pull{
      .call = call, .version = 0, .program = reader.integer(), .offset = 0, .length = 0, .until = {}, .answer = {}};
  pull.version = reader.integer();
  pull.offset = reader.size(PTRDIFF_MAX, "the offset");
  pull.length = reader.size(most_pulled, "the length");
  reader.finish();
  if (auto bytes = answer_to(pull)) return bytes;
  pull.until = Clock::now() + options_.hold;
  pull.answer = answer;
  held_.push_back(std::move(pull));
  changed_.notify_all();  // so that it is held for its time at most
  return {};
}

std::string ParameterStore::begin(const std::string& run, MessageReader& reader) {
  const std::size_t lag = reader.size(1 << 20, "the lag");
  reader.finish();
  require<DataError>(!run.empty(), server_question, ": the run has no name");
  if (run == run_) return reply(ParameterAnswer::done);
  forget_all(run, lag);
  if (journal_) journal_->reset();
  write_down(written_begin());
  return reply(ParameterAnswer::done);
}

void ParameterStore::forget_all(const std::string& run, std::size_t lag) {
  run_ = run;
  failure_.clear();
  lag_ = lag;
  newest_ = 0;
  cells_.clear();
  versions_.assign(1, Version());
  programs_.clear();
  program_bytes_.clear();
  uploads_.clear();
  ready_.clear();
}

std::string ParameterStore::add_cells(MessageReader& reader) {
  for (std::size_t left = reader.size(ParameterProgram::most_entries, "the number of Variables"); left > 0; --left) {
    const std::uint64_t number = reader.integer();
    const std::string name(reader.words(most_name, "a name"));
    if (add_cell(number, name, reader.words(400, "a spec"))) write_down(written(number, cell(number)));
  }
  reader.finish();
  return reply(ParameterAnswer::done);
}

bool ParameterStore::add_cell(std::uint64_t number, const std::string& name, std::string_view written) {
  Spec spec;
  try {
    spec = spec_from_text(written);
    require(!spec.shape.is_symbolic() && !spec.device.is_named(), "a Variable is ", spec);
    for (const std::int64_t d : spec.shape) require(d >= 0, "a Variable is ", spec);
    bytes_of(spec);
  } catch (const InvalidArgument& error) { throw DataError(text(server_question, ": ", error.what())); }
  if (const auto known = cells_.find(number); known != cells_.end()) {
    require<DataError>(known->second.spec == spec, server_question, ": Variable ", number, " was ", known->second.spec,
                       ", and is now ", spec);
    return false;
  }
  require<DataError>(cells_.size() < ParameterProgram::most_entries, server_question, ": too many Variables");
  cells_.emplace(number, Cell{name, spec, cells_.size()});
  for (Version& version : versions_) version.resize(cells_.size());
  return true;
}

const ParameterStore::Cell& ParameterStore::cell(std::uint64_t number) const {
  const auto found = cells_.find(number);
  require<DataError>(found != cells_.end(), server_question, ": there is no Variable ", number);
  return found->second;
}

std::shared_ptr<const ParameterProgram> ParameterStore::program(std::uint64_t number) const {
  const auto found = programs_.find(number);
  require<DataError>(found != programs_.end(), server_question, ": there is no program ", number);
  return found->second;
}

/// How many bytes it has to have; of a program at most.
std::size_t ParameterStore::size_of_upload(std::uint64_t kind, std::uint64_t subject, std::uint64_t number) const {
  switch (static_cast<ParameterQuestion>(kind)) {
    case ParameterQuestion::set: return static_cast<std::size_t>(bytes_of(cell(subject).spec));
    case ParameterQuestion::push: return program(number)->push_bytes();
    default: return ParameterProgram::most_bytes;
  }
}

std::string ParameterStore::take_piece(std::uint64_t kind, MessageReader& reader) {
  const std::string_view sender = reader.words(most_sender, "the sender");
  const std::uint64_t sequence = reader.integer(), subject = reader.integer(), number = reader.integer();
  const bool is_program = kind == static_cast<std::uint64_t>(ParameterQuestion::program);
  const std::size_t size = size_of_upload(kind, subject, number);
  const std::size_t total = reader.size(size, "the number of bytes"), offset = reader.size(total, "the offset");
  require<DataError>(is_program || total == size, server_question, ": ", total, " bytes come, expected ", size);
  const std::string_view piece = reader.words(std::min(most_piece, total - offset), "a piece");
  reader.finish();
  if (kind == static_cast<std::uint64_t>(ParameterQuestion::push)) {
    if (subject < newest_ || ready_.contains(subject)) return reply(ParameterAnswer::done);  // it counts already
    std::uint64_t here = newest_;
    while (ready_.contains(here)) ++here;
    require<DataError>(subject <= here + lag_, server_question, ": step ", subject, " is pushed while ", here,
                       " are here, and workers lag by ", lag_, " at most");
    if (ready_.size() >= lag_ + most_ready) return reply(ParameterAnswer::wait);
  }
  if (kind == static_cast<std::uint64_t>(ParameterQuestion::set) && newest_ < number)
    return reply(ParameterAnswer::wait);
  auto found = uploads_.find(sender);
  if (found == uploads_.end()) {
    require<ResourceExhausted>(uploads_.size() < most_senders, server_question, ": too many senders");
    found = uploads_.emplace(std::string(sender), Upload()).first;
  }
  Upload& upload = found->second;
  if (sequence < upload.sequence || (sequence == upload.sequence && upload.is_done))
    return reply(ParameterAnswer::done);
  if (sequence > upload.sequence)
    upload = {.sequence = sequence, .kind = kind, .subject = subject, .program = number, .total = total, .bytes = {}};
  if (offset > upload.bytes.size()) return reply(ParameterAnswer::again);  // the pieces before it have been lost
  require<DataError>(
      upload.kind == kind && upload.subject == subject && upload.program == number && upload.total == total,
      server_question, ": pieces do not belong together");
  if (offset + piece.size() > upload.bytes.size()) upload.bytes.append(piece.substr(upload.bytes.size() - offset));
  if (upload.bytes.size() < total) return reply(ParameterAnswer::done);
  const Upload whole = std::exchange(upload, {.sequence = sequence, .is_done = true});
  finish(whole);
  write_down(written(whole));
  return reply(ParameterAnswer::done);
}

void ParameterStore::finish(const Upload& upload) {
  switch (static_cast<ParameterQuestion>(upload.kind)) {
    case ParameterQuestion::set: return set(upload.subject, upload.bytes);
    case ParameterQuestion::push: return accept(upload.subject, upload.program, upload.bytes);
    default: break;
  }
  require<DataError>(upload.subject != every_cell, server_question, ": a program has number 0");
  if (programs_.contains(upload.subject)) return;
  require<ResourceExhausted>(programs_.size() < most_programs, server_question, ": more than ", most_programs,
                             " programs");
  programs_.emplace(upload.subject, std::make_shared<const ParameterProgram>(
                                        upload.bytes, [this](std::uint64_t number) { return cell(number).spec; }));
  if (journal_) program_bytes_.emplace(upload.subject, upload.bytes);
}

/// A first value holds for all versions, as they were made without it; a later one from now on.
void ParameterStore::set(std::uint64_t number, const std::string& bytes) {
  const std::size_t place = cell(number).place;
  const Ref<Buffer> value = buffer_with(bytes);
  for (Version& version : versions_)
    if (!version[place]) version[place] = value;
  versions_.back()[place] = value;
}

void ParameterStore::accept(std::uint64_t step, std::uint64_t number, const std::string& bytes) {
  Push push{number, program(number), {}};
  std::string_view rest = bytes;
  for (const Spec& spec : push.program->pushes()) {
    const auto size = static_cast<std::size_t>(bytes_of(spec));
    push.values.push_back(buffer_with(rest.substr(0, size)));
    rest.remove_prefix(size);
  }
  ready_.emplace(step, std::make_shared<const Push>(std::move(push)));
  changed_.notify_all();
}

std::optional<std::string> ParameterStore::answer_to(const Pull& pull) const {
  if (!failure_.empty()) return reply(ParameterAnswer::failed, failure_);
  if (pull.version > newest_) return {};
  const std::uint64_t oldest = newest_ + 1 - versions_.size();
  require<DataError>(pull.version >= oldest, server_question, ": version ", pull.version, " is gone, the oldest is ",
                     oldest);
  const Version& version = versions_[static_cast<std::size_t>(pull.version - oldest)];
  std::string out = reply(ParameterAnswer::done);
  std::size_t at = 0;  // where the present value begins
  const std::size_t end = pull.offset + std::min(pull.length, PTRDIFF_MAX - pull.offset);
  const auto add = [&](const Cell& one) {
    require<DataError>(static_cast<bool>(version[one.place]), server_question, ": Variable ", one.name,
                       " has no value yet");
    const auto size = static_cast<std::size_t>(version[one.place]->bytes());
    const std::size_t from = std::clamp(pull.offset, at, at + size), to = std::clamp(end, at, at + size);
    if (from < to) out.append(version[one.place]->data<char>() + (from - at), to - from);
    at += size;
  };
  if (pull.program == every_cell)
    for (const auto& [number, one] : cells_) add(one);
  else
    for (const std::uint64_t number : program(pull.program)->pulled()) add(cell(number));
  return out;
}

void ParameterStore::apply_all() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    if (failure_.empty() && ready_.contains(newest_)) {
      try {
        apply(lock);
      } catch (const std::exception& error) {
        if (!lock.owns_lock()) lock.lock();
        failure_ = error.what();
      }
      continue;
    }
    Replies replies;
    const auto now = Clock::now();
    std::erase_if(held_, [&](Pull& pull) {
      std::optional<std::string> bytes;
      try {
        bytes = answer_to(pull);
      } catch (const std::exception& error) { bytes = reply(ParameterAnswer::failed, error.what()); }
      if (!bytes && pull.until <= now) bytes = reply(ParameterAnswer::wait);
      if (!bytes) return false;
      replies.emplace_back(std::move(pull.answer), std::move(*bytes));
      return true;
    });
    if (!replies.empty()) {
      lock.unlock();
      send(std::move(replies));
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, held_.empty() ? std::chrono::milliseconds(1000) : options_.hold / 4);
  }
}

/// The next step, beside questions.
void ParameterStore::apply(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<const Push> push = ready_.at(newest_);  // stays there: it counts while it is applied, too
  const std::string run = run_;
  Version next = versions_.back();
  std::vector<Ref<Buffer>> reads, made;
  std::string problem;
  try {
    for (const std::uint64_t number : push->program->reads()) {
      reads.push_back(next[cell(number).place]);
      require<DataError>(static_cast<bool>(reads.back()), server_question, ": Variable ", cell(number).name,
                         " has no value yet");
    }
    if (lock.mutex() != nullptr) lock.unlock();
    made = push->program->run(reads, push->values);
    if (lock.mutex() != nullptr) lock.lock();
  } catch (const std::exception& error) {
    if (lock.mutex() != nullptr && !lock.owns_lock()) lock.lock();
    problem = text("step ", newest_, " cannot be applied: ", error.what());
  }
  if (run != run_) return;  // another has begun meanwhile
  if (!problem.empty()) {
    failure_ = problem;
    return;
  }
  next.resize(cells_.size());
  for (std::size_t place = 0; place < next.size(); ++place)
    if (!next[place]) next[place] = versions_.back()[place];  // that came meanwhile
  for (std::size_t k = 0; k < made.size(); ++k) next[cell(push->program->assigns()[k]).place] = made[k];
  ready_.erase(newest_);
  versions_.push_back(std::move(next));
  if (versions_.size() > most_versions()) versions_.pop_front();
  ++newest_;
  if (journal_ && lock.mutex() != nullptr && newest_ % options_.snapshot_steps == 0) take_snapshot(lock);
}

void ParameterStore::left(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const Pull& pull) { return pull.call == call; });
}

void ParameterStore::refused(std::string_view peer) { notice_turned_away("a parameter server", peer); }

}  // namespace gradus
