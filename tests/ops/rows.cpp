/// Arrays, and what rows of one kind have in common.
#include "tests/ops/rows.h"
#include <algorithm>
#include <limits>
#include "gradus/ops/constant.h"

namespace gradus::rows {

std::vector<Row>& all_rows() {
  static std::vector<Row> rows;
  return rows;
}

bool add_rows(std::vector<Row> rows) {
  for (Row& row : rows) all_rows().push_back(std::move(row));
  return true;
}

std::vector<DType> Row::further_dtypes() const {
  const auto takes = [&](DType t) { return std::ranges::find(dtypes, t) != dtypes.end(); };
  std::vector<DType> further;
  const auto add = [&](DType t) {
    if (!takes(t)) further.push_back(t);
  };
  if (takes_narrow && takes(f32) && takes(f64))
    for (DType t : {f16, bf16}) add(t);
  if (takes_other_integers && takes(i32) && takes(i64))
    for (DType t : {i16, i8, u8, u16, u32, u64}) add(t);
  return further;
}

Tensor to_tensor(const Array& array, DType dtype) {
  return with_type(dtype, [&]<class T>(T) {
    std::vector<T> values;
    for (double x : array.values) values.push_back(static_cast<T>(x));
    if constexpr (std::is_same_v<T, bool>) return from_values(values, array.shape);
    else return from_values(std::span<const T>(values), array.shape);
  });
}

Array to_array(const Tensor& x) {
  return with_type(x.dtype(), [&]<class T>(T) {
    Array array{x.shape(), {}};
    for (T value : x.to_vector<T>()) array.values.push_back(static_cast<double>(value));
    return array;
  });
}

void for_each_index(const Shape& shape, const std::function<void(std::span<const std::int64_t>, std::int64_t)>& visit) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t flat = 0; flat < shape.size(); ++flat) {
    visit(index, flat);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < shape[static_cast<int>(axis)]) break;
      index[axis] = 0;
    }
  }
}

std::int64_t broadcast_offset(const Shape& shape, std::span<const std::int64_t> index) {
  std::int64_t offset = 0;
  const int added = static_cast<int>(index.size()) - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis)
    offset = offset * shape[axis] + (shape[axis] == 1 ? 0 : index[static_cast<std::size_t>(axis + added)]);
  return offset;
}

Array by_element(Arrays in, const std::function<double(Scalars)>& f) {
  Shape shape = in[0].shape;
  for (const Array& array : in) shape = broadcast_shape(shape, array.shape, "reference");
  Array out{shape, {}};
  std::vector<double> at(in.size());
  for_each_index(shape, [&](std::span<const std::int64_t> index, std::int64_t) {
    for (std::size_t i = 0; i < in.size(); ++i)
      at[i] = in[i].values[static_cast<std::size_t>(broadcast_offset(in[i].shape, index))];
    out.values.push_back(f(at));
  });
  return out;
}

Row elementwise(std::string name, std::function<Tensor(In)> apply, std::vector<Operand> operands,
                std::function<double(Scalars)> reference) {
  Row row{.name = name, .covers = {name}, .apply = std::move(apply), .operands = std::move(operands)};
  row.elementwise = true;
  if (reference) row.reference = [reference](Arrays in) { return by_element(in, reference); };
  const std::size_t n = row.operands.size();
  for (const Shape& same : {Shape{}, Shape{1}, Shape{7}, Shape{8}, Shape{17}, Shape{1000}, Shape{3, 5}, Shape{0},
                            Shape{3, 0}, Shape{2, 3, 4}})
    row.shapes.emplace_back(n, same);
  if (n == 2)
    for (const auto& pair : std::vector<std::vector<Shape>>{
             {{3, 1}, {1, 4}}, {{}, {5}}, {{2, 3, 4}, {4}}, {{4}, {2, 1, 4}}, {{0, 3}, {3}}, {{2, 1, 3}, {5, 1}}})
      row.shapes.push_back(pair);
  if (n == 3)
    for (const auto& triple :
         std::vector<std::vector<Shape>>{{{3, 1}, {1, 4}, {}}, {{4}, {2, 1, 4}, {3, 1}}, {{}, {5}, {5}}})
      row.shapes.push_back(triple);
  return row;
}

}  // namespace gradus::rows
