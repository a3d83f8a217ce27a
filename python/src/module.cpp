// The module gradus._native.
#include <mutex>
#include "gradus/ops/random_state.h"
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// Notices of the library become warnings of Python. The thread that has one may hold locks of the engine, under which
/// no Python runs: the main thread warns, between two instructions.
struct Notices {
  std::mutex guard;
  std::vector<std::string> left;
};

Notices& notices() {
  static auto* const all = new Notices;
  return *all;
}

void warn(const std::string& message) {
  if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) != 0) PyErr_WriteUnraisable(nullptr);
}

int warn_of_left(void*) {
  std::vector<std::string> left;
  {
    const std::lock_guard lock(notices().guard);
    left.swap(notices().left);
  }
  for (const std::string& message : left) warn(message);
  return 0;
}

void leave_notice(std::string_view message) {
  while (message.ends_with('\n')) message.remove_suffix(1);
  const std::lock_guard lock(notices().guard);
  notices().left.push_back(in_words_of_python(message));
  Py_AddPendingCall(warn_of_left, nullptr);
}

/// The engine's and this module's state of the process belongs to one interpreter.
void refuse_further_interpreters() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
    throw nb::import_error("gradus works in the main interpreter of a process alone, not in a sub-interpreter");
}

void end_all() {
  close_readings();
  set_notice_sink({});
  set_progress_sink({});
  end_of_python();
}

}  // namespace
}  // namespace gradus::python

NB_MODULE(_native, module) {
  using namespace gradus::python;
  refuse_further_interpreters();
  nb::set_leak_warnings(false);  // objects that the engine keeps until the process ends are no leaks
  bind_errors(module);
  bind_dtypes(module);
  bind_devices(module);
  bind_arrays(module);
  bind_tensor(module);
  bind_variable(module);
  bind_tape(module);
  bind_function(module);
  bind_transforms(module);
  bind_pipeline(module);
  bind_generated(module);
  bind_models(module);
  bind_training(module);
  bind_strategies(module);
  bind_summaries(module);
  bind_files(module);
  bind_profiles(module);
  module.def("version", [] { return std::string(gradus::version()); }, "The version of the library.");
  module.def(
      "set_num_threads", [](int n) { without_gil([n] { gradus::set_num_threads(n); }); }, "n"_a,
      "Sets the number of threads that compute. It changes no result.");
  module.def("num_threads", gradus::num_threads, "The number of threads that compute.");
  module.def("set_seed", gradus::set_seed, "seed"_a, "Sets the state of random ops without a seed of their own.");
  module.def(
      "_is_traced", [] { return gradus::CallContext::here().trace != nullptr; }, "True while a function is traced.");
  module.def("_is_training", [] { return gradus::is_training(); }, "True in the mode of training.");
  module.def("_random_state", gradus::random_state, "The state of random ops without a seed of their own.");
  module.def("_set_random_state", gradus::set_random_state, "state"_a);
  module.def("_notice", [](const std::string& message) { gradus::notice(message); });
  gradus::set_notice_sink(leave_notice);
  give_up_gil_for_long_work();
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(end_all));
}
