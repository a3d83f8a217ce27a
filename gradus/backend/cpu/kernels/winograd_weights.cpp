/// Gradients of convolutions by their weights in tiles of 2 x 2 windows: Winograd's F(3x3, 2x2), a product over all
/// tiles at each of the 16 places. Tiles come in chunks, each with sums of its own, so that units are enough; the sums
/// are memory that workers share; the second of two parts adds them up and transforms them.
#include <algorithm>
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/backend/cpu/kernels/winograd.h"
#include "gradus/backend/cpu/kernels/winograd_transforms.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

using cpu_backend::Product;
using namespace winograd;

constexpr std::int64_t block_bytes = 768 << 10;             // of transformed tiles: a part of the second-level cache
constexpr std::int64_t chunks_bytes = 4 << 20;              // of the sums of all chunks
constexpr std::int64_t most_chunks = 4, least_chunk = 224;  // tiles
constexpr std::int64_t least_block = 24, most_block = 112;  // tiles
constexpr std::int64_t part_channels = 128;                 // of elements: each part transforms windows again
constexpr std::int64_t weights_cost = 30;                   // of is_worth_it: sums are added to time and again

struct WeightTiles : KernelConvolutionCall {
  Tiling tiling;
  int shared_slot = -1;
  std::int64_t inner = 0, columns = 0;  // channels of a group: elements, windows
  std::int64_t parts = 1, chunks = 1, at_once = 1;

  /// True for one group: all workers work on it together. Each of several groups is one worker's, and so are its sums.
  bool is_shared() const { return groups == 1; }
  std::int64_t units_of_group() const { return parts * chunks * 4; }
  std::int64_t tiles() const { return examples * tiling.of_image(); }
  std::int64_t first_tile(std::int64_t chunk) const { return tiles() * chunk / chunks; }
  std::int64_t first_channel(std::int64_t part) const { return inner * part / parts; }
  std::int64_t most_channels() const { return divide_up(inner, parts); }
  std::int64_t element_step() const { return place_step(at_once, pitch_of(most_channels())); }
  std::int64_t window_step() const { return place_step(at_once, pitch_of(columns)); }
  std::int64_t sum_step() const { return place_step(inner, pitch_of(columns)); }
  std::int64_t chunk_step() const { return places * sum_step(); }
  std::int64_t sums_bytes() const { return chunks * chunk_step() * size_of(f32); }
  /// Floats of a worker: transformed tiles of elements and windows, a position of zeros.
  std::int64_t worker_floats() const {
    return places * (element_step() + window_step()) + pitch_of(std::max(inner, columns));
  }
  /// The products of some channels of elements and tiles, at `of_places` places.
  Product products(std::int64_t of_places, std::int64_t channels, std::int64_t k, bool resume) const {
    return {.dtype = dtype,
            .batch = of_places,
            .m = channels,
            .n = columns,
            .k = k,
            .a_row = 1,
            .a_column = pitch_of(most_channels()),
            .a_batch = element_step(),
            .b_row = pitch_of(columns),
            .b_batch = window_step(),
            .c_row = pitch_of(columns),
            .c_batch = sum_step(),
            .resume = resume};
  }
};

void choose_blocks(WeightTiles& w) {
  w.parts = divide_up(w.inner, part_channels);
  const std::int64_t most = std::min(w.tiles() / least_chunk, chunks_bytes / (w.chunk_step() * size_of(f32)));
  w.chunks = std::clamp<std::int64_t>(most, 1, most_chunks);
  const std::int64_t tile_bytes = places * (pitch_of(w.most_channels()) + pitch_of(w.columns)) * size_of(f32);
  const std::int64_t of_chunk = divide_up(w.tiles(), w.chunks);
  w.at_once = std::clamp(block_bytes / tile_bytes, least_block, most_block);
  w.at_once = divide_up(of_chunk, divide_up(of_chunk, w.at_once));
}

class TileSums {
 public:
  TileSums(const WeightTiles& w, const KernelArguments* arguments, std::int64_t group = 0)
      : w_(w),
        x_(static_cast<const float*>(arguments->slots[w.elements]) + group * w.inner),
        dy_(static_cast<const float*>(arguments->slots[w.windows]) + group * w.columns),
        dw_(static_cast<float*>(arguments->slots[w.target]) + group * w.columns),
        elements_(static_cast<float*>(arguments->scratch)),
        windows_(elements_ + places * w.element_step()),
        zeros_(windows_ + places * w.window_step()),
        own_sums_(elements_ + w.worker_floats()),
        sums_(w.is_shared() ? static_cast<float*>(arguments->slots[w.shared_slot]) : own_sums_),
        product_scratch_(w.is_shared() ? own_sums_ : own_sums_ + w.chunks * w.chunk_step()) {}

  /// Units are ordered by (part, chunk, row of the 4 x 4 places), the last fastest.
  void run(std::int64_t begin, std::int64_t end) const {
    std::fill_n(zeros_, std::max(w_.inner, w_.columns), 0.0F);
    while (begin < end) {
      const std::int64_t chunk = begin / 4, last = std::min(end, (chunk + 1) * 4);
      add_chunk(chunk / w_.chunks, chunk % w_.chunks, begin % 4, last - chunk * 4);
      begin = last;
    }
  }

  /// The weights of channels [begin, end) of elements, without scratch.
  void finish(std::int64_t begin, std::int64_t end) const {
    const auto transform_chunks = transforms_for(w_.columns).chunks;
    for (std::int64_t channel = begin; channel < end; ++channel) {
      float* taps[9];
      for (std::int64_t k = 0; k < 9; ++k) taps[k] = dw_ + (k * w_.inner + channel) * w_.window_channels;
      const float* from = sums_ + channel * pitch_of(w_.columns);
      transform_chunks(from, w_.sum_step(), w_.chunks, w_.chunk_step(), w_.columns, taps);
    }
  }

 private:
  /// Rows [begin, end) of places.
  void add_chunk(std::int64_t part, std::int64_t chunk, std::int64_t begin, std::int64_t end) const {
    const std::int64_t first_channel = w_.first_channel(part), channels = w_.first_channel(part + 1) - first_channel;
    const std::int64_t first = w_.first_tile(chunk), last = w_.first_tile(chunk + 1);
    float* sums = sums_ + chunk * w_.chunk_step() + first_channel * pitch_of(w_.columns);
    const auto transform_tile = transforms_for(channels).tile;
    const auto transform_windows = transforms_for(w_.columns).windows;
    TilePlace place(w_.tiling, first);
    for (std::int64_t tile = first; tile < last; tile += w_.at_once) {
      const std::int64_t tiles = std::min(w_.at_once, last - tile);
      const Product products = w_.products((end - begin) * 4, channels, tiles, tile > first);
      for (std::int64_t i = 0; i < tiles; ++i, place.advance()) {
        const float* positions[places];
        place.find_sources(x_ + first_channel, w_.element_channels, zeros_, positions);
        transform_tile(positions, channels, elements_ + i * products.a_column, w_.element_step(), begin, end);
        const float* windows[4];
        place.find_targets<const float>(dy_, w_.window_channels, zeros_, windows);
        transform_windows(windows, w_.columns, windows_ + i * products.b_row, w_.window_step(), begin, end);
      }
      const std::int64_t first_place = begin * 4;
      cpu_backend::run_units(products, elements_ + first_place * w_.element_step(),
                             windows_ + first_place * w_.window_step(), sums + first_place * w_.sum_step(), 0,
                             cpu_backend::units(products), product_scratch_);
    }
  }

  const WeightTiles& w_;
  const float *x_, *dy_;
  float *dw_, *elements_, *windows_, *zeros_, *own_sums_, *sums_, *product_scratch_;
};

const WeightTiles& tiles_of(const KernelConvolutionCall& call) { return static_cast<const WeightTiles&>(call); }

}  // namespace

std::optional<BoundThunk> bind_winograd(const KernelConvolutionCall& call, int shared_slot) {
  const std::optional<Tiling> tiling = Tiling::of(call.axes);
  if (!tiling || call.dtype != f32 || call.examples * call.groups == 0) return {};
  const std::int64_t inner = call.element_channels / call.groups, columns = call.window_channels / call.groups;
  if (!is_worth_it(*tiling, call.examples, inner, columns, weights_cost)) return {};
  return bind_tiles(call, *tiling, shared_slot);
}

BoundThunk winograd::bind_tiles(const KernelConvolutionCall& call, const Tiling& tiling, int shared_slot) {
  auto w = std::make_shared<WeightTiles>();
  static_cast<KernelConvolutionCall&>(*w) = call;
  w->way = Way::winograd;
  w->tiling = tiling;
  w->shared_slot = shared_slot;
  w->inner = call.element_channels / call.groups;
  w->columns = call.window_channels / call.groups;
  choose_blocks(*w);
  BoundThunk bound{.extent = w->is_shared() ? w->units_of_group() : call.groups};
  std::size_t product_bytes = 0;
  for (const std::int64_t channels : {w->most_channels(), w->inner / w->parts})
    for (std::int64_t chunk = 0; chunk < w->chunks; ++chunk)
      for (const std::int64_t last : {w->at_once, (w->first_tile(chunk + 1) - w->first_tile(chunk)) % w->at_once})
        for (const std::int64_t rows : {1, 2, 3, 4}) {
          const Product p = w->products(4 * rows, channels, last, false);
          product_bytes = std::max(product_bytes, scratch_bytes(p));
          bound.tiles |= tiles_for(p);
        }
  bound.bytes = call.bytes();
  const std::int64_t weights = w->inner * w->columns, transformed = 2 * (w->inner + w->parts * w->columns);
  const std::int64_t of_sums = call.groups * places * (w->chunks + 1) * weights;
  bound.flops = call.groups * places * w->tiles() * (2 * weights + transformed);
  bound.worker_scratch = w->worker_floats() * size_of(f32) + static_cast<std::int64_t>(product_bytes);
  if (w->is_shared()) {
    bound.shared_scratch = w->sums_bytes();
    bound.second = {.extent = w->inner, .bytes = w->sums_bytes() + 9 * weights * size_of(f32), .flops = of_sums};
  } else {
    bound.flops += of_sums;
    bound.worker_scratch += w->sums_bytes();
  }
  bound.data = std::shared_ptr<const KernelConvolutionCall>(std::move(w));
  bound.image = image_of<WeightTiles>;
  bound.run = run_winograd_weights;
  return bound;
}

/// Some units of one group, or groups [begin, end) of several.
void sum_tiles(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
               std::int64_t end) {
  const WeightTiles& w = tiles_of(call);
  if (w.is_shared()) return TileSums(w, arguments).run(begin, end);
  for (std::int64_t group = begin; group < end; ++group) {
    const TileSums sums(w, arguments, group);
    sums.run(0, w.units_of_group());
    sums.finish(0, w.inner);
  }
}

void run_winograd_weights(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  sum_tiles(arguments, *static_cast<const KernelConvolutionCall*>(arguments->data), begin, end);
}

void transform_tile_sums(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                         std::int64_t end) {
  TileSums(tiles_of(call), arguments).finish(begin, end);
}

}  // namespace gradus::library
