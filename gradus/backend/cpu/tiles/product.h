/// Matrix products from the library's own tiles (table.h): blocks, packing, division into units.
#pragma once
#include <cstddef>
#include <cstdint>
#include "gradus/backend/cpu/isa.h"
#include "gradus/tensor/dtype.h"

namespace gradus {
class Share;
}
namespace gradus::cpu_backend {

/// c[i] = a[i] b[i] for i in [0, batch): a [m, k], b [k, n], c [m, n]; strides count elements. Strides are not
/// negative; one of a's two strides is 1, and one of b's (other operands must be copied before). Columns of c are
/// adjacent; its rows do not overlap, nor does c overlap a or b. A batch stride of 0 repeats an operand. dtype is f32,
/// f64, bf16, or an integer of 32 or 64 bits. Every element of c is one chain in order of k that begins with 0, of fma
/// for floats, of wrapping multiplications and additions for integers: its bits depend on nothing else. For bf16 the
/// chain is one of f32, rounded at its end, and takes k in pairs, the odd one first; a missing odd one counts as 0 * 0.
/// k = 0 gives zeros. With `amx` an element of bf16 that is not wide is another sum of the same products, which depends
/// on its row and column alone, too: every 32 k, filled up with 0 * 0, are a chain of the even ones and a chain of the
/// odd ones, each beginning with 0 and in order; their sum is added to that of the k before. All in f32, subnormals
/// flushed, rounded at the end. For bf16 c may be wide: the sums themselves, in f32; they may continue after an even
/// number of k.
struct Product {
  DType dtype = f32;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t a_row = 0, a_column = 1, a_batch = 0;
  std::int64_t b_row = 0, b_column = 1, b_batch = 0;
  std::int64_t c_row = 0, c_batch = 0;
  bool resume = false;  // c holds the beginnings of its chains, which go on with these k; of bf16 only if wide
  bool wide = false;
  Isa isa = cpu_backend::isa();                      // fixes the units
  bool pair_tiles = prefers_pair_products();         // bf16 on AVX-512: by vdpbf16ps
  bool near_panels = prefers_near_panels();          // on AVX-512: chains pause, so that 32 KiB of b stay near
  bool rounds_by_instruction = has_pair_products();  // to bf16 on AVX-512: by vcvtneps2bf16
  bool amx = uses_amx();                             // bf16: by tdpbf16ps; needs AVX-512
  bool is_followed = false;  // by an epilogue; rows of c follow each other. Fixes the units, too
};

/// Elements of c that are done, while they are near: rows of neighbours.
struct Piece {
  const void* c;
  std::int64_t rows, columns, pitch;  // elements from row to row
  std::int64_t first;                 // which element of all matrices c points to, counted along rows
};
/// An epilogue, which is applied to each piece. It may not touch other elements of a, b and c.
struct Epilogue {
  void (*run)(void* state, const Piece& piece) = nullptr;
  void* state = nullptr;
};

/// Pieces of about equal work. Threads may divide them in any way; adjacent ones share packed operands, so that a
/// thread does best with one range.
std::int64_t units(const Product&);

/// True if a product with an epilogue needs memory for all of c, in which sums pause. Else c may be null.
bool needs_c(const Product&);

/// The bytes that one thread needs while it runs units, preferably aligned to 64 bytes. May be 0.
std::size_t scratch_bytes(const Product&);

/// True if it packs b. Every thread with rows of its own would do so.
bool packs_b(const Product&);

/// Computes the elements of c that belong to units [begin, end), or to those of the share if there is one, and hands
/// them to the epilogue of a product that is followed, each once.
void run_units(const Product&, const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end,
               void* scratch, const Epilogue& epilogue = {}, Share* share = nullptr);

}  // namespace gradus::cpu_backend
