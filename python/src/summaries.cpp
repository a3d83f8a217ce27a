// Event files for TensorBoard.
#include "python/src/binding.h"

namespace gradus::python {

void bind_summaries(nb::module_& module) {
  nb::class_<SummaryWriter>(module, "_SummaryWriter")
      .def(
          "__init__", [](SummaryWriter* self, const std::string& directory) { new (self) SummaryWriter(directory); },
          "directory"_a)
      .def("scalar", &SummaryWriter::scalar, "tag"_a, "step"_a, "value"_a)
      .def(
          "histogram",
          [](SummaryWriter& self, const std::string& tag, std::int64_t step, const TensorArg& values) {
            const Tensor given = values.tensor();
            without_gil([&] { self.histogram(tag, step, given); });
          },
          "tag"_a, "step"_a, "values"_a)
      .def(
          "image",
          [](SummaryWriter& self, const std::string& tag, std::int64_t step, const TensorArg& image) {
            const Tensor given = image.tensor();
            without_gil([&] { self.image(tag, step, given); });
          },
          "tag"_a, "step"_a, "image"_a)
      .def("text", &SummaryWriter::text, "tag"_a, "step"_a, "value"_a, "plugin"_a = "text", "content"_a = "")
      .def_prop_ro("file", [](const SummaryWriter& self) { return self.file().string(); });
}

}  // namespace gradus::python
