/// Conversion of variables to arrays with names, and back. Values are immutable, so saving in the background only keeps
/// them alive.
#include "gradus/train/checkpoints.h"
#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <thread>
#include "gradus/base/notice.h"
#include "gradus/function/loss_scale.h"
#include "gradus/nn/layer.h"
#include "gradus/ops/random_state.h"
#include "gradus/train/checkpoint_directory.h"
#include "gradus/train/checkpoint_writer.h"

namespace gradus {
namespace {

/// A variable and what it is called in files.
struct Entry {
  std::string name;
  Variable* variable;
  bool optional = false;

  /// What its mask is called, if it has one.
  std::string mask_name() const { return "mask/" + name; }
};

/// "model/dense/kernel"; of variables of one name the second is "model/dense/kernel#2".
void add_entries(std::vector<Entry>& entries, std::string_view group, const Variables& variables, bool optional) {
  std::map<std::string, int> seen;
  for (Variable& variable : variables) {
    std::string name = text(group, '/', variable.name());
    if (const int count = ++seen[name]; count > 1) name += text('#', count);
    entries.push_back({std::move(name), &variable, optional});
  }
}

using Arrays = std::map<std::string, NamedArray>;

/// InvalidArgument unless the arrays of model and optimizer are those that are wanted.
void check_fit(const std::vector<Entry>& entries, const Arrays& arrays, const std::string& where) {
  std::set<std::string_view> wanted;
  for (const Entry& entry : entries) {
    wanted.insert(entry.name);
    if (entry.optional) continue;
    const auto found = arrays.find(entry.name);
    require(found != arrays.end(), where, " has no `", entry.name,
            "`: it was saved for another model or optimizer (of layers that were unfrozen later, build() the optimizer "
            "first)");
    const Spec &spec = found->second.spec, wanted_spec{entry.variable->dtype(), entry.variable->shape()};
    require(spec == wanted_spec, where, ": `", entry.name, "`: expected ", wanted_spec.dtype, ' ', wanted_spec.shape,
            ", the checkpoint has ", spec.dtype, ' ', spec.shape);
    const auto mask = arrays.find(entry.mask_name());
    require(mask == arrays.end() || mask->second.spec == Spec{boolean, spec.shape}, where, ": `", entry.mask_name(),
            "`: expected booleans ", spec.shape);
  }
  for (const auto& [name, array] : arrays)
    require(wanted.contains(name) || !(name.starts_with("model/") || name.starts_with("optimizer/")), where, " has `",
            name, "`, which this model and optimizer do not have");
}

/// Whether the checkpoint was saved before the first step, which makes `made_by_steps`: then it may lack them.
bool let_lack(std::vector<Entry>& entries, const Variables& made_by_steps, const Arrays& arrays) {
  std::vector<Entry*> made;
  for (Entry& entry : entries)
    if (made_by_steps.find(*entry.variable->cell()) >= 0) made.push_back(&entry);
  if (std::ranges::any_of(made, [&](const Entry* entry) { return arrays.contains(entry->name); })) return false;
  for (Entry* entry : made) entry->optional = true;
  return !made.empty();
}

}  // namespace

struct Checkpoints::State {
  CheckpointOptions options;
  CheckpointDirectory files;
  Module& model;
  Optimizer& optimizer;
  std::vector<std::pair<std::string, std::function<Variables()>>> further = {};
  std::function<Tensor(const Variable&)> read = [](const Variable& variable) { return variable.value(); };
  std::optional<std::int64_t> micro_shards = {};
  std::thread writer = {};
  std::exception_ptr failure = {};
  std::shared_ptr<const void> right_to_write = {};  // from the first checkpoint on

  std::vector<Entry> entries() const {
    std::vector<Entry> all;
    add_entries(all, "model", model.variables(), false);
    add_entries(all, "optimizer", optimizer_variables(), false);
    for (const auto& [name, variables] : further) add_entries(all, name, variables(), true);
    return all;
  }

  /// What an optimizer that is not built will have of the model.
  Variables optimizer_variables() const {
    const auto scale = optimizer.is_built() ? nullptr : model.layer_behind().loss_scale();
    return scale ? optimizer.variables() + scale->variables() : optimizer.variables();
  }

  CheckpointContents contents(std::int64_t step, Position next) const {
    require(step >= 0, "Checkpoints: step must not be negative, got ", step);
    require(model.is_built(), "Checkpoints: the model is not built yet; call it, or build(spec), first");
    CheckpointContents all{
        .step = step, .position = next, .random_state = random_state(), .micro_shards = micro_shards};
    for (const Entry& entry : entries()) {
      const auto add = [&](const std::string& name, const Tensor& value) {
        all.arrays.push_back({name, value.spec(), value.host_buffer()});
      };
      add(entry.name, read(*entry.variable));
      if (const Tensor mask = entry.variable->mask(); mask.defined()) add(entry.mask_name(), mask);
    }
    return all;
  }

  void hold() {
    if (!right_to_write) right_to_write = hold_as_writer(options.directory);
  }

  void join() {
    if (writer.joinable()) writer.join();
  }
};

Checkpoints::Checkpoints(CheckpointOptions options, Module& model, Optimizer& optimizer) {
  require(!options.directory.empty(), "Checkpoints: directory is empty; say where checkpoints shall be");
  check_options("Checkpoints", options);
  const CheckpointDirectory files({options.directory, options.max_to_keep, options.max_shard_bytes});
  state_ = std::make_unique<State>(State{std::move(options), files, model, optimizer});
}

Checkpoints::~Checkpoints() {
  try {
    wait();
  } catch (const std::exception& error) {
    notice(text("gradus: a checkpoint could not be saved: ", error.what(), '\n'));
  }
}

void Checkpoints::include(std::string name, std::function<Variables()> variables) {
  state_->further.emplace_back(std::move(name), std::move(variables));
}

void Checkpoints::read_by(std::function<Tensor(const Variable&)> read) { state_->read = std::move(read); }

void Checkpoints::set_micro_shards(std::int64_t count) { state_->micro_shards = count; }

void Checkpoints::save(std::int64_t step, Position next) {
  wait();
  state_->hold();
  state_->files.write(state_->contents(step, next));
}

void Checkpoints::save_in_background(std::int64_t step, Position next) {
  wait();
  state_->hold();
  const auto contents = std::make_shared<const CheckpointContents>(state_->contents(step, next));
  try {
    state_->writer = std::thread([&state = *state_, contents] {
      try {
        state.files.write(*contents);
      } catch (...) { state.failure = std::current_exception(); }
    });
  } catch (const std::system_error&) {  // the system starts no further thread: this one has the time
    state_->files.write(*contents);
  }
}

void Checkpoints::wait() {
  state_->join();
  if (state_->failure) std::rethrow_exception(std::exchange(state_->failure, nullptr));
}

std::optional<Restored> Checkpoints::restore() {
  wait();
  const std::string where = state_->options.directory.string();
  std::vector<std::string> damaged;
  auto contents = state_->files.read_newest(damaged);
  for (const std::string& why : damaged) notice(text("gradus: this checkpoint is passed over: ", why, '\n'));
  if (!contents) return {};
  require(state_->model.is_built(), "Checkpoints: the model is not built yet; call it, or build(spec), first");
  if (const Variables trainable = state_->model.trainable_variables(); trainable.size() > 0)
    state_->optimizer.prepare(trainable);
  Arrays arrays;
  for (NamedArray& array : contents->arrays) arrays.emplace(array.name, std::move(array));
  std::vector<Entry> entries = state_->entries();
  const bool is_of_no_step = let_lack(entries, state_->optimizer.made_by_steps(), arrays);
  check_fit(entries, arrays, where);
  for (const Entry& entry : entries) {
    const auto found = arrays.find(entry.name);
    if (found == arrays.end() || found->second.spec != Spec{entry.variable->dtype(), entry.variable->shape()}) continue;
    const auto mask = arrays.find(entry.mask_name());
    entry.variable->set_mask(mask == arrays.end() ? Tensor() : Tensor::of_buffer(mask->second.spec, mask->second.data));
    entry.variable->assign(Tensor::of_buffer(found->second.spec, found->second.data));
  }
  if (is_of_no_step) state_->optimizer.start_anew();
  set_random_state(contents->random_state);
  return Restored{contents->step, contents->position, contents->micro_shards};
}

}  // namespace gradus
