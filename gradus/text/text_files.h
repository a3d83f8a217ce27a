/// Data sets of text files: their lines, and a folder for each class.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/data/text_dataset.h"

namespace gradus::data {

/// The lines of files, one file after the other, without their ends (`\n` or `\r\n`), as tf.data.TextLineDataset. They
/// are held in memory; gzip is recognised. DataError if a file is damaged or cut off, Unavailable if it cannot be read.
TextDataset<0> text_lines(const std::vector<std::filesystem::path>& files);
TextDataset<0> text_lines(const std::filesystem::path& file);

/// The part of the files that text_dataset_from_directory reads.
enum class Subset { training, validation };
/// Options of text_dataset_from_directory.
struct TextDirectoryOptions {
  std::optional<std::int64_t> batch_size = 32;  // none: single examples
  std::optional<std::int64_t> max_length =
      {};               // largest number of bytes of a text, cut off before a character that exceeds it
  bool shuffle = true;  // a new order in each epoch; else by their paths
  std::optional<std::uint64_t> seed = {};       // none: one that follows from set_seed
  std::optional<double> validation_split = {};  // share of the files that is kept for validation
  std::optional<Subset> subset = {};            // with validation_split: which part is read
  std::vector<std::string> class_names = {};    // the folders that are read, by their labels; none: all, by their names
  static constexpr auto ranges() {
    return std::array{Allowed::positive("batch_size max_length"), Allowed::any("seed"),
                      Allowed::between_zero_and_one("validation_split")};
  }
};
/// The texts of the files `.txt` in a folder per class, at any depth, and the number of the folder as an i32 scalar, as
/// Keras's function of this name: classes in the order of their names (class_names() gives them). A text is read when
/// its element is. Hidden files are skipped. Unavailable if there are no folders, or not those of class_names, or no
/// such files. InvalidArgument for one of validation_split and subset without the other, or with shuffle and without a
/// seed, since both parts need the same order.
///
/// The published archive of IMDB has texts without a label in `unsup`, beside the classes:
///
///   TextDataset<1> reviews = data::text_dataset_from_directory("aclImdb/train", {.class_names = {"neg", "pos"}});
TextDataset<1> text_dataset_from_directory(const std::filesystem::path& root, const TextDirectoryOptions& options = {});

}  // namespace gradus::data
