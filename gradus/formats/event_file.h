/// Event files, as TensorBoard reads them: numbers, histograms, images, texts and graphs by tag and step.
#pragma once
#include <filesystem>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// A node of a graph for display; names are paths of scopes.
struct ShownNode {
  std::string name, op;             // path of the node, and the op that it applies
  std::vector<std::string> inputs;  // names of its operands
  Spec spec;                        // dtype and shape of its result
};

/// Writes an event file for TensorBoard. Each call appends whole records to a new file in `directory`, which is created
/// if it does not exist. If the process is killed, earlier records stay readable. Unavailable where the file cannot be
/// written, ResourceExhausted on a full disk.
class SummaryWriter {
 public:
  /// Creates the file in `directory`.
  explicit SummaryWriter(const std::filesystem::path& directory);
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;
  ~SummaryWriter();

  /// Writes a number under `tag`.
  void scalar(const std::string& tag, std::int64_t step, double value);
  /// Writes a histogram of any numeric dtype and shape: 30 classes of equal width. Elements that are not finite are
  /// left out.
  void histogram(const std::string& tag, std::int64_t step, const Tensor& values);
  /// Writes an image: u8 [height, width, channels], 1 to 4 channels.
  void image(const std::string& tag, std::int64_t step, const Tensor& image);
  /// Writes a text in UTF-8 for a plugin of TensorBoard; `content` is the metadata that the plugin expects. The default
  /// plugin shows Markdown.
  void text(const std::string& tag, std::int64_t step, const std::string& value, const std::string& plugin = "text",
            const std::string& content = "");
  /// Writes a graph.
  void graph(const std::vector<ShownNode>& nodes);
  /// The path of the file.
  const std::filesystem::path& file() const { return file_; }

 private:
  void write_record(const std::string& bytes);
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace gradus
