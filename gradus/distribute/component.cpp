#include "gradus/distribute/component.h"
#include <dlfcn.h>
#include <signal.h>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>
#include "gradus/base/error.h"

namespace gradus {
namespace {

/// UCX puts handlers before those of the program, for faults that are none of its business: they are taken back.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t i = 0; i < faults.size(); ++i) sigaction(faults[i], nullptr, &before_[i]);
  }
  ~KeptSignals() {
    for (std::size_t i = 0; i < faults.size(); ++i) sigaction(faults[i], &before_[i], nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;

 private:
  static constexpr std::array faults = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGPIPE};
  std::array<struct sigaction, faults.size()> before_;
};

std::string last_problem() {
  const char* const problem = dlerror();
  return problem != nullptr ? problem : "no reason given";
}

[[noreturn]] void fail(const Component& component, bool is_there, const std::string& problem) {
  for (const std::string_view limit : {"Too many open files", "failed to map segment", "Cannot allocate memory"})
    if (problem.find(limit) != std::string::npos)
      throw Unavailable(text(component.purpose, " cannot be used: ", problem,
                             ": a limit of this process is reached (ulimit -n, ulimit -v)"));
  if (is_there)
    throw Unavailable(text(component.purpose, " cannot be used: ", problem, ": install the package ", component.runtime,
                           ", which it needs to run"));
  throw Unavailable(text(component.purpose, " is not in this build of Gradus: lib", component.library, ".so is not in ",
                         folder_of_components(), ": install the package ", component.package,
                         " and build Gradus again"));
}

void* load_anew(const Component& component) {
  const KeptSignals kept;
  const std::filesystem::path folder = folder_of_components();
  const std::string file = std::string("lib") + component.library + ".so";
  std::error_code ignored;
  for (const auto& place : {folder / file, folder / ".." / "lib" / file}) {
    if (!std::filesystem::exists(place, ignored)) continue;
    void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) fail(component, true, last_problem());
    void* const entry = dlsym(library, component.entry);
    if (entry == nullptr) fail(component, true, last_problem());
    return entry;
  }
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);  // where the system looks
  void* const entry = library != nullptr ? dlsym(library, component.entry) : nullptr;
  if (entry == nullptr) fail(component, library != nullptr, library != nullptr ? last_problem() : std::string());
  return entry;
}

}  // namespace

std::string folder_of_components() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(&folder_of_components), &found) == 0 || found.dli_fname == nullptr) return ".";
  std::error_code ignored;
  const auto file = std::filesystem::weakly_canonical(found.dli_fname, ignored);
  return file.parent_path().string();
}

void* load(const Component& component) {
  static std::mutex mutex;
  static std::map<std::string, void*> loaded;
  const std::lock_guard lock(mutex);
  void*& entry = loaded[component.library];
  if (entry == nullptr) entry = load_anew(component);
  return entry;
}

}  // namespace gradus
