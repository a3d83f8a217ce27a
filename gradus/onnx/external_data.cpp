#include "gradus/onnx/external_data.h"
#include <charconv>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"

namespace gradus::onnx {
namespace {

std::int64_t number_of(const std::string& key, const std::string& written) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(written.data(), written.data() + written.size(), value);
  require<DataError>(problem == std::errc() && end == written.data() + written.size() && value >= 0,
                     "external data: ", key, " is `", written, "`, not a number of bytes");
  return value;
}

}  // namespace

std::filesystem::path ExternalData::place_of(const std::string& location) const {
  require<DataError>(!folder_.empty(), "external data: there is no folder to look in");
  const std::filesystem::path relative(location);
  require<DataError>(!location.empty() && location.find('\0') == std::string::npos && relative.is_relative(),
                     "external data: `", location, "` is no file within the model's folder");
  std::filesystem::path place = folder_;
  for (const std::filesystem::path& part : relative) {
    require<DataError>(part != "..", "external data: `", location, "` leads out of the model's folder");
    place /= part;
    std::error_code problem;
    const auto status = std::filesystem::symlink_status(place, problem);
    require<DataError>(!problem && std::filesystem::exists(status), "external data: ", place.string(), " is not there");
    require<DataError>(!std::filesystem::is_symlink(status), "external data: ", place.string(),
                       " is a link, which could lead anywhere; put the file itself there");
  }
  require<DataError>(std::filesystem::is_regular_file(place), "external data: ", place.string(), " is no file");
  return place;
}

std::string ExternalData::read(const std::vector<std::pair<std::string, std::string>>& entries,
                               std::int64_t bytes) const {
  std::string location;
  std::int64_t offset = 0, length = bytes;
  for (const auto& [key, value] : entries) {
    if (key == "location") location = value;
    if (key == "offset") offset = number_of(key, value);
    if (key == "length") length = number_of(key, value);
  }
  require<DataError>(length == bytes, "external data: ", length, " bytes are named, ", bytes, " are needed");
  const std::filesystem::path place = place_of(location);
  std::error_code problem;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(place, problem));
  require<DataError>(!problem, "external data: ", place.string(), ": ", problem.message());
  require<DataError>(offset <= size && bytes <= size - offset, "external data: ", place.string(), " has ", size,
                     " bytes, ", bytes, " from byte ", offset, " are needed");
  return read_part_of_file(place, offset, bytes);
}

}  // namespace gradus::onnx
