#include "gradus/distribute/collectives/sum_buckets.h"
#include <algorithm>
#include <cstring>
#include "gradus/base/error.h"

namespace gradus::detail {
namespace {

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

/// This shard's addend; null: it has no rows.
const Buffer* part_of(const ShardRun::Sum& sum, int shard) {
  const auto found = std::ranges::find(sum.parts, shard, &ShardRun::Part::shard);
  return found == sum.parts.end() ? nullptr : found->value.get();
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

SumBuckets::SumBuckets(Collectives& collectives, std::span<ShardRun::Sum> sums)
    : collectives_(collectives), sums_(sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::int64_t bytes = bytes_of(sums[i].spec);
    const bool is_divided = !sums[i].cuts.empty();
    const auto last = std::ranges::find_if(buckets_.rbegin(), buckets_.rend(), [&](const Bucket& bucket) {
      return bucket.type == sums[i].spec.dtype && bucket.is_divided == is_divided && bucket.narrow == sums[i].narrow &&
             (bucket.sums.size() > 1 || bucket.bytes < alone);
    });
    const bool fits = last != buckets_.rend() && bytes < alone && last->bytes + bytes <= most_bytes;
    Bucket& bucket = fits ? *last : buckets_.emplace_back(Bucket{sums[i].spec.dtype, is_divided, sums[i].narrow});
    bucket.sums.push_back(i);
    bucket.bytes += bytes;
    ++bucket.missing;
  }
  std::ranges::sort(buckets_, {}, [](const Bucket& bucket) { return bucket.sums.back(); });  // as they are complete
  bucket_of_.resize(sums.size());
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const std::size_t i : buckets_[b].sums) bucket_of_[i] = b;
}

void SumBuckets::is_there(std::size_t i) {
  --buckets_[bucket_of_[i]].missing;
  start_complete();
}

/// Buckets are numbered by their order, so one waits for those before it.
void SumBuckets::start_complete() {
  while (started_ < buckets_.size() && buckets_[started_].missing == 0) start(buckets_[started_++]);
}

void SumBuckets::start(Bucket& bucket) {
  const ShardRange own = collectives_.own_shards();
  const bool is_alone = bucket.sums.size() == 1;
  for (int shard = own.begin; shard < own.end; ++shard) {
    if (const Buffer* only = is_alone ? part_of(sums_[bucket.sums[0]], shard) : nullptr) {
      bucket.parts.emplace_back(const_cast<Buffer*>(only));
      continue;
    }
    Ref<Buffer> joined = Buffer::allocate(bucket.bytes);
    join_parts(bucket, shard, joined->data<std::byte>());
    bucket.parts.push_back(std::move(joined));
  }
  const auto rank = static_cast<std::size_t>(collectives_.rank());
  if (bucket.is_divided) bucket.cuts = cuts_of(bucket);
  const std::int64_t own_bytes =
      bucket.is_divided ? (bucket.cuts[rank + 1] - bucket.cuts[rank]) * size_of(bucket.type) : bucket.bytes;
  bucket.result = Buffer::allocate(own_bytes, "a sum over shards");
  std::vector<const std::byte*> values;
  for (const Ref<Buffer>& part : bucket.parts) values.push_back(static_cast<const std::byte*>(part->host()));
  if (!is_under_way_) since_ = Clock::now();
  is_under_way_ = true;
  const std::span<std::byte> result{bucket.result->data<std::byte>(), size(own_bytes)};
  bucket.under_way = bucket.is_divided
                         ? collectives_.start_reduce_scatter(bucket.type, values, bucket.cuts, result, bucket.narrow)
                         : collectives_.start_all_reduce(bucket.type, values, result, bucket.narrow);
}

Cuts SumBuckets::cuts_of(const Bucket& bucket) const {
  Cuts cuts = sums_[bucket.sums[0]].cuts;
  for (const std::size_t i : std::span(bucket.sums).subspan(1))
    for (std::size_t rank = 0; rank < cuts.size(); ++rank) cuts[rank] += sums_[i].cuts[rank];
  return cuts;
}

/// A shard's addends to the sums of a bucket, contiguous: those of a divided one once for each rank.
void SumBuckets::join_parts(const Bucket& bucket, int shard, std::byte* at) const {
  const std::size_t ranks = bucket.is_divided ? sums_[bucket.sums[0]].cuts.size() - 1 : 1;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (const std::size_t i : bucket.sums) {
      const ShardRun::Sum& sum = sums_[i];
      const std::int64_t element = size_of(bucket.type), begin = bucket.is_divided ? sum.cuts[rank] * element : 0;
      const std::int64_t bytes = bucket.is_divided ? sum.cuts[rank + 1] * element - begin : bytes_of(sum.spec);
      if (const Buffer* part = part_of(sum, shard))
        std::memcpy(at, static_cast<const std::byte*>(part->host()) + begin, size(bytes));
      else std::memset(at, 0, size(bytes));
      at += bytes;
    }
}

void SumBuckets::drive() {
  if (!is_under_way_) return;
  collectives_.advance();
  note_ended();
}

bool SumBuckets::have_ended() const {
  return std::ranges::all_of(std::span(buckets_).first(started_),
                             [&](const Bucket& bucket) { return collectives_.is_done(bucket.under_way); });
}
bool SumBuckets::are_done() const { return started_ == buckets_.size() && have_ended(); }

void SumBuckets::note_ended() {
  if (!is_under_way_ || !have_ended()) return;
  is_under_way_ = false;
  seconds_ += seconds_since(since_);
}

void SumBuckets::finish(Traffic& traffic) {
  const auto begin = Clock::now();
  for (Bucket& bucket : buckets_) bucket.missing = 0;
  start_complete();
  for (Bucket& bucket : buckets_) {
    collectives_.finish(bucket.under_way);
    traffic.bytes += bucket.bytes;
    std::int64_t at = 0;
    for (const std::size_t i : bucket.sums) {
      ShardRun::Sum& sum = sums_[i];
      if (bucket.sums.size() == 1) {
        sum.result = bucket.result;
        continue;
      }
      const auto rank = static_cast<std::size_t>(collectives_.rank());
      const std::int64_t bytes =
          bucket.is_divided ? (sum.cuts[rank + 1] - sum.cuts[rank]) * size_of(bucket.type) : bytes_of(sum.spec);
      sum.result = Buffer::allocate(bytes, "a sum over shards");
      std::memcpy(sum.result->data(), bucket.result->data<std::byte>() + at, size(bytes));
      at += bytes;
    }
  }
  if (is_under_way_) seconds_ += seconds_since(since_);
  is_under_way_ = false;
  traffic.buckets += static_cast<std::int64_t>(buckets_.size());
  traffic.seconds += seconds_;
  traffic.waited_seconds += seconds_since(begin);
}

}  // namespace gradus::detail
