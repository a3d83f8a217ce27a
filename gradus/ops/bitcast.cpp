/// Bitcast: a formula of one instruction.
#include "gradus/ops/bitcast.h"
#include <array>
#include <cstring>
#include "gradus/ops/elementwise.h"

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

Tensor bitcast(const Tensor& x, DType dtype) {
  require(dtype != boolean || x.dtype() == boolean, "bitcast: ", x.spec(), " as booleans; compare with 0 instead");
  require(size_of(x.dtype()) == size_of(dtype), "bitcast: an element of ", x.spec(), " has ", size_of(x.dtype()),
          " bytes, one of ", dtype, " ", size_of(dtype), "; they must be as wide");
  if (x.dtype() == dtype) return x;
  if (x.dtype() == boolean) return bitcast(cast(x, u8), dtype);
  return apply(Bitcast{dtype}, x);
}

}  // namespace gradus
