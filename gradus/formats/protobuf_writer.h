/// Writes messages in the binary form of protocol buffers, field by field: for the few that are only written.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace gradus {

class ProtobufWriter {
 public:
  void integer(int field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
  }
  void number(int field, double value) { fixed(field, 1, value); }
  void number(int field, float value) { fixed(field, 5, value); }
  void bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    out_ += value;
  }
  void message(int field, const ProtobufWriter& value) { bytes(field, value.out_); }
  /// A packed repeated field.
  void numbers(int field, std::span<const double> values) {
    bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  const std::string& written() const { return out_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void key(int field, unsigned kind) { varint(static_cast<std::uint64_t>(field) << 3 | kind); }
  void fixed(int field, unsigned kind, auto value) {
    key(field, kind);
    char raw[sizeof value];  // little endian, as every machine that this library runs on
    std::memcpy(raw, &value, sizeof value);
    out_.append(raw, sizeof value);
  }
  std::string out_;
};

}  // namespace gradus
