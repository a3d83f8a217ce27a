/// Inputs from their texts, by a hash of each element's number, as ops_peer.py makes them.
#include <algorithm>
#include <sstream>
#include "bench/ops/row.h"
#include "gradus/base/error.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus::bench {
namespace {

struct InputText {
  std::string kind;
  Shape shape;
  double low = -1, high = 1;
};

std::int64_t extent_of(const std::string& text, std::int64_t n) { return text == "n" ? n : std::stoll(text); }

InputText parsed(const std::string& text, std::int64_t n) {
  const std::size_t open = text.find('['), close = text.find(']');
  require(open != std::string::npos && close != std::string::npos, "bench: an input is kind[extents], not ", text);
  InputText input{.kind = text.substr(0, open), .shape = {}};
  std::istringstream extents(text.substr(open + 1, close - open - 1)), bounds(text.substr(close + 1));
  for (std::string each; std::getline(extents, each, ',');) input.shape.push_back(extent_of(each, n));
  if (double low, high; bounds >> low >> high) input.low = low, input.high = high;
  return input;
}

/// 24 bits of splitmix64: in [0, 1).
double share_of(std::uint64_t element, std::size_t place) {
  std::uint64_t z = element * 0x9E3779B97F4A7C15u + (place + 1) * 0xD1B54A32D192ED03u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((z ^ (z >> 31)) >> 40) * 0x1p-24;
}

std::vector<float> numbers(const InputText& input, std::size_t place) {
  std::vector<float> values(static_cast<std::size_t>(input.shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(input.low + share_of(i, place) * (input.high - input.low));
  return values;
}

std::vector<std::int32_t> integers(const InputText& input, std::size_t place) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(input.shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int32_t>(input.low + share_of(i, place) * (input.high - input.low));
  return values;
}

/// Half the sum of a matrix of numbers and its transpose, and the number of rows on the diagonal.
std::vector<float> positive_definite(const InputText& input, std::size_t place) {
  std::vector<float> values = numbers(input, place);
  const auto m = static_cast<std::size_t>(input.shape.back());
  for (std::size_t first = 0; first < values.size(); first += m * m)
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        float &below = values[first + i * m + j], &above = values[first + j * m + i];
        below = above = (below + above) / 2;
      }
      values[first + i * m + i] = static_cast<float>(m);
    }
  return values;
}

std::vector<float> ascending(const InputText& input, std::size_t place) {
  std::vector<float> values = numbers(input, place);
  const auto length = input.shape.back();
  for (auto row = values.begin(); row != values.end(); row += length) std::sort(row, row + length);
  return values;
}

}  // namespace

Tensor made_input(const std::string& text, std::int64_t n, std::size_t place) {
  const InputText input = parsed(text, n);
  if (input.kind == "f32") return from_values(numbers(input, place), input.shape);
  if (input.kind == "spd") return from_values(positive_definite(input, place), input.shape);
  if (input.kind == "sorted") return from_values(ascending(input, place), input.shape);
  const Tensor whole = from_values(integers(input, place), input.shape);
  if (input.kind == "i32" || input.kind == "index") return whole;
  require(input.kind == "bool" || input.kind == "u8", "bench: no kind of input is called ", input.kind);
  return cast(whole, input.kind == "bool" ? boolean : u8);
}

}  // namespace gradus::bench
