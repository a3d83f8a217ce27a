/// Stages of a data set under Python, for the parts of the binding that read them.
///
/// Stages call functions of Python, and do not keep them: the objects of Python that hold the stages do, by Keepers,
/// each with a reference of its own. So Python's collector sees all references, and a cycle that leads through a data
/// set is collected.
#pragma once
#include <memory>
#include <vector>
#include "python/src/casters.h"

namespace gradus::python {

/// A function of Python as stages hold it. All calls are under the GIL.
class StageFunction {
 public:
  explicit StageFunction(nb::handle function) : function_(function.ptr()) {}
  /// The function. InvalidArgument once no Keeper has it, which the collector brings about while a pass runs on.
  nb::object get() const;
  /// From now on stages keep it, too: for a data set that a function of a stage gave, whose object ends before its
  /// stages.
  void keep_by_stages() {
    if (function_) kept_by_stages_ = Held(nb::borrow(function_));
  }

 private:
  friend class Keeper;
  PyObject* function_;  // null once no Keeper has it
  int keepers_ = 0;
  Held kept_by_stages_;
};
using StageFunctionPointer = std::shared_ptr<StageFunction>;

/// Keeps a function that stages call.
class Keeper {
 public:
  explicit Keeper(StageFunctionPointer function)
      : function_(std::move(function)), object_(nb::borrow(function_->function_)) {
    ++function_->keepers_;
  }
  Keeper(const Keeper& other) : Keeper(other.function_) {}
  Keeper(Keeper&& other) = default;
  Keeper& operator=(Keeper other) {
    function_.swap(other.function_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Keeper() {
    if (function_ && --function_->keepers_ == 0 && !function_->kept_by_stages_) function_->function_ = nullptr;
  }
  StageFunction& function() const { return *function_; }
  const StageFunctionPointer& pointer() const { return function_; }
  nb::handle object() const { return object_; }

 private:
  StageFunctionPointer function_;
  nb::object object_;
};
using Keepers = std::vector<Keeper>;

/// The elements of the iterator that make() gives, anew in each pass. `signature`: a nest of tuples, lists and dicts,
/// of which the specs are the leaves.
erased::Pipeline generated(std::vector<Spec> specs, nb::handle signature, const StageFunctionPointer& make);

/// Stages under Python. Their end may join threads that wait for the GIL.
struct PythonPipeline {
  Keepers keepers;
  std::unique_ptr<const erased::Pipeline> stages;

  explicit PythonPipeline(const erased::Pipeline& made, Keepers kept = {})
      : keepers(std::move(kept)), stages(std::make_unique<const erased::Pipeline>(made)) {}
  PythonPipeline(PythonPipeline&&) = default;
  ~PythonPipeline() {
    if (stages) without_gil([this] { stages.reset(); });
  }
};

/// Lists of tensors, the fields of an element.
nb::list list_of(In fields);
Tensors fields_of(nb::handle given);

}  // namespace gradus::python
