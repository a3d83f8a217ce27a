/// CallScope: what the layers of one call hand on beside tensors: masks, and the losses that the call brings.
#pragma once
#include <mutex>
#include <optional>
#include <utility>
#include <vector>
#include "gradus/base/nesting.h"
#include "gradus/graph/tensor.h"
#include "gradus/nn/outermost_call.h"

namespace gradus {

class Layer;

/// The outermost call of a model on this thread; what is called within it is part of it.
class CallScope {
 public:
  /// As it is outermost, the losses of the entry's last call are forgotten. InvalidArgument if the outermost layer does
  /// not find this one (OutermostCall).
  [[nodiscard]] explicit CallScope(const Layer& entry);
  ~CallScope();
  CallScope(const CallScope&) = delete;

  /// bool, of the first dimensions of `x`; false: does not count. Empty: all do.
  static Tensor mask_of(const Tensor& x);
  /// Known to the layers that are given `x` within this call.
  static void set_mask(const Tensor& x, Tensor mask);
  /// `mask` of the places of x, its first dimensions: where it has fewer of them, all places within one count alike.
  /// One of more dimensions stays.
  static Tensor spread(const Tensor& mask, const Shape& places);
  /// Whether what is called now is a call, and no trial.
  static bool is_call();

 protected:
  enum class Kind { call, trial };
  CallScope(Kind kind, const Layer* entry);

 private:
  static thread_local CallScope* current_;
  const Nesting nesting_;
  CallScope* const outer_;
  const Kind kind_;
  std::optional<OutermostCall> outermost_;
  std::vector<std::pair<Tensor, Tensor>> masks_;  // what they belong to is kept: its address is not used again
};

/// A model's call and what follows it in a step: the loss may run layers and read Variables that are none of the
/// model's.
struct StepScope : CallScope {
  explicit StepScope(const Layer& model) : CallScope(Kind::call, &model) {}
};

/// In its lifetime layers are run to see what they give: no losses are noted.
struct TrialScope : CallScope {
  TrialScope() : CallScope(Kind::trial, nullptr) {}
};

/// The losses that the last call of a layer brought.
class CallLosses {
 public:
  CallLosses() = default;
  CallLosses(const CallLosses&) {}  // a copy has not been called
  CallLosses& operator=(const CallLosses&) = delete;
  void add(Tensor loss);
  void forget();
  Tensors all() const;
  /// Whether any layer of this process ever had one.
  static bool are_used();

 private:
  mutable std::mutex mutex_;
  Tensors losses_;
};

}  // namespace gradus
