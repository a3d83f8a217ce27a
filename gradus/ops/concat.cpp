/// Concatenation: shape rule and gradient.
#include "gradus/ops/concat.h"
#include "gradus/ops/shape.h"

namespace gradus {

Spec Concat::infer(Specs in) const {
  require(!in.empty(), name, ": expected at least one part");
  const Shape& first = in[0].shape;
  require<OutOfRange>(axis < 0 && axis >= -first.rank(), name, ": axis ", axis, " is out of range for ", in[0]);
  Spec out = in[0];
  for (std::size_t k = 1; k < in.size(); ++k) {
    const Spec& part = in[k];
    require(part.dtype == out.dtype, name, ": part 0 is ", in[0], ", part ", k, " is ", part, "; cast one of them");
    require(part.shape.rank() == first.rank(), name, ": part 0 is ", in[0], ", part ", k, " is ", part,
            ": their ranks differ");
    for (int i = -first.rank(); i < 0; ++i)
      require(i == axis || part.shape[i] == first[i], name, ": part 0 is ", in[0], ", part ", k, " is ", part,
              ": they are joined along axis ", axis, " and differ in axis ", i);
    out.shape.set(axis, dimension::add(out.shape[axis], part.shape[axis]));
  }
  return out;
}

Tensors Concat::vjp(In in, const Tensor&, const Tensor& dy) const {
  Tensors parts;
  std::int64_t begin = 0;
  for (const Tensor& x : in) {
    parts.push_back(slice_within(dy, axis, begin, x.shape()[axis]));
    begin = dimension::add(begin, x.shape()[axis]);
  }
  return parts;
}

Tensor Concat::batch(In in, std::uint32_t mask, std::int64_t n) const {
  Tensors parts;
  for (std::size_t i = 0; i < in.size(); ++i) parts.push_back(has_rows(mask, i) ? in[i] : repeat_rows(in[i], n));
  return apply(*this, In(parts));
}

int Concat::carries(Specs, int, int along) const { return along == axis ? 0 : along; }

}  // namespace gradus
