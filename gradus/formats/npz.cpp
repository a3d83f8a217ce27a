/// Arrays as parts of a zip file.
#include "gradus/formats/npz.h"
#include <array>
#include <set>
#include "gradus/formats/npy.h"
#include "gradus/formats/npy_stream.h"
#include "gradus/formats/zip.h"

namespace gradus {

void save_npz(const std::filesystem::path& file, const NamedTensors& arrays) {
  std::set<std::string_view> names;
  for (const auto& [name, array] : arrays)
    require(!name.empty() && name.size() < 60'000 && names.insert(name).second, "save_npz: ", file.string(),
            ": names must differ and not be empty, got `", name, "`");
  AtomicFile out(file);
  ZipWriter zip(out);
  for (const auto& [name, array] : arrays) {
    const std::string header = npy_header(array.spec());
    const auto bytes = static_cast<std::size_t>(bytes_of(array.spec()));
    zip.add(name + ".npy", std::array{std::as_bytes(std::span(header)), std::span(array.host<std::byte>(), bytes)});
  }
  zip.finish();
  out.commit();
}

namespace {

/// Every array is read from its part, so that its bytes exist only once.
NamedTensors arrays_of(const ZipReader& zip, const std::string& name) {
  NamedTensors arrays;
  for (const ZipEntry& entry : zip.entries()) {
    const std::unique_ptr<ByteStream> part = zip.open(entry, name + ", array `" + entry.name + '`');
    Tensor array = read_npy(*part, entry.unpacked);
    std::string called = entry.name;
    if (called.ends_with(".npy")) called.resize(called.size() - 4);
    arrays.emplace_back(std::move(called), std::move(array));
  }
  return arrays;
}

constexpr std::string_view kind = "archive of NumPy";

}  // namespace

NamedTensors parse_npz(std::span<const std::byte> bytes, const std::string& name) {
  return arrays_of(ZipReader(bytes, name, kind), name);
}

NamedTensors load_npz(const std::filesystem::path& file) {
  return arrays_of(ZipReader(placed_bytes(file), kind), file.string());
}

}  // namespace gradus
