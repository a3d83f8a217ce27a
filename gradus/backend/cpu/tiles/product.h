/// Matrix products from the library's own tiles (table.h): blocks, packing, division into units.
#pragma once
#include <cstddef>
#include <cstdint>
#include "gradus/backend/cpu/isa.h"
#include "gradus/tensor/dtype.h"

namespace gradus::cpu_backend {

/// c[i] = a[i] b[i] for i in [0, batch): a [m, k], b [k, n], c [m, n]; strides count elements.
/// Strides are not negative; of the two strides of a one is 1, and so for b (what is not must be copied before).
/// Columns of c are adjacent; its rows do not overlap, nor does c overlap a or b. A batch stride of 0 repeats an
/// operand. dtype is f32, f64, bf16, or an integer of 32 or 64 bits. Every element of c is one chain in order of k that
/// begins with 0, of fma for floats, of wrapping multiplications and additions for integers: its bits depend on nothing
/// else. Of bf16 the chain is one of f32, rounded at its end, and takes k in pairs, of each the odd one first; a
/// missing odd one counts as 0 * 0. k = 0 gives zeros.
struct Product {
  DType dtype = f32;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t a_row = 0, a_column = 1, a_batch = 0;
  std::int64_t b_row = 0, b_column = 1, b_batch = 0;
  std::int64_t c_row = 0, c_batch = 0;
  bool resume = false;                    // c holds the beginnings of its chains, which go on with these k; not of bf16
  Isa isa = cpu_backend::isa();           // fixes what units are
  bool pair_tiles = has_pair_products();  // bf16 on AVX-512: by vdpbf16ps
};

/// Pieces of about equal work. Threads may divide them in any way; adjacent ones share packed operands, so that a
/// thread does best with one range.
std::int64_t units(const Product&);

/// What one thread needs while it runs units, preferably aligned to 64 bytes. May be 0.
std::size_t scratch_bytes(const Product&);

/// Whether it packs b, which every thread would do that has rows of its own.
bool packs_b(const Product&);

/// Computes the elements of c that belong to units [begin, end).
void run_units(const Product&, const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end,
               void* scratch);

}  // namespace gradus::cpu_backend
