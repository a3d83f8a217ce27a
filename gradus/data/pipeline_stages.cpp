/// Checks arguments of stages that group elements, carry a state, or read several datasets.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include "gradus/data/on_processor.h"
#include "gradus/data/element_work.h"
#include "gradus/data/rethrow.h"
#include "gradus/ops/random_key.h"

namespace gradus {
namespace {

/// The first elements of several datasets, and how far ahead one of them is read at most.
struct PartsRead {
  std::vector<StagePointer> stages;
  PrefetchOptions ahead{.buffers = 0};
};
PartsRead parts_of(const std::vector<Pipeline>& pipelines) {
  PartsRead parts;
  for (const Pipeline& pipeline : pipelines) {
    parts.stages.push_back(pipeline.with_start());
    const PrefetchOptions ahead = pipeline.ahead();
    if (parts.ahead.buffers != autotune && ahead.buffers != 0 &&
        (ahead.buffers == autotune || ahead.buffers > parts.ahead.buffers))
      parts.ahead = ahead;
  }
  return parts;
}

WindowShape window_shape(std::int64_t size, const WindowingOptions& options) {
  require(size > 0, "window: size must be positive, got ", size);
  check_options("window", options);
  std::int64_t span = 0;
  require(!__builtin_mul_overflow(size, options.stride, &span), "window: ", size, " elements at a stride of ",
          options.stride, " span more than 2^63 - 1");
  return {size, options.shift.value_or(size), options.stride, options.drop_remainder};
}

/// One distribution has a value for each class, and some class has more than 0.
void check_distribution(std::string_view name, const std::vector<double>& values) {
  require(!values.empty(), "rejection_resample: ", name, " is empty; give the share of each class");
  for (std::size_t i = 0; i < values.size(); ++i)
    check_number("rejection_resample", text(name, '[', i, ']'), Allowed::not_negative(""), values[i]);
  require(std::accumulate(values.begin(), values.end(), 0.0) > 0, "rejection_resample: all of ", name, " are 0");
}

/// The parts that may be drawn: those of weight 0 never are.
void drop_weightless(std::vector<Pipeline>& parts, std::vector<double>& weights) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    parts[kept] = parts[i];
    weights[kept++] = weights[i];
  }
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(kept), parts.end());
  weights.resize(kept);
}

}  // namespace

Pipeline Pipeline::take_while(const ElementFunction& trace, ElementFunction run) const {
  return derived(take_while_stage(with_start(), trace, std::move(run)));
}

Pipeline Pipeline::rebatch(std::vector<std::int64_t> sizes, BatchOptions options) const {
  require(!sizes.empty(), "rebatch: there is no size");
  std::int64_t all = 0;
  for (const std::int64_t size : sizes) {
    require(size > 0, "rebatch: size must be positive, got ", size);
    require(!__builtin_add_overflow(all, size, &all), "rebatch: the sizes add up to more than 2^63 - 1");
  }
  for (const Spec& spec : specs())
    require(spec.shape.rank() > 0, "rebatch: a field is a scalar ", spec, ": it has no rows along axis 0");
  const Pipeline rows = unbatch();
  if (sizes.size() == 1) return rows.batch(sizes[0], options);
  return rows.derived(turned_batch_stage(rows.with_start(), {std::move(sizes), options.drop_remainder}));
}

Pipeline Pipeline::concatenate(const Pipeline& other) const {
  return derived(concatenate_stage(with_start(), other.with_start()));
}

Pipeline Pipeline::enumerate(std::int64_t start) const { return derived(enumerate_stage(with_start(), start)); }

Pipeline Pipeline::unique() const { return derived(unique_stage(with_start())); }

Pipeline Pipeline::scan(const Tensors& state, const ElementFunction& trace, ElementFunction run) const {
  Tensors first;
  apart_from_recordings([&] {
    for (const Tensor& each : state) first.push_back(settled(on_processor(each)));
  });
  return derived(scan_stage(with_start(), std::move(first), trace, std::move(run)));
}

Tensors Pipeline::reduce(Tensors state, const ElementFunction& step) const {
  const std::unique_ptr<Reading> reading = begin();
  for (std::int64_t index = 0; !reading->at_end(); reading->advance(), ++index) {
    Tensors all = state;
    const Tensors& element = reading->element();
    all.insert(all.end(), element.begin(), element.end());
    Tensors next;
    try {
      next = step(all);
      for (std::size_t i = 0; i < state.size(); ++i)
        require(next[i].dtype() == state[i].dtype() && next[i].shape().rank() == state[i].shape().rank(), "state ", i,
                " was ", state[i].spec(), ", now ", next[i].spec(), "; give it one dtype and number of dimensions");
    } catch (...) { rethrow_in(text("reduce, element ", index)); }
    state = std::move(next);
  }
  return state;
}

Pipeline Pipeline::windows(std::int64_t size, WindowingOptions options) const {
  return derived(windows_stage(with_start(), window_shape(size, options)));
}

Pipeline Pipeline::joined_windows(std::int64_t size, WindowingOptions options) const {
  return derived(joined_windows_stage(with_start(), window_shape(size, options)));
}

Pipeline Pipeline::holding(In fields) const {
  const std::size_t each = specs().size();
  std::vector<Tensors> elements;
  for (; !fields.empty(); fields = fields.subspan(each))
    elements.emplace_back(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(each));
  return Pipeline(held_stage(specs(), batchings(), std::move(elements)));
}

Pipeline Pipeline::group_by_window(const ElementFunction& trace, ElementFunction run, GroupSize size,
                                   PipelineFunction reduce) const {
  StagePointer groups = groups_stage(with_start(), trace, std::move(run), std::move(size));
  return derived(interleave_stage(std::move(groups), std::move(reduce), {.cycle_length = 1}, "group_by_window"));
}

/// Reads ahead as far as one of its parts does.
Pipeline Pipeline::zip(const std::vector<Pipeline>& parts) {
  PartsRead all = parts_of(parts);
  Pipeline result(zip_stage(std::move(all.stages)));
  result.ahead_ = all.ahead;
  return result;
}

Pipeline Pipeline::sample(const std::vector<Pipeline>& parts, std::vector<double> weights, SampleOptions options) {
  constexpr std::string_view name = "sample_from_datasets";
  require(!parts.empty(), name, ": there is no dataset to draw from");
  if (weights.empty()) weights.assign(parts.size(), 1.0);
  require(weights.size() == parts.size(), name, ": ", weights.size(), " weights for ", parts.size(), " datasets");
  for (std::size_t i = 0; i < weights.size(); ++i)
    check_number(name, text("weights[", i, ']'), Allowed::not_negative(""), weights[i]);
  require(std::ranges::any_of(weights, [](double weight) { return weight > 0; }), name, ": all weights are 0");
  check_options(name, options);
  std::vector<Pipeline> drawn = parts;
  drop_weightless(drawn, weights);
  PartsRead all = parts_of(drawn);
  const std::uint64_t seed = options.seed ? *options.seed : next_seed();
  Pipeline result(sample_stage(std::move(all.stages), std::move(weights), options, seed));
  result.ahead_ = all.ahead;
  return result;
}

Pipeline Pipeline::choose(const std::vector<Pipeline>& parts, const Pipeline& choices, ChooseOptions options) {
  constexpr std::string_view name = "choose_from_datasets";
  require(!parts.empty(), name, ": there is no dataset to choose from");
  const std::vector<Spec>& chosen = choices.specs();
  require(chosen.size() == 1 && is_integer(chosen[0].dtype) && chosen[0].shape.rank() == 0, name, ": a choice is ",
          chosen[0], ", expected a scalar integer, the number of a dataset");
  PartsRead all = parts_of(parts);
  Pipeline result(choose_stage(std::move(all.stages), choices.with_start(), options.stop_on_empty_dataset));
  result.ahead_ = all.ahead;
  return result;
}

Pipeline Pipeline::rejection_resample(const ElementFunction& trace, ElementFunction run,
                                      std::vector<double> target_dist, RejectionOptions options) const {
  check_distribution("target_dist", target_dist);
  check_options("rejection_resample", options);
  if (!options.initial_dist.empty()) {
    check_distribution("initial_dist", options.initial_dist);
    require(options.initial_dist.size() == target_dist.size(), "rejection_resample: initial_dist has ",
            options.initial_dist.size(), " classes, target_dist has ", target_dist.size());
    for (std::size_t i = 0; i < target_dist.size(); ++i)
      require(target_dist[i] == 0 || options.initial_dist[i] > 0, "rejection_resample: target_dist[", i, "] is ",
              target_dist[i], ", but initial_dist says that there are no elements of class ", i);
  }
  const std::uint64_t seed = options.seed ? *options.seed : next_seed();
  return derived(resample_stage(with_start(), trace, std::move(run), std::move(target_dist),
                                std::move(options.initial_dist), seed));
}

Pipeline Pipeline::ignore_errors(IgnoreErrorsOptions options) const {
  return derived(ignore_errors_stage(with_start(), options.log_warning));
}

Pipeline Pipeline::every(std::int64_t step) const { return derived(stride_stage(with_start(), step)); }

}  // namespace gradus
