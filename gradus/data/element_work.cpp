/// Functions of elements are traced once with symbols, to learn the specs of their results. Then they are called as
/// compiled code.
#include "gradus/data/element_work.h"
#include <algorithm>
#include "gradus/autodiff/examples_apart.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/base/hash.h"
#include "gradus/data/on_processor.h"
#include "gradus/data/rethrow.h"
#include "gradus/ops/call_keys.h"
#include "gradus/function/mode.h"
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/function/variable_cell.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/random_key.h"

namespace gradus {
namespace {

/// Notes whether the C++ branched on a value, which ends the trace.
class ElementTrace : public Trace {
 public:
  explicit ElementTrace(std::span<const Spec> arguments) : Trace(arguments) {}
  bool decide(const Tensor& predicate) override {
    has_branched_ = true;
    return Trace::decide(predicate);
  }
  bool has_branched() const { return has_branched_; }

 private:
  bool has_branched_ = false;
};

void refuse_assignments(std::string_view stage, const Trace& trace) {
  for (const auto& cell : trace.cells())
    require(!cell->assigned, stage, ": its function assigns variable ", cell->cell->name, "; a ", stage,
            " may read variables, but elements are made in any order and more than once");
}

Traced trace_with(std::string_view stage, const std::vector<Spec>& arguments, const ElementFunction& f) {
  ElementTrace trace(arguments);
  if (std::ranges::any_of(arguments, [](const Spec& spec) { return spec.shape.is_symbolic(); }))
    trace.set_limit(Trace::most_of_open_sizes);
  Traced traced{arguments, {}, false};
  Tensors results;
  try {
    results = f(trace.parameters());
  } catch (const InternalError&) { throw; } catch (const std::exception&) {
    if (!trace.has_branched()) throw;
    refuse_assignments(stage, trace);
    traced.branches = true;
    return traced;
  }
  for (const Tensor& result : results) {
    Spec spec = result.spec();
    for (int axis = 0; axis < spec.shape.rank(); ++axis)
      if (dimension::is_symbolic(spec.shape[axis])) spec.shape.set(axis, any_size);
    traced.specs.push_back(spec);
  }
  refuse_assignments(stage, trace);
  traced.is_random = trace.is_random();
  return traced;
}

/// Runs f for the first element, whose results tell the sizes. Where those of elements vary, results may as well.
Traced run_for_first(std::string_view stage, const Stage& source, const ElementFunction& f, Traced traced) {
  const Tensors first = source.length(0) > 0 ? source.open(0)->at(0) : Tensors();
  require(!first.empty(), stage, ": its function branches in C++ on values of an element, but this dataset has no ",
          "element to try; use cond(condition, if_true, if_false) or where(condition, a, b)");
  traced.is_random = true;
  const bool vary = have_any_size(source.specs());
  try {
    apart_from_recordings([&] {
      const ModeScope mode(CallMode::unsaid);
      const CallSeed keys(0);
      const Tensors there = on_processor(first);
      const OnProcessor scope;
      for (const Tensor& result : f(there)) {
        Spec spec{result.dtype(), settled(result).shape()};
        for (int axis = 0; vary && axis < spec.shape.rank(); ++axis) spec.shape.set(axis, any_size);
        traced.specs.push_back(spec);
      }
    });
  } catch (...) { rethrow_in(text(stage, ", element 0 of epoch 0")); }
  return traced;
}

Traced trace_or_run(std::string_view stage, const Stage& source, const std::vector<Spec>& arguments,
                    const ElementFunction& f) {
  Traced traced = trace_with(stage, arguments, f);
  return traced.branches ? run_for_first(stage, source, f, std::move(traced)) : traced;
}

std::uint64_t hash_of_value(const Tensor& value, std::uint64_t seed) {
  return hash_of_bytes({value.host<std::byte>(), value.bytes()}, mix(seed, hash_of(value.spec())));
}

Tensor tensor_of(const std::vector<std::int64_t>& numbers) {
  const Spec spec{i64, {std::ssize(numbers)}};
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec), "numbers of elements");
  std::ranges::copy(numbers, buffer->data<std::int64_t>());
  return Tensor::of_buffer(spec, std::move(buffer));
}

/// Rows of the arrays that `in` begins with, at the indices behind them, which a stage made: they need no check.
Tensors rows_of(In in, std::size_t arrays) {
  Tensors rows;
  for (const Tensor& array : in.first(arrays)) {
    Shape shape = array.shape();
    shape.set(0, in[arrays].shape()[0]);
    rows.push_back(gradus::detail::apply(IndexedRows{shape}, array, in[arrays]));
  }
  return rows;
}

/// Sizes that are not known at one axis are taken to be one: they come from one batch.
std::vector<Spec> with_symbols(std::vector<Spec> specs) {
  for (Spec& spec : specs)
    for (int axis = 0; axis < spec.shape.rank(); ++axis)
      if (spec.shape[axis] == any_size) spec.shape.set(axis, dimension::symbol(axis));
  return specs;
}

/// A trace of f with other sizes where those of `open` vary; nothing if f does not take them.
std::optional<Traced> traced_with_sizes(std::string_view stage, const std::vector<Spec>& open, std::vector<Spec> specs,
                                        const ElementFunction& f, std::int64_t (*other)(std::int64_t)) {
  for (std::size_t field = 0; field < open.size(); ++field)
    for (int axis = 0; axis < open[field].shape.rank(); ++axis)
      if (open[field].shape[axis] == any_size) specs[field].shape.set(axis, other(specs[field].shape[axis]));
  try {
    Traced traced = trace_with(stage, specs, f);
    if (!traced.branches) return traced;
  } catch (const InternalError&) { throw; } catch (const std::exception& error) {
    if (!is_of_library(error)) throw;
  }
  return {};
}

/// Results that were traced for the sizes of the first element, f: a size may vary if it does in traces with other
/// sizes, or if an argument whose size varies has it at the same axis, as a batch has.
Traced with_open_sizes(std::string_view stage, Traced traced, const std::vector<Spec>& open,
                       const std::vector<Spec>& first, const ElementFunction& f) {
  if (traced.branches) return traced;
  for (const auto other :
       {+[](std::int64_t size) { return size + 1; }, +[](std::int64_t size) { return 2 * size + 8; }})
    if (const auto varied = traced_with_sizes(stage, open, first, f, other);
        varied && varied->specs.size() == traced.specs.size())
      for (std::size_t i = 0; i < traced.specs.size(); ++i) widen_sizes(traced.specs[i].shape, varied->specs[i].shape);
  for (Spec& result : traced.specs)
    for (int axis = 0; axis < result.shape.rank(); ++axis)
      for (std::size_t field = 0; field < open.size(); ++field)
        if (axis < open[field].shape.rank() && open[field].shape[axis] == any_size &&
            first[field].shape[axis] == result.shape[axis]) {
          result.shape.set(axis, any_size);
          break;
        }
  return traced;
}

}  // namespace

Tensor settled(const Tensor& result) {
  return Tensor::of_buffer({result.dtype(), result.shape()}, result.host_buffer());
}

std::int64_t integer_of(const Tensor& scalar) {
  return with_type(scalar.dtype(), [&]<class T>(T) { return static_cast<std::int64_t>(*scalar.host<T>()); });
}

bool fits(const Spec& given, const Spec& expected) {
  if (given.dtype != expected.dtype || given.shape.rank() != expected.shape.rank()) return false;
  return std::equal(given.shape.begin(), given.shape.end(), expected.shape.begin(),
                    [](std::int64_t g, std::int64_t e) { return e == any_size || g == e; });
}

Traced trace_element(std::string_view stage, const Stage& source, const ElementFunction& f) {
  try {
    return trace_or_run(stage, source, with_symbols(source.specs()), f);
  } catch (const InternalError&) { throw; } catch (const std::exception& error) {
    if (!have_any_size(source.specs()) || source.length(0) == 0 || !is_of_library(error)) throw;
  }
  std::vector<Spec> specs;
  for (const Tensor& field : source.open(0)->at(0)) specs.push_back(field.spec());
  if (specs.empty()) return trace_with(stage, with_symbols(source.specs()), f);  // not counted, and without elements
  return with_open_sizes(stage, trace_or_run(stage, source, specs, f), source.specs(), specs, f);
}

void apart_from_recordings(const std::function<void()>& work) {
  std::optional<Apart> apart;
  if (Context::current() || Pending::mine().is_recording()) apart.emplace();
  work();
}

ElementWork::ElementWork(std::string stage, const Stage& source, const ElementFunction& trace, ElementFunction run)
    : stage_(std::move(stage)),
      trace_(trace),
      run_(std::move(run)),
      rows_(std::make_unique<TracedFunction>(FunctionOptions{.name = stage_}, nullptr, 0)),
      chosen_rows_(std::make_unique<TracedFunction>(FunctionOptions{.name = stage_}, nullptr, 0)),
      chosen_batch_(std::make_unique<TracedFunction>(FunctionOptions{.name = stage_}, nullptr, 0)) {
  Traced traced = trace_element(stage_, source, trace);
  specs_ = std::move(traced.specs);
  arguments_ = std::move(traced.arguments);
  if (traced.is_random) seed_ = next_seed();
  branches_ = traced.branches;
  has_no_rows_ = has_no_choice_ = branches_;
}

std::shared_ptr<const ElementWork> ElementWork::for_source(const Stage& source) const {
  const auto work = std::make_shared<ElementWork>(stage_, source, trace_, run_);
  if (work->seed_) work->seed_ = seed_;
  return work;
}

std::uint64_t ElementWork::identity() const {
  std::uint64_t hash = mix(hash_of(std::string_view(stage_)), seed_.value_or(0));
  if (branches_) return hash;
  std::vector<std::pair<const Node*, Tensor>> variables;
  {
    Trace trace(arguments_);
    const Tensors results = trace_(trace.parameters());
    for (const auto& cell : trace.cells()) variables.emplace_back(cell->parameter.node().get(), Tensor());
    // Values are read outside of the trace.
    std::vector<std::shared_ptr<VariableCell>> cells;
    for (const auto& cell : trace.cells()) cells.push_back(cell->cell);
    apart_from_recordings([&] {
      for (std::size_t i = 0; i < cells.size(); ++i) variables[i].second = settled(cells[i]->read());
    });
    std::vector<Ref<Node>> roots;
    for (const Tensor& result : results) roots.push_back(result.node());
    const Flattened flat = flatten(roots, [](const Node& node) { return node.trace == 0; });
    hash = mix(hash, hash_of(std::string_view(to_text(flat.graph))));
    for (const Ref<Node>& input : flat.inputs) {
      const auto variable = std::ranges::find(variables, input.get(), &std::pair<const Node*, Tensor>::first);
      if (variable != variables.end()) {
        hash = hash_of_value(variable->second, hash);
      } else if (input->trace == 0) {
        Tensor value;
        apart_from_recordings([&] { value = settled(Tensor(input)); });
        hash = hash_of_value(value, hash);
      } else {
        const auto& parameters = trace.parameters();
        const auto place = std::ranges::find(parameters, input, &Tensor::node) - parameters.begin();
        hash = mix(hash, static_cast<std::uint64_t>(place));
      }
    }
  }
  return hash;
}

Tensors ElementWork::apply(In element, std::int64_t epoch, std::int64_t index) const {
  Tensors results;
  apart_from_recordings([&] { results = apply_here(element, epoch, index); });
  return results;
}

bool ElementWork::may_vectorize() const {
  return !has_no_rows_.load(std::memory_order_relaxed) && !have_any_size(specs_);
}

std::uint64_t ElementWork::seed_of(std::int64_t epoch, std::int64_t index) const {
  return mix(mix(*seed_, static_cast<std::uint64_t>(epoch)), static_cast<std::uint64_t>(index));
}

Tensor ElementWork::keys_of(std::int64_t epoch, std::span<const std::int64_t> indices) const {
  std::vector<std::int64_t> keys;
  for (const std::int64_t index : indices) keys.push_back(CallSeed::first_key(seed_of(epoch, index)));
  return tensor_of(keys);
}

Tensors ElementWork::trace_rows(In in) const {
  const auto of_row = [this](In row) {
    std::optional<CallKeys> keys;
    if (seed_) keys.emplace(row.back());
    return trace_(row.first(arguments_.size()));
  };
  return vmap(of_row, in, in[0].shape()[0], RowKeys::of_f);
}

std::optional<Tensors> ElementWork::results_of(const std::function<Tensors()>& call,
                                               const std::vector<Spec>& specs) const {
  std::optional<Tensors> made;
  apart_from_recordings([&] {
    try {
      const ModeScope mode(CallMode::unsaid);
      const OnProcessor scope;
      Tensors results = call();
      for (std::size_t field = 0; field < results.size(); ++field) {
        if (!fits(results[field].spec(), specs[field])) return;
        results[field] = settled(results[field]);
      }
      made = std::move(results);
    } catch (const InternalError&) { throw; } catch (const std::exception& error) {
      if (!is_of_library(error)) throw;
    }  // told by the element that causes it, if one does
  });
  return made;
}

std::vector<Spec> ElementWork::specs_of_rows(std::int64_t count) const {
  std::vector<Spec> specs = specs_;
  for (Spec& spec : specs) spec.shape.insert(0, count);
  return specs;
}

std::optional<Tensors> ElementWork::apply_to_rows(In stacked, std::int64_t epoch,
                                                  std::span<const std::int64_t> indices) const {
  const auto call = [&] {
    Tensors rows = on_processor(stacked);
    if (seed_) rows.push_back(keys_of(epoch, indices));
    return rows_->call(rows, {}, [this](In in) { return Called{trace_rows(in), nullptr}; }).tensors;
  };
  return results_of(call, specs_of_rows(std::ssize(indices)));
}

std::optional<Tensors> ElementWork::apply_to_chosen(const ChosenRows& chosen, std::int64_t epoch,
                                                    std::span<const std::int64_t> indices) const {
  const std::size_t fields = chosen.arrays.size();
  const auto call = [&] {
    Tensors given = chosen.arrays;  // which are on the processor
    given.push_back(on_processor(tensor_of(chosen.rows)));
    if (chosen.is_batch)
      return chosen_batch_->call(given, {}, [&](In in) { return Called{trace_(rows_of(in, fields)), nullptr}; })
          .tensors;
    if (seed_) given.push_back(keys_of(epoch, indices));
    return chosen_rows_
        ->call(given, {},
               [&](In in) {
                 Tensors rows = rows_of(in, fields);
                 rows.insert(rows.end(), in.begin() + static_cast<std::ptrdiff_t>(fields) + 1, in.end());
                 return Called{trace_rows(rows), nullptr};
               })
        .tensors;
  };
  std::optional<Tensors> made = results_of(call, chosen.is_batch ? specs_ : specs_of_rows(std::ssize(indices)));
  if (!made) has_no_choice_.store(true, std::memory_order_relaxed);
  return made;
}

bool ElementWork::keeps_rows_apart(const std::vector<Spec>& given, std::int64_t whole, std::int64_t part) const {
  if (whole == part) return true;
  const std::lock_guard lock(guard_);
  const auto [known, is_new] = rows_apart_.try_emplace({whole, part}, false);
  if (is_new) apart_from_recordings([&, &found = known->second] { found = finds_rows_apart(given, whole, part); });
  return known->second;
}

/// From its traces for both numbers of rows: C++ may make numbers of sizes.
bool ElementWork::finds_rows_apart(const std::vector<Spec>& given, std::int64_t whole, std::int64_t part) const {
  if (seed_) return false;
  const auto traced = [&](std::int64_t rows) {
    std::vector<Spec> specs = given;
    for (Spec& spec : specs)
      if (spec.shape.rank() > 0) spec.shape.set(0, rows);
    Trace trace(specs);
    return std::pair{trace_(trace.parameters()), Tensors(trace.parameters())};
  };
  try {
    const auto [of_whole, parameters_of_whole] = traced(whole);
    const auto [of_part, parameters_of_part] = traced(part);
    return are_rows_apart(of_whole, parameters_of_whole, of_part, parameters_of_part);
  } catch (const InternalError&) { throw; } catch (const std::exception& error) {
    if (!is_of_library(error)) throw;
    return false;  // it does not take so few rows
  }
}

Tensors ElementWork::apply_here(In element, std::int64_t epoch, std::int64_t index) const {
  try {
    const ModeScope mode(CallMode::unsaid);
    std::optional<CallSeed> keys;
    if (seed_) keys.emplace(seed_of(epoch, index));
    const Tensors there = on_processor(element);
    const OnProcessor scope;
    Tensors results = run_(there);
    for (std::size_t field = 0; field < results.size(); ++field) {
      results[field] = settled(results[field]);
      require(fits(results[field].spec(), specs_[field]), "field ", field, " is ", results[field].spec(),
              ", that of other elements ", specs_[field], "; give results of one size and type");
    }
    return results;
  } catch (...) { rethrow_in(text(stage_, ", element ", index, " of epoch ", epoch)); }
}

}  // namespace gradus
