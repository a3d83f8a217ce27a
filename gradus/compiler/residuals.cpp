/// Values that the body of a loop's gradient would compute again from the loop's own body are kept by the loop, as one
/// more stacked result, where writing and reading it takes less time. The two loops are matched by their sequences: an
/// element of the same tensor, or of a history of the first, is the same value in both, and so are values computed from
/// it. Decision 133 has the reasons.
#include <algorithm>
#include <unordered_map>
#include "gradus/compiler/passes.h"
#include "gradus/graph/applications.h"
#include "gradus/graph/rewriter.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/conv_ops.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/scalar/rare_parts.h"

namespace gradus {
namespace {

/// The residuals of an iteration may be this many times the histories and elements that its gradient reads.
constexpr std::int64_t most_growth = 2;

double elements(const Spec& spec) { return static_cast<double>(usual_elements(spec.shape)); }
double bytes(const Spec& spec) { return elements(spec) * static_cast<double>(size_of(spec.dtype)); }
/// To write and to read it.
double cost_of_keeping(const Value& v, const TargetModel& target) {
  return 2 * target.instructions_per_byte * bytes(v.spec);
}

bool is_free(const Value& v) { return v.is_constant || v.op.is_index(); }
bool is_another_look(const Value& v) { return v.op.is_view() || v.op.is_alias(); }

/// Operations to compute `v` again.
double cost_of(const Graph& graph, const Value& v) {
  if (!v.op || is_free(v) || is_another_look(v)) return 0;
  std::vector<DType> types;
  for (int operand : v.in) types.push_back(graph[operand].spec.dtype);
  if (v.op.is_elementwise())
    return elements(v.spec) * static_cast<double>(scalar::usual_instructions(v.op.formula(types)));
  if (v.op.is_reduction()) return elements(graph[v.in[0]].spec);
  if (const Matmul* product = v.op.as<Matmul>())
    return 2 * elements(v.spec) * elements({f32, {graph[v.in[0]].spec.shape[product->transpose_a ? -2 : -1]}});
  if (v.op.as<Convolution>())
    return 2 * elements(v.spec) * elements(graph[v.in[1]].spec) / std::max(1.0, elements({f32, {v.spec.shape[-1]}}));
  return elements(v.spec);
}

/// An application of a scan, as it becomes. Operands are values of the graph around it, or numbers past those: the
/// stacked result `result` of loop `loop`, as Results has it.
struct Loop {
  AnyOp before;
  Scan scan;
  Graph body;
  std::vector<int> operands;
  int added = 0;  // results

  std::size_t first_whole() const { return at(scan.first_whole() - scan.first_carry()); }
  int operand(std::size_t input) const { return operands[input + at(scan.first_carry())]; }
  bool takes_part() const {
    return scan.chunks == 0 && !scan.last && body.outputs.size() == at(scan.carries + scan.stacked);
  }
};

/// Values of a body by their computation.
class Known {
 public:
  explicit Known(const Graph& graph) : graph_(graph) {
    for (int i = 0; i < graph.size(); ++i) {
      const Value v = renamed(graph[i]);
      const int same = v.is_input() ? -1 : find(v);
      first_.push_back(same < 0 ? i : same);
      if (same < 0 && !v.is_input()) places_.emplace(hash_of(v), i);
    }
  }
  /// The first of the values that are equal to i.
  int first(int i) const { return first_[i]; }
  /// -1: there is none. Operands are first ones.
  int find(const Value& v) const {
    for (auto [it, last] = places_.equal_range(hash_of(v)); it != last; ++it) {
      const Value other = renamed(graph_[it->second]);
      if (other == v) return it->second;
    }
    return -1;
  }

 private:
  Value renamed(Value v) const {
    for (int& operand : v.in) operand = first_[operand];
    return v;
  }

  const Graph& graph_;
  PerValue<int> first_;
  std::unordered_multimap<std::uint64_t, int> places_;
};

/// Values of the first body that a second one recomputes.
class Again {
 public:
  /// `same_as`: per input of `second` the equal value of the first body, or -1. Inputs before `first_whole` are
  /// elements.
  Again(const Known& known, const Graph& second, const std::vector<int>& same_as, std::size_t first_whole,
        const TargetModel& target)
      : graph_(second), target_(target), first_whole_(first_whole), same_(second, -1), needed_(second), kept_(second) {
    for (std::size_t k = 0; k < second.inputs.size(); ++k) same_[second.inputs[k]] = same_as[k];
    for (int i = 0; i < second.size(); ++i)
      if (!second[i].is_input()) same_[i] = find(known, second[i]);
    for (int o : second.outputs) needed_[o] = true;
    needed_ = needed_for(second, std::move(needed_));
  }

  /// The equal value of the first body, or -1.
  int same(int i) const { return same_[i]; }

  /// The values of the second body that had better be kept. None if it does not pay.
  std::vector<int> choose() {
    for (int o : graph_.outputs) want(o);
    for (int i = 0; i < graph_.size(); ++i)
      if (needed_[i] && same_[i] < 0)
        for (int operand : graph_[i].in) want(operand);
    double gain = 0, size = 0, taken = 0;
    std::vector<int> chosen;
    for (int i = graph_.size() - 1; i >= 0; --i) {
      const Value& v = graph_[i];
      if (!needed_[i] || same_[i] < 0 || v.is_input()) continue;
      gain += cost_of(graph_, v);
      if (!kept_[i]) continue;
      if (is_computed_again(v)) {
        gain -= cost_of(graph_, v);
        for (int operand : v.in) want(operand);
      } else {
        gain -= cost_of_keeping(v, target_);
        size += bytes(v.spec);
        chosen.push_back(i);
      }
    }
    for (std::size_t k = 0; k < first_whole_; ++k)
      if (const int i = graph_.inputs[k]; same_[i] >= 0 && needed_[i]) taken += bytes(graph_[i].spec);
    if (gain <= 0 || size > static_cast<double>(most_growth) * taken) return {};
    std::ranges::reverse(chosen);
    return chosen;
  }

 private:
  int find(const Known& known, Value v) const {
    if (v.op.is_control() || v.op.has_siblings()) return -1;
    for (int& operand : v.in) {
      operand = same_[operand];
      if (operand < 0) return -1;
    }
    return known.find(v);
  }
  void want(int i) {
    if (same_[i] >= 0 && !graph_[i].is_input()) kept_[i] = true;
  }
  bool is_at_hand(int i) const {
    while (is_another_look(graph_[i]) && !kept_[i]) i = graph_[i].in[0];
    return kept_[i] || graph_[i].is_input() || is_free(graph_[i]);
  }
  /// True for values that are rather computed than read from memory: cheap ones of operands at hand, and views of
  /// values that are no larger.
  bool is_computed_again(const Value& v) const {
    if (is_free(v)) return true;
    if (is_another_look(v) && elements(graph_[v.in[0]].spec) <= elements(v.spec)) return true;
    return std::ranges::all_of(v.in, [&](int operand) { return is_at_hand(operand); }) &&
           cost_of(graph_, v) < cost_of_keeping(v, target_);
  }

  const Graph& graph_;
  const TargetModel& target_;
  const std::size_t first_whole_;
  PerValue<int> same_;
  PerValue<bool> needed_;
  PerValue<bool> kept_;  // wanted, while choosing
};

class Keeper {
 public:
  Keeper(const Graph& graph, const TargetModel& target) : graph_(graph), target_(target), loop_of_(graph, -1) {}

  /// True if anything changes.
  bool run() {
    for (int i = 0; i < graph_.size(); ++i)
      if (const Scan* scan = graph_[i].op ? graph_[i].op.as<Scan>() : nullptr) loop_of_[i] = find_or_add(i, *scan);
    for (std::size_t second = 1; second < loops_.size(); ++second)
      for (std::size_t first = 0; first < second; ++first)
        if (loops_[first].takes_part() && loops_[second].takes_part()) look_at(first, second);
    return changed_;
  }

  Graph rebuilt() {
    Graph made;
    GraphRewriter places(graph_, made);
    Numbered<int> of_results(results_.size(), -1);  // where stacked results stand
    Numbered<Scan> scans;
    for (Loop& loop : loops_) {
      scans.push_back(loop.scan);
      if (loop.takes_part()) scans.back().body = Region(std::move(loop.body));
    }
    const auto place_of = [&](int operand) {
      if (operand < graph_.size()) return places[operand];
      return of_results[operand - graph_.size()];
    };
    const auto operands_of = [&](const Loop& loop) {
      std::vector<int> in;
      for (int operand : loop.operands) {
        if (place_of(operand) < 0) of_results[operand - graph_.size()] = add_result(made, operand, scans, place_of);
        in.push_back(place_of(operand));
      }
      return in;
    };
    for (int i = 0; i < graph_.size(); ++i) {
      const int number = loop_of_[i];
      if (number < 0) {
        places.keep(i);
        continue;
      }
      const Loop& loop = loops_[number];
      Value v = graph_[i];
      Scan scan = scans[number];
      scan.output = v.op.output();
      if (scan.output >= loop.scan.carries + loop.scan.stacked - loop.added) scan.output += loop.added;
      v.op = AnyOp::of(scan);
      v.in = operands_of(loop);
      places.replace(i, std::move(v));
    }
    places.finish();
    return made;
  }

 private:
  /// A stacked result of a loop, which is written as the operand graph_.size() + its place in results_.
  struct Result {
    std::size_t loop;
    int number;  // among the stacked results
    bool operator==(const Result&) const = default;
  };

  int find_or_add(int i, const Scan& scan) {
    const auto [number, is_new] = applications_.find_or_add(graph_[i].op, graph_[i].in);
    if (!is_new) return number;
    Loop made{.before = graph_[i].op.sibling(0), .scan = scan, .body = scan.body.graph(), .operands = {}};
    for (int operand : graph_[i].in) made.operands.push_back(normal(operand));
    loops_.push_back(std::move(made));
    return number;
  }

  /// Stacked results as such, wanted or not.
  int normal(int operand) {
    const int loop = loop_of_[operand];
    if (loop < 0) return operand;
    const Scan& scan = loops_[loop].scan;
    const int output = graph_[operand].op.output();
    if (output < scan.carries || output >= scan.carries + scan.stacked) return operand;
    return operand_for({at(loop), output - scan.carries});
  }
  int operand_for(const Result& result) {
    const auto found = std::ranges::find(results_, result);
    const auto place = found - results_.begin();
    if (found == results_.end()) results_.push_back(result);
    return graph_.size() + static_cast<int>(place);
  }

  /// Per input of the second body the same value of the first one, or -1. None if no element is the same.
  std::vector<int> same_inputs(std::size_t first, const Loop& second) const {
    std::vector<int> same(second.body.inputs.size(), -1);
    bool any = false;
    for (std::size_t k = at(second.scan.carries); k < second.first_whole(); ++k)
      any |= (same[k] = same_element(first, second.operand(k))) >= 0;
    if (!any) return {};
    for (std::size_t k = second.first_whole(); k < same.size(); ++k)
      same[k] = same_whole(loops_[first], second.operand(k));
    return same;
  }
  static int same_whole(const Loop& loop, int operand) {
    for (std::size_t k = loop.first_whole(); k < loop.body.inputs.size(); ++k)
      if (loop.operand(k) == operand) return loop.body.inputs[k];
    return -1;
  }
  int same_element(std::size_t first, int operand) const {
    const Loop& loop = loops_[first];
    for (std::size_t k = at(loop.scan.carries); k < loop.first_whole(); ++k)
      if (loop.operand(k) == operand) return loop.body.inputs[k];
    if (operand >= graph_.size()) {
      const Result& result = results_[operand - graph_.size()];
      return result.loop == first ? loop.body.outputs[at(loop.scan.carries + result.number)] : -1;
    }
    if (loop_of_[operand] != static_cast<int>(first)) return -1;
    const int carry = graph_[operand].op.output() - static_cast<int>(loop.before.as<Scan>()->body.outputs());
    return carry >= 0 ? loop.body.inputs[at(carry)] : -1;
  }

  void look_at(std::size_t first, std::size_t second) {
    Loop &made = loops_[first], &again = loops_[second];
    if (made.scan.iterations != again.scan.iterations || made.scan.counted != again.scan.counted) return;
    if (made.scan.counted && made.operands[0] != again.operands[0]) return;
    std::vector<int> inputs = same_inputs(first, again);
    if (inputs.empty()) return;
    const Known known(made.body);
    for (int& i : inputs)
      if (i >= 0) i = known.first(i);
    Again computed(known, again.body, inputs, again.first_whole(), target_);
    const std::vector<int> chosen = computed.choose();
    if (chosen.empty()) return;
    std::vector<std::pair<int, int>> replaced;  // values of the second body and their operands
    for (int i : chosen) replaced.emplace_back(i, operand_for({first, kept_by(made, known, computed.same(i))}));
    take(again, replaced);
    changed_ = true;
  }

  /// The number of the stacked result that is `value`.
  static int kept_by(Loop& loop, const Known& known, int value) {
    for (int k = 0; k < loop.scan.stacked; ++k)
      if (known.first(loop.body.outputs[at(loop.scan.carries + k)]) == value) return k;
    loop.body.outputs.push_back(value);
    ++loop.added;
    return loop.scan.stacked++;
  }

  /// Reads elements of operands where values were computed, and drops unused values.
  static void take(Loop& loop, const std::vector<std::pair<int, int>>& replaced) {
    Graph& body = loop.body;
    PerValue<int> stands_for(body);
    for (int i = 0; i < body.size(); ++i) stands_for[i] = i;
    auto place = static_cast<std::ptrdiff_t>(loop.first_whole());
    for (const auto& [value, operand] : replaced) {
      stands_for[value] = body.add({.spec = body[value].spec});
      body.inputs.insert(body.inputs.begin() + place, stands_for[value]);
      loop.operands.insert(loop.operands.begin() + loop.scan.first_carry() + place, operand);
      ++loop.scan.singles;
      ++place;
    }
    const int size = static_cast<int>(stands_for.size());
    for (int i = 0; i < size; ++i)
      for (int& operand : body[i].in) operand = stands_for[operand];
    for (int& o : body.outputs) o = stands_for[o];
    drop_unneeded(loop, size);
  }

  /// Inputs are those before value `size` and all from there on.
  static void drop_unneeded(Loop& loop, int size) {
    Graph& body = loop.body;
    PerValue<bool> wanted(body);
    for (int o : body.outputs) wanted[o] = true;
    for (int k = 0; k < loop.scan.carries; ++k) wanted[body.inputs[at(k)]] = true;
    const PerValue<bool> needed = needed_for(body, std::move(wanted));
    Graph kept;
    GraphRewriter places(body, kept);
    std::vector<int> operands(loop.operands.begin(), loop.operands.begin() + loop.scan.first_carry());
    int singles = 0;
    for (std::size_t k = 0; k < body.inputs.size(); ++k) {
      const int i = body.inputs[k];
      if (!needed[i]) continue;
      if (k >= at(loop.scan.carries) && k < loop.first_whole()) ++singles;
      kept.inputs.push_back(places.keep(i));
      operands.push_back(loop.operand(k));
    }
    for (int i = 0; i < size; ++i)
      if (needed[i] && !body[i].is_input()) places.keep(i);
    kept.outputs = body.outputs;
    places.rename(kept.outputs);
    loop.scan.singles = singles;
    loop.operands = std::move(operands);
    body = std::move(kept);
  }

  /// A result of a loop that stands before.
  int add_result(Graph& made, int operand, const Numbered<Scan>& scans, const std::function<int(int)>& place_of) const {
    const Result& result = results_[operand - graph_.size()];
    const Loop& loop = loops_[result.loop];
    Scan scan = scans[result.loop];
    scan.output = scan.carries + result.number;
    Value v{.op = AnyOp::of(scan), .in = {}, .spec = scan.body.output(at(scan.output))};
    v.spec.shape.insert(0, scan.iterations);
    for (int each : loop.operands) v.in.push_back(place_of(each));
    return made.add(std::move(v));
  }

  const Graph& graph_;
  const TargetModel& target_;
  PerValue<int> loop_of_;  // the loop whose result it is; -1: it is none
  Applications<int> applications_;
  Numbered<Loop> loops_;
  Numbered<Result> results_;
  bool changed_ = false;
};

}  // namespace

void keep_residuals(Graph& graph, const TargetModel& target) {
  const auto is_scan = [](const Value& v) { return v.op && v.op.as<Scan>(); };
  if (std::ranges::none_of(graph.values, is_scan)) return;
  Keeper keeper(graph, target);
  if (!keeper.run()) return;
  graph = keeper.rebuilt();
  eliminate_common_subexpressions(graph);
}

}  // namespace gradus
