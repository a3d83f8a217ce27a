/// The register tile: the inner kernel of every matrix product.
#pragma once
#include <llvm/IR/Module.h>
#include <string>

namespace gradus::cpu_backend {

struct Tile {
  llvm::Type* element;  // float, double, i32 or i64
  int rows, vectors;
  unsigned lanes;
  bool fetches_packed_b = false;
  bool pairs = false;     // of bf16, summed in float: for processors with AVX512_BF16
  bool rounds = false;    // the sums, to bf16
  bool wide = false;      // full tiles alone, over many columns of b in place
  bool has_masks = true;  // an access of some lanes is an instruction, not several branches
};

/// A TileFunction (table.h).
llvm::Function* emit_tile(llvm::Module&, const Tile&, const std::string& name);

}  // namespace gradus::cpu_backend
