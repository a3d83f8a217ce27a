/// GradientTape: records what this thread computes until gradient() is called.
#pragma once
#include <array>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/gradients/gradients.h"
#include "gradus/gradients/loss.h"

namespace gradus {

/// Treatment of a source that the target does not depend on: an error, or a gradient of zeros.
enum class Unconnected { error, zero };
/// Options of GradientTape::gradient.
struct GradientOptions {
  Tensor output_gradients = {};                  // cotangent of the target, in its spec; empty: one
  Unconnected unconnected = Unconnected::error;  // sources that the target does not depend on
};
/// Options of GradientTape.
struct TapeOptions {
  bool persistent = false;               // gradient() may be called more than once
  bool watch_accessed_variables = true;  // watch every Variable that is read
};

/// Options of Jacobians and Hessians.
struct JacobianOptions {
  /// Bytes that may be live above inputs and result; 0: no limit. A matrix that does not fit is computed in chunks,
  /// with the same bits. ResourceExhausted names the smallest budget that works.
  std::size_t max_bytes = 0;
  static constexpr auto ranges() { return std::array{Allowed::any("max_bytes")}; }
};

/// Records computations for differentiation, as tf.GradientTape does.
class GradientTape {
 public:
  /// A tape that is not persistent and watches Variables by itself.
  GradientTape() : GradientTape(TapeOptions()) {}
  explicit GradientTape(TapeOptions options);
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;

  /// Watches a tensor. Variables are watched by themselves, tensors are not.
  void watch(const Tensor& x);

  /// The gradients of the target by the sources. The target is a Loss or a scalar (which counts as weight 1); a larger
  /// one needs output_gradients. InvalidArgument for a source that was not watched, and for one that the target does
  /// not depend on unless `unconnected` says zero. A tape that is not persistent ends with the first call. Under a loss
  /// scale, gradients of variables are computed from the scaled target, and unscaled again.
  ///
  /// In a step that a strategy runs, these are gradients of the global batch. A Tensor that differs from shard to shard
  /// is an InvalidArgument as the target for variables, or for tensors that all shards share: give a Loss. Its gradient
  /// by tensors of the shard, such as the shard's rows, is the shard's own.
  Gradients gradient(const Loss& loss, const Variables& sources, GradientOptions options = {});
  Gradients gradient(const Tensor& target, const Variables& sources, GradientOptions options = {});
  Tensor gradient(const Loss& loss, const Tensor& source, GradientOptions options = {});
  Tensor gradient(const Tensor& target, const Tensor& source, GradientOptions options = {});
  Tensor gradient(const Loss& loss, const Variable& source, GradientOptions options = {});
  Tensor gradient(const Tensor& target, const Variable& source, GradientOptions options = {});
  template <std::size_t N>
  std::array<Tensor, N> gradient(const Loss& loss, const Tensor (&sources)[N], GradientOptions options = {}) {
    return listed<N>(of_loss(loss, std::span<const Tensor>(sources), options));
  }
  template <std::size_t N>
  std::array<Tensor, N> gradient(const Tensor& target, const Tensor (&sources)[N], GradientOptions options = {}) {
    return listed<N>(of_tensor(target, std::span<const Tensor>(sources), options));
  }
  /// By each tensor of a vector, in order.
  template <std::same_as<std::vector<Tensor>> Sources>
  Sources gradient(const Loss& loss, const Sources& sources, GradientOptions options = {}) {
    return of_loss(loss, std::span<const Tensor>(sources), options);
  }
  template <std::same_as<std::vector<Tensor>> Sources>
  Sources gradient(const Tensor& target, const Sources& sources, GradientOptions options = {}) {
    return of_tensor(target, std::span<const Tensor>(sources), options);
  }
  void gradient(const Loss& loss, std::initializer_list<Variable>, GradientOptions = {}) = delete;  // Variables{v}
  void gradient(const Tensor& target, std::initializer_list<Variable>, GradientOptions = {}) = delete;

  /// The Jacobian of a target of any shape by the source, as [target..., source...]. Zeros if it does not depend on the
  /// source. Otherwise as gradient().
  Tensor jacobian(const Tensor& target, const Tensor& source, JacobianOptions options = {});
  /// The Jacobian of target [n, y...] by source [n, x...], example by example: [n, y..., x...]. InvalidArgument if
  /// examples mix.
  Tensor batch_jacobian(const Tensor& target, const Tensor& source, JacobianOptions options = {});

 private:
  struct State;
  template <class Matrix> Tensor matrix(std::string_view op, const Tensor& target, const Tensor& source, Matrix&& of);
  Tensors of_tensors(const Tensor& target, std::span<const Tensor> sources, const GradientOptions& options);
  std::vector<GradientPart> of_variables(const Tensor& target, const Variables& sources,
                                         const GradientOptions& options);
  Gradients of_loss(const Loss& loss, const Variables& sources, GradientOptions options);
  Tensors of_loss(const Loss& loss, std::span<const Tensor> sources, const GradientOptions& options);
  Tensors of_tensor(const Tensor& target, std::span<const Tensor> sources, const GradientOptions& options);
  std::vector<GradientPart> of_scaled(const Tensor& target, const Variables& sources, GradientOptions options);
  template <std::size_t N> static std::array<Tensor, N> listed(Tensors found) {
    std::array<Tensor, N> result;
    for (std::size_t i = 0; i < N; ++i) result[i] = std::move(found[i]);
    return result;
  }
  std::unique_ptr<State> state_;
};

}  // namespace gradus
