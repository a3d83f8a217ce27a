/// Stages of a data set under Python, for the parts of the binding that read them.
#pragma once
#include <memory>
#include "python/src/casters.h"

namespace gradus::python {

/// Stages under Python. Their end may join threads that wait for the GIL.
struct PythonPipeline {
  std::unique_ptr<const erased::Pipeline> stages;

  explicit PythonPipeline(const erased::Pipeline& made) : stages(std::make_unique<const erased::Pipeline>(made)) {}
  PythonPipeline(PythonPipeline&&) = default;
  ~PythonPipeline() {
    if (stages) without_gil([this] { stages.reset(); });
  }
};

/// Lists of tensors, the fields of an element.
nb::list list_of(In fields);
Tensors fields_of(nb::handle given);

}  // namespace gradus::python
