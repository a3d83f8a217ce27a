/// Comparisons between processes: numbers, data sets, batches. All processes make the same calls, so that each learns
/// the others' values, and all throw the same errors.
#include <algorithm>
#include <cstring>
#include <functional>
#include "gradus/base/hash.h"
#include "gradus/distribute/mirrored/replica_group.h"

namespace gradus::detail {
namespace {

bool are_equal(std::span<const std::uint64_t> all) {
  return std::ranges::adjacent_find(all, std::ranges::not_equal_to()) == all.end();
}

/// The place of element i in a row-major array, as "element [5, 0] of "; empty for a scalar.
std::string place_of(std::int64_t i, const Shape& shape) {
  std::string out;
  for (int axis = shape.rank() - 1; axis >= 0; i /= std::max<std::int64_t>(shape[axis], 1), --axis)
    out = text(i % std::max<std::int64_t>(shape[axis], 1), out.empty() ? "" : ", ", out);
  return out.empty() ? out : "element [" + out + "] of ";
}

/// One element as text.
std::string value_at(const Tensor& x, std::int64_t i) {
  const auto size = static_cast<std::size_t>(size_of(x.dtype()));
  Ref<Buffer> value = Buffer::allocate(static_cast<std::int64_t>(size));
  std::memcpy(value->data(), host_bytes(x).data() + static_cast<std::size_t>(i) * size, size);
  return text(Tensor::of_buffer({x.dtype(), {}}, std::move(value)));
}

}  // namespace

// ---------------------------------------------------------------- values

bool ReplicaGroup::any(bool mine) {
  return std::ranges::any_of(all_gather(mine, "whether to stop"), [](std::uint64_t each) { return each != 0; });
}

bool ReplicaGroup::are_alike(std::uint64_t mine, std::string_view question) {
  return are_equal(all_gather(mine, question));
}

/// The first rank that says something else than rank 0, or 0; then all have come so far, so that no end comes before
/// the error that all throw.
int ReplicaGroup::first_that_differs(std::span<const std::uint64_t> all) {
  if (are_equal(all)) return 0;
  announce_common_error();
  return static_cast<int>(std::ranges::find_if(all, [&](std::uint64_t each) { return each != all[0]; }) - all.begin());
}

void ReplicaGroup::check_same(std::uint64_t value, const std::string& what, std::string_view question) {
  if (const int rank = first_that_differs(all_gather(value, question)); rank > 0)
    throw InvalidArgument(text(what, " (", name_of(rank), " differs from ", name_of(0), ")"));
}

void ReplicaGroup::check_same(std::span<const ShardRun::Common> values, const std::string& when) {
  const std::string question = text(when, ": the values that all ranks have in common");
  std::uint64_t hash = values.size();
  for (const ShardRun::Common& value : values) hash = mix(hash, value.hash);
  if (are_alike(hash, question)) return;
  if (!are_alike(values.size(), question)) return;  // the programs differ, which they will tell themselves
  for (const ShardRun::Common& value : values)
    check_same(value.hash, text(when, ": ", value.name, " is not the same on all ranks"), question);
}

void ReplicaGroup::check_same(std::span<const NamedNumber> numbers, std::string_view when, std::string_view remedy) {
  std::uint64_t hash = numbers.size();
  std::string names;
  for (const NamedNumber& each : numbers) {
    hash = mix(hash, static_cast<std::uint64_t>(each.value));
    names += (names.empty() ? "" : ", ") + each.name;
  }
  if (are_alike(hash, text(when, ": ", names))) return;
  for (const NamedNumber& each : numbers) {
    const std::string name = text(when, ": ", each.name);
    const std::vector<std::uint64_t> all = all_gather(static_cast<std::uint64_t>(each.value), name);
    const auto said = [&](int rank) { return static_cast<std::int64_t>(all[static_cast<std::size_t>(rank)]); };
    if (const int rank = first_that_differs(all); rank > 0)
      throw InvalidArgument(
          text(name, " is ", said(0), " on ", name_of(0), " and ", said(rank), " on ", name_of(rank), ": ", remedy));
  }
}

// ---------------------------------------------------------------- data sets

/// Throws for the first stage that differs between processes; with `of_shards` only if it is a shard in some process.
void ReplicaGroup::check_stages(std::span<const StageFingerprint> own, bool of_shards) {
  constexpr std::string_view question = "the stages of a data set that all read";
  const auto chain = [&] {
    std::string names;
    for (const StageFingerprint& each : own) names += (names.empty() ? "" : ", ") + each.stage->name();
    return names;
  };
  if (!are_alike(own.size(), question)) {
    if (of_shards && !any(std::ranges::any_of(own, [](const auto& each) { return each.stage->is_shard(); }))) return;
    announce_common_error();
    throw InvalidArgument(
        text("the data set that all ranks read is made by other stages on other ranks; here by ", chain(),
             ": write the same data set on every rank",
             of_shards ? ", without a shard of one's own: the strategy gives each rank its rows" : ""));
  }
  for (const StageFingerprint& each : own) {
    if (are_alike(each.hash, question)) continue;
    const bool any_is_shard = any(each.stage->is_shard());
    if (of_shards && !any_is_shard) return;
    announce_common_error();
    throw InvalidArgument(text("the data set that all ranks read is not the same on all: its stage `",
                               each.stage->name(), "`, as ", name_of(rank()),
                               " has it, is another one on other ranks; ", each.stage->remedy()));
  }
}

void ReplicaGroup::check_data(const Pipeline& batches) {
  if (ranks() == 1) return;
  const std::vector<StageFingerprint> stages = fingerprints_of(batches.stage());
  std::uint64_t hash = stages.size();
  for (const StageFingerprint& each : stages) hash = mix(hash, each.hash);
  const bool is_same = are_alike(hash, "a data set that all read");
  if (!is_same) check_stages(stages, true);  // before lengths, which would differ for the same reason
  const auto check = [&](std::optional<std::int64_t> number, const char* what) {
    const std::vector<std::uint64_t> all = all_gather(number ? static_cast<std::uint64_t>(*number) + 1 : 0,
                                                      text("the number of ", what, " of a data set that all read"));
    const auto said = [&](int rank) {
      const std::uint64_t own = all[static_cast<std::size_t>(rank)];
      return text(own == 0 ? "a number that is not known" : text(own - 1), " on ", name_of(rank));
    };
    if (const int rank = first_that_differs(all); rank > 0)
      throw InvalidArgument(
          text("the data set that all ranks read has not the same number of ", what, ": ", said(0), ", ", said(rank)));
  };
  check(batches.cardinality(), "elements");
  const auto rows = batches.rows();
  check(rows ? std::optional(rows->first) : std::nullopt, "rows");
  check(rows ? std::optional(rows->second) : std::nullopt, "rows in an element");
  if (!is_same) check_stages(stages, false);
}

// ---------------------------------------------------------------- batches

/// Notes the fingerprint of a batch that this process has whole, which processes compare in the vote on the step, and
/// at once before the first step. Where data sets are distributed, a batch that is not one of their parts may have been
/// made of a part by mistake, so all of its bytes are compared each time, at once.
void ReplicaGroup::compare_batch(In global, const BatchPart* part) {
  is_batch_compared_ = ranks() == 1;
  if (is_batch_compared_) return;
  const std::int64_t number = calls_++;
  has_read_batch_ = part != nullptr;
  may_be_of_part_ = checks_batches_ && !has_read_batch_;
  whole_batch_ = has_read_batch_ ? In(part->whole) : global;
  fingerprint_of_call_ =
      has_read_batch_ ? part->fingerprint : fingerprint_of_batch(global, may_be_of_part_ ? 0 : number);
  if (number == 0 || may_be_of_part_) check_batches(all_gather(fingerprint_of_call_, "a batch of strategy.run"));
}

std::string ReplicaGroup::advice_about_batch() const {
  if (may_be_of_part_) return text("; strategy.distribute has not made it", part_advice);
  if (has_read_batch_)
    return ": every rank reads the same batches, and uses its own rows of them: give the random numbers of a generator "
           "one seed, and read files in one order";
  return ": every rank gives the same global batch, of which it computes its own rows; where each rank is to read its "
         "own rows alone, give the data set of whole batches to strategy.distribute, or to fit";
}

/// A step without a sum over ranks has no vote.
void ReplicaGroup::compare_batch_without_vote() {
  if (!is_batch_compared_) check_batches(all_gather(fingerprint_of_call_, "a batch of strategy.run"));
}

void ReplicaGroup::check_batches(std::span<const std::uint64_t> fingerprints) {
  is_batch_compared_ = true;
  const auto first = std::ranges::find_if(fingerprints, [](std::uint64_t each) { return each != 0; });
  const auto other =
      std::find_if(first, fingerprints.end(), [&](std::uint64_t each) { return each != 0 && each != *first; });
  if (other == fingerprints.end()) return;
  const std::string difference = difference_of_batches(static_cast<int>(first - fingerprints.begin()),
                                                       static_cast<int>(other - fingerprints.begin()));
  announce_common_error();
  throw InvalidArgument(
      text("strategy.run: the batch is not the same on all ranks: ", difference, advice_about_batch()));
}

/// The first difference between the whole batches of these two ranks; other ranks may have none.
std::string ReplicaGroup::difference_of_batches(int first, int other) {
  const auto one_of = [](const auto& all, int rank) { return all[static_cast<std::size_t>(rank)]; };
  const auto differ = [&](std::uint64_t mine) {
    const std::vector<std::uint64_t> all = all_gather(mine, "where batches differ");
    return one_of(all, first) != one_of(all, other);
  };
  const auto of_first = [&](std::uint64_t mine) { return one_of(all_gather(mine, "the size of a batch"), first); };
  const auto both_say = [&](const std::string& mine) {
    const std::vector<std::string> all = all_gather_texts(mine);
    return text(one_of(all, first), " on ", name_of(first), " and ", one_of(all, other), " on ", name_of(other));
  };
  if (differ(whole_batch_.size())) return text("it has ", both_say(text(whole_batch_.size(), " tensors")));
  const std::uint64_t tensors = of_first(whole_batch_.size());
  for (std::uint64_t k = 0; k < tensors; ++k) {
    const bool is_here = k < whole_batch_.size();
    const Tensor x = is_here ? whole_batch_[k] : Tensor();
    const std::string spec = is_here ? text(x.spec()) : "";
    if (differ(hash_of(spec))) return text("its tensor ", k, " is ", both_say(spec));
    const std::span<const std::byte> bytes = is_here ? host_bytes(x) : std::span<const std::byte>();
    if (!differ(fingerprint_of_bytes(bytes))) continue;
    const auto size = static_cast<std::size_t>(is_here ? size_of(x.dtype()) : 1);
    std::uint64_t begin = 0, end = of_first(bytes.size() / size);
    while (end - begin > 1) {  // elements before `begin` are equal, and one before `end` differs
      const std::uint64_t middle = begin + (end - begin) / 2;
      const std::size_t from = std::min(bytes.size(), begin * size), to = std::min(bytes.size(), middle * size);
      (differ(fingerprint_of_bytes(bytes.subspan(from, to - from))) ? end : begin) = middle;
    }
    const auto i = static_cast<std::int64_t>(begin);
    const std::string place = is_here ? text(place_of(i, x.shape()), "tensor ", k, ", ", spec) : "";
    return text(one_of(all_gather_texts(place), first), ", is ", both_say(is_here ? value_at(x, i) : ""));
  }
  return "its bytes have changed since they were compared";
}

}  // namespace gradus::detail
