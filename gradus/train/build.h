/// Building of a model for the elements of a data set.
#pragma once
#include <functional>
#include <vector>
#include "gradus/data/pipeline.h"
#include "gradus/data/stage.h"
#include "gradus/function/mode.h"

namespace gradus {

/// Calls build(specs of the elements, mode), which returns true if all layers are built. If a part of the model needs
/// sizes that vary, or a C++ loop over such a size runs layers that are left, the model is built for the sizes of the
/// first element.
template <class Build> void build_for_elements(const Pipeline& dataset, CallMode mode, Build build) {
  const std::vector<Spec> specs = dataset.specs();
  try {
    if (build(specs, mode) || !have_any_size(specs)) return;
  } catch (const Error&) {
    if (!have_any_size(specs)) throw;
  }
  std::vector<Spec> of_first;
  for (const Tensor& field : dataset.first()) of_first.push_back(field.spec());
  build(of_first, mode);
}

}  // namespace gradus
