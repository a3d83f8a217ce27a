/// Folders of images: listed when the dataset is made, decoded when they are read, several at once.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include "gradus/base/hash.h"
#include "gradus/base/thread_pool.h"
#include "gradus/data/files.h"
#include "gradus/data/stage.h"
#include "gradus/data/stage_team.h"
#include "gradus/formats/image.h"

namespace gradus {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sorted_entries(const fs::path& folder, bool folders) {
  std::error_code problem;
  fs::directory_iterator entries(folder, problem);
  require<Unavailable>(!problem, "images_from_directory: ", folder.string(), ": cannot be read: ", problem.message());
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().filename().string().starts_with(".")) continue;
    if (folders ? entry.is_directory(problem) : entry.is_regular_file(problem)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

struct Picture {
  fs::path file;
  std::int32_t label;
};

class ImagesStage : public Stage {
 public:
  ImagesStage(std::vector<Picture> pictures, data::ImageOptions options)
      : Stage({{u8, {options.height, options.width, options.channels}}, {i32, {}}}),
        pictures_(std::move(pictures)),
        options_(options) {}
  std::string name() const override { return "images_from_directory"; }
  /// From names, classes, sizes and times of the files: reading them all is what a cache avoids.
  std::uint64_t identity() const override {
    std::uint64_t hash = 0;
    for (const Picture& picture : pictures_) {
      std::error_code none;
      hash = mix(hash, hash_of(std::string_view(picture.file.filename().string())));
      hash = mix(hash, static_cast<std::uint64_t>(picture.label));
      hash = mix(hash, static_cast<std::uint64_t>(fs::file_size(picture.file, none)));
      hash = mix(hash, static_cast<std::uint64_t>(fs::last_write_time(picture.file, none).time_since_epoch().count()));
    }
    return hash;
  }
  /// Hashes names and classes, and the sizes of the first and the last file.
  std::uint64_t fingerprint() const override {
    std::uint64_t hash = pictures_.size();
    for (const Picture& picture : pictures_)
      hash = mix(mix(hash, hash_of(std::string_view(picture.file.filename().string()))),
                 static_cast<std::uint64_t>(picture.label));
    if (pictures_.empty()) return hash;
    for (const Picture* picture : {&pictures_.front(), &pictures_.back()}) {
      std::error_code none;
      hash = mix(hash, static_cast<std::uint64_t>(fs::file_size(picture->file, none)));
    }
    return hash;
  }
  std::string_view remedy() const override { return rows_of_source; }
  std::int64_t length(std::int64_t) const override { return std::ssize(pictures_); }
  int parallel_calls() const override { return options_.num_parallel_calls; }

  void decode(std::int64_t index, std::uint8_t* pixels, std::int32_t* label) const {
    const Picture& picture = pictures_[static_cast<std::size_t>(index)];
    try {
      resize_image(load_image(picture.file, options_.channels), options_.height, options_.width, pixels);
    } catch (const DataError& error) {
      throw DataError(text("images_from_directory, element ", index, ": ", error.what()));
    }
    *label = picture.label;
  }
  int threads() const {
    return options_.num_parallel_calls == autotune ? ThreadPool::max_threads : options_.num_parallel_calls;
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t) const override;

 private:
  const std::vector<Picture> pictures_;
  const data::ImageOptions options_;
};

class ImagesPass : public Pass {
 public:
  explicit ImagesPass(const ImagesStage& stage) : stage_(stage) {}
  Tensors at(std::int64_t index) override {
    const Spec &image = stage_.specs()[0], &label = stage_.specs()[1];
    Ref<Buffer> pixels = Buffer::allocate(bytes_of(image), "image"), number = Buffer::allocate(bytes_of(label));
    stage_.decode(index, pixels->data<std::uint8_t>(), number->data<std::int32_t>());
    return {Tensor::of_buffer(image, std::move(pixels)), Tensor::of_buffer(label, std::move(number))};
  }
  /// Workers take the next picture as they come; the first failure in order is thrown.
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    const std::int64_t bytes = bytes_of(stage_.specs()[0]);
    std::atomic<std::size_t> next = 0;
    std::mutex guard;
    std::map<std::size_t, std::exception_ptr> failures;
    const auto work = [&](int, int) {
      for (std::size_t i = next++; i < indices.size(); i = next++) try {
          StopScope::check();
          stage_.decode(indices[i], reinterpret_cast<std::uint8_t*>(out[0]) + static_cast<std::int64_t>(i) * bytes,
                        reinterpret_cast<std::int32_t*>(out[1]) + i);
        } catch (...) {
          const std::lock_guard lock(guard);
          failures.emplace(i, std::current_exception());
          next = indices.size();
        }
    };
    run_stage_team(static_cast<int>(std::min<std::size_t>(indices.size(), static_cast<std::size_t>(stage_.threads()))),
                   work);
    if (!failures.empty()) std::rethrow_exception(failures.begin()->second);
  }

 private:
  const ImagesStage& stage_;
};

std::unique_ptr<Pass> ImagesStage::make_pass(std::int64_t) const { return std::make_unique<ImagesPass>(*this); }

}  // namespace

namespace data {

std::vector<std::string> class_names(const fs::path& root) {
  std::vector<std::string> names;
  for (const fs::path& folder : sorted_entries(root, true)) names.push_back(folder.filename().string());
  return names;
}

Dataset<2> images_from_directory(const fs::path& root, ImageOptions options) {
  constexpr std::int64_t most = 1 << 16;
  check_options("images_from_directory", options);
  require(options.height <= most && options.width <= most,
          "images_from_directory: expected a height and width of 1 to ", most, ", got ", options.height, " x ",
          options.width);
  require(options.channels != 2, "images_from_directory: expected 1, 3 or 4 channels, got ", options.channels);
  require(options.num_parallel_calls != 0,
          "images_from_directory: num_parallel_calls must be positive or autotune, got ", options.num_parallel_calls);
  const std::vector<fs::path> folders = sorted_entries(root, true);
  require<Unavailable>(!folders.empty(), "images_from_directory: ", root.string(),
                       ": there is no folder in it; expected one for each class");
  std::vector<Picture> pictures;
  for (std::size_t label = 0; label < folders.size(); ++label)
    for (fs::path& file : sorted_entries(folders[label], false))
      pictures.push_back({std::move(file), static_cast<std::int32_t>(label)});
  require<Unavailable>(!pictures.empty(), "images_from_directory: ", root.string(), ": its ", folders.size(),
                       " folders hold no files");
  return Dataset<2>(Pipeline(std::make_shared<ImagesStage>(std::move(pictures), options)));
}

}  // namespace data
}  // namespace gradus
