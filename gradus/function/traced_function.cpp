/// Variants: choosing, tracing, binding, running, committing.
#include "gradus/function/traced_function.h"
#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <variant>
#include "gradus/base/clock.h"
#include "gradus/base/nearest.h"
#include "gradus/base/notice.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/compiler/recompute.h"
#include "gradus/function/active_call.h"
#include "gradus/function/arguments.h"
#include "gradus/ops/call_keys.h"
#include "gradus/function/guide.h"
#include "gradus/function/one_call.h"
#include "gradus/function/open_sizes.h"
#include "gradus/function/pending.h"
#include "gradus/function/restarts.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/out_of_memory.h"

namespace gradus {
namespace {

std::atomic<std::size_t> limit_bytes{std::size_t{512} << 20};
constexpr int warn_at_variants = 8;

/// InvalidArgument names a pass that does not exist and lists those that do.
void check_pass_names(const std::vector<std::string>& disable) {
  const std::vector<std::string> known(pass_names().begin(), pass_names().end());
  for (const std::string& name : disable)
    require(std::ranges::find(known, name) != known.end(), "function: there is no compiler pass `", name,
            "` to disable", did_you_mean(name, known));
}

}  // namespace

struct TracedFunction::State {
  explicit State(FunctionOptions o)
      : options(std::move(o)), title(options.name.empty() ? "function" : "function " + options.name) {}

  const FunctionOptions options;
  const std::string title;
  ClosureRange closure;
  std::recursive_mutex making;  // one thread makes a variant at a time, so that none is made twice

  mutable std::shared_mutex guard;                 // of what follows
  std::vector<std::shared_ptr<Variant>> variants;  // newest last
  std::vector<Signature> examples;                 // of all variants ever made
  std::vector<Retrace> retraces;
  std::vector<Signature> needing_sizes;     // examples of variants whose sizes an op had to know
  bool warned_of_op_by_op = false;          // that further ones are not compiled
  std::set<std::uint64_t> warned_captures;  // by the number of their nodes
  double compile_seconds = 0;
  int made = 0;

  std::atomic<std::int64_t> calls{0}, dispatches{0};
  std::atomic<std::uint64_t> uses{0};

  std::int64_t budget() const {
    return is_disabled(options.disable, "recompute") ? 0 : static_cast<std::int64_t>(options.max_bytes);
  }
  HandOn hand_on() const { return budget() > 0 ? HandOn::nothing : HandOn::what_is_needed; }
  /// Whether watched state is what it was, and what the call keeps between kernels stays within the budget.
  bool is_valid(Variant& variant, const std::vector<std::int64_t>& symbols) const;
  /// Why this call needs a variant of its own; empty for the first.
  std::string reason_for(const Signature& call) const;
  /// For the sizes of this call.
  std::unique_ptr<Segment> compiled(Draft draft, const Signature& pattern, const Signature& call) const;

  /// One call, and why it has begun anew.
  struct Request {
    const Signature& signature;
    const Body& body;
    OneCall values;
    Restarts restarts;
    bool op_by_op = false;  // there are too many variants already, each for its sizes
  };
  std::shared_ptr<Variant> find(const Signature& call, std::vector<std::int64_t>& symbols) const;
  std::shared_ptr<Variant> find_or_make(Request& request, std::vector<std::int64_t>& symbols);
  std::shared_ptr<Variant> make(Request& request);
  struct Run;
  Run run(const Signature& pattern, Request& request, bool is_compared = false, const Recording& other = {}) const;
  std::variant<Run, Unlike> run_open(const Signature& pattern, Request& request, const Run& known) const;
  static std::optional<Unlike> how_it_differs(const Run& open, const Run& known, const Request& request);
  void confirm(Variant& variant, Segment& segment, Request& request);
  std::shared_ptr<Variant> finished(Run run, const Request& request) const;
  std::shared_ptr<Variant> make_open(const Signature& pattern, Request& request, std::string& reason);
  std::shared_ptr<Variant> make_narrower(const Signature& pattern, Request& request, const Run& known,
                                         const Unlike& unlike, std::string& reason);
  bool is_one_of_too_many(const Signature& call);
  void admit(std::shared_ptr<Variant> variant, const std::string& reason, double took);
  void evict();
  void retire(const Variant& variant);
  void warn_of_captures(const Segment& root);
  void check_variants() const;

  Called call(const Signature& signature, In arguments, const Body& body);
  std::optional<Called> attempt(Variant& variant, Request& request);
  Segment* next(Variant& variant, Request& request);
  std::unique_ptr<Segment> extend(Variant& variant, Request& request);
  void add_watched(Variant& variant, const WatchedState& watched);
  void retire_outdated();
  Called run_eagerly(In arguments, const Body& body);
};

std::string TracedFunction::State::reason_for(const Signature& call) const {
  const std::string sizes = examples.empty() ? "" : difference(examples.back(), call);
  const auto unfit = std::ranges::find_if(variants.rbegin(), variants.rend(), [&](const auto& variant) {
    return match(variant->pattern, call).has_value();
  });
  if (unfit == variants.rend()) return sizes;
  if ((*unfit)->unfit.contains(match((*unfit)->pattern, call).value())) return sizes;
  const std::string changes = (*unfit)->watched.difference();
  return changes.empty() ? sizes + " (what is compiled would not stay within max_bytes at these sizes)" : changes;
}

bool TracedFunction::State::is_valid(Variant& variant, const std::vector<std::int64_t>& symbols) const {
  bool fits = variant.watched.holds(variant.watched_until);
  if (budget() > 0 && !symbols.empty())
    for_each_segment(*variant.root, [&](const Segment& segment) {
      fits = fits && segment.program->compiled().temporary_bytes(symbols) <= budget();
    });
  return fits;
}

std::unique_ptr<Segment> TracedFunction::State::compiled(Draft draft, const Signature& pattern,
                                                         const Signature& call) const {
  try {
    return std::move(draft).compile({.disable = options.disable,
                                     .max_bytes = budget(),
                                     .symbols = match(pattern, call).value(),
                                     .profile = options.profile});
  } catch (const BudgetTooSmall& error) { throw ResourceExhausted(text(title, ": max_bytes: ", error.what())); }
}

std::shared_ptr<Variant> TracedFunction::State::find(const Signature& call, std::vector<std::int64_t>& symbols) const {
  std::shared_lock lock(guard);
  for (auto it = variants.rbegin(); it != variants.rend(); ++it)
    if (auto found = match((*it)->pattern, call);
        found && is_valid(**it, *found) && (found->empty() || !(*it)->unfit.contains(*found))) {
      symbols = std::move(*found);
      return *it;
    }
  return nullptr;
}

/// One run of the C++ of a call; with symbols, or choices by size, of `other`, the run that it will be compared with.
struct TracedFunction::State::Run {
  Signature pattern;
  std::shared_ptr<TraceMemory> memory;
  std::optional<Draft> draft;
  WatchedState watched;
  std::vector<Trace::Bound> bounds;  // of sizes that vary
  Recording recording;               // if asked for
};

TracedFunction::State::Run TracedFunction::State::run(const Signature& pattern, Request& request, bool is_compared,
                                                      const Recording& other) const {
  request.values.begin(match(pattern, request.signature).value());
  Run made{.pattern = pattern, .memory = std::make_shared<TraceMemory>(pattern.specs, Trace::new_id())};
  Guide guide(request.values, title);
  Trace trace(made.memory, closure, std::ref(guide));
  if (pattern.specs != request.signature.specs) trace.set_limit(applications_after(other.applications));
  trace.repeat_choices(other.choices, pattern.specs == request.signature.specs);
  Called called = request.body(trace.parameters());
  made.watched = trace.watched();
  made.bounds = trace.bounds();
  if (is_compared) made.recording = record(trace, called);
  made.draft.emplace(trace, std::move(called), std::span<const PathStep>(), hand_on());
  made.draft->check_cells();
  check_unchanged(title, made.watched);
  return made;
}

std::shared_ptr<Variant> TracedFunction::State::finished(Run run, const Request& request) const {
  auto variant = std::make_shared<Variant>();
  variant->example = request.signature;
  variant->pattern = std::move(run.pattern);
  variant->watched = std::move(run.watched);
  variant->choices = run.recording.choices;
  variant->root = compiled(std::move(*run.draft), variant->pattern, request.signature);
  if (const auto symbols = match(variant->pattern, request.signature).value(); !symbols.empty())
    note_fitting(*variant->root, run.recording.ways, symbols);
  if (!variant->root->is_leaf()) {
    variant->memory_bytes = run.memory->bytes();
    variant->memory = std::move(run.memory);
  }
  return variant;
}

/// A run with symbols in place of sizes, if it is the same program as the run with these sizes; else why not.
std::variant<TracedFunction::State::Run, Unlike> TracedFunction::State::run_open(const Signature& pattern,
                                                                                 Request& request,
                                                                                 const Run& known) const {
  try {
    Run open = run(pattern, request, true, known.recording);
    if (auto unlike = how_it_differs(open, known, request)) return std::move(*unlike);
    return open;
  } catch (const InternalError&) { throw; } catch (const OutOfMemory&) {
    throw;
  } catch (const std::exception& error) { return Unlike::by(error); }
}

std::optional<Unlike> TracedFunction::State::how_it_differs(const Run& open, const Run& known, const Request& request) {
  const std::vector<std::int64_t> symbols = match(open.pattern, request.signature).value();
  // An op that takes this size does so in another way: a slice ends where the dimension ends.
  if (const Trace::Bound* broken = Trace::broken(open.bounds, symbols))
    return Unlike{broken->otherwise, Unlike::Cause::op};
  if (!Trace::are_alike(open.recording.choices, known.recording.choices))
    return Unlike{"an op computes in another way at this size"};
  std::string why = difference(open.recording, symbols, known.recording);
  if (why.empty()) return {};
  return Unlike{std::move(why)};
}

/// At the sizes of this call: is the C++ the program that the variant was made of? Both are traced now, so that other
/// C++ state that has changed since is in both.
void TracedFunction::State::confirm(Variant& variant, Segment& segment, Request& request) {
  std::lock_guard lock(making);
  const std::vector<std::int64_t> symbols = request.values.symbols();
  try {
    Run known = run(request.signature, request, true, {.choices = variant.choices});
    const bool chooses_alike = Trace::are_alike(known.recording.choices, variant.choices);
    known.recording.choices = variant.choices;
    if (!chooses_alike || std::holds_alternative<Unlike>(run_open(variant.pattern, request, known))) {
      variant.unfit.insert(symbols);
      return;
    }
    note_fitting(*variant.root, known.recording.ways, symbols);
  } catch (const InvalidArgument&) {  // that of nothing: reshape(x, {0, -1}) can be worked out for open sizes alone
    if (std::ranges::count(symbols, 0) == 0) throw;
  }
  segment.fitting.insert(symbols);  // where the state of the program has changed, another path than this run took
}

void TracedFunction::State::check_variants() const {
  if (variants.size() < static_cast<std::size_t>(options.max_variants)) return;
  std::string reasons;
  for (const Retrace& retrace : retraces) reasons += text("\n  variant ", retrace.variant, ": ", retrace.reason);
  // The signature of what the library compiles is that of the data: nobody can write it.
  const char* remedy = options.fixes_sizes
                           ? "let the data have fewer shapes, as padded_batch and bucket_by_sequence_length make them"
                       : options.input_signature.empty()
                           ? "mark sizes that vary as any_size in input_signature, pass numbers that vary as tensors"
                           : "pass numbers that vary as tensors";
  throw ResourceExhausted(text(title, ": more than ", options.max_variants, " variants; ", remedy,
                               ", or raise max_variants. They were made because:", reasons));
}

/// Sizes that vary are symbols, unless the C++ reads them: then they are fixed.
std::shared_ptr<Variant> TracedFunction::State::make(Request& request) {
  const double start = steady_seconds();
  Signature pattern;
  std::string reason;
  {
    std::shared_lock lock(guard);
    reason = reason_for(request.signature);
  }
  retire_outdated();
  {
    std::shared_lock lock(guard);
    check_variants();
    pattern = generalize(examples, request.signature, options.input_signature);
  }
  if (!request.restarts.reason().empty()) reason = request.restarts.take_reason();
  std::shared_ptr<Variant> variant = pattern.specs == request.signature.specs ? finished(run(pattern, request), request)
                                                                              : make_open(pattern, request, reason);
  admit(variant, reason, steady_seconds() - start);
  request.restarts.add_made(variant);
  return variant;
}

std::shared_ptr<Variant> TracedFunction::State::make_open(const Signature& pattern, Request& request,
                                                          std::string& reason) {
  // What is built within the first call is built for all sizes; a choice by cost does not know them.
  std::optional<Run> first;
  try {
    first = run(pattern, request, true);
  } catch (const InternalError&) { throw; } catch (const OutOfMemory&) {
    throw;
  } catch (const std::exception&) {}  // told below
  const std::vector<std::int64_t> symbols = match(pattern, request.signature).value();
  const bool meets_small = has_small(symbols) || (first && has_small_within(first->recording.graph, symbols));
  Run known = run(request.signature, request, true, first ? first->recording : Recording());
  try {
    if (first && !how_it_differs(*first, known, request)) return finished(std::move(*first), request);
  } catch (const InternalError&) { throw; } catch (const OutOfMemory&) {
    throw;
  } catch (const Error&) { first.reset(); }  // such as a size that is negative here; told below
  auto open = run_open(pattern, request, known);
  if (first && !Trace::are_alike(first->recording.choices, known.recording.choices) && !reason.empty())
    reason += " (an op computes in another way at this size)";
  Unlike unlike;
  if (Run* same = std::get_if<Run>(&open)) try {
      return finished(std::move(*same), request);
    } catch (const OutOfMemory&) { throw; } catch (const Error& error) {
      unlike = Unlike::by(error);
    }
  else unlike = std::get<Unlike>(open);
  const bool is_small = unlike.cause == Unlike::Cause::another_program && meets_small;
  const bool may_be_fixed = unlike.is_of_op() || options.fixes_sizes;
  if (!options.input_signature.empty() && !may_be_fixed && !is_small)
    throw InvalidArgument(text(title, ": ", unlike.refusal(pattern)));
  if (may_be_fixed) {
    std::unique_lock lock(guard);
    const auto alike = [&](const Signature& s) { return is_same_kind(s, request.signature); };
    if (std::ranges::none_of(needing_sizes, alike)) needing_sizes.push_back(request.signature);
  }
  if (auto narrower = make_narrower(pattern, request, known, unlike, reason)) return narrower;
  reason += (reason.empty() ? "" : " ") + unlike.fixing_all();
  return finished(std::move(known), request);
}

/// With one of several sizes fixed, the first one that suffices.
std::shared_ptr<Variant> TracedFunction::State::make_narrower(const Signature& pattern, Request& request,
                                                              const Run& known, const Unlike& unlike,
                                                              std::string& reason) {
  const int symbols = static_cast<int>(match(pattern, request.signature).value().size());
  for (int k = 0; symbols > 1 && k < symbols; ++k) {
    auto open = run_open(with_fixed(pattern, k, request.signature), request, known);
    Run* same = std::get_if<Run>(&open);
    if (!same) continue;
    reason += (reason.empty() ? "" : " ") + unlike.fixing(pattern, k);
    return finished(std::move(*same), request);
  }
  return nullptr;
}

/// Whether a variant more would be made only because ops have to know sizes, of which max_variants others were met.
bool TracedFunction::State::is_one_of_too_many(const Signature& call) {
  std::unique_lock lock(guard);
  const auto alike = [&](const Signature& s) { return is_same_kind(s, call); };
  const auto lasts = [](const std::shared_ptr<Variant>& variant) { return !variant->watched.is_over(); };
  if (std::ranges::count_if(variants, lasts) < options.max_variants || std::ranges::none_of(needing_sizes, alike))
    return false;
  if (!std::exchange(warned_of_op_by_op, true)) notice(going_op_by_op(title, variants.size(), retraces.back().reason));
  return true;
}

void TracedFunction::State::admit(std::shared_ptr<Variant> variant, const std::string& reason, double took) {
  std::unique_lock lock(guard);
  warn_of_captures(*variant->root);
  if (!reason.empty()) retraces.push_back({made, reason});
  examples.push_back(variant->example);
  variant->last_use = ++uses;
  variants.push_back(std::move(variant));
  compile_seconds += took;
  if (++made == warn_at_variants)
    notice(text("gradus: ", title, " has been traced ", made, " times, the last time because ", retraces.back().reason,
                "; explain() lists all reasons\n"));
  evict();
}

/// Keeps the newest, and of the others those that were used last.
void TracedFunction::State::evict() {
  std::size_t bytes = 0;
  for (const auto& known : variants) bytes += footprint(*known);
  while (bytes > limit_bytes && variants.size() > 1) {
    const auto oldest = std::ranges::min_element(variants.begin(), variants.end() - 1, {},
                                                 [](const auto& known) { return known->last_use.load(); });
    bytes -= footprint(**oldest);
    variants.erase(oldest);
  }
}

/// Takes a variant away that is of no use any more.
void TracedFunction::State::retire(const Variant& variant) {
  std::shared_ptr<Variant> released;  // after the lock
  std::unique_lock lock(guard);
  const auto known = std::ranges::find(variants, &variant, [](const auto& v) { return v.get(); });
  if (known == variants.end()) return;
  released = std::move(*known);
  variants.erase(known);
}

/// The same of those whose layers have changed for good.
void TracedFunction::State::retire_outdated() {
  std::vector<std::shared_ptr<Variant>> released;  // after the lock
  std::unique_lock lock(guard);
  std::erase_if(variants, [&](const std::shared_ptr<Variant>& variant) {
    if (!variant->watched.is_over()) return false;
    released.push_back(variant);
    return true;
  });
}

/// Constants stay in memory as long as the variant, and another value of them is never seen: large ones are told, once.
void TracedFunction::State::warn_of_captures(const Segment& root) {
  for_each_segment(root, [&](const Segment& segment) {
    for (const auto& [number, what] : segment.large_captures)
      if (warned_captures.insert(number).second)
        notice(text("gradus: ", title, " has captured a tensor ", what,
                    ": a constant from now on; pass it as an argument or make it a Variable if it changes\n"));
  });
}

std::shared_ptr<Variant> TracedFunction::State::find_or_make(Request& request, std::vector<std::int64_t>& symbols) {
  if (auto known = find(request.signature, symbols)) return known;
  std::lock_guard lock(making);
  if (auto known = find(request.signature, symbols)) return known;
  if ((request.op_by_op = is_one_of_too_many(request.signature))) return nullptr;
  auto variant = make(request);
  symbols = match(variant->pattern, request.signature).value();
  return variant;
}

Called TracedFunction::State::call(const Signature& signature, In arguments, const Body& body) {
  Request request{signature, body, OneCall(title, arguments, dispatches, budget()), Restarts(title)};
  try {
    std::optional<Called> called;
    while (!called) {
      request.restarts.count_attempt();
      std::vector<std::int64_t> symbols;
      const std::shared_ptr<Variant> variant = find_or_make(request, symbols);
      if (request.op_by_op) return run_eagerly(arguments, body);
      variant->last_use = ++uses;
      request.values.begin(std::move(symbols));
      called = attempt(*variant, request);
    }
    return std::move(*called);
  } catch (...) {
    request.values.undo();
    throw;
  }
}

/// Runs the segments of one path. Nothing: the call has to begin anew, and nothing has happened.
std::optional<Called> TracedFunction::State::attempt(Variant& variant, Request& request) {
  for (Segment* segment = variant.root.get(); segment; segment = next(variant, request)) {
    if (const UsedCell* changed = segment->find_changed()) {
      std::string reason = text("variable ", changed->name, ", which an earlier variant used, ",
                                changed->is_gone() ? "was destroyed" : "has got its first mask, or none any more");
      retire(variant);
      request.restarts.add(variant, std::move(reason));
      return {};
    }
    if (!request.values.symbols().empty() && !segment->fitting.contains(request.values.symbols())) {
      confirm(variant, *segment, request);
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

/// Where the path goes on; null: the call has to begin anew.
Segment* TracedFunction::State::next(Variant& variant, Request& request) {
  const PathStep last = request.values.path().back();
  Segment::Way& way = last.segment->ways[last.taken];
  if (Segment* known = way.segment.load(std::memory_order_acquire)) return known;
  std::lock_guard lock(variant.tracing);
  if (Segment* known = way.segment.load(std::memory_order_acquire)) return known;
  const double start = steady_seconds();
  try {
    way.owned = extend(variant, request);
  } catch (const ResourceExhausted&) { throw; } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    const bool may_be_fixed = options.input_signature.empty() || options.fixes_sizes || Unlike::by(error).is_of_op();
    if (variant.pattern.specs == request.signature.specs || !may_be_fixed) throw;
    std::lock_guard also(making);
    admit(finished(run(request.signature, request), request),
          text("sizes are fixed in it, since another path with sizes that vary: ", error.what()),
          steady_seconds() - start);
    return nullptr;
  }
  if (!way.owned) {
    retire(variant);
    request.restarts.add(
        variant,
        "traced again for another path, it met other operations: a captured tensor or other C++ state has changed");
    return nullptr;
  }
  way.segment.store(way.owned.get(), std::memory_order_release);
  ++variant.paths;
  variant.memory_bytes = variant.memory->bytes();
  std::unique_lock counted(guard);
  warn_of_captures(*way.owned);
  compile_seconds += steady_seconds() - start;
  evict();
  return way.owned.get();
}

void TracedFunction::State::add_watched(Variant& variant, const WatchedState& watched) {
  std::unique_lock lock(guard);
  variant.watched.add(watched);
  variant.watched_until = 0;
}

/// Traces again: the known way first, then as this call goes. Null: the C++ is another program than it was.
std::unique_ptr<Segment> TracedFunction::State::extend(Variant& variant, Request& request) {
  require<ResourceExhausted>(
      variant.paths < Variant::most_paths, title, ": more than ", Variant::most_paths,
      " paths through its C++ branches on tensor values; make a loop whose length depends on values a while_loop, one "
      "of known length a scan, and a branch a cond");
  require(!variant.is_being_traced, title, ": called by what it calls while it is traced");
  struct BeingTraced {
    bool& flag;
    explicit BeingTraced(bool& f) : flag(f) { flag = true; }
    ~BeingTraced() { flag = false; }
  };
  std::optional<Draft> draft;
  {
    const BeingTraced flag(variant.is_being_traced);
    Guide guide(request.values, title);
    Trace trace(variant.memory, closure, std::ref(guide));
    if (!request.values.symbols().empty()) trace.set_limit(applications_after(variant.memory->size()));
    trace.repeat_choices(variant.choices, request.values.symbols().empty());
    Called called = request.body(trace.parameters());
    if (guide.has_diverged(trace)) return nullptr;
    check_unchanged(title, trace.watched());
    add_watched(variant, trace.watched());
    draft.emplace(trace, std::move(called), request.values.path(), hand_on());
  }
  return compiled(std::move(*draft), variant.pattern, request.signature);
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

Tensor detail::number_argument(double value) {
  Ref<Buffer> buffer = Buffer::allocate(sizeof(float));
  *buffer->data<float>() = static_cast<float>(value);
  const Tensor made = Tensor::of_buffer({f32, {}}, std::move(buffer));
  return Context::current() ? Context::current()->literal(made) : made;
}

TracedFunction::TracedFunction(FunctionOptions options, const void* closure, std::size_t closure_bytes)
    : state_(std::make_unique<State>(std::move(options))) {
  state_->closure = {closure, closure_bytes};
  check_pass_names(state_->options.disable);
  check_options("function", state_->options);
}
TracedFunction::~TracedFunction() = default;

std::size_t set_variants_limit(std::size_t bytes) { return limit_bytes.exchange(bytes); }

Called TracedFunction::call(In arguments, const StaticArguments& statics, const Body& body) {
  State& state = *state_;
  const ActiveCall active(state.title, &state);
  ++state.calls;
  if (Context::current() || Pending::mine().is_recording()) return body(as_arguments(arguments));
  Signature signature{.statics = statics, .mode = current_mode()};
  signature.specs.reserve(arguments.size());
  for (const Tensor& argument : arguments) signature.specs.push_back(argument.spec());
  if (!state.options.input_signature.empty()) check_declared(state.title, state.options.input_signature, signature);
  if (state.options.run_eagerly) return state.run_eagerly(arguments, body);
  return state.call(signature, arguments, body);
}

Explanation TracedFunction::explain() const {
  const State& state = *state_;
  std::shared_lock lock(state.guard);
  Explanation e;
  e.name = state.options.name.empty() ? "(unnamed)" : state.options.name;
  e.retraces = state.retraces;
  e.variants = static_cast<int>(state.variants.size());
  e.calls = state.calls;
  e.dispatches = state.dispatches;
  if (!state.variants.empty()) describe(*state.variants.back(), e);
  e.compile_seconds = state.compile_seconds;
  for (const auto& variant : state.variants) {
    e.paths += variant->paths;
    for_each_segment(*variant->root, [&](const Segment& s) { e.compile_seconds += s.program->later_seconds(); });
  }
  return e;
}

}  // namespace gradus
