/// The tile of AMX: four accumulators of 16 x 16 sums, so that one instruction need not wait for the one before it, and
/// two tiles of each operand.
#include "gradus/backend/cpu/tiles/emitter/amx.h"
#include <llvm/IR/IntrinsicsX86.h>
#include "gradus/backend/cpu/tiles/amx.h"
#include "gradus/backend/cpu/tiles/emitter/ir.h"

namespace gradus::cpu_backend {
namespace {

constexpr std::int64_t rows = AmxTiles::rows, row_bytes = AmxTiles::row_bytes;

llvm::Function* new_function(llvm::Module& module, Builder& b, std::vector<llvm::Type*> arguments,
                             const std::string& name) {
  auto* function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), arguments, false),
                                          llvm::Function::InternalLinkage, name, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function));
  return function;
}

class AmxEmitter {
 public:
  AmxEmitter(llvm::Module& module, int row_tiles, int column_tiles, const std::string& name)
      : b_(module.getContext()), row_tiles_(row_tiles), column_tiles_(column_tiles) {
    llvm::Type *p = b_.getPtrTy(), *i = b_.getInt64Ty();
    function_ = new_function(module, b_, {p, i, p, i}, name);
    runs_ = function_->getArg(0), count_ = function_->getArg(1), sums_ = function_->getArg(2);
    resume_ = function_->getArg(3);
  }

  llvm::Function* emit() {
    branch(
        b_, b_.CreateICmpEQ(resume_, number(b_, 0)),
        [&] { for_sums([&](int tile, V) { call(llvm::Intrinsic::x86_tilezero, {tile_number(tile)}); }); },
        [&] {
          for_sums([&](int tile, V address) {
            call(llvm::Intrinsic::x86_tileloadd64, {tile_number(tile), address, sums_row()});
          });
        });
    repeat(b_, count_, 1, {runs_}, [&](V, std::vector<V> s) {
      run(s[0]);
      return std::vector<V>{at(b_, s[0], std::int64_t{sizeof(AmxRun)})};
    });
    for_sums([&](int tile, V address) {
      call(llvm::Intrinsic::x86_tilestored64, {tile_number(tile), address, sums_row()});
    });
    b_.CreateRetVoid();
    return function_;
  }

 private:
  V tile_number(int tile) { return b_.getInt8(static_cast<std::uint8_t>(tile)); }
  V sums_row() { return number(b_, column_tiles_ * row_bytes); }
  void call(llvm::Intrinsic::ID id, std::initializer_list<V> arguments) {
    b_.CreateIntrinsic(id, {}, llvm::ArrayRef<V>(arguments.begin(), arguments.size()));
  }

  template <class Body> void for_sums(Body body) {
    for (int i = 0; i < row_tiles_; ++i)
      for (int j = 0; j < column_tiles_; ++j)
        body(AmxTiles::sum(i, j), at(b_, sums_, (i * rows * column_tiles_ + j) * row_bytes));
  }

  /// The tiles of one AmxRun, in order.
  void run(V run) {
    V a = b_.CreateLoad(b_.getPtrTy(), run), right = b_.CreateLoad(b_.getPtrTy(), at(b_, run, std::int64_t{8}));
    V a_row = field(b_, run, 2), b_step = field(b_, run, 3), tiles = field(b_, run, 4);
    V second = b_.CreateMul(a_row, number(b_, rows)), next = b_.CreateMul(b_step, number(b_, rows));
    repeat(b_, tiles, 1, {a, right}, [&](V, std::vector<V> s) {
      for (int j = 0; j < column_tiles_; ++j)
        call(llvm::Intrinsic::x86_tileloadd64, {tile_number(AmxTiles::b(j)), at(b_, s[1], j * row_bytes), b_step});
      for (int i = 0; i < row_tiles_; ++i) {
        call(llvm::Intrinsic::x86_tileloadd64, {tile_number(AmxTiles::a(i)), i ? at(b_, s[0], second) : s[0], a_row});
        for (int j = 0; j < column_tiles_; ++j)
          call(llvm::Intrinsic::x86_tdpbf16ps,
               {tile_number(AmxTiles::sum(i, j)), tile_number(AmxTiles::a(i)), tile_number(AmxTiles::b(j))});
      }
      return std::vector<V>{at(b_, s[0], row_bytes), at(b_, s[1], next)};
    });
  }

  Builder b_;
  std::int64_t row_tiles_, column_tiles_;
  llvm::Function* function_;
  V runs_, count_, sums_, resume_;
};

}  // namespace

llvm::Function* emit_amx(llvm::Module& module, int row_tiles, int column_tiles, const std::string& name) {
  return AmxEmitter(module, row_tiles, column_tiles, name).emit();
}

llvm::Function* emit_amx_configure(llvm::Module& module, const std::string& name) {
  Builder b(module.getContext());
  auto* function = new_function(module, b, {b.getPtrTy()}, name);
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {function->getArg(0)});
  b.CreateRetVoid();
  return function;
}

llvm::Function* emit_amx_release(llvm::Module& module, const std::string& name) {
  Builder b(module.getContext());
  auto* function = new_function(module, b, {}, name);
  b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
  b.CreateRetVoid();
  return function;
}

}  // namespace gradus::cpu_backend
