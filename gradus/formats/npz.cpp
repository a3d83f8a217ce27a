/// Arrays as parts of a zip file.
#include "gradus/formats/npz.h"
#include <array>
#include <set>
#include "gradus/formats/npy.h"
#include "gradus/base/input_file.h"
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

NamedTensors parse_npz(std::span<const std::byte> bytes, const std::string& name) {
  const ZipReader zip(bytes, name, "archive of NumPy");
  NamedTensors arrays;
  for (const ZipEntry& entry : zip.entries()) {
    std::vector<std::byte> held;
    Tensor array = parse_npy(zip.contents(entry, held), name + ", array `" + entry.name + '`');
    std::string called = entry.name;
    if (called.ends_with(".npy")) called.resize(called.size() - 4);
    arrays.emplace_back(std::move(called), std::move(array));
  }
  return arrays;
}

NamedTensors load_npz(const std::filesystem::path& file) { return parse_npz(read_whole_file(file), file.string()); }

}  // namespace gradus
