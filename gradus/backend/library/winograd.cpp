/// Convolutions and transposed ones of stride 1 in tiles of 2 x 2 targets: a unit transforms what some tiles read,
/// multiplies, and transforms back, within the second-level cache. The transformed weights are memory that workers
/// share: each makes its part of them, then they meet.
#include "gradus/backend/library/winograd.h"
#include <algorithm>
#include <cstring>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace winograd {

using V = VectorOf<float>::type;
constexpr std::int64_t lanes = lanes_of<float>;
constexpr std::int64_t line = 64 / sizeof(float);

std::optional<Tiling> Tiling::of(const WindowAxes& axes) {
  const WindowAxis& outer = axes[0];
  if (outer.taps != 1 || outer.targets != 1 || outer.sources != 1 || outer.offset != 0) return {};
  Tiling t;
  for (std::size_t i = 0; i < 2; ++i) {
    const WindowAxis& a = axes[i + 1];
    if (a.taps != 3 || a.scale != 1 || a.divisor != 1 || (a.tap != 1 && a.tap != -1)) return {};
    if (a.tap != axes[1].tap || a.targets == 0 || a.sources == 0) return {};
    t.flipped = a.tap == -1;
    t.base[i] = a.offset - (t.flipped ? 2 : 0);
    t.sources[i] = a.sources;
    t.targets[i] = a.targets;
    t.tiles[i] = divide_up(a.targets, 2);
  }
  return t;
}

bool is_worth_it(const Tiling& t, std::int64_t inner, std::int64_t columns) {
  // In multiplications: what an element of a transformed tile and of transformed weights costs.
  constexpr std::int64_t of_tile = 8, of_weights = 4;
  const std::int64_t weights = inner * columns, targets = t.targets[0] * t.targets[1];
  const std::int64_t direct = 9 * targets * weights;
  const std::int64_t tiled = places * (t.of_image() * (weights + of_tile * (inner + columns)) + of_weights * weights);
  return std::min(inner, columns) >= 32 && t.of_image() >= 16 && tiled * 5 <= direct * 4;
}

std::int64_t pitch_of(std::int64_t channels) {
  const std::int64_t lines = divide_up(channels, line);
  return (lines % 8 == 0 ? lines + 1 : lines) * line;
}

std::int64_t place_step(std::int64_t rows, std::int64_t pitch) { return (rows * pitch / line | 1) * line; }

namespace {

[[gnu::target("avx2"), gnu::always_inline]] inline V load(const float* at) { return *reinterpret_cast<const V*>(at); }
[[gnu::target("avx2"), gnu::always_inline]] inline void store(float* at, V v) { *reinterpret_cast<V*>(at) = v; }

[[gnu::target("avx2"), gnu::always_inline]] inline void store_row(V a, V b, V c, V d, float* to, std::int64_t step) {
  store(to, a - c), store(to + step, b + c), store(to + 2 * step, c - b), store(to + 3 * step, b - d);
}

}  // namespace

[[gnu::target("avx2")]] void transform_tile(const float* const* from, std::int64_t channels, float* to,
                                            std::int64_t step) {
  for (std::int64_t at = 0; at < channels; at += lanes) {
    const std::int64_t c = std::min(at, channels - lanes);
    constexpr int rows[4][2] = {{0, 2}, {1, 2}, {2, 1}, {1, 3}};
    for (int r = 0; r < 4; ++r) {
      const float *const *a = from + 4 * rows[r][0], *const *b = from + 4 * rows[r][1];
      V v[4];
      for (int i = 0; i < 4; ++i) v[i] = r == 1 ? load(a[i] + c) + load(b[i] + c) : load(a[i] + c) - load(b[i] + c);
      store_row(v[0], v[1], v[2], v[3], to + 4 * r * step + c, step);
    }
  }
}

void TileReader::find(std::int64_t tile, const float** positions) const {
  const std::int64_t image = tile / t_.of_image(), within = tile % t_.of_image();
  const std::int64_t s0 = within / t_.tiles[1] * 2 + t_.base[0], s1 = within % t_.tiles[1] * 2 + t_.base[1];
  const float* first = x_ + (image * t_.sources[0] * t_.sources[1] + s0 * t_.sources[1] + s1) * position_;
  const bool inside = s0 >= 0 && s0 + 4 <= t_.sources[0] && s1 >= 0 && s1 + 4 <= t_.sources[1];
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t c = 0; c < 4; ++c) {
      const bool reads = inside || (s0 + r >= 0 && s0 + r < t_.sources[0] && s1 + c >= 0 && s1 + c < t_.sources[1]);
      positions[r * 4 + c] = reads ? first + (r * t_.sources[1] + c) * position_ : zeros_;
    }
}

void find_targets(const Tiling& t, float* y, std::int64_t position, std::int64_t tile, float* spare, float** to) {
  const std::int64_t image = tile / t.of_image(), within = tile % t.of_image();
  const std::int64_t t0 = within / t.tiles[1] * 2, t1 = within % t.tiles[1] * 2;
  float* first = y + ((image * t.targets[0] + t0) * t.targets[1] + t1) * position;
  for (std::int64_t r = 0; r < 2; ++r)
    for (std::int64_t c = 0; c < 2; ++c)
      to[r * 2 + c] =
          t0 + r < t.targets[0] && t1 + c < t.targets[1] ? first + (r * t.targets[1] + c) * position : spare;
}

}  // namespace winograd

namespace {

using cpu_backend::Product;
using namespace winograd;

constexpr std::int64_t tiles_at_once = 56;  // whole tiles of products: 14 or 6 rows, or nearly so
constexpr std::int64_t enough_units = 16;

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
  std::int64_t read_step() const { return place_step(at_once, winograd::pitch_of(inner)); }
  std::int64_t sum_step() const { return place_step(at_once, winograd::pitch_of(columns)); }
  std::int64_t weights_step() const { return place_step(inner, winograd::pitch_of(columns)); }
  /// One of the 16 products of some tiles.
  Product product(std::int64_t rows) const {
    return {.dtype = dtype,
            .m = rows,
            .n = columns,
            .k = inner,
            .a_row = winograd::pitch_of(inner),
            .b_row = winograd::pitch_of(columns),
            .c_row = winograd::pitch_of(columns)};
  }
  /// Floats of a worker: transformed tiles, sums, a position of zeros, a target of no image.
  std::int64_t worker_floats() const {
    return places * (read_step() + sum_step()) + winograd::pitch_of(inner) + winograd::pitch_of(columns);
  }
};

/// G [a, b, c].
[[gnu::target("avx2"), gnu::always_inline]] inline void transform_three(V a, V b, V c, V* out) {
  const V outer = 0.5F * a + 0.5F * c, half = 0.5F * b;
  out[0] = a, out[1] = outer + half, out[2] = outer - half, out[3] = c;
}

/// g[r][c] -> G g G', G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1]: `columns` adjacent weights of each of 9 taps.
[[gnu::target("avx2")]] void transform_weights(const float* const* taps, std::int64_t columns, float* to,
                                               std::int64_t step) {
  for (std::int64_t at = 0; at < columns; at += lanes) {
    const std::int64_t c = std::min(at, columns - lanes);
    V down[3][4];
    for (int i = 0; i < 3; ++i)
      transform_three(load(taps[i] + c), load(taps[3 + i] + c), load(taps[6 + i] + c), down[i]);
    for (int r = 0; r < 4; ++r) {
      V across[4];
      transform_three(down[0][r], down[1][r], down[2][r], across);
      for (int i = 0; i < 4; ++i) store(to + (r * 4 + i) * step + c, across[i]);
    }
  }
}

/// m[r][c] -> A' m A, A' = [1 1 1 0; 0 1 -1 -1]: the 2 x 2 targets of a tile.
[[gnu::target("avx2")]] void transform_sums(const float* from, std::int64_t step, std::int64_t columns,
                                            float* const* to) {
  for (std::int64_t at = 0; at < columns; at += lanes) {
    const std::int64_t c = std::min(at, columns - lanes);
    const float* m = from + c;
    V top[4], bottom[4];
    for (int i = 0; i < 4; ++i) {
      const V second = load(m + (4 + i) * step), third = load(m + (8 + i) * step);
      top[i] = load(m + i * step) + second + third;
      bottom[i] = second - third - load(m + (12 + i) * step);
    }
    store(to[0] + c, top[0] + top[1] + top[2]);
    store(to[1] + c, top[1] - top[2] - top[3]);
    store(to[2] + c, bottom[0] + bottom[1] + bottom[2]);
    store(to[3] + c, bottom[1] - bottom[2] - bottom[3]);
  }
}

class TiledConvolution {
 public:
  TiledConvolution(const InTiles& t, const KernelArguments* arguments)
      : t_(t),
        x_(static_cast<const float*>(arguments->slots[t.source])),
        w_(static_cast<const float*>(arguments->slots[t.weights])),
        y_(static_cast<float*>(arguments->slots[t.target])),
        weights_(static_cast<float*>(arguments->slots[t.shared_slot])),
        read_(static_cast<float*>(arguments->scratch)),
        sums_(read_ + places * t.read_step()),
        zeros_(sums_ + places * t.sum_step()),
        spare_(zeros_ + winograd::pitch_of(t.inner)),
        product_scratch_(spare_ + winograd::pitch_of(t.columns)) {
    std::fill_n(zeros_, t.inner, 0.0F);
  }

  /// Rows [begin, end) of the weights of a tap, counted over groups.
  void transform(std::int64_t begin, std::int64_t end) const {
    const GroupedWeights& w = t_.weights_of;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t group = row / t_.inner, channel = row % t_.inner;
      const float* taps[9];
      for (std::int64_t k = 0; k < 9; ++k)
        taps[k] = w_ + ((t_.tiling.flipped ? 8 - k : k) * w.rows + group * w.group_rows + channel) * w.row +
                  group * w.group_columns;
      transform_weights(taps, t_.columns, weights_of(group) + channel * winograd::pitch_of(t_.columns),
                        t_.weights_step());
    }
  }

  /// Units are ordered by (group, block of tiles).
  void run(std::int64_t unit) const {
    const std::int64_t group = unit / t_.blocks, block = unit % t_.blocks;
    const std::int64_t first = t_.first_of(block), tiles = t_.first_of(block + 1) - first;
    const Product product = t_.product(tiles);
    const TileReader reader(t_.tiling, x_ + group * t_.inner, t_.source_channels, zeros_);
    for (std::int64_t i = 0; i < tiles; ++i) {
      const float* positions[places];
      reader.find(first + i, positions);
      transform_tile(positions, t_.inner, read_ + i * product.a_row, t_.read_step());
    }
    for (std::int64_t place = 0; place < places; ++place)
      cpu_backend::run_units(product, read_ + place * t_.read_step(), weights_of(group) + place * t_.weights_step(),
                             sums_ + place * t_.sum_step(), 0, cpu_backend::units(product), product_scratch_);
    for (std::int64_t i = 0; i < tiles; ++i) {
      float* targets[4];
      find_targets(t_.tiling, y_ + group * t_.columns, t_.target_channels, first + i, spare_, targets);
      transform_sums(sums_ + i * product.c_row, t_.sum_step(), t_.columns, targets);
    }
  }

 private:
  float* weights_of(std::int64_t group) const { return weights_ + group * places * t_.weights_step(); }

  const InTiles& t_;
  const float *x_, *w_;
  float *y_, *weights_, *read_, *sums_, *zeros_, *spare_, *product_scratch_;
};

void run_together(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& t = static_cast<const InTiles&>(*static_cast<const ConvolutionCall*>(arguments->data));
  const TiledConvolution convolution(t, arguments);
  const TeamMember& member = *arguments->member;
  const std::int64_t rows = t.groups * t.inner;
  convolution.transform(rows * member.worker / member.team, rows * (member.worker + 1) / member.team);
  member.meet();
  for (std::int64_t unit = begin; unit < end; ++unit) convolution.run(unit);
}

}  // namespace

std::optional<BoundThunk> bind_winograd(const ConvolutionCall& call, const GroupedWeights& weights, int shared_slot) {
  const std::optional<Tiling> tiling = Tiling::of(call.axes);
  const std::int64_t inner = call.source_channels / call.groups, columns = call.target_channels / call.groups;
  if (!tiling || call.dtype != f32 || call.examples == 0 || !is_worth_it(*tiling, inner, columns)) return {};
  auto t = std::make_shared<InTiles>();
  static_cast<ConvolutionCall&>(*t) = call;
  t->way = Way::winograd;
  t->tiling = *tiling;
  t->inner = inner;
  t->columns = columns;
  t->weights_of = weights;
  t->shared_slot = shared_slot;
  const std::int64_t fair = divide_up(t->tiles() * call.groups, enough_units);
  t->blocks = divide_up(t->tiles(), std::min(tiles_at_once, round_up(fair, 14)));
  t->at_once = divide_up(t->tiles(), t->blocks);
  for (const std::int64_t rows : {t->at_once, t->tiles() / t->blocks})
    t->product_bytes = std::max(t->product_bytes, static_cast<std::int64_t>(scratch_bytes(t->product(rows))));
  BoundThunk bound{.extent = call.groups * t->blocks};
  bound.turns = bound.extent;
  bound.in_turns = run_together;
  bound.bytes = call.bytes();
  const std::int64_t transformed = 2 * (inner + columns) * t->tiles() + 2 * inner * columns;
  bound.flops = call.groups * places * (2 * t->tiles() * inner * columns + transformed);
  bound.worker_scratch = t->worker_floats() * size_of(f32) + t->product_bytes;
  bound.shared_scratch = call.groups * places * t->weights_step() * size_of(f32);
  bound.data = std::shared_ptr<const ConvolutionCall>(std::move(t));
  return bound;
}

void run_winograd(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin, std::int64_t end) {
  const auto& t = static_cast<const InTiles&>(call);
  const TiledConvolution convolution(t, arguments);
  convolution.transform(0, t.groups * t.inner);
  for (std::int64_t unit = begin; unit < end; ++unit) convolution.run(unit);
}

}  // namespace gradus::library
