#include "gradus/base/library_file.h"
#include <elf.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"

namespace gradus {
namespace {

/// Reads a whole T; false where the file ends before.
template <class T> bool read_all(InputFile& file, std::span<T> out) {
  return file.read(std::as_writable_bytes(out)) == out.size_bytes();
}

/// The first byte after all mapped segments; the size of the header if there are none.
std::uint64_t needed_bytes(std::span<const Elf64_Phdr> segments) {
  std::uint64_t end = sizeof(Elf64_Ehdr);
  for (const Elf64_Phdr& each : segments)
    if (each.p_filesz <= UINT64_MAX - each.p_offset) end = std::max(end, each.p_offset + each.p_filesz);
    else return UINT64_MAX;
  return end;
}

std::string cut_off(const std::filesystem::path& path, std::int64_t size, std::uint64_t needed) {
  return text(path.string(), " is cut off: it has ", size, " bytes, and its headers ask for ", needed,
              ": it was not copied or downloaded to its end; install it again");
}

}  // namespace

std::string why_cut_off(const std::filesystem::path& path) try {
  InputFile file(path);
  Elf64_Ehdr head{};
  if (!read_all(file, std::span(&head, 1)) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  const auto size = static_cast<std::uint64_t>(file.size());
  const std::uint64_t table = std::uint64_t{head.e_phnum} * sizeof(Elf64_Phdr);
  if (head.e_phoff > size || table > size - head.e_phoff) return cut_off(path, file.size(), head.e_phoff + table);
  std::vector<Elf64_Phdr> segments(head.e_phnum);
  file.seek(static_cast<std::int64_t>(head.e_phoff));
  if (!read_all(file, std::span(segments))) return {};
  const std::uint64_t needed = needed_bytes(segments);
  return needed > size ? cut_off(path, file.size(), needed) : std::string();
} catch (const Error&) { return {}; }  // the loader reports that it cannot be read

}  // namespace gradus
