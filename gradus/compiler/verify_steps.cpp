/// Checks of steps. The costly faults of a compiler are here: steps in a circle, memory that is read before it was
/// written, or written while it is still read. Decision 225 has the reasons.
#include "gradus/compiler/verify_steps.h"
#include <algorithm>
#include "gradus/base/error.h"

namespace gradus {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, std::span<const Step> steps)
      : graph_(graph), steps_(steps), writer_(graph, -1), member_of_(writer_), last_reader_(writer_) {}

  void run() {
    for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
      check_members(s);
      check_reads(s);
      for (int output : steps_[at(s)].outputs) writer_[output] = s;
    }
    for (int output : graph_.outputs)
      require_written(storage_of(graph_, output), "the graph yields %", output, ", which no step writes");
  }

  void run(const Sharing& sharing) {
    run();
    check_size(sharing);
    for (std::size_t k = 0; k < sharing.may_overwrite.size(); ++k)
      if (const int input = sharing.may_overwrite[k]; input >= 0)
        check_taken(storage_of(graph_, graph_.outputs[k]), input, sharing);
    for (const Inside& inside : sharing.inside)
      check_unread_after(inside.value, writer_[inside.output], "lies within %", inside.output);
  }

 private:
  template <class... Parts> void check(bool ok, const Parts&... parts) const {
    if (!ok) throw InternalError(text("internal fault: ", parts..., ":\n", to_text(graph_), to_text(steps_)));
  }
  template <class... Parts> void require_written(int storage, const Parts&... parts) const {
    check(graph_[storage].is_input() || writer_[storage] >= 0, parts...);
  }

  void check_members(int s) {
    const Step& step = steps_[at(s)];
    check(!step.members.empty(), "step ", s, " has no members");
    for (const std::vector<int>* list : {&step.members, &step.outputs})
      check(std::ranges::adjacent_find(*list, std::greater_equal<>()) == list->end(), "step ", s, " is not ascending");
    for (int i : step.members) {
      check(i >= 0 && i < graph_.size(), "step ", s, " has a member %", i, " that the graph lacks");
      check(member_of_[i] < 0, "%", i, " is a member of steps ", member_of_[i], " and ", s);
      member_of_[i] = s;
      check(is_computed_by(graph_[i], i, step), "step ", s, " cannot compute %", i);
    }
    check(std::ranges::includes(step.members, step.outputs), "step ", s, " writes what it does not compute");
    const bool is_product = step.kind == Step::Kind::product;
    check(is_product == (step.product >= 0), "step ", s, " has a product that is none of its kind");
    check(!is_product || (std::ranges::binary_search(step.members, step.product) &&
                          !std::ranges::binary_search(step.outputs, step.product)),
          "the product of step ", s, " is no member, or is written");
    check(step.kind != Step::Kind::library || step.members.size() == 1, "step ", s, " has several library calls");
  }
  static bool is_computed_by(const Value& v, int i, const Step& step) {
    if (v.is_input() || v.op.is_alias()) return false;
    return kind_of(v) == (step.is_in_loops(i)  ? Step::Kind::loops
                          : i == step.called() ? Step::Kind::library
                                               : step.kind);
  }

  void check_reads(int s) {
    const Step& step = steps_[at(s)];
    for (const Read& read : reads_of(graph_, step)) {
      require_written(read.storage, "step ", s, " reads %", read.storage, ", which no step before it writes");
      last_reader_[read.storage] = s;
    }
    if (std::ranges::any_of(step.members, [&](int i) { return graph_[i].op.may_fail(); })) last_failure_ = s;
    for (int awaited : waits_of(graph_, step))  // it has run, or never will: its results are not needed
      check(member_of_[awaited] >= 0 || !is_member_after(s, awaited), "step ", s, " waits for %", awaited,
            ", which a later step computes");
  }

  bool is_member_after(int s, int value) const {
    return std::ranges::any_of(steps_.subspan(at(s) + 1),
                               [&](const Step& later) { return std::ranges::binary_search(later.members, value); });
  }

  void check_size(const Sharing& sharing) const {
    check(sharing.may_overwrite.size() == graph_.outputs.size(), "sharing is of ", sharing.may_overwrite.size(),
          " outputs, the graph has ", graph_.outputs.size());
  }

  /// The memory of `input` becomes that of `output` and of all that lies within it.
  void check_taken(int output, int input, const Sharing& sharing) const {
    check(std::ranges::count(graph_.dying, input) > 0, "%", output, " takes over %", input, ", which does not die");
    const Spec &from = graph_[input].spec, &to = graph_[output].spec;
    check(from.dtype == to.dtype && from.shape.size() == to.shape.size(), "%", output, " takes over %", input,
          ", which has another spec");
    check(std::ranges::count(sharing.may_overwrite, input) == 1, "%", input, " is taken over twice");
    int first = writer_[output];
    for (const Inside& inside : sharing.inside)
      if (inside.output == output) first = std::min(first, writer_[inside.value]);
    check_unread_after(input, first, "is taken over by %", output);
    check(last_failure_ <= first, "step ", last_failure_, " may fail when %", input, " is lost to %", output);
  }
  template <class... Parts> void check_unread_after(int storage, int writer, const Parts&... why) const {
    const int reader = last_reader_[storage];
    check(reader <= writer, "step ", reader, " reads %", storage, ", which ", why...);
  }

  const Graph& graph_;
  const std::span<const Step> steps_;
  PerValue<int> writer_, member_of_, last_reader_;  // steps; -1: none
  int last_failure_ = -1;                           // the last step that may fail
};

const char* name_of(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::loops: return "loops";
    case Step::Kind::library: return "library";
    case Step::Kind::control: return "control";
    case Step::Kind::product: return "product";
  }
  return "";
}

}  // namespace

std::string to_text(std::span<const Step> steps) {
  std::string lines;
  for (const Step& step : steps) {
    lines += name_of(step.kind);
    for (int i : step.members) lines += text(" %", i, i == step.product ? "*" : "");
    if (!step.outputs.empty()) lines += " ->";
    for (int i : step.outputs) lines += text(" %", i);
    lines += "\n";
  }
  return lines;
}

void verify(const Graph& graph, std::span<const Step> steps) { Verifier(graph, steps).run(); }

void verify(const Graph& graph, std::span<const Step> steps, const Sharing& sharing) {
  Verifier(graph, steps).run(sharing);
}

}  // namespace gradus
