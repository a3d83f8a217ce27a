/// The ops of keras.ops that a Functional may contain: `a + b`, ops.mean(x, axis=1), x[:, 0].
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include "gradus/graph/tensors.h"
#include "gradus/train/keras_options.h"

namespace gradus {

/// An argument of a call in a config.json.
struct KerasArgument {
  int input = -1;                        // index among the tensors that the call takes; -1: none of them
  std::vector<KerasArgument> list = {};  // elements of a list with tensors
  nlohmann::json value = {};             // of an argument without tensors; slices stay as Keras writes them
  bool is_tensor() const { return input >= 0; }
};

/// A call of an op.
struct KerasOp {
  std::function<Tensors(In inputs)> run;
  int results = 1;  // number of results
};
/// The op of that class. Empty, and a problem, if there is none, or if it does not take these arguments.
std::optional<KerasOp> keras_op(const std::string& class_name, KerasOptions& options,
                                const std::vector<KerasArgument>& arguments);

/// Two tensors in the dtype to which Keras promotes them.
std::pair<Tensor, Tensor> promoted(const Tensor& a, const Tensor& b);

}  // namespace gradus
