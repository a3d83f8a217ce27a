#include "gradus/formats/whole_file.h"
#include <fstream>
#include <system_error>
#include "gradus/base/error.h"

namespace gradus {

std::vector<std::byte> read_whole_file(const std::filesystem::path& file) {
  std::error_code problem;
  const auto size = std::filesystem::file_size(file, problem);
  std::ifstream in(file, std::ios::binary);
  require<Unavailable>(!problem && in, file.string(), ": cannot be read; is it there, and a file?");
  std::vector<std::byte> bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  require<Unavailable>(in.gcount() == static_cast<std::streamsize>(size), file.string(), ": cannot be read");
  return bytes;
}

}  // namespace gradus
