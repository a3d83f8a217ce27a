/// The models of reference/problems.py, with the numbers that are stored there.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include "gradus/gradients/loss.h"
#include "gradus/nn/module.h"

namespace gradus {

using Arrays = std::map<std::string, Tensor>;

struct ReferenceProblem {
  Tensor x, y;
  std::shared_ptr<Module> model;
  std::function<Loss(const Tensor& x, const Tensor& y)> loss;  // in training mode
  std::int64_t part = 0;                                       // rows of the parts of a batch that is accumulated

  Variables weights() const { return model->trainable_variables(); }
  /// The moving statistics in a row; empty if there are none.
  Tensor moving() const;
};

/// `kind`: mlp, cnn, transformer or loss_scale, whose model is the mlp with a loss scale. In f32 or f64.
ReferenceProblem reference_problem(const std::string& kind, const Arrays& numbers, DType t);

}  // namespace gradus
