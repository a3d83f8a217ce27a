/// NetLayer: the layer behind a Model<Net>, without the struct itself.
#pragma once
#include "gradus/function/watched_state.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/fields.h"
#include "gradus/nn/layer.h"

namespace gradus {

namespace detail::inline rooms {

/// The layer of a struct of layers.
class NetLayer : public Layer {
 public:
  /// The layer behind `model`; InvalidArgument if it is of another kind.
  static std::shared_ptr<NetLayer> of(const Module& model);
  std::string_view kind() const override { return "model"; }
  void build(const Spec& input) override { build_for({&input, 1}); }
  /// Runs the struct on symbols, in inference mode: its layers build themselves. Unknown sizes are one symbol per axis,
  /// so that the batches of several inputs agree.
  void build_for(std::span<const Spec> inputs) override { run_for(inputs, CallMode::inference); }
  void run_for(std::span<const Spec> inputs, CallMode mode) override;
  std::vector<std::shared_ptr<Layer>> children() const override;
  /// In the order of the fields; a shared one counts once.
  Variables variables() const override;

  /// Walks over the struct's fields.
  virtual void visit(const FieldVisitor& visitor) const = 0;
  /// The struct's name in messages, such as "Net".
  virtual std::string struct_name() const = 0;
  std::string type() const override { return "Model<" + struct_name() + ">"; }
  /// A layer that the walk met.
  struct Met {
    std::string field;    // name of the field
    const Module* layer;  // the module in it
    bool is_borrowed;     // others may have named it
  };
  /// Its layers, each once, in the order of the fields.
  std::vector<Met> layers() const;
  /// Its plain fields, and the layers in it.
  WatchedFields::Fields fields() const;
  void watch(Trace& trace) const override;
  bool has_setup_of(const Layer& other) const override;
  void rebind(const Rebinding& cells) override;
  void visit_texts(const std::string& path, const TextVisitor& visit) const override;
  /// Declares that the first call has ended: its layers are built.
  void finish_first_call(std::span<const Spec> inputs) { note_built(inputs); }

 protected:
  NetLayer() = default;
  NetLayer(const NetLayer&) = default;
  /// Called once the struct exists: what it shares becomes its own.
  void adopt_fields();
  void name_variables() override;
  /// Calls the struct; the result does not matter.
  virtual void run_on(In inputs) const = 0;
};

/// One call of a model: its name scope, and its notification of a trace.
class NetCall {
 public:
  /// `model`: the user's handle, which has to outlive this. InvalidArgument if no NetLayer is behind it.
  explicit NetCall(const Module& model);
  /// `layer`: that of `model`.
  NetCall(const Module& model, std::shared_ptr<NetLayer> layer);
  /// The layer that is called.
  NetLayer& layer() const { return *layer_; }
  /// Called after the call.
  void finish(std::vector<Spec> inputs) const;

 private:
  void note_use() const;
  const Module& model_;
  const std::shared_ptr<NetLayer> layer_;  // kept, whatever the call assigns to the model
  NameScope scope_;
  CallScope call_;
};

/// Throws: a model of `inputs` inputs (0: its struct does not tell) is used where one input gives one output.
[[noreturn]] void fail_as_module(const Layer& layer);

}  // namespace detail::inline rooms

}  // namespace gradus
