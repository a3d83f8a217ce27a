/// Layer: what stands behind a Module. A layer of one's own is a struct with build, call and clone.
#pragma once
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

class Trace;

class Layer {
 public:
  virtual ~Layer() = default;
  Layer& operator=(const Layer&) = delete;

  /// Variables of its own with the same values.
  virtual std::shared_ptr<Layer> clone() const = 0;
  /// The default name: "dense".
  virtual std::string_view kind() const = 0;
  /// Makes the variables. The last dimension of `input` is known.
  virtual void build(const Spec& input) = 0;
  /// The same for several inputs, for layers that take them.
  virtual void build_for(std::span<const Spec> inputs);
  virtual Tensor call(const Tensor& x) const = 0;
  /// The same for layers that look at the mask of their input (CallScope).
  virtual Tensor call_masked(const Tensor& x, const Tensor&) const { return call(x); }
  /// The mask of what call() gives for `x` of this mask, which may be empty; empty: none. Layers that hold others leave
  /// it to those.
  virtual Tensor compute_mask(const Tensor&, const Tensor&) const { return {}; }
  /// Layers inside, in order.
  virtual std::vector<std::shared_ptr<Layer>> children() const { return {}; }

  /// Builds if it is not, outside of any trace.
  void ensure_built(const Spec& input) { ensure_built({&input, 1}); }
  void ensure_built(std::span<const Spec> inputs);
  /// Runs what is built on symbols for such inputs: what it calls, and is not built, builds itself.
  virtual void run_for(std::span<const Spec> inputs, CallMode mode);
  /// call() in the layer's name scope, of the input in the layer's type and with its mask.
  Tensor run(const Tensor& x) const;
  bool is_built() const { return built_; }
  /// Own variables, then those of the children.
  virtual Variables variables() const;
  /// Its own variables that pruning is for, as in TensorFlow's toolkit: kernels and tables, neither biases nor
  /// depthwise kernels.
  virtual Variables kernels() const;
  /// What call() or a call of several inputs gives for those that it was built for; empty: it is not known.
  std::optional<Spec> output() const;
  /// How often each weight of the kernels is multiplied for one example; dimensions that are open count as 1.
  virtual std::int64_t multiplications() const;
  virtual ChannelFlow channel_flow() const { return {}; }
  /// A copy of a built layer with these channels of its input and output alone.
  std::shared_ptr<Layer> with_channels(const ChannelList& inputs, const ChannelList& outputs) const;
  /// The spec of what call() gives for `input`; known sizes stay known.
  Spec output_of(const Spec& input, CallMode mode = CallMode::inference) const;

  /// The types of this layer and of those within that were given none of their own. InvalidArgument if it is built with
  /// variables of another type.
  void set_policy(const Policy& policy);
  const std::optional<Policy>& policy() const { return policy_; }
  /// Of the layer or the first one within that has any; null: none.
  std::shared_ptr<LossScale> loss_scale() const;
  /// A copy of a layer goes its own way.
  void renew_loss_scale();
  /// `x` in the type that the layer computes in; integers and booleans stay.
  Tensor computed(const Tensor& x) const;

  /// Of this layer and all within; variables that were made as none to be trained stay so. For those that it is yet to
  /// make, too.
  void set_trainable(bool trainable);
  /// Whether it was not frozen. A trace takes note of it.
  bool is_trainable() const;
  /// What traces go by to see that it is another layer now.
  const Setup& setup() const { return setup_; }
  /// Traces that met this layer or one within have to see that it is another one now. `how` as in "layer dense was
  /// assigned".
  void note_change_within(const char* how);
  void note_change(const char* how) { setup_.change(how); }
  /// What a trace has to know of a layer that it has met.
  virtual void watch(Trace& trace) const;
  /// The same of this layer and those within, if there is a trace.
  void note_looked_at() const;

  /// Whether this layer computes what `other` does, given its variables. False where that cannot be told.
  virtual bool has_setup_of(const Layer& other) const;
  /// Has the variables on the right in place of its own on the left.
  using Rebinding = std::map<const VariableCell*, std::shared_ptr<VariableCell>>;
  virtual void rebind(const Rebinding& cells);
  /// Takes over all that `fresh` is, a layer that nobody else has, so that what is within stays where it was, as far as
  /// it can. False: it cannot, and nothing has happened.
  virtual bool become(Layer&) { return false; }
  /// The name, the prefix and the types that `before` has by its place, unless it was given its own; of two names that
  /// were given the own one or not.
  void take_place_of(const Layer& before, bool keeps_own_name);
  /// Trained or not as `like`, layer by layer, which has the same layers within.
  void copy_trainability(const Layer& like);
  /// Its loss scale becomes that of `before`, which takes over the value; its variables have it.
  void keep_loss_scale_of(const Layer& before);
  /// Where a module that shares this layer was assigned to: what it is now.
  std::shared_ptr<Layer> successor;

  /// Penalties on trainable variables of this layer and those within, each variable's once: scalars.
  Tensors penalties() const;
  /// The losses that the last call brought, of this layer and those within: means over the rows of what was penalized.
  /// InvalidArgument if they belong to a compiled function that is over.
  Tensors call_losses() const;
  void forget_call_losses() const;

  /// Of this process; a copy has one of its own.
  std::uint64_t id() const { return id_; }
  /// Adds its own variables, and what a walk over it meets within.
  virtual void add_parts_to(Structure& structure) const;
  /// What the last walk over this layer found.
  FoundCache& found() const { return found_; }
  /// Whether it, or a layer within, has a penalty on what it gives.
  bool brings_losses() const;

  const std::string& name() const { return name_; }
  /// What messages call its type: the kind, "Model<Net>".
  virtual std::string type() const { return std::string(kind()); }
  /// What messages call it, also without a name of its own: "dense", "Model<Net>", "`head` (dense)".
  std::string called() const;
  bool has_own_name() const { return own_name_; }
  /// Names the layer; its variables become "<prefix><name>/<variable>".
  void rename(std::string name, bool by_user);
  void set_prefix(const std::string& prefix);
  /// Names its variables anew, which a model that shares layers with this one may have named.
  void name_again() { name_variables(); }
  /// Its variables are called as if it had this prefix and name: those of a layer that another model has named.
  void name_variables_as(const std::string& prefix, const std::string& name);
  /// The layers that it was copied from, as long as they are there.
  std::vector<std::shared_ptr<const Layer>> sources() const;
  void note_source(const std::shared_ptr<const Layer>& source);
  std::int64_t parameters() const { return variables().parameters(); }
  /// What it was built for, if that was one input.
  const std::optional<Spec>& input() const { return input_; }

 protected:
  void add_own_to(Structure& structure) const;
  Layer();
  Layer(const Layer& other);
  const std::string& prefix() const { return prefix_; }
  virtual void name_variables();
  /// Whether call() is to be given its input in the type of the policy; layers that only pass it on need not.
  virtual bool casts_input() const { return true; }
  /// call() of several inputs, of layers that take them.
  virtual Tensor call_on(In inputs) const;
  /// `child` was added to children().
  void pass_on(Layer& child) const;
  /// Whether no two copies of one layer are set up differently: nothing but build() changes its fields.
  virtual bool has_fixed_setup() const { return false; }
  /// All but the layers within.
  void take_own(Layer& fresh);
  /// Its variables are for that many channels of the output now.
  virtual void set_output_channels(std::int64_t) {}
  /// It was built by running it.
  void note_built(std::span<const Spec> inputs);
  /// Makes one of the layer's variables. Its first value is computed when it is needed.
  void add_variable(const std::string& name, const Tensor& initial, VariableOptions options = {},
                    Regularizer regularizer = {});
  void add_variable(const std::string& name, const Tensor& initial, Regularizer regularizer) {
    add_variable(name, initial, {}, std::move(regularizer));
  }
  /// Of what the layer gives.
  void set_activity_regularizer(Regularizer regularizer) { activity_regularizer_ = std::move(regularizer); }
  /// A loss of this call: the penalty on `y`, something within the layer, if there is one.
  void note_activity(const Regularizer& regularizer, const Tensor& y) const;
  /// What follows call(): the mask of its result, and its penalty. run() does it.
  void note_result(const Tensor& x, const Tensor& mask, const Tensor& y) const;
  Variable& variable(std::size_t i) const { return own_[i]; }
  /// Its value in the type that the layer computes in.
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
  std::uint64_t origin_;          // of one layer and its copies, until one of them is built or given another policy
  std::optional<Policy> policy_;  // empty: everything is of the input's type
  bool own_policy_ = false;
  std::shared_ptr<LossScale> loss_scale_;
  std::string name_, prefix_;
  bool own_name_ = false, built_ = false;
  std::optional<Spec> input_;  // that it was built for
  std::vector<Spec> inputs_;   // the same of several; sizes that are not known are any_size
  Variables own_;
  std::vector<std::string> own_names_;  // "kernel", "bias"
  std::vector<Regularizer> own_regularizers_;
  Regularizer activity_regularizer_;
  mutable CallLosses call_losses_;
};

/// A gradient through a layer whose result depends on the mode, where nobody said which: one warning a process.
void warn_if_mode_unsaid(std::string_view layer);

}  // namespace gradus
