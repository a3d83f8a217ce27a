/// A layer whose setup is known to be equal takes the values alone. Any other is replaced by a copy that takes over the
/// variables.
#include "gradus/nn/assignment.h"
#include <algorithm>
#include <vector>
#include "gradus/function/variable_cell.h"
#include "gradus/graph/context.h"
#include "gradus/nn/copying.h"
#include "gradus/nn/net_layer.h"

namespace gradus {
namespace {

/// InvalidArgument unless `from` could be the values of `to`.
void check_structure(const Variables& from, const Variables& to, const Layer& source, const Layer& target) {
  const auto opening = [&] {
    return text("assigning module ", source.called(), " to ", target.called(), ", which keeps its variables: ");
  };
  constexpr std::string_view remedy =
      "; assign between models of one structure, or copy-construct; or move the old one out first, as in `const auto "
      "old = std::move(a); a = b;`: then it has other variables, and needs another optimizer";
  for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) {
    const VariableCell &x = *from.cells()[i], &y = *to.cells()[i];
    require(x.spec == y.spec, opening(), "they have variables of different shapes: variable ", i, " is ", y.name, ' ',
            y.spec, ", there ", x.name, ' ', x.spec, remedy);
  }
  require(from.size() == to.size(), opening(), "they have variables of different shapes: it has ", to.size(),
          ", the other ", from.size(), remedy);
}

void write(const Variables& from, const Variables& to) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    VariableCell &source = *from.cells()[i], &target = *to.cells()[i];
    if (source.mask_cell() || target.mask_cell()) to[i].set_mask(from[i].mask());
    to[i].assign(from[i].value());
    target.aggregation = source.aggregation;
    target.made_trainable = source.made_trainable;
    target.set_trainable(source.trainable);
  }
}

/// Modules that share the layer follow.
void replace(std::shared_ptr<Layer>& layer, const std::shared_ptr<Layer>& before, const std::shared_ptr<Layer>& next) {
  if (before && next) before->successor = next;
  layer = next;
}

/// `fresh`, which nobody else has, takes over variables, values and place of `before`.
/// `of_others`: Variables of a model that it may have by pointers and which stay those of their owner.
void take_over(std::shared_ptr<Layer>& layer, const std::shared_ptr<Layer>& before, const std::shared_ptr<Layer>& fresh,
               const Variables& of_others) {
  const Variables from = fresh->variables(), to = before->variables();
  Layer::Rebinding rebinding;
  std::vector<bool> abandoned;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (of_others.find(*from.cells()[i]) < 0) rebinding.emplace(from.cells()[i].get(), to.cells()[i]);
    abandoned.push_back(to.cells()[i]->abandoned);
  }
  fresh->rebind(rebinding);
  require(fresh->variables().cells() == to.cells(), "assigning module ", fresh->called(), " to ", before->called(),
          ": it has layers or Variables by pointers to where they belong to somebody else, or a layer of your own with "
          "variables that add_variable() has not made, and would need a rebind() for; assign its parts one by one");
  write(from, to);
  fresh->keep_loss_scale_of(*before);
  before->note_change_within("was assigned to");
  if (!before->become(*fresh)) replace(layer, before, fresh);
  // The handles of fields that are Variables are others now.
  for (std::size_t i = 0; i < to.size(); ++i) to.cells()[i]->abandoned = abandoned[i];
}

}  // namespace

bool has_variables(const Layer& layer) {
  if (layer.is_built()) return true;
  const bool has_none_of_its_own = layer.kind() == "sequential" || dynamic_cast<const NetLayer*>(&layer);
  const auto layers = has_none_of_its_own ? layer.children() : std::vector<std::shared_ptr<Layer>>();
  return !layers.empty() && std::ranges::all_of(layers, [](const auto& each) { return has_variables(*each); });
}

std::shared_ptr<Layer> copy_of(const std::shared_ptr<Layer>& layer) {
  if (!layer) return nullptr;
  layer->note_looked_at();
  const Untraced outside;
  const Copying copying;
  std::shared_ptr<Layer> copy = layer->clone();
  copy->renew_loss_scale();
  if (!copying.is_inner()) copy->note_source(layer);
  return copy;
}

void adopt(std::shared_ptr<Layer>& layer, std::shared_ptr<Layer> before, const std::shared_ptr<Layer>& next) {
  if (before) {
    if (next) next->take_place_of(*before, true);
    before->note_change_within("was assigned to");
  }
  replace(layer, before, next);
}

void assign(std::shared_ptr<Layer>& layer, std::shared_ptr<Layer> before, const std::shared_ptr<Layer>& other) {
  require(!Context::current(), "assigning module ", other->called(), " to ", before->called(),
          " within a traced function: its layers would change now, its values in each call; assign it outside, or here "
          "its variables one by one, as in a.variables()[i].assign(b.variables()[i])");
  if (has_variables(*other) && before->has_setup_of(*other)) {
    const Variables from = other->variables(), to = before->variables();
    check_structure(from, to, *other, *before);
    write(from, to);
    before->copy_trainability(*other);
    before->forget_call_losses();
    if (const auto scale = before->loss_scale(), source = other->loss_scale(); scale && source) scale->assign(*source);
    return;
  }
  const std::shared_ptr<Layer> fresh = copy_of(other);
  fresh->take_place_of(*before, false);
  if (!has_variables(*fresh)) {
    require(before->input().has_value(), "assigning module ", other->called(), " to ", before->called(),
            ", which is built: the one that is assigned is not; call it, or build(spec), first");
    fresh->ensure_built(*before->input());
  }
  check_structure(fresh->variables(), before->variables(), *fresh, *before);
  take_over(layer, before, fresh, other->variables());
}

}  // namespace gradus
