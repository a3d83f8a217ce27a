#include "gradus/formats/idx.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/gzip.h"

namespace gradus {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::size_t max_rank = 8;

struct Code {
  unsigned code;
  DType dtype;
};
constexpr Code codes[] = {{0x08, u8}, {0x09, i8}, {0x0b, i16}, {0x0c, i32}, {0x0d, f32}, {0x0e, f64}};
constexpr const char* known_codes = "8 (u8), 9 (i8), 11 (i16), 12 (i32), 13 (f32) and 14 (f64)";

std::uint32_t from_big_endian(std::span<const std::byte, 4> bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

template <class Word> void swap_bytes(std::byte* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i, data += sizeof(Word)) {
    Word word;
    std::memcpy(&word, data, sizeof word);
    if constexpr (sizeof word == 2) word = __builtin_bswap16(word);
    else if constexpr (sizeof word == 4) word = __builtin_bswap32(word);
    else word = __builtin_bswap64(word);
    std::memcpy(data, &word, sizeof word);
  }
}
/// Between big endian and the machine's order, either way.
void swap_elements(std::byte* data, std::int64_t bytes, DType dtype) {
  if (size_of(dtype) == 2) swap_bytes<std::uint16_t>(data, bytes / 2);
  if (size_of(dtype) == 4) swap_bytes<std::uint32_t>(data, bytes / 4);
  if (size_of(dtype) == 8) swap_bytes<std::uint64_t>(data, bytes / 8);
}

/// "60000x28x28"
std::string product_text(std::span<const std::int64_t> dims) {
  std::string out;
  for (std::size_t i = 0; i < dims.size(); ++i) out += text(i ? "x" : "", dims[i]);
  return out;
}

std::uint32_t read_word(ByteStream& stream, const char* what) {
  std::array<std::byte, 4> bytes;
  const std::size_t count = stream.read(bytes);
  require<DataError>(count == bytes.size(), stream.name(), ": ", stream.position() == 0 ? "empty" : "truncated", " at ",
                     stream.place(), ": expected ", what, " of an IDX file");
  return from_big_endian(bytes);
}

struct IdxHeader {
  DType dtype;
  std::vector<std::int64_t> dims;
  std::int64_t bytes;
  std::string promise() const {
    return text("the header promises ", product_text(dims), " = ", bytes, " bytes of ", dtype);
  }
};

DType dtype_of_code(const ByteStream& stream, unsigned code) {
  for (const Code& known : codes)
    if (known.code == code) return known.dtype;
  throw DataError(text(stream.name(), ": ", stream.place_of(2), ": element type ", code,
                       " is not supported; the types read are ", known_codes));
}

IdxHeader read_header(ByteStream& stream) {
  const std::uint32_t magic = read_word(stream, "the magic number");
  require<DataError>(magic >> 16 == 0, stream.name(), ": not an IDX file: ", stream.place_of(0),
                     " should begin with two zero bytes, found ", magic >> 24, " and ", magic >> 16 & 0xff);
  IdxHeader header{dtype_of_code(stream, magic >> 8 & 0xff), {}, 0};
  const unsigned rank = magic & 0xff;
  require<DataError>(rank >= 1 && rank <= max_rank, stream.name(), ": ", stream.place_of(3), ": expected 1 to ",
                     max_rank, " dimensions, found ", rank);
  for (unsigned axis = 0; axis < rank; ++axis) header.dims.push_back(read_word(stream, "the extents"));
  header.bytes = size_of(header.dtype);
  bool fits = true;
  for (const std::int64_t dim : header.dims) fits &= !__builtin_mul_overflow(header.bytes, dim, &header.bytes);
  if (std::ranges::count(header.dims, 0) > 0) header.bytes = 0, fits = true;
  require<DataError>(fits && header.bytes < std::numeric_limits<std::int64_t>::max() / 2, stream.name(), ": ",
                     stream.place_of(4), ": the header promises ", product_text(header.dims), " elements of ",
                     header.dtype, ", more than 2^62 bytes");
  return header;
}

/// Grows with what really comes: a header alone cannot make it allocate more than a multiple of the file.
Ref<Buffer> read_elements(ByteStream& stream, const IdxHeader& header) {
  Ref<Buffer> data = Buffer::allocate(std::min(header.bytes, stream.likely_bytes() + 4096), "idx file");
  for (std::int64_t filled = 0;;) {
    const auto wanted = static_cast<std::size_t>(data->bytes() - filled);
    const std::size_t count = stream.read({data->data<std::byte>() + filled, wanted});
    filled += static_cast<std::int64_t>(count);
    require<DataError>(count == wanted, stream.name(), ": truncated at ", stream.place(), ": ", header.promise());
    if (filled == header.bytes) return data;
    Ref<Buffer> larger = Buffer::allocate(std::min(header.bytes, 2 * filled), "idx file");
    std::memcpy(larger->data(), data->data(), static_cast<std::size_t>(filled));
    data = std::move(larger);
  }
}

IdxArray read_array(std::unique_ptr<ByteStream> source) {
  const std::unique_ptr<ByteStream> stream = gunzip_if_compressed(std::move(source));
  IdxHeader header = read_header(*stream);
  Ref<Buffer> data = read_elements(*stream, header);
  std::byte more;
  const std::string end = stream->place();
  require<DataError>(stream->read({&more, 1}) == 0, stream->name(), ": bytes follow the end of the data at ", end, ": ",
                     header.promise());
  swap_elements(data->data<std::byte>(), header.bytes, header.dtype);
  if (header.bytes >= memory::labelled_bytes)
    data->set_label(text("idx file ", stream->name(), " ", header.dtype, "[", product_text(header.dims), "]"));
  return {header.dtype, std::move(header.dims), std::move(data)};
}

unsigned code_of(DType dtype) {
  for (const Code& known : codes)
    if (known.dtype == dtype) return known.code;
  throw InvalidArgument(
      text("write_idx: an IDX file holds u8, i8, i16, i32, f32 or f64, given ", dtype, "; cast it first"));
}

void write_word(AtomicFile& file, std::uint32_t value) {
  const std::uint32_t swapped = __builtin_bswap32(value);
  file.write(std::as_bytes(std::span(&swapped, 1)));
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& file) { return read_array(open_file(file)); }
IdxArray parse_idx(std::span<const std::byte> bytes, std::string name) {
  return read_array(stream_of(bytes, std::move(name)));
}

void write_idx(const std::filesystem::path& file, DType dtype, std::span<const std::int64_t> dims, const void* data) {
  const unsigned code = code_of(dtype);
  require(!dims.empty() && dims.size() <= max_rank, "write_idx: expected 1 to ", max_rank, " dimensions, given ",
          dims.size());
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t dim : dims) {
    require(dim >= 0 && dim <= std::numeric_limits<std::uint32_t>::max(), "write_idx: an extent of ", dim,
            " does not fit in an IDX file");
    require(!__builtin_mul_overflow(bytes, dim, &bytes), "write_idx: ", product_text(dims), " elements are too many");
  }
  AtomicFile out(file);
  write_word(out, code << 8 | static_cast<unsigned>(dims.size()));
  for (const std::int64_t dim : dims) write_word(out, static_cast<std::uint32_t>(dim));
  std::array<std::byte, 64 << 10> chunk;
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t count = std::min<std::int64_t>(chunk.size(), bytes - done);
    std::memcpy(chunk.data(), static_cast<const std::byte*>(data) + done, static_cast<std::size_t>(count));
    swap_elements(chunk.data(), count, dtype);
    out.write(std::span<const std::byte>(chunk).first(static_cast<std::size_t>(count)));
    done += count;
  }
  out.commit();
}

Tensor load_idx(const std::filesystem::path& file) {
  IdxArray array = read_idx(file);
  return Tensor::of_buffer({array.dtype, Shape(array.dims)}, std::move(array.data));
}

void save_idx(const std::filesystem::path& file, const Tensor& x) {
  const Shape& shape = x.shape();
  write_idx(file, x.dtype(), {shape.begin(), shape.end()}, x.host());
}

}  // namespace gradus
