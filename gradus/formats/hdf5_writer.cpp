/// Writing HDF5: addresses are assigned from the root down, then all structures are put in their places. Objects are
/// those of hdf5.cpp's sections.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include "gradus/formats/hdf5.h"
#include "gradus/formats/hdf5_address.h"

namespace gradus {
namespace {

constexpr std::size_t names_in_table = 8, children_of_node = 32;  // twice the numbers in the superblock
constexpr std::uint64_t table_bytes = 8 + names_in_table * 40;
constexpr std::uint64_t node_bytes = 24 + (2 * children_of_node + 1) * 8;

/// A group, or an array.
struct Object {
  std::map<std::string, std::unique_ptr<Object>> members;
  const NamedArray* array = nullptr;
  Hdf5Address data = hdf5_nowhere;  // of the array, from the end of the header
};

/// Grows as its parts are put at places in it.
class Writer {
 public:
  /// Reserves bytes at the end, a multiple of 8.
  Hdf5Address reserve(std::uint64_t bytes) {
    const Hdf5Address place = out_.size();
    out_.resize(out_.size() + (bytes + 7) / 8 * 8, '\0');
    return place;
  }
  template <class... T> void put(Hdf5Address place, T... values) {
    ((std::memcpy(out_.data() + place, &values, sizeof values), place += sizeof values), ...);
  }
  void characters(Hdf5Address place, std::string_view text) {
    std::memcpy(out_.data() + place, text.data(), text.size());
  }
  Hdf5Address size() const { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

using u8_ = std::uint8_t;
using u16_ = std::uint16_t;
using u32_ = std::uint32_t;
using u64_ = std::uint64_t;

struct Layout {
  Writer out;
  std::vector<std::pair<Hdf5Address, Hdf5Address>>
      contents;  // where the address of an array's contents stands, and its offset

  /// The header of an object: its messages, and the bytes that each takes.
  Hdf5Address header(std::span<const std::pair<u16_, u16_>> messages, std::vector<Hdf5Address>& places) {
    u32_ size = 0;
    for (const auto& message : messages) size += 8u + message.second;
    const Hdf5Address place = out.reserve(16 + size);
    out.put(place, u8_{1}, u8_{0}, static_cast<u16_>(messages.size()), u32_{1}, size);
    Hdf5Address at = place + 16;
    for (const auto& [kind, bytes] : messages) {
      out.put(at, kind, bytes);
      places.push_back(at + 8);
      at += 8u + bytes;
    }
    return place;
  }

  void put_type(Hdf5Address place, DType t) {
    const auto size = static_cast<u32_>(size_of(t));
    if (is_integer(t)) {
      out.put(place, u8_{0x10}, u8_(is_signed(t) ? 8 : 0), u16_{0}, size, u16_{0}, static_cast<u16_>(8 * size));
      return;
    }
    const bool wide = t == f64, narrow = t == f16;
    const u8_ exponent = wide ? 11 : narrow ? 5 : 8, mantissa = wide ? 52 : narrow ? 10 : 23;
    out.put(place, u8_{0x11}, u8_{0x20}, static_cast<u8_>(8 * size - 1), u8_{0}, size, u16_{0},
            static_cast<u16_>(8 * size), mantissa, exponent, u8_{0}, mantissa, (u32_{1} << (exponent - 1)) - 1);
  }

  Hdf5Address put_array(const Object& object) {
    const Spec& spec = object.array->spec;
    const auto rank = static_cast<u16_>(spec.shape.rank());
    std::vector<Hdf5Address> at;
    const std::pair<u16_, u16_> messages[] = {
        {u16_{0x1}, static_cast<u16_>(8 + 8 * rank)},  // shape, type, no filling, place
        {u16_{0x3}, u16_{24}},
        {u16_{0x5}, u16_{8}},
        {u16_{0x8}, u16_{24}}};
    const Hdf5Address place = header(messages, at);
    out.put(at[0], u8_{1}, static_cast<u8_>(rank));
    for (int i = 0; i < rank; ++i)
      out.put(at[0] + 8 + 8 * static_cast<Hdf5Address>(i), static_cast<u64_>(spec.shape[i]));
    put_type(at[1], spec.dtype);
    out.put(at[2], u8_{2}, u8_{2}, u8_{2}, u8_{1}, u32_{0});
    out.put(at[3], u8_{3}, u8_{1}, hdf5_nowhere, static_cast<u64_>(bytes_of(spec)));
    if (bytes_of(spec) > 0) contents.emplace_back(at[3] + 2, object.data);
    return place;
  }

  struct Child {
    Hdf5Address place;
    u64_ last_name;  // in the heap: the largest below it
  };

  /// Nodes of one level over `children`; the tree's root once one is enough.
  Hdf5Address put_tree(std::vector<Child> children, int level) {
    std::vector<Child> nodes;
    const std::size_t count = std::max<std::size_t>((children.size() + children_of_node - 1) / children_of_node, 1);
    for (std::size_t n = 0; n < count; ++n) nodes.push_back({out.reserve(node_bytes), 0});
    u64_ name_before = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t first = n * children_of_node, last = std::min(first + children_of_node, children.size());
      Hdf5Address at = nodes[n].place;
      out.characters(at, "TREE");
      out.put(at + 4, u8_{0}, static_cast<u8_>(level), static_cast<u16_>(last - first),
              n > 0 ? nodes[n - 1].place : hdf5_nowhere, n + 1 < count ? nodes[n + 1].place : hdf5_nowhere,
              name_before);
      at += 32;
      for (std::size_t i = first; i < last; ++i, at += 16) out.put(at, children[i].place, children[i].last_name);
      nodes[n].last_name = name_before = last > first ? children[last - 1].last_name : 0;
    }
    return count == 1 ? nodes[0].place : put_tree(std::move(nodes), level + 1);
  }

  struct Group {
    Hdf5Address header, tree, heap;
  };

  Group put_group(const Object& object) {
    std::vector<Hdf5Address> at;
    const std::pair<u16_, u16_> messages[] = {{u16_{0x11}, u16_{16}}};
    const Hdf5Address place = header(messages, at);
    std::vector<std::pair<u64_, Hdf5Address>> members;  // name in the heap, header
    u64_ names = 8;                                     // the first is empty
    for (const auto& [name, member] : object.members) {
      members.emplace_back(names, member->array ? put_array(*member) : put_group(*member).header);
      names += (name.size() + 8) / 8 * 8;
    }
    const Hdf5Address heap = out.reserve(32 + names);
    out.characters(heap, "HEAP");
    out.put(heap + 8, names, u64_{1}, heap + 32);  // 1: nothing is free
    std::size_t which = 0;
    for (const auto& member : object.members) out.characters(heap + 32 + members[which++].first, member.first);
    const Hdf5Address tree = put_tree(put_tables(members), 0);
    out.put(at[0], tree, heap);
    return {place, tree, heap};
  }

  std::vector<Child> put_tables(const std::vector<std::pair<u64_, Hdf5Address>>& members) {
    std::vector<Child> tables;
    for (std::size_t first = 0; first < members.size(); first += names_in_table) {
      const std::size_t last = std::min(first + names_in_table, members.size());
      Hdf5Address at = out.reserve(table_bytes);
      tables.push_back({at, members[last - 1].first});
      out.characters(at, "SNOD");
      out.put(at + 4, u8_{1}, u8_{0}, static_cast<u16_>(last - first));
      at += 8;
      for (std::size_t i = first; i < last; ++i, at += 40) out.put(at, members[i].first, members[i].second);
    }
    return tables;
  }
};

constexpr std::ptrdiff_t most_groups = 62;  // so deep hdf5.cpp reads

/// The place of `array` among the groups.
void enter(Object& root, const NamedArray& array) {
  Object* at = &root;
  const std::string_view path = array.name;
  require(std::ranges::count(path, '/') <= most_groups, "hdf5: the path `", path.substr(0, 100),
          "`: groups are nested deeper than ", most_groups);
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    require(end > begin && !at->array, "hdf5: `", path, "` is no path for an array: a part is empty or an array");
    auto& member = at->members[std::string(path.substr(begin, end - begin))];
    if (!member) member = std::make_unique<Object>();
    at = member.get();
    begin = end + 1;
  }
  require(!at->array && at->members.empty(), "hdf5: `", path, "` is there already");
  require(array.spec.dtype != bf16 && array.spec.dtype != boolean, "hdf5: `", path, "` is ", array.spec.dtype,
          ", which the format lacks; cast it");
  at->array = &array;
}

void set_data(Object& root, std::span<const NamedArray> arrays) {
  std::map<const NamedArray*, Hdf5Address> offsets;
  Hdf5Address next = 0;
  for (const NamedArray& array : arrays) {
    offsets[&array] = next;
    next += static_cast<Hdf5Address>(bytes_of(array.spec));
  }
  std::vector<Object*> open{&root};
  while (!open.empty()) {
    Object* object = open.back();
    open.pop_back();
    if (object->array) object->data = offsets[object->array];
    for (auto& member : object->members) open.push_back(member.second.get());
  }
}

}  // namespace

std::string hdf5_header(std::span<const NamedArray> arrays) {
  Object root;
  Hdf5Address bytes = 0;
  for (const NamedArray& array : arrays) {
    enter(root, array);
    bytes += static_cast<Hdf5Address>(bytes_of(array.spec));
  }
  set_data(root, arrays);
  Layout file;
  const Hdf5Address start = file.out.reserve(96);
  const Layout::Group top = file.put_group(root);
  file.out.characters(start, std::string_view("\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08", 15));
  file.out.put(start + 16, static_cast<u16_>(names_in_table / 2), static_cast<u16_>(children_of_node / 2), u32_{0},
               Hdf5Address{0}, hdf5_nowhere, file.out.size() + bytes, hdf5_nowhere, u64_{0}, top.header, u32_{1},
               u32_{0}, top.tree, top.heap);
  for (const auto& [place, offset] : file.contents) file.out.put(place, file.out.size() + offset);
  return file.out.take();
}

}  // namespace gradus
