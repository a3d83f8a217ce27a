#include "gradus/distribute/messages/component.h"
#include <dlfcn.h>
#include <signal.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/library_file.h"

namespace gradus {
namespace {

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

/// Libraries replace the program's signal handlers when they are loaded. UCX does so for faults, and for SIGHUP in
/// order to wait for a debugger, so that SIGHUP no longer ends the process. All handlers are restored, except those for
/// which a user has set UCX's variables.
class KeptSignals {
 public:
  KeptSignals() {
    for (int signal = 1; signal < end; ++signal)
      is_known_[index(signal)] = sigaction(signal, nullptr, &before(signal)) == 0;
  }
  ~KeptSignals() {
    const bool keeps_faults = is_set("UCX_ERROR_SIGNALS") || is_set("UCX_HANDLE_ERRORS");
    const bool keeps_others = is_set("UCX_DEBUG_SIGNO");
    for (int signal = 1; signal < end; ++signal)
      if (is_known_[index(signal)] && !(is_fault(signal) ? keeps_faults : keeps_others))
        sigaction(signal, &before(signal), nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;

 private:
  static constexpr int end = 32;  // later signals are the C library's, or real-time signals
  static bool is_fault(int signal) {
    constexpr std::array faults = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGPIPE};
    return std::ranges::find(faults, signal) != faults.end();
  }
  static std::size_t index(int signal) { return static_cast<std::size_t>(signal); }
  struct sigaction& before(int signal) { return before_[index(signal)]; }
  std::array<struct sigaction, end> before_{};
  std::array<bool, end> is_known_{};
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
                         " and build Gradus again, or, where Gradus is a package of the system, install gradus-ranks"));
}

void* load_anew(const Component& component) {
  const KeptSignals kept;
  const std::filesystem::path folder = folder_of_components();
  const std::string file = std::string("lib") + component.library + ".so";
  std::error_code ignored;
  for (const auto& place : {folder / file, folder / "gradus" / file, folder / ".." / "lib" / file}) {
    if (!std::filesystem::exists(place, ignored)) continue;
    const std::string problem = why_cut_off(place);
    require<Unavailable>(problem.empty(), component.purpose, " cannot be used: ", problem);
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
