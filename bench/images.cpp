/// An epoch of JPEG files from folders, decoded, resized and changed at random, in batches, which nobody trains with.
/// The files are made here, once, by libjpeg: peers read the same.
#include <cstdio>
#include <jpeglib.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>
#include "bench/workloads.h"
#include "gradus/base/error.h"
#include "gradus/data/dataset.h"
#include "gradus/data/files.h"
#include "gradus/nn/augmentation.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/elementwise.h"

namespace gradus::bench {
namespace {

namespace fs = std::filesystem;

constexpr int images = 1000, classes = 10, height = 300, width = 400, read_side = 160;

/// Waves and noise, of quality 85: 28 to 31 KB.
std::vector<unsigned char> picture(std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<unsigned char> pixels;
  float waves[3][4];
  for (auto& channel : waves)
    for (float& each : channel) each = normal(random);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (const auto& w : waves) {
        const auto column = static_cast<float>(x), row = static_cast<float>(y);
        const float value = 128 + 50 * std::sin(w[0] * column * .05f + w[1] * row * .03f) +
                            30 * std::sin(w[2] * column * .2f - w[3] * row * .1f) + 8 * normal(random);
        pixels.push_back(static_cast<unsigned char>(std::clamp(value, 0.f, 255.f)));
      }
  return pixels;
}

void write_jpeg(const fs::path& file, const std::vector<unsigned char>& pixels) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&jpeg, &bytes, &count);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 85, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < height; ++y) {
    auto* row = const_cast<unsigned char*>(pixels.data()) + 3 * width * y;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  jpeg_destroy_compress(&jpeg);
  std::free(bytes);
}

/// The folder of BENCH_IMAGES, or one of temporary files; made if it is missing.
fs::path folder() {
  const char* given = std::getenv("BENCH_IMAGES");
  const fs::path root = given && *given ? fs::path(given) : fs::temp_directory_path() / "gradus_bench_images";
  if (fs::exists(root)) return root;
  const fs::path unfinished = root.string() + ".unfinished";
  fs::remove_all(unfinished);
  std::mt19937 random(1);
  for (int i = 0; i < images; ++i) {
    const fs::path of_class = unfinished / text("class", i % classes);
    fs::create_directories(of_class);
    write_jpeg(of_class / text(i, ".jpg"), picture(random));
  }
  fs::rename(unfinished, root);
  return root;
}

/// The best of three epochs after one.
double images_per_second(const Dataset<2>& dataset) {
  double best = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    const double start = seconds_now();
    std::int64_t seen = 0;
    for (auto [x, y] : dataset) seen += y.shape()[0];
    if (epoch > 0) best = std::max(best, static_cast<double>(seen) / (seconds_now() - start));
  }
  return best;
}

Figures changed_images() {
  const Sequential change{RandomFlip(FlipMode::horizontal), RandomRotation(0.05), RandomContrast(0.2)};
  const auto changed = [&](Tensor x, Tensor y) { return std::pair{change(cast(x, f32), training) / 255.0, y}; };
  const auto files = data::images_from_directory(folder(), {.height = read_side, .width = read_side}).shuffle();
  Figures figures;
  nlohmann::ordered_json samples;
  samples["plain"] = images_per_second(files.batch(32).prefetch());
  samples["map_batch"] = images_per_second(files.map(changed).batch(32).prefetch());
  samples["batch_map"] = images_per_second(files.batch(32).map(changed).prefetch());
  figures.median_us = 32e6 / std::max(samples["map_batch"].get<double>(), samples["batch_map"].get<double>());
  figures.extra = {{"samples_per_s", samples}};
  return figures;
}

}  // namespace

void add_images(Workloads& workloads) { workloads["images"] = changed_images; }

}  // namespace gradus::bench
