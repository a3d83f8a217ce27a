/// Allowed values of options, and options that make no difference.
#include "gradus/train/keras_options.h"
#include <algorithm>
#include <map>
#include "gradus/train/keras_config.h"

namespace gradus {
namespace {

using Json = KerasOptions::Json;

bool is_size(const Json& value) {
  return value.is_number_integer() && !(value.is_number_unsigned() && value > 1ull << 62);
}

bool are_sizes(const Json& value) {
  return value.is_array() && value.size() <= 64 && std::ranges::all_of(value, is_size);
}

/// Options that say nothing about what a layer computes with given weights, or repeat what is known.
bool makes_no_difference(const std::string& name) {
  static const std::set<std::string> known{"name",       "trainable",  "dtype",           "seed",
                                           "unroll",     "use_cudnn",  "build_config",    "fill_mode",
                                           "fill_value", "batch_size", "renorm_momentum", "renorm_clipping"};
  return known.contains(name) || name.ends_with("_initializer");
}
bool acts_in_training(const std::string& name) {
  return name.ends_with("_regularizer") || name.ends_with("_constraint");
}

}  // namespace

std::string short_form(const nlohmann::json& value) {
  std::string all = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return all.size() > 80 ? all.substr(0, 80) + "..." : all;
}

const Json& KerasOptions::raw(const char* name) {
  static const Json none;
  asked_.insert(name);
  const auto found = config_.find(name);
  return found == config_.end() ? none : *found;
}

void KerasOptions::unexpected(const char* name, const char* expected) {
  problem("option `", name, "` is ", short_form(raw(name)), "; expected ", expected);
}

std::int64_t KerasOptions::integer(const char* name, std::optional<std::int64_t> otherwise) {
  const Json& value = raw(name);
  if (value.is_null() && otherwise) return *otherwise;
  if (is_size(value)) return value.get<std::int64_t>();
  unexpected(name, "an integer");
  return otherwise.value_or(1);
}

double KerasOptions::number(const char* name, double otherwise) {
  const Json& value = raw(name);
  if (value.is_number()) return value.get<double>();
  if (!value.is_null()) unexpected(name, "a number");
  return otherwise;
}

bool KerasOptions::flag(const char* name, bool otherwise) {
  const Json& value = raw(name);
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_null()) unexpected(name, "true or false");
  return otherwise;
}

std::string KerasOptions::word(const char* name, const std::string& otherwise) {
  const Json& value = raw(name);
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_null()) unexpected(name, "a word");
  return otherwise;
}

Sizes KerasOptions::sizes(const char* name, std::size_t n, std::int64_t otherwise) {
  const Json& value = raw(name);
  if (is_size(value)) return Sizes(n, value.get<std::int64_t>());
  if (are_sizes(value) && value.size() == n) return value.get<Sizes>();
  if (!value.is_null()) unexpected(name, "a number for each spatial dimension");
  return Sizes(n, otherwise);
}

std::vector<std::int64_t> KerasOptions::integers(const char* name, const std::vector<std::int64_t>& otherwise) {
  const Json& value = raw(name);
  if (is_size(value)) return {value.get<std::int64_t>()};
  if (are_sizes(value)) return value.get<std::vector<std::int64_t>>();
  if (!value.is_null()) unexpected(name, "integers");
  return otherwise;
}

std::vector<int> KerasOptions::axes(const char* name, const std::vector<std::int64_t>& otherwise) {
  std::vector<int> all;
  for (const std::int64_t axis : integers(name, otherwise)) {
    if (axis < -Shape::max_rank || axis > Shape::max_rank)
      problem("option `", name, "` is ", axis, ", which is no axis");
    else all.push_back(static_cast<int>(axis));
  }
  return all;
}

int KerasOptions::axis(const char* name, int otherwise) {
  const std::vector<int> all = axes(name, {otherwise});
  if (all.size() != 1) problem("option `", name, "`: expected one");
  return all.size() == 1 ? all[0] : otherwise;
}

DType KerasOptions::dtype(const char* name) {
  if (const auto known = keras_dtype(raw(name))) return *known;
  unexpected(name, "a number type");
  return f32;
}

std::vector<std::int64_t> KerasOptions::open_sizes(const char* name) {
  const Json& value = raw(name);
  if (is_size(value)) return {value.get<std::int64_t>()};
  const auto fits = [](const Json& each) { return each.is_null() || is_size(each); };
  std::vector<std::int64_t> sizes;
  if (value.is_array() && value.size() <= 64 && std::ranges::all_of(value, fits))
    for (const Json& each : value) sizes.push_back(each.is_null() ? -1 : each.get<std::int64_t>());
  else unexpected(name, "sizes");
  return sizes;
}

std::vector<double> KerasOptions::numbers(const char* name, std::size_t n) {
  const Json& value = raw(name);
  if (value.is_array() && value.size() == n && std::ranges::all_of(value, [](const Json& x) { return x.is_number(); }))
    return value.get<std::vector<double>>();
  unexpected(name, n == 2 ? "two numbers" : "a list of numbers");
  return std::vector<double>(n);
}

std::vector<std::array<std::int64_t, 2>> KerasOptions::both_sides(const char* name, std::size_t n) {
  const Json& value = raw(name);
  const auto pair = [](const Json& of) { return std::array{of[0].get<std::int64_t>(), of[1].get<std::int64_t>()}; };
  std::vector<std::array<std::int64_t, 2>> all;
  if (n == 1 && are_sizes(value) && value.size() == 2) return {pair(value)};
  if (is_size(value)) {
    all.assign(n, {value.get<std::int64_t>(), value.get<std::int64_t>()});
  } else if (are_sizes(value)) {
    for (const Json& size : value) all.push_back({size.get<std::int64_t>(), size.get<std::int64_t>()});
  } else if (value.is_array() && value.size() <= 64) {
    for (const Json& each : value)
      if (are_sizes(each) && each.size() == 2) all.push_back(pair(each));
  }
  if (all.size() == n) return all;
  unexpected(name, "two numbers for each spatial dimension");
  return std::vector<std::array<std::int64_t, 2>>(n);
}

Activation KerasOptions::activation(const char* name, const char* otherwise) {
  const Json& value = raw(name);
  if (value.is_null() && !config_.contains(name)) return *activation_named(otherwise);
  if (value.is_null()) return *activation_named("linear");
  if (value.is_string())
    if (const auto found = activation_named(value.get<std::string>())) return *found;
  unexpected(name, "the name of an activation that is known");
  return *activation_named("linear");
}

Regularizer KerasOptions::regularizer(const char* name) {
  const Json& value = raw(name);
  if (value.is_null()) return {};
  const auto part = [&](const Json& of, const char* key) { return of.is_object() ? of.value(key, Json()) : Json(); };
  const Json kind = part(value, "class_name"), factors = part(value, "config");
  const Json l1 = part(factors, "l1"), l2 = part(factors, "l2");
  const bool known = kind == "L1" || kind == "L2" || kind == "L1L2";
  if (known && (l1.is_number() || l2.is_number()))
    return regularizers::L1L2(l1.is_number() ? l1.get<double>() : 0, l2.is_number() ? l2.get<double>() : 0);
  if (!inference_only_) unexpected(name, "L1, L2 or L1L2; else load it with {.inference_only = true}");
  return {};
}

Padding KerasOptions::padding() {
  const std::string said = word("padding", "valid");
  if (said != "valid" && said != "same") unexpected("padding", "\"valid\" or \"same\"");
  return said == "same" ? Padding::same : Padding::valid;
}

Policy KerasOptions::policy() {
  const Json& value = raw("dtype");
  std::string name = value.is_string() ? value.get<std::string>() : "float32";
  if (value.is_object()) {
    const auto inner = value.find("config");
    const bool plain = value.contains("class_name") && value["class_name"] == "DTypePolicy";
    if (!plain || inner == value.end() || !inner->is_object() || !inner->contains("name") ||
        !(*inner)["name"].is_string())
      unexpected("dtype", "a DTypePolicy");
    else name = (*inner)["name"].get<std::string>();
  }
  if (name == "mixed_float16") return mixed_float16;
  if (name == "mixed_bfloat16") return mixed_bfloat16;
  if (name == "float64") return {f64, f64};
  if (name == "float16") return {f16, f16};
  if (name == "bfloat16") return {bf16, bf16};
  if (name != "float32") unexpected("dtype", "a policy of float16, bfloat16, float32 or float64");
  return float32;
}

void KerasOptions::finish() {
  for (const auto& [name, value] : config_.items()) {
    if (asked_.contains(name) || makes_no_difference(name) || value.is_null() || value == false) continue;
    if (name == "data_format" && value == "channels_last") continue;
    if (acts_in_training(name) && inference_only_) continue;
    problem("option `", name, "` is ", short_form(value),
            acts_in_training(name) ? ", which acts in training; load it with {.inference_only = true}, or leave it out"
                                   : "; there is none");
  }
}

std::optional<DType> keras_dtype(const nlohmann::json& name) {
  static const std::map<std::string, DType> known{
      {"float64", f64}, {"float32", f32}, {"float16", f16}, {"bfloat16", bf16}, {"int64", i64},
      {"int32", i32},   {"int16", i16},   {"int8", i8},     {"uint64", u64},    {"uint32", u32},
      {"uint16", u16},  {"uint8", u8},    {"bool", boolean}};
  const auto found = known.find(name.is_string() ? name.get<std::string>() : "");
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace gradus
