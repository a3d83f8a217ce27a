/// The gradient of one variable, or its part of a sum: in full or, of a large table of which rows were gathered, as
/// these rows alone. What is done to it then costs what the rows cost.
#pragma once
#include <functional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// What is added to rows of a table [n, inner...]: values[p] to row indices[p].
struct AddedRows {
  Tensor indices;         // i32 or i64 [places], below n; -1: none, and its values are 0
  Tensor values;          // [places, inner...]
  bool distinct = false;  // no index but -1 stands twice
};

class GradientPart {
 public:
  GradientPart() = default;
  explicit GradientPart(const Tensor& whole) : GradientPart(whole, whole.dtype()) {}
  /// The sum of these terms, of which there is one at least, in their order. Rows if all of them are what a gather of
  /// whole rows hands back, and the table has many: that depends on the table alone, so that it is the same whether or
  /// not the number of places is known. Narrow floats are rounded once, by whole() or summed().
  static GradientPart sum_of(In terms);
  /// Of a table with `extent` rows: the sum of these.
  static GradientPart of_rows(const AddedRows& rows, std::int64_t extent);

  bool is_rows() const { return !rows_.empty(); }
  /// In full. Of rows, and of several terms in a narrow type, it is made anew by each call.
  Tensor whole() const;
  /// Of rows: all at one index added up, in the order in which the whole gradient adds them.
  AddedRows summed() const;

  using Formula = std::function<Tensor(const Tensor&)>;
  /// f of the gradient, f(0) being 0: of rows it sees the sums, [places, inner...].
  GradientPart map(const Formula& f) const;
  /// The same of an f that may be exchanged with the sum.
  GradientPart map_linear(const Formula& f) const;
  /// What all elements that may differ from 0 are among: of rows [places, inner...].
  Tensor elements() const { return is_rows() ? summed().values : whole(); }
  GradientPart operator+(const GradientPart& other) const;
  DType dtype() const { return is_rows() ? rows_[0].values.dtype() : dtype_; }

  void for_each_tensor(auto visit) {
    if (!is_rows()) visit(whole_);
    for (AddedRows& rows : rows_) {
      visit(rows.indices);
      visit(rows.values);
    }
  }

 private:
  GradientPart(std::vector<AddedRows> rows, std::int64_t extent) : rows_(std::move(rows)), extent_(extent) {}
  GradientPart(Tensor unrounded, DType dtype) : whole_(std::move(unrounded)), dtype_(dtype) {}
  /// whole(), of several terms in a narrow type before it is rounded.
  Tensor unrounded() const;

  Tensor whole_;  // unrounded
  DType dtype_ = f32;
  std::vector<AddedRows> rows_;
  std::int64_t extent_ = 0;  // n
};

}  // namespace gradus
