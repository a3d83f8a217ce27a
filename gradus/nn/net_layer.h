/// NetLayer: what stands behind a Model<Net>, but for the struct itself.
#pragma once
#include "gradus/function/watched_state.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/fields.h"
#include "gradus/nn/layer.h"

namespace gradus {

class NetLayer : public Layer {
 public:
  std::string_view kind() const override { return "model"; }
  void build(const Spec& input) override { build_for({&input, 1}); }
  /// Runs the struct on symbols, in inference mode: its layers build themselves. Sizes that are not known are one
  /// symbol per axis, so that the batches of several inputs agree.
  void build_for(std::span<const Spec> inputs) override { run_for(inputs, CallMode::inference); }
  void run_for(std::span<const Spec> inputs, CallMode mode) override;
  std::vector<std::shared_ptr<Layer>> children() const override;
  /// In the order of the fields; what is shared counts once.
  Variables variables() const override;

  virtual void visit(const FieldVisitor& visitor) const = 0;
  /// "Net", for messages.
  virtual std::string struct_name() const = 0;
  std::string type() const override { return "Model<" + struct_name() + ">"; }
  struct Met {
    std::string field;
    const Module* layer;
    bool is_borrowed;  // others may have named it
  };
  /// The layers that it has, each once, in the order of the fields.
  std::vector<Met> layers() const;
  /// Its plain fields, and which layers are in it.
  WatchedFields::Fields fields() const;
  void watch(Trace& trace) const override;
  bool has_setup_of(const Layer& other) const override;
  void rebind(const Rebinding& cells) override;
  /// A call ended, the first one at that: its layers are built.
  void finish_first_call(std::span<const Spec> inputs) { note_built(inputs); }

 protected:
  NetLayer() = default;
  NetLayer(const NetLayer&) = default;
  /// The struct is there: what it shares is its own now.
  void adopt_fields();
  void name_variables() override;
  /// Calls the struct; what it gives does not matter.
  virtual void run_on(In inputs) const = 0;
};

/// One call of a model: its name scope, and what a trace has to know of it.
class NetCall {
 public:
  /// `model`: where the user's handle lies.
  NetCall(const Module& model, const std::shared_ptr<NetLayer>& layer);
  /// After the call.
  void finish(std::vector<Spec> inputs) const;

 private:
  void note_use() const;
  const Module& model_;
  const std::shared_ptr<NetLayer>& layer_;
  NameScope scope_;
  CallScope call_;
};

/// Throws that a model of `inputs` inputs (0: not told by its struct) is used where one input gives one output.
[[noreturn]] void fail_as_module(const Layer& layer);

}  // namespace gradus
