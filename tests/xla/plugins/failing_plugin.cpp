/// A plugin that hands all calls on to the processor's, but makes one of them fail, all of a function, or what a run
/// makes: what happens to whoever drives it? Tests load copies of the file, so that each has a state of its own.
#include <dlfcn.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include "gradus/backend/xla/pjrt_api.h"

namespace {

using namespace gradus::pjrt;

struct OwnError {
  int code;
  std::string message;
};

/// What was asked for, and what has happened.
struct State {
  std::recursive_mutex guard;
  long calls = 0, failing = -1;
  bool stays = false;  // all calls after it fail, too: the device is lost
  bool takes = false;  // a run that fails has taken what was donated
  int code = 14;
  std::string functions;  // all calls of these fail: "client_compile,error_get_code"
  std::map<std::string, long, std::less<>> calls_of;
  long poisoned_run = -1;  // so many runs from now on one begins well, and what it makes fails later
  std::set<const Buffer*> buffers;
  std::set<const Event*> events;  // of such buffers
  std::set<const Error*> errors;  // our own
};
State& state() {
  static auto* all = new State;
  return *all;
}
using Lock = std::lock_guard<std::recursive_mutex>;

const Api* real = nullptr;
Api own{};

OwnError* own_error(const Error* error) {
  const Lock lock(state().guard);
  return state().errors.contains(error) ? reinterpret_cast<OwnError*>(const_cast<Error*>(error)) : nullptr;
}
Error* made(const std::string& message) {
  const Lock lock(state().guard);
  auto* const error = reinterpret_cast<Error*>(new OwnError{state().code, message});
  state().errors.insert(error);
  return error;
}
Error* poisoned() { return made("the run has failed on the device"); }

bool is_named(std::string_view function, std::string_view names) {
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    if (names.substr(begin, end - begin) == function) return true;
    begin = end + 1;
  }
  return false;
}

/// Counts a call.
bool is_to_fail(std::string_view function) {
  State& s = state();
  const Lock lock(s.guard);
  const long number = s.calls++;
  ++s.calls_of[std::string(function)];
  return is_named(function, s.functions) ||
         (s.failing >= 0 && (number == s.failing || (s.stays && number > s.failing)));
}

/// The name of a function as an argument of templates.
template <std::size_t n> struct Name {
  char text[n];
  constexpr Name(const char (&from)[n]) { std::copy_n(from, n, text); }
  constexpr std::string_view view() const { return {text, n - 1}; }
};

/// What is to be destroyed is gone either way.
template <Name name, auto function, class Arguments> Error* handed_on(Arguments* a) {
  if (!is_to_fail(name.view())) return (real->*function)(a);
  if (name.view().ends_with("_destroy"))
    if (Error* const error = (real->*function)(a)) return error;
  return made(std::string(name.view()) + " is made to fail");
}

// ---------------------------------------------------------------- what a run makes fails later

template <class T> bool contains(const std::set<const T*>& all, const T* one) {
  const Lock lock(state().guard);
  return all.contains(one);
}
template <class T> void insert(std::set<const T*>& all, const T* one) {
  const Lock lock(state().guard);
  all.insert(one);
}

/// Whether this run is the poisoned one, or reads what is poisoned.
bool is_poisoned(const LoadedExecutableExecute& a) {
  State& s = state();
  const Lock lock(s.guard);
  if (s.poisoned_run >= 0 && s.poisoned_run-- == 0) return true;
  for (std::size_t d = 0; d < a.num_devices; ++d)
    for (std::size_t k = 0; k < a.num_arguments; ++k)
      if (s.buffers.contains(a.argument_lists[d][k])) return true;
  return false;
}

std::size_t results_of(LoadedExecutable* loaded) {
  LoadedExecutableGetExecutable a{{sizeof a, nullptr}, loaded, nullptr};
  real->loaded_executable_get_executable(&a);
  struct NumOutputs {
    Head head;
    Executable* executable;
    std::size_t count;
  } outputs{{sizeof outputs, nullptr}, a.executable, 0};
  reinterpret_cast<Error* (*)(NumOutputs*)>(real->executable_num_outputs)(&outputs);
  ExecutableDestroy destroy{{sizeof destroy, nullptr}, a.executable};
  real->executable_destroy(&destroy);
  return outputs.count;
}

/// Of few devices, since a process may have 64, and tests load many copies.
Error* devices(ClientAddressableDevices* a) {
  Error* const error = handed_on<"client_addressable_devices", &Api::client_addressable_devices>(a);
  if (!error) a->num_devices = std::min<std::size_t>(a->num_devices, 2);
  return error;
}

Error* run(LoadedExecutableExecute* a) {
  if (is_to_fail("loaded_executable_execute")) {
    if (state().takes)  // what was donated is gone, and nothing came of it
      if (Error* const error = real->loaded_executable_execute(a)) return error;
    return made("the device is lost");
  }
  const bool is_bad = is_poisoned(*a);
  Error* const error = real->loaded_executable_execute(a);
  if (error || !is_bad) return error;
  const std::size_t results = results_of(a->executable);
  for (std::size_t d = 0; d < a->num_devices; ++d)
    for (std::size_t k = 0; k < results; ++k) insert(state().buffers, a->output_lists[d][k]);
  return nullptr;
}

Error* ready_event(BufferReadyEvent* a) {
  Error* const error = handed_on<"buffer_ready_event", &Api::buffer_ready_event>(a);
  if (!error && contains(state().buffers, a->buffer)) insert(state().events, a->event);
  return error;
}
Error* to_host(BufferToHostBuffer* a) {
  Error* const error = handed_on<"buffer_to_host_buffer", &Api::buffer_to_host_buffer>(a);
  if (!error && contains(state().buffers, a->source)) insert(state().events, a->event);
  return error;
}
Error* to_device(BufferCopyToDevice* a) {
  Error* const error = handed_on<"buffer_copy_to_device", &Api::buffer_copy_to_device>(a);
  if (!error && contains(state().buffers, a->buffer)) insert(state().buffers, a->copy);
  return error;
}
Error* destroy_buffer(BufferDestroy* a) {
  {
    const Lock lock(state().guard);
    state().buffers.erase(a->buffer);  // another one may get its place
  }
  return handed_on<"buffer_destroy", &Api::buffer_destroy>(a);
}

Error* await_event(EventAwait* a) {
  Error* const error = handed_on<"event_await", &Api::event_await>(a);
  return !error && contains(state().events, a->event) ? poisoned() : error;
}
Error* on_ready(EventOnReady* a) {
  if (!contains(state().events, a->event)) return handed_on<"event_on_ready", &Api::event_on_ready>(a);
  struct Asked {
    void (*callback)(Error*, void*);
    void* argument;
  };
  auto asked = std::make_unique<Asked>(Asked{a->callback, a->argument});
  EventOnReady instead = *a;
  instead.argument = asked.get();
  instead.callback = [](Error* error, void* argument) {
    const std::unique_ptr<Asked> waiting(static_cast<Asked*>(argument));
    waiting->callback(error ? error : poisoned(), waiting->argument);
  };
  Error* const error = handed_on<"event_on_ready", &Api::event_on_ready>(&instead);
  if (!error) asked.release();  // the callback's
  return error;
}
Error* destroy_event(EventDestroy* a) {
  {
    const Lock lock(state().guard);
    state().events.erase(a->event);
  }
  return handed_on<"event_destroy", &Api::event_destroy>(a);
}

// ---------------------------------------------------------------- errors

void destroy_error(ErrorDestroy* a) {
  OwnError* const known = own_error(a->error);
  if (!known) return real->error_destroy(a);
  const Lock lock(state().guard);
  state().errors.erase(a->error);
  delete known;
}
void message_of(ErrorMessage* a) {
  OwnError* const known = own_error(a->error);
  if (!known) return real->error_message(a);
  a->message = known->message.data();
  a->message_size = known->message.size();
}
Error* code_of(ErrorGetCode* a) {
  if (is_to_fail("error_get_code")) return made("error_get_code is made to fail");
  OwnError* const known = own_error(a->error);
  if (!known) return real->error_get_code(a);
  a->code = known->code;
  return nullptr;
}

}  // namespace

extern "C" {

/// Call `number`, counted from now on, fails with this code; -1: none.
void fail_call(long number, int with_code, bool for_good, bool takes_donated) {
  State& s = state();
  const Lock lock(s.guard);
  s.calls = 0;
  s.code = with_code;
  s.stays = for_good;
  s.takes = takes_donated;
  s.failing = number;
}
long calls_so_far() {
  const Lock lock(state().guard);
  return state().calls;
}
/// From now on all calls of these functions fail; "": of none.
void fail_functions(const char* names, int with_code) {
  const Lock lock(state().guard);
  state().functions = names;
  state().code = with_code;
  state().calls_of.clear();
}
/// Since fail_functions().
long calls_of_function(const char* name) {
  const Lock lock(state().guard);
  return state().calls_of[name];
}
/// After `runs` more of them a run begins well, and what it makes fails later with this code; what is made of that,
/// too.
void poison_run(long runs, int with_code) {
  const Lock lock(state().guard);
  state().poisoned_run = runs;
  state().code = with_code;
}

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
  own.plugin_initialize = handed_on<"plugin_initialize", &Api::plugin_initialize>;
  own.event_destroy = destroy_event;
  own.event_await = await_event;
  own.event_on_ready = on_ready;
  own.client_create = handed_on<"client_create", &Api::client_create>;
  own.client_platform_name = handed_on<"client_platform_name", &Api::client_platform_name>;
  own.client_platform_version = handed_on<"client_platform_version", &Api::client_platform_version>;
  own.client_addressable_devices = devices;
  own.client_compile = handed_on<"client_compile", &Api::client_compile>;
  own.description_id = handed_on<"description_id", &Api::description_id>;
  own.description_kind = handed_on<"description_kind", &Api::description_kind>;
  own.device_get_description = handed_on<"device_get_description", &Api::device_get_description>;
  own.device_memory_stats = handed_on<"device_memory_stats", &Api::device_memory_stats>;
  own.executable_destroy = handed_on<"executable_destroy", &Api::executable_destroy>;
  own.executable_serialize = handed_on<"executable_serialize", &Api::executable_serialize>;
  own.executable_memory_stats = handed_on<"executable_memory_stats", &Api::executable_memory_stats>;
  own.executable_deserialize_and_load =
      handed_on<"executable_deserialize_and_load", &Api::executable_deserialize_and_load>;
  own.loaded_executable_destroy = handed_on<"loaded_executable_destroy", &Api::loaded_executable_destroy>;
  own.loaded_executable_get_executable =
      handed_on<"loaded_executable_get_executable", &Api::loaded_executable_get_executable>;
  own.loaded_executable_execute = run;
  own.buffer_from_host_buffer = handed_on<"buffer_from_host_buffer", &Api::buffer_from_host_buffer>;
  own.buffer_destroy = destroy_buffer;
  own.buffer_is_deleted = handed_on<"buffer_is_deleted", &Api::buffer_is_deleted>;
  own.buffer_copy_to_device = to_device;
  own.buffer_to_host_buffer = to_host;
  own.buffer_ready_event = ready_event;
  const std::string what = std::getenv("GRADUS_FAILING_PLUGIN") ? std::getenv("GRADUS_FAILING_PLUGIN") : "";
  constexpr std::string_view of_function = "functions:";
  fail_functions(what.starts_with(of_function) ? what.substr(of_function.size()).c_str() : "", 14);
  if (what == "version") own.version.major = 9;
  if (what == "old") own.version.minor = 1;
  if (what == "table") own.head.struct_size = 64;
  if (what == "client") fail_functions("client_create", 14);
  return &own;
}
}
