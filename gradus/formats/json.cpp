#include "gradus/formats/json.h"
#include <charconv>
#include <cmath>
#include <string>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"

namespace gradus {
namespace {

/// Builds a value from what the parser meets. Values that are open stand on a stack of their own.
template <class Json> class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view source) : source_(source) {}
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(typename Json::number_integer_t value) override { return add(value); }
  bool number_unsigned(typename Json::number_unsigned_t value) override { return add(value); }
  /// The parser reads by strtod, as the caller's locale has it, and spells the point so; the written text says more.
  bool number_float(double, const std::string& written) override {
    std::string digits = written;
    for (char& c : digits)
      if (std::string_view("0123456789+-eE").find(c) == std::string_view::npos) c = '.';
    double value = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem == std::errc::result_out_of_range && is_tiny(digits)) return add(digits[0] == '-' ? -0.0 : 0.0);
    require<DataError>(problem == std::errc() && end == digits.data() + digits.size(), source_, ": the number ", digits,
                       " does not fit");
    return add(value);
  }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(typename Json::binary_t&) override { return false; }  // of other formats than JSON
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    require<DataError>(!open_.back()->contains(name), source_, ": the key `", name, "` stands twice in one object");
    place_ = &(*open_.back())[name];
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& error) override {
    const std::string_view all = error.what();  // "[json.exception.parse_error.101] parse error at ...: why"
    const std::size_t why = all.find(": ");
    throw DataError(text(source_, ": byte ", byte > 0 ? byte - 1 : 0,
                         ": this is no JSON: ", why == std::string_view::npos ? all : all.substr(why + 2)));
  }

 private:
  /// "1e-400", which rounds to 0, and not "1e400".
  static bool is_tiny(std::string_view digits) {
    const std::size_t exponent = digits.find_first_of("eE");
    if (exponent != std::string_view::npos) return digits.substr(exponent + 1).starts_with('-');
    return digits.find_first_of("123456789") > digits.find('.');
  }
  template <class T> bool add(T&& value) {
    *next_place() = std::forward<T>(value);
    return true;
  }
  bool open(Json value) {
    require<DataError>(open_.size() < static_cast<std::size_t>(max_json_depth), source_,
                       ": values are nested more than ", max_json_depth, " deep");
    Json* const place = next_place();
    *place = std::move(value);
    open_.push_back(place);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  /// An open array grows, and what lies in it moves, only while none of its elements is open.
  Json* next_place() {
    if (open_.empty()) return &root_;
    if (!open_.back()->is_array()) return place_;
    open_.back()->push_back(nullptr);
    return &open_.back()->back();
  }

  std::string_view source_;
  Json root_;
  std::vector<Json*> open_;
  Json* place_ = nullptr;
};

}  // namespace

template <class Json> Json parse_json(std::string_view written, std::string_view source) {
  const HostFloats floats;  // from_chars rounds as the caller does
  Builder<Json> builder(source);
  Json::sax_parse(written, &builder);
  return builder.take();
}

template <class Json> Json json_if_any(std::string_view written) {
  try {
    return parse_json<Json>(written, {});
  } catch (const DataError&) { return {}; }
}

template nlohmann::json parse_json(std::string_view, std::string_view);
template nlohmann::ordered_json parse_json(std::string_view, std::string_view);
template nlohmann::json json_if_any(std::string_view);
template nlohmann::ordered_json json_if_any(std::string_view);

}  // namespace gradus
