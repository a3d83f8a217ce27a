/// Gradients as tape.gradient(loss, variables) gives them: a sequence of tensors, and the Gradients with their weight
/// that an optimizer applies and that add up over parts of a batch.
#pragma once
#include <vector>
#include "gradus/gradus.h"

namespace gradus::python {

class GradientList : public Gradients {
 public:
  /// `places` are those of the sources among the gradients; -1 for a source that has none.
  GradientList(Gradients gradients, std::vector<std::ptrdiff_t> places)
      : Gradients(std::move(gradients)), places_(std::move(places)) {}
  std::size_t length() const { return places_.size(); }
  /// Empty where the target does not depend on the source.
  Tensor at(std::size_t source) const {
    const std::ptrdiff_t place = places_.at(source);
    return place < 0 ? Tensor() : (*this)[static_cast<std::size_t>(place)];
  }

 private:
  std::vector<std::ptrdiff_t> places_;
};

}  // namespace gradus::python
