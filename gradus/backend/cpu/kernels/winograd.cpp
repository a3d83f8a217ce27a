/// Convolutions and transposed ones of stride 1 in tiles of 2 x 2 targets: a unit transforms the elements of some
/// tiles, multiplies, and transforms back, within the second-level cache. The transformed weights are memory that
/// workers share, and the first of two parts.
#include "gradus/backend/cpu/kernels/winograd.h"
#include <algorithm>
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/backend/cpu/kernels/winograd_transforms.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

using cpu_backend::Product;
using namespace winograd;

constexpr std::int64_t tiles_at_once = 56;  // whole tiles of products: 14 or 6 rows, or nearly so
constexpr std::int64_t enough_units = 16;
constexpr std::int64_t weights_cost = 5;  // of is_worth_it

struct InTiles : ConvolutionCall {
  Tiling tiling;
  std::int64_t inner = 0, columns = 0;  // channels of a group: sources, targets
  GroupedWeights weights_of;
  int shared_slot = -1;
  std::int64_t blocks = 0, at_once = 0;  // of tiles, of a group
  std::int64_t product_bytes = 0;

  std::int64_t tiles() const { return examples * tiling.of_image(); }
  /// Blocks differ by a tile at most.
  std::int64_t first_of(std::int64_t block) const { return block * tiles() / blocks; }
  std::int64_t read_step() const { return place_step(at_once, pitch_of(inner)); }
  std::int64_t sum_step() const { return place_step(at_once, pitch_of(columns)); }
  std::int64_t weights_step() const { return place_step(inner, pitch_of(columns)); }
  /// The 16 products of some tiles.
  Product products(std::int64_t rows) const {
    return {.dtype = dtype,
            .batch = places,
            .m = rows,
            .n = columns,
            .k = inner,
            .a_row = pitch_of(inner),
            .a_batch = read_step(),
            .b_row = pitch_of(columns),
            .b_batch = weights_step(),
            .c_row = pitch_of(columns),
            .c_batch = sum_step()};
  }
  /// Floats of a worker: transformed tiles, sums, a position of zeros, a target of no image.
  std::int64_t worker_floats() const {
    return places * (read_step() + sum_step()) + pitch_of(inner) + pitch_of(columns);
  }
};

const InTiles& tiles_of(const ConvolutionCall& call) { return static_cast<const InTiles&>(call); }
float* weights_of(const InTiles& t, const KernelArguments* arguments, std::int64_t group) {
  return static_cast<float*>(arguments->slots[t.shared_slot]) + group * places * t.weights_step();
}

class TiledConvolution {
 public:
  TiledConvolution(const InTiles& t, const KernelArguments* arguments)
      : t_(t),
        x_(static_cast<const float*>(arguments->slots[t.source])),
        y_(static_cast<float*>(arguments->slots[t.target])),
        weights_(weights_of(t, arguments, 0)),
        read_(static_cast<float*>(arguments->scratch)),
        sums_(read_ + places * t.read_step()),
        zeros_(sums_ + places * t.sum_step()),
        spare_(zeros_ + pitch_of(t.inner)),
        product_scratch_(spare_ + pitch_of(t.columns)) {
    std::fill_n(zeros_, t.inner, 0.0F);
  }

  /// Units are ordered by (group, block of tiles).
  void run(std::int64_t unit) const {
    const std::int64_t group = unit / t_.blocks, block = unit % t_.blocks;
    const std::int64_t first = t_.first_of(block), tiles = t_.first_of(block + 1) - first;
    const Product products = t_.products(tiles);
    const auto transform_tile = transforms_for(t_.inner).tile;
    TilePlace read(t_.tiling, first), written = read;
    for (std::int64_t i = 0; i < tiles; ++i, read.advance()) {
      const float* positions[places];
      read.find_sources(x_ + group * t_.inner, t_.source_channels, zeros_, positions);
      transform_tile(positions, t_.inner, read_ + i * products.a_row, t_.read_step(), 0, 4);
    }
    cpu_backend::run_units(products, read_, weights_ + group * places * t_.weights_step(), sums_, 0,
                           cpu_backend::units(products), product_scratch_);
    const auto transform_sums = transforms_for(t_.columns).sums;
    for (std::int64_t i = 0; i < tiles; ++i, written.advance()) {
      float* targets[4];
      written.find_targets(y_ + group * t_.columns, t_.target_channels, spare_, targets);
      transform_sums(sums_ + i * products.c_row, t_.sum_step(), t_.columns, targets);
    }
  }

 private:
  const InTiles& t_;
  const float* x_;
  float* y_;
  const float* weights_;
  float *read_, *sums_, *zeros_, *spare_, *product_scratch_;
};

}  // namespace

std::optional<BoundThunk> bind_winograd(const ConvolutionCall& call, const GroupedWeights& weights, int shared_slot) {
  const std::optional<Tiling> tiling = Tiling::of(call.axes);
  if (!tiling || call.dtype != f32 || call.examples * call.groups == 0) return {};
  const std::int64_t inner = call.source_channels / call.groups, columns = call.target_channels / call.groups;
  if (!is_worth_it(*tiling, 1, inner, columns, weights_cost)) return {};
  return bind_tiles(call, *tiling, weights, shared_slot);
}

BoundThunk winograd::bind_tiles(const ConvolutionCall& call, const Tiling& tiling, const GroupedWeights& weights,
                                int shared_slot) {
  const std::int64_t inner = call.source_channels / call.groups, columns = call.target_channels / call.groups;
  auto t = std::make_shared<InTiles>();
  static_cast<ConvolutionCall&>(*t) = call;
  t->way = Way::winograd;
  t->tiling = tiling;
  t->inner = inner;
  t->columns = columns;
  t->weights_of = weights;
  t->shared_slot = shared_slot;
  const std::int64_t fair = divide_up(t->tiles() * call.groups, enough_units);
  t->blocks = divide_up(t->tiles(), std::min(tiles_at_once, round_up(fair, 14)));
  t->at_once = divide_up(t->tiles(), t->blocks);
  BoundThunk bound{.extent = call.groups * inner};
  for (const std::int64_t rows : {t->at_once, t->tiles() / t->blocks}) {
    const Product p = t->products(rows);
    t->product_bytes = std::max(t->product_bytes, static_cast<std::int64_t>(scratch_bytes(p)));
    bound.tiles |= tiles_for(p);
  }
  const std::int64_t all_places = call.groups * places, weights_size = inner * columns;
  bound.bytes = call.groups * (9 + places) * weights_size * size_of(f32);
  bound.flops = 2 * all_places * weights_size;
  bound.second = {.extent = call.groups * t->blocks,
                  .bytes = call.bytes(),
                  .flops = 2 * all_places * t->tiles() * (weights_size + inner + columns),
                  .worker_scratch = t->worker_floats() * size_of(f32) + t->product_bytes};
  bound.shared_scratch = call.groups * places * t->weights_step() * size_of(f32);
  bound.data = std::shared_ptr<const ConvolutionCall>(std::move(t));
  bound.image = image_of<InTiles>;
  bound.run = run_winograd_convolution;
  return bound;
}

/// Rows [begin, end) of the weights of a tap, counted over groups.
void transform_weights(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin,
                       std::int64_t end) {
  const InTiles& t = tiles_of(call);
  const GroupedWeights& w = t.weights_of;
  const auto* from = static_cast<const float*>(arguments->slots[t.weights]);
  const auto transform = transforms_for(t.columns).weights;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t group = row / t.inner, channel = row % t.inner;
    const float* taps[9];
    for (std::int64_t k = 0; k < 9; ++k)
      taps[k] = from + ((t.tiling.flipped ? 8 - k : k) * w.rows + group * w.group_rows + channel) * w.row +
                group * w.group_columns;
    transform(taps, t.columns, weights_of(t, arguments, group) + channel * pitch_of(t.columns), t.weights_step());
  }
}

void run_winograd_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  transform_weights(arguments, *static_cast<const ConvolutionCall*>(arguments->data), begin, end);
}

void multiply_tiles(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin,
                    std::int64_t end) {
  const TiledConvolution convolution(tiles_of(call), arguments);
  for (std::int64_t unit = begin; unit < end; ++unit) convolution.run(unit);
}

}  // namespace gradus::library
