#include "gradus/backend/xla/compiled_code.h"
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <unordered_map>
#include "gradus/backend/xla/counts.h"
#include "gradus/base/clock.h"
#include "gradus/base/code_folder.h"
#include "gradus/base/hash.h"
#include "gradus/base/input_file.h"
#include "gradus/base/notice.h"
#include "gradus/graph/activity_scope.h"

namespace gradus::xla {
namespace {

/// Code by its text and device.
class Cache {
 public:
  std::shared_ptr<const CompiledCode> find(const DeviceGroup& on, const StableHloModule& module) {
    const std::lock_guard lock(guard_);
    for (auto [it, last] = known_.equal_range(module.fingerprint); it != last; ++it) {
      const auto code = it->second.code.lock();
      if (code && it->second.on == &on && code->module->text == module.text) return code;
    }
    return nullptr;
  }
  void add(const DeviceGroup& on, std::shared_ptr<const CompiledCode> code) {
    std::shared_ptr<const CompiledCode> oldest;  // dies after the lock
    const std::lock_guard lock(guard_);
    std::erase_if(known_, [](const auto& entry) { return entry.second.code.expired(); });
    known_.emplace(code->module->fingerprint, Known{&on, code});
    newest_.push_back(std::move(code));
    if (newest_.size() <= most_kept) return;
    oldest = std::move(newest_.front());
    newest_.pop_front();
  }

 private:
  static constexpr std::size_t most_kept = 64;  // unused ones
  struct Known {
    const DeviceGroup* on;
    std::weak_ptr<const CompiledCode> code;
  };
  std::mutex guard_;
  std::unordered_multimap<std::int64_t, Known> known_;
  std::deque<std::shared_ptr<const CompiledCode>> newest_;
};
Cache& cache() {
  static auto* only = new Cache;
  return *only;
}

// ---------------------------------------------------------------- on disk

std::uint64_t hash_of_code(std::string_view bytes) {
  return hash_of_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

/// Reports each line once: every program asks for the folder.
void tell_once(const std::string& line) {
  static std::mutex guard;
  static auto* const told = new std::set<std::string>;
  {
    const std::lock_guard lock(guard);
    if (!told->insert(line).second) return;
  }
  notice(line);
}

/// The folder that GRADUS_XLA_CACHE names; empty if it names none, or one that cannot be used.
std::filesystem::path folder_of_code() {
  const char* const named = std::getenv("GRADUS_XLA_CACHE");
  if (!named || !*named) return {};
  const CodeFolder folder = code_folder(named);
  if (!folder.problem.empty())
    tell_once(text("gradus: GRADUS_XLA_CACHE: ", folder.problem, "; compiled code is not kept\n"));
  return folder.path;
}

/// A file of the folder: a line that identifies it, one with the length and hash of the code, an empty one, the code.
class CodeFile {
 public:
  CodeFile(const DeviceGroup& on, const StableHloModule& module) {
    const std::filesystem::path folder = folder_of_code();
    if (folder.empty()) return;
    try {
      key_ = key_of(on, module);
    } catch (const pjrt::Refused&) { return; }  // a device that does not identify itself has no files
    path_ = folder / text(std::hex, hash_of_code(key_), ".xla");
  }
  std::unique_ptr<const pjrt::Loaded> load(const DeviceGroup& on) const {
    if (path_.empty() || !is_own_file(path_)) return nullptr;
    std::string all;
    try {
      all = read_text_file(path_);
    } catch (const Error&) { return nullptr; }
    const std::size_t end = all.find("\n\n");
    if (end == std::string::npos) return nullptr;
    const std::string bytes = all.substr(end + 2);
    if (all.substr(0, end) != head_of(bytes)) return nullptr;
    try {
      return on.first().session.load(bytes, on.options);
    } catch (const pjrt::Refused&) { return nullptr; }  // then it is compiled
  }
  /// A failure to write is reported once: nothing else depends on the file.
  void store(const pjrt::Loaded& loaded) const {
    if (path_.empty()) return;
    const std::string bytes = loaded.serialized();
    if (bytes.empty()) return;
    const std::filesystem::path beside = path_.string() + text('.', getpid());
    const std::string all = head_of(bytes) + "\n\n" + bytes;
    std::FILE* const out = std::fopen(beside.c_str(), "wbe");
    if (!out) return tell_not_written(std::generic_category().message(errno));
    std::string why;
    if (std::fwrite(all.data(), 1, all.size(), out) != all.size()) why = std::generic_category().message(errno);
    if (std::fclose(out) != 0 && why.empty()) why = std::generic_category().message(errno);
    std::error_code problem;
    if (why.empty()) std::filesystem::rename(beside, path_, problem);
    if (problem) why = problem.message();
    if (why.empty()) return;
    std::filesystem::remove(beside, problem);
    tell_not_written(why);
  }

 private:
  void tell_not_written(const std::string& why) const {
    tell_once(text("gradus: GRADUS_XLA_CACHE: ", path_.parent_path().string(), " cannot be written: ", why,
                   "; what is compiled is not kept there\n"));
  }
  static std::string key_of(const DeviceGroup& on, const StableHloModule& module) {
    const pjrt::Session& session = on.first().session;
    std::string options;
    for (const char c : on.options) options += text(static_cast<int>(static_cast<unsigned char>(c)), ',');
    std::string key = text("gradus-xla-1 ", session.platform(), '|', session.platform_version(), '|',
                           session.plugin().api_version(), '|', session.description_of(on.first().handle), '|', options,
                           '|', module.text.size(), '|', hash_of_code(module.text));
    std::ranges::replace(key, '\n', ' ');
    return key;
  }
  std::string head_of(const std::string& bytes) const {
    return text(key_, '\n', bytes.size(), ' ', hash_of_code(bytes));
  }
  std::string key_;
  std::filesystem::path path_;  // empty: files are not asked for
};

std::unique_ptr<const pjrt::Loaded> compile(const DeviceGroup& on, const StableHloModule& module) {
  const CompileActivity activity(text("compile for ", on.text()));
  try {
    ++counts().compilations;
    return on.first().session.compile(module.text, on.options);
  } catch (const pjrt::Refused& refused) {
    if (refused.code() == pjrt::Code::resource_exhausted) on.first().account.fail(0, "a program", refused.what());
    throw Unavailable(text("device ", on.text(), ": the plugin does not compile a program: ", refused.what()));
  }
}

}  // namespace

std::shared_ptr<const CompiledCode> compiled_code(const DeviceGroup& on,
                                                  std::shared_ptr<const StableHloModule> module) {
  if (auto known = cache().find(on, *module)) return known;
  const CodeFile file(on, *module);
  std::unique_ptr<const pjrt::Loaded> loaded = file.load(on);
  if (!loaded) {
    loaded = compile(on, *module);
    file.store(*loaded);
  }
  auto code = std::make_shared<CompiledCode>();
  code->module = std::move(module);
  code->temporary_bytes = loaded->temporary_bytes();
  code->loaded = std::move(loaded);
  cache().add(on, code);
  return code;
}

}  // namespace gradus::xla
