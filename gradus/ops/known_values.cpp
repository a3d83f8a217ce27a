/// Reading of values that decide about shapes.
#include "gradus/ops/known_values.h"
#include "gradus/graph/known_value.h"

namespace gradus {

void require_known_value(std::string_view op, std::string_view what, const Tensor& x, std::string_view instead) {
  require(is_known(x), op, ": the shape of the result depends on the values of ", what, ", ", x.spec(),
          ", which are not known while a function is traced; ", instead);
}

std::vector<std::int64_t> known_integers(std::string_view op, std::string_view what, const Tensor& x,
                                         std::string_view instead) {
  require(is_integer(x.dtype()), op, ": ", what, " is ", x.spec(), ", expected integers");
  require_known_value(op, what, x, instead);
  const auto count = static_cast<std::size_t>(x.shape().size());
  return with_type(x.dtype(), [&]<class T>(T) {
    const T* values = x.host<T>();
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::int64_t>(values[i]));
    return out;
  });
}

std::vector<std::int64_t> known_positions(std::string_view op, std::string_view what, const Tensor& x,
                                          std::string_view instead) {
  require_known_value(op, what, x, instead);
  return with_type(x.dtype(), [&]<class T>(T) {
    const T* values = x.host<T>();
    const std::int64_t n = x.shape().size();
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < n; ++i) found += values[i] != T{};
    std::vector<std::int64_t> out(static_cast<std::size_t>(found) + 1);  // a store that is no position may stand behind
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      out[static_cast<std::size_t>(place)] = i;
      place += values[i] != T{};
    }
    out.pop_back();
    return out;
  });
}

}  // namespace gradus
