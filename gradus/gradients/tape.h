/// GradientTape: records what this thread computes until gradient() is asked.
#pragma once
#include <array>
#include <initializer_list>
#include <memory>
#include "gradus/base/ranges.h"
#include "gradus/gradients/gradients.h"
#include "gradus/gradients/loss.h"

namespace gradus {

/// What to make of a source that the target does not depend on.
enum class Unconnected { error, zero };
struct GradientOptions {
  Tensor output_gradients = {};  // of the target's spec; empty: one
  Unconnected unconnected = Unconnected::error;
};
struct TapeOptions {
  bool persistent = false;
  bool watch_accessed_variables = true;
};

/// Of matrices of derivatives.
struct JacobianOptions {
  /// Bytes that may be live above what is read and the result; 0: no limit. What does not fit is computed in chunks, of
  /// the same bits; ResourceExhausted names the smallest budget that works.
  std::size_t max_bytes = 0;
  static constexpr auto ranges() { return std::array{Allowed::any("max_bytes")}; }
};

class GradientTape {
 public:
  GradientTape() : GradientTape(TapeOptions()) {}
  explicit GradientTape(TapeOptions options);
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;

  /// Variables are watched by themselves, tensors are not.
  void watch(const Tensor& x);

  // Gradients of variables with a loss scale are computed of as many times the target, and are what they would be
  // without it. The target is a Loss or a scalar (which counts as weight 1); a larger one needs output_gradients. A
  // source that was not watched is an InvalidArgument, as is one that the target does not depend on unless
  // `unconnected` says zero. A tape that is not persistent ends with the first call.
  Gradients gradient(const Loss& loss, const Variables& sources, GradientOptions options = {});
  Gradients gradient(const Tensor& target, const Variables& sources, GradientOptions options = {});
  Tensor gradient(const Loss& loss, const Tensor& source, GradientOptions options = {});
  Tensor gradient(const Tensor& target, const Tensor& source, GradientOptions options = {});
  Tensor gradient(const Loss& loss, const Variable& source, GradientOptions options = {});
  Tensor gradient(const Tensor& target, const Variable& source, GradientOptions options = {});
  template <std::size_t N>
  std::array<Tensor, N> gradient(const Loss& loss, const Tensor (&sources)[N], GradientOptions options = {}) {
    return gradient(loss.value(), sources, std::move(options));
  }
  template <std::size_t N>
  std::array<Tensor, N> gradient(const Tensor& target, const Tensor (&sources)[N], GradientOptions options = {}) {
    std::array<Tensor, N> result;
    Tensors found = of_tensors(target, std::span<const Tensor>(sources), options);
    for (std::size_t i = 0; i < N; ++i) result[i] = std::move(found[i]);
    return result;
  }
  void gradient(const Loss& loss, std::initializer_list<Variable>, GradientOptions = {}) = delete;  // Variables{v}
  void gradient(const Tensor& target, std::initializer_list<Variable>, GradientOptions = {}) = delete;

  /// All derivatives of a target of any shape by the source, as [target..., source...]; zeros if it does not depend on
  /// it. Otherwise as gradient().
  Tensor jacobian(const Tensor& target, const Tensor& source, JacobianOptions options = {});
  /// Of target [n, y...] by source [n, x...], example by example: [n, y..., x...]. InvalidArgument if examples mix.
  Tensor batch_jacobian(const Tensor& target, const Tensor& source, JacobianOptions options = {});

 private:
  struct State;
  template <class Matrix> Tensor matrix(std::string_view op, const Tensor& target, const Tensor& source, Matrix&& of);
  Tensors of_tensors(const Tensor& target, std::span<const Tensor> sources, const GradientOptions& options);
  std::vector<GradientPart> of_variables(const Tensor& target, const Variables& sources,
                                         const GradientOptions& options);
  std::vector<GradientPart> of_scaled(const Tensor& target, const Variables& sources, GradientOptions options);
  std::unique_ptr<State> state_;
};

}  // namespace gradus
