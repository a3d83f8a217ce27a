/// A plugin that hands all calls on to the processor's, but makes one of them fail: what happens to whoever drives it?
/// Tests load copies of the file, so that each has a state of its own.
#include <dlfcn.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include "gradus/backend/xla/pjrt_api.h"

namespace {

using namespace gradus::pjrt;

struct OwnError {
  int code;
  std::string message;
};

const Api* real = nullptr;
Api own{};
std::atomic<long> calls{0}, failing{-1};
std::atomic<bool> stays{false};  // all calls after it fail, too: the device is lost
std::atomic<bool> takes{false};  // a run that fails has taken what was donated
std::atomic<int> code{14};

std::mutex guard;
std::set<const Error*>& errors() {
  static auto* all = new std::set<const Error*>;
  return *all;
}
OwnError* own_error(const Error* error) {
  const std::lock_guard lock(guard);
  return errors().contains(error) ? reinterpret_cast<OwnError*>(const_cast<Error*>(error)) : nullptr;
}
Error* made(const std::string& message) {
  auto* const error = reinterpret_cast<Error*>(new OwnError{code.load(), message});
  const std::lock_guard lock(guard);
  errors().insert(error);
  return error;
}

bool is_to_fail() {
  const long number = calls++;
  const long at = failing.load();
  return at >= 0 && (number == at || (stays && number > at));
}

template <auto function, class Arguments> Error* handed_on(Arguments* a) {
  if (is_to_fail()) return made("call " + std::to_string(calls.load() - 1) + " is made to fail");
  return (real->*function)(a);
}

Error* run(LoadedExecutableExecute* a) {
  if (!is_to_fail()) return real->loaded_executable_execute(a);
  if (takes)  // what was donated is gone, and nothing came of it
    if (Error* const error = real->loaded_executable_execute(a)) return error;
  return made("the device is lost");
}

void destroy_error(ErrorDestroy* a) {
  OwnError* const known = own_error(a->error);
  if (!known) return real->error_destroy(a);
  const std::lock_guard lock(guard);
  errors().erase(a->error);
  delete known;
}
void message_of(ErrorMessage* a) {
  OwnError* const known = own_error(a->error);
  if (!known) return real->error_message(a);
  a->message = known->message.data();
  a->message_size = known->message.size();
}
Error* code_of(ErrorGetCode* a) {
  OwnError* const known = own_error(a->error);
  if (!known) return real->error_get_code(a);
  a->code = known->code;
  return nullptr;
}

}  // namespace

extern "C" {

/// Call `number`, counted from now on, fails with this code; -1: none.
void fail_call(long number, int with_code, bool for_good, bool takes_donated) {
  calls = 0;
  code = with_code;
  stays = for_good;
  takes = takes_donated;
  failing = number;
}
long calls_so_far() { return calls; }

const Api* GetPjrtApi() {
  const char* const path = std::getenv("GRADUS_REAL_PLUGIN");
  void* const library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) return nullptr;
  real = reinterpret_cast<const Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  std::memcpy(static_cast<void*>(&own), real, sizeof own);
  own.head.struct_size = sizeof own;
  own.error_destroy = destroy_error;
  own.error_message = message_of;
  own.error_get_code = code_of;
  own.client_create = handed_on<&Api::client_create, ClientCreate>;
  own.client_compile = handed_on<&Api::client_compile, ClientCompile>;
  own.buffer_from_host_buffer = handed_on<&Api::buffer_from_host_buffer, BufferFromHostBuffer>;
  own.buffer_to_host_buffer = handed_on<&Api::buffer_to_host_buffer, BufferToHostBuffer>;
  own.buffer_copy_to_device = handed_on<&Api::buffer_copy_to_device, BufferCopyToDevice>;
  own.event_await = handed_on<&Api::event_await, EventAwait>;
  own.loaded_executable_execute = run;
  const std::string what = std::getenv("GRADUS_FAILING_PLUGIN") ? std::getenv("GRADUS_FAILING_PLUGIN") : "";
  if (what == "version") own.version.major = 9;
  if (what == "old") own.version.minor = 1;
  if (what == "table") own.head.struct_size = 64;
  if (what == "client") fail_call(0, 14, true, false);
  return &own;
}
}
