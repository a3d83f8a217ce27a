/// The elements of a tensor that subscripts name (graph/subscript.h): reading them, and tensors with them replaced.
#pragma once
#include <ostream>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"
#include "gradus/ops/strided_ops.h"

namespace gradus {

/// Subscripts of one tensor, resolved: views for integers and slices, one gather for tensors of integers and booleans.
class Subscripted {
 public:
  /// `name` is what the tensor is called in errors, such as "x".
  Subscripted(std::string_view name, const Tensor& x, std::vector<Subscript> subscripts);
  /// The elements.
  Tensor read() const;
  /// x with the elements replaced by `value`, which broadcasts to them. Of several at one place the last one counts.
  Tensor replaced(const Tensor& value) const;
  /// x with `value` added to the elements. Several at one place add up.
  Tensor increased(const Tensor& value) const;
  /// Zeros with `value` added to the elements.
  Tensor spread(const Tensor& value) const;

 private:
  /// The effect of a subscript on one dimension of the source.
  struct Part {
    enum class Kind { element, slice, new_axis, gap, tensor };  // gap: an ellipsis that stands for nothing
    Kind kind;
    int axis = -1;       // of the source
    Range range = {};    // of an element or a slice
    Tensor places = {};  // integers in [0, n), to be checked
    bool is_tensor() const { return kind == Kind::tensor; }
    bool is_slice() const { return kind == Kind::slice; }
  };
  /// Rows of the source that are replaced as a whole.
  struct Rows {
    Tensor all;     // [rows, inner...]
    Tensor places;  // i64 [count]
    Tensor values;  // [count, inner...]
    bool are_all;   // a single row, which is replaced
  };

  /// The beginning of errors, "x(all, slice(1, end))", which is spelt only where there is one.
  struct Written {
    const Subscripted* of;
  };
  friend std::ostream& operator<<(std::ostream& out, const Written& written);

  void add_part(const Subscript& subscript, int number, int whole);
  void add_element(const Subscript& subscript);
  void add_slice(const Subscript& subscript);
  void add_mask(const Tensor& mask, int number);
  void add_places(const Tensor& places, int number);
  void add_whole(int dimensions);
  void decide_order();
  Written op() const { return {this}; }
  Shape result_shape(bool with_new_axes) const;
  Tensor gathered(const Tensor& x, const std::vector<int>& axes) const;
  bool is_whole(const Part& part) const;
  Rows rows_of(const Tensor& value) const;
  Tensor places_of_rows(std::size_t leading) const;

  std::string name_;
  std::vector<Subscript> subscripts_;
  Tensor x_, source_;  // the source: x with the dimensions of each mask merged
  std::vector<Part> parts_;
  std::vector<Tensor> places_;  // of the parts that are tensors
  int axes_ = 0;                // of the source, so far
  Shape block_;                 // to which the places broadcast
  bool block_first_ = false;    // the dimensions of the block are the first ones of the result
  bool repeats_ = false;        // an element may be named twice
  bool is_open_ = false;        // a slice of a dimension that is a symbol, or with a bound that is one
  StridedSlice box_;
};

}  // namespace gradus
