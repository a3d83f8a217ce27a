/// Ops whose result has a shape that depends on data: positions are found on the host, elements gathered by them.
#include "gradus/ops/select.h"
#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <utility>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/index_types.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/known_values.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/element_order.h"

namespace gradus {
namespace {

using Positions = std::vector<std::int64_t>;

Tensor vector_of(const Positions& values, DType dtype = i64) {
  const auto n = static_cast<std::int64_t>(values.size());
  if (dtype != i32) return cast(from_values(values, {n}), dtype);
  const std::vector<std::int32_t> narrow(values.begin(), values.end());
  return from_values(narrow, {n});
}

constexpr std::int64_t most_indices = std::int64_t{1} << 28;  // that are listed on the host
constexpr std::string_view use_where = "use where(condition, x, y), which keeps the shape";

}  // namespace

Tensor nonzero(const Tensor& x) {
  const Positions at = known_positions("nonzero", "x", x, use_where);
  const int rank = x.shape().rank();
  const auto found = static_cast<std::int64_t>(at.size());
  if (rank == 1) return from_values(at, {1, found});
  Positions values;
  values.reserve(at.size() * static_cast<std::size_t>(rank));
  std::int64_t step = x.shape().size();
  for (int i = 0; i < rank; ++i) {
    if (found) step /= x.shape()[i];
    for (std::int64_t flat : at) values.push_back(flat / step % x.shape()[i]);
  }
  return from_values(values, {rank, found});
}

Tensor where(const Tensor& condition) {
  require_known_value("where", "condition", condition, use_where);
  return transpose(nonzero(condition), {1, 0});
}

Tensor boolean_mask(const Tensor& x, const Tensor& mask, int axis) {
  const int rank = x.shape().rank(), depth = mask.shape().rank();
  require(mask.dtype() == boolean && depth > 0, "boolean_mask: mask is ", mask.spec(),
          ", expected booleans of at least one dimension");
  require(rank > 0, "boolean_mask: x is ", x.spec(), ", which has no dimension");
  const int at = x.shape().normalized(axis);
  bool fits = at + depth <= rank;
  for (int i = 0; fits && i < depth; ++i) fits = mask.shape()[i] == x.shape()[at + i];
  require(fits, "boolean_mask: mask ", mask.spec(), " does not fit x ", x.spec(), " from dimension ", at, " on");
  Shape shape;
  for (int i = 0; i < at; ++i) shape.push_back(x.shape()[i]);
  shape.push_back(mask.shape().size());
  for (int i = at + depth; i < rank; ++i) shape.push_back(x.shape()[i]);
  const Positions found = known_positions("boolean_mask", "mask", mask, use_where);
  return gather(reshape(x, shape), vector_of(found), at);
}

Tensor compress(const Tensor& x, const Tensor& condition, std::optional<int> axis) {
  require(condition.dtype() == boolean && condition.shape().rank() == 1, "compress: condition is ", condition.spec(),
          ", expected a vector of booleans");
  const Tensor source = axis ? x : reshape(x, {x.shape().size()});
  require(source.shape().rank() > 0, "compress: x is ", x.spec(), ", which has no dimension");
  const int at = source.shape().normalized(axis.value_or(0));
  const Positions found = known_positions("compress", "condition", condition, use_where);
  const std::int64_t n = source.shape()[at];
  require(found.empty() || n < 0 || found.back() < n, "compress: condition ", condition.spec(),
          " holds past dimension ", at, " of ", source.spec());
  return gather(source, vector_of(found), at);
}

namespace {

/// Row-major slices [outer, n, inner] along the middle dimension.
struct Slices {
  std::int64_t outer, n, inner;
};

/// Slices in order: NaN is the largest number, and equals NaN.
template <class T> int compared_slices(const T* x, const Slices& s, std::int64_t a, std::int64_t b) {
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t i = 0; i < s.inner; ++i) {
      const auto left = element_order::key_of<false>(x[(o * s.n + a) * s.inner + i]);
      const auto right = element_order::key_of<false>(x[(o * s.n + b) * s.inner + i]);
      if (left != right) return left < right ? -1 : 1;
    }
  return 0;
}

struct Groups {
  Positions first, index, count;  // of a group, of a slice, of a group
};

/// The groups of slices of which `order` has equal ones side by side, each by its place; starts(i) tells whether the
/// i-th of them begins a group.
template <class Starts> Groups groups_in(const Positions& order, const Starts& starts) {
  Groups out{{}, Positions(order.size()), {}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || starts(i)) {
      out.first.push_back(order[i]);
      out.count.push_back(0);
    }
    ++out.count.back();
    out.index[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(out.first.size()) - 1;
  }
  return out;
}

template <class T> Groups groups_of_elements(const T* x, std::int64_t n) {
  using Key = element_order::KeyOf<T>;
  std::vector<element_order::Entry<Key>> entries(static_cast<std::size_t>(n)), room(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i)
    entries[i] = {element_order::key_of<false>(x[i]), static_cast<std::uint32_t>(i)};
  element_order::sort_entries<Key>(entries, room);
  Positions order(entries.size());
  std::ranges::transform(entries, order.begin(), [](const auto& entry) { return std::int64_t{entry.place}; });
  return groups_in(order, [&](std::size_t i) { return entries[i].key != entries[i - 1].key; });
}

template <class T> Groups groups_of_slices(const T* x, const Slices& s) {
  Positions order(static_cast<std::size_t>(s.n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return compared_slices(x, s, a, b) < 0; });
  return groups_in(order, [&](std::size_t i) { return compared_slices(x, s, order[i - 1], order[i]) != 0; });
}

/// The groups in the order of their first occurrence.
Groups by_occurrence(const Groups& groups) {
  Groups out;
  Positions place(groups.first.size(), -1);  // by the place of a group in their own order
  for (const std::int64_t group : groups.index) {
    const auto from = static_cast<std::size_t>(group);
    if (place[from] < 0) {
      place[from] = static_cast<std::int64_t>(out.first.size());
      out.first.push_back(groups.first[from]);
      out.count.push_back(groups.count[from]);
    }
    out.index.push_back(place[from]);
  }
  return out;
}

/// Equal slices, in their order or in that of their first occurrence.
Groups groups_of(const Tensor& x, const Slices& s, bool sorted) {
  Groups groups = with_type(x.dtype(), [&]<class T>(T) {
    const T* values = x.host<T>();
    const bool elements = s.outer == 1 && s.inner == 1 && s.n <= std::numeric_limits<std::uint32_t>::max();
    return elements ? groups_of_elements(values, s.n) : groups_of_slices(values, s);
  });
  return sorted ? groups : by_occurrence(groups);
}

}  // namespace

Unique unique(const Tensor& x, const UniqueOptions& options) {
  const std::int64_t n = options.axis ? x.shape()[x.shape().normalized(*options.axis)] : x.shape().size();
  (void)index_type("unique", options.out_idx, n);
  require_known_value("unique", "x", x, "apply it outside of the function");
  const Tensor source = options.axis ? x : reshape(x, {x.shape().size()});
  require(source.shape().rank() > 0, "unique: x is ", x.spec(), ", which has no axis");
  const int at = source.shape().normalized(options.axis.value_or(0));
  Slices s{1, source.shape()[at], 1};
  for (int i = 0; i < at; ++i) s.outer *= source.shape()[i];
  for (int i = at + 1; i < source.shape().rank(); ++i) s.inner *= source.shape()[i];
  const Groups groups = groups_of(x, s, options.sorted);
  const Tensor index = vector_of(groups.index, options.out_idx);
  return {gather(source, vector_of(groups.first), at), options.axis ? index : reshape(index, x.shape()),
          vector_of(groups.count, options.out_idx), vector_of(groups.first, options.out_idx)};
}

Unique unique_with_counts(const Tensor& x) { return unique(x); }

namespace {

/// The number of occurrences of each number. It counts on the host, since an index for each element takes more room
/// than x.
template <class T> Positions counted(std::span<const T> values, std::int64_t minlength) {
  T least = 0, largest = 0;
  for (const T value : values) least = std::min(least, value), largest = std::max(largest, value);
  if (std::cmp_less(least, 0)) {
    const auto first = std::ranges::find_if(values, [](T value) { return std::cmp_less(value, 0); });
    throw InvalidArgument(text("bincount: ", +*first, " is negative"));
  }
  constexpr std::int64_t most = std::int64_t{1} << 40;
  require<ResourceExhausted>(std::cmp_less(largest, most) && minlength < most,
                             "bincount: ", std::cmp_less(largest, minlength) ? text(minlength) : text(+largest),
                             " would need as many bins");
  const std::int64_t needed = values.empty() ? 0 : static_cast<std::int64_t>(largest) + 1;
  Positions counts;
  try {
    counts.resize(static_cast<std::size_t>(std::max(minlength, needed)));
  } catch (const std::bad_alloc&) {
    throw ResourceExhausted(text("bincount: there is no room for ", std::max(minlength, needed), " bins"));
  }
  for (const T value : values) ++counts[static_cast<std::size_t>(value)];
  return counts;
}

}  // namespace

Tensor bincount(const Tensor& x, std::int64_t minlength, DType dtype) {
  require_known_value("bincount", "x", x, "use unsorted_segment_sum with a number of bins");
  require(is_integer(x.dtype()), "bincount: x is ", x.spec(), ", expected integers");
  require(minlength >= 0, "bincount: minlength is ", minlength);
  const Positions counts = with_type(x.dtype(), [&]<class T>(T) -> Positions {
    if constexpr (std::integral<T> && !std::is_same_v<T, bool>)
      return counted(std::span<const T>(x.host<T>(), static_cast<std::size_t>(x.shape().size())), minlength);
    else return {};
  });
  (void)index_type("bincount", dtype, counts.empty() ? 0 : *std::ranges::max_element(counts));
  return vector_of(counts, dtype);
}

Tensor histogram_fixed_width(const Tensor& x, double low, double high, std::int64_t bins, DType dtype) {
  require(is_floating(x.dtype()), "histogram_fixed_width: expected floats, got ", x.spec());
  require(low < high && bins > 0, "histogram_fixed_width: [", low, ", ", high, ") in ", bins,
          " parts; expected low < high and at least one part");
  const Tensor flat = reshape(x, {x.shape().size()});
  const DType counted = index_type("histogram_fixed_width", dtype,
                                   flat.shape()[0] < 0 ? flat.shape()[0] : std::max(bins, flat.shape()[0]));
  const Tensor scaled =
      floor((cast(flat, f64) - fill({}, low, f64)) * fill({}, static_cast<double>(bins) / (high - low), f64));
  const Tensor bin =
      cast(maximum(minimum(scaled, fill({}, static_cast<double>(bins - 1), f64)), fill({}, 0.0, f64)), counted);
  return cast(apply(ScatterAdd{-1, bins}, bin, cast(equal(flat, flat), counted)), dtype);  // NaN is in no bin
}

Tensor repeat(const Tensor& x, const Tensor& repeats, int axis) {
  require(x.shape().rank() > 0, "repeat: x is ", x.spec(), ", which has no axis");
  const int at = x.shape().normalized(axis);
  const Positions times = known_integers("repeat", "repeats", repeats, "repeat by a number");
  require(repeats.shape().rank() == 1 && repeats.shape()[0] == x.shape()[at], "repeat: repeats are ", repeats.spec(),
          ", expected one number for each element along dimension ", at, " of ", x.spec());
  Positions from;
  for (std::size_t i = 0; i < times.size(); ++i) {
    require(times[i] >= 0, "repeat: ", times[i], " is no number of repetitions");
    require<ResourceExhausted>(times[i] <= most_indices - static_cast<std::int64_t>(from.size()), "repeat: more than ",
                               most_indices, " elements are asked for");
    from.insert(from.end(), static_cast<std::size_t>(times[i]), static_cast<std::int64_t>(i));
  }
  return gather(x, vector_of(from), at);
}

}  // namespace gradus
