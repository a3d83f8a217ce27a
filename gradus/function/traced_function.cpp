/// Variants: choosing, tracing, binding, running, committing.
#include "gradus/function/traced_function.h"
#include <algorithm>
#include <iostream>
#include <optional>
#include <shared_mutex>
#include "gradus/backend/program.h"
#include "gradus/base/clock.h"
#include "gradus/base/nearest.h"
#include "gradus/function/arguments.h"
#include "gradus/function/call_keys.h"
#include "gradus/function/pending.h"
#include "gradus/function/signature.h"
#include "gradus/function/trace.h"
#include "gradus/ops/random_key.h"

namespace gradus {
namespace {

constexpr std::size_t cache_limit_bytes = std::size_t{512} << 20;
constexpr int warn_at_variants = 8;

/// One compiled signature.
struct Variant {
  Signature example, pattern;
  std::shared_ptr<const Program> program;

  // What each input of the program is bound to.
  struct Source {
    enum class Kind { argument, cell, capture, call_key } kind;
    std::size_t index;
  };
  std::vector<Source> sources;
  std::vector<Tensor> captures;
  std::vector<std::shared_ptr<VariableCell>> cells;

  // What each output of the program becomes.
  struct Result {
    int output = -1;  // -1: empty
    Spec spec;        // may be symbolic
  };
  std::vector<Result> results;
  struct Assignment {
    std::size_t cell;
    std::size_t output;
    int overwrites = -1;  // the input, if its memory may be taken
  };
  std::vector<Assignment> assignments;  // by the id of the cell, so that locks are taken in one order

  std::vector<Trace::Bound> bounds;       // of sizes that vary
  std::shared_ptr<const void> structure;  // of the user's result
  std::atomic<std::uint64_t> last_use = 0;
};

/// Buffers of one call; kept by the thread.
struct Frame {
  std::vector<Ref<Buffer>> inputs, outputs;
  std::vector<Tensor> held;
  std::vector<std::unique_lock<std::mutex>> locks;
  void clear() {
    inputs.clear();
    outputs.clear();
    held.clear();
    locks.clear();
  }
};

/// Marks the cells that a call assigns; two calls at once that assign one cell are a mistake.
class Claim {
 public:
  explicit Claim(const Variant& variant) : variant_(variant) {
    for (; claimed_ < variant.assignments.size(); ++claimed_) {
      VariableCell& cell = *variant.cells[variant.assignments[claimed_].cell];
      if (!cell.assigning.exchange(true, std::memory_order_acq_rel)) continue;
      release();
      throw Error(
          text("variable ", cell.name,
               ": two threads assign it at once; let one thread train, or guard the calls with a mutex of yours"));
    }
  }
  ~Claim() { release(); }
  Claim(const Claim&) = delete;

 private:
  void release() {
    for (std::size_t i = 0; i < claimed_; ++i)
      variant_.cells[variant_.assignments[i].cell]->assigning.store(false, std::memory_order_release);
    claimed_ = 0;
  }
  const Variant& variant_;
  std::size_t claimed_ = 0;
};

/// InvalidArgument names a pass that does not exist and lists those that do.
void check_pass_names(const std::vector<std::string>& disable) {
  const std::vector<std::string> known(pass_names().begin(), pass_names().end());
  for (const std::string& name : disable)
    require(std::ranges::find(known, name) != known.end(), "function: there is no compiler pass `", name,
            "` to disable", did_you_mean(name, known));
}

/// Holds for the nodes that a trace's program takes from outside.
bool is_outside(const Node& node, std::uint32_t trace) { return node.trace != trace; }

class VariantBuilder {
 public:
  VariantBuilder(const Trace& trace, Variant& variant) : trace_(trace), variant_(variant) {}

  /// The graph that computes the results and the assigned cells.
  Graph build(const Tensors& results) {
    std::vector<Ref<Node>> roots;
    for (const Tensor& result : results) {
      variant_.results.push_back({});
      if (!result.defined()) continue;
      variant_.results.back() = {static_cast<int>(roots.size()), result.spec()};
      roots.push_back(result.node());
    }
    add_assignments(roots);
    Flattened flat = flatten(roots, [id = trace_.id()](const Node& node) { return is_outside(node, id); });
    for (const Ref<Node>& node : flat.inputs) variant_.sources.push_back(source_of(node));
    for (std::size_t k = 0; k < flat.inputs.size(); ++k)
      if (is_assigned(variant_.sources[k])) flat.graph.dying.push_back(flat.graph.inputs[k]);
    return std::move(flat.graph);
  }

 private:
  void add_assignments(std::vector<Ref<Node>>& roots) {
    for (const auto& cell : trace_.cells()) {
      if (cell->assigned && cell->now.node() != cell->parameter.node()) {
        variant_.assignments.push_back({.cell = variant_.cells.size(), .output = roots.size()});
        roots.push_back(cell->now.node());
      }
      variant_.cells.push_back(cell->cell);
    }
    std::ranges::sort(variant_.assignments, {}, [&](const auto& a) { return variant_.cells[a.cell]->id; });
  }

  bool is_assigned(const Variant::Source& source) const {
    return source.kind == Variant::Source::Kind::cell &&
           std::ranges::any_of(variant_.assignments, [&](const auto& a) { return a.cell == source.index; });
  }

  Variant::Source source_of(const Ref<Node>& node) {
    using Kind = Variant::Source::Kind;
    for (std::size_t i = 0; i < trace_.parameters().size(); ++i)
      if (trace_.parameters()[i].node() == node) return {Kind::argument, i};
    for (std::size_t i = 0; i < trace_.cells().size(); ++i)
      if (trace_.cells()[i]->parameter.node() == node) return {Kind::cell, i};
    if (trace_.call_key().defined() && trace_.call_key().node() == node) return {Kind::call_key, 0};
    variant_.captures.emplace_back(node);
    return {Kind::capture, variant_.captures.size() - 1};
  }

  const Trace& trace_;
  Variant& variant_;
};

}  // namespace

struct TracedFunction::State {
  FunctionOptions options;
  ClosureRange closure;
  mutable std::shared_mutex guard;
  std::vector<std::shared_ptr<Variant>> variants;  // newest last
  std::vector<Signature> examples;                 // of all variants ever made
  std::vector<Retrace> retraces;
  std::atomic<std::int64_t> calls{0}, dispatches{0};
  std::atomic<std::uint64_t> uses{0};
  double compile_seconds = 0;
  int made = 0;

  std::string title() const { return options.name.empty() ? "function" : "function " + options.name; }

  std::shared_ptr<Variant> find(const Signature& call, std::vector<std::int64_t>& symbols) const {
    std::shared_lock lock(guard);
    for (auto it = variants.rbegin(); it != variants.rend(); ++it)
      if (auto found = match((*it)->pattern, call)) {
        symbols = std::move(*found);
        return *it;
      }
    return nullptr;
  }

  std::shared_ptr<Variant> make(const Signature& call, const Body& body);
  std::shared_ptr<Variant> trace(const Signature& example, const Signature& pattern, const Body& body);
  void admit(std::shared_ptr<Variant> variant, const std::string& note, double took);
  Tensors run(Variant& variant, In arguments, std::span<const std::int64_t> symbols);
  Called run_eagerly(In arguments, const Body& body);
};

std::shared_ptr<Variant> TracedFunction::State::trace(const Signature& example, const Signature& pattern,
                                                      const Body& body) {
  auto variant = std::make_shared<Variant>();
  variant->example = example;
  variant->pattern = pattern;
  Graph graph;
  {
    Trace trace(pattern.specs, closure);
    Called called = body(trace.parameters());
    variant->structure = std::move(called.structure);
    graph = VariantBuilder(trace, *variant).build(called.tensors);
    variant->bounds = trace.bounds();
  }
  for (const Tensor& capture : variant->captures) capture.observed();
  variant->program = compile(std::move(graph), {.disable = options.disable});
  for (Variant::Assignment& a : variant->assignments) a.overwrites = variant->program->may_overwrite()[a.output];
  return variant;
}

/// Traces with the sizes that vary as symbols; a body that needs to know them is traced with them fixed.
std::shared_ptr<Variant> TracedFunction::State::make(const Signature& call, const Body& body) {
  const double start = steady_seconds();
  std::vector<Signature> before;
  {
    std::shared_lock lock(guard);
    before = examples;
    if (made >= options.max_variants) {
      std::string reasons;
      for (const Retrace& retrace : retraces) reasons += text("\n  variant ", retrace.variant, ": ", retrace.reason);
      throw ResourceExhausted(
          text(title(), ": more than ", options.max_variants,
               " variants; mark sizes that vary as any_size in input_signature, pass numbers that vary "
               "as tensors, or raise max_variants. They were made because:",
               reasons));
    }
  }
  const Signature pattern = generalize(before, call, options.input_signature);
  std::string note;
  std::shared_ptr<Variant> variant;
  try {
    variant = trace(call, pattern, body);
  } catch (const Error& error) {
    if (!options.input_signature.empty() || pattern.specs == call.specs) throw;
    variant = trace(call, call, body);
    note = text(" (sizes are fixed in it, since with sizes that vary: ", error.what(), ")");
  }
  admit(variant, note, steady_seconds() - start);
  return variant;
}

void TracedFunction::State::admit(std::shared_ptr<Variant> variant, const std::string& note, double took) {
  std::unique_lock lock(guard);
  if (!examples.empty()) retraces.push_back({made, difference(examples.back(), variant->example) + note});
  examples.push_back(variant->example);
  variant->last_use = ++uses;
  variants.push_back(std::move(variant));
  compile_seconds += took;
  if (++made == warn_at_variants)
    std::cerr << "gradus: " << title() << " has been traced " << made << " times, the last time because "
              << retraces.back().reason << "; explain() lists all reasons\n";
  std::size_t bytes = 0;
  for (const auto& known : variants) bytes += known->program->footprint();
  while (bytes > cache_limit_bytes && variants.size() > 1) {
    const auto oldest = std::ranges::min_element(variants.begin(), variants.end() - 1, {},
                                                 [](const auto& known) { return known->last_use.load(); });
    bytes -= (*oldest)->program->footprint();
    variants.erase(oldest);
  }
}

Tensors TracedFunction::State::run(Variant& variant, In arguments, std::span<const std::int64_t> symbols) {
  thread_local Frame frame;
  const Claim claim(variant);
  struct Cleared {
    Frame& frame;
    ~Cleared() { frame.clear(); }
  } cleared{frame};
  using Kind = Variant::Source::Kind;
  for (const Variant::Source& source : variant.sources) {
    Tensor value = source.kind == Kind::argument  ? arguments[source.index]
                   : source.kind == Kind::cell    ? variant.cells[source.index]->read()
                   : source.kind == Kind::capture ? variant.captures[source.index]
                                                  : CallKeys::fresh();
    frame.inputs.emplace_back(&value.observed());
    if (source.kind == Kind::call_key) frame.held.push_back(std::move(value));
  }
  frame.outputs.resize(variant.program->graph().outputs.size());
  for (const Variant::Assignment& a : variant.assignments) {
    VariableCell& cell = *variant.cells[a.cell];
    std::unique_lock lock(cell.guard);
    if (a.overwrites < 0) continue;
    Ref<Buffer>& input = frame.inputs[static_cast<std::size_t>(a.overwrites)];
    const Ref<Node>& node = cell.value.node();
    constexpr std::uint32_t held_by_node_and_frame = 2;
    const bool ours = node->value.get() == input.get() && node->refs.load(std::memory_order_acquire) == 1 &&
                      input->refs.load(std::memory_order_acquire) == held_by_node_and_frame;
    if (!ours) continue;
    frame.outputs[a.output] = input;
    frame.locks.push_back(std::move(lock));  // nobody may take a handle on what is being overwritten
  }
  ++dispatches;
  ++Pending::mine().dispatches();
  variant.program->run(frame.inputs, frame.outputs, symbols);
  frame.locks.clear();
  for (const Variant::Assignment& a : variant.assignments) {
    VariableCell& cell = *variant.cells[a.cell];
    Tensor next = Tensor::of_buffer(cell.spec, frame.outputs[a.output]);
    std::lock_guard lock(cell.guard);
    std::swap(cell.value, next);
  }
  Tensors results;
  results.reserve(variant.results.size());
  for (const Variant::Result& result : variant.results) {
    if (result.output < 0) {
      results.emplace_back();
      continue;
    }
    Spec spec = result.spec;
    if (spec.shape.is_symbolic()) spec.shape = spec.shape.evaluated(symbols);
    results.push_back(Tensor::of_buffer(spec, frame.outputs[static_cast<std::size_t>(result.output)]));
  }
  return results;
}

Called TracedFunction::State::run_eagerly(In arguments, const Body& body) {
  Pending& queue = Pending::mine();
  struct Eagerly {
    Pending& queue;
    bool before = std::exchange(queue.eager(), true);
    ~Eagerly() { queue.eager() = before; }
  } eagerly{queue};
  const CallKeys keys;
  const std::int64_t before = queue.dispatches();
  Called called = body(arguments);
  queue.flush();
  dispatches += queue.dispatches() - before;
  return called;
}

Tensor detail::number_argument(double value) {
  Ref<Buffer> buffer = Buffer::allocate(sizeof(float));
  *buffer->data<float>() = static_cast<float>(value);
  const Tensor made = Tensor::of_buffer({f32, {}}, std::move(buffer));
  return Context::current() ? Context::current()->literal(made) : made;
}

TracedFunction::TracedFunction(FunctionOptions options, const void* closure, std::size_t closure_bytes)
    : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->closure = {closure, closure_bytes};
  check_pass_names(state_->options.disable);
  require(state_->options.max_variants > 0, "function: max_variants must be positive, got ",
          state_->options.max_variants);
}
TracedFunction::~TracedFunction() = default;

Called TracedFunction::call(In arguments, const std::string& statics, const Body& body) {
  State& state = *state_;
  ++state.calls;
  if (Context::current() || Pending::mine().is_recording()) return body(arguments);
  Signature signature{.statics = statics, .mode = current_mode()};
  signature.specs.reserve(arguments.size());
  for (const Tensor& argument : arguments) signature.specs.push_back(argument.spec());
  if (!state.options.input_signature.empty()) check_declared(state.title(), state.options.input_signature, signature);
  if (state.options.run_eagerly) return state.run_eagerly(arguments, body);
  std::vector<std::int64_t> symbols;
  std::shared_ptr<Variant> variant = state.find(signature, symbols);
  if (!variant) {
    variant = state.make(signature, body);
    symbols = match(variant->pattern, signature).value();
  }
  for (const Trace::Bound& bound : variant->bounds)
    require<OutOfRange>(dimension::evaluate(bound.dimension, symbols) >= 0, state.title(), ": ", bound.otherwise);
  {
    std::shared_lock lock(state.guard);
    variant->last_use = ++state.uses;
  }
  return {state.run(*variant, arguments, symbols), variant->structure};
}

Explanation TracedFunction::explain() const {
  const State& state = *state_;
  std::shared_lock lock(state.guard);
  Explanation e;
  e.name = state.options.name.empty() ? "(unnamed)" : state.options.name;
  e.retraces = state.retraces;
  e.variants = state.made;
  e.calls = state.calls;
  e.dispatches = state.dispatches;
  e.compile_seconds = state.compile_seconds;
  if (state.variants.empty()) return e;
  const Variant& newest = *state.variants.back();
  const std::vector<std::int64_t> symbols = match(newest.pattern, newest.example).value();
  e.kernels = newest.program->kernels(symbols);
  e.graph_text = to_text(newest.program->graph());
  e.peak_bytes = static_cast<std::size_t>(newest.program->arena_bytes(symbols));
  for (const Variant::Result& result : newest.results)
    if (result.output >= 0)
      e.peak_bytes += static_cast<std::size_t>(bytes_of({result.spec.dtype, result.spec.shape.evaluated(symbols)}));
  for (const auto& cell : newest.cells) e.variable_bytes += static_cast<std::size_t>(bytes_of(cell->spec));
  for (const Tensor& capture : newest.captures) e.constant_bytes += capture.bytes();
  return e;
}

}  // namespace gradus
