/// Calls of functions of Python, taken apart: tensors and arrays are the arguments of a program, all else is spelt into
/// its key. Numbers, texts and None count by value, Variables and other objects by identity. The nest of a result stays
/// with the program, its tensors taken out.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include "python/src/casters.h"

namespace gradus::python {

/// A call of a function of Python.
struct Call {
  nb::object arguments;  // (args, kwargs)
  Tensors tensors = {};
  std::string key = {};      // all that is no tensor
  std::string numbers = {};  // Python's numbers among that

  /// Adds an argument that is no tensor to the key.
  void spell(nb::handle leaf);
  /// f of the arguments, with these tensors in the places of its own. The GIL is held.
  nb::object apply(nb::handle f, In in) const;
};

/// The call with these arguments.
Call call_of(nb::handle args, nb::handle kwargs);
/// True for a tensor, an array or an object that has one: an argument of the program.
bool is_traced(nb::handle leaf);
/// The class of bound methods, which the stable ABI does not name.
nb::handle method_class();
/// The tensors of a result, and its nest without them.
erased::Called called_with(nb::handle result);
/// The nest that a program keeps of its results, with give(i) in the place of tensor i.
nb::object nest_of_results(const std::shared_ptr<const void>& structure,
                           const std::function<nb::object(std::size_t)>& give);

}  // namespace gradus::python
