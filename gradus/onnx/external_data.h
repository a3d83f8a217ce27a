/// External data of a model, in files beside it, within its folder.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gradus::onnx {

class ExternalData {
 public:
  /// Empty: there is no external data.
  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Reads `bytes` bytes from the place that the entries name: location, offset, length. DataError if that is not a
  /// plain file within the folder (no "..", no link on the way), or has fewer bytes.
  std::string read(const std::vector<std::pair<std::string, std::string>>& entries, std::int64_t bytes) const;

 private:
  std::filesystem::path place_of(const std::string& location) const;
  std::filesystem::path folder_;
};

}  // namespace gradus::onnx
