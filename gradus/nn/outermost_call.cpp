/// Finding the parts of a model that runs, and errors for layers and Variables that are not found.
#include "gradus/nn/outermost_call.h"
#include <algorithm>
#include "gradus/function/trace.h"
#include "gradus/function/variable_cell.h"
#include "gradus/function/whereabouts.h"
#include "gradus/graph/context.h"
#include "gradus/nn/net_layer.h"

namespace gradus {
namespace {

void collect(const Layer& layer, std::vector<std::uint64_t>& ids) {
  ids.push_back(layer.id());
  for (const auto& child : layer.children()) collect(*child, ids);
}

/// A trace holds as long as these layers are found. Models that were looked at keep what was seen: each call looks
/// before it runs, and its later changes of fields are to be reported.
void watch_layers(const Layer& layer, Trace& trace) {
  if (!trace.has_looked_into(layer.setup())) layer.watch(trace);
  for (const auto& child : layer.children()) watch_layers(*child, trace);
}

OutermostCall*& outermost_call() { return CallContext::here().outermost; }

std::string owner_of(const Layer& root) {
  const auto* net = dynamic_cast<const NetLayer*>(&root);
  const std::string type = net ? text("Model<", net->struct_name(), ">") : std::string(root.kind());
  return root.name().empty() || root.name() == root.kind() ? type : type + " `" + root.name() + "`";
}

std::string mend_for(const Layer& root, std::string_view what) {
  if (dynamic_cast<const NetLayer*>(&root))
    return text(
        "One that is made or copied within the call is another one in every call. Make it a field of the struct: the ",
        what,
        " itself, or a pointer, container or struct of them. A class with private fields or a constructor that keeps "
        "layers elsewhere than directly in itself names all that it has: "
        "auto layers() const { return std::tie(first_, blocks_); }");
  if (root.kind() == "sequential" || root.kind() == "lambda")
    return text("Add it to the Sequential, with shared(layer) if it is used elsewhere, too; a function that needs a ",
                what, " becomes a struct that has it as a field: Model<Net>");
  return text(
      "A layer of one's own returns the layers within from children(), and makes its variables by add_variable()");
}

}  // namespace

FoundParts::FoundParts(const Layer& root) : handles_(whereabouts::changes()) {
  const Structure whole(root, Structure::Hidden::seen);
  whole_ = whole.number();
  has_hidden_models_ = whole.has_hidden_models();
  seen_ = Structure(root, Structure::Hidden::left_out).number();
  collect(root, layers);
  for (const Variable& variable : root.variables()) variables.push_back(variable.cell()->id);
  std::ranges::sort(layers);
  std::ranges::sort(variables);
}

bool FoundParts::holds(const Layer& root) const {
  const std::uint64_t now = whereabouts::changes();
  if (!has_hidden_models_ && handles_.load(std::memory_order_acquire) == now)
    return Structure(root, Structure::Hidden::left_out).number() == seen_;
  if (Structure(root, Structure::Hidden::seen).number() != whole_) return false;
  handles_.store(now, std::memory_order_release);
  return true;
}

std::shared_ptr<const FoundParts> FoundCache::get() const {
  const std::lock_guard lock(mutex_);
  return found_;
}
void FoundCache::set(std::shared_ptr<const FoundParts> found) {
  const std::lock_guard lock(mutex_);
  found_.swap(found);  // the old one dies after the lock
}

void OutermostCall::Reading::on_read_within(VariableCell& cell) {
  if (cell.trainable && outermost_call() && outermost_call()->listens_) outermost_call()->check(cell);
}

OutermostCall::OutermostCall(const Layer& layer) : OutermostCall(layer, Kind::call) {}

OutermostCall::OutermostCall(const Layer& layer, Kind kind) {
  if (kind == Kind::building) {
    const bool is_part = outermost_call() && outermost_call()->finds(layer.id(), &FoundParts::layers);
    begin(is_part ? *outermost_call()->root_ : layer, false);
    return;
  }
  if (outermost_call()) outermost_call()->check(layer);
  if (!outermost_call() || !outermost_call()->listens_)
    begin(outermost_call() ? *outermost_call()->root_ : layer, true);
}

OutermostCall::~OutermostCall() {
  if (root_) outermost_call() = outer_;
}

/// In a trace, which is rare, nothing is taken for found that was found before; else what is still there.
void OutermostCall::begin(const Layer& root, bool listens) {
  root_ = &root;
  listens_ = listens;
  if (!Context::current()) found_ = root.found().get();
  if (found_ && !found_->holds(root)) found_ = nullptr;
  if (listens) reading_.emplace();
  outer_ = outermost_call();
  outermost_call() = this;
}

bool OutermostCall::finds(std::uint64_t id, std::vector<std::uint64_t> FoundParts::* list) {
  if (found_ && std::ranges::binary_search((*found_).*list, id)) return true;
  found_ = std::make_shared<const FoundParts>(*root_);
  root_->found().set(found_);
  if (Trace* trace = Trace::current()) watch_layers(*root_, *trace);
  return std::ranges::binary_search((*found_).*list, id);
}

void OutermostCall::check(const Layer& layer) {
  if (&layer == root_ || (found_ && std::ranges::binary_search(found_->layers, layer.id()))) return;
  const Variables variables = layer.variables();
  if (variables.size() == 0 && !layer.brings_losses()) return;
  if (finds(layer.id(), &FoundParts::layers)) return;
  throw InvalidArgument(
      text(owner_of(*root_), ": layer ", layer.called(), ", which has ", variables.size(),
           variables.size() == 1 ? " variable" : " variables",
           ", runs within its call, but is none of the layers that are found in it: it would be neither "
           "trained nor saved. ",
           mend_for(*root_, "layer")));
}

void OutermostCall::check(const VariableCell& cell) {
  if (finds(cell.id, &FoundParts::variables)) return;
  throw InvalidArgument(
      text(owner_of(*root_), ": variable `", cell.name,
           "`, which is trainable, is read within its call, but is none of its variables: it would be "
           "neither trained nor saved. If it is not to be trained, make it with {.trainable = false}. ",
           mend_for(*root_, "Variable")));
}

}  // namespace gradus
