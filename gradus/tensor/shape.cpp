/// Shapes and specs: text forms, sizes, broadcasting.
#include "gradus/tensor/shape.h"
#include "gradus/base/rooms.h"
#include <algorithm>

namespace gradus {

Shape::Shape(std::span<const std::int64_t> dims) {
  for (std::int64_t d : dims) push_back(d);
}

void Shape::push_back(std::int64_t dim) { insert(rank_, dim); }

void Shape::insert(int position, std::int64_t dim) {
  require(rank_ < max_rank, "a tensor has at most ", max_rank, " dimensions");
  std::copy_backward(begin() + position, end(), dims_.data() + rank_ + 1);
  dims_[static_cast<std::size_t>(position)] = dim;
  ++rank_;
}

void Shape::erase(int axis) {
  const int at = normalized(axis);
  std::copy(begin() + at + 1, end(), dims_.data() + at);
  --rank_;
}

std::int64_t Shape::size() const {
  // A zero anywhere makes the whole empty, however large the others are.
  if (std::find(begin(), end(), 0) != end()) return 0;
  std::int64_t n = 1;
  for (std::int64_t d : *this) n = d == any_size ? any_size : n == any_size ? n : dimension::multiply(n, d);
  return n;
}

bool Shape::is_symbolic() const { return std::any_of(begin(), end(), dimension::is_symbolic); }

Shape Shape::evaluated(std::span<const std::int64_t> symbols) const {
  Shape out = *this;
  for (std::int64_t& d : std::span(out.dims_.data(), static_cast<std::size_t>(rank_)))
    d = dimension::evaluate(d, symbols);
  return out;
}

void Shape::fail_axis(int axis) const {
  throw OutOfRange(text("axis ", axis, " is out of range for shape ", *this, " of rank ", rank_, ": expected ", -rank_,
                        " to ", rank_ - 1));
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '(';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? ", " : "") << dimension::to_text(shape[i]);
  return out << ')';
}

std::string brackets(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.rank(); ++i) out += (i ? "," : "") + dimension::to_text(shape[i]);
  return out + ']';
}

std::ostream& operator<<(std::ostream& out, const Spec& spec) {
  return out << spec.dtype << brackets(spec.shape) << spec.device;
}

Shape shape_from_brackets(std::string_view written) {
  require(written.size() >= 2 && written.front() == '[' && written.back() == ']', "`", written,
          "` is not a shape such as [64,784]");
  Shape shape;
  for (std::string_view rest = written.substr(1, written.size() - 2); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::int64_t d = dimension::from_text(rest.substr(0, comma));
    require(d >= 0 || d == any_size || dimension::symbols_in(d) > 0, "`", written, "` has a negative dimension");
    shape.push_back(d);
    require(comma + 1 != rest.size(), "`", written, "` ends with a comma");
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return shape;
}

Spec spec_from_text(std::string_view written) {
  const std::size_t bracket = std::min(written.find('['), written.size());
  const std::size_t at = std::min(written.find('@'), written.size());
  for (DType t : all_dtypes)
    if (written.substr(0, bracket) == name_of(t) && at >= bracket) {
      Spec spec{t, shape_from_brackets(written.substr(bracket, at - bracket))};
      if (at < written.size()) spec.device = device_from_text(written.substr(at + 1));
      return spec;
    }
  throw InvalidArgument(text("`", written, "` is not a spec such as f32[64,784]"));
}

std::int64_t bytes_of(const Spec& spec) { return dimension::multiply(spec.shape.size(), size_of(spec.dtype)); }

std::uint64_t hash_of(const Shape& shape) {
  std::uint64_t hash = static_cast<std::uint64_t>(shape.rank());
  for (std::int64_t d : shape) hash = mix(hash, static_cast<std::uint64_t>(d));
  return hash;
}

Shape dense_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides.set(i, step);
    step = dimension::multiply(step, shape[i]);
  }
  return strides;
}

Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op) {
  Shape out = a.rank() >= b.rank() ? a : b;
  const Shape& small = a.rank() >= b.rank() ? b : a;
  for (int i = 1; i <= small.rank(); ++i) {
    require(out[-i] == small[-i] || out[-i] == 1 || small[-i] == 1, op, ": shapes ", a, " and ", b,
            " do not broadcast: dimension ", -i, " is ", dimension::to_text(a[-i]), " against ",
            dimension::to_text(b[-i]));
    if (out[-i] == 1) out.set(-i, small[-i]);
  }
  return out;
}

}  // namespace gradus
