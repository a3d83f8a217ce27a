/// Regions: their attributes, their making, their replay.
#include "gradus/graph/region.h"
#include <algorithm>
#include <optional>
#include <unordered_map>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/nesting.h"
#include "gradus/graph/rewriter.h"
#include "gradus/graph/scope.h"
#include "gradus/graph/shard_context.h"
#include "gradus/graph/trace_names.h"

namespace gradus {

namespace detail::inline rooms {

struct Region::Contents {
  Graph graph;
  std::uint64_t hash = 0;
  int depth = 1, symbols = 0;
  bool may_fail = false;
};

}  // namespace detail::inline rooms

namespace {

/// The one device of a body.
Placement common_device(Placement a, Placement b) {
  if (!a.is_named() || !b.is_named()) return a.is_named() ? a : b;
  require(
      a == b, "the body of a branch, a loop or a call is on two devices, ", a.device(), " and ", b.device(),
      "; it runs on one: bring what it uses there by .to(device) before, and leave DeviceScope to what is around it");
  return a;
}

}  // namespace

Region::Region(Graph graph) {
  if (!graph.dying.empty()) throw InternalError(text("internal fault: nothing dies in a region:\n", to_text(graph)));
  auto contents = std::make_shared<Contents>();
  Placement device;
  for (Value& v : graph.values) {
    device = common_device(device, v.spec.device);
    v.spec.device = {};
    for (const Region* inner : v.op.regions()) contents->depth = std::max(contents->depth, inner->depth() + 1);
    contents->may_fail = contents->may_fail || v.op.may_fail();
  }
  require(contents->depth <= max_depth, "control flow is nested more than ", max_depth,
          " deep; use a loop in place of recursion");
  contents->symbols = graph.symbols();
  contents->hash = hash_of(graph);
  contents->graph = std::move(graph);
  contents_ = std::move(contents);
}

const Graph& Region::graph() const {
  internal_check(static_cast<bool>(contents_), "an empty region is used");
  return contents_->graph;
}
std::uint64_t Region::hash() const { return contents_ ? contents_->hash : 0; }
int Region::depth() const { return contents_ ? contents_->depth : 0; }
int Region::symbols() const { return contents_ ? contents_->symbols : 0; }
bool Region::may_fail() const { return contents_ && contents_->may_fail; }
bool Region::operator==(const Region& other) const {
  if (contents_ == other.contents_) return true;
  return contents_ && other.contents_ && hash() == other.hash() && graph() == other.graph();
}

std::vector<Spec> Region::input_specs() const {
  std::vector<Spec> specs;
  for (int i : graph().inputs) specs.push_back(graph()[i].spec);
  return specs;
}

namespace detail {

void print_field(std::ostream& out, const Region& value) { out << '{' << (value ? to_text(value) : "") << '}'; }
void parse_field(std::string_view written, Region& value) {
  require(written.size() >= 2 && written.front() == '{' && written.back() == '}', "graph text: `", written,
          "` is no region: {values | return ...}");
  value = written.size() == 2 ? Region() : parse_region(written.substr(1, written.size() - 2));
}
std::uint64_t hash_field(const Region& value) { return value.hash(); }

}  // namespace detail

namespace {

/// Within a body nothing is known of other shards.
class ShardsOfRegion final : public ShardContext {
 public:
  ShardsOfRegion(const ShardContext& around, std::string_view construct) : ShardContext(around), construct_(construct) {
    place = nullptr;
    count = 0;
  }
  Tensor sum(const Tensor& part) override {
    throw InvalidArgument(text(construct_, ": shards of a batch cannot be added up inside of it; return ", part.spec(),
                               " from it, and read, clip or apply it after the call"));
  }
  Tensor over(const AnyOp& op, const Tensor& part) override {
    throw InvalidArgument(text(op->name, " inside ", construct_,
                               ": shards of a batch cannot meet inside of it; return ", part.spec(),
                               " from it, and do it after the call"));
  }

 private:
  const std::string_view construct_;
};

/// The context of a region's trace: without assignments, and without sums over shards.
class RegionContext final : public Context {
 public:
  explicit RegionContext(std::string_view construct)
      : construct_(construct),
        why_no_assignment_(
            text("it happens inside ", construct, "; return the new value from it, and assign it after the call")) {
    if (const ShardContext* const around = Context::shards()) shards_.emplace(*around, construct);
  }
  std::string_view why_no_assignment() const override { return why_no_assignment_; }
  ShardContext* shards() override { return shards_ ? &*shards_ : nullptr; }
  bool decide(const Tensor& predicate) override {
    throw InvalidArgument(text("if (tensor) inside ", construct_, ": ", predicate.spec(),
                               " is not known while its body is traced, so C++ cannot branch on it; use "
                               "cond(predicate, if_true, if_false), or where(condition, a, b)"));
  }

 private:
  const std::string_view construct_;
  const std::string why_no_assignment_;
  std::optional<ShardsOfRegion> shards_;
};

}  // namespace

RegionTrace::RegionTrace(std::string_view construct, Specs specs, const std::function<Tensors(In)>& f) {
  const Nesting nesting;
  nesting.check(construct);
  const HostFloats floats;
  RegionContext context(construct);
  id_ = context.id();
  for (const Spec& spec : specs) {
    symbols_.push_back(Tensor::parameter(spec, id_));
    symbols_.back().node()->varies = context.shards() != nullptr;
  }
  results_ = f(symbols_);
  for (const Tensor& result : results_) {
    require(result.defined(), construct, ": a result is an empty tensor; every path must give a value");
    if (!Context::is_active(result.node()->trace))
      throw InvalidArgument(text(construct, ": a result, ", result.spec(), origin_of(*result.node()),
                                 "; return what this call computes"));
  }
}

namespace {

Flattened flatten_region(In roots, std::uint32_t id) {
  std::vector<Ref<Node>> nodes;
  for (const Tensor& root : roots) nodes.push_back(root.node());
  return flatten(nodes, [id](const Node& node) { return node.trace != id; });
}

bool contains(In tensors, const Ref<Node>& node) {
  return std::ranges::any_of(tensors, [&](const Tensor& t) { return t.node() == node; });
}

}  // namespace

void RegionTrace::collect(In roots, Tensors& captures) const {
  for (const Ref<Node>& node : flatten_region(roots, id_).inputs)
    if (node->trace != id_ && !contains(captures, node)) captures.emplace_back(node);
}

namespace {

/// A body that places its ops where neither its inputs nor the scope around it are would run elsewhere than it says.
void check_placed(const Graph& body, In inputs, In captures) {
  if (DeviceScope::current().is_named()) return;
  for (In list : {inputs, captures})
    if (std::ranges::any_of(list, [](const Tensor& input) { return input.spec().device.is_named(); })) return;
  for (const Value& v : body.values)
    require(!v.spec.device.is_named(), "the body of a branch, a loop or a call is placed on ", v.spec.device.physical(),
            ", but its inputs are not; put the DeviceScope around the whole of it");
}

}  // namespace

Region RegionTrace::region(In roots, In symbols, In captures) const {
  const Flattened flat = flatten_region(roots, id_);
  check_placed(flat.graph, symbols, captures);
  Graph graph;
  std::unordered_map<const Node*, int> places;
  for (In list : {symbols, captures})
    for (const Tensor& input : list) {
      graph.inputs.push_back(graph.add({.spec = input.spec(), .scope = input.node()->scope}));
      places.emplace(input.node().get(), graph.inputs.back());
    }
  GraphRewriter at(flat.graph, graph);
  for (std::size_t k = 0; k < flat.inputs.size(); ++k) {
    const auto found = places.find(flat.inputs[k].get());
    internal_check(found != places.end(), "a region uses what is neither its symbol nor captured");
    at.set(flat.graph.inputs[k], found->second);
  }
  for (int i = 0; i < flat.graph.size(); ++i)
    if (!flat.graph[i].is_input()) at.keep(i);
  graph.outputs = flat.graph.outputs;
  at.rename(graph.outputs);
  return Region(std::move(graph));
}

Captured detail::capture(const RegionTrace& trace) {
  Captured made;
  trace.collect(trace.results(), made.captures);
  made.region = trace.region(trace.results(), trace.symbols(), made.captures);
  return made;
}

std::vector<Spec> detail::specs_of(In in) {
  std::vector<Spec> specs;
  for (const Tensor& x : in) specs.push_back(x.spec());
  return specs;
}

Tensors detail::concatenated(std::initializer_list<In> lists) {
  Tensors all;
  for (In list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Tensors detail::replay(const Region& region, In inputs) {
  const Graph& graph = region.graph();
  internal_check(inputs.size() == graph.inputs.size(), "a region of ", graph.inputs.size(), " inputs is replayed with ",
                 inputs.size());
  Tensors made(static_cast<std::size_t>(graph.size()));
  for (std::size_t k = 0; k < inputs.size(); ++k) made[static_cast<std::size_t>(graph.inputs[k])] = inputs[k];
  for (int i = 0; i < graph.size(); ++i) {
    const Value& v = graph[i];
    if (v.is_input()) continue;
    internal_check(!v.is_constant, "a region is replayed before it is compiled");
    const NameScope scope(v.scope);
    Tensors operands;
    for (int operand : v.in) operands.push_back(made[static_cast<std::size_t>(operand)]);
    made[static_cast<std::size_t>(i)] = make_node(v.op, operands);
  }
  Tensors results;
  for (int o : graph.outputs) results.push_back(made[static_cast<std::size_t>(o)]);
  return results;
}

}  // namespace gradus
