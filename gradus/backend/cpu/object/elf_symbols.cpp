#include "gradus/backend/cpu/object/elf_symbols.h"
#include <elf.h>
#include <cstring>
#include <vector>
#include "gradus/base/error.h"

namespace gradus::object {
namespace {

/// `count` records of a file, from `offset` on.
template <class Record> std::vector<Record> records(std::string_view file, std::uint64_t offset, std::uint64_t count) {
  internal_check(offset <= file.size() && count <= (file.size() - offset) / sizeof(Record),
                 "an object file is cut off");
  std::vector<Record> read(count);
  if (count > 0) std::memcpy(read.data(), file.data() + offset, count * sizeof(Record));
  return read;
}

std::vector<Elf64_Shdr> sections_of(std::string_view file) {
  const Elf64_Ehdr header = records<Elf64_Ehdr>(file, 0, 1).front();
  internal_check(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0, "a linker has written no object file");
  return records<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
}

std::string_view name_of(std::string_view file, const Elf64_Shdr& texts, const Elf64_Sym& symbol) {
  const std::string_view from = file.substr(texts.sh_offset, texts.sh_size).substr(symbol.st_name);
  return from.substr(0, from.find('\0'));
}

}  // namespace

std::set<std::string> defined_symbols(std::string_view file) {
  const std::vector<Elf64_Shdr> sections = sections_of(file);
  std::set<std::string> names;
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB) continue;
    for (const Elf64_Sym& symbol : records<Elf64_Sym>(file, table.sh_offset, table.sh_size / sizeof(Elf64_Sym)))
      if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL)
        names.emplace(name_of(file, sections.at(table.sh_link), symbol));
  }
  return names;
}

std::int64_t code_bytes(std::string_view file) {
  std::int64_t bytes = 0;
  for (const Elf64_Shdr& section : sections_of(file))
    if ((section.sh_flags & SHF_EXECINSTR) != 0) bytes += static_cast<std::int64_t>(section.sh_size);
  return bytes;
}

std::set<std::string> undefined_symbols(std::string_view file) {
  const std::vector<Elf64_Shdr> sections = sections_of(file);
  std::set<std::string> names;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_RELA) continue;
    const Elf64_Shdr& table = sections.at(section.sh_link);
    const auto symbols = records<Elf64_Sym>(file, table.sh_offset, table.sh_size / sizeof(Elf64_Sym));
    const Elf64_Shdr& texts = sections.at(table.sh_link);
    for (const Elf64_Rela& place : records<Elf64_Rela>(file, section.sh_offset, section.sh_size / sizeof(Elf64_Rela))) {
      const Elf64_Sym& symbol = symbols.at(ELF64_R_SYM(place.r_info));
      if (ELF64_R_SYM(place.r_info) == 0 || symbol.st_shndx != SHN_UNDEF) continue;
      names.emplace(name_of(file, texts, symbol));
    }
  }
  return names;
}

}  // namespace gradus::object
