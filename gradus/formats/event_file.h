/// Event files, as TensorBoard reads them: numbers, histograms, images and graphs by tag and step.
#pragma once
#include <filesystem>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// A node of a graph that is shown: names are paths of scopes.
struct ShownNode {
  std::string name, op;
  std::vector<std::string> inputs;
  Spec spec;
};

/// Each call appends whole records to a new file in `directory`, which is made if it is not there; who is killed leaves
/// the records before. Unavailable where it cannot be written, ResourceExhausted on a full disk.
class SummaryWriter {
 public:
  explicit SummaryWriter(const std::filesystem::path& directory);
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;
  ~SummaryWriter();

  void scalar(const std::string& tag, std::int64_t step, double value);
  /// Any numeric dtype and shape; 30 classes of equal width. Elements that are not finite are left out.
  void histogram(const std::string& tag, std::int64_t step, const Tensor& values);
  /// u8 [height, width, channels], 1 to 4 channels.
  void image(const std::string& tag, std::int64_t step, const Tensor& image);
  void graph(const std::vector<ShownNode>& nodes);
  const std::filesystem::path& file() const { return file_; }

 private:
  void write_record(const std::string& bytes);
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace gradus
