/// The options that a layer was made with, under Keras's names: for files that layers are written to.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "gradus/nn/activation.h"
#include "gradus/nn/augmentation.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/resize.h"

namespace gradus {

/// Sizes of which some are unknown; negative: Keras's None.
struct OpenSizes {
  std::vector<std::int64_t> sizes;
};

using OptionValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>, OpenSizes,
                 std::vector<double>, std::vector<std::vector<std::int64_t>>, Activation, Regularizer>;

struct LayerOption {
  std::string name;
  OptionValue value = {};
};

/// A layer's class and options. Initializers are not part of it; nested layers are the layer's children.
struct LayerConfig {
  std::string class_name = {};  // empty: Keras has no such layer
  std::vector<LayerOption> options = {};
};

class Described {
 public:
  virtual LayerConfig config() const = 0;

 protected:
  ~Described() = default;
};

/// Numbers as a LayerConfig has them.
template <class Numbers> std::vector<std::int64_t> listed(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

constexpr std::string_view name_of(ResizeMethod method) {
  constexpr std::string_view names[] = {"bilinear", "nearest",  "bicubic",  "area",
                                        "lanczos3", "lanczos5", "gaussian", "mitchellcubic"};
  return names[static_cast<int>(method)];
}

constexpr std::string_view name_of(FlipMode mode) {
  constexpr std::string_view names[] = {"horizontal", "vertical", "horizontal_and_vertical"};
  return names[static_cast<int>(mode)];
}
constexpr std::string_view name_of(FillMode mode) {
  constexpr std::string_view names[] = {"reflect", "constant", "nearest"};
  return names[static_cast<int>(mode)];
}

}  // namespace gradus
