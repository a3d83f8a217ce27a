// Profiles: they begin and end where Python says, on the thread that runs it.
#include <optional>
#include "gradus/graph/scope.h"
#include "gradus/profile/session.h"
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// `with` a part of a profile.
struct PythonScope {
  std::string name;
  std::unique_ptr<ProfileScope> scope = {};
};

/// `with` it, ops belong to a layer.
struct PythonNameScope {
  std::string name;
  std::optional<NameScope> scope = {};
};

void bind_report(nb::module_& module) {
  nb::class_<ProfileReport>(module, "ProfileReport", "Where the time of some work went.")
      .def_ro("seconds", &ProfileReport::seconds, "On the clock.")
      .def_ro("compute", &ProfileReport::compute, "Seconds in which programs ran.")
      .def_ro("input_wait", &ProfileReport::input_wait, "Seconds of waiting for elements of data sets.")
      .def_ro("compile", &ProfileReport::compile, "Seconds of tracing and compiling.")
      .def_ro("communication", &ProfileReport::communication, "Seconds with other processes.")
      .def_ro("host", &ProfileReport::host, "Seconds of all else: Python's own.")
      .def_ro("peak_bytes", &ProfileReport::peak_bytes, "Bytes of tensors, above those at the beginning.")
      .def("to_json", &ProfileReport::to_json, "Parts, rows and suggestions, as JSON.")
      .def(
          "save_trace", [](const ProfileReport& self, const std::string& file) { self.save_trace(file); }, "file"_a,
          "Writes Chrome's trace events, for Perfetto.")
      .def(
          "save_xplane", [](const ProfileReport& self, const std::string& directory) { self.save_xplane(directory); },
          "directory"_a, "Writes what TensorBoard's profile plugin reads.")
      .def("__str__", printed<ProfileReport>)
      .def("__repr__", printed<ProfileReport>);
}

}  // namespace

void bind_profiles(nb::module_& module) {
  bind_report(module);
  nb::class_<ProfileSession>(module, "_ProfileSession").def(nb::init<>()).def("finish", [](ProfileSession& self) {
    return without_gil([&] { return self.finish(); });
  });
  nb::class_<PythonScope>(module, "ProfileScope",
                          "`with` it, this thread's work is a row of the report of its profile.")
      .def(
          "__init__", [](PythonScope* self, std::string name) { new (self) PythonScope{std::move(name)}; }, "name"_a)
      .def("__enter__",
           [](nb::handle self) {
             PythonScope& scope = nb::cast<PythonScope&>(self);
             if (scope.scope) throw nb::value_error("ProfileScope: it has begun already");
             scope.scope = std::make_unique<ProfileScope>(scope.name);
             return nb::borrow(self);
           })
      .def("__exit__", [](PythonScope& self, const nb::args&) { self.scope.reset(); });
  nb::class_<PythonNameScope>(module, "_NameScope", "`with` it, ops belong to a layer of this name.")
      .def(
          "__init__", [](PythonNameScope* self, std::string name) { new (self) PythonNameScope{std::move(name)}; },
          "name"_a)
      .def("__enter__",
           [](nb::handle self) {
             PythonNameScope& scope = nb::cast<PythonNameScope&>(self);
             if (scope.scope) throw nb::value_error("name_scope: it has begun already");
             scope.scope.emplace(scope.name);
             return nb::borrow(self);
           })
      .def("__exit__", [](PythonNameScope& self, const nb::args&) { self.scope.reset(); });
}

}  // namespace gradus::python
