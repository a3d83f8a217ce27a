/// Datasets of files: tables, arrays, text, records, images.
#pragma once
#include <concepts>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/data/dataset.h"
#include "gradus/formats/csv.h"

namespace gradus::data {

// For from_npy and from_npz.
/// Rows of the arrays of .npy files.
Pipeline npy_slices(const std::vector<std::filesystem::path>& files);
/// Rows of the named arrays of a .npz file.
Pipeline npz_slices(const std::filesystem::path& file, const std::vector<std::string>& names);

/// The rows of a table: features f32 [columns without the label], and the label, a scalar: i32 for integers and
/// categories, else f32. DataError with file, line and column for a cell that does not fit. InvalidArgument for a name
/// in the options that is no column. Unavailable if the file cannot be read. See CsvOptions.
Dataset<2> from_csv(const std::filesystem::path& file, CsvOptions options);

/// The arrays of .npy files, row by row of axis 0. InvalidArgument unless all have the same number of rows, DataError
/// for a broken file, Unavailable if one cannot be read.
template <std::convertible_to<std::filesystem::path>... Files>
  requires(sizeof...(Files) > 0)
Dataset<sizeof...(Files)> from_npy(const Files&... files) {
  return Dataset<sizeof...(Files)>(npy_slices({std::filesystem::path(files)...}));
}
/// Arrays of a .npz file by their names, row by row of axis 0: `from_npz("mnist.npz", "x_train", "y_train")`. DataError
/// if the file has no array of a name. Other errors as from_npy.
template <std::convertible_to<std::string>... Names>
  requires(sizeof...(Names) > 0)
Dataset<sizeof...(Names)> from_npz(const std::filesystem::path& file, const Names&... names) {
  return Dataset<sizeof...(Names)>(npz_slices(file, {std::string(names)...}));
}

/// The lines of a file, u8 [any_size], without their ends (`\n` or `\r\n`). The file is held in memory; gzip is
/// recognised. DataError if the gzip data are damaged or cut off, Unavailable if the file cannot be read.
Dataset<1> from_text_lines(const std::filesystem::path& file);

/// Two features of the tf.train.Example records of a TFRecord file. Lists of floats are f32, integers i64, byte strings
/// u8, each [n], or any_size where records differ. A list of one number is a scalar. A label of integers is i32.
/// Opening reads the file once. DataError, with record and byte, for a damaged file, for a record without such a
/// feature, and for a file without records. Unavailable if it cannot be read.
Dataset<2> from_tfrecord(const std::filesystem::path& file, std::string_view features, std::string_view label);

/// Options of images_from_directory.
struct ImageOptions {
  std::int64_t height, width;         // size of the result, in pixels
  int channels = 3;                   // 1: grey, 3: RGB, 4: RGB and alpha
  int num_parallel_calls = autotune;  // images decoded at once; autotune: the library chooses
  static constexpr auto ranges() {
    return std::array{Allowed::positive("height width"), Allowed::within(1, 4, "channels"),
                      Allowed::at_least(autotune, "num_parallel_calls")};
  }
};
/// One folder per class, in the order of their names: u8 [height, width, channels], and the number of the folder as an
/// i32 scalar. JPEG and PNG files, recognised by their first bytes, in the order of their names. They are decoded when
/// they are read, several at once, and resized bilinearly with half-pixel centres, as in TensorFlow. Hidden files are
/// skipped. DataError for a file that is no image. Unavailable if there are no folders or no files. InvalidArgument
/// unless height and width are 1 to 65536, channels 1, 3 or 4, and num_parallel_calls positive or autotune.
Dataset<2> images_from_directory(const std::filesystem::path& root, ImageOptions options);
/// The names of the classes of images_from_directory.
std::vector<std::string> class_names(const std::filesystem::path& root);

}  // namespace gradus::data
