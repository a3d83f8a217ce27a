/// Building a model for the elements of a data set.
#pragma once
#include <functional>
#include <vector>
#include "gradus/data/pipeline.h"
#include "gradus/data/stage.h"
#include "gradus/function/mode.h"

namespace gradus {

/// Calls build(specs of the elements, mode), which says whether all layers are built. Where something in the model has
/// to know sizes that vary, or layers are left that a C++ loop over such a size runs, it is built for those of the
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
