/// The header is JSON. Every number in it is checked against the existing bytes before anything is allocated. Each
/// array is read from the file into its own memory, so that its bytes exist only once.
#include "gradus/formats/safetensors.h"
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include "gradus/base/rooms.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/json.h"
#include "gradus/formats/placed_bytes.h"

namespace gradus {
namespace {

using Json = nlohmann::json;

struct TypeName {
  DType type;
  std::string_view name;
};
constexpr TypeName type_names[] = {{f64, "F64"}, {f32, "F32"}, {f16, "F16"},     {bf16, "BF16"}, {i64, "I64"},
                                   {i32, "I32"}, {i16, "I16"}, {i8, "I8"},       {u8, "U8"},     {u16, "U16"},
                                   {u32, "U32"}, {u64, "U64"}, {boolean, "BOOL"}};

std::string_view written_name(DType t) {
  for (const TypeName& known : type_names)
    if (known.type == t) return known.name;
  throw InternalError("a dtype without a safetensors name");
}

DType dtype_named(const std::string& name, std::string_view file, const std::string& array) {
  for (const TypeName& known : type_names)
    if (known.name == name) return known.type;
  throw DataError(text(file, ": array `", array, "` has dtype ", name,
                       "; supported are F64 F32 F16 BF16 I64 I32 I16 I8 U8 U16 U32 U64 BOOL"));
}

constexpr std::size_t max_header = std::size_t{100} << 20;

struct SafetensorsHeader {
  Json json;
  std::uint64_t contents = 0;  // the place of the first array
};

SafetensorsHeader header_of(const PlacedBytes& source) {
  require<DataError>(source.size >= 8, source.name, ": ", source.size, " bytes are too few for a safetensors file");
  std::uint64_t size = 0;  // little endian, as every machine that this library runs on
  source.read(0, std::as_writable_bytes(std::span(&size, 1)));
  require<DataError>(size <= max_header && size <= source.size - 8, source.name, ": byte 0: the header claims ", size,
                     " bytes, but ", source.size - 8, " follow");
  std::string written(size, ' ');
  source.read(8, std::as_writable_bytes(std::span(written)));
  SafetensorsHeader header{parse_json(written, text(source.name, ": the header, from byte 8 on")), 8 + size};
  require<DataError>(header.json.is_object(), source.name, ": byte 8: the header is no JSON object");
  return header;
}

/// An array and where its bytes lie among the contents.
struct Placed {
  NamedArray array;
  std::uint64_t first = 0, last = 0;
};

Placed placed_array(const std::string& name, const Json& entry, std::uint64_t bytes, std::string_view file) {
  const auto complain_unless = [&](bool ok, std::string_view what) {
    require<DataError>(ok, file, ": array `", name, "`: ", what);
  };
  complain_unless(entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
                      entry.contains("shape") && entry["shape"].is_array() && entry.contains("data_offsets") &&
                      entry["data_offsets"].is_array() && entry["data_offsets"].size() == 2,
                  "expected dtype, shape and two data_offsets");
  NamedArray array{.name = name};
  array.spec.dtype = dtype_named(entry["dtype"].get<std::string>(), file, name);
  complain_unless(entry["shape"].size() <= Shape::max_rank, "more than eight dimensions");
  for (const Json& d : entry["shape"]) {
    complain_unless(d.is_number_unsigned() && d.get<std::uint64_t>() < std::uint64_t{1} << 62,
                    "a dimension is no size");
    array.spec.shape.push_back(d.get<std::int64_t>());
  }
  for (const Json& offset : entry["data_offsets"]) complain_unless(offset.is_number_unsigned(), "an offset is no size");
  const auto first = entry["data_offsets"][0].get<std::uint64_t>(),
             last = entry["data_offsets"][1].get<std::uint64_t>();
  complain_unless(first <= last && last <= bytes, "its bytes lie outside the file");
  std::int64_t wanted = 0;
  try {
    wanted = bytes_of(array.spec);
  } catch (const Error& error) { complain_unless(false, error.what()); }
  complain_unless(static_cast<std::uint64_t>(wanted) == last - first, "its shape and its data_offsets disagree");
  return {std::move(array), first, last};
}

/// Arrays are contiguous, from the first byte to the last: bytes of two arrays would be read twice, and bytes of none
/// could hold anything.
void check_places(const std::vector<Placed>& arrays, std::uint64_t bytes, std::string_view file) {
  std::vector<const Placed*> in_order;
  for (const Placed& each : arrays) in_order.push_back(&each);
  std::ranges::sort(in_order, {}, [](const Placed* each) { return std::pair(each->first, each->last); });
  std::uint64_t place = 0;
  for (const Placed* each : in_order) {
    require<DataError>(each->first >= place, file, ": array `", each->array.name, "` begins at byte ", each->first,
                       " of the contents, within the array before, which ends at ", place,
                       ": its bytes are those of other arrays, too");
    require<DataError>(each->first == place, file, ": bytes ", place, " to ", each->first,
                       " of the contents, before array `", each->array.name, "`, belong to no array");
    place = each->last;
  }
  require<DataError>(place == bytes, file, ": bytes ", place, " to ", bytes,
                     " of the contents, at the end of the file, belong to no array");
}

NamedArray read_array(Placed placed, std::uint64_t contents, const PlacedBytes& source) {
  const std::uint64_t size = placed.last - placed.first;
  NamedArray array = std::move(placed.array);
  array.data = Buffer::allocate(static_cast<std::int64_t>(size), "weights");
  if (size == 0) return array;
  const std::span bytes(array.data->data<std::byte>(), size);
  source.read(contents + placed.first, bytes);
  if (array.spec.dtype == boolean)
    for (const std::byte b : bytes)
      require<DataError>(b <= std::byte{1}, source.name, ": array `", array.name, "`: a bool is neither 0 nor 1");
  return array;
}

std::vector<NamedArray> arrays_of(const PlacedBytes& source) {
  const SafetensorsHeader header = header_of(source);
  const std::uint64_t bytes = source.size - header.contents;
  std::vector<Placed> placed;
  for (const auto& [key, entry] : header.json.items())
    if (key != "__metadata__") placed.push_back(placed_array(key, entry, bytes, source.name));
  check_places(placed, bytes, source.name);
  std::vector<NamedArray> arrays;
  for (Placed& each : placed) arrays.push_back(read_array(std::move(each), header.contents, source));
  return arrays;
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, std::span<const NamedArray> arrays) {
  Json header = Json::object();
  std::int64_t place = 0;
  for (const NamedArray& array : arrays) {
    const std::int64_t bytes = bytes_of(array.spec);
    require(!header.contains(array.name), "safetensors ", file.string(), ": two arrays are named `", array.name, "`");
    header[array.name] = {{"dtype", written_name(array.spec.dtype)},
                          {"shape", std::vector<std::int64_t>(array.spec.shape.begin(), array.spec.shape.end())},
                          {"data_offsets", {place, place + bytes}}};
    place += bytes;
  }
  std::string written = header.dump();
  written.resize((written.size() + 7) / 8 * 8, ' ');  // the bytes that follow are aligned
  const std::uint64_t size = written.size();
  AtomicFile out(file);
  out.write(std::as_bytes(std::span(&size, 1)));
  out.write(written);
  for (const NamedArray& array : arrays)
    out.write(std::span(array.data->data<const std::byte>(), static_cast<std::size_t>(bytes_of(array.spec))));
  out.commit();
}

std::vector<NamedArray> parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  return arrays_of(placed_bytes(bytes, std::string(name)));
}

std::vector<NamedArray> read_safetensors(const std::filesystem::path& file) { return arrays_of(placed_bytes(file)); }

void save_safetensors(const std::filesystem::path& file, const NamedTensors& arrays) {
  std::vector<NamedArray> named;
  for (const auto& [name, tensor] : arrays) named.push_back({name, tensor.spec(), tensor.host_buffer()});
  write_safetensors(file, named);
}

NamedTensors load_safetensors(const std::filesystem::path& file) {
  NamedTensors arrays;
  for (NamedArray& array : read_safetensors(file))
    arrays.emplace_back(std::move(array.name), Tensor::of_buffer(array.spec, std::move(array.data)));
  return arrays;
}

}  // namespace gradus
