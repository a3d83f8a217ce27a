/// Sums, assignments, keys and branches of a step on shards.
#include "gradus/distribute/mirrored/shard_trace.h"
#include <algorithm>
#include <array>
#include <unordered_set>
#include "gradus/function/variable.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/same_value.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/known_values.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/shards.h"
#include "gradus/ops/shards_ops.h"

namespace gradus {
namespace {

constexpr const char* two_lengths =
    "the shards of this batch have two lengths, and the step is another program for each of them";

/// `part` with rows of zeros behind it.
Tensor padded(const Tensor& part, std::int64_t rows) {
  const std::int64_t missing = rows - part.shape()[0];
  require(missing >= 0, "strategy.run: ", two_lengths, ": the one with fewer rows gathers ", part.shape()[0],
          " rows of a table, the other one ", rows, "; give batches that divide evenly");
  if (missing == 0) return part;
  Shape shape = part.shape();
  shape.set(0, missing);
  return concat({part, fill(shape, 0, part.dtype())}, 0);
}

/// True if it depends on an op that joins shards. While tracing one length the other's contribution is unknown.
bool is_of_sums(const Node& made) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> waiting{&made};
  while (!waiting.empty()) {
    const Node* const node = waiting.back();
    waiting.pop_back();
    if (node->trace != made.trace || !seen.insert(node).second) continue;
    if (node->op.joins_shards()) return true;
    for (const Ref<Node>& operand : node->inputs) waiting.push_back(operand.get());
  }
  return false;
}

/// True if an earlier sum of an equal number may be used again. A tape knows no value that is older than it, and would
/// take the earlier sum for a constant. A number that follows from sizes is a constant anyway.
bool may_stand_for(const Tensor& sum, const Tensor& part) {
  const ReadListener* const tape = CallContext::here().listener;
  return tape == nullptr || tape->knows(sum) || known_fill(part);
}

}  // namespace

Tensor ShardSums::add(const AnyOp& op, const Tensor& part) {
  const NameScope named(op.as<AllReduce>() ? numbered(current_scope()) : current_scope());
  return sums_.emplace_back(make_node(op, {&part, 1}));
}

std::uint32_t ShardSums::numbered(std::uint32_t scope) {
  const int count = ++with_scope_[scope];
  if (count == 1) return scope;
  const std::string path = scope_path(scope);
  const NameScope outside(scope & gradient_scope), own(text(path.empty() ? "sum" : path, " #", count));
  return current_scope();
}

Tensor ShardSums::join(const AnyOp& op, const Tensor& part) {
  constexpr const char* remedy =
      "; give batches that divide evenly, or take the size of a shard out of the C++ of the step";
  const AllGather* const asked = op.as<AllGather>();
  const bool is_of_table = asked && asked->pads;
  if (is_of_table && (joined_ == sums_.size() || !sums_[joined_].node()->op.as<AllGather>())) return {};
  require(joined_ < sums_.size() && sums_[joined_].node()->op->name == op->name, "strategy.run: ", two_lengths,
          ": one of them asks for ", op->name, " of ", part.spec(), remedy);
  const Tensor& sum = sums_[joined_++];
  const NameScope named(sum.node()->scope);
  if (const AllGather* gather = sum.node()->op.as<AllGather>(); gather && gather->pads) {
    return joins_.emplace_back(make_node(joining(sum.node()->op), std::array{sum, padded(part, gather->first)}));
  } else if (gather) {
    Shape expected = sum.shape();
    expected.set(0, gather->second);
    require(part.shape() == expected && part.dtype() == sum.dtype(), "all_gather: ", two_lengths, ": it is given ",
            gather->first, " rows on one of them, and ", part.spec(), " on the other, where ", gather->second,
            " rows were expected; the size has to be the same, or in proportion to the rows of a shard", remedy);
  } else {
    require(part.spec() == sum.spec() && sum.node()->op == op, "strategy.run: ", two_lengths, ": one of them gives ",
            part.spec(), " to ", op->name, remedy);
  }
  const Tensor both[] = {sum, part};
  return joins_.emplace_back(make_node(joining(sum.node()->op), both));
}

void ShardSums::check_joined() const {
  require(joined_ == sums_.size(), "strategy.run: ", two_lengths, ": they add up ", sums_.size(), " and ", joined_,
          " values; give batches that divide evenly, or take the size of a shard out of the C++ of the step");
}

ShardTrace::ShardTrace(ShardSums& sums, const ShardCounts& counts, int length, Tensor number,
                       const ShardOptions& options)
    : Context(Context::current()->id()),
      sums_(sums),
      place_{counts.of_first,  counts.of_second, counts.all, length, {counts.rows[0], counts.rows[1]},
             std::move(number)} {
  place = &place_;
  count = counts.present();
  divides_state = options.divides_state;
  sums_in_bf16 = options.sums_in_bf16;
}

Tensor ShardTrace::sum(const Tensor& part) {
  require(part.dtype() != boolean, "booleans of shards have no sum; cast them to i32");
  if (const auto found = known_.find(part.node().get()); found != known_.end()) return found->second.sum;
  if (part.shape().rank() == 0)  // weights are recomputed when parts of a batch are added up
    for (const Known& known : scalars_)
      if (known.part.spec() == part.spec() && are_surely_equal(*known.part.node(), *part.node()) &&
          may_stand_for(known.sum, part))
        return known.sum;
  const Known made{part, asked_of_all(AnyOp::of(AllReduce{}), part)};
  known_.emplace(part.node().get(), made);
  if (part.shape().rank() == 0) scalars_.push_back(made);
  return made.sum;
}

Tensor ShardTrace::over(const AnyOp& op, const Tensor& part) {
  const AllReduce* const reduces = op.as<AllReduce>();
  return reduces && !reduces->narrow ? sum(part) : asked_of_all(op, part);
}

Tensor ShardTrace::asked_of_all(const AnyOp& op, const Tensor& part) {
  const Tensor own = part.node()->varies ? part : apply(OnShard{place_.length}, part);
  return place_.length == 0 ? sums_.add(op, own) : sums_.join(op, own);
}

Tensor ShardTrace::read(VariableCell& cell) {
  const auto waiting = std::ranges::find(increases_, &cell, [](const Increase& each) { return each.cell.get(); });
  if (waiting != increases_.end()) {
    const Increase increase = *waiting;
    increases_.erase(waiting);
    take(increase);
  }
  return parent()->read(cell);
}

void ShardTrace::take(const Increase& increase) {
  VariableCell& cell = *increase.cell;
  parent()->assign(cell, cell.masked(parent()->read(cell) + sum(increase.by)));
}

/// Until the end each shard goes on with its own value.
void ShardTrace::assign(VariableCell& cell, const Tensor& value) {
  std::erase_if(increases_, [&](const Increase& each) { return each.cell.get() == &cell; });
  parent()->assign(cell, value);
  if (divides_state && cell.is_optimizer_state) state_.push_back(cell.shared_from_this());
  if (!value.node()->varies) return;
  require(cell.aggregation != Aggregation::none, "assign to variable ", cell.name,
          ": its value differs from shard to shard of the batch; make the Variable with {.aggregation = "
          "Aggregation::mean} or Aggregation::sum, or assign all_reduce_mean(value) or all_reduce_sum(value)");
  require(cell.aggregation == Aggregation::sum || is_floating(cell.spec.dtype), "assign to variable ", cell.name, ": ",
          cell.spec, " has no mean over shards; make the Variable with {.aggregation = Aggregation::sum}");
  const auto known = std::ranges::find(differing_, &cell, [](const auto& each) { return each.get(); });
  if (known == differing_.end()) differing_.push_back(cell.shared_from_this());
}

/// An increment counts once per shard, even if all shards add the same.
bool ShardTrace::increase(VariableCell& cell, const Tensor& given, bool decreases) {
  if (cell.aggregation != Aggregation::sum || given.spec() != cell.spec) return false;
  const Tensor by = decreases ? zeros_like(given) - given : given;
  const auto waiting = std::ranges::find(increases_, &cell, [](const Increase& each) { return each.cell.get(); });
  if (waiting != increases_.end()) waiting->by = waiting->by + by;
  else if (parent()->read(cell).node()->varies) return false;  // it is aggregated at the end
  else increases_.push_back({cell.shared_from_this(), by});
  return true;
}

void ShardTrace::finish() {
  for (const Increase& increase : std::exchange(increases_, {})) take(increase);
  for (const auto& cell : differing_) {
    const Tensor own = parent()->read(*cell);
    if (!own.node()->varies) continue;
    const Tensor of_all = sum(own);
    parent()->assign(*cell, cell->aggregation == Aggregation::sum ? of_all : of_all / static_cast<double>(count));
  }
  for (const auto& cell : state_)
    if (const Tensor now = parent()->read(*cell); !now.node()->op.as<Divisible>())
      parent()->assign(*cell, apply(Divisible{}, now));
}

/// The first shard draws the numbers of a step without shards.
Tensor ShardTrace::random_key(const Tensor& key) {
  const Tensor common = Context::random_key(key);
  return where(equal(place_.number, 0), common, philox(place_.number, common, 0));
}

bool ShardTrace::decide(const Tensor& predicate) {
  require(
      !predicate.node()->varies, "if (tensor): the condition, ", predicate.spec(),
      ", may differ from shard to shard of the batch, so C++ cannot branch on it within strategy.run; reduce it with "
      "all_reduce_sum or all_reduce_mean first, or use cond(condition, if_true, if_false) or where(condition, a, b)");
  require(place_.of_second == 0 || !is_of_sums(*predicate.node()), "if (tensor): the condition, ", predicate.spec(),
          ", is made of all shards of the batch, and ", two_lengths,
          ", so C++ cannot branch on it; give batches that divide evenly, or use cond(condition, if_true, if_false) or "
          "where(condition, a, b)");
  return parent()->decide(predicate);
}

}  // namespace gradus
