#include "gradus/backend/parts/values_of_ranks.h"
#include <cstring>
#include <numeric>
#include "gradus/backend/divided_value.h"
#include "gradus/base/numbered.h"

namespace gradus {
namespace {

/// This rank's elements of a value that is whole, divided as is wanted, or not there yet.
Ref<Buffer> own_part(const Ref<Buffer>& value, const Cuts& cuts, DType dtype, int rank) {
  if (const DividedValue* const divided = DividedValue::of(*value)) return divided->part();
  const std::int64_t begin = cuts[at(rank)], end = cuts[at(rank) + 1];
  if (const RepeatedValue* const repeated = RepeatedValue::of(*value)) return repeated->part(end - begin);
  auto* const data = const_cast<std::byte*>(static_cast<const std::byte*>(value->host()));
  return Buffer::borrow(data + begin * size_of(dtype), (end - begin) * size_of(dtype),
                        std::make_shared<Ref<Buffer>>(value));
}

}  // namespace

std::vector<Ref<Buffer>> own_inputs(ShardRun& run, const Graph& graph, std::span<const Cuts> cuts,
                                    std::span<const Ref<Buffer>> inputs) {
  std::vector<Ref<Buffer>> own(inputs.begin(), inputs.end());
  static const Cuts whole;
  const auto cuts_of = [&](std::size_t k) -> const Cuts& { return cuts.empty() ? whole : cuts[k]; };
  const auto type_of = [&](std::size_t k) { return graph[graph.inputs[k]].spec.dtype; };
  std::vector<std::size_t> places;
  std::vector<ShardRun::Gathered> cut_elsewhere;
  for (std::size_t k = 0; k < own.size(); ++k)
    if (const DividedValue* const value = DividedValue::of(*own[k]); value && value->cuts() != cuts_of(k)) {
      places.push_back(k);
      cut_elsewhere.push_back({type_of(k), value->cuts(), Buffer::on_host(value->part())});
    }
  if (!places.empty()) run.exchange->gather(cut_elsewhere);
  for (std::size_t i = 0; i < places.size(); ++i) own[places[i]] = std::move(cut_elsewhere[i].result);
  for (std::size_t k = 0; k < own.size(); ++k) {
    if (!cuts_of(k).empty()) own[k] = own_part(own[k], cuts_of(k), type_of(k), run.rank);
    else if (RepeatedValue::of(*own[k])) own[k] = Buffer::on_host(own[k]);
  }
  return own;
}

Ref<Buffer> own_output(const Cuts& cuts, const Ref<Buffer>& place) {
  const DividedValue* const value = DividedValue::of(*place);
  if (value && value->cuts() == cuts) return value->part();
  return value || RepeatedValue::of(*place) || !cuts.empty() ? nullptr : place;
}

ShardRun::Gathered values_of_shards(const ShardRun& run, DType dtype, const std::array<std::int64_t, 2>& elements,
                                    int root, std::vector<ShardRun::Part> own) {
  const auto is_wanted = [&](int number) { return root < 0 || number == run.all_shards[at(root)].number; };
  ShardRun::Gathered all{dtype, Cuts(at(run.ranks) + 1), {}};
  for (const ShardRun::Whereabouts& shard : run.all_shards)
    if (is_wanted(shard.number)) all.cuts[at(shard.rank) + 1] += elements[at(shard.length)];
  std::partial_sum(all.cuts.begin(), all.cuts.end(), all.cuts.begin());
  std::erase_if(own, [&](const ShardRun::Part& part) { return !is_wanted(part.shard); });
  if (own.size() == 1) {
    all.part = own[0].value;
    return all;
  }
  all.part = Buffer::allocate((all.cuts[at(run.rank) + 1] - all.cuts[at(run.rank)]) * size_of(dtype));
  std::byte* next = all.part->data<std::byte>();
  for (const ShardRun::Part& part : own) {
    std::memcpy(next, part.value->host(), static_cast<std::size_t>(part.value->bytes()));
    next += part.value->bytes();
  }
  return all;
}

}  // namespace gradus
