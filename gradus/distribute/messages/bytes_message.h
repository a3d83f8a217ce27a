/// Serialization of messages: bytes, written by one side, read with a check of every length by the other. Integers are
/// little-endian.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include "gradus/base/error.h"

namespace gradus {

class MessageWriter {
 public:
  MessageWriter& integer(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  MessageWriter& number(double value) { return integer(std::bit_cast<std::uint64_t>(value)); }
  MessageWriter& words(std::string_view value) {
    integer(value.size());
    bytes_.append(value);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// DataError, which `source` opens, where a message ends too soon or goes on.
class MessageReader {
 public:
  MessageReader(std::string_view bytes, std::string_view source) : rest_(bytes), source_(source) {}

  std::uint64_t integer() {
    const std::string_view taken = take(8);
    std::uint64_t value = 0;
    for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(taken[static_cast<std::size_t>(i)]);
    return value;
  }
  /// At most `most`.
  std::size_t size(std::uint64_t most, std::string_view what) {
    const std::uint64_t value = integer();
    require<DataError>(value <= most, source_, ": ", what, " is ", value, ", at most ", most);
    return static_cast<std::size_t>(value);
  }
  double number() { return std::bit_cast<double>(integer()); }
  std::string_view words(std::uint64_t most, std::string_view what) { return take(size(most, what)); }
  std::string_view rest() { return take(rest_.size()); }
  void finish() const {
    require<DataError>(rest_.empty(), source_, ": ", rest_.size(), " bytes follow what was expected");
  }

 private:
  std::string_view take(std::size_t count) {
    require<DataError>(count <= rest_.size(), source_, ": it ends too soon");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view rest_;
  std::string_view source_;
};

}  // namespace gradus
