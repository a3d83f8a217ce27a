/// Rows of one index are found by sorting the indices. They are added in the order of their places, as scatter_add
/// does, so a sum has the same bits in either form.
#include "gradus/gradients/gradient_part.h"
#include <algorithm>
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/gradient_sum.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// For tables with fewer rows the whole gradient is cheap.
constexpr std::int64_t many_rows = 4096;

/// True if `term` is a scatter of whole rows that waits to be computed.
bool is_scatter_of_rows(const Tensor& term) {
  const ScatterAdd* scatter = term.node()->op.as<ScatterAdd>();
  return scatter && scatter->axis == -term.shape().rank();
}

Shape with_rows(Shape shape, std::int64_t rows) {
  shape.set(0, rows);
  return shape;
}

AddedRows added_by(const Tensor& term) {
  const NameScope scope(term.node()->scope);  // of the layer that gathered
  const Tensor indices(term.node()->inputs[0]), values(term.node()->inputs[1]);
  const std::int64_t places = indices.shape().size();
  const Tensor within = check_range(indices, term.shape()[0], false);
  return {reshape(within, {places}), reshape(values, with_rows(term.shape(), places))};
}

/// Each index that stands in `rows` once, in ascending order, then -1.
AddedRows distinct_rows(const AddedRows& rows) {
  if (rows.distinct) return rows;
  const Tensor& indices = rows.indices;
  const std::int64_t places = indices.shape()[0];
  const Tensor order = argsort(indices), sorted = gather(indices, order);
  const Tensor before = gather(sorted, maximum(iota({places}, i32) - 1, 0));
  const Tensor number = cumsum(cast(not_equal(sorted, before), i32));  // among the distinct ones
  const Tensor none = fill({places}, -1, indices.dtype()), nowhere = fill({places}, 0, i32);
  const Tensor slots = update_rows(nowhere, order, number);
  const Tensor sums = apply(ScatterAdd{-rows.values.shape().rank(), places}, slots, rows.values);
  return {update_rows(none, number, sorted), sums, true};
}

AddedRows joined(const std::vector<AddedRows>& all) {
  bool wide = false;
  for (const AddedRows& rows : all) wide = wide || rows.indices.dtype() == i64;
  Tensors indices, values;
  for (const AddedRows& rows : all) {
    indices.push_back(cast(rows.indices, wide ? i64 : i32));
    values.push_back(rows.values);
  }
  return {concat(indices), concat(values)};
}

}  // namespace

GradientPart GradientPart::sum_of(In terms) {
  const bool is_of_lookups = std::ranges::all_of(terms, is_scatter_of_rows);
  if (is_of_lookups && terms[0].node()->op.as<ScatterAdd>()->extent >= many_rows) {
    std::vector<AddedRows> rows;
    for (const Tensor& term : terms) rows.push_back(added_by(term));
    return {std::move(rows), terms[0].shape()[0]};
  }
  GradientSum sum;
  for (const Tensor& term : terms) sum.add(term);
  return {sum.unrounded(), terms[0].dtype(), is_of_lookups};
}

GradientPart GradientPart::of_rows(const AddedRows& rows, std::int64_t extent) {
  return {{distinct_rows(rows)}, extent};
}

Tensor GradientPart::whole() const { return cast(unrounded(), dtype()); }

Tensor GradientPart::unrounded() const {
  if (!is_rows()) return whole_;
  GradientSum sum;
  for (const AddedRows& rows : rows_) {
    const Shape shape = with_rows(rows.values.shape(), extent_);
    sum.add(rows.distinct ? update_rows(fill(shape, 0, dtype()), rows.indices, rows.values)
                          : apply(ScatterAdd{-shape.rank(), extent_}, rows.indices, rows.values));
  }
  return sum.unrounded();
}

/// Terms are added up each by itself first, as they are in full.
AddedRows GradientPart::summed() const {
  if (rows_.size() == 1) return distinct_rows(rows_[0]);
  std::vector<AddedRows> each;
  for (const AddedRows& rows : rows_) each.push_back(distinct_rows(rows));
  return distinct_rows(joined(each));
}

GradientPart GradientPart::map(const Formula& f) const {
  if (!is_rows()) return GradientPart(f(whole()), is_of_lookups_);
  AddedRows rows = summed();
  rows.values = f(rows.values);
  return {{std::move(rows)}, extent_};
}

GradientPart GradientPart::map_linear(const Formula& f) const {
  if (!is_rows()) return GradientPart(f(whole()), is_of_lookups_);
  GradientPart result = *this;
  for (AddedRows& rows : result.rows_) rows.values = f(rows.values);
  return result;
}

/// The other's sum is made first, but for narrow rows: they would be rounded.
GradientPart GradientPart::operator+(const GradientPart& other) const {
  if (!is_rows() || !other.is_rows())
    return {widened(unrounded()) + widened(other.unrounded()), dtype(), is_of_lookups() && other.is_of_lookups()};
  std::vector<AddedRows> rows = rows_;
  if (other.rows_.size() == 1 || is_narrow(dtype())) rows.insert(rows.end(), other.rows_.begin(), other.rows_.end());
  else rows.push_back(other.summed());
  return {std::move(rows), extent_};
}

}  // namespace gradus
