/// Module: a layer or a model of one input and one output. A value: copying copies the variables, moving keeps them.
#pragma once
#include <concepts>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include "gradus/function/mode.h"
#include "gradus/function/variable.h"
#include "gradus/nn/policy.h"

namespace gradus {

class Layer;

/// A handle to the layer or model behind `module`, for models that are to use the same one: it is trained once, saved
/// with each of them, and counted once in each. Copies of the handle are the same layer, too, until a model has taken
/// it; copying a model copies what it shares with others, as all else in it.
///
///   Sequential generator{...}, discriminator{...};
///   Sequential gan{shared(generator), shared(discriminator)};
template <std::derived_from<class Module> M> M shared(const M& module);

class Module {
 public:
  /// A mistake: a struct that derives from Module.
  template <class Derived = void> Module() {
    static_assert(!std::is_void_v<Derived>,
                  "a model is a plain struct of layers, struct Net { ... }; Model<Net> model;");
  }
  Module(Tensor (*)(const Tensor&)) = delete;  // a function becomes a layer by Lambda(relu)
  /// A call that says nothing takes the enclosing mode, else inference. The first call builds.
  Tensor operator()(const Tensor& x) const;
  Tensor operator()(const Tensor& x, training_t) const;
  Tensor operator()(const Tensor& x, inference_t) const;
  template <class Mode>
    requires(std::same_as<Mode, training_t> || std::same_as<Mode, inference_t>)
  void operator()(Mode, const Tensor& x) const = delete;  // the mode comes last: model(x, training)
  /// Makes the variables for inputs of this spec; any_size where a size does not matter.
  void build(const Spec& input);
  Variables variables() const;
  /// The list may be asked for before the module is built, but not looked at: then InvalidArgument.
  Variables trainable_variables() const;
  /// Of this layer and all within, now and of what they make when they are built; the last call about a layer holds. A
  /// frozen layer has no trainable variables; frozen batch normalization goes by its moving statistics in training,
  /// too, and does not move them, frozen spectral normalization leaves its kernel alone; dropout still drops. Variables
  /// that are none to be trained, such as moving statistics, stay so. What was traced notices it.
  void set_trainable(bool trainable);
  void set_name(std::string name);
  /// The types in which this layer, and those within that were given none of their own, compute and keep variables:
  /// their inputs are cast. Before it is built, unless its variables are of that type; else InvalidArgument.
  void set_policy(const Policy& policy);
  /// Now; 1 unless the policy scales.
  double loss_scale() const;
  const std::string& name() const;
  /// Scalars to be added to a loss, as fit and evaluate do: what the last call brought by activity regularizers, then
  /// the penalties on trainable variables. InvalidArgument if that call was within a compiled function that is over.
  std::vector<Tensor> losses() const;
  /// The mask that model(x) hands on, bool of its first dimensions, for a loss of one's own: sample_weight =
  /// cast(mask, f32). Empty: every place counts. `mask`: of x, as Embedding and Masking make one themselves.
  Tensor compute_mask(const Tensor& x, const Tensor& mask = {}) const;
  /// A table: layer, output shape, parameters, bytes.
  std::string summary() const;
  /// The summary.
  friend std::ostream& operator<<(std::ostream& out, const Module& module);

  /// Deep: variables of its own with the same values. What is there twice is there twice in the copy. Of what shared()
  /// gave: the same layer.
  Module(const Module& other);
  /// Keeps identity: the same cells, known to the same optimizer.
  Module(Module&& other) noexcept;
  /// It becomes the function that `other` is: layers with all their options, values, masks, what is frozen. One that is
  /// built keeps its variables, known to its optimizer, and its name; so theirs must be as many, of the same shapes and
  /// types: else InvalidArgument, and nothing changes. `other` is built as this one was if it is not. What was traced
  /// with this module is traced anew, unless nothing but values has changed. One without variables, or not built, just
  /// becomes the other. Not within a traced function, if it has variables.
  Module& operator=(const Module& other);
  Module& operator=(Module&& other);
  ~Module();

  // For the rooms of the library.
  Layer& layer_behind() const;
  bool is_built() const;
  /// Moved from, with nothing assigned to it since.
  bool is_empty() const { return !shared_layer(); }
  /// A model has taken this handle: copying it copies the layer from now on.
  void settle();
  /// Whether copies of this handle are the same layer.
  bool is_shared() const { return handle_ == Handle::shared; }
  /// Whether the layer was taken as a shared one, so that another model may have given it its name.
  bool is_settled() const { return handle_ == Handle::settled; }
  /// That of the layer behind, 0 if there is none.
  std::uint64_t setup_number() const;
  /// Both have the other's layer; traces are not told.
  void exchange_layers(Module& other) noexcept { layer_.swap(other.layer_); }

 protected:
  explicit Module(std::shared_ptr<Layer> layer);
  /// What layer_behind() is, or null.
  const std::shared_ptr<Layer>& shared_layer() const;

 private:
  template <std::derived_from<Module> M> friend M shared(const M& module);
  enum class Handle : unsigned char { own, shared, settled };
  /// In its lifetime a copy of `module` that this thread makes is a shared handle.
  class Sharing {
   public:
    explicit Sharing(const Module& module);
    ~Sharing();
    Sharing(const Sharing&) = delete;
  };
  bool copies_are_shared() const;
  bool keeps_variables() const;
  std::shared_ptr<Layer> layer_;
  Handle handle_ = Handle::own;
};

template <std::derived_from<Module> M> M shared(const M& module) {
  const Module::Sharing sharing(module);
  return M(module);
}

}  // namespace gradus
