/// Reading HDF5. Every address, size and count is checked against the existing bytes, and every object is visited once,
/// so the work is bounded by the size of the file. Section numbers are those of the HDF5 File Format Specification 3.0.
#include "gradus/formats/hdf5.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/hdf5_address.h"
#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

namespace gradus {
namespace {

using Bytes = std::span<const std::byte>;

constexpr int deepest = 64, highest = 16;  // groups within groups, nodes of the tree of one group
constexpr std::size_t longest_name = 1024;

enum Message : std::uint16_t {
  dataspace = 0x1,
  datatype = 0x3,
  layout = 0x8,
  filters = 0xb,
  continuation = 0x10,
  symbol_table = 0x11
};

/// Little-endian numbers at places of a file.
class File {
 public:
  File(Bytes bytes, std::string_view name) : bytes_(bytes), name_(name) {}
  template <class T> T at(Hdf5Address place) const {
    part(place, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + place, sizeof value);
    return value;
  }
  Bytes part(Hdf5Address place, std::uint64_t count) const {
    require<DataError>(place <= bytes_.size() && count <= bytes_.size() - place, name_, ": it ends before byte ", place,
                       " + ", count);
    return bytes_.subspan(place, count);
  }
  bool has(Hdf5Address place, std::string_view mark) const {
    const Bytes found = part(place, mark.size());
    return std::memcmp(found.data(), mark.data(), mark.size()) == 0;
  }
  template <class... What> void expect(bool ok, Hdf5Address place, const What&... what) const {
    require<DataError>(ok, name_, ": byte ", place, ": ", what...);
  }
  std::uint64_t size() const { return bytes_.size(); }

 private:
  Bytes bytes_;
  std::string_view name_;
};

/// One message of an object header, IV.A.2.
struct Piece {
  std::uint16_t kind = 0;
  Hdf5Address place = 0;
  std::uint64_t size = 0;
};

class Hdf5Reader {
 public:
  explicit Hdf5Reader(const File& file) : file_(file) {}
  std::vector<NamedArray> all() {
    constexpr std::string_view mark = "\x89HDF\r\n\x1a\n";
    file_.expect(file_.size() >= 96 && file_.has(0, mark), 0, "it is no HDF5 file");
    const auto version = file_.at<std::uint8_t>(8);
    file_.expect(version <= 1, 8, "superblock version ", version,
                 "; expected 0 or 1, which Keras and h5py write unless told otherwise");
    file_.expect(file_.at<std::uint8_t>(13) == 8 && file_.at<std::uint8_t>(14) == 8, 13,
                 "expected addresses and lengths of 8 bytes");
    const Hdf5Address base = version == 0 ? 24 : 28;
    file_.expect(file_.at<Hdf5Address>(base) == 0, base, "expected the base address 0");
    read_object(file_.at<Hdf5Address>(base + 40), "", 0);
    std::unordered_set<std::string> names;
    for (const NamedArray& array : arrays_)
      file_.expect(names.insert(array.name).second, 0, "two arrays are called `", array.name, "`");
    return std::move(arrays_);
  }

 private:
  void visit_once(Hdf5Address place) {
    file_.expect(visited_.insert(place).second, place, "two paths lead to what stands here; expected a tree of groups");
  }

  /// IV.A.1.a: a header of version 1 and what it is continued by.
  std::vector<Piece> pieces_of(Hdf5Address header) {
    visit_once(header);
    file_.expect(file_.at<std::uint8_t>(header) == 1, header, "object header of version ",
                 int{file_.at<std::uint8_t>(header)}, "; expected 1");
    std::vector<Piece> pieces;
    std::vector<std::pair<Hdf5Address, std::uint64_t>> blocks{{header + 16, file_.at<std::uint32_t>(header + 8)}};
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      auto [place, left] = blocks[block];
      file_.part(place, left);
      while (left >= 8) {
        const Piece piece{file_.at<std::uint16_t>(place), place + 8, file_.at<std::uint16_t>(place + 2)};
        file_.expect(piece.size <= left - 8, place, "a message is longer than its header");
        file_.expect(!(file_.at<std::uint8_t>(place + 4) & 2) || !is_read(piece.kind), place,
                     "a shared message; expected its contents here");
        if (piece.kind == continuation) {
          file_.expect(piece.size >= 16, place, "a continuation without its place");
          blocks.emplace_back(file_.at<Hdf5Address>(piece.place), file_.at<std::uint64_t>(piece.place + 8));
          visit_once(blocks.back().first);
        } else if (is_read(piece.kind)) {
          pieces.push_back(piece);
        }
        place = piece.place + piece.size;
        left -= 8 + piece.size;
      }
    }
    return pieces;
  }
  static bool is_read(std::uint16_t kind) {
    return kind == dataspace || kind == datatype || kind == layout || kind == filters || kind == symbol_table;
  }

  void read_object(Hdf5Address header, const std::string& path, int depth) {
    file_.expect(depth < deepest, header, "groups are nested deeper than ", deepest);
    const std::vector<Piece> pieces = pieces_of(header);
    const auto find = [&](Message kind) {
      const auto found = std::ranges::find(pieces, kind, &Piece::kind);
      return found == pieces.end() ? std::nullopt : std::optional(*found);
    };
    if (const auto table = find(symbol_table)) {
      file_.expect(table->size >= 16, table->place, "a group without its places");
      read_tree(file_.at<Hdf5Address>(table->place), file_.at<Hdf5Address>(table->place + 8), path, depth);
    } else if (const auto space = find(dataspace), type = find(datatype), where = find(layout);
               space && type && where) {
      file_.expect(!find(filters), header, "array `", path, "` is compressed; expected it plain, as Keras writes it");
      read_array(path, *space, *type, *where);
    } else {
      file_.expect(false, header, "`", path,
                   "` is neither an array nor a group with a symbol table, the form that Keras and h5py write");
    }
  }

  /// III.A.1: nodes of a tree of version 1, then the symbol tables.
  void read_tree(Hdf5Address node, Hdf5Address heap, const std::string& path, int depth, int level = 0) {
    visit_once(node);
    file_.expect(level < highest, node, "a tree is deeper than ", highest);
    if (file_.has(node, "SNOD")) return read_names(node, heap, path, depth);
    file_.expect(file_.has(node, "TREE") && file_.at<std::uint8_t>(node + 4) == 0, node, "no node of a group's tree");
    const auto entries = file_.at<std::uint16_t>(node + 6);
    for (unsigned i = 0; i < entries; ++i)
      read_tree(file_.at<Hdf5Address>(node + 24 + 8 + i * Hdf5Address{16}), heap, path, depth, level + 1);
  }

  /// III.B, III.C
  void read_names(Hdf5Address node, Hdf5Address heap, const std::string& path, int depth) {
    const auto entries = file_.at<std::uint16_t>(node + 6);
    for (unsigned i = 0; i < entries; ++i) {
      const Hdf5Address entry = node + 8 + i * Hdf5Address{40};
      file_.expect(file_.at<std::uint32_t>(entry + 16) != 2, entry, "a soft link; expected arrays and groups");
      const std::string name = name_at(heap, file_.at<std::uint64_t>(entry));
      read_object(file_.at<Hdf5Address>(entry + 8), path.empty() ? name : path + '/' + name, depth + 1);
    }
  }

  /// III.D: the text at `offset` of a local heap.
  std::string name_at(Hdf5Address heap, std::uint64_t offset) const {
    file_.expect(file_.has(heap, "HEAP"), heap, "no heap of names");
    const auto size = file_.at<std::uint64_t>(heap + 8);
    const Bytes names = file_.part(file_.at<Hdf5Address>(heap + 24), size);
    file_.expect(offset < size, heap, "a name lies outside its heap");
    const auto from = names.subspan(offset, std::min<std::uint64_t>(size - offset, longest_name + 1));
    const auto end = std::ranges::find(from, std::byte{0});
    const std::string name(reinterpret_cast<const char*>(from.data()), static_cast<std::size_t>(end - from.begin()));
    file_.expect(end != from.end() && !name.empty() && name.find('/') == std::string::npos, heap, "a name is none");
    return name;
  }

  void read_array(const std::string& path, const Piece& space, const Piece& type, const Piece& where) {
    NamedArray array{.name = path, .spec = {dtype_of(type, path), shape_of(space, path)}};
    std::int64_t bytes = 0;
    try {
      bytes = bytes_of(array.spec);
    } catch (const Error&) { file_.expect(false, space.place, "array `", path, "` is larger than any memory"); }
    const Bytes source = contents_of(where, static_cast<std::uint64_t>(bytes), path);
    taken_ += source.size();
    file_.expect(taken_ <= file_.size(), where.place, "arrays overlap");
    array.data = Buffer::allocate(bytes, "weights");
    if (bytes) std::memcpy(array.data->data(), source.data(), source.size());
    arrays_.push_back(std::move(array));
  }

  /// IV.A.2.b
  Shape shape_of(const Piece& piece, const std::string& path) const {
    const auto version = file_.at<std::uint8_t>(piece.place), rank = file_.at<std::uint8_t>(piece.place + 1);
    file_.expect(version == 1 || version == 2, piece.place, "array `", path, "`: a shape of version ", int{version});
    file_.expect(version == 1 || file_.at<std::uint8_t>(piece.place + 3) != 2, piece.place, "array `", path,
                 "` has no value");
    file_.expect(rank <= Shape::max_rank, piece.place, "array `", path, "` has ", int{rank}, " dimensions; at most ",
                 Shape::max_rank);
    Shape shape;
    for (int i = 0; i < rank; ++i) {
      const auto size = file_.at<std::uint64_t>(piece.place + (version == 1 ? 8 : 4) + 8 * static_cast<Hdf5Address>(i));
      file_.expect(size < std::uint64_t{1} << 62, piece.place, "array `", path, "`: ", size, " is no size");
      shape.push_back(static_cast<std::int64_t>(size));
    }
    return shape;
  }

  /// IV.A.2.d: which of our types it is, bit for bit.
  DType dtype_of(const Piece& piece, const std::string& path) const {
    const int kind = file_.at<std::uint8_t>(piece.place) & 0xf;
    const std::uint32_t flags = file_.at<std::uint32_t>(piece.place) >> 8,
                        size = file_.at<std::uint32_t>(piece.place + 4);
    const auto fail = [&]() -> DType {
      file_.expect(false, piece.place, "array `", path, "` is of class ", kind, " and ", size,
                   " bytes an element; expected little-endian integers, floats or bf16");
      return f32;
    };
    if (kind == 5 && size == 2) return bf16;
    if (kind > 1 || (flags & 1)) return fail();
    if (file_.at<std::uint16_t>(piece.place + 8) != 0 || file_.at<std::uint16_t>(piece.place + 10) != 8 * size)
      return fail();
    if (kind == 0) {
      const bool is_signed = flags & 8;
      switch (size) {
        case 1: return is_signed ? i8 : u8;
        case 2: return is_signed ? i16 : u16;
        case 4: return is_signed ? i32 : u32;
        case 8: return is_signed ? i64 : u64;
        default: return fail();
      }
    }
    const int exponent = file_.at<std::uint8_t>(piece.place + 13);
    if (size == 2 && exponent == 8) return bf16;
    if (size == 2 && exponent == 5) return f16;
    if (size == 4 && exponent == 8) return f32;
    if (size == 8 && exponent == 11) return f64;
    return fail();
  }

  /// IV.A.2.i
  Bytes contents_of(const Piece& piece, std::uint64_t bytes, const std::string& path) const {
    const auto version = file_.at<std::uint8_t>(piece.place), kind = file_.at<std::uint8_t>(piece.place + 1);
    file_.expect(version == 3 || version == 4, piece.place, "array `", path, "`: a layout of version ", int{version});
    file_.expect(kind <= 1, piece.place, "array `", path,
                 "` is cut into chunks; expected one piece, as Keras writes it");
    const Hdf5Address begin = kind == 0 ? piece.place + 4 : file_.at<Hdf5Address>(piece.place + 2);
    const std::uint64_t size =
        kind == 0 ? file_.at<std::uint16_t>(piece.place + 2) : file_.at<std::uint64_t>(piece.place + 10);
    if (bytes == 0) return {};
    file_.expect(begin != hdf5_nowhere && size == bytes, piece.place, "array `", path, "` should have ", bytes,
                 " bytes, but has ", begin == hdf5_nowhere ? 0 : size);
    return file_.part(begin, bytes);
  }

  const File& file_;
  std::unordered_set<Hdf5Address> visited_;
  std::vector<NamedArray> arrays_;
  std::uint64_t taken_ = 0;
};

}  // namespace

std::vector<NamedArray> parse_hdf5(std::span<const std::byte> bytes, std::string_view name) {
  const File file(bytes, name);
  return Hdf5Reader(file).all();
}

}  // namespace gradus
