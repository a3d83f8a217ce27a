/// Functions of Python that a layer holds, as Python's collector sees them: `activation=lambda x: f(model, x)` makes a
/// cycle through the layer.
#pragma once
#include <memory>
#include <vector>
#include "python/src/interpreter.h"

namespace gradus::python {

/// In its lifetime it notes the objects of Python that C++ begins to keep on this thread.
class HeldObjects {
 public:
  [[nodiscard]] HeldObjects();
  ~HeldObjects();
  HeldObjects(const HeldObjects&) = delete;
  /// An object that C++ begins to keep.
  static void note(const std::shared_ptr<PyObject>& object);
  const std::vector<std::weak_ptr<PyObject>>& all() const { return all_; }

 private:
  std::vector<std::weak_ptr<PyObject>> all_;
  HeldObjects* const before_;
};

/// Tells the collector of what a new layer, `self`, keeps. Other objects are left as they are.
void show_functions(PyObject* self, const HeldObjects& made);

}  // namespace gradus::python
