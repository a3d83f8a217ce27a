/// Bitcast: a formula of one instruction. Other widths are shifted, neighbours are counted.
#include "gradus/ops/bitcast.h"
#include <array>
#include <cstring>
#include "gradus/ops/bits.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {

struct Bitcast {
  static constexpr auto name = "bitcast";
  DType dtype = i32;
  DType result(Specs) const { return dtype; }
  scalar::Value emit(scalar::Value x) const { return scalar::bitcast(x, dtype); }
  scalar::Real emit(scalar::Real x) const {
    std::array<std::byte, 8> bytes{};
    with_type(x.type, [&]<class T>(T) {
      const T value = static_cast<T>(x.v);
      std::memcpy(bytes.data(), &value, sizeof value);
    });
    return with_type(dtype, [&]<class T>(T value) {
      if constexpr (!std::is_same_v<T, bool>) std::memcpy(&value, bytes.data(), sizeof value);
      return scalar::Real(static_cast<double>(value), dtype);
    });
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

namespace {

DType unsigned_of(std::int64_t bytes) { return bytes == 8 ? u64 : bytes == 4 ? u32 : bytes == 2 ? u16 : u8; }
DType signed_of(std::int64_t bytes) { return bytes == 8 ? i64 : bytes == 4 ? i32 : i16; }

/// By how many bits each of the k narrow elements of a wide one is shifted.
Tensor shifts(std::int64_t k, std::int64_t bytes, DType wide) { return cast(iota({k}, i64) * Scalar(8 * bytes), wide); }

Tensor in_parts(const Tensor& x, DType dtype) {
  const std::int64_t bytes = size_of(dtype), k = size_of(x.dtype()) / bytes;
  const Tensor whole = expand_dims(bitcast(x, unsigned_of(size_of(x.dtype()))), -1);
  const Tensor parts = right_shift(whole, shifts(k, bytes, whole.dtype()));
  return bitcast(cast(parts, unsigned_of(bytes)), dtype);
}

Tensor joined_parts(const Tensor& x, DType dtype) {
  const std::int64_t bytes = size_of(x.dtype()), k = size_of(dtype) / bytes;
  require(x.shape().rank() > 0 && x.shape().back() == k, "bitcast: ", x.spec(), " as ", dtype, ": an element has ",
          size_of(dtype), " bytes, so the last dimension has to be ", k, "; reshape it to [..., ", k, "]");
  const DType wide = unsigned_of(size_of(dtype));
  const Tensor parts = cast(bitcast(x, unsigned_of(bytes)), wide);
  return bitcast(reduce_sum(left_shift(parts, shifts(k, bytes, wide)), {.axis = {-1}}), dtype);
}

}  // namespace

Tensor bitcast(const Tensor& x, DType dtype) {
  require(dtype != boolean || x.dtype() == boolean, "bitcast: ", x.spec(), " as booleans; compare with 0 instead");
  if (x.dtype() == dtype) return x;
  if (x.dtype() == boolean) return bitcast(cast(x, u8), dtype);
  if (size_of(x.dtype()) > size_of(dtype)) return in_parts(x, dtype);
  if (size_of(x.dtype()) < size_of(dtype)) return joined_parts(x, dtype);
  return apply(Bitcast{dtype}, x);
}

/// In the order of their bits as integers, those of negative floats backwards, a float and the next one differ by 1.
/// The order is that of integers, since arithmetic of floats takes subnormal ones for 0.
Tensor nextafter(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [given, towards] = side_by_side("nextafter", left, right);
  require_floating(given, towards, "nextafter");
  const auto [x, y] = broadcast_together(given, towards, "nextafter");
  const DType t = signed_of(size_of(x.dtype()));
  const Tensor lowest = fill({}, std::int64_t{-1} << (8 * size_of(t) - 1), t);  // the bits of -0
  const auto turned = [&](const Tensor& bits) { return where(bits < 0, lowest - bits, bits); };
  const Tensor from = turned(bitcast(x, t)), to = turned(bitcast(y, t));
  const Tensor next = where(from < to, from + 1, from - 1);
  const Tensor bits = where(equal(next, 0), where(from < 0, lowest, next), turned(next));
  const Tensor moved = where(equal(from, to), y, bitcast(bits, x.dtype()));
  return stop_gradient(where(logical_or(is_nan(x), is_nan(y)), x + y, moved));
}

}  // namespace gradus
