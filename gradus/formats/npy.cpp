/// Every number in the header is checked against the existing bytes before anything is allocated.
#include "gradus/formats/npy.h"
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include "gradus/base/rooms.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/npy_stream.h"
#include "gradus/base/input_file.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::string_view npy_magic = "\x93NUMPY";

/// The letter and the width by which NumPy calls a dtype. A dtype that is not in the table cannot be written.
struct TypeCode {
  std::string_view name, code;
};
constexpr TypeCode type_codes[] = {{"f64", "f8"}, {"f32", "f4"}, {"f16", "f2"}, {"bf16", "V2"}, {"i64", "i8"},
                                   {"i32", "i4"}, {"i16", "i2"}, {"i8", "i1"},  {"u64", "u8"},  {"u32", "u4"},
                                   {"u16", "u2"}, {"u8", "u1"},  {"bool", "b1"}};

struct NpyHeader {
  DType dtype = f32;
  bool big_endian = false, fortran = false;
  Shape shape;
};

/// Reads the dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  /// `end` is the byte behind the header.
  HeaderParser(std::string_view source, std::size_t end, const std::string& name)
      : rest_(source), end_(end), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    bool type = false, order = false, shape = false;
    expect(take("{"), "it is no dictionary");
    while (!take("}")) {
      const std::string_view key = quoted();
      expect(take(":"), "a key has no value");
      if (key == "descr") type = read_type(header);
      else if (key == "fortran_order") order = read_order(header);
      else if (key == "shape") shape = read_shape(header);
      else expect(false, text("the key `", key, "` is unknown"));
      if (!take(",")) {
        expect(take("}"), "a comma is missing");
        break;
      }
    }
    expect(type && order && shape, "it must have descr, fortran_order and shape");
    return header;
  }

 private:
  void expect(bool ok, std::string_view what) const {
    require<DataError>(ok, name_, ": byte ", end_ - rest_.size(), ": header of the array: ", what);
  }
  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }
  bool take(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string_view quoted() {
    skip_spaces();
    expect(!rest_.empty() && (rest_.front() == '\'' || rest_.front() == '"'), "a name in quotes is missing");
    const std::size_t end = rest_.find(rest_.front(), 1);
    expect(end != std::string_view::npos, "a quote is not closed");
    const std::string_view inside = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inside;
  }
  bool read_type(NpyHeader& header) {
    const std::string_view descr = quoted();
    expect(!descr.ends_with('O'),
           "it has Python objects, pickled, such as lists of several lengths in Keras's imdb.npz; "
           "reading them would run code. In Python store numbers: np.savez(file, x_train=keras."
           "utils.pad_sequences(x_train), ...)");
    expect(descr.size() == 3 && std::string_view("<>|=").find(descr[0]) != std::string_view::npos,
           text("the type `", descr, "` is not supported"));
    header.big_endian = descr[0] == '>';
    const std::string_view code = descr.substr(1);
    for (const TypeCode& known : type_codes)
      for (const DType dtype : all_dtypes)
        if (known.code == code && known.name == name_of(dtype)) {
          header.dtype = dtype;
          return true;
        }
    expect(false, text("the type `", descr, "` is not supported"));
    return false;
  }
  bool read_order(NpyHeader& header) {
    header.fortran = take("True");
    expect(header.fortran || take("False"), "fortran_order must be True or False");
    return true;
  }
  bool read_shape(NpyHeader& header) {
    expect(take("("), "shape must be a tuple");
    while (!take(")")) {
      skip_spaces();
      std::int64_t extent = 0;
      const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      expect(problem == std::errc() && extent >= 0, "an extent is no size");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      expect(header.shape.rank() < Shape::max_rank, text("more than ", Shape::max_rank, " dimensions"));
      header.shape.push_back(extent);
      if (take(",")) continue;
      expect(take(")"), "shape is not closed");
      break;
    }
    return true;
  }

  std::string_view rest_;
  std::size_t end_;
  const std::string& name_;
};

/// The first 12 bytes, or fewer in a shorter file: they contain the header's length.
constexpr std::size_t before_header = 12;

/// The place and length of the header's text. `bytes`: the first bytes of a file of `size` bytes.
struct HeaderPlace {
  std::size_t begin, length;
};
HeaderPlace header_place(std::span<const std::byte> bytes, std::size_t size, const std::string& name) {
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  require<DataError>(
      bytes.size() >= npy_magic.size() && std::memcmp(bytes.data(), npy_magic.data(), npy_magic.size()) == 0, name,
      ": byte 0: no NumPy file: it does not begin with \\x93NUMPY");
  require<DataError>(bytes.size() >= before_header, name, ": byte ", bytes.size(), ": the file ends in its header");
  const std::size_t version = byte(6);
  require<DataError>(version >= 1 && version <= 3, name, ": byte 6: version ", version, " of the format is unknown");
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  require<DataError>(length <= size - begin, name, ": byte 8: the header claims ", length, " bytes, ", size - begin,
                     " follow");
  return {begin, length};
}

NpyHeader header_at(HeaderPlace place, std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view source(reinterpret_cast<const char*>(bytes.data()) + place.begin, place.length);
  return HeaderParser(source, place.begin + place.length, name).parse();
}

void swap_bytes(std::byte* data, std::int64_t count, std::int64_t width) {
  for (std::int64_t i = 0; i < count; ++i, data += width) std::reverse(data, data + width);
}

std::string written_shape(const Shape& shape) {
  std::string out = "(";
  for (int i = 0; i < shape.rank(); ++i)
    out += text(shape[i], i + 1 < shape.rank() ? ", " : shape.rank() == 1 ? "," : "");
  return out + ")";
}

/// The bytes of an array, which `follow` the header, at byte `begin`.
std::int64_t bytes_of_array(const NpyHeader& header, const Spec& stored, std::size_t begin, std::size_t follow,
                            const std::string& name) {
  std::int64_t size = 0;
  try {
    size = bytes_of(stored);
  } catch (const Error& error) { throw DataError(text(name, ": byte ", begin, ": ", error.what())); }
  require<DataError>(static_cast<std::uint64_t>(size) == follow, name, ": byte ", begin, ": ",
                     Spec{stored.dtype, header.shape}, " needs ", size, " bytes, ", follow, " follow the header");
  return size;
}

void check_bools(const std::uint8_t* values, std::int64_t count, std::size_t begin, const std::string& name) {
  for (std::int64_t i = 0; i < count; ++i)
    require<DataError>(values[i] <= 1, name, ": byte ", begin + static_cast<std::size_t>(i),
                       ": a bool is neither 0 nor 1");
}

/// The array whose elements are the `follow` bytes from `begin` on. `read` puts them into memory, where they exist only
/// once.
template <class Read>
Tensor array_of(const NpyHeader& header, std::size_t begin, std::size_t follow, const std::string& name, Read read) {
  Shape stored = header.shape;
  if (header.fortran)
    for (int i = 0; i < stored.rank(); ++i) stored.set(i, header.shape[-1 - i]);
  const Spec spec{header.dtype, stored};
  const std::int64_t size = bytes_of_array(header, spec, begin, follow, name);
  Ref<Buffer> buffer = Buffer::allocate(size, "npy file");
  if (size) read(std::span(buffer->data<std::byte>(), static_cast<std::size_t>(size)));
  if (header.big_endian) swap_bytes(buffer->data<std::byte>(), spec.shape.size(), size_of(spec.dtype));
  if (spec.dtype == boolean) check_bools(buffer->data<std::uint8_t>(), size, begin, name);
  const Tensor x = Tensor::of_buffer(spec, std::move(buffer));
  if (!header.fortran || stored.rank() < 2) return x;
  std::vector<int> backwards;
  for (int i = stored.rank() - 1; i >= 0; --i) backwards.push_back(i);
  return transpose(x, backwards);
}

}  // namespace

Tensor read_npy(ByteStream& stream, std::uint64_t size) {
  const std::string& name = stream.name();
  std::vector<std::byte> start(std::min(size, before_header));
  start.resize(stream.read(start));
  const HeaderPlace place = header_place(start, size, name);
  const std::size_t known = start.size(), begin = place.begin + place.length;
  start.resize(std::max(known, begin));
  const auto require_read = [&](std::span<std::byte> part) {
    require<DataError>(stream.read(part) == part.size(), name, ": it ends before the ", size,
                       " bytes that it had when it was opened");
  };
  require_read(std::span(start).subspan(known));
  return array_of(header_at(place, start, name), begin, size - begin, name, require_read);
}

Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  return read_npy(*stream_of(bytes, name), bytes.size());
}

Tensor load_npy(const std::filesystem::path& path) {
  const std::unique_ptr<ByteStream> file = open_file(path);
  const auto size = static_cast<std::uint64_t>(file->likely_bytes());
  if (size == 0) return parse_npy(read_whole_file(path), file->name());  // empty, or made while it is read
  return read_npy(*file, size);
}

Tensor map_npy(const std::filesystem::path& path) {
  const InputFile file(path);
  const std::string& name = file.name();
  const auto size = static_cast<std::size_t>(file.size());
  require<DataError>(size > 0, name, ": byte 0: no NumPy file: it is empty, or made while it is read");
  const std::shared_ptr<std::byte> memory = file.map();
  const std::span<const std::byte> all(memory.get(), size);
  const HeaderPlace place = header_place(all.first(std::min(size, before_header)), size, name);
  const NpyHeader header = header_at(place, all, name);
  const std::size_t begin = place.begin + place.length;
  const Spec spec{header.dtype, header.shape};
  const std::int64_t bytes = bytes_of_array(header, spec, begin, size - begin, name);
  const auto refuse = [&](bool refused, std::string_view why) {
    require(!refused, "map_npy: ", name, ": the array is stored ", why, "; load_npy reads it");
  };
  refuse(header.fortran && spec.shape.rank() > 1, "column by column (fortran_order)");
  refuse(header.big_endian && size_of(spec.dtype) > 1, "in big endian");
  refuse(begin % static_cast<std::size_t>(size_of(spec.dtype)) != 0, "at a byte that is no multiple of an element");
  std::byte* const elements = memory.get() + begin;
  if (spec.dtype == boolean) check_bools(reinterpret_cast<const std::uint8_t*>(elements), bytes, begin, name);
  return Tensor::of_buffer(spec, Buffer::borrow(elements, bytes, memory));
}

std::string npy_header(const Spec& spec) {
  const auto known = std::ranges::find(type_codes, name_of(spec.dtype), &TypeCode::name);
  require(known != std::end(type_codes), "save_npy: NumPy has no type for ", spec.dtype, "; cast it first");
  std::string header = text("{'descr': '", size_of(spec.dtype) == 1 ? '|' : '<', known->code,
                            "', 'fortran_order': False, 'shape': ", written_shape(spec.shape), ", }");
  header.resize((header.size() + 11) / 64 * 64 + 53, ' ');  // with what stands before it a multiple of 64
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  std::string all(npy_magic);
  all.append("\x01\x00", 2).append(reinterpret_cast<const char*>(&length), 2);
  return all + header;
}

void save_npy(const std::filesystem::path& file, const Tensor& x) {
  const std::string header = npy_header(x.spec());
  const auto* values = x.host<std::byte>();
  AtomicFile out(file);
  out.write(header);
  out.write(std::span(values, static_cast<std::size_t>(bytes_of(x.spec()))));
  out.commit();
}

}  // namespace gradus
