/// Layer: the implementation behind a Module. A user's own layer is a struct with build, call and clone.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "gradus/function/mode.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/variable.h"
#include "gradus/function/watched_state.h"
#include "gradus/nn/call_scope.h"
#include "gradus/nn/channel_flow.h"
#include "gradus/nn/policy.h"
#include "gradus/nn/regularizers.h"
#include "gradus/nn/structure.h"

namespace gradus {

namespace detail::inline rooms {

class SavedText;
class Trace;

/// The implementation of a layer or model, which Modules are handles to.
class Layer {
 public:
  virtual ~Layer() = default;
  Layer& operator=(const Layer&) = delete;

  /// A copy with variables of its own and the same values.
  virtual std::shared_ptr<Layer> clone() const = 0;
  /// The default name, such as "dense".
  virtual std::string_view kind() const = 0;
  /// Makes the variables. The last dimension of `input` is known.
  virtual void build(const Spec& input) = 0;
  /// build() for several inputs, for layers that take them.
  virtual void build_for(std::span<const Spec> inputs);
  /// The result for `x`; the layer is built.
  virtual Tensor call(const Tensor& x) const = 0;
  /// call() for layers that read the mask of their input (nn/masks.h).
  virtual Tensor call_masked(const Tensor& x, const Tensor&) const { return call(x); }
  /// The mask of call()'s result for `x` with this mask, which may be empty; empty: none. Layers that hold others leave
  /// it to those.
  virtual Tensor compute_mask(const Tensor&, const Tensor&) const { return {}; }
  /// True if a place of the result depends on which places of the input count. Such a layer prints a notice, once, if
  /// its input has lost its mask.
  virtual bool looks_at_places() const { return false; }
  /// True if a place of the result, along axis 1 of an input of this shape, depends on other places of the input.
  virtual bool mixes_places(const Shape&) const { return looks_at_places(); }
  /// True if it extends the KeyValueCache of a call, so that it may look at places of a sequence that is made place by
  /// place.
  virtual bool extends_caches() const { return false; }
  /// The layers inside, in order.
  virtual std::vector<std::shared_ptr<Layer>> children() const { return {}; }

  /// Builds the layer if it is not built, outside of any trace.
  void ensure_built(const Spec& input) { ensure_built({&input, 1}); }
  /// ensure_built() for several inputs.
  void ensure_built(std::span<const Spec> inputs);
  /// Runs a built layer on symbols for such inputs. Layers that it calls, and that are not built, build themselves.
  virtual void run_for(std::span<const Spec> inputs, CallMode mode);
  /// call() in the layer's name scope, with the input in the layer's dtype and with its mask.
  Tensor run(const Tensor& x) const;
  /// True once it has its variables.
  bool is_built() const { return built_; }
  /// Own variables, then those of the children.
  virtual Variables variables() const;
  /// Its own variables that pruning applies to, as in TensorFlow's toolkit: kernels and tables, neither biases nor
  /// depthwise kernels.
  virtual Variables kernels() const;
  /// The result's spec for the inputs that it was built for, with one or several inputs; empty if it is not known.
  std::optional<Spec> output() const;
  /// Number of multiplications with each weight of the kernels for one example. Open dimensions count as 1.
  virtual std::int64_t multiplications() const;
  /// Its treatment of channels.
  virtual ChannelFlow channel_flow() const { return {}; }
  /// A copy of a built layer with only these channels of its input and output.
  std::shared_ptr<Layer> with_channels(const ChannelList& inputs, const ChannelList& outputs) const;
  /// The spec of call()'s result for `input`. Known sizes stay known.
  Spec output_of(const Spec& input, CallMode mode = CallMode::inference) const;

  /// Sets the dtypes of this layer and of those within that have no policy of their own. InvalidArgument if it is built
  /// with variables of another dtype.
  void set_policy(const Policy& policy);
  /// The dtypes of this layer; empty: the input's.
  const std::optional<Policy>& policy() const { return policy_; }
  /// The loss scale of the layer or of the first one within that has one; null if there is none.
  std::shared_ptr<LossScale> loss_scale() const;
  /// Gives a copy of a layer a loss scale of its own.
  void renew_loss_scale();
  /// `x` in the dtype that the layer computes in. Integers and booleans stay.
  Tensor computed(const Tensor& x) const;

  /// Freezes or unfreezes this layer and all within, and the variables that they will make. Variables that were made as
  /// not trainable stay so.
  void set_trainable(bool trainable);
  /// True if it was not frozen. A trace is notified.
  bool is_trainable() const;
  /// The state by which traces see that it has become another layer.
  const Setup& setup() const { return setup_; }
  /// Notifies traces that met this layer or one within that it is another one now. `how` as in "layer dense was
  /// assigned".
  void note_change_within(const char* how);
  /// note_change_within() for this layer alone.
  void note_change(const char* how) { setup_.change(how); }
  /// Tells a trace everything that it has to know of a layer that it has met.
  virtual void watch(Trace& trace) const;
  /// watch() for this layer and those within, if there is a trace.
  void note_looked_at() const;

  /// True if this layer computes the function of `other`, given its variables. False if that cannot be determined.
  virtual bool has_setup_of(const Layer& other) const;
  /// A map from variables to those that replace them.
  using Rebinding = std::map<const VariableCell*, std::shared_ptr<VariableCell>>;
  /// Replaces its variables by those that the map has for them.
  virtual void rebind(const Rebinding& cells);
  /// Takes over all contents of `fresh`, a layer with no other owner; its own variables stay in place where possible.
  /// False: it cannot, and nothing has changed.
  virtual bool become(Layer&) { return false; }
  /// Takes over the name, the prefix and the dtypes that `before` has by its place, unless it has its own. Of two names
  /// that the user gave, it keeps its own or not.
  void take_place_of(const Layer& before, bool keeps_own_name);
  /// Freezes or unfreezes layer by layer as in `like`, which has the same layers within.
  void copy_trainability(const Layer& like);
  /// Its loss scale becomes that of `before`, which takes over the value. Its variables have it, too.
  void keep_loss_scale_of(const Layer& before);
  /// If a module that shares this layer was assigned to: the layer that it is now.
  std::shared_ptr<Layer> successor;

  /// Penalties on trainable variables of this layer and those within, once per variable: scalars.
  Tensors penalties() const;
  /// The losses that the last call added, of this layer and those within: means over the rows that were penalized.
  /// InvalidArgument if they belong to a compiled function that is over.
  Tensors call_losses() const;
  /// Removes these losses.
  void forget_call_losses() const;

  /// Visits the state within that is saved as text, with its names: `path` stands before them.
  using TextVisitor = std::function<void(const std::string& name, const SavedText& text)>;
  virtual void visit_texts(const std::string& path, const TextVisitor& visit) const;

  /// A number that is unique in this process; a copy has one of its own.
  std::uint64_t id() const { return id_; }
  /// Adds its own variables, and the contents that a walk over it finds.
  virtual void add_parts_to(Structure& structure) const;
  /// The result of the last walk over this layer.
  FoundCache& found() const { return found_; }
  /// True if it, or a layer within, has a penalty on its result.
  bool brings_losses() const;

  /// Its name, without a prefix.
  const std::string& name() const { return name_; }
  /// Its type in messages: the kind, or "Model<Net>".
  virtual std::string type() const { return std::string(kind()); }
  /// Its name in messages, also without a name of its own: "dense", "Model<Net>", "`head` (dense)".
  std::string called() const;
  /// True if the user named it.
  bool has_own_name() const { return own_name_; }
  /// Names the layer. Its variables become "<prefix><name>/<variable>".
  void rename(std::string name, bool by_user);
  /// Sets the prefix of its variables' names.
  void set_prefix(const std::string& prefix);
  /// Names its variables again, since a model that shares layers with this one may have renamed them.
  void name_again() { name_variables(); }
  /// Names its variables as if it had this prefix and name, for those of a layer that another model has named.
  void name_variables_as(const std::string& prefix, const std::string& name);
  /// The layers that it was copied from, as far as they still exist.
  std::vector<std::shared_ptr<const Layer>> sources() const;
  /// Records a layer that it was copied from.
  void note_source(const std::shared_ptr<const Layer>& source);
  /// Number of elements of its variables.
  std::int64_t parameters() const { return variables().parameters(); }
  /// The spec that it was built for, if that was one input.
  const std::optional<Spec>& input() const { return input_; }

 protected:
  void add_own_to(Structure& structure) const;
  Layer();
  Layer(const Layer& other);
  const std::string& prefix() const { return prefix_; }
  virtual void name_variables();
  /// True if call() needs its input in the dtype of the policy. Layers that only pass it on do not.
  virtual bool casts_input() const { return true; }
  /// call() for several inputs, for layers that take them.
  virtual Tensor call_on(In inputs) const;
  /// Call this after `child` was added to children().
  void pass_on(Layer& child) const;
  /// True if no two copies of one layer are set up differently: nothing but build() changes its fields.
  virtual bool has_fixed_setup() const { return false; }
  /// Takes over everything except the layers within.
  void take_own(Layer& fresh);
  /// Declares that its variables are for that many channels of the output now.
  virtual void set_output_channels(std::int64_t) {}
  /// Declares that it was built by running it.
  void note_built(std::span<const Spec> inputs);
  /// Makes one of the layer's variables. Its first value is computed when it is needed.
  void add_variable(const std::string& name, const Tensor& initial, VariableOptions options = {},
                    Regularizer regularizer = {});
  void add_variable(const std::string& name, const Tensor& initial, Regularizer regularizer) {
    add_variable(name, initial, {}, std::move(regularizer));
  }
  /// Sets the penalty on the layer's result.
  void set_activity_regularizer(Regularizer regularizer) { activity_regularizer_ = std::move(regularizer); }
  /// Records a loss of this call: the penalty on `y`, a value within the layer, if there is one.
  void note_activity(const Regularizer& regularizer, const Tensor& y) const;
  /// The work after call(): the mask of its result, and its penalty. run() does it.
  void note_result(const Tensor& x, const Tensor& mask, const Tensor& y) const;
  /// Prints the notice that the mask of `x` was lost, once, for a layer that looks at places.
  void note_lost_mask(const Tensor& x) const {
    if (SequenceMask::is_lost(x) && looks_at_places())
      lost_mask_.note(called(), x, "give the mask: layer(x, {.mask = m})");
  }
  Variable& variable(std::size_t i) const { return own_[i]; }
  /// The variable's value in the dtype that the layer computes in.
  Tensor parameter(std::size_t i) const { return computed(variable(i)); }
  std::size_t own_count() const { return own_.size(); }
  /// The product of the dimensions between the first and the last one, as far as they are known.
  static std::int64_t places_of(const Shape& shape);

 private:
  void take_policy(const Policy& policy, bool own);
  void add_call_losses(Tensors& all, std::set<const Layer*>& seen) const;
  void add_penalties(Tensors& all, Variables& seen) const;
  void take_loss_scale(const std::shared_ptr<LossScale>& loss_scale);
  static std::uint64_t new_id();
  const std::uint64_t id_ = new_id();
  mutable FoundCache found_;
  std::vector<std::weak_ptr<const Layer>> sources_;
  void replace_loss_scale(const std::shared_ptr<LossScale>& before, const std::shared_ptr<LossScale>& now);
  void settle_loss_scale();
  Setup setup_;
  std::uint64_t origin_;          // shared by a layer and its copies, until one of them is built or gets another policy
  std::optional<Policy> policy_;  // empty: the dtype of the input
  bool own_policy_ = false;
  std::shared_ptr<LossScale> loss_scale_;
  std::string name_, prefix_;
  bool own_name_ = false, built_ = false;
  std::optional<Spec> input_;  // spec that it was built for
  std::vector<Spec> inputs_;   // specs of several inputs; unknown sizes are any_size
  Variables own_;
  std::vector<std::string> own_names_;  // "kernel", "bias"
  std::vector<Regularizer> own_regularizers_;
  Regularizer activity_regularizer_;
  mutable CallLosses call_losses_;
  LostMaskNotice lost_mask_;
};

/// Warns once per process about a gradient through a layer whose result depends on the mode, if the mode was not given.
void warn_if_mode_unsaid(std::string_view layer);

}  // namespace detail::inline rooms

}  // namespace gradus
