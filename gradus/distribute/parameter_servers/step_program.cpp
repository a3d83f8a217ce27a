/// Tracing a step, and where it is cut.
#include "gradus/distribute/parameter_servers/step_program.h"
#include <algorithm>
#include "gradus/backend/executable.h"
#include "gradus/function/active_call.h"
#include "gradus/function/resident.h"
#include "gradus/function/segment.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/trace_names.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/views.h"

namespace gradus::detail {

/// The dependences of nodes, as far as they decide which part computes them.
class StepProgram::Cut {
 public:
  explicit Cut(const Trace& trace) : trace_(trace) {
    for (const Trace::Given& given : trace.all_given()) given_.emplace(given.as_seen.node().get(), given.made);
  }

  struct Kind {
    bool of_batch = false;  // on arguments or random keys, not by way of a gradient that an optimizer was given
    bool of_given = false;  // on an optimizer's input
    bool is_pushed() const { return of_batch && !of_given; }
  };
  const Tensor* made_of(const Node& node) const {
    const auto found = given_.find(&node);
    return found == given_.end() ? nullptr : &found->second;
  }

  Kind kind_of(const Node& root) {
    std::vector<const Node*> stack{&root};
    while (!stack.empty()) {
      const Node* const node = stack.back();
      if (known_.contains(node)) {
        stack.pop_back();
      } else if (made_of(*node) != nullptr) {
        known_[node] = {.of_given = true};
      } else if (node->trace != trace_.memory().id()) {
        known_[node] = {};
      } else if (node->is_leaf()) {
        const auto kind = trace_.memory().source_of(*node).kind;
        known_[node] = {.of_batch = kind == Source::Kind::argument || kind == Source::Kind::call_key};
      } else {
        const auto waits =
            std::ranges::find_if(node->inputs, [&](const auto& in) { return !known_.contains(in.get()); });
        if (waits != node->inputs.end()) {
          for (const Ref<Node>& in : node->inputs)
            if (!known_.contains(in.get())) stack.push_back(in.get());
          continue;
        }
        Kind kind;
        for (const Ref<Node>& in : node->inputs) {
          const Kind one = known_.at(in.get());
          kind.of_batch |= one.of_batch, kind.of_given |= one.of_given;
        }
        known_[node] = kind;
      }
    }
    return known_.at(&root);
  }

  /// It stands for an optimizer's input.
  void note_pushed(const Node& as_seen) { known_[&as_seen] = {.of_given = true}; }

  /// True if `root` depends on `leaf`.
  bool depends(const Node& root, const Node& leaf) const {
    std::vector<const Node*> stack{&root};
    std::unordered_map<const Node*, bool> seen;
    while (!stack.empty()) {
      const Node* const node = stack.back();
      stack.pop_back();
      if (node == &leaf) return true;
      if (!seen.emplace(node, true).second || node->trace != trace_.memory().id()) continue;
      for (const Ref<Node>& in : node->inputs) stack.push_back(in.get());
    }
    return false;
  }

 private:
  const Trace& trace_;
  std::unordered_map<const Node*, Tensor> given_;
  std::unordered_map<const Node*, Kind> known_;
};

namespace {

void check_aggregation(const VariableCell& cell) {
  require(cell.aggregation != Aggregation::none, "assign to variable ", cell.name,
          ": its new value is made of the old one and of the batch, and other workers may have changed it meanwhile; "
          "make the Variable with {.aggregation = Aggregation::sum} or Aggregation::mean, so that changes add up, or "
          "give the strategy .max_staleness = 0");
  require(cell.spec.dtype != boolean, "assign to variable ", cell.name, ": changes of booleans cannot be added up");
}

/// The worker's value if the server's is unchanged, else the server's value plus the worker's change.
Tensor joined(const Tensor& fresh, const Tensor& read, const Tensor& made) {
  return where(equal(fresh, read), made, fresh + (made - read));
}

}  // namespace

StepProgram::StepProgram(const StepIdentity& identity, In examples, const Body& body, bool is_in_step) {
  static const std::string title = "strategy.schedule";
  const ActiveCall active(title, identity.step ? identity.step.get() : identity.closure);
  std::vector<Spec> specs;
  for (const Tensor& example : examples) specs.push_back(example.spec());
  memory_ = std::make_shared<TraceMemory>(specs, Trace::new_id());
  name_trace(memory_->id(), title);
  std::vector<Ref<Node>> roots;
  {
    Trace trace(memory_, {identity.closure, identity.closure_bytes}, {});
    trace.keep_given();
    Called called = body(trace.parameters());
    watched_ = trace.watched();
    structure_ = called.structure;
    for (const Tensor& result : called.tensors) {
      results_.emplace_back(result.defined() ? static_cast<int>(roots.size()) : -1,
                            result.defined() ? result.spec() : Spec());
      if (result.defined()) roots.push_back(result.node());
    }
    for (const auto& cell : trace.cells())
      cells_.push_back({cell->cell, cell->index, cell->was_abandoned, cell->cell->mask_id.load()});
    Cut cut(trace);
    for (const auto& cell : trace.cells()) {
      if (!cell->assigned || cell->now.node() == cell->parameter.node()) continue;
      Tensor next = cell->now;
      const Cut::Kind kind = cut.kind_of(*next.node());
      const auto pushed_as = [&](const Tensor& made) {
        Tensor as_seen = apply(ReshapeOp{made.shape()}, made);
        cuts_.emplace(as_seen.node().get(), push(made));
        cut.note_pushed(*as_seen.node());
        return as_seen;
      };
      if (kind.is_pushed()) {
        const bool is_change = !is_in_step && cut.depends(*next.node(), *cell->parameter.node());
        if (is_change) check_aggregation(*cell->cell);
        next = is_change ? joined(cell->parameter, pushed_as(cell->parameter), pushed_as(next)) : pushed_as(next);
      }
      updates_.push_back({cell->cell, next, {}});
    }
    // Where each update stops, and which Variables it reads.
    for (Update& update : updates_) {
      std::vector<const Node*> stack{update.next.node().get()};
      std::unordered_map<const Node*, bool> seen;
      while (!stack.empty()) {
        const Node* const node = stack.back();
        stack.pop_back();
        if (!seen.emplace(node, true).second || cuts_.contains(node) || node->trace != memory_->id()) continue;
        if (const Tensor* const made = cut.made_of(*node)) {
          cuts_.emplace(node, push(*made));
        } else if (cut.kind_of(*node).is_pushed()) {
          cuts_.emplace(node, push(Tensor(Ref<Node>(const_cast<Node*>(node)))));
        } else if (node->is_leaf()) {
          const Source source = memory_->source_of(*node);
          if (source.kind == Source::Kind::cell) update.reads.push_back(cell_of(source.index));
        } else {
          for (const Ref<Node>& in : node->inputs) stack.push_back(in.get());
        }
      }
    }
    Called checked{.tensors = called.tensors, .structure = nullptr};
    const Draft draft(trace, std::move(checked), {}, HandOn::nothing);
    called = {};
    draft.check_cells();
    draft.check_copies();
  }
  for (const Tensor& made : pushed_) {
    const auto known = std::ranges::find(roots, made.node());
    push_outputs_.push_back(static_cast<int>(known - roots.begin()));
    if (known == roots.end()) roots.push_back(made.node());
    pushed_specs_.push_back({made.spec().dtype, made.spec().shape});
  }
  bind_worker(roots, {.disable = identity.options.disable,
                      .max_bytes = static_cast<std::int64_t>(identity.options.max_bytes),
                      .matmul_precision = identity.options.matmul_precision});
}

int StepProgram::push(const Tensor& made) {
  const auto known = std::ranges::find(pushed_, made.node(), &Tensor::node);
  if (known != pushed_.end()) return static_cast<int>(known - pushed_.begin());
  pushed_.push_back(made);
  return static_cast<int>(pushed_.size()) - 1;
}

const StepProgram::KnownCell& StepProgram::known_cell(int index) const {
  return *std::ranges::find(cells_, index, &KnownCell::index);
}

StepProgram::Cell StepProgram::cell_of(int index) const {
  Cell cell = known_cell(index).cell.lock();
  internal_check(cell != nullptr, "a Variable of a step is gone while it is cut");
  return cell;
}

void StepProgram::bind_worker(const std::vector<Ref<Node>>& roots, const CompileOptions& options) {
  Flattened flat = flatten(roots, [&](const Node& node) { return node.trace != memory_->id(); });
  for (const Ref<Node>& node : flat.inputs) {
    Source& source = sources_.emplace_back(memory_->source_of(*node));
    if (source.kind == Source::Kind::cell) {
      const Cell cell = cell_of(source.index);
      const auto known = std::ranges::find(reads_, cell);
      source.index = static_cast<int>(known - reads_.begin());
      if (known == reads_.end()) reads_.push_back(cell);
    } else if (source.kind == Source::Kind::capture) {
      source.index = static_cast<int>(captures_.size());
      captures_.emplace_back(node).observed();
    }
  }
  hash_ = hash_of(flat.graph);
  worker_ = std::make_unique<TieredProgram>(std::move(flat.graph), options);
}

bool StepProgram::is_random() const {
  return std::ranges::find(sources_, Source::Kind::call_key, &Source::kind) != sources_.end();
}

bool StepProgram::holds() const {
  const auto is_as_met = [](const KnownCell& met) {
    const Cell cell = met.cell.lock();
    return cell && (met.was_abandoned || !cell->abandoned.load()) && cell->mask_id.load() == met.mask_id;
  };
  return watched_.holds(watched_until_) && std::ranges::all_of(cells_, is_as_met);
}

std::vector<StepProgram::Cell> StepProgram::cells() const {
  std::vector<Cell> out;
  for (const KnownCell& met : cells_) out.push_back(met.cell.lock());
  return out;
}

StepProgram::Outcome StepProgram::run(std::span<const Ref<Buffer>> arguments, std::span<const Ref<Buffer>> read,
                                      const Ref<Buffer>& key) const {
  std::vector<Ref<Buffer>> inputs;
  for (const Source& source : sources_) {
    const auto index = static_cast<std::size_t>(source.index);
    switch (source.kind) {
      case Source::Kind::argument: inputs.push_back(arguments[index]); break;
      case Source::Kind::cell: inputs.push_back(read[index]); break;
      case Source::Kind::call_key: inputs.push_back(key); break;
      case Source::Kind::capture: inputs.push_back(resident(captures_[index])); break;
      case Source::Kind::yield: throw InternalError("internal fault: a step without branches hands nothing on");
    }
  }
  const auto program = worker_->next();
  std::vector<Ref<Buffer>> outputs(program->graph().outputs.size());
  program->run(inputs, outputs);
  program->wait(outputs);
  Outcome out;
  for (const auto& [output, spec] : results_)
    out.results.push_back(output < 0 ? Tensor() : Tensor::of_buffer(spec, outputs[static_cast<std::size_t>(output)]));
  for (const int output : push_outputs_)
    out.pushes.push_back(Buffer::on_host(outputs[static_cast<std::size_t>(output)]));
  return out;
}

StepProgram::ServerPart StepProgram::server_part(const std::vector<const Update*>& updates) const {
  ServerPart part;
  std::vector<Ref<Node>> roots;
  for (const Update* const update : updates) {
    part.assigns.push_back(update->cell);
    roots.push_back(update->next.node());
  }
  Flattened flat =
      flatten(roots, [&](const Node& node) { return node.trace != memory_->id() || cuts_.contains(&node); });
  using Input = ServerPart::Input;
  const auto add = [&](Input::Kind kind, auto& list, auto entry) {
    part.inputs.push_back({kind, static_cast<int>(list.size())});
    list.push_back(std::move(entry));
  };
  for (const Ref<Node>& node : flat.inputs) {
    if (const auto cut = cuts_.find(node.get()); cut != cuts_.end()) {
      add(Input::Kind::push, part.pushes, cut->second);
    } else if (const Source source = memory_->source_of(*node); source.kind == Source::Kind::cell) {
      add(Input::Kind::cell, part.reads, cell_of(source.index));
    } else {
      internal_check(source.kind == Source::Kind::capture, "the part of a server depends on the batch");
      add(Input::Kind::capture, part.captures, Tensor(node));
      part.captures.back().observed();
    }
  }
  part.graph = std::move(flat.graph);
  return part;
}

}  // namespace gradus::detail
