/// Module: a layer or a model with one input and one output. A value: copying copies the variables, moving keeps them.
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

namespace detail::inline rooms {
class Layer;
}  // namespace detail::inline rooms

/// A handle to the layer or model behind `module`, to use one layer in several models. It is trained once, saved with
/// each of them, and counted once in each. Copies of the handle are the same layer, too, until a model has taken it.
/// Copying a model copies the layers that it shares with others, like all its layers.
///
///   Sequential generator{...}, discriminator{...};
///   Sequential gan{shared(generator), shared(discriminator)};
template <std::derived_from<class Module> M> M shared(const M& module);

/// A handle to a layer or model with one input and one output.
class Module {
 public:
  /// A mistake: a struct that derives from Module.
  template <class Derived = void> Module() {
    static_assert(!std::is_void_v<Derived>,
                  "a model is a plain struct of layers, struct Net { ... }; Model<Net> model;");
  }
  Module(Tensor (*)(const Tensor&)) = delete;  // a function becomes a layer by Lambda(relu)
  /// Calls the layer. Without a mode it takes the enclosing one, else inference. The first call builds.
  Tensor operator()(const Tensor& x) const;
  Tensor operator()(const Tensor& x, training_t) const;
  Tensor operator()(const Tensor& x, inference_t) const;
  template <class Mode>
    requires(std::same_as<Mode, training_t> || std::same_as<Mode, inference_t>)
  void operator()(Mode, const Tensor& x) const = delete;  // the mode comes last: model(x, training)
  /// Makes the variables for inputs of this spec; any_size stands for a size that does not matter.
  void build(const Spec& input);
  /// All variables: its own, then those of the layers within.
  Variables variables() const;
  /// The variables that are trained. The list may be asked for before the module is built, but reading it then is an
  /// InvalidArgument, unless all layers of the model were called by themselves.
  Variables trainable_variables() const;
  /// Freezes or unfreezes this layer and all within, now and for variables made when they are built; the last call for
  /// a layer counts. A frozen layer has no trainable variables. Frozen batch normalization uses its moving statistics
  /// in training, too, and does not move them; frozen spectral normalization leaves its kernel alone; dropout still
  /// drops. Variables that are never trained, such as moving statistics, stay so. Traces notice the change.
  void set_trainable(bool trainable);
  /// Names the layer; its variables are renamed.
  void set_name(std::string name);
  /// Sets the dtypes in which this layer, and those within that have no policy of their own, compute and keep
  /// variables. Inputs are cast. InvalidArgument once it is built, unless its variables are of that dtype.
  void set_policy(const Policy& policy);
  void set_policy(const char* name) { set_policy(policy_named(name)); }
  // Mistakes: compilers quote the line.
  template <class... T>
  void export_object(const T&...) const = delete;  // a function is exported: function(step).export_object(stem, specs)
  /// The present loss scale; 1 unless the policy scales.
  double loss_scale() const;
  /// The name.
  const std::string& name() const;
  /// Scalars to add to a loss, as fit and evaluate do: the activity penalties of the last call, then the penalties on
  /// trainable variables. InvalidArgument if that call was within a compiled function that is over.
  std::vector<Tensor> losses() const;
  /// The mask that model(x) passes on, bool in its first dimensions, for a user's loss: sample_weight = cast(mask,
  /// f32). Empty: every element counts. `mask`: the mask of x, which Embedding and Masking make themselves.
  Tensor compute_mask(const Tensor& x, const Tensor& mask = {}) const;
  /// A table: layer, output shape, parameters, bytes.
  std::string summary() const;
  /// Prints the summary.
  friend std::ostream& operator<<(std::ostream& out, const Module& module);

  /// A deep copy: variables of its own with the same values. A layer that occurs twice occurs twice in the copy. A
  /// handle from shared() gives the same layer.
  Module(const Module& other);
  /// Keeps identity: the same cells, known to the same optimizer.
  Module(Module&& other) noexcept;
  /// Assigning makes this module compute the function of `other`: layers with all their options, values, masks, frozen
  /// layers. A built module keeps its variables, known to its optimizer, and its name. So they must match in number,
  /// shapes and dtypes: else InvalidArgument, and nothing changes. `other` is built as this one was if it is not built.
  /// Traces of this module are renewed, unless nothing but values has changed. A module without variables, or not
  /// built, just becomes the other. InvalidArgument within a traced function, if it has variables.
  Module& operator=(const Module& other);
  Module& operator=(Module&& other);
  ~Module();

  // For the rooms of the library.
  /// The layer.
  detail::Layer& layer_behind() const;
  /// True once it has its variables.
  bool is_built() const;
  /// True if it was moved from, with nothing assigned to it since.
  bool is_empty() const { return !shared_layer(); }
  /// Declares that a model has taken this handle: copying it copies the layer from now on.
  void settle();
  /// True if copies of this handle are the same layer.
  bool is_shared() const { return handle_ == Handle::shared; }
  /// True if the layer was taken as a shared one, so that another model may have named it.
  bool is_settled() const { return handle_ == Handle::settled; }
  /// The setup number of the layer, 0 if there is none.
  std::uint64_t setup_number() const;
  /// Exchanges the layers; traces are not notified.
  void exchange_layers(Module& other) noexcept { layer_.swap(other.layer_); }

 protected:
  explicit Module(std::shared_ptr<detail::Layer> layer);
  /// The layer, or null.
  const std::shared_ptr<detail::Layer>& shared_layer() const;

 private:
  template <std::derived_from<Module> M> friend M shared(const M& module);
  enum class Handle : unsigned char { own, shared, settled };
  /// While it lives, a copy of `module` that this thread makes is a shared handle.
  class Sharing {
   public:
    explicit Sharing(const Module& module);
    ~Sharing();
    Sharing(const Sharing&) = delete;
  };
  bool copies_are_shared() const;
  bool keeps_variables() const;
  std::shared_ptr<detail::Layer> layer_;
  Handle handle_ = Handle::own;
};

template <std::derived_from<Module> M> M shared(const M& module) {
  const Module::Sharing sharing(module);
  return M(module);
}

}  // namespace gradus
