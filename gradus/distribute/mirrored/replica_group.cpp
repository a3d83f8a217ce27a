/// Dividing, tracing, running, adding.
#include "gradus/distribute/mirrored/replica_group.h"
#include <algorithm>
#include <cstring>
#include "gradus/base/divide.h"
#include "gradus/base/hash.h"
#include "gradus/base/notice.h"
#include "gradus/base/thread_pool.h"
#include "gradus/data/batch_readers.h"
#include "gradus/distribute/collectives/tree_sum.h"
#include "gradus/distribute/mirrored/shard_trace.h"
#include "gradus/function/traced_function.h"
#include "gradus/graph/same_value.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/shards_ops.h"

namespace gradus::detail {
namespace {

/// The rows of one shard.
struct Rows {
  int number;
  std::int64_t begin, end;
  int length = 0;  // the index of its length, 0 or 1
  std::int64_t count() const { return end - begin; }
};

/// A global batch; a process may hold only its own rows of it.
struct GlobalBatch {
  std::int64_t rows = -1;  // -1: nothing is split
  RowRange here;           // the rows that the tensors have
  std::shared_ptr<const BatchPart> part;

  /// `readers`: of a strategy whose processes may read their own rows alone, or null.
  GlobalBatch(In global, const BatchReaders* readers) {
    bool is_first = true;
    for (const Tensor& x : global) {
      if (x.shape().rank() == 0) continue;
      const auto known = readers != nullptr ? batch_of_part(x) : nullptr;
      const std::int64_t here_of_x = x.shape()[0], rows_of_x = known ? known->rows : here_of_x;
      require(is_first || (!known == !part && (!known || known->has_ended == part->has_ended)),
              "strategy.run: of the tensors of one global batch some are parts of it, others are none", part_advice);
      require(is_first || (rows_of_x == rows && here_of_x == here.count()),
              "strategy.run: tensors of one global batch have ", rows, " and ", rows_of_x,
              " rows; what is no row of the batch is captured by the step, or a scalar");
      if (known) take_part(*known, *readers, here_of_x);
      else here = {0, here_of_x};
      rows = rows_of_x;
      part = known;
      is_first = false;
    }
    require(rows != 0, "strategy.run: the global batch has no rows");
  }
  bool has_ended(int rank) const {
    return part && !part->has_ended.empty() && part->has_ended[static_cast<std::size_t>(rank)];
  }

 private:
  void take_part(const BatchPart& known, const BatchReaders& readers, std::int64_t here_of_x) {
    require(known.readers.get() == &readers, "strategy.run: rows that another strategy has distributed", part_advice);
    here = readers.share_of(readers.rank()).rows(known.rows);
    const bool has_none = here_of_x == 0 && !known.has_ended.empty();
    if (has_none) here.end = here.begin;
    require(here.count() == here_of_x, "strategy.run: a part of a batch has ", here_of_x, " rows where ", here.count(),
            " are expected", part_advice);
  }
};

/// The shards that have rows.
std::vector<Rows> rows_of_shards(std::int64_t rows, int shards) {
  std::vector<Rows> all;
  for (int i = 0; i < shards; ++i) {
    const std::int64_t begin = first_row_of_shard(i, rows, shards), end = first_row_of_shard(i + 1, rows, shards);
    if (begin < end) all.push_back({i, begin, end});
  }
  return all;
}

/// These rows of a tensor that is on the host and has those `here`, in place; zeros if it does not have them.
Ref<Buffer> slice(const Ref<Buffer>& tensor, const Spec& spec, RowRange here, const Rows& rows) {
  if (spec.shape.rank() == 0) return tensor;
  if (rows.begin < here.begin || rows.end > here.end) {
    Spec missing = spec;
    missing.shape.set(0, rows.count());
    Ref<Buffer> zeros = Buffer::allocate(bytes_of(missing));
    std::memset(zeros->data(), 0, static_cast<std::size_t>(zeros->bytes()));
    return zeros;
  }
  const std::int64_t row = here.count() > 0 ? tensor->bytes() / here.count() : 0;
  auto* const data = const_cast<std::byte*>(static_cast<const std::byte*>(tensor->host()));
  return Buffer::borrow(data + (rows.begin - here.begin) * row, rows.count() * row,
                        std::make_shared<Ref<Buffer>>(tensor));
}

Spec spec_of_rows(const Spec& spec, const Rows& rows) {
  Spec part{spec.dtype, spec.shape};
  if (part.shape.rank() > 0) part.shape.set(0, rows.count());
  return part;
}

Ref<Buffer> number_buffer(int number) {
  Ref<Buffer> buffer = Buffer::allocate(sizeof(std::int64_t));
  *buffer->data<std::int64_t>() = number;
  return buffer;
}

/// The results of a call.
struct Layout {
  std::shared_ptr<const void> structure;
  std::vector<int> second;  // of each result: where that of shards of the second length is, or -1
  Layout(std::shared_ptr<const void> s, std::vector<int> places) : structure(std::move(s)), second(std::move(places)) {}
};

}  // namespace

/// A batch, divided.
struct Division {
  std::vector<Rows> shards;
  std::vector<const Rows*> first_of;  // of each length
  ShardCounts counts;
  std::size_t arguments = 0;  // of a shard, its number included
  RowRange here;              // the rows that the tensors of the batch have

  Division(In global, const GlobalBatch& batch, const ReplicaGroup& group) : here(batch.here) {
    bool any_ended = false;
    if (batch.rows < 0) {  // nothing is split: every shard does the same
      for (int i = 0; i < group.shards(); ++i) shards.push_back({i, 0, 0});
    } else {
      shards = rows_of_shards(batch.rows, group.shards());
      any_ended =
          std::erase_if(shards, [&](const Rows& each) { return batch.has_ended(group.rank_of(each.number)); }) > 0;
      internal_check(!shards.empty(), "a batch without rows on any rank");
      for (Rows& each : shards) each.length = each.count() == shards[0].count() ? 0 : 1;
    }
    counts = {.of_first = 0, .of_second = 0, .all = any_ended ? 0 : group.shards()};
    for (const Rows& each : shards) {
      if (each.length == static_cast<int>(first_of.size())) first_of.push_back(&each);
      counts.rows[each.length] = each.count();
      ++(each.length == 0 ? counts.of_first : counts.of_second);
    }
    arguments = global.size() + 1;
  }
};

/// Sums over the shards of one process.
class SumsInMemory final : public ShardExchange {
 public:
  explicit SumsInMemory(int shards) : shards_(shards) {}
  void add_up(std::span<ShardRun::Sum> sums, std::int64_t) override {
    for (ShardRun::Sum& sum : sums) sum.result = sum_of_parts(sum.spec, sum.parts, shards_, sum.narrow);
  }
  bool may_add_on_devices() const override { return true; }

 private:
  const int shards_;
};

/// The arguments of a shard of each length.
Tensors examples_of(In global, const Division& division) {
  Tensors examples;
  for (const Rows* rows : division.first_of) {
    for (const Tensor& x : global)
      examples.push_back(
          Tensor::of_buffer(spec_of_rows(x.spec(), *rows), slice(x.host_buffer(), x.spec(), division.here, *rows)));
    examples.push_back(Tensor::of_buffer({i64, {}}, number_buffer(rows->number)));
  }
  return examples;
}

/// The shards of one call.
ShardRun ReplicaGroup::shard_run(In global, const Division& division) {
  std::vector<Ref<Buffer>> whole;
  for (const Tensor& x : global) whole.push_back(x.host_buffer());
  ShardRun run{.shards = {},
               .all_shards = {},
               .replicas = devices_,
               .common_device = default_device(),
               .rank = rank_,
               .ranks = ranks_,
               .divides_state = options_.divides_state,
               .step = steps_++,
               .exchange = exchange_,
               .results = {}};
  const std::size_t all_arguments = division.arguments * division.first_of.size();
  for (const Rows& rows : division.shards) {
    run.all_shards.push_back({rows.number, rank_of(rows.number), rows.length});
    const int replica = replica_of(rows.number) - rank_ * own_replicas();
    if (replica < 0 || replica >= own_replicas()) continue;
    ShardRun::Shard& shard = run.shards.emplace_back(ShardRun::Shard{rows.number, rows.length, replica});
    shard.arguments.resize(all_arguments);
    const std::size_t first = static_cast<std::size_t>(rows.length) * division.arguments;
    for (std::size_t k = 0; k < whole.size(); ++k)
      shard.arguments[first + k] = slice(whole[k], global[k].spec(), division.here, rows);
    shard.arguments[first + whole.size()] = number_buffer(rows.number);
  }
  return run;
}

ReplicaGroup::ReplicaGroup(std::vector<Device> devices, int micro_shards, ShardOptions options, int rank, int ranks,
                           std::unique_ptr<ShardExchange> exchange)
    : devices_(std::move(devices)),
      micro_shards_(micro_shards),
      rank_(rank),
      ranks_(ranks),
      options_(options),
      own_exchange_(exchange ? std::move(exchange) : std::make_unique<SumsInMemory>(shards())),
      exchange_(own_exchange_.get()) {
  require(!devices_.empty(), "Strategy: no devices");
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    require_present(devices_[i]);
    require(std::ranges::count(devices_, devices_[i]) == 1, "Strategy: device ", devices_[i],
            " is given twice; each replica has its own, such as cpu(0) and cpu(1)");
  }
  require(micro_shards == 0 || micro_shards >= replicas(), "Strategy: micro_shards is ", micro_shards, " for ",
          replicas(), " replicas, expected at least one shard each, or 0");
}
ReplicaGroup::~ReplicaGroup() = default;

int ReplicaGroup::replica_of(int shard) const {
  return static_cast<int>(std::int64_t{shard} * replicas() / shards());  // as shards_of has it
}

Pipeline ReplicaGroup::distributed(const Pipeline& batches, bool by_hand) {
  check_data(batches);
  if (ranks() == 1) return batches;
  checks_batches_ = checks_batches_ || by_hand;
  const auto readers = this->readers();
  if (!readers) return batches;
  say_rows(batches, *readers);
  return batches.read_by(readers);
}

/// Logs once which rows of the first data set this rank has.
void ReplicaGroup::say_rows(const Pipeline& batches, const BatchReaders& readers) {
  if (std::exchange(has_said_rows_, true)) return;
  const auto rows = batches.rows();
  const BatchShare share = readers.share_of(rank_);
  std::string amount = text("shards ", share.begin, " .. ", share.end - 1, " of ", share.shards, " of each batch");
  if (rows && rows->second > 0) {
    const std::int64_t whole = rows->first / rows->second, rest = rows->first % rows->second;
    amount = text(whole * share.rows(rows->second).count() + share.rows(rest).count(), " of ", rows->first,
                  " rows of an epoch, ", amount);
  }
  notice(text("gradus: ", name_of(rank_), " has ", amount, "\n"));
}

std::shared_ptr<TracedFunction> ReplicaGroup::traced_of(const StepIdentity& identity) {
  const auto made = [&] {
    return std::make_shared<TracedFunction>(identity.options, identity.closure, identity.closure_bytes);
  };
  if (!identity.step) return made();
  const std::lock_guard lock(guard_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.step.expired(); });
  Known& known = known_[identity.step.get()];
  if (!known.traced) known = {identity.step, made()};
  return known.traced;
}

void ReplicaGroup::check_is_traced(const StepIdentity& identity) {
  require(!identity.options.run_eagerly,
          "strategy.run: the step has run_eagerly, and a strategy traces its steps to divide them: leave it out, or "
          "call the step without a strategy");
}

StepResults ReplicaGroup::run(const StepIdentity& identity, In global, StaticArguments statics, const Body& body) {
  require(!Context::current() && !ReadListener::is_there() && !CallContext::here().shards,
          "strategy.run inside of a function, a tape or another run: it is the outermost call; put the tape into the "
          "step");
  check_is_traced(identity);
  const GlobalBatch batch(global, readers().get());
  const Division division(global, batch, *this);
  ShardRun run = shard_run(global, division);
  statics.values += text("shards ", division.counts.of_first, ' ', division.counts.of_second, ' ', division.counts.all);
  const std::size_t lengths = division.first_of.size();
  const Body on_shards = [&](In in) { return traced_on_shards(in, lengths, division.counts, body); };
  begin();
  try {
    compare_batch(global, batch.part.get());
    const FieldScope<&CallContext::shards> scope(&run);
    const Called called = traced_of(identity)->call(examples_of(global, division), statics, on_shards);
    compare_batch_without_vote();
    StepResults results = results_of(called, run, division);
    end();
    return results;
  } catch (...) {
    failed(message_of_current());
    throw;
  }
}

/// The step for shards of one length, traced once more for the other length. Values independent of the shard length are
/// shared nodes; sums cover both lengths.
Called ReplicaGroup::traced_on_shards(In in, std::size_t lengths, const ShardCounts& counts, const Body& body) const {
  Trace& trace = *Trace::current();
  ShardSums sums;
  const auto of_length = [&](int length) {
    const std::size_t arguments = in.size() / lengths, first = static_cast<std::size_t>(length) * arguments;
    Tensors own;
    for (std::size_t k = first; k < first + arguments; ++k)
      own.push_back(apply(OfShard{static_cast<int>(k), length}, in[k]));
    const Tensor number = own.back();
    own.pop_back();
    ShardTrace shard(sums, counts, length, number, options_);
    Called called = body(own);
    shard.finish();
    return called;
  };
  Called called = of_length(0);
  const auto layout = std::make_shared<Layout>(called.structure, std::vector<int>(called.tensors.size(), -1));
  called.structure = layout;
  if (lengths == 1) return called;
  std::map<const VariableCell*, Tensor> assigned;
  for (const auto& cell : trace.cells())
    if (cell->assigned) assigned.emplace(cell->cell.get(), cell->now);
  trace.run_again();
  const Called other = of_length(1);
  sums.check_joined();
  constexpr const char* remedy =
      ": it depends on the number of rows of a shard, of which this batch has two; reduce it by all_reduce_sum or "
      "all_reduce_mean, or give batches that divide evenly";
  for (const auto& cell : trace.cells()) {
    const auto before = assigned.find(cell->cell.get());
    require(cell->assigned == (before != assigned.end()) &&
                (!cell->assigned || are_surely_equal(*before->second.node(), *cell->now.node())),
            "assign to variable ", cell->cell->name, remedy);
  }
  require(called.tensors.size() == other.tensors.size(), "strategy.run: the step gives another number of results",
          remedy);
  Tensors seconds;
  for (std::size_t k = 0; k < called.tensors.size(); ++k) {
    Tensor& first = called.tensors[k];
    Tensor second = other.tensors[k];
    require(first.defined() == second.defined(), "strategy.run: result ", k, remedy);
    if (!first.defined() || (!first.node()->varies && are_surely_equal(*first.node(), *second.node()))) continue;
    if (!first.node()->varies) first = apply(OnShard{0}, first), second = apply(OnShard{1}, second);
    layout->second[k] = static_cast<int>(layout->second.size() + seconds.size());
    seconds.push_back(std::move(second));
  }
  std::ranges::move(seconds, std::back_inserter(called.tensors));
  std::ranges::copy(sums.joins(), std::back_inserter(called.tensors));
  return called;
}

StepResults ReplicaGroup::results_of(const Called& called, const ShardRun& run, const Division& division) {
  const auto& layout = *static_cast<const Layout*>(called.structure.get());
  StepResults out{.tensors = {}, .structure = layout.structure};
  for (std::size_t k = 0; k < layout.second.size(); ++k) {
    const Tensor& first = called.tensors[k];
    StepResult& result = out.tensors.emplace_back(StepResult{first, nullptr});
    if (!first.defined()) continue;
    const auto found = run.results.find(first.node()->value.get());
    if (found == run.results.end()) {
      result.per_replica = std::make_shared<PerReplica<Tensor>>(first, static_cast<std::size_t>(replicas()));
      continue;
    }
    // One result per shard length, replaced by this process's shards.
    std::vector<Spec> specs{first.spec()};
    const auto of_length = [&](int length) -> const Tensor& {
      return length == 0 ? first : called.tensors[static_cast<std::size_t>(layout.second[k])];
    };
    if (layout.second[k] >= 0) specs.push_back(of_length(1).spec());
    std::vector<ShardRun::Part> parts;
    std::vector<std::int64_t> bytes;
    for (const Rows& rows : division.shards) {
      const auto& own = run.results.at(of_length(rows.length).node()->value.get());
      const auto known = std::ranges::find(own, rows.number, &ShardRun::Part::shard);
      parts.push_back({rows.number, known == own.end() ? Ref<Buffer>() : known->value});
      bytes.push_back(bytes_of(specs[static_cast<std::size_t>(rows.length)]));
    }
    exchange_->share(parts, bytes);
    Tensors values;
    std::vector<int> numbers, firsts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      values.push_back(
          Tensor::of_buffer(specs[static_cast<std::size_t>(division.shards[i].length)], std::move(parts[i].value)));
      numbers.push_back(parts[i].shard);
    }
    for (int replica = 0; replica < replicas(); ++replica)
      firsts.push_back(shards_of(replica, replicas(), shards()).begin);
    result.per_replica =
        std::make_shared<PerReplica<Tensor>>(std::move(values), std::move(numbers), std::move(firsts), shards());
  }
  return out;
}

Ref<Buffer> sum_of_parts(const Spec& spec, std::span<const ShardRun::Part> parts, int shards, bool narrow) {
  if (shards == 1 && parts.size() == 1) return parts[0].value;
  const std::int64_t bytes = bytes_of(spec), elements = spec.shape.size();
  Ref<Buffer> zeros;
  if (static_cast<int>(parts.size()) < shards) {
    zeros = Buffer::allocate(bytes);
    std::memset(zeros->data(), 0, static_cast<std::size_t>(bytes));
  }
  std::vector<PartialSum> all;
  for (int shard = 0; shard < shards; ++shard)
    all.push_back({{shard, shard + 1}, zeros ? zeros->data<std::byte>() : nullptr});
  for (const ShardRun::Part& part : parts)
    all[static_cast<std::size_t>(part.shard)].values = static_cast<const std::byte*>(part.value->host());
  Ref<Buffer> out = Buffer::allocate(bytes, "a sum over shards");
  constexpr std::int64_t grain = 1 << 14;  // elements that are worth a thread
  const std::int64_t pieces = divide_up(elements, grain);
  ThreadPool::global().run(static_cast<int>(std::min<std::int64_t>(pieces, ThreadPool::max_threads)),
                           [&](int worker, int team) {
                             const std::int64_t first = worker * pieces / team * grain;
                             const std::int64_t past = std::min(elements, (worker + 1) * pieces / team * grain);
                             if (first < past)
                               tree_sum(spec.dtype, shards, {0, shards}, all, first, past,
                                        out->data<std::byte>() + first * size_of(spec.dtype), spec.dtype, narrow);
                           });
  return out;
}

}  // namespace gradus::detail
