/// The options of one layer in a config.json, which are read by name. An option that nobody read is a problem.
#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>
#include "gradus/nn/activation.h"
#include "gradus/nn/policy.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/windows.h"

namespace gradus {

class KerasOptions {
 public:
  using Json = nlohmann::json;
  /// `layer` opens problems, which are added to `problems`.
  KerasOptions(const Json& config, std::string layer, bool inference_only, std::vector<std::string>& problems)
      : config_(config), layer_(std::move(layer)), inference_only_(inference_only), problems_(problems) {}

  std::int64_t integer(const char* name, std::optional<std::int64_t> otherwise = {});
  double number(const char* name, double otherwise);
  bool flag(const char* name, bool otherwise);
  std::string word(const char* name, const std::string& otherwise);
  /// `n` numbers, or one for all.
  Sizes sizes(const char* name, std::size_t n, std::int64_t otherwise);
  /// A list of numbers, or one.
  std::vector<std::int64_t> integers(const char* name, const std::vector<std::int64_t>& otherwise);
  /// A list of axes, or one.
  std::vector<int> axes(const char* name, const std::vector<std::int64_t>& otherwise);
  /// One axis.
  int axis(const char* name, int otherwise);
  /// A dtype by Keras's name.
  DType dtype(const char* name);
  /// A list of numbers and null, or one; -1 for null. A problem, and empty, if there is none.
  std::vector<std::int64_t> open_sizes(const char* name);
  /// A list of `n` numbers.
  std::vector<double> numbers(const char* name, std::size_t n);
  /// [before, after] of each of `n` dimensions: a number for all, one per dimension, or both.
  std::vector<std::array<std::int64_t, 2>> both_sides(const char* name, std::size_t n);
  Activation activation(const char* name, const char* otherwise);
  Regularizer regularizer(const char* name);
  Padding padding();
  /// The value as it is; null if there is none.
  const Json& raw(const char* name);
  bool has(const char* name) { return !raw(name).is_null(); }
  Policy policy();

  /// Adds a problem for each option that nobody read and that is not off.
  void finish();
  template <class... Parts> void problem(const Parts&... parts) { problems_.push_back(text(layer_, ": ", parts...)); }
  const std::string& layer() const { return layer_; }
  bool inference_only() const { return inference_only_; }

 private:
  void unexpected(const char* name, const char* expected);
  const Json& config_;
  std::string layer_;
  bool inference_only_;
  std::vector<std::string>& problems_;
  std::set<std::string> asked_;
};

/// The value as text, cut off behind 80 characters.
std::string short_form(const nlohmann::json& value);
/// The dtype of Keras's name; empty if there is none.
std::optional<DType> keras_dtype(const nlohmann::json& name);

}  // namespace gradus
