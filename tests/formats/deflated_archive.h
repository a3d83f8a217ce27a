/// Archives as zip tools write them, for what reads them.
#pragma once
#include <zlib.h>
#include <cstdint>
#include <string>

namespace gradus {

/// A zip file of one deflated part without zip64, as zip tools and np.savez_compressed of small arrays have it. Its
/// directory names it so many `times`.
inline std::string deflated_archive(const std::string& name, const std::string& plain, std::uint16_t times = 1) {
  std::string packed(plain.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  std::string out;
  const auto put = [&](auto... values) { (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...); };
  using u16_t = std::uint16_t;
  using u32_t = std::uint32_t;
  const auto crc = static_cast<u32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(plain.data()), plain.size()));
  const auto size = static_cast<u32_t>(packed.size()), full = static_cast<u32_t>(plain.size());
  const auto length = static_cast<u16_t>(name.size());
  put(u32_t{0x04034b50}, u16_t{20}, u16_t{0}, u16_t{8}, u32_t{0}, crc, size, full, length, u16_t{0});
  out += name + packed;
  const auto directory = static_cast<u32_t>(out.size());
  for (int i = 0; i < times; ++i) {
    put(u32_t{0x02014b50}, u16_t{20}, u16_t{20}, u16_t{0}, u16_t{8}, u32_t{0}, crc, size, full, length, u16_t{0},
        u16_t{0}, u16_t{0}, u16_t{0}, u32_t{0}, u32_t{0});
    out += name;
  }
  const auto bytes = static_cast<u32_t>(out.size()) - directory;
  put(u32_t{0x06054b50}, u16_t{0}, u16_t{0}, times, times, bytes, directory, u16_t{5});
  return out + "a zip";
}

}  // namespace gradus
