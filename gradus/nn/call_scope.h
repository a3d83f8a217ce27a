/// CallScope: the outermost call of a layer on a thread, and the losses that it adds.
#pragma once
#include <mutex>
#include <optional>
#include <vector>
#include "gradus/base/nesting.h"
#include "gradus/graph/tensor.h"
#include "gradus/nn/masks.h"
#include "gradus/nn/outermost_call.h"

namespace gradus {

namespace detail::inline rooms {

class Layer;

/// The outermost call of a model on this thread. Calls within it are part of it.
class CallScope {
 public:
  /// If it is the outermost one, it clears the losses of the entry's last call. InvalidArgument if the outermost layer
  /// does not find this one (OutermostCall).
  [[nodiscard]] explicit CallScope(const Layer& entry);
  ~CallScope();
  CallScope(const CallScope&) = delete;

  /// True within a call, false within a trial.
  static bool is_call();

 protected:
  enum class Kind { call, trial };
  CallScope(Kind kind, const Layer* entry);

 private:
  const Nesting nesting_;
  CallScope* const outer_;
  const Kind kind_;
  std::optional<OutermostCall> outermost_;
};

/// A model's call and the rest of the step: the loss may run layers and read Variables that are not the model's.
struct StepScope : CallScope {
  explicit StepScope(const Layer& model) : CallScope(Kind::call, &model) {}
};

/// While it lives, layers are run to see their results: no losses are recorded.
struct TrialScope : CallScope {
  TrialScope() : CallScope(Kind::trial, nullptr) {}
};

/// The losses that the last call of a layer added.
class CallLosses {
 public:
  CallLosses() = default;
  CallLosses(const CallLosses&) {}  // a copy has not been called
  CallLosses& operator=(const CallLosses&) = delete;
  void add(Tensor loss);  // adds the loss of a call
  void forget();          // removes all
  Tensors all() const;    // all losses since the call began
  /// True if any layer of this process ever had one.
  static bool are_used();

 private:
  mutable std::mutex mutex_;
  Tensors losses_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
