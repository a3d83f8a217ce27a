/// One zlib stream of rows without filters.
#include "gradus/formats/png_writer.h"
#include <zlib.h>
#include "gradus/formats/atomic_file.h"

namespace gradus {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

std::string chunk(std::string_view kind, std::string_view data) {
  const std::string checked = std::string(kind) + std::string(data);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size());
  return big_endian(static_cast<std::uint32_t>(data.size())) + checked + big_endian(static_cast<std::uint32_t>(crc));
}

std::string deflated(const std::string& raw) {
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  std::string out(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
                               static_cast<uLong>(raw.size()), 6);
  require<ResourceExhausted>(result == Z_OK, "save_png: there is no memory to compress an image");
  out.resize(size);
  return out;
}

}  // namespace

std::string encode_png(const Tensor& image, std::string_view op) {
  const Spec& spec = image.spec();
  const int rank = spec.shape.rank();
  require(spec.dtype == u8 && (rank == 2 || rank == 3), op, ": expected an image, u8 [height, width, channels], got ",
          spec);
  const std::int64_t height = spec.shape[0], width = spec.shape[1], channels = rank == 3 ? spec.shape[2] : 1;
  constexpr std::int64_t most = 1 << 20;
  require(height > 0 && width > 0 && height <= most && width <= most && channels >= 1 && channels <= 4, op,
          ": expected 1 to 2^20 rows and columns and 1 to 4 channels, got ", spec);
  const std::int64_t row = width * channels;
  require(row * height < (std::int64_t{1} << 31) - height, op, ": ", spec, " is too large for a PNG of one piece");
  const char* pixels = image.host<char>();
  std::string raw;
  raw.reserve(static_cast<std::size_t>((row + 1) * height));
  for (std::int64_t y = 0; y < height; ++y) {
    raw += '\0';  // no filter
    raw.append(pixels + y * row, static_cast<std::size_t>(row));
  }
  constexpr char colours[] = {0, 4, 2, 6};  // by the number of channels
  std::string header = big_endian(static_cast<std::uint32_t>(width)) + big_endian(static_cast<std::uint32_t>(height));
  header += '\x08';
  header += colours[channels - 1];
  header.append(3, '\0');
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", deflated(raw)) + chunk("IEND", "");
}

void save_png(const std::filesystem::path& file, const Tensor& image) {
  const std::string bytes = encode_png(image, "save_png");
  AtomicFile out(file);
  out.write(bytes);
  out.commit();
}

}  // namespace gradus
