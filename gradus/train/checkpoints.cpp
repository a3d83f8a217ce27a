/// Conversion of variables to arrays with names, and back. Values are immutable, so saving in the background only keeps
/// them alive.
#include "gradus/train/checkpoints.h"
#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <set>
#include <thread>
#include "gradus/base/notice.h"
#include "gradus/function/loss_scale.h"
#include "gradus/nn/layer.h"
#include "gradus/ops/random_state.h"
#include "gradus/optim/option_text.h"
#include "gradus/train/checkpoint_directory.h"
#include "gradus/train/checkpoint_writer.h"
#include "gradus/train/model_texts.h"

namespace gradus {
namespace {

/// A variable and what it is called in files.
struct Entry {
  std::string name;
  Variable* variable;
  bool optional = false;

  /// The name of its mask, if it has one.
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

/// Groups of parameters with their own rates may have changed; the facts report that.
bool is_rate(std::string_view name) {
  return name.starts_with("optimizer/") && name.find("/learning_rate_") != std::string_view::npos;
}

constexpr std::string_view history_group = "history/", text_group = "text/";

/// One number for each epoch.
NamedArray numbers_array(const std::string& name, const std::vector<double>& values) {
  Ref<Buffer> data = Buffer::allocate(static_cast<std::int64_t>(values.size() * sizeof(double)), "history");
  std::ranges::copy(values, data->data<double>());
  return {std::string(history_group) + name, {f64, {static_cast<std::int64_t>(values.size())}}, std::move(data)};
}
std::vector<double> numbers_of(const NamedArray& array) {
  const auto* const values = static_cast<const double*>(array.data->data());
  return {values, values + array.spec.shape.size()};
}

/// Seconds are left out: equal trainings have equal checkpoints.
void add_history(std::vector<NamedArray>& arrays, const History& history) {
  if (history.loss.empty()) return;
  arrays.push_back(numbers_array("loss", history.loss));
  if (!history.validation_loss.empty()) arrays.push_back(numbers_array("validation_loss", history.validation_loss));
  for (const auto& [name, values] : history.metrics) arrays.push_back(numbers_array("metric/" + name, values));
}

History history_in(const Arrays& arrays) {
  History history;
  for (const auto& [name, array] : arrays) {
    if (!name.starts_with(history_group) || array.spec.dtype != f64 || array.spec.shape.rank() != 1) continue;
    const std::string what = name.substr(history_group.size());
    if (what == "loss") history.loss = numbers_of(array);
    else if (what == "validation_loss") history.validation_loss = numbers_of(array);
    else if (what.starts_with("metric/")) history.metrics.emplace_back(what.substr(7), numbers_of(array));
  }
  return history;
}

constexpr std::string_view callback_group = "callback/";

bool has_group(const Arrays& arrays, const std::string& group) {
  const auto found = arrays.lower_bound(group + '/');
  return found != arrays.end() && found->first.starts_with(group + '/');
}

void rename_group(Arrays& arrays, const std::string& from, const std::string& to) {
  while (has_group(arrays, from)) {
    auto array = arrays.extract(arrays.lower_bound(from + '/'));
    array.key() = to + array.key().substr(from.size());
    arrays.insert(std::move(array));
  }
}

/// The callbacks of which there is state: "early_stopping"; of versions that numbered them, "callback_0".
std::set<std::string> callbacks_in(const Arrays& arrays) {
  std::set<std::string> names;
  for (const auto& [name, array] : arrays)
    if (name.starts_with(callback_group))
      names.insert(name.substr(callback_group.size(), name.find('/', callback_group.size()) - callback_group.size()));
    else if (name.starts_with("callback_")) names.insert(name.substr(0, name.find('/')));
  return names;
}

/// True if the learning rate comes from the checkpoint: docs/from-tensorflow.md. `said`: the rate that this program
/// states; `then`: the one that the saving program stated, empty if unknown; `saved`: the number in the checkpoint,
/// empty if a function gave it.
bool is_from_checkpoint(const std::string& said, bool has_function, const std::string& then, const std::string& saved) {
  if (saved.empty() && !has_function) return false;  // the program has no function to compute it
  return then.empty() || said == then || said == saved;
}

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
            ", the checkpoint has ", spec.dtype, ' ', spec.shape,
            "; it was saved for another model: go on with that one, "
            "or begin a training of its own in another directory");
    const auto mask = arrays.find(entry.mask_name());
    require(mask == arrays.end() || mask->second.spec == Spec{boolean, spec.shape}, where, ": `", entry.mask_name(),
            "`: expected booleans ", spec.shape);
  }
  for (const auto& [name, array] : arrays)
    require(wanted.contains(name) || is_rate(name) || !(name.starts_with("model/") || name.starts_with("optimizer/")),
            where, " has `", name, "`, which this model and optimizer do not have");
}

/// True if the checkpoint was saved before the first step, which makes `made_by_steps`: then it may lack them.
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
  std::vector<std::pair<std::string, std::string>> older_names = {};  // of callbacks: name, name of before
  std::function<Tensor(const Variable&)> read = [](const Variable& variable) { return variable.value(); };
  std::optional<std::int64_t> micro_shards = {};
  std::optional<TrainingFacts> said = {};  // empty: the statement of model and optimizer when they are saved
  Notes notes = {};
  std::thread writer = {};
  std::exception_ptr failure = {};
  std::shared_ptr<const void> right_to_write = {};  // held from the first checkpoint on

  std::vector<Entry> entries() const {
    std::vector<Entry> all;
    add_entries(all, "model", model.variables(), false);
    add_entries(all, "optimizer", optimizer_variables(), false);
    for (const auto& [name, variables] : further) add_entries(all, name, variables(), true);
    return all;
  }

  /// The variables that an unbuilt optimizer will have of the model.
  Variables optimizer_variables() const {
    const auto scale = optimizer.is_built() ? nullptr : model.layer_behind().loss_scale();
    return scale ? optimizer.variables() + scale->variables() : optimizer.variables();
  }

  /// The program's present statement.
  TrainingFacts facts(bool of_training) const {
    TrainingFacts all = facts_of(model, optimizer);
    for (const Optimizer::SaidRate& rate : optimizer.said_rates())
      all.emplace_back(rate.name, of_training ? rate.last : rate.first);
    return all;
  }

  CheckpointContents contents(std::int64_t step, Position next) const {
    require(step >= 0, "Checkpoints: step must not be negative, got ", step);
    require(model.is_built(), "Checkpoints: the model is not built yet; call it, or build(spec), first");
    CheckpointContents all{.step = step,
                           .position = next,
                           .random_state = random_state(),
                           .micro_shards = micro_shards,
                           .arrays = {},
                           .said = said ? *said : facts(false),
                           .stream = notes.stream};
    for (const Entry& entry : entries()) {
      const auto add = [&](const std::string& name, const Tensor& value) {
        all.arrays.push_back({name, value.spec(), value.host_buffer()});
      };
      add(entry.name, read(*entry.variable));
      if (const Tensor mask = entry.variable->mask(); mask.defined()) add(entry.mask_name(), mask);
    }
    for (NamedArray& text : text_arrays(model)) {
      text.name.insert(0, text_group);
      all.arrays.push_back(std::move(text));
    }
    add_history(all.arrays, notes.history);
    return all;
  }

  /// Reads the vocabularies of the checkpoint; older ones have none. InvalidArgument if their options differ.
  LoadedTexts texts_in(const Arrays& arrays, const std::string& where) const {
    LoadedTexts texts(model, where + ": ");
    std::set<std::string> wanted;
    for (const ModelText& text : texts_of(model)) {
      wanted.insert(std::string(text_group) + text.name);
      const auto found = arrays.find(std::string(text_group) + text.name);
      const std::string unlike = found == arrays.end() ? std::string() : texts.read(text, found->second);
      require(unlike.empty(), where, ": `", text.name, "`: ", unlike, "; it was saved for another model");
    }
    for (const auto& [name, array] : arrays)
      require(!name.starts_with(text_group) || wanted.contains(name), where, " has the vocabulary `", name,
              "`, which this model does not have; it was saved for another model");
    return texts;
  }

  /// The rates among the entries that keep the program's value. The differences report each rate that is not the one
  /// that both programs stated.
  std::vector<const Variable*> decide_rates(std::vector<Entry>& entries, const Arrays& arrays,
                                            const TrainingFacts& program, Resumed& resumed) const {
    std::vector<const Variable*> kept;
    for (const Optimizer::SaidRate& rate : optimizer.said_rates()) {
      const auto entry =
          std::ranges::find_if(entries, [&](const Entry& each) { return each.variable->cell() == rate.value->cell(); });
      entry->optional = true;  // absent for a new group
      const auto found = arrays.find(entry->name);
      if (found == arrays.end() || found->second.spec != Spec{f64, {}}) continue;
      const double number = *static_cast<const double*>(found->second.data->data());
      const std::string saved = std::isnan(number) ? std::string() : option_text(number);
      const std::string said = value_of(program, rate.name), then = value_of(resumed.said, rate.name);
      const std::string had = !saved.empty() ? saved : then.empty() ? "a function of the step" : then;
      std::erase_if(resumed.differences, [&](const FactDifference& each) { return each.name == rate.name; });
      const bool takes = is_from_checkpoint(said, rate.has_function, then, saved);
      if (!takes) kept.push_back(entry->variable);
      // Versions without the saving program's statement may hold a number that a callback set.
      const bool differs = !takes || (then.empty() && !saved.empty() && said != saved);
      if (differs) resumed.differences.push_back({rate.name, said, had, takes ? GoesBy::checkpoint : GoesBy::program});
    }
    return kept;
  }

  /// Finds the callbacks of program and checkpoint that have no partner.
  void match_callbacks(Arrays& arrays, Resumed& resumed) const {
    for (const auto& [name, older] : older_names)
      if (!has_group(arrays, name)) rename_group(arrays, older, name);
    std::set<std::string> left = callbacks_in(arrays);
    for (const auto& [group, variables] : further) {
      if (!group.starts_with(callback_group) || variables().size() == 0) continue;
      const std::string name = group.substr(callback_group.size());
      if (left.erase(name) == 0) resumed.without_state.push_back(name);
    }
    resumed.unused.assign(left.begin(), left.end());
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

void Checkpoints::include_callback(std::string name, std::function<Variables()> variables, std::string older_name) {
  std::ranges::replace_if(name, [](char c) { return c == '/' || c == '#'; }, '_');
  const std::string group = std::string(callback_group) + name;
  const auto of_name = std::ranges::count_if(
      state_->further, [&](const auto& each) { return each.first.substr(0, each.first.find('#')) == group; });
  const std::string own = of_name == 0 ? group : text(group, '#', of_name + 1);
  state_->older_names.emplace_back(own, std::move(older_name));
  include(own, std::move(variables));
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

void Checkpoints::say(TrainingFacts said) { state_->said = std::move(said); }

void Checkpoints::note(Notes notes) { state_->notes = std::move(notes); }

void Checkpoints::require_writable() const {
  std::int64_t bytes = 0;
  for (const Entry& entry : state_->entries()) bytes += bytes_of({entry.variable->dtype(), entry.variable->shape()});
  state_->files.require_writable(bytes);
}

std::optional<Restored> Checkpoints::restore() {
  const auto resumed = restore(state_->facts(false), [](const Resumed&) {});
  if (!resumed) return {};
  if (!resumed->contract.empty()) notice(resumed->contract);
  if (const std::string line = text_of(resumed->differences); !line.empty())
    notice(text("gradus: restored from ", state_->options.directory.string(), ", step ", resumed->restored.step, ": ",
                line, '\n'));
  return resumed->restored;
}

std::optional<Checkpoints::Resumed> Checkpoints::resume(const TrainingFacts& said,
                                                        const std::function<void(const Resumed&)>& check) {
  TrainingFacts all = state_->facts(true);
  all.insert(all.end(), said.begin(), said.end());
  state_->said = all;
  return restore(all, check);
}

std::optional<Checkpoints::Resumed> Checkpoints::restore(const TrainingFacts& said,
                                                         const std::function<void(const Resumed&)>& check) {
  wait();
  const std::string where = state_->options.directory.string();
  std::vector<std::string> damaged;
  auto contents = state_->files.read_newest(damaged);
  for (const std::string& why : damaged) notice(text("gradus: this checkpoint is passed over: ", why, '\n'));
  if (!contents) return {};
  require(state_->model.is_built(), "Checkpoints: the model is not built yet; call it, or build(spec), first");
  Arrays arrays;
  for (NamedArray& array : contents->arrays) {
    const std::string name = array.name;
    arrays.emplace(name, std::move(array));
  }
  Resumed resumed{{contents->step, contents->position, contents->micro_shards},
                  {contents->stream, history_in(arrays)},
                  std::move(contents->said)};
  if (contents->contract != numeric_contract)
    resumed.contract = text("gradus: ", where, ": this training has the bits of version ", contents->contract,
                            " of the numeric contract, and goes on by version ", numeric_contract, "\n");
  resumed.differences = differences(said, resumed.said);
  check_agreement(resumed.differences, where);
  check(resumed);
  const auto is_optimizer = [](const auto& part) { return part.first.starts_with("optimizer_"); };
  const bool is_of_part = std::ranges::any_of(state_->further, is_optimizer);  // others have state for the rest
  if (const Variables trainable = state_->model.trainable_variables(); trainable.size() > 0 && !is_of_part)
    state_->optimizer.prepare(trainable);
  state_->match_callbacks(arrays, resumed);
  std::vector<Entry> entries = state_->entries();
  const std::vector<const Variable*> kept = state_->decide_rates(entries, arrays, said, resumed);
  const bool is_of_no_step = let_lack(entries, state_->optimizer.made_by_steps(), arrays);
  check_fit(entries, arrays, where);
  const LoadedTexts texts = state_->texts_in(arrays, where);
  for (const Entry& entry : entries) {
    const auto found = arrays.find(entry.name);
    if (found == arrays.end() || found->second.spec != Spec{entry.variable->dtype(), entry.variable->shape()}) continue;
    if (std::ranges::find(kept, entry.variable) != kept.end()) continue;
    const auto mask = arrays.find(entry.mask_name());
    entry.variable->set_mask(mask == arrays.end() ? Tensor() : Tensor::of_buffer(mask->second.spec, mask->second.data));
    entry.variable->assign(Tensor::of_buffer(found->second.spec, found->second.data));
  }
  texts.take();
  if (is_of_no_step) state_->optimizer.start_anew();
  set_random_state(contents->random_state);
  return resumed;
}

}  // namespace gradus
