/// VariableCell: the mutable state behind a Variable: a name and the tensor that it holds now. Reading it in a trace
/// makes a parameter of the program, assigning an output.
#pragma once
#include <mutex>
#include "gradus/graph/tensor.h"

namespace gradus {

struct VariableCell {
  std::string name;
  Spec spec;
  bool trainable = true;
  std::uint64_t id = 0;  // never reused: keys caches where addresses could be
  std::mutex guard;      // of what follows
  Tensor value;
  Tensor mask;                      // empty, or what every assigned value is multiplied with
  bool pending_assignment = false;  // value is not computed yet
};

}  // namespace gradus
