/// Tracing, comparing, compiling.
#include "gradus/function/variant_maker.h"
#include <algorithm>
#include "gradus/compiler/recompute.h"
#include "gradus/function/guide.h"
#include "gradus/graph/activity_scope.h"
#include "gradus/graph/trace_names.h"
#include "gradus/tensor/out_of_memory.h"

namespace gradus {

/// One run of the C++ of a call; with symbols, or choices by size, of `other`, the run that it will be compared with.
struct VariantMaker::Run {
  Signature pattern;
  std::shared_ptr<TraceMemory> memory;
  std::optional<Draft> draft;
  WatchedState watched;
  OpenTrace form;  // bounds of sizes that vary; the recording if asked for
};

VariantMaker::Run VariantMaker::run(const Signature& pattern, CallRequest& request, Kept kept,
                                    const Recording& other) const {
  const CompileActivity activity(text("trace ", setup_.title));
  request.values.begin(match(pattern, request.signature).value());
  Run made{.pattern = pattern, .memory = std::make_shared<TraceMemory>(pattern.specs, Trace::new_id())};
  if (!setup_.options.name.empty()) name_trace(made.memory->id(), setup_.title);
  Guide guide(request.values, setup_.title);
  Trace trace(made.memory, setup_.closure, std::ref(guide));
  if (pattern.specs != request.signature.specs) trace.set_limit(applications_after(other.applications));
  trace.repeat_choices(other.choices, pattern.specs == request.signature.specs);
  Called called = request.body(trace.parameters());
  made.watched = trace.watched();
  made.form.bounds = trace.bounds();
  if (kept != Kept::draft) made.form.recording = record(trace, called);
  if (kept != Kept::recording) {
    made.draft.emplace(trace, std::move(called), std::span<const PathStep>(), setup_.hand_on());
    made.draft->check_cells();
  }
  check_unchanged(setup_.title, made.watched);
  return made;
}

std::unique_ptr<Segment> VariantMaker::compiled(Draft draft, const Signature& pattern,
                                                const CallRequest& request) const {
  try {
    return std::move(draft).compile({.disable = setup_.options.disable,
                                     .max_bytes = setup_.budget(),
                                     .symbols = match(pattern, request.signature).value(),
                                     .profile = setup_.options.profile,
                                     .matmul_precision = setup_.options.matmul_precision,
                                     .shards = request.values.shards()});
  } catch (const BudgetTooSmall& error) { throw ResourceExhausted(text(setup_.title, ": max_bytes: ", error.what())); }
}

std::shared_ptr<Variant> VariantMaker::finished(Run run, const CallRequest& request) const {
  auto variant = std::make_shared<Variant>();
  variant->example = request.signature;
  variant->pattern = std::move(run.pattern);
  variant->watched = std::move(run.watched);
  variant->choices = run.form.recording.choices;
  variant->root = compiled(std::move(*run.draft), variant->pattern, request);
  if (const auto symbols = match(variant->pattern, request.signature).value(); !symbols.empty())
    note_fitting(*variant->root, run.form.recording.ways, symbols);
  if (!variant->root->is_leaf()) {
    variant->memory_bytes = run.memory->bytes();
    variant->memory = std::move(run.memory);
  }
  if (variant->pattern.specs != request.signature.specs) {
    variant->memory_bytes += run.form.recording.graph.values.size() * sizeof(Value);
    variant->open = std::make_unique<const OpenTrace>(std::move(run.form));
  }
  return variant;
}

/// A run with symbols in place of sizes, if it is the same program as the run with these sizes; else why not.
std::variant<VariantMaker::Run, Unlike> VariantMaker::run_open(const Signature& pattern, CallRequest& request,
                                                               const Run& known) const {
  try {
    Run open = run(pattern, request, Kept::draft_and_recording, known.form.recording);
    if (auto unlike = how_it_differs(open.form, known, match(pattern, request.signature).value()))
      return std::move(*unlike);
    return open;
  } catch (const InternalError&) { throw; } catch (const OutOfMemory&) {
    throw;
  } catch (const std::exception& error) {
    if (!is_of_library(error)) throw;
    return Unlike::by(error);
  }
}

std::optional<Unlike> VariantMaker::how_it_differs(const OpenTrace& open, const Run& known,
                                                   std::span<const std::int64_t> symbols) {
  if (has_other_symbols(open.recording.graph, symbols.size()))
    return Unlike{"it computes with a size, for which x.size(axis) is there"};
  // An op that takes this size does so in another way: a slice ends where the dimension ends.
  if (const Trace::Bound* broken = Trace::broken(open.bounds, symbols))
    return Unlike{broken->otherwise, Unlike::Cause::op};
  if (!Trace::are_alike(open.recording.choices, known.form.recording.choices))
    return Unlike{"an op computes in another way at this size"};
  std::string why = difference(open.recording, symbols, known.form.recording);
  if (why.empty()) return {};
  return Unlike{std::move(why)};
}

std::shared_ptr<Variant> VariantMaker::make(const Signature& pattern, CallRequest& request, std::string& reason) const {
  return pattern.specs == request.signature.specs ? finished(run(pattern, request), request)
                                                  : make_open(pattern, request, reason);
}

std::shared_ptr<Variant> VariantMaker::make_fixed(CallRequest& request) const {
  return finished(run(request.signature, request), request);
}

Draft VariantMaker::draft(CallRequest& request) const { return std::move(*run(request.signature, request).draft); }

std::shared_ptr<Variant> VariantMaker::make_open(const Signature& pattern, CallRequest& request,
                                                 std::string& reason) const {
  // Values built within the first call are built for all sizes; a choice by cost does not know them.
  std::optional<Run> first;
  try {
    first = run(pattern, request, Kept::draft_and_recording);
  } catch (const InternalError&) { throw; } catch (const OutOfMemory&) {
    throw;
  } catch (const std::exception& error) {  // told below
    if (!is_of_library(error)) throw;
  }
  const std::vector<std::int64_t> symbols = match(pattern, request.signature).value();
  const bool meets_small = has_small(symbols) || (first && has_small_within(first->form.recording.graph, symbols));
  Run known = run(request.signature, request, Kept::draft_and_recording, first ? first->form.recording : Recording());
  try {
    if (first && !how_it_differs(first->form, known, symbols)) return finished(std::move(*first), request);
  } catch (const InternalError&) { throw; } catch (const OutOfMemory&) {
    throw;
  } catch (const Error&) { first.reset(); }  // such as a size that is negative here; told below
  auto open = run_open(pattern, request, known);
  if (first && !Trace::are_alike(first->form.recording.choices, known.form.recording.choices) && !reason.empty())
    reason += " (an op computes in another way at this size)";
  Unlike unlike;
  if (Run* same = std::get_if<Run>(&open)) try {
      return finished(std::move(*same), request);
    } catch (const OutOfMemory&) { throw; } catch (const Error& error) {
      unlike = Unlike::by(error);
    }
  else unlike = std::get<Unlike>(open);
  const bool is_small = unlike.cause == Unlike::Cause::another_program && meets_small;
  const bool may_be_fixed = unlike.is_of_op() || setup_.options.fixes_sizes;
  if (!setup_.options.input_signature.empty() && !may_be_fixed && !is_small)
    throw InvalidArgument(text(setup_.title, ": ", unlike.refusal(pattern)));
  if (may_be_fixed) variants_.note_needing_sizes(request.signature);
  if (auto narrower = make_narrower(pattern, request, known, unlike, reason)) return narrower;
  reason += (reason.empty() ? "" : " ") + unlike.fixing_all();
  return finished(std::move(known), request);
}

/// With one of several sizes fixed, the first one that suffices.
std::shared_ptr<Variant> VariantMaker::make_narrower(const Signature& pattern, CallRequest& request, const Run& known,
                                                     const Unlike& unlike, std::string& reason) const {
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

void VariantMaker::confirm(Variant& variant, Segment& segment, CallRequest& request) const {
  const std::vector<std::int64_t> symbols = request.values.symbols();
  try {
    Run known = run(request.signature, request, Kept::recording, {.choices = variant.choices});
    Recording& recording = known.form.recording;
    const bool chooses_alike = Trace::are_alike(recording.choices, variant.choices);
    recording.choices = variant.choices;
    bool is_the_same = false;
    if (chooses_alike && variant.open) try {
        is_the_same = !how_it_differs(*variant.open, known, symbols);
      } catch (const InternalError&) { throw; } catch (const OutOfMemory&) {
        throw;
      } catch (const Error&) {}  // such as a size that is negative here; run_open decides
    if (!is_the_same && (!chooses_alike || std::holds_alternative<Unlike>(run_open(variant.pattern, request, known)))) {
      variant.unfit.insert(symbols);
      return;
    }
    note_fitting(*variant.root, recording.ways, symbols);
  } catch (const InvalidArgument&) {  // that of nothing: reshape(x, {0, -1}) can be worked out for open sizes alone
    if (std::ranges::count(symbols, 0) == 0) throw;
  }
  segment.fitting.insert(symbols);  // where the state of the program has changed, another path than this run took
}

std::unique_ptr<Segment> VariantMaker::extend(Variant& variant, CallRequest& request) const {
  require<ResourceExhausted>(
      variant.paths < Variant::most_paths, setup_.title, ": more than ", Variant::most_paths,
      " paths through its C++ branches on tensor values; make a loop whose length depends on values a while_loop, one "
      "of known length a scan, and a branch a cond");
  require(!variant.is_being_traced, setup_.title, ": called by what it calls while it is traced");
  struct BeingTraced {
    bool& flag;
    explicit BeingTraced(bool& f) : flag(f) { flag = true; }
    ~BeingTraced() { flag = false; }
  };
  std::optional<Draft> draft;
  {
    const CompileActivity activity(text("trace ", setup_.title));
    const BeingTraced flag(variant.is_being_traced);
    Guide guide(request.values, setup_.title);
    Trace trace(variant.memory, setup_.closure, std::ref(guide));
    if (!request.values.symbols().empty()) trace.set_limit(applications_after(variant.memory->size()));
    trace.repeat_choices(variant.choices, request.values.symbols().empty());
    Called called = request.body(trace.parameters());
    if (guide.has_diverged(trace)) return nullptr;
    check_unchanged(setup_.title, trace.watched());
    variants_.add_watched(variant, trace.watched());
    draft.emplace(trace, std::move(called), request.values.path(), setup_.hand_on());
  }
  return compiled(std::move(*draft), variant.pattern, request);
}

}  // namespace gradus
