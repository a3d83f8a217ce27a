/// Building, naming and running of layers.
#include "gradus/nn/layer.h"
#include <atomic>
#include <iostream>
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/graph/scope.h"

namespace gradus {

Layer::Layer(const Layer& other)
    : name_(other.name_),
      prefix_(other.prefix_),
      own_name_(other.own_name_),
      built_(other.built_),
      input_(other.input_),
      own_names_(other.own_names_) {
  for (const Variable& variable : other.own_) {
    Variable copy(variable);
    own_.add(copy);
  }
}

void Layer::ensure_built(std::span<const Spec> inputs) {
  if (built_) return;
  const Untraced outside;
  build_for(inputs);
  note_built(inputs);
}

void Layer::build_for(std::span<const Spec> inputs) {
  require(inputs.size() == 1, kind(), ": it takes one input, not ", inputs.size());
  build(inputs[0]);
}

void Layer::note_built(std::span<const Spec> inputs) {
  if (inputs.size() == 1) {
    input_ = inputs[0];
    for (int axis = 0; axis < input_->shape.rank(); ++axis)
      if (dimension::is_symbolic(input_->shape[axis])) input_->shape.set(axis, any_size);
  }
  built_ = true;
  name_variables();
}

Tensor Layer::run(const Tensor& x) const {
  const NameScope scope(name_.empty() ? kind() : std::string_view(name_));
  return call(x);
}

Variables Layer::variables() const {
  Variables all = own_;
  for (const auto& child : children()) all = all + child->variables();
  return all;
}

Spec Layer::output_of(const Spec& input) const {
  Spec symbolic = input;
  int next = 0;
  for (int axis = 0; axis < input.shape.rank(); ++axis)
    if (input.shape[axis] == any_size) symbolic.shape.set(axis, dimension::symbol(next++));
  const ModeScope mode(CallMode::inference);
  const Trace trace({&symbolic, 1});
  Spec output = run(trace.parameters()[0]).spec();
  for (int axis = 0; axis < output.shape.rank(); ++axis)
    if (dimension::is_symbolic(output.shape[axis])) output.shape.set(axis, any_size);
  return output;
}

void Layer::add_variable(const std::string& name, const Tensor& initial, VariableOptions options) {
  const Variable variable(initial, name, options);
  own_.add(variable);
  own_names_.push_back(name);
}

void Layer::rename(std::string name, bool by_user) {
  name_ = std::move(name);
  own_name_ = by_user;
  name_variables();
}

void Layer::set_prefix(const std::string& prefix) {
  prefix_ = prefix;
  name_variables();
}

void Layer::name_variables() {
  const std::string path = prefix_ + (name_.empty() ? std::string(kind()) : name_);
  for (std::size_t i = 0; i < own_.size(); ++i) own_[i].set_name(path + "/" + own_names_[i]);
  for (const auto& child : children()) child->set_prefix(path + "/");
}

void warn_if_mode_unsaid(std::string_view layer) {
  if (current_mode() != CallMode::unsaid || !Pending::mine().is_recording()) return;
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  std::cerr << "gradus: a gradient is being recorded through " << layer
            << " in a call that does not say its mode, so it runs as in inference; write model(x, training)\n";
}

}  // namespace gradus
