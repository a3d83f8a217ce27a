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

/// Treatment of a source that the target does not depend on: an error, a gradient of zeros, or none, which is an empty
/// tensor.
enum class Unconnected { error, zero, none };
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

/// Tensors and Variables by which a gradient is taken together: Sources{x, kernel}.
class Sources {
 public:
  /// A tensor or a Variable.
  class Source {
   public:
    Source(const Tensor& x) : tensor_(x) {}
    Source(const Variable& x) { variable_.add(x); }

   private:
    friend class GradientTape;
    Tensor tensor_;       // empty for a Variable
    Variables variable_;  // empty for a tensor
  };
  /// These, in this order.
  Sources(std::initializer_list<Source> list) : list_(list) {}
  explicit Sources(std::vector<Source> list) : list_(std::move(list)) {}
  /// The number of sources.
  std::size_t size() const { return list_.size(); }

 private:
  friend class GradientTape;
  std::vector<Source> list_;
};

/// Keeps a tape from recording in its lifetime: GradientTape::stop_recording.
class PausedTape {
 public:
  PausedTape(PausedTape&&) noexcept = default;
  PausedTape& operator=(PausedTape&&) = delete;
  ~PausedTape() = default;

 private:
  friend class GradientTape;
  explicit PausedTape(std::unique_ptr<void, void (*)(void*)> pause) : pause_(std::move(pause)) {}
  std::unique_ptr<void, void (*)(void*)> pause_;
};

/// Records computations for differentiation, as tf.GradientTape does.
class GradientTape {
 public:
  /// A tape that is not persistent and watches all Variables that are read.
  GradientTape() : GradientTape(TapeOptions()) {}
  explicit GradientTape(TapeOptions options);
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;

  /// Watches a tensor. Variables are watched automatically (TapeOptions), tensors are not.
  void watch(const Tensor& x);

  /// Ends the recording, as the end of TensorFlow's `with` does. Gradients of recorded values can still be computed;
  /// later ops, reads of Variables and calls of functions are not recorded. A second call changes nothing.
  /// InvalidArgument on another thread than the one that made the tape.
  void stop();
  /// While the result lives, this tape records nothing: values that are computed meanwhile are constants to it. The
  /// tape has to outlive it. InvalidArgument after stop(), and on another thread than the one that made the tape.
  [[nodiscard]] PausedTape stop_recording();
  /// Drops all recorded and watched values, and records again, also after stop() and after the gradient of a tape that
  /// is not persistent. InvalidArgument on another thread than the one that made the tape, and while stop_recording()
  /// holds.
  void reset();

  /// The gradients of the target by the sources. The target is a Loss or a scalar (which counts as weight 1); a larger
  /// one needs output_gradients. InvalidArgument for a source that was not watched, and for one that the target does
  /// not depend on, unless `unconnected` is zero or none. With none, the gradient by such a tensor is empty, and the
  /// Gradients leave such a Variable out. A tape that is not persistent ends with the first call. Under a loss scale,
  /// gradients of variables are computed from the scaled target, and unscaled again.
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
  template <std::same_as<std::vector<Tensor>> List>
  List gradient(const Loss& loss, const List& sources, GradientOptions options = {}) {
    return of_loss(loss, std::span<const Tensor>(sources), options);
  }
  template <std::same_as<std::vector<Tensor>> List>
  List gradient(const Tensor& target, const List& sources, GradientOptions options = {}) {
    return of_tensor(target, std::span<const Tensor>(sources), options);
  }
  /// By tensors and Variables together: one tensor for each, in their order.
  template <std::same_as<Sources> List>
  Tensors gradient(const Loss& loss, const List& sources, GradientOptions options = {}) {
    return of_sources(loss, sources, std::move(options));
  }
  template <std::same_as<Sources> List>
  Tensors gradient(const Tensor& target, const List& sources, GradientOptions options = {}) {
    return of_sources(target, sources, std::move(options));
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
  std::vector<detail::GradientPart> of_variables(const Tensor& target, Variables& sources,
                                                 const GradientOptions& options);
  Gradients of_loss(const Loss& loss, Variables sources, GradientOptions options);
  Tensors of_loss(const Loss& loss, std::span<const Tensor> sources, const GradientOptions& options);
  Tensors of_tensor(const Tensor& target, std::span<const Tensor> sources, const GradientOptions& options);
  Tensors by_tensors(const Loss& loss, In sources, const GradientOptions& options) {
    return of_loss(loss, sources, options);
  }
  Tensors by_tensors(const Tensor& target, In sources, const GradientOptions& options) {
    return of_tensor(target, sources, options);
  }
  Tensors of_sources(const Loss& loss, const Sources& sources, GradientOptions options);
  Tensors of_sources(const Tensor& target, const Sources& sources, GradientOptions options);
  template <class Target> Tensors by_sources(const Target& target, const Sources& sources, GradientOptions options);
  std::vector<detail::GradientPart> of_scaled(const Tensor& target, Variables& sources, GradientOptions options);
  template <std::size_t N> static std::array<Tensor, N> listed(Tensors found) {
    std::array<Tensor, N> result;
    for (std::size_t i = 0; i < N; ++i) result[i] = std::move(found[i]);
    return result;
  }
  std::unique_ptr<State> state_;
};

}  // namespace gradus
