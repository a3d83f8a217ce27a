/// One function a lever: the settings to try.
#include "gradus/advice/levers.h"
#include <algorithm>
#include <array>
#include "gradus/advice/words.h"
#include "gradus/base/cores.h"
#include "gradus/data/stage.h"
#include "gradus/nn/layer.h"

namespace gradus {
namespace {

using advice_words::percent;

constexpr std::int64_t most_batch = 4096;
constexpr std::int64_t cached_batches = 8;

Proposals none(std::string reason) { return {.reason = std::move(reason)}; }

std::vector<int> parallel_calls_of(const Pipeline& dataset) {
  std::vector<int> calls;
  for_each_stage(dataset.stage(), [&](const Stage& stage) {
    if (stage.name() == "map") calls.push_back(stage.parallel_calls());
  });
  return calls;
}

bool has_cache(const Pipeline& dataset) {
  bool found = false;
  for_each_stage(dataset.stage(), [&](const Stage& stage) { found = found || stage.name() == "cache"; });
  return found;
}

/// On other devices kernels, memory and threads are not the library's.
bool is_on_processor() { return default_device().kind == DeviceKind::cpu; }

// The levers, in turn.

double gain_of_compile(const Circumstances& c) { return c.now.function.run_eagerly ? 0.95 : 0.011; }
Proposals compile(const Circumstances& c) {
  Proposals found{.is_in_use = !c.now.function.run_eagerly};
  Proposal other{c.now, "{.function = {.run_eagerly = false}}"};
  if (found.is_in_use) other.times_longer = 10;
  other.setting.function.run_eagerly = found.is_in_use;
  found.tries = {std::move(other)};
  return found;
}

double gain_of_fuse(const Circumstances& c) {
  return std::ranges::count(c.now.function.disable, "fuse") > 0 ? 0.5 : 0.012;
}
Proposals fuse(const Circumstances& c) {
  if (c.now.function.run_eagerly) return none("op by op there is nothing to fuse");
  if (!is_on_processor()) return none(text("the plugin of ", default_device(), " decides what is fused"));
  const std::vector<std::string>& disabled = c.now.function.disable;
  Proposals found{.is_in_use = std::ranges::count(disabled, "fuse") == 0};
  Proposal other{c.now, "`fuse` out of {.function = {.disable}}"};
  if (found.is_in_use) other.setting.function.disable.push_back("fuse");
  else std::erase(other.setting.function.disable, "fuse");
  found.tries = {std::move(other)};
  return found;
}

double gain_of_prefetch(const Circumstances& c) { return c.now.ahead.buffers == 0 ? c.waits_for_input() : 0.013; }
Proposals prefetch(const Circumstances& c) {
  Proposals found{.is_in_use = c.now.ahead.buffers != 0};
  if (!found.is_in_use && c.has_its_input())
    return none("only " + percent(c.waits_for_input()) + " of a step waits for input: there is nothing to hide");
  Proposal other{c.now, "{.prefetch = PrefetchOptions()}, as dataset.prefetch()"};
  other.setting.ahead = {.buffers = found.is_in_use ? 0 : autotune};
  found.tries = {std::move(other)};
  return found;
}

double gain_of_parallel_map(const Circumstances& c) { return 0.95 * c.waits_for_input() + 0.004; }
Proposals parallel_map(const Circumstances& c) {
  const std::vector<int> calls = parallel_calls_of(c.training.dataset);
  if (calls.empty()) return none("the data set has no map");
  if (c.now.data.parallel_calls == autotune || std::ranges::all_of(calls, [](int n) { return n == autotune; }))
    return none("maps take as many threads as help already");
  Proposals found;
  Proposal other{c.now, "dataset.map(f), without {.num_parallel_calls}"};
  other.setting.data.parallel_calls = autotune;
  found.tries = {std::move(other)};
  return found;
}

/// The bytes of all elements of a stage; empty if that is not known.
std::optional<std::int64_t> bytes_of_all(const Stage& stage) {
  if (!stage.is_counted() || have_any_size(stage.specs())) return {};
  std::int64_t bytes = 0;
  for (const Spec& spec : stage.specs()) bytes += bytes_of(spec);
  return bytes * stage.length(0);
}

/// True if two epochs have the same first element.
bool repeats_first(const Stage& stage) {
  const Tensors first = stage.open(0)->at(0), later = stage.open(1)->at(0);
  if (first.size() != later.size()) return false;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i].spec() != later[i].spec() || !bitwise_equal(first[i], later[i])) return false;
  return true;
}

/// After prefetch, which takes less memory.
double gain_of_cache(const Circumstances& c) { return 0.9 * c.waits_for_input() + 0.005; }
Proposals cache(const Circumstances& c) {
  if (c.now.data.cache) return none("it is there already");
  const Pipeline& dataset = c.training.dataset;
  const Stage* stage = worth_caching(dataset.stage());
  if (stage == nullptr)
    return none(has_cache(dataset) ? "the data set has a cache already"
                                   : "there is nothing to keep: elements lie in memory, or differ from epoch to epoch");
  if (c.has_its_input() && dataset.ahead().buffers == 0)
    return none("only " + percent(c.waits_for_input()) + " of a step waits for input");
  if (c.has_time && !repeats_first(*stage)) return none("elements differ from epoch to epoch");
  const std::optional<std::int64_t> bytes = bytes_of_all(*stage);
  const std::size_t limit = memory_use().limit_bytes;
  if (bytes && static_cast<std::size_t>(*bytes) > limit / 2)
    return none(text("all elements are ", advice_words::bytes(static_cast<std::size_t>(*bytes)), ", of a memory of ",
                     advice_words::bytes(limit)));
  Proposal other{c.now, text("dataset.cache() behind `", stage->name(), "`"),
                 static_cast<std::size_t>(bytes.value_or(0))};
  other.times_longer = 3;  // it is filled first
  other.setting.data.cache = true;
  other.setting.data.cached_batches = cached_batches;
  other.setting.data.rows = std::max(c.rows, std::int64_t{1});
  return {.tries = {std::move(other)}};
}

double gain_of_batch_size(const Circumstances& c) {
  const double fixed = c.profile.host + std::min(c.profile.waiting / std::max(1, c.profile.threads), c.profile.compute);
  return 0.5 * c.share(fixed) + 0.02;
}

/// The number of updates in an epoch. An epoch is one pass over the data, however often they repeat, and at most fit's
/// steps_per_epoch.
class Updates {
 public:
  explicit Updates(const Circumstances& c) : c_(c) {}

  /// The number of updates with batches of `size` rows. Rows of unknown number are counted by reading, as far as time
  /// allows.
  std::int64_t with(std::int64_t size) {
    const std::int64_t steps = c_.options.fit.steps_per_epoch;
    const std::int64_t most = steps > 0 ? steps / std::max(size / c_.rows, std::int64_t{1}) : endless_length;
    return std::min(most, of_a_pass(size));
  }

 private:
  Pipeline once(std::optional<std::int64_t> size) const {
    return c_.training.dataset.changed({.batch_size = size, .without_repeats = true});
  }
  std::int64_t of_a_pass(std::int64_t size) {
    if (const auto counted = once(size).cardinality()) return *counted;
    if (!c_.has_time) return endless_length;  // no time for a trial either
    if (rows_read_ < 0) rows_read_ = read_rows();
    return rows_read_ / size;
  }
  std::int64_t read_rows() const {
    const auto& clock = c_.options.clock;
    const double end = clock() + c_.reading_seconds;
    const auto reading = once({}).read_ahead_by({.buffers = 0}).begin();
    std::int64_t rows = 0;
    for (; rows < least_updates * most_batch && !reading->at_end() && clock() < end; reading->advance())
      rows += reading->element()[0].shape()[0];
    return rows;
  }

  const Circumstances& c_;
  std::int64_t rows_read_ = -1;  // negative: not read yet
};

Proposals batch_size(const Circumstances& c) {
  bool is_batched = false;
  for_each_stage(c.training.dataset.stage(),
                 [&](const Stage& stage) { is_batched = is_batched || stage.batch_size().has_value(); });
  if (!is_batched || c.rows == 0) return none("the data set does not say the size of its batches");
  const std::int64_t size = c.now.data.batch_size.value_or(c.rows);
  Proposals found;
  Updates updates(c);
  for (std::int64_t larger = 4 * size; larger <= most_batch && updates.with(larger) >= least_updates; larger *= 4) {
    Proposal other{c.now, text("dataset.batch(", larger, "); the learning rate has to fit it")};
    other.times_longer = static_cast<double>(larger) / static_cast<double>(size);
    other.setting.data.batch_size = larger;
    other.setting.data.rows = larger;
    found.tries.push_back(std::move(other));
  }
  if (!found.tries.empty()) return found;
  if (4 * size > most_batch) return none(text("a batch of ", 4 * size, " is large"));
  return none(text("a batch of ", 4 * size, " leaves ", updates.with(4 * size),
                   " updates in a pass over the data, and ", least_updates,
                   " are the fewest that a training is advised to have"));
}

double gain_of_micro_batch(const Circumstances& c) { return c.now.micro_batch > 0 ? 0.85 : 0.03; }
Proposals micro_batch(const Circumstances& c) {
  Proposals found{.is_in_use = c.now.micro_batch > 0};
  if (found.is_in_use) {
    Proposal whole{c.now, text("{.micro_batch = ", c.now.micro_batch, "}")};
    whole.setting.micro_batch = 0;
    found.tries = {std::move(whole)};
    return found;
  }
  const std::int64_t rows = c.now.data.batch_size.value_or(c.rows);
  if (rows < 2) return none("a batch has no rows that could be parted");
  for (const std::int64_t parts : {2, 4}) {
    if (rows < parts) break;
    Proposal part{c.now, text("{.micro_batch = ", (rows + parts - 1) / parts, "}")};
    part.setting.micro_batch = (rows + parts - 1) / parts;
    found.tries.push_back(std::move(part));
  }
  return found;
}

double gain_of_recompute(const Circumstances& c) { return c.now.function.max_bytes > 0 ? 0.9 : 0.014; }
Proposals recompute(const Circumstances& c) {
  if (c.now.function.run_eagerly) return none("op by op everything is kept until the gradient");
  if (!is_on_processor()) return none(text("the plugin of ", default_device(), " plans memory: max_bytes is refused"));
  Proposals found{.is_in_use = c.now.function.max_bytes > 0};
  if (found.is_in_use) {
    Proposal without{c.now, text("{.function = {.max_bytes = ", c.now.function.max_bytes, "}}")};
    without.setting.function.max_bytes = 0;
    found.tries = {std::move(without)};
    return found;
  }
  if (c.temporaries == 0) return none("a step keeps nothing between its kernels");
  for (const double share : {0.5, 0.7, 0.85}) {
    Proposal less{c.now};
    less.setting.function.max_bytes = static_cast<std::size_t>(share * static_cast<double>(c.temporaries));
    less.change = text("{.function = {.max_bytes = ", less.setting.function.max_bytes, "}}");
    found.tries.push_back(std::move(less));
  }
  return found;
}

double gain_of_threads(const Circumstances& c) { return c.now.threads < available_cores() ? 0.5 : 0.016; }
Proposals threads(const Circumstances& c) {
  if (c.now.strategy) return none("replicas share the threads");
  if (!is_on_processor()) return none(text("steps run on ", default_device(), ", not on threads of the processor"));
  Proposals found;
  const auto propose = [&](int n) {
    Proposal other{c.now, text("set_num_threads(", n, ")")};
    other.setting.threads = n;
    found.tries.push_back(std::move(other));
  };
  const int cores = available_cores();
  if (c.now.threads != cores) propose(cores);
  else if (cores > 1) propose(cores / 2);
  else return none("there is one core, and it is used");
  return found;
}

/// As C++ names it.
std::string as_written(const Device& device) {
  if (device.kind == DeviceKind::plugin) return text("Device{DeviceKind::plugin, ", device.index, "}");
  return text(device.kind, '(', device.index, ')');
}

double gain_of_replicas(const Circumstances&) { return 0.025; }
Proposals replicas(const Circumstances& c) {
  Proposals found{.is_in_use = c.now.strategy.has_value()};
  if (found.is_in_use && c.now.strategy->num_replicas_in_sync() == 1)
    return none("batches are divided into shards for other numbers of replicas, of which bits do not depend");
  if (found.is_in_use) {
    Proposal without{c.now, "{.strategy}, as it is"};
    without.setting.strategy.reset();
    found.tries = {std::move(without)};
    return found;
  }
  if (c.now.function.run_eagerly) return none("replicas run a compiled step");
  const std::int64_t rows = c.now.data.batch_size.value_or(c.rows);
  const DeviceKind kind = default_device().kind;
  const std::int64_t there = is_on_processor() ? c.now.threads : std::ssize(devices(kind));
  if (there < 2) return none(is_on_processor() ? "there is one thread to compute" : "there is one device of its kind");
  const int most = static_cast<int>(std::min<std::int64_t>({there, rows, 8}));
  if (most < 2) return none("a batch has no rows that could be divided");
  std::vector<int> counts{2};
  if (most > 2) counts.push_back(most);
  for (const int n : counts) {
    MirroredOptions options;
    for (int device = 0; device < n; ++device) options.devices.push_back({kind, device});
    Proposal other{c.now, text("{.strategy = MirroredStrategy({.devices = {", as_written({kind, 0}),
                               n == 2 ? ", " : ", ... ", as_written({kind, n - 1}), "}})}")};
    other.setting.strategy = MirroredStrategy(options);
    found.tries.push_back(std::move(other));
  }
  return found;
}

double gain_of_kernel_cache(const Circumstances&) { return 0; }
Proposals kernel_cache(const Circumstances& c) {
  if (!is_on_processor())
    return none("code for devices is kept from one process to the next where GRADUS_XLA_CACHE names a folder");
  return none(text("no step is faster; of the start of a process it saves what generating code takes of the ",
                   advice_words::time(c.compile_seconds),
                   " that tracing and compiling the step took: set_kernel_cache(directory)"));
}

Proposals narrow(const Circumstances& c, const Policy& policy, std::string_view name) {
  const std::optional<Policy>& own = c.training.model->layer_behind().policy();
  const Policy now = c.now.policy.value_or(own.value_or(float32));
  if (now.compute == policy.compute) return none(text("the model computes in ", now.compute, " already"));
  if (now.compute != f32) return none(text("the model computes in ", now.compute, " as it is"));
  Proposal other{c.now, text("model.set_policy(", name, ")")};
  other.setting.policy = policy;
  return {.tries = {std::move(other)}};
}
double gain_of_bf16(const Circumstances& c) { return 0.5 * c.share(c.profile.compute); }
Proposals bfloat16(const Circumstances& c) { return narrow(c, mixed_bfloat16, "mixed_bfloat16"); }
double gain_of_f16(const Circumstances& c) { return 0.3 * c.share(c.profile.compute); }
Proposals float16(const Circumstances& c) { return narrow(c, mixed_float16, "mixed_float16"); }

double gain_of_pruning(const Circumstances&) { return 0.018; }
Proposals pruning(const Circumstances& c) {
  if (!c.training.copy_without_dead_channels) return none("the model is no Sequential, of which channels are removed");
  if (!c.training.model->is_built()) return none("the model is not built, so no channel is dead yet");
  const std::int64_t all = c.training.model->variables().parameters();
  const std::int64_t left = c.training.copy_without_dead_channels().model->variables().parameters();
  if (left == all) return none("no channel is 0 for every input");
  Proposal other{c.now, text("model = remove_pruned_channels(model): ", left, " of ", all, " parameters")};
  other.setting.without_dead_channels = true;
  return {.tries = {std::move(other)}};
}

constexpr std::array kinds{
    LeverKind{.name = "compile", .gain = gain_of_compile, .propose = compile, .is_of_step = true},
    LeverKind{.name = "fuse", .gain = gain_of_fuse, .propose = fuse, .is_of_step = true},
    LeverKind{.name = "prefetch", .gain = gain_of_prefetch, .propose = prefetch, .is_of_data = true},
    LeverKind{.name = "parallel map", .gain = gain_of_parallel_map, .propose = parallel_map, .is_of_data = true},
    LeverKind{.name = "cache", .gain = gain_of_cache, .propose = cache, .reads_a_part = true, .is_of_data = true},
    LeverKind{.name = "batch size",
              .gain = gain_of_batch_size,
              .propose = batch_size,
              .least_gain = 0.1,
              .is_another_training = true},
    LeverKind{.name = "micro_batch", .gain = gain_of_micro_batch, .propose = micro_batch, .is_of_step = true},
    LeverKind{.name = "recompute", .gain = gain_of_recompute, .propose = recompute, .is_of_step = true},
    LeverKind{"threads", gain_of_threads, threads},
    LeverKind{.name = "replicas", .gain = gain_of_replicas, .propose = replicas, .is_of_step = true},
    LeverKind{.name = "kernel cache", .gain = gain_of_kernel_cache, .propose = kernel_cache, .is_of_step = true},
    LeverKind{.name = "bf16",
              .gain = gain_of_bf16,
              .propose = bfloat16,
              .most_difference = 0.05,
              .is_lower_precision = true,
              .is_of_step = true},
    LeverKind{.name = "float16",
              .gain = gain_of_f16,
              .propose = float16,
              .most_difference = 0.05,
              .is_lower_precision = true,
              .is_of_step = true},
    LeverKind{.name = "pruning", .gain = gain_of_pruning, .propose = pruning, .is_of_step = true},
};

std::string spoken(std::string_view name) {
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

}  // namespace

std::span<const LeverKind> lever_kinds() { return kinds; }

bool is_named(const LeverKind& kind, std::string_view name) {
  return spoken(kind.name) == spoken(name) || (kind.is_lower_precision && name == "precision");
}

double gain_of(const LeverKind& kind, const Circumstances& c) {
  return kind.gain(c) * (kind.is_of_step ? 1 - c.waits_for_input() : 1);
}

std::vector<const LeverKind*> by_gain(const Circumstances& c) {
  std::vector<const LeverKind*> order;
  for (const LeverKind& kind : kinds) order.push_back(&kind);
  std::ranges::stable_sort(order, std::greater<>(), [&](const LeverKind* kind) { return gain_of(*kind, c); });
  return order;
}

bool may_gain_since(const LeverKind& kind, const Lever& row, bool data_changed) {
  return kind.is_of_data && data_changed && row.verdict == Verdict::not_worth_it && row.pairs > 0 && !row.is_in_use;
}

}  // namespace gradus
