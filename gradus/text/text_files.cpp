#include "gradus/text/text_files.h"
#include <algorithm>
#include <set>
#include "gradus/base/hash.h"
#include "gradus/base/input_file.h"
#include "gradus/base/lines.h"
#include "gradus/base/rooms.h"
#include "gradus/data/files.h"
#include "gradus/formats/byte_stream.h"
#include "gradus/formats/gzip.h"
#include "gradus/ops/constant.h"
#include "gradus/text/unicode.h"

namespace gradus::data {
namespace {
namespace fs = std::filesystem;

struct TextFile {
  std::string path;
  std::int32_t label;
};

/// The files `.txt` below a folder, by their paths.
std::vector<std::string> texts_below(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code problem;
  for (fs::recursive_directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) {
    const fs::path& path = at->path();
    const bool is_hidden = path.filename().string().starts_with('.');
    if (is_hidden && at->is_directory(problem)) at.disable_recursion_pending();
    if (!is_hidden && path.extension() == ".txt" && at->is_regular_file(problem)) files.push_back(path.string());
  }
  require<Unavailable>(!problem, "text_dataset_from_directory: ", folder.string(),
                       ": cannot be read: ", problem.message());
  std::ranges::sort(files);
  return files;
}

std::vector<TextFile> files_of_classes(const fs::path& root, const std::vector<std::string>& chosen) {
  const std::vector<std::string> all = class_names(root);
  require<Unavailable>(!all.empty(), "text_dataset_from_directory: ", root.string(),
                       ": there is no folder in it; expected one for each class");
  for (const std::string& name : chosen)
    require<Unavailable>(std::ranges::find(all, name) != all.end(), "text_dataset_from_directory: ", root.string(),
                         ": there is no folder `", name, "`, which class_names has");
  require(std::set(chosen.begin(), chosen.end()).size() == chosen.size(), "text_dataset_from_directory: a name stands ",
          "twice in class_names");
  const std::vector<std::string>& classes = chosen.empty() ? all : chosen;
  std::vector<TextFile> files;
  for (std::size_t label = 0; label < classes.size(); ++label)
    for (std::string& file : texts_below(root / classes[label]))
      files.push_back({std::move(file), static_cast<std::int32_t>(label)});
  require<Unavailable>(!files.empty(), "text_dataset_from_directory: ", root.string(), ": its ", classes.size(),
                       " folders hold no .txt files");
  return files;
}

/// An order that follows from the seed and the number of files alone.
void draw_order(std::vector<TextFile>& files, std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, TextFile>> keyed;
  for (TextFile& file : files) keyed.emplace_back(mix(seed, keyed.size()), std::move(file));
  std::ranges::stable_sort(keyed, {}, [](const auto& entry) { return entry.first; });
  for (std::size_t i = 0; i < files.size(); ++i) files[i] = std::move(keyed[i].second);
}

/// The last files are for validation.
void keep_subset(std::vector<TextFile>& files, const TextDirectoryOptions& options) {
  const auto validation = static_cast<std::ptrdiff_t>(*options.validation_split * static_cast<double>(files.size()));
  if (*options.subset == Subset::training) files.erase(files.end() - validation, files.end());
  else files.erase(files.begin(), files.end() - validation);
  require(!files.empty(), "text_dataset_from_directory: validation_split ", *options.validation_split,
          " leaves no file for this subset");
}

void check_directory_options(const TextDirectoryOptions& options) {
  check_options("text_dataset_from_directory", options);
  require(options.validation_split.has_value() == options.subset.has_value(),
          "text_dataset_from_directory: validation_split and subset go together; one is missing");
  require(!options.validation_split || !options.shuffle || options.seed,
          "text_dataset_from_directory: validation_split with shuffle needs a seed, by which both subsets are drawn");
}

/// The longest beginning of whole characters, of at most so many bytes.
std::string beginning_of(std::string text, std::optional<std::int64_t> most_bytes) {
  if (!most_bytes || std::ssize(text) <= *most_bytes) return text;
  auto end = static_cast<std::size_t>(*most_bytes);
  for (int back = 0; back < 3 && end > 0 && unicode::is_inside(text[end]); ++back) --end;
  text.resize(end);
  return text;
}

}  // namespace

TextDataset<0> text_lines(const std::vector<fs::path>& files) {
  std::vector<std::string> lines;
  for (const fs::path& file : files) {
    const std::vector<std::byte> bytes = read_to_end(*gunzip_if_compressed(open_file(file)));
    for (std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size()); !rest.empty();) {
      std::string_view line = take_line(rest);
      if (line.ends_with('\r')) line.remove_suffix(1);
      lines.emplace_back(line);
    }
  }
  return from_tensor_slices(Strings(std::move(lines)));
}
TextDataset<0> text_lines(const fs::path& file) { return text_lines(std::vector{file}); }

TextDataset<1> text_dataset_from_directory(const fs::path& root, const TextDirectoryOptions& options) {
  check_directory_options(options);
  std::vector<TextFile> files = files_of_classes(root, options.class_names);
  if (options.validation_split) {
    if (options.shuffle) draw_order(files, *options.seed);
    keep_subset(files, options);
  }
  std::vector<std::string> paths;
  std::vector<std::int32_t> labels;
  for (TextFile& file : files) {
    paths.push_back(std::move(file.path));
    labels.push_back(file.label);
  }
  TextDataset<1> data = from_tensor_slices(Strings(std::move(paths)), from_values(labels, Shape{std::ssize(files)}));
  if (options.shuffle) data = data.shuffle({.seed = options.seed});
  data = data.map([most = options.max_length](const Strings& path, const Tensor& label) {
    return std::pair{Strings(beginning_of(read_text_file(path.item()), most)), label};
  });
  return options.batch_size ? data.batch(*options.batch_size) : data;
}

}  // namespace gradus::data
