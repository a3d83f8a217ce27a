/// One call after the other: the path through the segments of a variant, and on where it ends.
#include "gradus/function/traced_function.h"
#include <algorithm>
#include <mutex>
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/base/clock.h"
#include "gradus/base/nearest.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/function/active_call.h"
#include "gradus/function/arguments.h"
#include "gradus/function/begin_again.h"
#include "gradus/function/export_object.h"
#include "gradus/function/export_stablehlo.h"
#include "gradus/function/pending.h"
#include "gradus/function/variant_maker.h"
#include "gradus/ops/call_keys.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// InvalidArgument names a pass that does not exist and lists those that do.
void check_pass_names(const std::vector<std::string>& disable) {
  const std::vector<std::string> known(pass_names().begin(), pass_names().end());
  for (const std::string& name : disable)
    require(std::ranges::find(known, name) != known.end(), "function: there is no compiler pass `", name,
            "` to disable", did_you_mean(name, known));
}

/// Calls on this thread that begin again where BeginAgain is thrown.
thread_local int calls_that_can_begin_again = 0;
struct CanBeginAgain {
  CanBeginAgain() { ++calls_that_can_begin_again; }
  CanBeginAgain(const CanBeginAgain&) = delete;
  ~CanBeginAgain() { --calls_that_can_begin_again; }
};

}  // namespace

namespace detail::inline rooms {

struct TracedFunction::State {
  explicit State(FunctionOptions o) : setup(std::move(o)) {}

  FunctionSetup setup;
  Variants variants{setup};
  const VariantMaker maker{setup, variants};
  std::recursive_mutex making;  // one thread makes a variant at a time, so that none is made twice
  std::atomic<std::int64_t> calls{0}, dispatches{0};

  Called call(const Signature& signature, In arguments, const Body& body);
  Called run_eagerly(In arguments, const Body& body);

 private:
  std::shared_ptr<Variant> find_or_make(CallRequest& request, std::vector<std::int64_t>& symbols);
  std::shared_ptr<Variant> make(CallRequest& request);
  std::optional<Called> attempt(Variant& variant, CallRequest& request);
  Segment* next(Variant& variant, CallRequest& request);
};

}  // namespace detail::inline rooms

Called TracedFunction::State::call(const Signature& signature, In arguments, const Body& body) {
  CallRequest request{signature, body, OneCall(setup.title, arguments, dispatches, setup.budget()),
                      Restarts(setup.title)};
  const CanBeginAgain can_begin_again;
  try {
    std::optional<Called> called;
    while (!called) try {
        request.restarts.count_attempt();
        std::vector<std::int64_t> symbols;
        const std::shared_ptr<Variant> variant = find_or_make(request, symbols);
        if (request.op_by_op) {
          require<ResourceExhausted>(
              !request.values.shards(), setup.title, ": more than ", setup.options.max_variants,
              " variants, each for its sizes, and a strategy traces its steps to divide them: let "
              "batches have fewer sizes, or raise max_variants");
          return run_eagerly(arguments, body);
        }
        variants.use(*variant);
        request.values.begin(std::move(symbols));
        called = attempt(*variant, request);
      } catch (const BeginAgain&) { request.values.undo(); }
    return std::move(*called);
  } catch (...) {
    request.values.undo();
    throw;
  }
}

std::shared_ptr<Variant> TracedFunction::State::find_or_make(CallRequest& request, std::vector<std::int64_t>& symbols) {
  if (auto known = variants.find(request.signature, symbols)) return known;
  std::lock_guard lock(making);
  if (auto known = variants.find(request.signature, symbols)) return known;
  if ((request.op_by_op = variants.is_one_of_too_many(request.signature))) return nullptr;
  auto variant = make(request);
  symbols = match(variant->pattern, request.signature).value();
  return variant;
}

std::shared_ptr<Variant> TracedFunction::State::make(CallRequest& request) {
  const double start = steady_seconds();
  std::string reason = variants.reason_for(request.signature);
  variants.retire_outdated();
  const Signature pattern = variants.next_pattern(request.signature);
  if (!request.restarts.reason().empty()) reason = request.restarts.take_reason();
  std::shared_ptr<Variant> variant = maker.make(pattern, request, reason);
  variants.admit(variant, reason, steady_seconds() - start);
  request.restarts.add_made(variant);
  return variant;
}

/// Runs the segments of one path. Nothing: the call has to begin again, and nothing has happened.
std::optional<Called> TracedFunction::State::attempt(Variant& variant, CallRequest& request) {
  for (Segment* segment = variant.root.get(); segment; segment = next(variant, request)) {
    if (const UsedCell* changed = segment->find_changed()) {
      std::string reason = text("variable ", changed->name, ", which an earlier variant used, ",
                                changed->is_gone() ? "was destroyed" : "has got its first mask, or none any more");
      variants.retire(variant);
      request.restarts.add(variant, std::move(reason));
      return {};
    }
    if (!request.values.symbols().empty() && !segment->fitting.contains(request.values.symbols())) {
      std::lock_guard lock(making);
      maker.confirm(variant, *segment, request);
      return {};
    }
    if (Trace::broken(segment->bounds, request.values.symbols())) {  // told, or not, by the C++ at this size
      variant.unfit.insert(request.values.symbols());
      return {};
    }
    if (ReadListener::is_there()) segment->tell_of_reading();
    if (!segment->is_leaf()) {
      request.values.take_way(*segment);
      continue;
    }
    Called called{{}, segment->structure};
    if (!request.values.finish(*segment, called.tensors)) return {};
    return called;
  }
  return {};
}

/// Where the path goes on; null: the call has to begin again.
Segment* TracedFunction::State::next(Variant& variant, CallRequest& request) {
  const PathStep last = request.values.path().back();
  Segment::Way& way = last.segment->ways[last.taken];
  if (Segment* known = way.segment.load(std::memory_order_acquire)) return known;
  std::lock_guard lock(variant.tracing);
  if (Segment* known = way.segment.load(std::memory_order_acquire)) return known;
  const double start = steady_seconds();
  try {
    way.owned = maker.extend(variant, request);
  } catch (const ResourceExhausted&) { throw; } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    const bool may_be_fixed =
        setup.options.input_signature.empty() || setup.options.fixes_sizes || Unlike::by(error).is_of_op();
    if (variant.pattern.specs == request.signature.specs || !may_be_fixed || !is_of_library(error)) throw;
    std::lock_guard also(making);
    variants.admit(maker.make_fixed(request),
                   text("sizes are fixed in it, since another path with sizes that vary: ", error.what()),
                   steady_seconds() - start);
    return nullptr;
  }
  if (!way.owned) {
    variants.retire(variant);
    request.restarts.add(
        variant,
        "traced again for another path, it met other operations: a captured tensor or other C++ state has changed");
    return nullptr;
  }
  way.segment.store(way.owned.get(), std::memory_order_release);
  variants.note_path(variant, *way.owned, steady_seconds() - start);
  return way.owned.get();
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
  Called called = body(as_arguments(arguments));
  Pending::flush_mine();
  dispatches += queue.dispatches() - before;
  return called;
}

void BeginAgain::from_trace(const char* otherwise) {
  require(calls_that_can_begin_again > 0, otherwise);
  throw BeginAgain();
}

Tensor detail::number_argument(double value) {
  Ref<Buffer> buffer = Buffer::allocate(sizeof(float));
  *buffer->data<float>() = static_cast<float>(value);
  const Tensor made = Tensor::of_buffer({f32, {}}, std::move(buffer));
  return Context::current() ? Context::current()->literal(made) : made;
}

detail::MaskedArguments::MaskedArguments(Tensors& tensors, StaticArguments& statics)
    : places_(SequenceMask::append_some(tensors)) {
  statics.masked = places_;
}

In detail::MaskedArguments::take(In in) const {
  const std::size_t count = in.size() - places_.size();
  for (std::size_t k = 0; k < places_.size(); ++k) SequenceMask::give(in[places_[k]], in[count + k]);
  return in.first(count);
}

TracedFunction::TracedFunction(FunctionOptions options, const void* closure, std::size_t closure_bytes)
    : state_(std::make_unique<State>(std::move(options))) {
  state_->setup.closure = {closure, closure_bytes};
  check_pass_names(state_->setup.options.disable);
  check_options("function", state_->setup.options);
  const FunctionOptions& given = state_->setup.options;
  const auto is_open = [](const Spec& spec) { return std::ranges::count(spec.shape, any_size) > 0; };
  require(given.open_sizes || std::ranges::none_of(given.input_signature, is_open), state_->setup.title,
          ": open_sizes is false, and input_signature says any_size; leave one of them out");
}
TracedFunction::~TracedFunction() = default;

Called TracedFunction::call(In arguments, const StaticArguments& statics, const Body& body) {
  State& state = *state_;
  const ActiveCall active(state.setup.title, &state);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    require(arguments[i].defined(), state.setup.title, ": argument ", i,
            " is an empty tensor: it was default-constructed or moved from; give it a value");
  ++state.calls;
  // Layers that extend a cache of keys and values have another program, which writes it.
  if (Context::current() || Pending::mine().is_recording() || CallContext::here().cache)
    return body(as_arguments(arguments));
  Signature signature{.statics = statics, .mode = current_mode()};
  signature.specs.reserve(arguments.size());
  for (const Tensor& argument : arguments) signature.specs.push_back(argument.spec());
  if (const std::vector<Spec>& declared = state.setup.options.input_signature; !declared.empty()) {
    check_declared(state.setup.title, declared, signature);
    check_declared_devices(state.setup.title, declared, signature);
  }
  if (state.setup.options.run_eagerly) return state.run_eagerly(arguments, body);
  return state.call(signature, arguments, body);
}

template <class Use>
auto TracedFunction::with_draft(const char* what, std::vector<Spec> arguments, const StaticArguments& statics,
                                const Body& body, const Use& use) {
  State& state = *state_;
  const ActiveCall active(state.setup.title, &state);
  require(!Context::current(), state.setup.title, ": ", what, ": called while a function is traced");
  Signature signature{.statics = statics, .mode = current_mode()};
  Tensors values;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    arguments[k].device = {};
    require(std::ranges::all_of(arguments[k].shape, [](std::int64_t d) { return d >= 0; }), state.setup.title, ": ",
            what, ": argument ", k, " is ", arguments[k],
            ": what is exported is for known sizes: give a number for each");
    values.push_back(fill(arguments[k].shape, 0, arguments[k].dtype));
    signature.specs.push_back(arguments[k]);
  }
  if (!state.setup.options.input_signature.empty())
    check_declared(state.setup.title, state.setup.options.input_signature, signature);
  CallRequest request{signature, body, OneCall(state.setup.title, values, state.dispatches, state.setup.budget()),
                      Restarts(state.setup.title)};
  std::lock_guard lock(state.making);
  const CanBeginAgain can_begin_again;
  const auto draft_again = [&](const auto& self) -> Draft {
    try {
      return state.maker.draft(request);
    } catch (const BeginAgain&) {
      request.values.undo();
      request.restarts.count_attempt();
    }
    return self(self);
  };
  try {
    Draft draft = draft_again(draft_again);
    request.values.undo();
    return use(std::move(draft), arguments);
  } catch (...) {
    request.values.undo();
    throw;
  }
}

ObjectFiles TracedFunction::export_object(const std::filesystem::path& stem, std::vector<Spec> arguments,
                                          const ObjectOptions& options, const StaticArguments& statics,
                                          const Body& body) {
  (void)object_places(stem, options.weights);
  return write_object_files(stem, {std::string()}, {trace_step(std::move(arguments), statics, body)}, options);
}

std::shared_ptr<const TracedStep> TracedFunction::trace_step(std::vector<Spec> arguments,
                                                             const StaticArguments& statics, const Body& body) {
  return with_draft("export_object", std::move(arguments), statics, body, [&](Draft draft, const auto& specs) {
    return traced_step(state_->setup.options, state_->setup.title, specs, std::move(draft));
  });
}

std::string TracedFunction::stablehlo(std::vector<Spec> arguments, const StaticArguments& statics, const Body& body) {
  return with_draft("stablehlo", std::move(arguments), statics, body, [&](Draft draft, const auto&) {
    return stablehlo_text(state_->setup.options, state_->setup.title, std::move(draft));
  });
}

Explanation TracedFunction::explain() const {
  const State& state = *state_;
  Explanation e;
  e.name = state.setup.options.name.empty() ? "(unnamed)" : state.setup.options.name;
  e.calls = state.calls;
  e.dispatches = state.dispatches;
  e.rates = thread_rates();
  state.variants.explain(e);
  return e;
}

}  // namespace gradus
