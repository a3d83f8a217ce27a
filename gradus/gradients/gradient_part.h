/// The gradient of one variable, or its part of a sum. It is held in full or, for a large table of which rows were
/// gathered, as these rows alone. Work on it then costs what the rows cost.
#pragma once
#include <functional>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail::inline rooms {

/// Values to add to rows of a table [n, inner...]: values[p] to row indices[p].
struct AddedRows {
  Tensor indices;         // i32 or i64 [places], below n; -1: none, and its values are 0
  Tensor values;          // [places, inner...]
  bool distinct = false;  // no index but -1 occurs twice
};

/// The gradient of one variable, in full or as rows.
class GradientPart {
 public:
  /// Empty.
  GradientPart() = default;
  /// A gradient in full.
  explicit GradientPart(const Tensor& whole, bool is_of_lookups = false)
      : GradientPart(whole, whole.dtype(), is_of_lookups) {}
  /// The sum of these terms, at least one, in their order. It is held as rows if all terms are gradients of a gather of
  /// whole rows, and the table has many. That depends on the table alone, so it is the same whether or not the number
  /// of places is known. Narrow floats are rounded once, by whole() or summed().
  static GradientPart sum_of(In terms);
  /// The sum of these rows, for a table with `extent` rows.
  static GradientPart of_rows(const AddedRows& rows, std::int64_t extent);

  /// True if it is held as rows.
  bool is_rows() const { return !rows_.empty(); }
  /// True if it is of lookups alone: the variable was read by gathers of its rows and by nothing else, however many
  /// rows it has. A row that no lookup read, or whose terms cancel, is 0.
  bool is_of_lookups() const { return is_rows() || is_of_lookups_; }
  /// The gradient in full. For rows, and for several terms in a narrow type, each call makes it again.
  Tensor whole() const;
  /// For rows: the sums of all values at one index, in the order in which the whole gradient adds them.
  AddedRows summed() const;

  /// A function of a tensor.
  using Formula = std::function<Tensor(const Tensor&)>;
  /// f of the gradient, where f(0) is 0. For rows, f sees the sums, [places, inner...].
  GradientPart map(const Formula& f) const;
  /// map() for an f that may be exchanged with the sum.
  GradientPart map_linear(const Formula& f) const;
  /// A tensor that contains all elements that may differ from 0: for rows [places, inner...].
  Tensor elements() const { return is_rows() ? summed().values : whole(); }
  /// The sum of two parts for the same variable.
  GradientPart operator+(const GradientPart& other) const;
  /// The number of rows of the table, if it is held as rows.
  std::int64_t extent() const { return extent_; }
  /// The dtype of the elements.
  DType dtype() const { return is_rows() ? rows_[0].values.dtype() : dtype_; }

  /// Visits every tensor that it holds.
  void for_each_tensor(auto visit) {
    if (!is_rows()) visit(whole_);
    for (AddedRows& rows : rows_) {
      visit(rows.indices);
      visit(rows.values);
    }
  }

 private:
  GradientPart(std::vector<AddedRows> rows, std::int64_t extent) : rows_(std::move(rows)), extent_(extent) {}
  GradientPart(Tensor unrounded, DType dtype, bool is_of_lookups)
      : whole_(std::move(unrounded)), dtype_(dtype), is_of_lookups_(is_of_lookups) {}
  /// whole() of several terms in a narrow type, before it is rounded.
  Tensor unrounded() const;

  Tensor whole_;  // unrounded
  DType dtype_ = f32;
  bool is_of_lookups_ = false;  // of whole_
  std::vector<AddedRows> rows_;
  std::int64_t extent_ = 0;  // n
};

}  // namespace detail::inline rooms

}  // namespace gradus
