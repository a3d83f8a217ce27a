#include "gradus/distribute/collectives/gathered_parts.h"
#include <cstring>
#include "gradus/distribute/collectives/sum_buckets.h"

namespace gradus::detail {
namespace {

/// Values on their way, as bytes, rank after rank.
struct Parcel {
  std::vector<ShardRun::Gathered*> values = {};
  Cuts cuts = {};  // in bytes
  Ref<Buffer> all = {};
  Collective* under_way = nullptr;
  std::int64_t bytes() const { return cuts.empty() ? 0 : cuts.back(); }
};

std::int64_t bytes_at(const ShardRun::Gathered& value, std::size_t rank) {
  return value.cuts[rank] * size_of(value.dtype);
}

void add(Parcel& parcel, ShardRun::Gathered& value) {
  parcel.values.push_back(&value);
  parcel.cuts.resize(value.cuts.size());
  for (std::size_t rank = 0; rank < value.cuts.size(); ++rank) parcel.cuts[rank] += bytes_at(value, rank);
}

/// Calls visit(value, rank, where its part is in the parcel, where it is in the value, its bytes).
void for_each_part(const Parcel& parcel, const auto& visit) {
  std::int64_t at = 0;
  for (std::size_t rank = 0; rank + 1 < parcel.cuts.size(); ++rank)
    for (ShardRun::Gathered* const value : parcel.values) {
      const std::int64_t begin = bytes_at(*value, rank), bytes = bytes_at(*value, rank + 1) - begin;
      visit(*value, rank, at, begin, bytes);
      at += bytes;
    }
}

void start(Parcel& parcel, Collectives& collectives) {
  parcel.all = Buffer::allocate(parcel.bytes(), "a value of all ranks");
  std::byte* const all = parcel.all->data<std::byte>();
  for_each_part(parcel, [&](const ShardRun::Gathered& value, std::size_t rank, std::int64_t at, std::int64_t,
                            std::int64_t bytes) {
    if (static_cast<int>(rank) == collectives.rank())
      std::memcpy(all + at, value.part->host(), static_cast<std::size_t>(bytes));
  });
  parcel.under_way = collectives.start_all_gather(u8, parcel.cuts, {all, static_cast<std::size_t>(parcel.bytes())});
}

void finish(Parcel& parcel, Collectives& collectives) {
  collectives.finish(parcel.under_way);
  if (parcel.values.size() == 1) {
    parcel.values[0]->result = parcel.all;
    return;
  }
  for (ShardRun::Gathered* const value : parcel.values)
    value->result = Buffer::allocate(value->cuts.back() * size_of(value->dtype), "a value of all ranks");
  const std::byte* const all = parcel.all->data<std::byte>();
  for_each_part(parcel, [&](const ShardRun::Gathered& value, std::size_t, std::int64_t at, std::int64_t begin,
                            std::int64_t bytes) {
    std::memcpy(value.result->data<std::byte>() + begin, all + at, static_cast<std::size_t>(bytes));
  });
}

}  // namespace

void gather_parts(Collectives& collectives, std::span<ShardRun::Gathered> values) {
  std::vector<Parcel> parcels;
  Parcel small;
  const auto send = [&](Parcel parcel) {
    if (parcel.values.empty()) return;
    start(parcel, collectives);
    parcels.push_back(std::move(parcel));
  };
  for (ShardRun::Gathered& value : values) {
    const std::int64_t bytes = value.cuts.back() * size_of(value.dtype);
    if (bytes >= SumBuckets::alone) {
      Parcel large;
      add(large, value);
      send(std::move(large));
      continue;
    }
    if (small.bytes() + bytes > SumBuckets::most_bytes) send(std::exchange(small, {}));
    add(small, value);
  }
  send(std::move(small));
  for (Parcel& parcel : parcels) finish(parcel, collectives);
}

}  // namespace gradus::detail
