/// How a product is cut.
#include "gradus/backend/cpu/tiles/plan.h"
#include "gradus/base/error.h"

namespace gradus::cpu_backend {
namespace {

std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }
std::int64_t round_up(std::int64_t x, std::int64_t to) { return divide_up(x, to) * to; }

void check(const Product& p) {
  internal_check(p.dtype == f32 || p.dtype == f64 || p.dtype == i32 || p.dtype == i64, "product of ", p.dtype);
  internal_check(std::min({p.batch, p.m, p.n, p.k}) >= 0, "product of negative size");
  internal_check(std::min({p.a_row, p.a_column, p.a_batch, p.b_row, p.b_column, p.b_batch, p.c_row, p.c_batch}) >= 0,
                 "product with a negative stride");
  internal_check((p.a_row == 1 || p.a_column == 1) && (p.b_row == 1 || p.b_column == 1),
                 "product of an operand with neither adjacent rows nor adjacent columns");
}

/// Many matrices times one are a single tall one, if its rows follow each other.
Product collapse(Product p) {
  const bool rows_follow = p.a_batch == p.m * p.a_row && p.c_batch == p.m * p.c_row;
  if (p.batch > 1 && p.b_batch == 0 && rows_follow) p.m *= p.batch, p.batch = 1;
  return p;
}

}  // namespace

Plan::Plan(const Product& given) : product(collapse(given)) {
  const Product& p = product;
  check(p);
  const bool avx512 = p.isa == Isa::avx512;
  const TileSizes& sizes = avx512 ? avx512_tiles : avx2_tiles;
  table = avx512 ? &gradus_tiles_avx512 : &gradus_tiles_avx2;
  size = size_of(p.dtype), lanes = sizes.vector_bytes / size;
  outer_batch = p.b_batch == 0 ? 1 : p.batch, inner_batch = p.b_batch == 0 ? p.batch : 1;
  vectors = p.n <= lanes ? 1 : 2, width = vectors * lanes;
  row_panels = divide_up(p.m, sizes.rows[vectors - 1]);

  // Lines a power of two apart fall into one set of the cache.
  const bool aliases = std::max(p.a_row, p.a_column) * size % 2048 == 0 && p.k > (p.a_row == 1 ? 128 : 256);
  pack_a = aliases && p.n >= 4 * width;
  pack_b = p.b_column != 1 || (p.n * p.k * size > 160 << 10 && p.m * inner_batch > 64);
  const std::int64_t depth_blocks = (!pack_a && !pack_b) || p.k <= 512 ? 1 : divide_up(p.k, 392);
  depth = depth_blocks == 1 ? p.k : round_up(divide_up(p.k, depth_blocks), 16);

  cut_columns(avx512 ? 640 << 10 : 224 << 10);
}

void Plan::cut_columns(std::int64_t cache) {
  const std::int64_t n = product.n, row_units = outer_batch * inner_batch * row_panels;
  column_blocks = 0;
  if (n == 0 || row_units == 0) return;
  block = width;
  if (pack_b) {
    const std::int64_t fitting = cache / std::max<std::int64_t>(depth * size, 1) / width * width;
    // Packing a again for every block has to be worth it.
    const std::int64_t least = pack_a ? 4 * width : width;
    const std::int64_t enough = round_up(divide_up(n, divide_up(32, row_units)), width);  // 32 units or more
    block = std::clamp(std::min(fitting, enough), least, std::max(least, round_up(n, width)));
    block = round_up(divide_up(n, divide_up(n, block)), width);  // of about equal width
  }
  column_blocks = divide_up(n, block);
}

std::int64_t Plan::b_panel_bytes() const { return round_up(depth, 16) * size * width + 64; }

std::int64_t Plan::a_pitch_bytes() const {
  if (product.a_column == 1) return (divide_up(depth * size, 64) | 1) * 64;
  return round_up(rows(0) * size, 64);
}

std::int64_t Plan::packed_a_bytes() const {
  // Two vectors more: packing writes whole panels.
  return pack_a ? a_pitch_bytes() * (product.a_column == 1 ? rows(0) : depth) + 128 : 0;
}

}  // namespace gradus::cpu_backend
